//! The UDP port of a shard: admission of connections, and the map between the hub's and the [`Engine`]'s
//! connections.

use crate::access::Access;
use crate::connection_limit::{ConnectionLimit, Permit};
use crate::handshakes::Verdict;
use crate::http::{Asker, Facts, Stranger};
use crate::shard::Numbers;
use core::net::SocketAddr;
use core::time::Duration;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{StatusCode, Uri};
use parlor_hub::Origin;
use parlor_proto::{ConnectionId, LinkKind, Packet};
use parlor_transport::quic::Engine;
use parlor_transport::quic::engine::{Event, Id, Incoming};
use parlor_transport::quic::webtransport::{PATH, Request};
use parlor_transport::{CloseCode, LinkClosed, SendError};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;

/// Close reason of links when the shard stops.
pub const GOING_DOWN: &str = "the server is going down";
/// Close reason for an address beyond its limit of connections.
const TOO_MANY: &str = "too many connections come from this address: close some, or try again in a moment";
/// Maximum time for the last packets.
const END_TIME: Duration = Duration::from_millis(500);

/// The port. Dropping it notifies all peers of the shutdown.
pub(crate) struct Quic {
    engine: Engine,
    limit: ConnectionLimit,
    access: Access,
    numbers: Numbers,
    handshake_time: Duration,
    facts: Arc<Facts>,
    engine_connections: FxHashMap<Id, EngineConnection>,
    /// Connections that have a link.
    links: usize,
    /// Connections that the engine rejected by itself, as counted by the limit.
    refused: u64,
}

/// A connection of the engine.
struct EngineConnection {
    permit: Permit,
    /// Whether a web page on this machine opened it: it has the budgets of an address.
    is_of_page: bool,
    /// `None` until its handshake is done.
    connection: Option<ConnectionId>,
}

/// A received event.
#[derive(Debug)]
pub(crate) enum QuicEvent {
    /// A new link.
    Link { connection: ConnectionId, id: Id, kind: LinkKind, origin: Origin },
    /// A packet.
    Packet { connection: ConnectionId, packet: Packet },
    /// The peer of a link has another address.
    Moved { connection: ConnectionId, remote: SocketAddr },
    /// A link that was full accepts packets again.
    Room { connection: ConnectionId },
    /// A link ended.
    End { connection: ConnectionId, is_violation: bool },
}

impl Quic {
    pub(crate) fn new(
        engine: Engine,
        limit: ConnectionLimit,
        access: Access,
        numbers: Numbers,
        handshake_time: Duration,
        facts: Arc<Facts>,
    ) -> Self {
        let engine_connections = FxHashMap::default();
        Quic {
            engine,
            limit,
            access,
            numbers,
            handshake_time,
            facts,
            engine_connections,
            links: 0,
            refused: 0,
        }
    }

    /// See [`Engine::ready`].
    pub(crate) async fn ready(&mut self) -> io::Result<()> {
        self.engine.ready().await
    }

    /// See [`Engine::poll_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<tokio::time::Instant> {
        self.engine.poll_timeout().map(Into::into)
    }

    /// See [`Engine::turn`].
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        self.engine.turn(now())
    }

    /// Received events, oldest first. Connection attempts are answered meanwhile.
    pub(crate) fn poll(&mut self) -> Option<QuicEvent> {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Incoming(incoming) => self.answer(incoming),
                Event::Asked { id, request } => self.asked(id, &request),
                Event::Connected { id, kind } => {
                    if let Some(came) = self.connected(id, kind) {
                        return Some(came);
                    }
                }
                Event::Failed { id, error } => {
                    tracing::debug!(%error, "a QUIC client did not get in");
                    self.engine_connections.remove(&id);
                }
                Event::Packet { id, packet } => {
                    if let Some(connection) = self.connection(id) {
                        return Some(QuicEvent::Packet { connection, packet });
                    }
                }
                Event::Moved { id, remote } => {
                    if let Some(connection) = self.connection(id) {
                        return Some(QuicEvent::Moved { connection, remote: canonical(remote) });
                    }
                }
                Event::Writable { id, .. } => {
                    if let Some(connection) = self.connection(id) {
                        return Some(QuicEvent::Room { connection });
                    }
                }
                Event::Closed { id, why } => {
                    if let Some(connection) =
                        self.engine_connections.remove(&id).and_then(|open| open.connection)
                    {
                        self.links -= 1;
                        // A peer's close reason is its own text, so it is logged escaped.
                        tracing::debug!(connection = connection.0, end = ?why.to_string(), "disconnected");
                        let is_violation = matches!(why, LinkClosed::NotParlor(_));
                        return Some(QuicEvent::End { connection, is_violation });
                    }
                }
            }
        }
        // The engine rejects clients while too many handshakes are pending.
        let refused = self.engine.stats().refused;
        (self.refused..refused).for_each(|_| self.limit.turn_away());
        self.refused = refused;
        None
    }

    /// The address of a client.
    pub(crate) fn remote(&self, id: Id) -> Option<SocketAddr> {
        self.engine.remote(id).map(canonical)
    }

    /// See [`Engine::send`].
    pub(crate) fn send(&mut self, id: Id, packet: Packet) -> Result<(), SendError> {
        self.engine.send(id, packet)
    }

    /// See [`Engine::bytes_per_second`].
    pub(crate) fn bytes_per_second(&self, id: Id) -> Option<u64> {
        self.engine.bytes_per_second(id)
    }

    /// See [`Engine::part`].
    pub(crate) fn part(
        &mut self,
        id: Id,
        last: impl IntoIterator<Item = Packet>,
        code: CloseCode,
        reason: &str,
    ) {
        self.engine.part(id, last, code, reason, now());
    }

    /// See [`Engine::flush`].
    pub(crate) fn flush(&mut self) {
        self.engine.flush(now());
    }

    /// The number of open links.
    pub(crate) fn links(&self) -> usize {
        self.links
    }

    /// Notifies all peers of the shutdown, and waits a moment for their answers.
    pub(crate) async fn end(mut self) {
        self.close();
        if timeout(END_TIME, self.engine.wind_up()).await.is_err() {
            tracing::debug!("some QUIC clients did not answer the goodbye");
        }
    }

    fn close(&mut self) {
        self.engine.close(CloseCode::GOING_AWAY, GOING_DOWN, now());
        self.flush();
    }

    /// Decides about a client before any cryptography.
    fn answer(&mut self, incoming: Incoming) {
        let addr = incoming.remote().ip();
        let origin = self.access.origin(addr);
        match self.access.handshake(addr, incoming.is_proven()) {
            // A client beyond its address's share must prove the address first: it may be forged.
            Verdict::Begin if !incoming.is_proven() && !self.limit.fits(origin) => {
                return self.engine.ask_for_proof(incoming);
            }
            Verdict::Begin => {}
            Verdict::Prove => return self.engine.ask_for_proof(incoming),
            Verdict::Refuse => {
                self.limit.turn_away();
                return self.engine.refuse(incoming);
            }
        }
        // Half-open connections from a forged address must not use its share, so only a verified address is
        // counted.
        let shown = incoming.is_proven().then_some(origin);
        let Some(permit) = self.limit.enter(shown) else { return self.engine.refuse(incoming) };
        if let Some(id) = self.engine.accept(incoming, self.handshake_time, now()) {
            let open = EngineConnection { permit, is_of_page: false, connection: None };
            self.engine_connections.insert(id, open);
        }
    }

    /// Answers a request for a WebTransport session, which is a browser's.
    fn asked(&mut self, id: Id, request: &Request) {
        match self.judge(id, request) {
            Ok(()) => self.engine.admit(id, now()),
            Err(status) => {
                tracing::debug!(%status, authority = ?request.authority, origin = ?request.origin, "no WebTransport");
                self.engine.turn_down(id, status.as_u16());
            }
        }
    }

    /// The rules for web pages are those of a WebSocket.
    fn judge(&mut self, id: Id, request: &Request) -> Result<(), StatusCode> {
        if self.facts.is_going_down() {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let text = |text: &str| HeaderValue::from_str(text).map_err(|_| StatusCode::BAD_REQUEST);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, text(&request.authority)?);
        if let Some(origin) = &request.origin {
            headers.insert(ORIGIN, text(origin)?);
        }
        let Some(remote) = self.remote(id) else { return Err(StatusCode::BAD_REQUEST) };
        let judged = self.facts.pages.judge(&Uri::from_static(PATH), &headers, remote.ip());
        let asker = judged.map_err(|stranger: Stranger| {
            self.facts.log(&stranger);
            stranger.status()
        })?;
        if matches!(asker, Asker::Browser { knows_this_machine: true, .. })
            && self.access.origin(remote.ip()) == Origin::LOCAL
        {
            if self.access.connection_of_page(remote.ip()) != Verdict::Begin {
                return Err(StatusCode::TOO_MANY_REQUESTS);
            }
            self.engine_connections.get_mut(&id).into_iter().for_each(|open| open.is_of_page = true);
        }
        Ok(())
    }

    fn connected(&mut self, id: Id, kind: LinkKind) -> Option<QuicEvent> {
        let (open, remote) = (self.engine_connections.get_mut(&id)?, self.engine.remote(id)?);
        // The address at the end of the handshake is verified.
        let origin = self.access.origin(remote.ip());
        if !open.permit.count_for(origin) {
            self.limit.turn_away();
            self.engine.part(id, [], CloseCode::GOING_AWAY, TOO_MANY, now());
            return None;
        }
        let connection = self.numbers.next();
        open.connection = Some(connection);
        self.links += 1;
        let origin = if open.is_of_page { Access::origin_of_page(remote.ip()) } else { origin };
        tracing::debug!(connection = connection.0, %remote, kind = kind.as_str(), "connected");
        Some(QuicEvent::Link { connection, id, kind, origin })
    }

    fn connection(&self, id: Id) -> Option<ConnectionId> {
        self.engine_connections.get(&id)?.connection
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        // Without a packet the peers would wait for one.
        self.close();
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// An address in its usual form: IPv4-mapped ones as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
