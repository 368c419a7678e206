//! Requests on reserve places: those that must be answered when all other places are taken (threat 47).

use super::asked::bearer;
use super::facts::is_for_services;
use crate::embed::Services;
use axum::Json;
use axum::response::{IntoResponse, Response};
use hyper::header::{CACHE_CONTROL, HeaderMap, RETRY_AFTER};
use hyper::{Method, StatusCode};
use serde_json::json;

/// Retry delay of clients of a full server.
const ASK_AGAIN_S: &str = "5";

/// Whether a request must be answered: it checks liveness, or comes from an operator.
pub(super) async fn must_be_answered(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    services: Option<&dyn Services>,
) -> bool {
    if matches!(path, "/health" | "/ready") {
        return *method == Method::GET || *method == Method::HEAD;
    }
    match (services, bearer(headers)) {
        (Some(services), Some(token)) if is_for_services(path) => services.is_of_operator(token).await,
        _ => false,
    }
}

/// The answer to other requests.
pub(super) fn full() -> Response {
    let sentence = "the server has as many connections as it takes: try again in a moment";
    let body = Json(json!({ "error": { "code": "server_full", "sentence": sentence } }));
    let headers = [(RETRY_AFTER, ASK_AGAIN_S), (CACHE_CONTROL, "no-store")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
}
