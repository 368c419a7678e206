//! The server's HTTP: one request for each connection, except for the services, whose connections may stay
//! open (`stay.rs`).

mod asked;
mod facts;
mod health;
mod join;
mod pages;
mod reserve;
mod rooms;
mod stats;
mod stay;
mod upgrade;
mod visit;
mod web;
mod web_pages;

pub use asked::{AskedFrom, bearer};
pub(crate) use facts::Facts;
pub(crate) use health::{Readiness, readiness_routes};
pub(crate) use pages::{Asker, Pages, Stranger, read_origin};
pub(crate) use stay::keep_alive_limit;
pub(crate) use upgrade::{Purpose, Upgrade, UpgradeSlot};

use crate::access::Access;
use crate::connection_limit::ConnectionLimit;
use crate::embed::Services;
use crate::shard::{Shard, Shards};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use core::convert::Infallible;
use core::net::SocketAddr;
use core::time::Duration;
use facts::{Context, SERVICES};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parlor_proto::limits;
use parlor_transport::websocket::Io;
use stay::Stay;
use std::sync::Arc;
use tokio::time::timeout;
use visit::Visit;

/// Maximum time for a request and its answer, so that slow readers end too.
const EXCHANGE_TIME: Duration = Duration::from_secs(10);
/// Maximum size of a request's head, in bytes; the library has no smaller buffer.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// The server data of the routes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Site {
    shards: Shards,
    access: Access,
    handshake_time: Duration,
    router: Router,
    facts: Arc<Facts>,
    /// The limit of keep-alive connections.
    staying: ConnectionLimit,
    /// Counts rejected connections.
    limit: ConnectionLimit,
    services: Option<Arc<dyn Services>>,
}

impl Site {
    pub(crate) fn new(
        shards: Shards,
        facts: Arc<Facts>,
        access: Access,
        services: Option<Arc<dyn Services>>,
        handshake_time: Duration,
        [staying, limit]: [ConnectionLimit; 2],
    ) -> Self {
        let node = services.as_ref().and_then(|services| services.node());
        let context =
            Context { shards: shards.clone(), facts: Arc::clone(&facts), access: access.clone(), node };
        let mut router = Router::new()
            .route("/", get(front))
            .route("/stats", get(stats::stats))
            .route("/rooms/{code}", get(rooms::room))
            .route("/join/{code}", get(join::page))
            .route("/ws", get(upgrade::websocket))
            .route("/web.json", web::route(services.is_some()))
            .route(web_pages::ASSETS, get(web_pages::asset))
            .fallback(web_pages::other);
        let readiness = Readiness { facts: Arc::clone(&facts), services: services.clone() };
        router = router.merge(readiness_routes(readiness));
        let mut router = router.with_state(context);
        if let Some(services) = services.clone() {
            let operations = services.routes();
            let facts = Arc::clone(&facts);
            let socket = get(move |request: Request| {
                upgrade::operations(services.clone(), facts.is_going_down(), request)
            });
            router = router.nest(SERVICES, operations.route("/socket", socket));
        }
        Site { shards, access, handshake_time, router, facts, staying, limit, services }
    }

    pub(crate) fn shard(&self) -> &Shard {
        self.shards.own()
    }

    /// Maximum time for each step of a client before its hello.
    pub(crate) fn handshake_time(&self) -> Duration {
        self.handshake_time
    }
}

/// Answers one request, or many. If one becomes a WebSocket, `slot` holds the connection. A connection of the
/// reserve is served only the requests that must be answered.
pub(crate) async fn serve(
    io: impl Io,
    remote: SocketAddr,
    is_of_reserve: bool,
    site: &Site,
    slot: &UpgradeSlot,
) {
    let stay = Stay::new();
    let visit = Visit::new(site, remote.ip(), is_of_reserve, slot, &stay);
    let service = service_fn(|request| visit.answer(request));
    let connection = builder(site.handshake_time).serve_connection(TokioIo::new(io), service).with_upgrades();
    ended(stay.watch(connection).await);
}

/// Answers one request on the operator's own port. Web pages are rejected.
pub(crate) async fn serve_operator(io: impl Io, remote: SocketAddr, router: Router) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let judged = Pages::default().judge(request.uri(), request.headers(), remote.ip());
        let answering = judged.map(|_| router.call(request));
        async move {
            match answering {
                Ok(answering) => answering.await.map(last),
                Err(stranger) => Ok(last(visit::refusal(&stranger))),
            }
        }
    });
    let connection = builder(limits::HANDSHAKE_TIMEOUT).serve_connection(TokioIo::new(io), service);
    ended(timeout(EXCHANGE_TIME, connection).await.ok());
}

/// Answers a client without TLS that TLS is required.
pub(crate) async fn turn_away_plain(io: impl Io, head_time: Duration) {
    let service = service_fn(|_: hyper::Request<Incoming>| async {
        let advice = "This port speaks TLS: use https:// or wss://.\n";
        Ok::<_, Infallible>(last((StatusCode::BAD_REQUEST, advice).into_response()))
    });
    let connection = builder(head_time).serve_connection(TokioIo::new(io), service);
    ended(timeout(EXCHANGE_TIME, connection).await.ok());
}

/// Announces that the connection closes after this answer. The library's own setting would also do so before
/// a WebSocket.
fn last(mut answer: Response) -> Response {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// `head_time` is the maximum time for a request's head.
fn builder(head_time: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(HEAD_BYTES_MAX);
    builder
}

fn ended(ended: Option<Result<(), hyper::Error>>) {
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "an HTTP connection failed"),
        None => tracing::debug!("an HTTP connection took too long"),
    }
}

async fn front(State(Context { facts, .. }): State<Context>, headers: HeaderMap) -> Response {
    web_pages::page(facts.web_pages.page_at("/"), &headers).unwrap_or_else(|| summary(&facts).into_response())
}

fn summary(facts: &Facts) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let port = facts.port;
    let fingerprint = match facts.fingerprint {
        Some(fingerprint) => format!("Its certificate is its own and has the fingerprint {fingerprint}.\n"),
        None => String::new(),
    };
    let games = facts.web_pages.games.iter();
    let web: String =
        games.map(|game| format!("In a browser, {} plays {}.\n", game.path, game.app)).collect();
    format!(
        "Parlor server {version}: rooms for multiplayer games.\n\n\
         To play, start a game that uses Parlor and give it the code of a room or an invite; /join/CODE shows both.\n\
         Games connect by QUIC on UDP port {port}, or by WebSocket at /ws; web pages by WebTransport at /wt, or by WebSocket.\n{fingerprint}{web}\n\
         /rooms/CODE  about a room, as JSON\n\
         /join/CODE   the same as a page\n\
         /health      whether the server lives\n\
         /ready       whether it takes players, as JSON\n\
         /web.json    how a web page connects, as JSON\n\
         /v1          accounts and rooms that outlive their players, if this server has a store: /v1/openapi.json\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn threat_19_half_a_head_is_given_up_in_its_time() {
        let (mut client, served) = tokio::io::duplex(4_096);
        client.write_all(b"GET /rooms/K7QM HTTP/1.1\r\nHost: x").await.unwrap();
        let began = tokio::time::Instant::now();
        let reading = async { client.read_to_end(&mut Vec::new()).await.map(|_| ()) };
        let (_, closed) = tokio::join!(turn_away_plain(served, limits::HANDSHAKE_TIMEOUT), reading);
        closed.unwrap();
        let took = began.elapsed();
        assert!(took.abs_diff(limits::HANDSHAKE_TIMEOUT) < Duration::from_millis(10), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn threat_19_a_client_that_does_not_take_its_answer_is_given_up() {
        let (mut client, served) = tokio::io::duplex(64);
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let began = tokio::time::Instant::now();
        turn_away_plain(served, limits::HANDSHAKE_TIMEOUT).await;
        assert!(began.elapsed().abs_diff(EXCHANGE_TIME) < Duration::from_millis(10));
    }

    #[tokio::test]
    async fn a_client_without_tls_is_told_what_to_do() {
        let (mut client, served) = tokio::io::duplex(4_096);
        client.write_all(b"GET /rooms/K7QM HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        tokio::join!(turn_away_plain(served, limits::HANDSHAKE_TIMEOUT), async {
            client.read_to_string(&mut answer).await.unwrap()
        });
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(
            answer.contains("https://") && answer.to_lowercase().contains("connection: close"),
            "{answer}"
        );
    }
}
