//! The operations over HTTP: `METHOD /v1/PATH`, one JSON object in, one out.

use super::Services;
use super::answer::ChargedBody;
use super::failure::{Failure, Kind};
use super::json::{self, INPUT_BYTES_MAX};
use super::table::Operation;
use axum::body::{Body, to_bytes};
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Json, Router};
use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, StatusCode};
use parlor_hub::Origin;
use parlor_server::embed::{AskedFrom, bearer};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The routes of all operations, to be nested at `/v1`.
pub(super) fn routes(services: &Services) -> Router {
    let mut by_path: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for (at, operation) in services.operations().iter().enumerate() {
        let services = services.clone();
        let handler = move |path: RawPathParams, request: Request| async move {
            let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            answer(&services, at, path, request).await
        };
        let routes = by_path.remove(operation.path).unwrap_or_default();
        by_path.insert(operation.path, routes.merge(on(filter(&operation.method), handler)));
    }
    let document = services.clone();
    let mut router = Router::new().route(
        "/openapi.json",
        axum::routing::get(move |headers: HeaderMap| async move { document.openapi().answer(&headers) }),
    );
    for (path, routes) in by_path {
        router = router.route(path, routes);
    }
    let nothing = || async {
        let sentence = "there is nothing here: /v1/openapi.json says what there is";
        refuse(&Failure::new(Kind::NotFound, "no_such_path", sentence))
    };
    let other_method = || async {
        let sentence = "this path has no such method: /v1/openapi.json says which it has";
        refuse(&Failure::new(Kind::Method, "no_such_method", sentence))
    };
    router.fallback(nothing).method_not_allowed_fallback(other_method)
}

fn filter(method: &Method) -> MethodFilter {
    match *method {
        Method::GET => MethodFilter::GET,
        Method::DELETE => MethodFilter::DELETE,
        Method::PATCH => MethodFilter::PATCH,
        Method::PUT => MethodFilter::PUT,
        _ => MethodFilter::POST,
    }
}

async fn answer(services: &Services, at: usize, path: Vec<(String, String)>, request: Request) -> Response {
    let operation = &services.operations()[at];
    let (parts, body) = request.into_parts();
    let from = parts.extensions.get::<AskedFrom>().map_or(Origin::LOCAL, |from| from.0);
    let body = match read(operation, body).await {
        Ok(body) => body,
        Err(failure) => return refuse(&failure),
    };
    let text = body.as_deref().unwrap_or_else(|| parts.uri.query().unwrap_or_default().as_bytes());
    let held = services.hold_input(from, text);
    let share = match held.and_then(|share| services.hold_answer(at, share)) {
        Ok(share) => share,
        Err(failure) => return refuse(&failure),
    };
    let token = bearer(&parts.headers);
    // The thread of the connection also relays packets, so it must not parse strangers' JSON.
    let input = move |operation: &Operation| input(operation, path, parts.uri.query(), body);
    match services.call(at, token, from, input, share).await {
        Ok((output, share)) => {
            let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
            match ChargedBody::new(String::from(Box::<str>::from(output)), share) {
                Ok(body) => (headers, Body::new(body)).into_response(),
                Err(full) => refuse(&full.into()),
            }
        }
        Err(failure) => refuse(&failure),
    }
}

/// Reads the body of a request, if the operation has one.
async fn read(operation: &Operation, body: Body) -> Result<Option<Bytes>, Failure> {
    if !operation.has_body() {
        return Ok(None);
    }
    to_bytes(body, INPUT_BYTES_MAX).await.map(Some).map_err(|error| not_read(&error))
}

/// Combines the input: fields of the path, and of the query or the body.
fn input(
    operation: &Operation,
    path: Vec<(String, String)>,
    query: Option<&str>,
    body: Option<Bytes>,
) -> Result<Value, Failure> {
    let mut input = if let Some(body) = body {
        let body = if body.is_empty() { Value::Object(Map::new()) } else { json::parse(&body)? };
        let Value::Object(fields) = body else {
            return Err(Failure::field("", "the body must be a JSON object"));
        };
        fields
    } else {
        Map::new()
    };
    for (name, text) in
        query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()).map(pair)
    {
        let (name, text) = (name?, text?);
        if operation.has_body() {
            return Err(Failure::field(name, "this stands in the query: fields go into the body"));
        }
        put(&mut input, operation, name, &text)?;
    }
    for (name, text) in path {
        put(&mut input, operation, name, &text)?;
    }
    Ok(Value::Object(input))
}

fn put(
    input: &mut Map<String, Value>,
    operation: &Operation,
    name: String,
    text: &str,
) -> Result<(), Failure> {
    if input.contains_key(&name) {
        return Err(Failure::field(name, "this field is given twice"));
    }
    let value = operation.value_of(&name, text);
    input.insert(name, value);
    Ok(())
}

/// The name and the value of a query field.
fn pair(text: &str) -> (Result<String, Failure>, Result<String, Failure>) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let decode = |part: &str| {
        let part = part.replace('+', " ");
        let decoded = percent_decode_str(&part).decode_utf8().map(|text| text.into_owned());
        decoded.map_err(|_| Failure::field(name, "the query is no UTF-8"))
    };
    (decode(name), decode(value))
}

/// The failure for a body that was not read.
fn not_read(error: &axum::Error) -> Failure {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return json::too_large();
        }
        cause = error.source();
    }
    Failure::new(Kind::BadInput, "bad_body", "the body did not come whole")
}

/// The HTTP answer for a failure.
pub(crate) fn refuse(failure: &Failure) -> Response {
    let retry_after = failure.retry_after().map(|after| {
        // Rounded up, so the wait suffices.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        [(RETRY_AFTER, seconds.to_string())]
    });
    let who: Option<[(HeaderName, &str); 1]> =
        (failure.status() == StatusCode::UNAUTHORIZED).then_some([(WWW_AUTHENTICATE, "Bearer")]);
    let body = Json(json!({ "error": failure.to_json() }));
    (failure.status(), [(CACHE_CONTROL, "no-store")], retry_after, who, body).into_response()
}
