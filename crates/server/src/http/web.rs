//! `GET /web.json`: how a web page connects to this server.

use super::facts::{Context, SERVICES};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use data_encoding::BASE64URL_NOPAD;
use hyper::header::CACHE_CONTROL;
use parlor_proto::limits::{VERSION_MAX, VERSION_MIN};
use parlor_transport::quic::webtransport::PATH;
use serde_json::{Value, json};

/// The path of the WebSocket.
const WEBSOCKET: &str = "/ws";

pub(super) fn route(has_services: bool) -> MethodRouter<Context> {
    get(move |State(context): State<Context>| async move { answer(&context, has_services) })
}

/// Hashes are of the certificate in use and of the next one; an authority's certificate needs none.
fn answer(context: &Context, has_services: bool) -> Response {
    let facts = &context.facts;
    let hashes: Vec<String> =
        facts.web_hashes.get().iter().map(|hash| BASE64URL_NOPAD.encode(&hash.0)).collect();
    let games = facts.web_pages.games.iter().map(|game| json!({ "app": game.app, "path": game.path }));
    let games: Vec<Value> = games.collect();
    let body = json!({
        "parlor": env!("CARGO_PKG_VERSION"),
        "protocol": [VERSION_MIN, VERSION_MAX],
        "webtransport": { "port": facts.public_port, "path": PATH, "hashes": hashes },
        "websocket": WEBSOCKET,
        "games": games,
        "services": has_services.then(|| format!("{SERVICES}/socket")),
        "shards": context.shards.count(),
    });
    ([(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
