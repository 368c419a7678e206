//! One connection of an engine: where it is in its life, what comes in, and what waits to go out.

use super::super::ALPN_PARLOR;
use super::super::closed::lost;
use super::super::handshake::HandshakeError;
use super::inbound::{Budget, Inbound};
use super::outbound::Outbound;
use super::{Event, Id};
use crate::closed::{CloseCode, LinkClosed, Violation, clip_reason};
use crate::outbox::{LinkStats, SendError};
use crate::rate::FLOOR_INTERVAL;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::{Packet, limits};
use quinn::crypto::rustls::HandshakeData;
use quinn_proto::{ConnectionEvent, Event as Happened, StreamEvent};
use std::collections::VecDeque;
use std::time::Instant;

/// A path is starved if datagrams find no room and nothing comes back for so long: no queue of a path that works is as long.
const STARVED_AFTER: Duration = Duration::from_millis(200);
/// Room in a packet in which any frame that can be cut has a piece.
const ROOM_BYTES: usize = 128;

pub(super) type Events = VecDeque<Event>;

pub(super) struct Connection {
    pub(super) id: Id,
    pub(super) library: quinn_proto::Connection,
    /// Where the owner knows the peer to be.
    remote: SocketAddr,
    phase: Phase,
    inbound: Inbound,
    outbound: Outbound,
    stats: LinkStats,
    /// The room in the library's buffer for datagrams when nothing is in it.
    empty_space_bytes: usize,
    /// When a packet came last, and since when datagrams find no room.
    heard: Instant,
    full_since: Option<Instant>,
    /// When the peer stopped a stream. Either it is closing, which it will say soon, or it is no Parlor peer.
    stopped_at: Option<Instant>,
    /// The entry among the engine's timers. Never later than what is due.
    pub(super) timer: Option<Instant>,
    /// It is among those that are to be flushed.
    pub(super) is_touched: bool,
    /// It is among those that may have more to read.
    pub(super) is_unread: bool,
}

enum Phase {
    Handshaking {
        until: Instant,
        time: Duration,
    },
    Open,
    /// This end closes: what was handed over is given time to arrive.
    Parting(Box<Parting>),
    /// It is over, and what came before that is not taken yet.
    Over(Box<LinkClosed>),
    /// The owner knows that it is over.
    Gone,
}

struct Parting {
    code: CloseCode,
    reason: String,
    until: Instant,
}

impl Parting {
    fn end(&self) -> LinkClosed {
        LinkClosed::Local { code: self.code, reason: self.reason.clone() }
    }
}

impl Connection {
    pub(super) fn new(id: Id, library: quinn_proto::Connection, now: Instant, time: Duration) -> Self {
        Connection {
            id,
            remote: library.remote_address(),
            library,
            phase: Phase::Handshaking { until: now + time, time },
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            stats: LinkStats::default(),
            empty_space_bytes: 0,
            heard: now,
            full_since: None,
            stopped_at: None,
            timer: None,
            is_touched: false,
            is_unread: false,
        }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        matches!(self.phase, Phase::Handshaking { .. })
    }

    pub(super) fn stats(&self) -> LinkStats {
        self.stats
    }

    /// A packet came, whatever is in it.
    pub(super) fn came(&mut self, event: ConnectionEvent, now: Instant) {
        self.heard = now;
        self.library.handle_event(event);
    }

    /// Takes a packet, or says why not.
    pub(super) fn send(&mut self, packet: Packet) -> Result<(), SendError> {
        match &self.phase {
            Phase::Open => {}
            Phase::Handshaking { .. } => return Err(SendError::NotWritable(packet)),
            Phase::Parting(parting) => return Err(SendError::Closed(parting.end())),
            Phase::Over(end) => return Err(SendError::Closed((**end).clone())),
            Phase::Gone => return Err(SendError::Closed(super::unknown())),
        }
        let bytes = packet.bytes.len();
        self.outbound.push(&mut self.library, packet)?;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes as u64;
        Ok(())
    }

    /// Where the peer is, if the owner knows it elsewhere.
    pub(super) fn moved(&mut self) -> Option<SocketAddr> {
        let remote = self.library.remote_address();
        if remote == self.remote || !matches!(self.phase, Phase::Open) {
            return None;
        }
        self.remote = remote;
        Some(remote)
    }

    /// Takes a packet whether or not there is room.
    pub(super) fn send_last(&mut self, packet: Packet) {
        if matches!(self.phase, Phase::Open) {
            self.stats.packets_sent += 1;
            self.stats.bytes_sent += packet.bytes.len() as u64;
            self.outbound.push_last(&mut self.library, packet);
        }
    }

    pub(super) fn is_writable(&self, carrier: parlor_proto::Carrier) -> bool {
        !matches!(self.phase, Phase::Open) || self.outbound.is_writable(carrier)
    }

    /// This end closes, once what was handed over has arrived or had its time.
    pub(super) fn part(&mut self, code: CloseCode, reason: &str, now: Instant) {
        if matches!(self.phase, Phase::Open) {
            let until = now + limits::CLOSE_LINGER;
            self.phase =
                Phase::Parting(Box::new(Parting { code, reason: clip_reason(reason).to_owned(), until }));
        }
    }

    /// This end closes at once.
    pub(super) fn close(&mut self, code: CloseCode, reason: &str, now: Instant, events: &mut Events) {
        let reason = clip_reason(reason).to_owned();
        match &self.phase {
            Phase::Gone => {}
            Phase::Handshaking { .. } => self.fail(
                |remote| HandshakeError::Failed { remote, detail: "this end closed".to_owned() },
                (code, reason),
                now,
                events,
            ),
            Phase::Open => {
                self.end(LinkClosed::Local { code, reason: reason.clone() }, (code, reason), now, events)
            }
            Phase::Parting(parting) => self.end(parting.end(), (code, reason), now, events),
            Phase::Over(end) => self.end((**end).clone(), (code, reason), now, events),
        }
    }

    /// Takes what the library has to say. Whether it said anything.
    pub(super) fn listen(&mut self, now: Instant, events: &mut Events) -> bool {
        let mut any = false;
        while let Some(happened) = self.library.poll() {
            any = true;
            match happened {
                Happened::HandshakeDataReady => {}
                Happened::Connected => self.connected(now, events),
                Happened::ConnectionLost { reason } => self.lost(reason, events),
                Happened::DatagramReceived => self.inbound.datagrams_came(),
                Happened::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {
                    self.inbound.streams_came();
                }
                Happened::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                    self.outbound.room_came();
                }
                Happened::Stream(StreamEvent::Finished { id }) => self.outbound.arrived(id),
                Happened::Stream(StreamEvent::Stopped { .. }) => {
                    self.stopped_at.get_or_insert(now);
                }
                // What is held is offered again with the next flush.
                Happened::DatagramsUnblocked => {}
            }
        }
        any
    }

    /// Takes what came, as far as the budget allows. Whether there may be more.
    pub(super) fn read(&mut self, budget: Budget, now: Instant, events: &mut Events) -> bool {
        if !matches!(self.phase, Phase::Open | Phase::Over(_)) {
            return false;
        }
        if self.inbound.is_ready() {
            let (id, stats) = (self.id, &mut self.stats);
            let taken = self.inbound.take(&mut self.library, budget, |packet| {
                stats.packets_received += 1;
                stats.bytes_received += packet.bytes.len() as u64;
                events.push_back(Event::Packet { id, packet });
            });
            if let Err(violation) = taken {
                self.violate(&violation, now, events);
                return false;
            }
        }
        if self.inbound.is_ready() {
            return true;
        }
        if let Phase::Over(end) = &self.phase {
            let why = (**end).clone();
            self.forget();
            events.push_back(Event::Closed { id: self.id, why });
        }
        false
    }

    /// Gives the library what it takes, and tells the owner which carriers take packets again.
    pub(super) fn pump(&mut self, now: Instant, events: &mut Events) {
        if matches!(self.phase, Phase::Open | Phase::Parting(_)) {
            let (is_starved, has_none) = (self.is_starved(now), self.has_no_datagram());
            if let Err(violation) = self.outbound.pump(&mut self.library, is_starved, has_none) {
                self.violate(&violation, now, events);
            }
            if matches!(self.phase, Phase::Parting(_)) {
                self.outbound.finish(&mut self.library);
            }
        }
        if matches!(self.phase, Phase::Open) {
            while let Some(carrier) = self.outbound.poll_writable() {
                events.push_back(Event::Writable { id: self.id, carrier });
            }
        }
    }

    fn is_starved(&mut self, now: Instant) -> bool {
        if self.outbound.lacks_room() {
            self.full_since.get_or_insert(now);
        }
        let since = self.full_since.map(|since| since.max(self.heard));
        since.is_some_and(|since| now.saturating_duration_since(since) >= STARVED_AFTER)
    }

    /// Whether the library surely has nothing more to send after a packet, so that it need not be asked: there was room left in
    /// it for whatever can be cut into pieces, and no datagram waits, which cannot.
    pub(super) fn has_said_all(&mut self, transmit: &quinn_proto::Transmit) -> bool {
        matches!(self.phase, Phase::Open)
            && transmit.segment_size.is_none()
            && transmit.size + ROOM_BYTES <= self.library.current_mtu().into()
            && !self.outbound.lacks_room()
            && self.has_no_datagram()
    }

    /// Whether the library has sent all datagrams that it took.
    fn has_no_datagram(&mut self) -> bool {
        self.library.datagrams().send_buffer_space() == self.empty_space_bytes
    }

    /// Closes what is to be closed, now that the library sent what it may. Whether there is a goodbye to send.
    pub(super) fn conclude(&mut self, now: Instant, events: &mut Events) -> bool {
        match &self.phase {
            Phase::Handshaking { until, time } if *until <= now => {
                let waited = *time;
                let timed_out = |remote| HandshakeError::TimedOut { remote, waited };
                self.fail(timed_out, (CloseCode::DONE, String::new()), now, events);
            }
            Phase::Open if self.is_refused(now) => self.violate(&Violation::StreamStopped, now, events),
            // Who stopped a stream gets nothing more on it, so there is nothing to wait for.
            Phase::Parting(parting)
                if parting.until <= now || self.stopped_at.is_some() || self.outbound.is_done() =>
            {
                let (end, farewell) = (parting.end(), (parting.code, parting.reason.clone()));
                self.end(end, farewell, now, events);
            }
            _ => return false,
        }
        true
    }

    /// When it must be looked at, whatever comes.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        if self.has_no_datagram() && !self.outbound.lacks_room() {
            self.full_since = None;
        }
        // The library asks how much may go only when something happens. On a path that answers nothing this is what lets the
        // floor of the rate control go.
        let floor = self.outbound.lacks_room().then(|| now + FLOOR_INTERVAL);
        self.due_by_itself().into_iter().chain(floor).min()
    }

    /// When it is due instead, if that is later than `at`: never, perhaps. `None` if it is not, or may not be put off.
    pub(super) fn put_off(&mut self, at: Instant) -> Option<Option<Instant>> {
        if self.is_touched || self.outbound.lacks_room() {
            return None;
        }
        let due = self.due_by_itself();
        due.is_none_or(|due| due > at).then_some(due)
    }

    /// When something of it is due that is known beforehand.
    fn due_by_itself(&mut self) -> Option<Instant> {
        let own = match &self.phase {
            Phase::Handshaking { until, .. } => Some(*until),
            Phase::Parting(parting) => Some(parting.until),
            Phase::Open => self.stopped_at.map(|at| at + limits::CLOSE_LINGER),
            Phase::Over(_) | Phase::Gone => None,
        };
        self.library.poll_timeout().into_iter().chain(own).min()
    }

    fn connected(&mut self, now: Instant, events: &mut Events) {
        if !self.is_handshaking() {
            return;
        }
        let data = self.library.crypto_session().handshake_data();
        let alpn = data.and_then(|data| data.downcast::<HandshakeData>().ok()).and_then(|data| data.protocol);
        if alpn.as_deref() != Some(ALPN_PARLOR) {
            let detail = "no protocol was negotiated";
            let farewell = (CloseCode::NOT_PARLOR, detail.to_owned());
            let failed = |remote| HandshakeError::Failed { remote, detail: detail.to_owned() };
            self.fail(failed, farewell, now, events);
        } else if self.library.datagrams().max_size().is_none_or(|max| max < limits::DATAGRAM_BYTES_MAX) {
            let violation = Violation::NoDatagrams;
            let farewell = (violation.code(), violation.to_string());
            self.fail(|remote| HandshakeError::NotParlor { remote, violation }, farewell, now, events);
        } else {
            self.phase = Phase::Open;
            self.empty_space_bytes = self.library.datagrams().send_buffer_space();
            events.push_back(Event::Connected { id: self.id });
        }
    }

    fn lost(&mut self, reason: quinn_proto::ConnectionError, events: &mut Events) {
        match &self.phase {
            Phase::Handshaking { .. } => {
                let error = HandshakeError::Failed {
                    remote: self.library.remote_address(),
                    detail: reason.to_string(),
                };
                self.forget();
                events.push_back(Event::Failed { id: self.id, error });
            }
            Phase::Open => self.phase = Phase::Over(Box::new(lost(reason))),
            Phase::Parting(parting) => {
                let why = parting.end();
                self.forget();
                events.push_back(Event::Closed { id: self.id, why });
            }
            Phase::Over(_) | Phase::Gone => {}
        }
    }

    /// Whether the peer refuses a stream, yet does not close.
    fn is_refused(&self, now: Instant) -> bool {
        self.stopped_at.is_some_and(|at| at + limits::CLOSE_LINGER <= now)
    }

    fn violate(&mut self, violation: &Violation, now: Instant, events: &mut Events) {
        let farewell = (violation.code(), clip_reason(&violation.to_string()).to_owned());
        self.end(LinkClosed::NotParlor(violation.clone()), farewell, now, events);
    }

    /// The client does not get in.
    fn fail(
        &mut self,
        error: impl FnOnce(core::net::SocketAddr) -> HandshakeError,
        farewell: (CloseCode, String),
        now: Instant,
        events: &mut Events,
    ) {
        let error = error(self.library.remote_address());
        self.say_farewell(farewell, now);
        events.push_back(Event::Failed { id: self.id, error });
    }

    /// The link is over, by this end.
    fn end(&mut self, why: LinkClosed, farewell: (CloseCode, String), now: Instant, events: &mut Events) {
        self.say_farewell(farewell, now);
        events.push_back(Event::Closed { id: self.id, why });
    }

    fn say_farewell(&mut self, (code, reason): (CloseCode, String), now: Instant) {
        self.library.close(now, code.to_quic(), reason.into_bytes().into());
        self.forget();
    }

    /// Keeps nothing but what the library needs to drain the connection.
    fn forget(&mut self) {
        self.phase = Phase::Gone;
        (self.inbound, self.outbound) = (Inbound::default(), Outbound::default());
    }
}
