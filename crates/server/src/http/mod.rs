//! What the server answers to HTTP: one request for each connection, but for the services, whose connections may stay
//! (`stay.rs`).

mod health;
mod join;
mod rooms;
mod stats;
mod stay;
mod upgrade;

pub(crate) use health::{Readiness, readiness_routes};
pub(crate) use stay::places as staying_places;
pub(crate) use upgrade::{Purpose, Upgrade, UpgradeSlot};

use crate::door::Door;
use crate::gate::Gate;
use crate::metrics::{self, Metrics};
use crate::online::{self, AskedFrom, Services};
use crate::shard::{Shard, Shards};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use core::convert::Infallible;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parlor_hub::Origin;
use parlor_proto::{RoomCode, limits};
use parlor_transport::Fingerprint;
use parlor_transport::discovery::{Invite, ServerAddress};
use parlor_transport::websocket::Io;
use stay::Stay;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

/// How long request and answer may take together, so that a slow reader does not stay either.
const EXCHANGE_TIME: Duration = Duration::from_secs(10);
/// Where the services are.
const SERVICES: &str = "/v1";
/// Largest head of a request, in bytes; the library has no smaller buffer.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// What the routes know of their server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Site {
    shards: Shards,
    door: Door,
    handshake_time: Duration,
    router: Router,
    facts: Arc<Facts>,
    /// Connections that stay for the next request.
    staying: Gate,
}

/// What does not change while the server runs, and whether it is going down.
pub(crate) struct Facts {
    pub(crate) port: u16,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// The one that reaches furthest comes first.
    pub(crate) addresses: Vec<ServerAddress>,
    pub(crate) is_draining: AtomicBool,
    /// What is counted as it happens.
    pub(crate) metrics: Arc<Metrics>,
}

impl Facts {
    /// What a friend is given to join a room.
    pub(crate) fn invite(&self, code: RoomCode, secret: Option<&str>) -> Invite {
        Invite { code, server: self.addresses.first().cloned(), secret: secret.map(str::to_owned) }
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// Who asks, as far as its address tells.
#[derive(Clone, Copy, Debug)]
struct Remote(IpAddr);

/// What a handler is given.
#[derive(Clone)]
struct Context {
    shards: Shards,
    facts: Arc<Facts>,
    door: Door,
}

impl Site {
    pub(crate) fn new(
        shards: Shards,
        facts: Arc<Facts>,
        door: Door,
        services: Option<Services>,
        handshake_time: Duration,
        staying: Gate,
    ) -> Self {
        let context = Context { shards: shards.clone(), facts: Arc::clone(&facts), door: door.clone() };
        let mut router = Router::new()
            .route("/", get(front))
            .route("/stats", get(stats::stats))
            .route("/rooms/{code}", get(rooms::room))
            .route("/join/{code}", get(join::page))
            .route("/ws", get(upgrade::websocket))
            .fallback(not_found);
        let readiness = Readiness { facts: Arc::clone(&facts), services: services.clone() };
        router = router.merge(readiness_routes(readiness));
        if let Some(services) = services {
            let operations = online::routes(&services);
            let facts = Arc::clone(&facts);
            let socket = get(move |request: Request| {
                upgrade::operations(services.clone(), facts.is_draining(), request)
            });
            router = router.nest(SERVICES, operations.route("/socket", socket));
        }
        let router = router.with_state(context);
        Site { shards, door, handshake_time, router, facts, staying }
    }

    pub(crate) fn shard(&self) -> &Shard {
        self.shards.own()
    }

    /// Whose budgets count for an address.
    pub(crate) fn origin(&self, addr: IpAddr) -> Origin {
        self.door.origin(addr)
    }

    /// How long a client may take for each step until it has said hello.
    pub(crate) fn handshake_time(&self) -> Duration {
        self.handshake_time
    }
}

/// Answers one request, or many. If one becomes a WebSocket, `slot` has what it becomes.
pub(crate) async fn serve(io: impl Io, remote: SocketAddr, site: &Site, slot: &UpgradeSlot) {
    let router = TowerToHyperService::new(site.router.clone());
    let origin = site.origin(remote.ip());
    let stay = Stay::new(origin);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        stay.asked();
        request.extensions_mut().insert(slot.clone());
        request.extensions_mut().insert(Remote(remote.ip().to_canonical()));
        request.extensions_mut().insert(AskedFrom(origin));
        let may_stay = request.version() == Version::HTTP_11 && is_for_services(request.uri().path());
        let route = metrics::route(request.uri().path());
        let answering = router.call(request);
        let stay = &stay;
        async move {
            let stays = may_stay && !site.facts.is_draining() && stay.stays(&site.staying).await;
            let answer = answering.await?;
            site.facts.metrics.requested(route, answer.status());
            Ok::<_, Infallible>(if stays { answer } else { last(answer) })
        }
    });
    let connection = builder(site.handshake_time).serve_connection(TokioIo::new(io), service).with_upgrades();
    ended(stay.watch(connection).await);
}

fn is_for_services(path: &str) -> bool {
    path.strip_prefix(SERVICES).is_some_and(|rest| rest.starts_with('/'))
}

/// Answers one request on the operator's own port.
pub(crate) async fn serve_operator(io: impl Io, router: Router) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let answering = router.call(request);
        async move { answering.await.map(last) }
    });
    let connection = builder(limits::HANDSHAKE_TIMEOUT).serve_connection(TokioIo::new(io), service);
    ended(timeout(EXCHANGE_TIME, connection).await.ok());
}

/// Tells a client without TLS that it needs it.
pub(crate) async fn turn_away_plain(io: impl Io, head_time: Duration) {
    let service = service_fn(|_: hyper::Request<Incoming>| async {
        let advice = "This port speaks TLS: use https:// or wss://.\n";
        Ok::<_, Infallible>(last((StatusCode::BAD_REQUEST, advice).into_response()))
    });
    let connection = builder(head_time).serve_connection(TokioIo::new(io), service);
    ended(timeout(EXCHANGE_TIME, connection).await.ok());
}

/// Nothing comes after this answer. The library could say so for all of them, but then also where a WebSocket comes after it.
fn last(mut answer: Response) -> Response {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// `head_time` is how long a client has for its request's head.
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

async fn front(State(Context { facts, .. }): State<Context>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let port = facts.port;
    let fingerprint = match facts.fingerprint {
        Some(fingerprint) => format!("Its certificate is its own and has the fingerprint {fingerprint}.\n"),
        None => String::new(),
    };
    format!(
        "Parlor server {version}: rooms for multiplayer games.\n\n\
         To play, start a game that uses Parlor and give it the code of a room or an invite; /join/CODE shows both.\n\
         Games connect by QUIC on UDP port {port}, or by WebSocket at /ws.\n{fingerprint}\n\
         /rooms/CODE  about a room, as JSON\n\
         /join/CODE   the same as a page\n\
         /health      whether the server lives\n\
         /ready       whether it takes players, as JSON\n\
         /v1          accounts and rooms that outlive their players, if this server has a store: /v1/openapi.json\n"
    )
}

async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "There is nothing here. / says what there is.\n").into_response()
}

fn going_down() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "The server is going down.\n").into_response()
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
