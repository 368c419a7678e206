//! The UDP port of a shard: who is let in, and which connection of the hub is which of the [`Engine`]'s.

use crate::door::Door;
use crate::gate::{Gate, Pass};
use crate::handshakes::Verdict;
use crate::shard::Numbers;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_hub::Origin;
use parlor_proto::{ConnectionId, Packet};
use parlor_transport::quic::Engine;
use parlor_transport::quic::engine::{Event, Id, Incoming};
use parlor_transport::{CloseCode, LinkClosed, SendError};
use rustc_hash::FxHashMap;
use std::io;
use std::time::Instant;
use tokio::time::timeout;

/// What a link is told that is closed because the shard stops.
pub(crate) const GOING_DOWN: &str = "the server is going down";
/// How long the last packets may take.
const END_TIME: Duration = Duration::from_millis(500);

/// The port. Dropping it tells all peers that the server is going down.
pub(crate) struct Quic {
    engine: Engine,
    gate: Gate,
    door: Door,
    numbers: Numbers,
    handshake_time: Duration,
    seats: FxHashMap<Id, Seat>,
    /// How many of them have a link.
    links: usize,
    /// How many the engine refused by itself, as far as the gate knows.
    refused: u64,
}

/// A connection of the engine.
struct Seat {
    _pass: Pass,
    /// `None` until its handshake is done.
    connection: Option<ConnectionId>,
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Came {
    /// A link.
    Link { connection: ConnectionId, id: Id, origin: Origin },
    /// A packet.
    Packet { connection: ConnectionId, packet: Packet },
    /// The peer of a link is somewhere else.
    Moved { connection: ConnectionId, remote: SocketAddr },
    /// A link that was full takes packets again.
    Room { connection: ConnectionId },
    /// A link is over.
    End { connection: ConnectionId, is_violation: bool },
}

impl Quic {
    pub(crate) fn new(
        engine: Engine,
        gate: Gate,
        door: Door,
        numbers: Numbers,
        handshake_time: Duration,
    ) -> Self {
        let seats = FxHashMap::default();
        Quic { engine, gate, door, numbers, handshake_time, seats, links: 0, refused: 0 }
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

    /// What came in, oldest first. Who asks to be let in is answered on the way.
    pub(crate) fn poll(&mut self) -> Option<Came> {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Incoming(incoming) => self.answer(incoming),
                Event::Connected { id } => {
                    if let Some(came) = self.connected(id) {
                        return Some(came);
                    }
                }
                Event::Failed { id, error } => {
                    tracing::debug!(%error, "a QUIC client did not get in");
                    self.seats.remove(&id);
                }
                Event::Packet { id, packet } => {
                    if let Some(connection) = self.connection(id) {
                        return Some(Came::Packet { connection, packet });
                    }
                }
                Event::Moved { id, remote } => {
                    if let Some(connection) = self.connection(id) {
                        return Some(Came::Moved { connection, remote: canonical(remote) });
                    }
                }
                Event::Writable { id, .. } => {
                    if let Some(connection) = self.connection(id) {
                        return Some(Came::Room { connection });
                    }
                }
                Event::Closed { id, why } => {
                    if let Some(connection) = self.seats.remove(&id).and_then(|seat| seat.connection) {
                        self.links -= 1;
                        // What a peer gives as a reason is its own words.
                        tracing::debug!(connection = connection.0, end = ?why.to_string(), "disconnected");
                        let is_violation = matches!(why, LinkClosed::NotParlor(_));
                        return Some(Came::End { connection, is_violation });
                    }
                }
            }
        }
        // The engine refuses whoever comes while too many handshakes are under way.
        let refused = self.engine.stats().refused;
        (self.refused..refused).for_each(|_| self.gate.turn_away());
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

    /// Links that are not over.
    pub(crate) fn links(&self) -> usize {
        self.links
    }

    /// Tells all peers that the server is going down, and gives them a moment to answer.
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

    /// Decides about a client before any cryptography is done for it.
    fn answer(&mut self, incoming: Incoming) {
        match self.door.handshake(incoming.remote().ip(), incoming.is_proven()) {
            Verdict::Begin => {}
            Verdict::Prove => return self.engine.ask_for_proof(incoming),
            Verdict::Refuse => {
                self.gate.turn_away();
                return self.engine.refuse(incoming);
            }
        }
        let Some(pass) = self.gate.enter() else { return self.engine.refuse(incoming) };
        if let Some(id) = self.engine.accept(incoming, self.handshake_time, now()) {
            self.seats.insert(id, Seat { _pass: pass, connection: None });
        }
    }

    fn connected(&mut self, id: Id) -> Option<Came> {
        let (seat, remote) = (self.seats.get_mut(&id)?, self.engine.remote(id)?);
        let connection = self.numbers.next();
        seat.connection = Some(connection);
        self.links += 1;
        tracing::debug!(connection = connection.0, %remote, kind = "quic", "connected");
        // By the address that the handshake ended with.
        Some(Came::Link { connection, id, origin: self.door.origin(remote.ip()) })
    }

    fn connection(&self, id: Id) -> Option<ConnectionId> {
        self.seats.get(&id)?.connection
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        // Without a sign of life peers would wait for one.
        self.close();
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// An address in the form that everybody writes it in.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
