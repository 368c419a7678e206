//! All connections of one UDP port, driven by their owner on one thread: no task, no lock and no buffer for each, so that a
//! packet costs little more than its cryptography and its way through the kernel, and a connection that is idle little memory.
//!
//! The owner waits for [`Engine::ready`] or until [`Engine::poll_timeout`], lets [`Engine::turn`] take what came, drains
//! [`Engine::poll_event`], answers, and sends all answers of the turn with one [`Engine::flush`]:
//!
//! ```text
//!   ready ──▶ turn ──▶ poll_event … ──▶ accept, send, close … ──▶ flush ──▶ ready
//! ```
//!
//! What waits for the owner is bounded: a turn reads no more once [`EVENTS_MAX`] events wait, and what is not read holds the
//! peers back by flow control. No connection keeps the others waiting: each gives a limited number of packets in a turn.

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

use super::congestion::bytes_per_second;
use super::handshake::{HandshakeError, HandshakeLimits, ListenError, ListenerStats, server_config};
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
use parlor_proto::{Carrier, Packet};
use port::Port;
use quinn_proto::{Endpoint, EndpointConfig, Transmit};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use timers::Timers;

/// Events that may wait for the owner; what a connection gives at once may come on top.
pub const EVENTS_MAX: usize = 4_096;
/// Batches that are read from the system in one turn.
const TURN_BATCHES_MAX: usize = 4;
/// Timers that are looked at once more after a flush.
const PUT_OFF_MAX: usize = 8;

/// Names a connection of an engine, and no other one ever after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    slot: u32,
    serial: u32,
}

/// What the owner of an engine is told.
#[derive(Debug)]
pub enum Event {
    /// A client wants to connect: [`accept`](Engine::accept), [`refuse`](Engine::refuse) or
    /// [`ask_for_proof`](Engine::ask_for_proof).
    Incoming(Incoming),
    /// The handshake is done: packets may be sent.
    Connected {
        /// As [`accept`](Engine::accept) named it.
        id: Id,
    },
    /// The handshake failed. The connection is forgotten.
    Failed {
        /// As [`accept`](Engine::accept) named it.
        id: Id,
        /// Why.
        error: HandshakeError,
    },
    /// A packet came.
    Packet {
        /// On which connection.
        id: Id,
        /// What came.
        packet: Packet,
    },
    /// The peer is heard from another address. That the address is its own is shown when it is heard from there again; until then
    /// little is sent there.
    Moved {
        /// On which connection.
        id: Id,
        /// Where it is now.
        remote: SocketAddr,
    },
    /// A carrier that was [`NotWritable`](SendError::NotWritable) takes packets again.
    Writable {
        /// On which connection.
        id: Id,
        /// Which one.
        carrier: Carrier,
    },
    /// The link is over, whoever ended it, and nothing of it is under way. What came before was told before. The connection is
    /// forgotten.
    Closed {
        /// Which connection.
        id: Id,
        /// Why.
        why: LinkClosed,
    },
}

/// A client that wants to connect. Nothing was done for it yet.
pub struct Incoming(Box<quinn_proto::Incoming>);

impl Incoming {
    /// Where the client is, or says it is.
    pub fn remote(&self) -> SocketAddr {
        self.0.remote_address()
    }

    /// Whether the client has shown that its address is its own. Otherwise it may be anybody's.
    pub fn is_proven(&self) -> bool {
        self.0.remote_address_validated()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("remote", &self.remote()).finish_non_exhaustive()
    }
}

/// All connections of one UDP port. Dropping it forgets them without a word; [`close`](Self::close) says goodbye.
pub struct Engine {
    port: Port,
    endpoint: Endpoint,
    /// By the library's numbers, which it gives again.
    connections: Vec<Option<Box<Connection>>>,
    next_serial: u32,
    timers: Timers,
    /// Connections of which something must be sent, or may.
    touched: Vec<u32>,
    /// Connections that may have more to read.
    unread: Vec<u32>,
    events: Events,
    limits: HandshakeLimits,
    stats: ListenerStats,
    is_shut: bool,
    /// What the library writes packets into.
    out: Vec<u8>,
    /// What the system did not take; its bytes are in `out`.
    held: Option<Transmit>,
}

impl Engine {
    /// Opens `addr`, on a bad network if there are conditions; port 0 lets the system choose. Must be called in a tokio
    /// runtime, in which the engine stays.
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

    /// The address that is listened on.
    ///
    /// # Errors
    /// What the operating system says, if the socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// Connections that the library knows: half-open ones, and those that it drains, included.
    pub fn connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// What was turned away.
    pub fn stats(&self) -> ListenerStats {
        self.stats
    }

    /// Waits until there is something for [`turn`](Self::turn) to do beside what is due by time. May be cancelled; nothing is
    /// lost.
    ///
    /// # Errors
    /// The socket is broken, and the engine with it.
    pub async fn ready(&mut self) -> io::Result<()> {
        if self.events.is_empty() && self.unread.is_empty() {
            return poll_fn(|cx| self.port.poll(cx)).await;
        }
        // There is more to do, but the others of this thread have their turn first.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// When [`turn`](Self::turn) is due, whatever comes.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Takes what came and does what is due: a limited number of datagrams, and of packets of each connection. What it means is
    /// told by [`poll_event`](Self::poll_event).
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

    /// What the owner must know, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Lets a client in, if it does its handshake within `time`. `None`: its first packet shows that it cannot get in, for instance
    /// because it asks for another protocol, and it is told so.
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

    /// Turns a client away without a handshake, for instance because its address has used up its budget.
    pub fn refuse(&mut self, incoming: Incoming) {
        self.stats.half_open -= 1;
        self.turn_away(*incoming.0);
    }

    /// Asks a client that has not to show that its address is its own; it comes again with the proof. Nothing is kept of it
    /// until then.
    pub fn ask_for_proof(&mut self, incoming: Incoming) {
        self.stats.half_open -= 1;
        self.retry(*incoming.0);
    }

    /// Hands a packet over, for the next [`flush`](Self::flush). Once it is taken, a stream packet arrives unless the link is
    /// lost.
    ///
    /// # Errors
    /// [`SendError::NotWritable`] gives the packet back while too much is waiting: [`Event::Writable`] tells when it does not
    /// any more. The others are final.
    pub fn send(&mut self, id: Id, packet: Packet) -> Result<(), SendError> {
        check_size(&packet)?;
        let Some(connection) = self.connection(id) else { return Err(SendError::Closed(unknown())) };
        connection.send(packet)?;
        self.touch(id.slot);
        Ok(())
    }

    /// Whether the next packet on this carrier would be taken. A link that is over counts as writable, so that
    /// [`send`](Self::send) can say why not.
    pub fn is_writable(&self, id: Id, carrier: Carrier) -> bool {
        self.peek(id).is_none_or(|connection| connection.is_writable(carrier))
    }

    /// Closes a link, after some last packets that need not wait for room; datagrams among them may be lost. What was handed
    /// over is given at most [`CLOSE_LINGER`](parlor_proto::limits::CLOSE_LINGER) to arrive, then the peer is told the code and the reason
    /// (cut at [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes), and the owner [`Event::Closed`]; no
    /// packet of the link is told any more. Does nothing if the link is over.
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

    /// Where the peer is now; it may move. `None` once the link is forgotten.
    pub fn remote(&self, id: Id) -> Option<SocketAddr> {
        self.peek(id).map(|connection| connection.library.remote_address())
    }

    /// Bytes per second, with QUIC's own, that the path to the peer lets through at the moment; `None` before that is known, and
    /// once the link is forgotten. What is handed over beyond it waits. As long as less is handed over it is an upper bound.
    pub fn bytes_per_second(&self, id: Id) -> Option<u64> {
        self.peek(id).and_then(|connection| bytes_per_second(connection.library.congestion_state()))
    }

    /// What went over the link, both ways. `None` once it is forgotten.
    pub fn link_stats(&self, id: Id) -> Option<LinkStats> {
        self.peek(id).map(Connection::stats)
    }

    /// Lets nobody in from here on and closes all links at once, without the grace of [`part`](Self::part). The reason is cut
    /// at [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes. Flush after it.
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

    /// Waits, after [`close`](Self::close), until all peers know or had their time to. Events are dropped.
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

    /// Sends what waits, all that goes to one peer in as few packets as it takes, and packets to different peers in as few calls
    /// of the system as it takes. What the system does not take is kept.
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
        // Whoever was touched meanwhile comes after those that wait.
        touched.append(&mut self.touched);
        self.touched = touched;
        // `ready` tells when what did not leave may.
        let _ = self.port.flush();
        self.put_off();
    }

    /// Moves the next timers that would go off too early: where little happens, to wake for nothing costs more than all else.
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
