//! One connection of an engine: its phase, its input and its queues.

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

/// A path is starved if datagrams find no room and nothing is received for this long: no working path has
/// such a queue.
const STARVED_AFTER: Duration = Duration::from_millis(200);
/// Space in a packet that is enough for a piece of any divisible frame.
const ROOM_BYTES: usize = 128;

pub(super) type Events = VecDeque<Event>;

pub(super) struct Connection {
    pub(super) id: Id,
    pub(super) library: quinn_proto::Connection,
    /// The peer's address as the owner knows it.
    remote: SocketAddr,
    phase: Phase,
    inbound: Inbound,
    outbound: Outbound,
    stats: LinkStats,
    /// The space in the library's datagram buffer when it is empty.
    empty_space_bytes: usize,
    /// When the last packet was received, and since when datagrams find no room.
    heard: Instant,
    full_since: Option<Instant>,
    /// When the peer stopped a stream. Either it is closing and will report that soon, or it is not a Parlor
    /// peer.
    stopped_at: Option<Instant>,
    /// Its entry in the engine's timers, never later than the due time.
    pub(super) timer: Option<Instant>,
    /// Whether it is queued for a flush.
    pub(super) is_touched: bool,
    /// Whether it is queued for reading.
    pub(super) is_unread: bool,
}

enum Phase {
    Handshaking {
        until: Instant,
        time: Duration,
    },
    Open,
    /// This end is closing: sent packets have time to arrive.
    Parting(Box<Parting>),
    /// It is over, and earlier packets are not taken yet.
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

    /// Handles a received packet of any content.
    pub(super) fn came(&mut self, event: ConnectionEvent, now: Instant) {
        self.heard = now;
        self.library.handle_event(event);
    }

    /// Accepts a packet for sending, or returns why not.
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

    /// The peer's address, if it changed.
    pub(super) fn moved(&mut self) -> Option<SocketAddr> {
        let remote = self.library.remote_address();
        if remote == self.remote || !matches!(self.phase, Phase::Open) {
            return None;
        }
        self.remote = remote;
        Some(remote)
    }

    /// Accepts a packet for sending even without room.
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

    /// Closes this end, once sent packets have arrived or timed out.
    pub(super) fn part(&mut self, code: CloseCode, reason: &str, now: Instant) {
        if matches!(self.phase, Phase::Open) {
            let until = now + limits::CLOSE_LINGER;
            self.phase =
                Phase::Parting(Box::new(Parting { code, reason: clip_reason(reason).to_owned(), until }));
        }
    }

    /// Closes this end at once.
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

    /// Handles the library's events. Returns whether there were any.
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
                // The held datagram is offered again with the next flush.
                Happened::DatagramsUnblocked => {}
            }
        }
        any
    }

    /// Takes received packets within the budget. Returns whether there may be more.
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

    /// Passes queued packets to the library, and reports carriers that are writable again.
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

    /// Whether the library certainly has nothing more to send after a packet, so that it need not be polled.
    /// There was space left in it for any divisible frame, and no datagram is queued, which is indivisible.
    pub(super) fn has_said_all(&mut self, transmit: &quinn_proto::Transmit) -> bool {
        matches!(self.phase, Phase::Open)
            && transmit.segment_size.is_none()
            && transmit.size + ROOM_BYTES <= self.library.current_mtu().into()
            && !self.outbound.lacks_room()
            && self.has_no_datagram()
    }

    /// Whether the library has sent all its datagrams.
    fn has_no_datagram(&mut self) -> bool {
        self.library.datagrams().send_buffer_space() == self.empty_space_bytes
    }

    /// Closes the connection if it is due, after the library sent what it may. Returns whether there is a
    /// close to send.
    pub(super) fn conclude(&mut self, now: Instant, events: &mut Events) -> bool {
        match &self.phase {
            Phase::Handshaking { until, time } if *until <= now => {
                let waited = *time;
                let timed_out = |remote| HandshakeError::TimedOut { remote, waited };
                self.fail(timed_out, (CloseCode::DONE, String::new()), now, events);
            }
            Phase::Open if self.is_refused(now) => self.violate(&Violation::StreamStopped, now, events),
            // A peer that stopped a stream gets nothing more on it, so there is nothing to wait for.
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

    /// When it must be polled at the latest.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        if self.has_no_datagram() && !self.outbound.lacks_room() {
            self.full_since = None;
        }
        // The library checks the window only on events. On a path without answers this timer triggers the
        // rate control's floor.
        let floor = self.outbound.lacks_room().then(|| now + FLOOR_INTERVAL);
        self.due_by_itself().into_iter().chain(floor).min()
    }

    /// Its later due time, if it can be postponed beyond `at`: `Some(None)` for never. `None` if it cannot.
    pub(super) fn put_off(&mut self, at: Instant) -> Option<Option<Instant>> {
        if self.is_touched || self.outbound.lacks_room() {
            return None;
        }
        let due = self.due_by_itself();
        due.is_none_or(|due| due > at).then_some(due)
    }

    /// The due time that is known in advance.
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

    /// Whether the peer stopped a stream without closing.
    fn is_refused(&self, now: Instant) -> bool {
        self.stopped_at.is_some_and(|at| at + limits::CLOSE_LINGER <= now)
    }

    fn violate(&mut self, violation: &Violation, now: Instant, events: &mut Events) {
        let farewell = (violation.code(), clip_reason(&violation.to_string()).to_owned());
        self.end(LinkClosed::NotParlor(violation.clone()), farewell, now, events);
    }

    /// Reports that the client was not admitted.
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

    /// Ends the link from this end.
    fn end(&mut self, why: LinkClosed, farewell: (CloseCode, String), now: Instant, events: &mut Events) {
        self.say_farewell(farewell, now);
        events.push_back(Event::Closed { id: self.id, why });
    }

    fn say_farewell(&mut self, (code, reason): (CloseCode, String), now: Instant) {
        self.library.close(now, code.to_quic(), reason.into_bytes().into());
        self.forget();
    }

    /// Drops everything that the library does not need to drain the connection.
    fn forget(&mut self) {
        self.phase = Phase::Gone;
        (self.inbound, self.outbound) = (Inbound::default(), Outbound::default());
    }
}
