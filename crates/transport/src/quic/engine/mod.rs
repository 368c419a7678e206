//! All connections of one UDP port, driven by their owner on one thread. There is no task, lock or buffer for
//! each connection. So a packet costs little more than its cryptography and system call, and an idle
//! connection needs little memory.
//!
//! The owner waits for [`Engine::ready`] or until [`Engine::poll_timeout`], calls [`Engine::turn`] to
//! receive, drains [`Engine::poll_event`], answers, and sends all answers of the turn with one
//! [`Engine::flush`]:
//!
//! ```text
//!   ready ──▶ turn ──▶ poll_event … ──▶ accept, send, close … ──▶ flush ──▶ ready
//! ```
//!
//! The event queue is bounded: a turn stops reading at [`EVENTS_MAX`] events, and flow control then slows the
//! peers. No connection delays the others: each delivers a limited number of packets in a turn.

#[cfg(target_os = "linux")]
mod batch;
mod connection;
mod drive;
mod inbound;
mod outbound;
mod port;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(test)]
mod tests;
mod timers;
mod web;

use super::congestion::bytes_per_second;
use super::handshake::{HandshakeError, HandshakeLimits, ListenError, ListenerStats, server_config};
use super::webtransport::Request;
use crate::closed::{CloseCode, LinkClosed};
use crate::impaired::Conditions;
use crate::outbox::{LinkStats, SendError, check_size};
use crate::tls::ServerTls;
use connection::{Connection, Events};
use core::fmt;
use core::future::poll_fn;
use core::net::SocketAddr;
use core::time::Duration;
use drive::unknown;
use parlor_proto::{Carrier, LinkKind, Packet};
use port::Port;
use quinn_proto::{Endpoint, EndpointConfig, Transmit};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use timers::Timers;

/// Maximum queued events; those of one connection's read may exceed it.
pub const EVENTS_MAX: usize = 4_096;
/// Maximum batches read from the system in one turn.
const TURN_BATCHES_MAX: usize = 4;
/// Maximum timers that are checked again after a flush.
const PUT_OFF_MAX: usize = 8;

/// Identifies a connection of an engine; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    slot: u32,
    serial: u32,
}

/// An event for the engine's owner.
#[derive(Debug)]
pub enum Event {
    /// A client wants to connect: [`accept`](Engine::accept), [`refuse`](Engine::refuse) or
    /// [`ask_for_proof`](Engine::ask_for_proof).
    Incoming(Incoming),
    /// A browser asks for a WebTransport session: [`admit`](Engine::admit) or
    /// [`turn_down`](Engine::turn_down), within the time of its handshake.
    Asked {
        /// From [`accept`](Engine::accept).
        id: Id,
        /// The request.
        request: Request,
    },
    /// The handshake is done: packets may be sent.
    Connected {
        /// From [`accept`](Engine::accept).
        id: Id,
        /// QUIC or WebTransport.
        kind: LinkKind,
    },
    /// The handshake failed. The connection is dropped.
    Failed {
        /// From [`accept`](Engine::accept).
        id: Id,
        /// The reason.
        error: HandshakeError,
    },
    /// A packet was received.
    Packet {
        /// The connection.
        id: Id,
        /// The packet.
        packet: Packet,
    },
    /// The peer's address changed. The new address is not validated until it is heard from there again; until
    /// then little is sent there.
    Moved {
        /// The connection.
        id: Id,
        /// The new address.
        remote: SocketAddr,
    },
    /// A carrier that was [`NotWritable`](SendError::NotWritable) is writable again.
    Writable {
        /// The connection.
        id: Id,
        /// The carrier.
        carrier: Carrier,
    },
    /// The link is over, by either end, and nothing of it is in flight. All its packets were delivered
    /// before. The connection is dropped.
    Closed {
        /// The connection.
        id: Id,
        /// The reason.
        why: LinkClosed,
    },
}

/// A client that wants to connect. It has no state yet.
pub struct Incoming(Box<quinn_proto::Incoming>);

impl Incoming {
    /// The client's claimed address.
    pub fn remote(&self) -> SocketAddr {
        self.0.remote_address()
    }

    /// Whether the client's address is validated. Otherwise it may be forged.
    pub fn is_proven(&self) -> bool {
        self.0.remote_address_validated()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("remote", &self.remote()).finish_non_exhaustive()
    }
}

/// All connections of one UDP port. Dropping it sends nothing; [`close`](Self::close) informs the peers.
pub struct Engine {
    port: Port,
    endpoint: Endpoint,
    /// By the library's numbers, which are reused.
    connections: Vec<Option<Box<Connection>>>,
    next_serial: u32,
    timers: Timers,
    /// Connections that may have something to send.
    touched: Vec<u32>,
    /// Connections that may have more to read.
    unread: Vec<u32>,
    events: Events,
    limits: HandshakeLimits,
    stats: ListenerStats,
    is_shut: bool,
    /// The library's buffer for packets.
    out: Vec<u8>,
    /// The packet that the system refused; its bytes are in `out`.
    held: Option<Transmit>,
}

impl Engine {
    /// Opens `addr`, impaired if there are conditions; port 0 lets the system choose. Must be called in a
    /// tokio runtime, in which the engine stays.
    ///
    /// # Errors
    /// [`ListenError`] with the operating system's reason.
    pub fn bind(
        addr: SocketAddr,
        tls: &ServerTls,
        limits: HandshakeLimits,
        conditions: Option<&Conditions>,
    ) -> Result<Self, ListenError> {
        let port = Port::bind(addr, conditions).map_err(|error| ListenError { addr, error })?;
        Ok(Self::on(port, tls, limits))
    }

    fn on(port: Port, tls: &ServerTls, limits: HandshakeLimits) -> Self {
        let config = Arc::new(server_config(tls));
        let endpoint =
            Endpoint::new(Arc::new(EndpointConfig::default()), Some(config), !port.may_fragment(), None);
        Engine {
            port,
            endpoint,
            connections: Vec::new(),
            next_serial: 0,
            timers: Timers::default(),
            touched: Vec::new(),
            unread: Vec::new(),
            events: Events::new(),
            limits,
            stats: ListenerStats::default(),
            is_shut: false,
            out: Vec::new(),
            held: None,
        }
    }

    /// The local address.
    ///
    /// # Errors
    /// The operating system's error, if the socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// The number of the library's connections, including half-open and draining ones.
    pub fn connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Counts of rejected clients.
    pub fn stats(&self) -> ListenerStats {
        self.stats
    }

    /// Waits until [`turn`](Self::turn) has something to do besides timers. Cancel-safe.
    ///
    /// # Errors
    /// The socket is broken, and the engine with it.
    pub async fn ready(&mut self) -> io::Result<()> {
        if self.events.is_empty() && self.unread.is_empty() {
            return poll_fn(|cx| self.port.poll(cx)).await;
        }
        // There is more to do, but the other tasks of this thread come first.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// When [`turn`](Self::turn) is due at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Receives and runs due timers: a limited number of datagrams, and of packets for each connection. The
    /// results are events for [`poll_event`](Self::poll_event).
    ///
    /// # Errors
    /// The socket is broken, and the engine with it.
    pub fn turn(&mut self, now: Instant) -> io::Result<()> {
        for slot in core::mem::take(&mut self.unread) {
            if let Some(connection) = self.slot(slot) {
                connection.is_unread = false;
                self.touch(slot);
            }
        }
        for _ in 0..TURN_BATCHES_MAX {
            if self.events.len() >= EVENTS_MAX || !self.port.try_read()? {
                break;
            }
            let (reads, may_be_more) = self.port.take_reads();
            (0..reads).for_each(|at| self.take_read(at, now));
            if !may_be_more {
                break;
            }
        }
        while let Some(slot) = self.timers.expire(now) {
            if let Some(connection) = self.slot(slot) {
                connection.timer = None;
                connection.library.handle_timeout(now);
                self.touch(slot);
            }
        }
        for at in 0..self.touched.len() {
            self.process(self.touched[at], now);
        }
        Ok(())
    }

    /// Returns the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Accepts a client, if it completes its handshake within `time`. `None` if its first packet cannot lead
    /// to a connection, for instance with another protocol; the client is informed.
    pub fn accept(&mut self, incoming: Incoming, time: Duration, now: Instant) -> Option<Id> {
        let mut response = Vec::new();
        match self.endpoint.accept(*incoming.0, now, &mut response, None) {
            Ok((handle, library)) => {
                let slot = u32::try_from(handle.0).expect("there are fewer connections than a u32 counts");
                let id = Id { slot, serial: self.next_serial };
                self.next_serial = self.next_serial.wrapping_add(1);
                if self.connections.len() <= handle.0 {
                    self.connections.resize_with(handle.0 + 1, || None);
                }
                self.connections[handle.0] = Some(Box::new(Connection::new(id, library, now, time)));
                self.touch(slot);
                self.process(slot, now);
                Some(id)
            }
            Err(error) => {
                self.stats.half_open -= 1;
                if let Some(transmit) = error.response {
                    self.respond(&transmit, &response);
                }
                tracing::debug!(error = %error.cause, "a QUIC client broke the protocol with its first packet");
                None
            }
        }
    }

    /// Refuses a client without a handshake, for instance because its address has used up its budget.
    pub fn refuse(&mut self, incoming: Incoming) {
        self.stats.half_open -= 1;
        self.turn_away(*incoming.0);
    }

    /// Requests address validation (Retry) from a client that is not validated yet. No state is kept until it
    /// returns with the proof.
    pub fn ask_for_proof(&mut self, incoming: Incoming) {
        self.stats.half_open -= 1;
        self.retry(*incoming.0);
    }

    /// Admits the WebTransport session that [`Event::Asked`] asks for. [`Event::Connected`] follows, unless the
    /// client withdrew meanwhile.
    pub fn admit(&mut self, id: Id, now: Instant) {
        self.answer(id, |connection, events| connection.admit(now, events));
    }

    /// Refuses the WebTransport session that [`Event::Asked`] asks for, with an HTTP status. The client may ask
    /// again, within the time of its handshake.
    pub fn turn_down(&mut self, id: Id, status: u16) {
        self.answer(id, |connection, _| connection.refuse(status));
    }

    fn answer(&mut self, id: Id, answer: impl FnOnce(&mut Connection, &mut Events)) {
        let connection = self.connections.get_mut(id.slot as usize).and_then(Option::as_deref_mut);
        if let Some(connection) = connection.filter(|connection| connection.id == id) {
            let was_handshaking = connection.is_handshaking();
            answer(connection, &mut self.events);
            self.stats.half_open -= usize::from(was_handshaking && !connection.is_handshaking());
            // What came with the request is read with the next turn.
            self.come_again(id.slot);
            self.touch(id.slot);
        }
    }

    /// Queues a packet for the next [`flush`](Self::flush). An accepted stream packet arrives unless the link
    /// is lost.
    ///
    /// # Errors
    /// [`SendError::NotWritable`] returns the packet while the queue is full: [`Event::Writable`] reports
    /// when it is not. The other errors are final.
    pub fn send(&mut self, id: Id, packet: Packet) -> Result<(), SendError> {
        check_size(&packet)?;
        let Some(connection) = self.connection(id) else { return Err(SendError::Closed(unknown())) };
        connection.send(packet)?;
        self.touch(id.slot);
        Ok(())
    }

    /// Whether the next packet on this carrier would be accepted. A link that is over counts as writable, so
    /// that [`send`](Self::send) can return the reason.
    pub fn is_writable(&self, id: Id, carrier: Carrier) -> bool {
        self.peek(id).is_none_or(|connection| connection.is_writable(carrier))
    }

    /// Closes a link, after some last packets that are accepted without room; datagrams among them may be
    /// lost. Sent packets have at most [`CLOSE_LINGER`](parlor_proto::limits::CLOSE_LINGER) to arrive. Then
    /// the peer gets the code and the reason (cut at
    /// [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes), and the owner
    /// [`Event::Closed`]. No more packets of the link are delivered. Does nothing if the link is over.
    pub fn part(
        &mut self,
        id: Id,
        last: impl IntoIterator<Item = Packet>,
        code: CloseCode,
        reason: &str,
        now: Instant,
    ) {
        if let Some(connection) = self.connection(id) {
            last.into_iter().for_each(|packet| connection.send_last(packet));
            connection.part(code, reason, now);
            self.touch(id.slot);
        }
    }

    /// The peer's current address, which may change. `None` once the link is dropped.
    pub fn remote(&self, id: Id) -> Option<SocketAddr> {
        self.peek(id).map(|connection| connection.library.remote_address())
    }

    /// Bytes per second, including QUIC's overhead, that the path to the peer currently carries; `None` while
    /// unknown, and once the link is dropped. Packets beyond it are queued. While less is sent, it is an
    /// upper bound.
    pub fn bytes_per_second(&self, id: Id) -> Option<u64> {
        self.peek(id).and_then(|connection| bytes_per_second(connection.library.congestion_state()))
    }

    /// Returns the link's traffic, in both directions. `None` once it is dropped.
    pub fn link_stats(&self, id: Id) -> Option<LinkStats> {
        self.peek(id).map(Connection::stats)
    }

    /// Accepts no more clients and closes all links at once, without the grace period of
    /// [`part`](Self::part). The reason is cut at
    /// [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes. Flush after it.
    pub fn close(&mut self, code: CloseCode, reason: &str, now: Instant) {
        self.is_shut = true;
        for slot in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[slot] else { continue };
            let was_handshaking = connection.is_handshaking();
            connection.close(code, reason, now, &mut self.events);
            self.stats.half_open -= usize::from(was_handshaking);
            let slot = connection.id.slot;
            self.touch(slot);
        }
    }

    /// Waits, after [`close`](Self::close), until all peers are informed or timed out. Events are dropped.
    pub async fn wind_up(&mut self) {
        while self.connections() > 0 {
            let due = self.poll_timeout().map(tokio::time::Instant::from_std);
            let is_broken = tokio::select! {
                ready = self.ready() => ready.is_err(),
                () = async { if let Some(due) = due { tokio::time::sleep_until(due).await } }, if due.is_some() => false,
            };
            let now = tokio::time::Instant::now().into_std();
            if is_broken || self.turn(now).is_err() {
                return;
            }
            self.drop_events();
            self.flush(now);
        }
    }

    /// Sends everything queued: each peer's data in as few packets as possible, and all packets in as few
    /// system calls as possible. What the system refuses is kept.
    pub fn flush(&mut self, now: Instant) {
        if let Some(transmit) = self.held.take()
            && self.port.send(&transmit, &self.out).is_err()
        {
            self.held = Some(transmit);
            return;
        }
        let mut touched = core::mem::take(&mut self.touched);
        let mut done = 0;
        while done < touched.len() && self.flush_one(touched[done], now).is_ok() {
            done += 1;
        }
        touched.drain(..done);
        // Connections queued meanwhile come after those still waiting.
        touched.append(&mut self.touched);
        self.touched = touched;
        // `ready` reports when the rest can be sent.
        let _ = self.port.flush();
        self.put_off();
    }

    /// Postpones the next timers that would fire too early: on a quiet engine, useless wake-ups cost more
    /// than everything else.
    fn put_off(&mut self) {
        for _ in 0..PUT_OFF_MAX {
            let Some((at, slot)) = self.timers.first() else { return };
            let Some(connection) = self.connections.get_mut(slot as usize).and_then(Option::as_deref_mut)
            else {
                return;
            };
            let Some(due) = connection.put_off(at) else { return };
            self.timers.remove(slot, &mut connection.timer);
            self.timers.advance(slot, &mut connection.timer, due);
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.drop_events();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("connections", &self.connections()).finish_non_exhaustive()
    }
}
