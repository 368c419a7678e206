//! The pages on which browsers play games from this server, and their files.
//!
//! The files are stored compressed, once: all browsers take gzip. Their answers are as bounded as any other
//! request's (`stay.rs`), and take no memory of their own.

use super::facts::{Context, not_found};
use crate::web_pages::WebFile;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderMap, HeaderName, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, StatusCode};

/// The path of the files whose content never changes.
pub(super) const ASSETS: &str = "/assets/{*file}";

/// A page runs its own scripts and WebAssembly, and opens connections to game servers. It may be framed by its own
/// server only, and tells no other site where it is: its address may have a room's secret.
const PAGE_HEADERS: [(HeaderName, &str); 2] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; \
         worker-src blob:; connect-src 'self' ws: wss: https:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'self'",
    ),
    // The page names the assets of its own version.
    (CACHE_CONTROL, "no-cache"),
];
const ASSET_HEADERS: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "public, max-age=31536000, immutable")];
const COMMON_HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_ENCODING, "gzip"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (VARY, "accept, accept-encoding"),
];

/// A page, if there is one and the client wants HTML.
pub(super) fn page(page: Option<&WebFile>, headers: &HeaderMap) -> Option<Response> {
    let wants_html = lists(headers, &ACCEPT, |media| media.eq_ignore_ascii_case("text/html"));
    page.filter(|_| wants_html).map(|page| send(page, headers, PAGE_HEADERS))
}

/// What no other route answers: the page of a game.
pub(super) async fn other(State(Context { facts, .. }): State<Context>, request: Request) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match facts.web_pages.page_at(request.uri().path()).filter(|_| reads) {
        Some(page) => send(page, request.headers(), PAGE_HEADERS),
        None => not_found().await,
    }
}

pub(super) async fn asset(State(Context { facts, .. }): State<Context>, request: Request) -> Response {
    match facts.web_pages.file(request.uri().path()) {
        Some(file) => send(file, request.headers(), ASSET_HEADERS),
        None => not_found().await,
    }
}

fn send<const N: usize>(file: &WebFile, asked: &HeaderMap, headers: [(HeaderName, &str); N]) -> Response {
    if !lists(asked, &ACCEPT_ENCODING, |coding| coding.eq_ignore_ascii_case("gzip") || coding == "*") {
        let sentence =
            "this file is stored compressed: accept gzip, as browsers do and `curl --compressed`\n";
        return (StatusCode::NOT_ACCEPTABLE, [(VARY, "accept-encoding")], sentence).into_response();
    }
    (headers, COMMON_HEADERS, [(CONTENT_TYPE, file.content_type)], file.gzip).into_response()
}

/// Whether a header lists a value, and not with the weight 0.
fn lists(headers: &HeaderMap, name: &HeaderName, is_wanted: impl Fn(&str) -> bool) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        parts.next().is_some_and(&is_wanted) && !parts.any(is_zero_weight)
    })
}

fn is_zero_weight(parameter: &str) -> bool {
    let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.is_some_and(|(_, weight)| weight.trim().parse() == Ok(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn a_weight_of_zero_takes_nothing() {
        for (line, takes) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip ; q=0.000, br", false),
            ("identity", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(line))]);
            let wanted = |coding: &str| coding.eq_ignore_ascii_case("gzip") || coding == "*";
            assert_eq!(lists(&headers, &ACCEPT_ENCODING, wanted), takes, "{line}");
        }
    }
}
