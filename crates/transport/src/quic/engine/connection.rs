//! One connection of an engine: its phase, its input and its queues.

use super::super::ALPN_PARLOR;
use super::super::closed::lost;
use super::super::handshake::HandshakeError;
use super::super::webtransport::{ALPN_HTTP3, prefixes};
use super::inbound::{Budget, Inbound};
use super::outbound::Outbound;
use super::web::{Came, Web};
use super::{Event, Id};
use crate::closed::{CloseCode, LinkClosed, Violation, clip_reason};
use crate::outbox::{LinkStats, SendError};
use crate::rate::FLOOR_INTERVAL;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::{LinkKind, Packet, limits};
use quinn::crypto::rustls::HandshakeData;
use quinn_proto::{ConnectionError, ConnectionEvent, Dir, Event as Happened, StreamEvent};
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
    /// HTTP/3, if the client speaks that.
    web: Option<Box<Web>>,
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
    /// The peer opened a bidirectional stream, which only HTTP/3 has.
    has_bidirectional: bool,
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
    why: LinkClosed,
    code: CloseCode,
    reason: String,
    until: Instant,
    /// A WebTransport session is closed before its connection is: whether that is said.
    is_session_closed: bool,
}

impl Connection {
    pub(super) fn new(id: Id, library: quinn_proto::Connection, now: Instant, time: Duration) -> Self {
        Connection {
            id,
            remote: library.remote_address(),
            library,
            web: None,
            phase: Phase::Handshaking { until: now + time, time },
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            stats: LinkStats::default(),
            empty_space_bytes: 0,
            heard: now,
            full_since: None,
            stopped_at: None,
            has_bidirectional: false,
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
            Phase::Parting(parting) => return Err(SendError::Closed(parting.why.clone())),
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
            let reason = clip_reason(reason).to_owned();
            let why = LinkClosed::Local { code, reason: reason.clone() };
            let until = now + limits::CLOSE_LINGER;
            self.phase =
                Phase::Parting(Box::new(Parting { why, code, reason, until, is_session_closed: false }));
        }
    }

    /// Closes the WebTransport session, and the connection once the client knows.
    fn close_session(&mut self, why: LinkClosed, code: CloseCode, reason: String, now: Instant) {
        if let Some(web) = &mut self.web {
            web.close(code, &reason);
        }
        let until = now + limits::CLOSE_LINGER;
        self.phase = Phase::Parting(Box::new(Parting { why, code, reason, until, is_session_closed: true }));
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
                let why = LinkClosed::Local { code, reason: reason.clone() };
                self.end_session(why, (code, reason), now, events);
            }
            Phase::Parting(parting) if parting.is_session_closed => {}
            Phase::Parting(parting) if self.web.is_some() => {
                let (why, code, reason) = (parting.why.clone(), parting.code, parting.reason.clone());
                self.close_session(why, code, reason, now);
            }
            Phase::Parting(parting) => self.end(parting.why.clone(), (code, reason), now, events),
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
                Happened::Stream(StreamEvent::Opened { dir: Dir::Bi }) if self.web.is_none() => {
                    self.has_bidirectional = true;
                }
                Happened::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {
                    self.inbound.streams_came();
                }
                Happened::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                    self.outbound.room_came();
                }
                Happened::Stream(StreamEvent::Finished { id }) => self.outbound.arrived(id),
                // A session that is not admitted has other ends than this.
                Happened::Stream(StreamEvent::Stopped { .. }) if self.is_handshaking() => {}
                Happened::Stream(StreamEvent::Stopped { .. }) => {
                    self.stopped_at.get_or_insert(now);
                }
                // The held datagram is offered again with the next flush.
                Happened::DatagramsUnblocked => {}
            }
        }
        any
    }

    /// Reads what is HTTP/3's, and gives the link its streams.
    fn read_web(&mut self, now: Instant, events: &mut Events) -> Result<(), Violation> {
        let is_open = matches!(self.phase, Phase::Open);
        let Some(web) =
            self.web.as_mut().filter(|_| is_open || matches!(self.phase, Phase::Handshaking { .. }))
        else {
            return Ok(());
        };
        if !self.inbound.may_read_streams() {
            return Ok(());
        }
        web.read(&mut self.library)?;
        if let Some(session) = self.inbound.session() {
            web.take_streams(session)?.into_iter().for_each(|id| self.inbound.begin(id));
            web.limits().into_iter().for_each(|limits| self.outbound.allow(limits));
        } else {
            self.inbound.streams_read();
        }
        while let Some(came) = web.poll(&mut self.library) {
            match came {
                Came::Asked(request) => events.push_back(Event::Asked { id: self.id, request }),
                Came::Over(end) if is_open => {
                    self.phase = Phase::Over(Box::new(end));
                    break;
                }
                // The client withdrew its request.
                Came::Over(_) => {
                    let gone = |remote| HandshakeError::Failed { remote, detail: "it gave up".to_owned() };
                    self.fail(gone, (CloseCode::DONE, String::new()), now, events);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Admits the WebTransport session that was asked for. Does nothing if it is over.
    pub(super) fn admit(&mut self, now: Instant, events: &mut Events) {
        let Some(web) = self.web.as_mut().filter(|_| matches!(self.phase, Phase::Handshaking { .. })) else {
            return;
        };
        let Some((session, limits)) = web.admit() else { return };
        let prefixes = prefixes(session);
        let needed = limits::DATAGRAM_BYTES_MAX + prefixes.1.len();
        if self.library.datagrams().max_size().is_none_or(|max| max < needed) {
            return self.reject(Violation::NoDatagrams, now, events);
        }
        self.inbound.enter(session);
        self.outbound.enter(prefixes, limits);
        match web.take_streams(session) {
            Ok(streams) => streams.into_iter().for_each(|id| self.inbound.begin(id)),
            Err(violation) => return self.reject(violation, now, events),
        }
        self.open(LinkKind::WebTransport, events);
    }

    /// Refuses the WebTransport session that was asked for, with an HTTP status.
    pub(super) fn refuse(&mut self, status: u16) {
        if let Some(web) = &mut self.web {
            web.refuse(&mut self.library, status);
        }
    }

    fn open(&mut self, kind: LinkKind, events: &mut Events) {
        self.phase = Phase::Open;
        self.empty_space_bytes = self.library.datagrams().send_buffer_space();
        events.push_back(Event::Connected { id: self.id, kind });
    }

    /// Takes received packets within the budget. Returns whether there may be more.
    pub(super) fn read(&mut self, budget: Budget, now: Instant, events: &mut Events) -> bool {
        let read = match self.has_bidirectional {
            true => Err(Violation::Bidirectional),
            false => self.read_web(now, events),
        };
        if let Err(violation) = read {
            match self.phase {
                Phase::Handshaking { .. } => self.reject(violation, now, events),
                Phase::Open => self.violate(&violation, now, events),
                Phase::Parting(_) | Phase::Over(_) | Phase::Gone => {}
            }
            return false;
        }
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
            match self.web {
                // The session is over, and its connection is not.
                Some(_) => self.end(why, (CloseCode::DONE, String::new()), now, events),
                None => {
                    self.forget();
                    events.push_back(Event::Closed { id: self.id, why });
                }
            }
        }
        false
    }

    /// Passes queued packets to the library, and reports carriers that are writable again.
    pub(super) fn pump(&mut self, now: Instant, events: &mut Events) {
        if let Some(web) = &mut self.web {
            web.write(&mut self.library);
        }
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
                if parting.until <= now || self.stopped_at.is_some() || self.has_arrived(parting) =>
            {
                let (why, code, reason) = (parting.why.clone(), parting.code, parting.reason.clone());
                if self.web.is_some() && !parting.is_session_closed {
                    self.stopped_at = None;
                    self.close_session(why, code, reason, now);
                } else {
                    self.end(why, (code, reason), now, events);
                }
            }
            _ => return false,
        }
        true
    }

    /// Whether the peer has all that it must have before the next step of parting.
    fn has_arrived(&self, parting: &Parting) -> bool {
        match &self.web {
            Some(web) if parting.is_session_closed => !web.awaits_client(),
            _ => self.outbound.is_done(),
        }
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
        if alpn.as_deref() == Some(ALPN_HTTP3) {
            let begun = self.web.insert(Box::default()).begin(&mut self.library);
            if let Err(violation) = begun {
                self.reject(violation, now, events);
            }
        } else if alpn.as_deref() != Some(ALPN_PARLOR) {
            let detail = "no protocol was negotiated";
            let farewell = (CloseCode::NOT_PARLOR, detail.to_owned());
            let failed = |remote| HandshakeError::Failed { remote, detail: detail.to_owned() };
            self.fail(failed, farewell, now, events);
        } else if self.library.datagrams().max_size().is_none_or(|max| max < limits::DATAGRAM_BYTES_MAX) {
            self.reject(Violation::NoDatagrams, now, events);
        } else {
            self.open(LinkKind::Quic, events);
        }
    }

    /// Reports that the client was not admitted because of a violation.
    fn reject(&mut self, violation: Violation, now: Instant, events: &mut Events) {
        let farewell = (violation.code(), clip_reason(&violation.to_string()).to_owned());
        self.fail(|remote| HandshakeError::NotParlor { remote, violation }, farewell, now, events);
    }

    fn lost(&mut self, reason: ConnectionError, events: &mut Events) {
        match &self.phase {
            Phase::Handshaking { .. } => {
                let error = HandshakeError::Failed {
                    remote: self.library.remote_address(),
                    detail: reason.to_string(),
                };
                self.forget();
                events.push_back(Event::Failed { id: self.id, error });
            }
            // A browser's codes of HTTP/3 say nothing of the session.
            Phase::Open if self.web.is_some() && matches!(reason, ConnectionError::ApplicationClosed(_)) => {
                self.phase = Phase::Over(Box::new(LinkClosed::Reset));
            }
            Phase::Open => self.phase = Phase::Over(Box::new(lost(reason))),
            Phase::Parting(parting) => {
                let why = parting.why.clone();
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
        self.end_session(LinkClosed::NotParlor(violation.clone()), farewell, now, events);
    }

    /// Ends the link from this end without waiting for what was sent. A WebTransport session that is sound is
    /// closed first: its page sees no other code.
    fn end_session(
        &mut self,
        why: LinkClosed,
        (code, reason): (CloseCode, String),
        now: Instant,
        events: &mut Events,
    ) {
        let is_sound = !matches!(why, LinkClosed::NotParlor(Violation::Http3(_)));
        if self.web.is_some() && is_sound {
            self.close_session(why, code, reason, now);
        } else {
            self.end(why, (code, reason), now, events);
        }
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
        let code = if self.web.is_some() { code.to_http3() } else { code.to_quic() };
        self.library.close(now, code, reason.into_bytes().into());
        self.forget();
    }

    /// Drops everything that the library does not need to drain the connection.
    fn forget(&mut self) {
        self.phase = Phase::Gone;
        (self.inbound, self.outbound, self.web) = (Inbound::default(), Outbound::default(), None);
    }
}
