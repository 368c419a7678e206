//! Liveness and readiness. A server that shuts down is live but not ready, and so is a node that drains.

use super::facts::Facts;
use crate::embed::{GOING_DOWN, Services};
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use hyper::StatusCode;
use hyper::header::CACHE_CONTROL;
use serde_json::json;
use std::sync::Arc;

/// The data for the answer. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Readiness {
    pub(crate) facts: Arc<Facts>,
    pub(crate) services: Option<Arc<dyn Services>>,
}

/// `/health` and `/ready`.
pub(crate) fn readiness_routes<S: Clone + Send + Sync + 'static>(readiness: Readiness) -> Router<S> {
    Router::new().route("/health", get(health)).route("/ready", get(ready)).with_state(readiness)
}

async fn health() -> &'static str {
    "ok\n"
}

/// Realtime rooms need no store, so a stalled store counts only for `/ready?store`.
async fn ready(State(readiness): State<Readiness>, RawQuery(query): RawQuery) -> Response {
    let counts_store =
        query.is_some_and(|query| query.split('&').any(|part| part == "store" || part == "store="));
    let store = match &readiness.services {
        None => Ok("none"),
        Some(services) if counts_store => services.store_answers().await.map(|()| "ok"),
        Some(services) => services.store_state().map(|()| "ok"),
    };
    let is_going_down = readiness.facts.is_going_down();
    let node = readiness.services.as_ref().and_then(|services| services.node());
    let drains = node.is_some_and(|node| node.drains());
    let is_ready = !is_going_down && !drains && (store.is_ok() || !counts_store);
    let why = match &store {
        _ if is_going_down => Some(GOING_DOWN.to_owned()),
        _ if drains => Some("the node is draining: it takes no new rooms".to_owned()),
        Err(why) => Some(why.clone()),
        Ok(_) => None,
    };
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({ "ready": is_ready, "store": store.unwrap_or("unavailable"), "why": why });
    (status, [(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
