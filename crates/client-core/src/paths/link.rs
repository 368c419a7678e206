//! One end of a path: its connection, its session, and the messages queued while messages change their route.

use crate::inbox::Came;
use bytes::Bytes;
use core::net::SocketAddr;
use parlor_proto::OrderedMap;
use parlor_proto::limits::{PATH_SILENCE, RELIABLE_QUEUE_BYTES_MAX, SILENCE_TIMEOUT, WAITING_MESSAGE_BYTES};
use parlor_proto::session::{Message, Outgoing, Session};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::Hello;
use parlor_proto::wire::path::{PathOffer, PathRole, PathSignal};
use parlor_proto::{ChannelId, Epoch, Instant, LinkKind, MemberId, PathId, channel};
use std::collections::VecDeque;
use std::time::Duration;

/// Limit of messages and inputs over a path between a member and the host: bytes per second, and the burst. Above it
/// unreliable ones are dropped and reliable ones are not acknowledged.
const BYTES_PER_SECOND: u64 = 512 * 1024;
/// The same between other members, who have many paths.
const BYTES_PER_SECOND_OF_MESH: u64 = 128 * 1024;
/// Bytes that an unacknowledged sender may have in flight; one that sends more misbehaves.
const DEBT_BYTES_MAX: i64 = 2 * RELIABLE_QUEUE_BYTES_MAX as i64;
/// How long a sequenced message may still come through the hub after its sender has switched to the path.
const LATE: Duration = Duration::from_secs(2);

/// The phases of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The driver connects.
    Trying { until: Instant },
    /// Connected; the two ends greet each other.
    Greeting { until: Instant },
    /// Greeted.
    Open,
    /// Over at this end. The other end's last word comes through the hub, followed by `rests` messages. From
    /// `unread_from` on the other end reads nothing from the path, even without that word.
    Over { unread_from: Option<Instant>, rests: Option<u64> },
}

/// How the last path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No connection in time.
    TimedOut,
    /// The other end was the wrong one, or refused.
    Refused,
    /// It was open and broke.
    Lost,
}

/// The route of this end's reliable messages to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// Through the hub.
    Relay,
    /// Over the path.
    Path,
    /// Through the hub, behind those queued for its session.
    Queue,
}

/// One end of a path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    /// Later paths have higher numbers.
    pub(crate) number: u64,
    pub(crate) peer: MemberId,
    pub(crate) role: PathRole,
    /// Whether one end is the host.
    has_authority: bool,
    /// Whether the host role migrates when the host is gone: see [`PathOffer`].
    passes_on: bool,
    pub(crate) remote: Option<SocketAddr>,
    phase: Phase,
    session: Option<Session>,
    pub(crate) out: Out,
    /// Messages for the hub, in order.
    queue: VecDeque<Outgoing>,
    queue_bytes: usize,
    /// Reliable messages that came before the word that the other end has switched to the path.
    held: Vec<Came>,
    held_bytes: usize,
    /// When that word came.
    over_at: Option<Instant>,
    /// When the path ended here.
    ended_at: Option<Instant>,
    /// Whether a sequenced message came over the path.
    has_sequenced: bool,
    /// When a sequenced message last went over the path, by channel.
    carried: OrderedMap<ChannelId, Instant>,
    /// Until when the other end is paused.
    hold_until: Option<Instant>,
    /// Remaining allowance in bytes, negative when exceeded, and the time of its last update.
    allowance: i64,
    allowed_at: Instant,
}

impl Path {
    pub(crate) fn new(
        number: u64,
        &PathOffer { id, peer, role, has_authority, passes_on, .. }: &PathOffer,
        until: Instant,
    ) -> Self {
        Path {
            id,
            number,
            peer,
            role,
            has_authority,
            passes_on,
            remote: None,
            phase: Phase::Trying { until },
            session: None,
            out: Out::Relay,
            queue: VecDeque::new(),
            queue_bytes: 0,
            held: Vec::new(),
            held_bytes: 0,
            over_at: None,
            ended_at: None,
            has_sequenced: false,
            carried: OrderedMap::new(),
            hold_until: None,
            allowance: i64::try_from(BYTES_PER_SECOND_OF_MESH).unwrap_or(i64::MAX),
            allowed_at: until,
        }
    }

    /// Whether it leads to the host.
    pub(crate) fn is_to_host(&self) -> bool {
        self.has_authority && self.role == PathRole::Dial
    }

    /// Whether it leads from the host to a member.
    pub(crate) fn is_of_host(&self) -> bool {
        self.has_authority && self.role == PathRole::Accept
    }

    fn bytes_per_second(&self) -> u64 {
        if self.has_authority { BYTES_PER_SECOND } else { BYTES_PER_SECOND_OF_MESH }
    }

    /// Starts the session on a new connection: a member sends its hello, the host waits for it.
    pub(crate) fn connected(
        &mut self,
        (kind, remote): (LinkKind, SocketAddr),
        hello: Hello,
        epoch: Epoch,
        now: Instant,
    ) {
        let Phase::Trying { until } = self.phase else { return };
        let mut session = match self.role {
            PathRole::Dial => Session::client(hello, kind, now),
            PathRole::Accept => Session::server(kind, now),
        };
        session.set_epoch(epoch);
        (self.session, self.remote, self.phase) = (Some(session), Some(remote), Phase::Greeting { until });
    }

    /// Opens the path after both ends have greeted each other.
    pub(crate) fn open(&mut self, now: Instant) {
        self.phase = Phase::Open;
        self.allowed_at = now;
        if let Some(session) = &mut self.session {
            // Silence ends the path, but unacknowledged messages are kept.
            session.set_resumable(true);
            session.hold_acks(self.over_at.is_none());
        }
    }

    /// Whether reliable messages to the authority go through the hub, which keeps them for the next
    /// authority.
    pub(crate) fn leaves_authority_to_hub(&self) -> bool {
        self.is_to_host() && self.passes_on
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Smoothed round trip to the other end, once measured.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.session.as_ref().and_then(Session::rtt)
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over { .. })
    }

    /// Whether it is over and its queue is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_over() && self.queue.is_empty()
    }

    /// Whether it is idle, no more messages of it will come, and nothing that it has overtaken can come
    /// through the hub.
    pub(crate) fn is_done(&self, now: Instant) -> bool {
        self.is_idle() && matches!(self.phase, Phase::Over { rests: Some(0), .. }) && !self.may_be_older(now)
    }

    /// Whether the other end was not reached or greeted in time.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Trying { until } | Phase::Greeting { until } if until <= now)
    }

    /// The session, as long as the path carries packets.
    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        if self.is_over() { None } else { self.session.as_mut() }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Trying { until } => Some(until),
            Phase::Greeting { until } => {
                let session = self.session.as_ref().and_then(Session::poll_timeout);
                Some(session.map_or(until, |due| due.min(until)))
            }
            Phase::Open => {
                let session = self.session.as_ref().and_then(Session::poll_timeout);
                session.into_iter().chain(self.hold_until).min()
            }
            Phase::Over { unread_from, .. } => unread_from,
        }
    }

    /// Ends the path here; nothing more is taken from its connection. Returns whether the other end may have
    /// seen it open.
    pub(crate) fn end(&mut self, now: Instant) -> bool {
        let was_open = self.is_open();
        self.ended_at = Some(now);
        self.phase = Phase::Over { unread_from: Some(now + PATH_SILENCE), rests: None };
        if let Some(session) = &mut self.session {
            session.detach();
        }
        was_open
    }

    /// Routes reliable messages through the hub from here on: first those sent over the path without
    /// acknowledgement, then the queued ones.
    pub(crate) fn go_back(&mut self) {
        let rests = self.session.as_mut().map(Session::take_unacknowledged).unwrap_or_default();
        let (id, ends) = (self.id, self.is_over());
        let back = PathSignal::Back { id, ends, rests: rests.len() as u64 };
        let rests = rests.into_iter().map(|(number, Outgoing { channel, payload, .. })| PathSignal::Rest {
            id,
            number,
            channel,
            payload,
        });
        let signals: Vec<PathSignal> = std::iter::once(back).chain(rests).collect();
        for signal in signals.into_iter().rev() {
            let message = self.through_hub(channel::PATH, signal.encode());
            self.queue_bytes += message.payload.len() + WAITING_MESSAGE_BYTES;
            self.queue.push_front(message);
        }
        self.out = Out::Queue;
    }

    /// Wraps a message to the other end for the hub.
    pub(crate) fn through_hub(&self, channel: ChannelId, payload: Bytes) -> Outgoing {
        let upward = Upward { to: Recipient::Member(self.peer), stamp: false, payload };
        Outgoing::new(channel, upward.encode())
    }

    /// Notes that the other end routes its reliable messages through the hub from here on.
    pub(crate) fn stop_reliable(&mut self) {
        if let Some(session) = &mut self.session {
            session.stop_reliable();
        }
    }

    /// Lets time pass for what the session does not handle: resumes an end that was paused for sending too
    /// fast.
    pub(crate) fn pass_time(&mut self, now: Instant) {
        if let Phase::Over { unread_from, .. } = &mut self.phase {
            unread_from.take_if(|from| *from <= now);
        }
        if self.hold_until.take_if(|until| *until <= now).is_some()
            && let Some(session) = &mut self.session
        {
            session.hold_acks(self.over_at.is_none());
        }
    }

    /// Notes that the other end has ended the path, too; `count` messages follow.
    pub(crate) fn ended_there(&mut self, count: u64) {
        if let Phase::Over { rests: rests @ None, .. } = &mut self.phase {
            *rests = Some(count);
        }
    }

    /// Notes one of these messages. Returns whether it is new.
    pub(crate) fn rest(&mut self, number: u64) -> bool {
        if let Phase::Over { rests: Some(rests), .. } = &mut self.phase {
            *rests = rests.saturating_sub(1);
        }
        self.session.as_mut().is_none_or(|session| session.takes_elsewhere(number))
    }

    /// Whether the other end may still read what was sent over the path.
    pub(crate) fn may_be_read(&self) -> bool {
        matches!(self.phase, Phase::Over { unread_from: Some(_), rests: None })
    }

    /// Notes a sequenced message that goes over the path.
    pub(crate) fn carries_in_sequence(&mut self, channel: ChannelId, now: Instant) {
        self.carried.insert(channel, now);
    }

    /// Whether a sequenced message that went over the path may arrive after one sent through the hub.
    pub(crate) fn may_come_late(&self, channel: ChannelId, now: Instant) -> bool {
        let is_recent = self.carried.get(&channel).is_some_and(|at| now < *at + PATH_SILENCE);
        self.may_be_read() || self.is_open() && is_recent
    }

    /// Whether the queue is full.
    pub(crate) fn is_full(&self) -> bool {
        self.queue_bytes > RELIABLE_QUEUE_BYTES_MAX
    }

    /// Whether a sequenced message that came through the hub may be older than one that came over the path.
    pub(crate) fn may_be_older(&self, now: Instant) -> bool {
        let until = match (self.over_at, self.ended_at) {
            (Some(over), _) => Some(over + LATE),
            // That word may never come, if the other end's process was replaced.
            (None, Some(ended)) => Some(ended + SILENCE_TIMEOUT),
            (None, None) => None,
        };
        self.has_sequenced && until.is_none_or(|until| now < until)
    }

    /// Notes that all messages that the other end sent through the hub before its switch have come. Returns
    /// the messages held until then.
    pub(crate) fn over(&mut self, now: Instant) -> Vec<Came> {
        self.over_at.get_or_insert(now);
        if let Some(session) = &mut self.session {
            session.hold_acks(false);
        }
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// Takes in a message from the path. Returns it if it is to be read; an error if its sender exceeds the
    /// limit.
    pub(crate) fn take(
        &mut self,
        message: Message,
        is_reliable: bool,
        now: Instant,
    ) -> Result<Option<Came>, ()> {
        let bytes = message.payload.len() + WAITING_MESSAGE_BYTES;
        let is_within = self.spend(bytes, now);
        self.has_sequenced |= !is_reliable;
        if !is_reliable {
            return Ok(is_within.then(|| Came::Path(self.peer, self.id, message)));
        }
        if self.allowance < -DEBT_BYTES_MAX {
            return Err(());
        }
        let came = Came::Path(self.peer, self.id, message);
        if self.over_at.is_some() {
            return Ok(Some(came));
        }
        self.held_bytes += bytes;
        if self.held_bytes > 2 * RELIABLE_QUEUE_BYTES_MAX {
            return Err(());
        }
        self.held.push(came);
        Ok(None)
    }

    /// Takes bytes from the allowance. Returns false if it was too small.
    fn spend(&mut self, bytes: usize, now: Instant) -> bool {
        let passed = now.saturating_since(self.allowed_at).as_micros();
        let rate = self.bytes_per_second();
        let gained = u64::try_from(passed).unwrap_or(u64::MAX).saturating_mul(rate) / 1_000_000;
        if gained > 0 {
            self.allowed_at = now;
        }
        let most = i64::try_from(rate).unwrap_or(i64::MAX);
        self.allowance = self.allowance.saturating_add(i64::try_from(gained).unwrap_or(i64::MAX)).min(most);
        self.allowance = self.allowance.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        if self.allowance < 0
            && let Some(session) = &mut self.session
        {
            session.hold_acks(true);
            let debt_us = self.allowance.unsigned_abs().saturating_mul(1_000_000) / rate;
            self.hold_until = Some(now + Duration::from_micros(debt_us.max(1_000)));
        }
        self.allowance >= 0
    }

    /// Queues a message to the other end, through the hub.
    pub(crate) fn push(&mut self, message: Outgoing) {
        let message = self.through_hub(message.channel, message.payload);
        self.queue_bytes += message.payload.len() + WAITING_MESSAGE_BYTES;
        self.queue.push_back(message);
        self.out = Out::Queue;
    }

    /// The next queued message for the hub.
    pub(crate) fn next_queued(&self) -> Option<&Outgoing> {
        self.queue.front()
    }

    /// Removes it after sending.
    pub(crate) fn pop_queued(&mut self) {
        if let Some(message) = self.queue.pop_front() {
            self.queue_bytes -= message.payload.len() + WAITING_MESSAGE_BYTES;
        }
        if self.queue.is_empty() && self.out == Out::Queue {
            self.out = Out::Relay;
        }
    }
}
