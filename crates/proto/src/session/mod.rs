//! The state machine between two ends: a member's process and a hub.
//!
//! A session is independent of the connection that carries it. Reliable messages are numbered, acknowledged
//! and retained here; a connection only carries packets, and when it breaks ([`Session::detach`]), all
//! unacknowledged messages are sent over the next one ([`Session::attach`]). So nothing is lost or delivered
//! twice.
//!
//! The machine is pure: inputs are received packets and the time; outputs are packets to send and events.
//!
//! ```
//! use parlor_proto::session::{Event, Session};
//! use parlor_proto::{Instant, LinkKind};
//! # use parlor_proto::wire::handshake::{Auth, Hello, Intent};
//! # let hello = Hello {
//! #     version_min: 1, version_max: 1, app: "tanks".into(), environment: String::new(), capabilities: 0,
//! #     auth: Auth::Anonymous, key: None, name: "ada".into(), channels: Default::default(), schema: None,
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
mod carried;
mod delivery_id;
mod event;
mod inbox;
mod keep_alive;
mod outbox;
mod receive;
mod resume;
mod stats;
mod timesync;
mod transmit;

pub use carried::Carried;
pub use delivery_id::DeliveryId;
pub use event::{Answer, Event, Message, Rejection};
pub use outbox::Outgoing;
pub use stats::Stats;

use crate::channel::ChannelTable;
use crate::error::{ApiMisuse, CloseReason, PeerMisbehaved};
use crate::ids::Epoch;
use crate::limits;
use crate::link::LinkKind;
use crate::time::{Instant, Tick};
use crate::wire::frame::Frame;
use crate::wire::handshake::{Hello, Welcome};
use acks::{Fate, InFlight, Received};
use core::time::Duration;
use keep_alive::Asked;
use outbox::Outbox;
use std::collections::VecDeque;
use thiserror::Error;
use timesync::TimeSync;

/// Why a message could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The caller's fault.
    #[error(transparent)]
    Misuse(#[from] ApiMisuse),
    /// More than [`limits::RELIABLE_QUEUE_BYTES_MAX`] bytes of reliable messages are queued.
    #[error("the peer does not take its messages: {} bytes wait", limits::RELIABLE_QUEUE_BYTES_MAX)]
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A client has sent its hello, or a server waits for one.
    Greeting,
    /// A server's caller decides about the hello.
    Deciding,
    Open,
    /// A client has asked to resume, over a new connection.
    Resuming {
        since: Instant,
    },
    /// The Close frame is being sent.
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
    /// Why it is over. Kept because the owner may send before it has polled that event.
    over: Option<CloseReason>,
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

    /// Silence does not end it.
    is_resumable: bool,
    /// On a server: the peer has shown that its session is open, too.
    peer_is_open: bool,
    /// Deadline for acknowledging received packets.
    ack_by: Option<Instant>,
    /// Bytes of received reliable messages that are not acknowledged.
    unacked_bytes: usize,
    /// The reliable messages below this number have been acknowledged to the peer.
    told_reliable: u64,
    /// It no longer accepts reliable messages from its connection.
    is_deaf: bool,
    /// The greeting goes in a packet of its own.
    greets_apart: bool,
    /// Reliable messages from this number on are not acknowledged for now.
    acks_held_from: Option<u64>,
    /// An acknowledgement must be sent now.
    ack_due: bool,
    /// When a client next sends a Time frame, or checks for its answer.
    time_at: Option<Instant>,
    /// The pending Time frames, if there are any.
    asked: Option<Asked>,
    /// The next packet must have a Time frame.
    time_due: bool,
    /// Time frames go at the keep-alive interval even without a message.
    is_watched: bool,
    /// Messages in both directions at the last Time frame.
    messages_before: u64,
    /// Messages sent when a packet last left, and when one with a message did.
    messages_spoken: u64,
    spoke_at: Option<Instant>,
    events: VecDeque<Event>,
    stats: Stats,
}

impl Session {
    /// Creates the connecting end; its hello is sent at once.
    pub fn client(hello: Hello, link: LinkKind, now: Instant) -> Self {
        let mut session = Session::new(Role::Client, link, now);
        session.table = hello.channels.clone();
        session.outbox.control.push_back(Frame::Hello(Box::new(hello)));
        session
    }

    /// Creates the accepting end; it waits for a hello.
    pub fn server(link: LinkKind, now: Instant) -> Self {
        Session::new(Role::Server, link, now)
    }

    fn new(role: Role, link: LinkKind, now: Instant) -> Self {
        Session {
            role,
            state: State::Greeting,
            over: None,
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
            is_resumable: false,
            peer_is_open: role == Role::Client,
            ack_by: None,
            unacked_bytes: 0,
            told_reliable: 0,
            is_deaf: false,
            greets_apart: false,
            acks_held_from: None,
            ack_due: false,
            time_at: None,
            asked: None,
            time_due: false,
            is_watched: false,
            messages_before: 0,
            messages_spoken: 0,
            spoke_at: None,
            events: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Answers the hello of [`Event::Hello`]. Any answer except a welcome ends the session. The answer is
    /// dropped if the session is over already, because the peer left or waited too long.
    pub fn answer(&mut self, answer: Answer, now: Instant) {
        if self.state != State::Deciding {
            return;
        }
        match answer {
            Answer::Welcome(welcome) => {
                self.adopt(&welcome);
                self.outbox.control.push_back(Frame::Welcome(welcome));
            }
            Answer::Rejected(away) => self.reject(away, now),
        }
    }

    /// Opens the session with the terms of its welcome, which are the same at both ends.
    fn adopt(&mut self, welcome: &Welcome) {
        self.set_terms(welcome.limits.keep_alive_ms, welcome.limits.silence_ms);
        self.epoch = welcome.epoch;
        self.state = State::Open;
    }

    /// Sets the keep-alive interval and the silence that ends the session, both in ms, as a welcome does. The other
    /// end must know: with a shorter silence it must be heard more often.
    pub fn set_terms(&mut self, keep_alive_ms: u32, silence_ms: u32) {
        let bounded = |ms: u32, min: u64, max: u64| Duration::from_millis(u64::from(ms).clamp(min, max));
        self.keep_alive = bounded(keep_alive_ms, 20, 10_000);
        self.silence = bounded(silence_ms, 1_000, 60_000).max(self.keep_alive * 3);
    }

    fn reject(&mut self, away: Rejection, now: Instant) {
        self.outbox.control.push_back(match away {
            Rejection::Redirect(redirect) => Frame::Redirect(redirect),
            Rejection::RetryAfter(retry) => Frame::RetryAfter(retry),
            Rejection::Refused(refusal) => Frame::Refused(refusal),
        });
        self.state = State::Closing { until: now + limits::CLOSE_LINGER };
    }

    /// Queues a message for one of the next packets.
    ///
    /// # Errors
    /// [`SendError::Misuse`] if the message is too large, its channel is not in the table, or the session is
    /// not open; [`SendError::Full`] if the peer does not take its reliable messages. Nothing is queued then.
    pub fn send(&mut self, message: Outgoing) -> Result<(), SendError> {
        if !matches!(self.state, State::Open | State::Resuming { .. }) {
            return Err(match &self.over {
                Some(reason) => ApiMisuse::Closed(reason.clone()).into(),
                None => ApiMisuse::NotOpen { what: "send" }.into(),
            });
        }
        let Some(channel) = self.table.get(message.channel) else {
            return Err(ApiMisuse::NoSuchChannel(message.channel).into());
        };
        let (bytes, max) = (message.payload.len(), limits::PAYLOAD_BYTES_MAX);
        if bytes > max {
            return Err(ApiMisuse::MessageTooLarge { bytes, max }.into());
        }
        let mut fates = Vec::new();
        if !channel.lane.is_reliable() && !self.is_attached() {
            // It would be outdated before there is a connection again.
            self.outbox.dropped += 1;
            self.report(message.delivery_id.map(Fate::Lost).into_iter().collect());
            return Ok(());
        }
        let pushed = self.outbox.push(channel, message, &mut self.in_flight, &mut fates);
        self.report(fates);
        pushed.map_err(|_| SendError::Full)?;
        self.stats.messages_sent += 1;
        Ok(())
    }

    /// Ends the session. Queued reliable messages are still sent, then the Close frame, within
    /// [`limits::CLOSE_LINGER`]. [`Event::Closed`] is queued at once, with the same reason.
    pub fn close(&mut self, reason: CloseReason, now: Instant) {
        if matches!(self.state, State::Closing { .. } | State::Closed) {
            return;
        }
        if matches!(self.state, State::Resuming { .. }) {
            // Before the answer, the other end would not understand a Close frame.
            self.link = None;
        }
        self.outbox.control.push_back(Frame::Close(reason.clone()));
        self.end(reason);
        if self.link.is_some() {
            self.state = State::Closing { until: now + limits::CLOSE_LINGER };
        }
    }

    fn end(&mut self, reason: CloseReason) {
        let mut fates = Vec::new();
        self.outbox.closing(self.link.is_some_and(LinkKind::has_datagrams), &mut fates);
        self.in_flight.lose_all(&mut fates);
        self.report(fates);
        self.time_due = false;
        self.state = State::Closed;
        self.over = Some(reason.clone());
        self.events.push_back(Event::Closed(reason));
    }

    /// Stops or resumes acknowledging reliable messages: backpressure for a caller that cannot pass on its
    /// messages. The peer has a bounded window of unacknowledged messages; once it is full, the peer's caller
    /// learns that its messages are not taken.
    pub fn hold_acks(&mut self, hold: bool) {
        let from = hold.then(|| self.acks_held_from.unwrap_or(self.told_reliable));
        self.hold_acks_from(from);
    }

    /// The same for reliable messages from `number` on, as [`received_reliable`](Self::received_reliable)
    /// counts them; `None` resumes all. It lets another caller get the messages that this one may not
    /// process. Earlier messages are acknowledged with the next packet that has unreliable messages. So the
    /// acknowledgement cannot overtake the effects that the caller sent before.
    pub fn hold_acks_from(&mut self, number: Option<u64>) {
        let was_held = std::mem::replace(&mut self.acks_held_from, number).is_some();
        self.ack_due |= was_held && self.may_tell_reliable() > self.told_reliable;
    }

    /// All reliable messages below this number were received and given to the caller.
    pub fn received_reliable(&self) -> u64 {
        self.reliable.next()
    }

    fn may_tell_reliable(&self) -> u64 {
        self.reliable.next().min(self.acks_held_from.unwrap_or(u64::MAX))
    }

    /// Detaches the broken connection. Nothing is sent until the next one is attached; no reliable message is
    /// lost. A session that was not open yet ends, since it cannot be resumed.
    pub fn detach(&mut self) {
        self.link = None;
        let mut fates = Vec::new();
        self.outbox.detached(&mut fates);
        self.in_flight.lose_all(&mut fates);
        self.report(fates);
        (self.ack_by, self.ack_due, self.time_due) = (None, false, false);
        (self.time_at, self.asked) = (None, None);
        match self.state {
            State::Greeting | State::Deciding => {
                self.end(CloseReason::ConnectionLost { detail: "before the session was open".into() });
            }
            State::Closing { .. } => self.state = State::Closed,
            State::Resuming { .. } => self.state = State::Open,
            State::Open | State::Closed => {}
        }
    }

    /// Attaches another connection. Packets of the one before must not be handled any more.
    pub fn attach(&mut self, link: LinkKind, now: Instant) {
        self.detach();
        self.link = Some(link);
        self.heard = now;
        self.peer_is_open = self.role == Role::Client;
        if self.state == State::Open {
            self.time_due = true;
            self.time_at = (self.role == Role::Client).then(|| now + self.first_time_interval());
        }
    }

    /// Sets the tick that outgoing packets carry.
    pub fn set_tick(&mut self, tick: Tick) {
        self.tick = Some(tick);
    }

    /// When the last packet was received.
    pub fn last_heard(&self) -> Instant {
        self.heard
    }

    /// Sets the epoch that outgoing packets carry.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    fn report(&mut self, fates: Vec<Fate>) {
        self.events.extend(fates.into_iter().map(|fate| match fate {
            Fate::Delivered(delivery_id) => Event::Delivered(delivery_id),
            Fate::Lost(delivery_id) => Event::Lost(delivery_id),
        }));
    }

    /// Advances time. Call it when [`poll_timeout`](Self::poll_timeout) is due, then poll packets and events.
    /// Calling it more often is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Closed => {}
            State::Closing { until } => {
                if until <= now {
                    self.state = State::Closed;
                }
            }
            State::Greeting | State::Deciding => {
                if self.began + limits::HANDSHAKE_TIMEOUT <= now {
                    self.give_up_greeting(now);
                }
            }
            State::Resuming { since } => {
                if Session::resume_due(since) <= now {
                    self.let_go();
                }
            }
            State::Open => self.pass_time(now),
        }
    }

    fn give_up_greeting(&mut self, now: Instant) {
        if self.role == Role::Server && self.state == State::Greeting {
            let detail = PeerMisbehaved::NoHello.to_string();
            self.close(CloseReason::Misbehaved { detail }, now);
        } else {
            self.close(CloseReason::TimedOut, now);
        }
    }

    fn pass_time(&mut self, now: Instant) {
        if self.link.is_some() && self.heard + self.silence <= now {
            if self.is_resumable {
                self.let_go();
            } else {
                self.close(CloseReason::TimedOut, now);
            }
            return;
        }
        if self.ack_by.is_some_and(|by| by <= now) {
            (self.ack_by, self.ack_due) = (None, true);
        }
        if self.time_at.is_some_and(|at| at <= now) {
            self.ask_or_rest(now);
        }
        if let Some(after) = self.loss_delay() {
            let mut fates = Vec::new();
            self.in_flight.expire(now, after, &mut fates);
            self.report(fates);
        }
        self.fragments.expire(now);
    }

    /// The time after which an unacknowledged packet counts as lost; `None` on a link without loss.
    fn loss_delay(&self) -> Option<Duration> {
        self.link.filter(|link| link.has_datagrams())?;
        let rtt = self.timesync.rtt().unwrap_or(Duration::from_millis(150));
        Some(rtt * 2 + self.timesync.jitter() * 4 + limits::ACK_DELAY_MAX * 3 / 2)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due. Directly after a call it is always in the
    /// future.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::Closing { until } => Some(until),
            State::Greeting | State::Deciding => Some(self.began + limits::HANDSHAKE_TIMEOUT),
            State::Resuming { since } => Some(Session::resume_due(since)),
            State::Open => {
                let silence = self.link.map(|_| self.heard + self.silence);
                let loss =
                    self.in_flight.oldest().zip(self.loss_delay()).map(|(oldest, after)| oldest + after);
                let fragments = self.fragments.expires();
                [silence, loss, fragments, self.time_at, self.ack_by].into_iter().flatten().min()
            }
        }
    }

    /// Returns the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether messages can be sent. Unreliable ones are sent only with a [connection](Self::is_attached).
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Resuming { .. })
    }

    /// Whether the session is over and has nothing left to send: its connection can be closed.
    pub fn is_finished(&self) -> bool {
        match self.state {
            State::Closed => true,
            // The Close frame is sent last.
            State::Closing { .. } => self.outbox.control.is_empty(),
            State::Greeting | State::Deciding | State::Open | State::Resuming { .. } => false,
        }
    }

    /// Bytes of queued unreliable messages, as [`limits::UNRELIABLE_QUEUE_BYTES_MAX`] counts them. A sender
    /// of state should not add more while the connection is not writable.
    pub fn unreliable_waiting_bytes(&self) -> usize {
        self.outbox.unreliable_bytes()
    }

    /// Bytes of memory that its messages take: those that are not acknowledged or not sent, those that came too early, and
    /// unfinished fragmented ones. Each message counts with what it costs beside its payload.
    pub fn held_bytes(&self) -> usize {
        self.outbox.retained_bytes()
            + self.outbox.unreliable_bytes()
            + self.reliable.memory_bytes()
            + self.sequenced.memory_bytes()
            + self.fragments.memory_bytes()
    }

    /// Whether every reliable message that was sent is known to have arrived.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_reliable_settled()
    }

    /// The smoothed round trip, once measured.
    pub fn rtt(&self) -> Option<Duration> {
        self.timesync.rtt()
    }

    /// Mean deviation of the round trip.
    pub fn rtt_jitter(&self) -> Duration {
        self.timesync.jitter()
    }

    /// The peer's clock minus ours in µs, once measured.
    pub fn clock_offset_us(&self) -> Option<i64> {
        self.timesync.offset_us()
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        Stats {
            packets_lost: self.in_flight.lost(),
            messages_dropped: self.outbox.dropped,
            messages_replaced: self.outbox.replaced,
            fragmented_abandoned: self.fragments.abandoned,
            ..self.stats
        }
    }
}

/// Gives back the memory of an empty queue.
fn release<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() {
        *queue = VecDeque::new();
    }
}
