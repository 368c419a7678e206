//! `GET /ws` and `GET /v1/socket`: upgrades to WebSockets, one of packets and one of JSON.

use super::asked::{AskedFrom, bearer};
use super::facts::{Context, going_down};
use crate::embed::Services;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper::{StatusCode, Version};
use parlor_hub::Origin;
use parlor_transport::websocket::{SUBPROTOCOL, accept_key};
use std::sync::{Arc, Mutex, PoisonError};

/// The only version of WebSocket.
const WEBSOCKET_VERSION: &str = "13";
/// 16 bytes in base64.
const KEY_LEN: usize = 24;

/// The handler leaves the upgraded connection here for the task that serves it.
#[derive(Clone, Default)]
pub(crate) struct UpgradeSlot(Arc<Mutex<Option<Upgrade>>>);

/// An upgraded connection.
pub(crate) struct Upgrade {
    /// The connection.
    pub(crate) on: OnUpgrade,
    /// The origin whose budgets it uses.
    pub(crate) origin: Origin,
    /// Its purpose.
    pub(crate) purpose: Purpose,
}

/// What a WebSocket is for.
pub(crate) enum Purpose {
    /// Packets of a realtime room.
    Link,
    /// Operations of the services, with this token.
    Operations {
        /// The services.
        services: Arc<dyn Services>,
        /// The token of the HTTP request.
        token: Option<String>,
    },
}

impl UpgradeSlot {
    /// Takes the upgraded connection, if the request was upgraded.
    pub(crate) fn take(&self) -> Option<Upgrade> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, upgrade: Upgrade) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
    }
}

pub(super) async fn websocket(
    State(context): State<Context>,
    Extension(slot): Extension<UpgradeSlot>,
    Extension(AskedFrom(origin)): Extension<AskedFrom>,
    mut request: Request,
) -> Response {
    if context.facts.is_going_down() {
        return going_down();
    }
    let accept = check(request.version(), request.headers()).and_then(|accept| {
        if names_subprotocol(request.headers()) { Ok(accept) } else { Err(Refusal::Subprotocol) }
    });
    let accept = match accept {
        Ok(accept) => accept,
        Err(refusal) => return refusal.into_response(),
    };
    slot.put(Upgrade { on: hyper::upgrade::on(&mut request), origin, purpose: Purpose::Link });
    let headers = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accept),
        (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// The JSON socket of the services. It has no subprotocol, so browsers can open it without one.
pub(super) async fn operations(
    services: Arc<dyn Services>,
    draining: bool,
    mut request: Request,
) -> Response {
    if draining {
        return going_down();
    }
    let extensions = request.extensions();
    let came = extensions.get::<UpgradeSlot>().cloned().zip(extensions.get::<AskedFrom>().copied());
    let Some((slot, AskedFrom(origin))) = came else {
        return Refusal::NotAnUpgrade.into_response();
    };
    let accept = match check(request.version(), request.headers()) {
        Ok(accept) => accept,
        Err(refusal) => return refusal.into_response(),
    };
    let token = bearer(request.headers());
    slot.put(Upgrade {
        on: hyper::upgrade::on(&mut request),
        origin,
        purpose: Purpose::Operations { services, token },
    });
    let headers = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Why a request is not upgraded to a WebSocket.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NotAnUpgrade,
    Version,
    Key,
    Subprotocol,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let upgrade = [(UPGRADE, "websocket"), (SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION)];
        match self {
            Refusal::NotAnUpgrade => {
                let text = "This is for WebSocket clients: send an upgrade to websocket.\n";
                (StatusCode::UPGRADE_REQUIRED, upgrade, text).into_response()
            }
            Refusal::Version => {
                let text = "This server speaks version 13 of WebSocket (RFC 6455).\n";
                (StatusCode::UPGRADE_REQUIRED, upgrade, text).into_response()
            }
            Refusal::Key => {
                let text = "Sec-WebSocket-Key is missing or is not 16 bytes in base64.\n";
                (StatusCode::BAD_REQUEST, text).into_response()
            }
            Refusal::Subprotocol => {
                let text = "Name the subprotocol: Sec-WebSocket-Protocol: parlor\n";
                (StatusCode::BAD_REQUEST, text).into_response()
            }
        }
    }
}

/// Checks the request's half of the opening handshake; returns the answer to its key.
fn check(version: Version, headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    if version != Version::HTTP_11
        || !lists(headers, &CONNECTION, |token| token.eq_ignore_ascii_case("upgrade"))
        || !lists(headers, &UPGRADE, |token| token.eq_ignore_ascii_case("websocket"))
    {
        return Err(Refusal::NotAnUpgrade);
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != WEBSOCKET_VERSION) {
        return Err(Refusal::Version);
    }
    let is_base64 = |key: &&str| {
        let letters = key.strip_suffix("==").unwrap_or_default();
        key.len() == KEY_LEN
            && letters.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"+/".contains(&letter))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let key = key.filter(is_base64).ok_or(Refusal::Key)?;
    Ok(HeaderValue::from_str(&accept_key(key)).expect("base64 is ASCII"))
}

/// Whether the client names the subprotocol of packets.
fn names_subprotocol(headers: &HeaderMap) -> bool {
    lists(headers, &SEC_WEBSOCKET_PROTOCOL, |token| token == SUBPROTOCOL)
}

/// Whether a header, which may have several lines, lists a token.
fn lists(headers: &HeaderMap, name: &HeaderName, is_wanted: impl Fn(&str) -> bool) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|token| is_wanted(token.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(pair).collect()
    }

    const GOOD: [(&str, &str); 5] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "chat, parlor"),
    ];

    #[test]
    fn a_good_request_is_answered_as_the_standard_has_it() {
        let accept = check(Version::HTTP_11, &headers(&GOOD)).unwrap();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn each_missing_or_wrong_line_is_named() {
        let refusals = [Refusal::NotAnUpgrade, Refusal::NotAnUpgrade, Refusal::Version, Refusal::Key];
        for (at, refusal) in refusals.into_iter().enumerate() {
            let mut lines = GOOD.to_vec();
            lines[at].1 = "nonsense";
            assert_eq!(check(Version::HTTP_11, &headers(&lines)).unwrap_err(), refusal);
            lines.remove(at);
            assert_eq!(check(Version::HTTP_11, &headers(&lines)).unwrap_err(), refusal);
        }
        assert_eq!(check(Version::HTTP_10, &headers(&GOOD)), Err(Refusal::NotAnUpgrade));
        assert!(names_subprotocol(&headers(&GOOD)) && !names_subprotocol(&headers(&GOOD[..4])));
    }
}
