//! `GET /join/{code}`: the page behind an invite link.

use super::asked::AskedFrom;
use super::facts::Context;
use super::rooms::find;
use super::web_pages;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::response::{Html, IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

/// Defence beside escaping: injected content could not run, load or send anything.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

pub(super) async fn page(
    State(context): State<Context>,
    Extension(from): Extension<AskedFrom>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    let (status, retry_after, title, body) = match find(&context, from, path).await {
        Ok(room) => {
            let page = context.facts.web_pages.page_of(&room.app);
            if let Some(page) = web_pages::page(page, &headers) {
                return page;
            }
            let (code, app) = (escape(room.code.as_str()), escape(&room.app));
            let invite = escape(&context.facts.invite(room.code, None).link("parlor"));
            let (players, max) = (room.players, room.max_players);
            let body = format!(
                "<h1>{code}</h1>\n<p>A room of <b>{app}</b>, {players} of {max} players.</p>\n\
                 <p><a href=\"{invite}\">Open the game</a>, or give the game the code or this invite:</p>\n\
                 <p><code>{invite}</code></p>\n"
            );
            (StatusCode::OK, None, format!("Room {code}"), body)
        }
        Err(none) => {
            let body = format!("<h1>No room</h1>\n<p>{}</p>\n", escape(&none.sentence()));
            (none.status(), none.retry_after(), "No room".to_owned(), body)
        }
    };
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>body{{font:1.1em system-ui;max-width:40em;margin:3em auto;padding:0 1em}}\
         code{{overflow-wrap:anywhere}}</style>\n{body}</html>\n"
    );
    (status, HEADERS, retry_after, Html(html)).into_response()
}

/// Escapes text for an element or a quoted attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(super::escape("<a href='x\">&"), "&lt;a href=&#39;x&quot;&gt;&amp;");
    }
}
