//! `GET /stats`: the server's counters, for programs on its own machine.

use super::facts::{Context, Remote, not_found};
use super::pages::names_loopback;
use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use core::net::IpAddr;
use hyper::header::{CACHE_CONTROL, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, VIA};
use serde_json::json;

/// Headers that a proxy adds to a forwarded request.
const OF_PROXIES: [HeaderName; 6] = [
    FORWARDED,
    VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];

pub(super) async fn stats(
    State(context): State<Context>,
    Extension(Remote(remote)): Extension<Remote>,
    headers: HeaderMap,
) -> Response {
    if !is_asked_here(remote, &headers) {
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

/// Whether the client is a program of this machine, and not a local proxy for a stranger (threat 53). A proxy
/// also connects over loopback, but requests its public name or adds a header.
fn is_asked_here(remote: IpAddr, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    let host = hosts.next().map(HeaderValue::as_bytes).unwrap_or_default();
    remote.to_canonical().is_loopback()
        && hosts.next().is_none()
        && names_loopback(host)
        && !OF_PROXIES.iter().any(|header| headers.contains_key(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_53_figures_are_for_this_machine_and_not_for_those_behind_its_proxy() {
        let is_answered = |remote: &str, lines: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            is_asked_here(remote.parse().unwrap(), &headers)
        };
        for host in ["localhost", "localhost:7700", "LOCALHOST", "127.0.0.1:7700", "127.8.8.8", "[::1]:7700"]
        {
            assert!(is_answered("127.0.0.1", &[("host", host)]), "{host}");
            assert!(is_answered("::1", &[("host", host)]), "{host}");
            assert!(is_answered("::ffff:127.0.0.1", &[("host", host)]), "{host}");
            assert!(!is_answered("192.0.2.7", &[("host", host)]), "{host}");
            for header in OF_PROXIES {
                let lines = [("host", host), (header.as_str(), "")];
                let lines = lines.map(|(name, value)| (HeaderName::try_from(name).unwrap(), value));
                let headers = lines.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect();
                assert!(!is_asked_here("127.0.0.1".parse().unwrap(), &headers), "{header}");
            }
        }
        for host in ["play.example.com", "192.0.2.7:7700", "[2001:db8::1]", "", "localhost.example.com"] {
            assert!(!is_answered("127.0.0.1", &[("host", host)]), "{host}");
        }
        assert!(!is_answered("127.0.0.1", &[]));
        assert!(!is_answered("127.0.0.1", &[("host", "localhost"), ("host", "play.example.com")]));
    }
}
