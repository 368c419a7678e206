//! The state machine between two ends: a member's process and a hub.
//!
//! A session is independent of the connection that carries it. Reliable messages are numbered, acknowledged and
//! retained here; a connection only carries packets, and when it breaks ([`Session::detach`]) the next one
//! ([`Session::attach`]) is given everything that was not acknowledged, so nothing is lost and nothing comes twice.
//!
//! The machine is pure: it is told what arrived and what time it is, and says what to send and what happened.
//!
//! ```
//! use parlor_proto::session::{Event, Session};
//! use parlor_proto::{Instant, LinkKind};
//! # use parlor_proto::wire::handshake::{Auth, Hello, Intent};
//! # let hello = Hello {
//! #     version_min: 1, version_max: 1, app: "tanks".into(), environment: String::new(), capabilities: 0,
//! #     auth: Auth::Anonymous, key: None, name: "ada".into(), channels: Default::default(),
//! #     intent: Intent::Join { code: "K7QM".parse().unwrap(), secret: None },
//! # };
//! let now = Instant::from_millis(5);
//! let mut client = Session::client(hello, LinkKind::Memory, now);
//! let mut server = Session::server(LinkKind::Memory, now);
//! while let Some(packet) = client.poll_packet(now) {
//!     server.handle_packet(packet, now).expect("a session understands another");
//! }
//! assert!(matches!(server.poll_event(), Some(Event::Hello(hello)) if hello.app == "tanks"));
//! ```

mod acks;
mod inbox;
mod outbox;
mod timesync;

pub use outbox::Outgoing;

use crate::channel::{ChannelTable, Lane};
use crate::error::{ApiMisuse, CloseReason, PeerMisbehaved};
use crate::ids::{ChannelId, Epoch};
use crate::limits;
use crate::link::{Carrier, LinkKind, Packet};
use crate::time::{Instant, Tick};
use crate::wire::cursor::Reader;
use crate::wire::frame::Frame;
use crate::wire::handshake::{Hello, Redirect, Refusal, RetryAfter, Welcome};
use crate::wire::header::Header;
use acks::{Arrival, Fate, InFlight, Received};
use bytes::Bytes;
use core::time::Duration;
use outbox::Outbox;
use std::collections::VecDeque;
use thiserror::Error;
use timesync::TimeSync;

/// A caller's name for an unreliable message whose fate it wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// What happened in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A server's peer said hello: answer it with [`Session::answer`].
    Hello(Box<Hello>),
    /// A client is in.
    Welcome(Box<Welcome>),
    /// A client is not let in; the session is over.
    TurnedAway(TurnedAway),
    /// A message came.
    Message(Message),
    /// The tagged message arrived.
    Delivered(Tag),
    /// The tagged message did not arrive, as far as can be told, or was replaced before it left.
    Lost(Tag),
    /// The session is over.
    Closed(CloseReason),
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// On which channel.
    pub channel: ChannelId,
    /// Its key, if the channel is sequenced; otherwise 0.
    pub key: u32,
    /// The message.
    pub payload: Bytes,
    /// The sender's tick when it sent the packet.
    pub tick: Option<Tick>,
    /// The room's epoch as the sender knew it.
    pub epoch: Epoch,
}

/// A hub's answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Come in.
    Welcome(Box<Welcome>),
    /// Anything else.
    TurnedAway(TurnedAway),
}

/// The answers that do not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// The room is elsewhere.
    Redirect(Redirect),
    /// Not now.
    RetryAfter(RetryAfter),
    /// No.
    Refused(Refusal),
}

/// Why a message could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The caller's fault.
    #[error(transparent)]
    Misuse(#[from] ApiMisuse),
    /// More than [`limits::RELIABLE_QUEUE_BYTES_MAX`] bytes of reliable messages wait for the peer.
    #[error("the peer does not take its messages: {} bytes wait", limits::RELIABLE_QUEUE_BYTES_MAX)]
    Full,
}

/// What a session counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets given to the connection, and their bytes.
    pub packets_sent: u64,
    /// See [`packets_sent`](Self::packets_sent).
    pub bytes_sent: u64,
    /// Packets taken from the connection, and their bytes.
    pub packets_received: u64,
    /// See [`packets_received`](Self::packets_received).
    pub bytes_received: u64,
    /// Messages that the caller sent.
    pub messages_sent: u64,
    /// Messages that were given to the caller.
    pub messages_received: u64,
    /// Packets that came twice or too late to tell.
    pub packets_repeated: u64,
    /// Packets that came before the session was open.
    pub packets_early: u64,
    /// Numbered packets with tagged messages that count as lost.
    pub packets_lost: u64,
    /// Unreliable messages that came after a newer one, or again.
    pub messages_outdated: u64,
    /// Unreliable messages that were dropped because too many waited.
    pub messages_dropped: u64,
    /// Unreliable messages that a newer one replaced before they left.
    pub messages_replaced: u64,
    /// Fragmented messages that never came together.
    pub fragmented_abandoned: u64,
    /// Frames of kinds that this version does not know.
    pub frames_unknown: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A client's hello is on its way, or a server waits for one.
    Greeting,
    /// A server's hello is being answered.
    Deciding,
    Open,
    /// The goodbye is on its way.
    Closing {
        until: Instant,
    },
    Closed,
}

/// One end of a session. See the [module](self).
#[derive(Debug)]
pub struct Session {
    role: Role,
    state: State,
    link: Option<LinkKind>,
    began: Instant,
    heard: Instant,
    keep_alive: Duration,
    silence: Duration,
    table: ChannelTable,
    tick: Option<Tick>,
    epoch: Epoch,

    outbox: Outbox,
    in_flight: InFlight,
    received: Received,
    reliable: inbox::Reliable,
    sequenced: inbox::Sequenced,
    fragments: inbox::Fragments,
    timesync: TimeSync,

    /// When what was received must be acknowledged at the latest.
    ack_by: Option<Instant>,
    /// When a client asks for the time next.
    time_at: Option<Instant>,
    /// A Time frame is due with the next packet.
    time_due: bool,
    events: VecDeque<Event>,
    stats: Stats,
}

/// A client asks for the time this often until its filter has enough samples.
const TIME_INTERVAL_AT_FIRST: Duration = Duration::from_millis(100);
/// How many samples are enough.
const TIME_SAMPLES_AT_FIRST: usize = 5;

impl Session {
    /// The end that connects; its hello leaves at once.
    #[must_use]
    pub fn client(hello: Hello, link: LinkKind, now: Instant) -> Self {
        let mut session = Session::new(Role::Client, link, now);
        session.table = hello.channels.clone();
        session.outbox.control.push_back(Frame::Hello(Box::new(hello)));
        session
    }

    /// The end that was connected to; it waits for a hello.
    #[must_use]
    pub fn server(link: LinkKind, now: Instant) -> Self {
        Session::new(Role::Server, link, now)
    }

    fn new(role: Role, link: LinkKind, now: Instant) -> Self {
        Session {
            role,
            state: State::Greeting,
            link: Some(link),
            began: now,
            heard: now,
            keep_alive: limits::KEEP_ALIVE_INTERVAL,
            silence: limits::SILENCE_TIMEOUT,
            table: ChannelTable::default(),
            tick: None,
            epoch: Epoch::default(),
            outbox: Outbox::default(),
            in_flight: InFlight::default(),
            received: Received::default(),
            reliable: inbox::Reliable::default(),
            sequenced: inbox::Sequenced::default(),
            fragments: inbox::Fragments::default(),
            timesync: TimeSync::default(),
            ack_by: None,
            time_at: None,
            time_due: false,
            events: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Answers the hello that [`Event::Hello`] brought. Anything but a welcome ends the session.
    pub fn answer(&mut self, answer: Answer, now: Instant) {
        debug_assert_eq!(self.state, State::Deciding, "a hello is answered once");
        let frame = match answer {
            Answer::Welcome(welcome) => {
                self.epoch = welcome.epoch;
                self.state = State::Open;
                self.outbox.control.push_back(Frame::Welcome(welcome));
                return;
            }
            Answer::TurnedAway(TurnedAway::Redirect(redirect)) => Frame::Redirect(redirect),
            Answer::TurnedAway(TurnedAway::RetryAfter(retry)) => Frame::RetryAfter(retry),
            Answer::TurnedAway(TurnedAway::Refused(refusal)) => Frame::Refused(refusal),
        };
        self.outbox.control.push_back(frame);
        self.state = State::Closing { until: now + limits::CLOSE_LINGER };
    }

    /// Queues a message. It leaves with one of the next packets.
    ///
    /// # Errors
    /// [`SendError::Misuse`] if the message is too large, its channel is not in the table, or the session is not
    /// open; [`SendError::Full`] if the peer does not take its reliable messages. Nothing was queued then.
    pub fn send(&mut self, message: Outgoing) -> Result<(), SendError> {
        if self.state != State::Open {
            return Err(ApiMisuse::NotOpen { what: "send" }.into());
        }
        let Some(channel) = self.table.get(message.channel) else {
            return Err(ApiMisuse::NoSuchChannel(message.channel).into());
        };
        let (bytes, max) = (message.payload.len(), limits::MESSAGE_BYTES_MAX);
        if bytes > max {
            return Err(ApiMisuse::MessageTooLarge { bytes, max }.into());
        }
        let mut fates = Vec::new();
        let pushed = self.outbox.push(channel, message, &mut fates);
        self.report(fates);
        pushed.map_err(|_| SendError::Full)?;
        self.stats.messages_sent += 1;
        Ok(())
    }

    /// Ends the session: what was sent before still leaves, then the goodbye. [`Event::Closed`] comes at once, with
    /// the same reason.
    pub fn close(&mut self, reason: CloseReason, now: Instant) {
        if matches!(self.state, State::Closing { .. } | State::Closed) {
            return;
        }
        self.outbox.control.push_back(Frame::Close(reason.clone()));
        self.state = State::Closing { until: now + limits::CLOSE_LINGER };
        self.events.push_back(Event::Closed(reason));
    }

    /// The connection broke. Until the next one is attached nothing is sent; nothing reliable is lost.
    pub fn detach(&mut self) {
        self.link = None;
        let mut fates = Vec::new();
        self.outbox.detached(&mut fates);
        self.in_flight.expire(Instant::from_micros(u64::MAX), Duration::ZERO, &mut fates);
        self.report(fates);
        if matches!(self.state, State::Closing { .. }) {
            self.state = State::Closed;
        }
    }

    /// Another connection carries the session from here on.
    pub fn attach(&mut self, link: LinkKind, now: Instant) {
        self.detach();
        self.link = Some(link);
        self.heard = now;
        self.time_due = self.state == State::Open;
    }

    /// The tick that outgoing packets carry.
    pub fn set_tick(&mut self, tick: Tick) {
        self.tick = Some(tick);
    }

    /// The epoch that outgoing packets carry.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// Takes a packet in.
    ///
    /// # Errors
    /// [`PeerMisbehaved`] if the packet is against the protocol. The session has then closed itself with
    /// [`CloseReason::Misbehaved`]; the caller need not do anything but may want to write it down.
    pub fn handle_packet(&mut self, packet: Packet, now: Instant) -> Result<(), PeerMisbehaved> {
        if matches!(self.state, State::Closing { .. } | State::Closed) {
            return Ok(());
        }
        self.stats.packets_received += 1;
        self.stats.bytes_received += packet.bytes.len() as u64;
        self.heard = now;
        let result = self.take_packet(packet, now);
        if let Err(misbehaviour) = &result {
            self.close(CloseReason::Misbehaved { detail: misbehaviour.to_string() }, now);
        }
        result
    }

    fn take_packet(&mut self, packet: Packet, now: Instant) -> Result<(), PeerMisbehaved> {
        let max = match packet.carrier {
            Carrier::Datagram => limits::DATAGRAM_BYTES_MAX,
            Carrier::Stream | Carrier::Isolated => limits::STREAM_PACKET_BYTES_MAX,
        };
        if packet.bytes.len() > max {
            return Err(PeerMisbehaved::Oversized { bytes: packet.bytes.len(), max });
        }
        if self.state == State::Greeting && self.role == Role::Client && packet.carrier != Carrier::Stream {
            // It overtook the welcome. It is not acknowledged, so what it carried is sent again.
            self.stats.packets_early += 1;
            return Ok(());
        }
        let mut reader = Reader::new(packet.bytes);
        let header = Header::read(&mut reader).map_err(PeerMisbehaved::malformed("a packet's header"))?;
        self.take_acks(&header)?;
        if let Some(wire) = header.sequence {
            if self.received.note(self.received.expand(wire)) == Arrival::Repeated {
                self.stats.packets_repeated += 1;
                return Ok(());
            }
            self.ack_soon(now);
        }
        let tick = header.tick.map(|wire| Tick::from_wire(wire, self.tick.unwrap_or_default()));
        while !reader.is_empty() {
            match Frame::read(&mut reader).map_err(PeerMisbehaved::malformed("a frame"))? {
                Some(frame) => self.take_frame(frame, tick, header.epoch, now)?,
                None => self.stats.frames_unknown += 1,
            }
        }
        Ok(())
    }

    fn take_acks(&mut self, header: &Header) -> Result<(), PeerMisbehaved> {
        let mut fates = Vec::new();
        if let Some(ack) = header.ack {
            let reorders = self.link.is_some_and(LinkKind::has_datagrams);
            self.in_flight.acked(ack, reorders, &mut fates)?;
        }
        self.report(fates);
        match header.reliable_ack {
            Some(number) if !self.outbox.acked(number) => {
                Err(PeerMisbehaved::AckedTheFuture { what: "reliable message" })
            }
            _ => Ok(()),
        }
    }

    fn ack_soon(&mut self, now: Instant) {
        self.ack_by.get_or_insert(now + limits::ACK_DELAY_MAX);
    }

    fn take_frame(
        &mut self,
        frame: Frame,
        tick: Option<Tick>,
        epoch: Epoch,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        let out_of_place =
            |frame: &Frame, when| Err(PeerMisbehaved::OutOfPlace { frame: frame.name(), when });
        match (&self.state, self.role, frame) {
            (State::Greeting, Role::Server, Frame::Hello(hello)) => {
                self.table = hello.channels.clone();
                self.state = State::Deciding;
                self.events.push_back(Event::Hello(hello));
                Ok(())
            }
            (State::Greeting, Role::Client, frame) => self.take_answer(frame, now),
            (State::Greeting, Role::Server, frame) => out_of_place(&frame, "before Hello"),
            (State::Deciding, _, frame) => out_of_place(&frame, "before the answer to Hello"),
            (_, _, Frame::Close(reason)) => {
                self.state = State::Closed;
                self.events.push_back(Event::Closed(reason));
                Ok(())
            }
            (_, _, Frame::Time(time)) => {
                self.timesync.heard(time, now);
                self.time_due |= self.role == Role::Server;
                Ok(())
            }
            (State::Closing { .. } | State::Closed, _, _) => Ok(()),
            (State::Open, _, frame) => self.take_message(frame, tick, epoch, now),
        }
    }

    fn take_answer(&mut self, frame: Frame, now: Instant) -> Result<(), PeerMisbehaved> {
        let away = match frame {
            Frame::Welcome(welcome) => {
                let bounded =
                    |ms: u32, min: u64, max: u64| Duration::from_millis(u64::from(ms).clamp(min, max));
                self.keep_alive = bounded(welcome.limits.keep_alive_ms, 100, 10_000);
                self.silence = bounded(welcome.limits.silence_ms, 1_000, 60_000).max(self.keep_alive * 3);
                self.epoch = welcome.epoch;
                self.state = State::Open;
                self.time_due = true;
                self.time_at = Some(now + TIME_INTERVAL_AT_FIRST);
                self.events.push_back(Event::Welcome(welcome));
                return Ok(());
            }
            Frame::Close(reason) => {
                self.state = State::Closed;
                self.events.push_back(Event::Closed(reason));
                return Ok(());
            }
            Frame::Redirect(redirect) => TurnedAway::Redirect(redirect),
            Frame::RetryAfter(retry) => TurnedAway::RetryAfter(retry),
            Frame::Refused(refusal) => TurnedAway::Refused(refusal),
            frame => {
                return Err(PeerMisbehaved::OutOfPlace {
                    frame: frame.name(),
                    when: "before the answer to Hello",
                });
            }
        };
        self.state = State::Closed;
        self.events.push_back(Event::TurnedAway(away));
        Ok(())
    }

    fn take_message(
        &mut self,
        frame: Frame,
        tick: Option<Tick>,
        epoch: Epoch,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        let message = |channel, key, payload| Event::Message(Message { channel, key, payload, tick, epoch });
        match frame {
            Frame::Unreliable { channel, payload } => {
                self.expect_lane(channel, Lane::Unreliable)?;
                self.stats.messages_received += 1;
                self.events.push_back(message(channel, 0, payload));
            }
            Frame::Sequenced { channel, key, sequence, payload } => {
                self.expect_lane(channel, Lane::UnreliableSequenced)?;
                if self.sequenced.is_newest(channel, key, sequence) {
                    self.stats.messages_received += 1;
                    self.events.push_back(message(channel, key, payload));
                } else {
                    self.stats.messages_outdated += 1;
                }
            }
            Frame::Reliable { channel, number, payload } => {
                self.expect_lane(channel, Lane::ReliableUnordered)?;
                self.ack_soon(now);
                if self.reliable.note(number)? {
                    self.stats.messages_received += 1;
                    self.events.push_back(message(channel, 0, payload));
                }
            }
            Frame::Ordered { channel, number, order, payload } => {
                self.expect_lane(channel, Lane::ReliableOrdered)?;
                self.ack_soon(now);
                if self.reliable.note(number)? {
                    let (events, stats) = (&mut self.events, &mut self.stats);
                    self.reliable.order(channel, order, payload, |payload| {
                        stats.messages_received += 1;
                        events.push_back(message(channel, 0, payload));
                    })?;
                }
            }
            Frame::Fragment(fragment) => {
                if let Some(whole) = self.fragments.add(fragment, now) {
                    self.take_assembled(whole, tick, epoch, now)?;
                }
            }
            frame => {
                return Err(PeerMisbehaved::OutOfPlace { frame: frame.name(), when: "in an open session" });
            }
        }
        Ok(())
    }

    /// What fragments come to must be one unreliable message: anything else could nest or repeat without bound.
    fn take_assembled(
        &mut self,
        whole: Bytes,
        tick: Option<Tick>,
        epoch: Epoch,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        let mut reader = Reader::new(whole);
        let frame = Frame::read(&mut reader).map_err(PeerMisbehaved::malformed("a fragmented message"))?;
        reader.finish().map_err(PeerMisbehaved::malformed("a fragmented message"))?;
        match frame {
            Some(frame @ (Frame::Unreliable { .. } | Frame::Sequenced { .. })) => {
                self.take_message(frame, tick, epoch, now)
            }
            Some(frame) => Err(PeerMisbehaved::OutOfPlace { frame: frame.name(), when: "in fragments" }),
            None => {
                self.stats.frames_unknown += 1;
                Ok(())
            }
        }
    }

    fn expect_lane(&self, channel: ChannelId, lane: Lane) -> Result<(), PeerMisbehaved> {
        match self.table.get(channel) {
            Some(row) if row.lane == lane => Ok(()),
            _ => Err(PeerMisbehaved::WrongLane { channel, lane }),
        }
    }

    fn report(&mut self, fates: Vec<Fate>) {
        self.events.extend(fates.into_iter().map(|fate| match fate {
            Fate::Delivered(tag) => Event::Delivered(tag),
            Fate::Lost(tag) => Event::Lost(tag),
        }));
    }

    /// Lets time pass. Call it when [`poll_timeout`](Self::poll_timeout) is due; more often does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::Closing { until } => {
                if until <= now {
                    self.state = State::Closed;
                }
                return;
            }
            State::Greeting | State::Deciding if self.began + limits::HANDSHAKE_TIMEOUT <= now => {
                match self.role {
                    Role::Client => {
                        self.events.push_back(Event::Closed(CloseReason::TimedOut));
                        self.state = State::Closed;
                    }
                    Role::Server => {
                        let detail = PeerMisbehaved::NoHello.to_string();
                        self.close(CloseReason::Misbehaved { detail }, now);
                    }
                }
                return;
            }
            State::Greeting | State::Deciding => return,
            State::Open => {}
        }
        if self.link.is_some() && self.heard + self.silence <= now {
            self.close(CloseReason::TimedOut, now);
            return;
        }
        if self.time_at.is_some_and(|at| at <= now) {
            self.time_due = true;
            let at_first = self.timesync.samples() < TIME_SAMPLES_AT_FIRST;
            let interval = if at_first { TIME_INTERVAL_AT_FIRST } else { self.keep_alive };
            self.time_at = Some(now + interval);
        }
        if let Some(after) = self.loss_delay() {
            let mut fates = Vec::new();
            self.in_flight.expire(now, after, &mut fates);
            self.report(fates);
        }
    }

    /// How long a packet may go unacknowledged before it counts as lost; never on a link that loses none.
    fn loss_delay(&self) -> Option<Duration> {
        self.link.filter(|link| link.has_datagrams())?;
        let rtt = self.timesync.rtt().unwrap_or(Duration::from_millis(150));
        Some(rtt * 2 + self.timesync.jitter() * 4 + limits::ACK_DELAY_MAX * 2)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::Closing { until } => Some(until),
            State::Greeting | State::Deciding => Some(self.began + limits::HANDSHAKE_TIMEOUT),
            State::Open => {
                let silence = self.link.map(|_| self.heard + self.silence);
                let loss =
                    self.in_flight.oldest().zip(self.loss_delay()).map(|(oldest, after)| oldest + after);
                [silence, loss, self.time_at, self.ack_by].into_iter().flatten().min()
            }
        }
    }

    /// The next packet for the connection, or `None` when nothing is due. Call it only while the connection takes
    /// packets, and until it gives `None`: what waits meanwhile is combined and replaced by newer state.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        let link = self.link?;
        if self.state == State::Closed {
            return None;
        }
        let packet = if link.has_datagrams() { self.next_apart(now) } else { self.next_combined(now) }?;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += packet.bytes.len() as u64;
        Some(packet)
    }

    /// On a link with datagrams: what must arrive on streams, the rest in datagrams.
    fn next_apart(&mut self, now: Instant) -> Option<Packet> {
        let mut out = Vec::new();
        let stream_first = !self.outbox.next_is_isolated() && self.outbox.has_reliable();
        if self.has_greeting() || stream_first {
            self.header(None).write(&mut out);
            self.fill_opening(&mut out);
            self.outbox.fill_reliable(&mut out, true);
            self.fill_closing(&mut out);
            return Some(self.packed(Carrier::Stream, out));
        }
        if self.outbox.next_is_isolated() {
            self.header(None).write(&mut out);
            self.outbox.fill_isolated(&mut out);
            return Some(self.packed(Carrier::Isolated, out));
        }
        if self.has_goodbye() {
            self.header(None).write(&mut out);
            self.fill_closing(&mut out);
            return Some(self.packed(Carrier::Stream, out));
        }
        if let Some(bytes) = self.older_ack() {
            return Some(Packet { carrier: Carrier::Datagram, bytes });
        }
        if self.time_due || self.outbox.has_unreliable() {
            self.fill_numbered(&mut out, limits::DATAGRAM_BYTES_MAX, now);
            return Some(self.packed(Carrier::Datagram, out));
        }
        if self.ack_by.is_some_and(|by| by <= now) {
            self.header(None).write(&mut out);
            return Some(self.packed(Carrier::Datagram, out));
        }
        None
    }

    /// On a link with one stream: everything together.
    fn next_combined(&mut self, now: Instant) -> Option<Packet> {
        let mut out = Vec::new();
        let has_messages = self.outbox.has_reliable() || self.outbox.has_unreliable() || self.time_due;
        if self.has_greeting() {
            self.header(None).write(&mut out);
            self.fill_opening(&mut out);
        } else if let Some(bytes) = self.older_ack() {
            return Some(Packet { carrier: Carrier::Stream, bytes });
        } else if has_messages {
            self.fill_numbered(&mut out, limits::STREAM_PACKET_BYTES_TARGET, now);
        } else if self.has_goodbye() || self.ack_by.is_some_and(|by| by <= now) {
            self.header(None).write(&mut out);
            self.fill_closing(&mut out);
        } else {
            return None;
        }
        Some(self.packed(Carrier::Stream, out))
    }

    /// A numbered packet with the time, if it is due, and messages.
    fn fill_numbered(&mut self, out: &mut Vec<u8>, limit: usize, now: Instant) {
        #[allow(clippy::cast_possible_truncation)] // the wire carries the low half
        self.header(Some(self.in_flight.next_number() as u16)).write(out);
        let from = out.len();
        if std::mem::take(&mut self.time_due) {
            Frame::Time(self.timesync.frame(now)).write(out);
        }
        if limit > limits::DATAGRAM_BYTES_MAX {
            self.outbox.fill_reliable(out, false);
        }
        let mut fates = Vec::new();
        let parts = self.outbox.fill_unreliable(out, limit, from, &mut self.in_flight, &mut fates);
        self.in_flight.note(now, parts, &mut fates);
        self.report(fates);
    }

    fn header(&self, sequence: Option<u16>) -> Header {
        let is_open = !matches!(self.state, State::Greeting | State::Deciding);
        let next = self.reliable.next();
        Header {
            sequence,
            ack: self.received.ack(),
            reliable_ack: (next > 0).then_some(next),
            tick: self.tick.filter(|_| is_open && sequence.is_some()).map(Tick::to_wire),
            epoch: self.epoch,
        }
    }

    /// An acknowledgement that must not be left out because newer packets came.
    fn older_ack(&mut self) -> Option<Bytes> {
        let ack = self.received.take_snapshot()?;
        let mut out = Vec::new();
        Header { ack: Some(ack), sequence: None, ..self.header(None) }.write(&mut out);
        Some(out.into())
    }

    fn packed(&mut self, carrier: Carrier, out: Vec<u8>) -> Packet {
        self.received.acked();
        self.ack_by = None;
        Packet { carrier, bytes: out.into() }
    }

    fn has_greeting(&self) -> bool {
        self.outbox.control.front().is_some_and(|frame| !matches!(frame, Frame::Close(_)))
    }

    fn has_goodbye(&self) -> bool {
        self.outbox.control.front().is_some_and(|frame| matches!(frame, Frame::Close(_)))
    }

    fn fill_opening(&mut self, out: &mut Vec<u8>) {
        if self.has_greeting() {
            self.outbox.control.pop_front().expect("there is a first").write(out);
        }
    }

    /// The goodbye leaves last.
    fn fill_closing(&mut self, out: &mut Vec<u8>) {
        if !self.outbox.has_reliable() && self.has_goodbye() {
            self.outbox.fill_control(out);
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the session is over and has nothing left to send: its connection can be closed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.state {
            State::Closed => true,
            State::Closing { .. } => self.outbox.control.is_empty() && !self.outbox.has_reliable(),
            _ => false,
        }
    }

    /// Whether every reliable message that was sent is known to have arrived.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.outbox.is_reliable_settled()
    }

    /// The smoothed round trip, once measured.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.timesync.rtt()
    }

    /// Mean deviation of the round trip.
    #[must_use]
    pub fn rtt_jitter(&self) -> Duration {
        self.timesync.jitter()
    }

    /// The peer's clock minus ours in µs, once measured.
    #[must_use]
    pub fn clock_offset_us(&self) -> Option<i64> {
        self.timesync.offset_us()
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            packets_lost: self.in_flight.lost,
            messages_dropped: self.outbox.dropped,
            messages_replaced: self.outbox.replaced,
            fragmented_abandoned: self.fragments.abandoned,
            ..self.stats
        }
    }
}
