//! `GET /stats`: counters of the server as JSON, for local programs.

use super::facts::{Context, Remote, not_found};
use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use hyper::header::CACHE_CONTROL;
use serde_json::json;

pub(super) async fn stats(
    State(context): State<Context>,
    Extension(Remote(remote)): Extension<Remote>,
) -> Response {
    // How busy a server is concerns whoever runs it.
    if !remote.is_loopback() {
        return not_found().await;
    }
    let stats = context.shards.stats().await;
    let body = json!({
        "rooms": stats.rooms,
        "connections": stats.connections,
        "messages_relayed": stats.messages_relayed,
        "packets_sent": stats.packets_sent,
        "flush_waits": stats.flush_waits,
        "flush_wait_us": stats.flush_wait_us,
        "resumed": stats.resumed,
        "resume_tokens_reused": stats.tokens_reused,
    });
    ([(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
