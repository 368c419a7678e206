//! One end of a path: its connection, its session, and what waits at the change of ways.

use super::super::inbox::Came;
use bytes::Bytes;
use core::net::SocketAddr;
use parlor_proto::limits::{PATH_SILENCE, RELIABLE_QUEUE_BYTES_MAX, SILENCE_TIMEOUT, WAITING_MESSAGE_BYTES};
use parlor_proto::session::{Message, Outgoing, Session};
use parlor_proto::wire::envelope::{To, Upward};
use parlor_proto::wire::handshake::Hello;
#[cfg(doc)]
use parlor_proto::wire::path::PathOffer;
use parlor_proto::wire::path::{PathRole, PathWord};
use parlor_proto::{ChannelId, Epoch, Instant, LinkKind, MemberId, PathId, channel};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Bytes of messages and inputs that come over one path in a second, in the long run, and at once: beyond it unreliable ones are
/// dropped and reliable ones are not acknowledged.
const BYTES_PER_SECOND: u64 = 512 * 1024;
/// What a sender may have under way that is told nothing arrived; one that sends on is at fault.
const DEBT_BYTES_MAX: i64 = 2 * RELIABLE_QUEUE_BYTES_MAX as i64;
/// How long after its sender has gone over a sequenced message may still come through the hub.
const LATE: Duration = Duration::from_secs(2);

/// Where a path is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The driver connects.
    Trying { until: Instant },
    /// It has, and the two ends greet each other.
    Greeting { until: Instant },
    /// They have.
    Open,
    /// It is over here; the other end's last word comes through the hub, and then so many messages.
    /// From `unread_from` on it reads nothing of the path any more, even if it never says so.
    Over { unread_from: Option<Instant>, rests: Option<u64> },
}

/// Which way this end's reliable messages to the other go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Out {
    /// Through the hub.
    Relay,
    /// Over the path.
    Path,
    /// Through the hub after those that wait for room in its session.
    Queue,
}

/// One end of a path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: PathId,
    /// Paths that came later have higher ones.
    pub(super) number: u64,
    pub(super) peer: MemberId,
    pub(super) role: PathRole,
    /// Whether the host's part passes to another member when it is gone: see [`PathOffer`].
    passes_on: bool,
    pub(super) remote: Option<SocketAddr>,
    phase: Phase,
    session: Option<Session>,
    pub(super) out: Out,
    /// For the hub, in order.
    queue: VecDeque<Outgoing>,
    queue_bytes: usize,
    /// Reliable messages that came before the word that the other end has gone over.
    held: Vec<Came>,
    held_bytes: usize,
    /// When that word came.
    over_at: Option<Instant>,
    /// When the path ended here.
    ended_at: Option<Instant>,
    /// Whether a sequenced message came over the path.
    has_sequenced: bool,
    /// When one went over it, by channel.
    carried: BTreeMap<ChannelId, Instant>,
    /// Until when the other end is held up.
    hold_until: Option<Instant>,
    /// Bytes that may come, below 0 what came beyond, and since when.
    allowance: i64,
    allowed_at: Instant,
}

impl Path {
    pub(super) fn new(
        (id, number): (PathId, u64),
        peer: MemberId,
        (role, passes_on): (PathRole, bool),
        until: Instant,
    ) -> Self {
        Path {
            id,
            number,
            peer,
            role,
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
            carried: BTreeMap::new(),
            hold_until: None,
            allowance: i64::try_from(BYTES_PER_SECOND).unwrap_or(i64::MAX),
            allowed_at: until,
        }
    }

    /// A connection stands: a member says hello on it, its host waits for that.
    pub(super) fn connected(
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

    /// Both ends have greeted each other.
    pub(super) fn open(&mut self, now: Instant) {
        self.phase = Phase::Open;
        self.allowed_at = now;
        if let Some(session) = &mut self.session {
            // Its silence is the end of the path, and not of what was sent.
            session.set_resumable(true);
            session.hold_acks(self.over_at.is_none());
        }
    }

    /// Whether what is said reliably to the authority goes through the hub, which has it for the next one.
    pub(super) fn leaves_authority_to_hub(&self) -> bool {
        self.role == PathRole::Dial && self.passes_on
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over { .. })
    }

    /// Whether nothing of it is left to be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.is_over() && self.queue.is_empty()
    }

    /// Whether nothing more of it is to come, either, and nothing may come through the hub that it has overtaken.
    pub(super) fn is_done(&self, now: Instant) -> bool {
        self.is_idle() && matches!(self.phase, Phase::Over { rests: Some(0), .. }) && !self.may_be_older(now)
    }

    /// Whether the other end has not been reached or greeted in time.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Trying { until } | Phase::Greeting { until } if until <= now)
    }

    /// The session, as long as packets come and go over the path.
    pub(super) fn session_mut(&mut self) -> Option<&mut Session> {
        if self.is_over() { None } else { self.session.as_mut() }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
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

    /// The path ends here, and nothing more is taken from its connection. Says whether the other end may know of it as open.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        let was_open = self.is_open();
        self.ended_at = Some(now);
        self.phase = Phase::Over { unread_from: Some(now + PATH_SILENCE), rests: None };
        if let Some(session) = &mut self.session {
            session.detach();
        }
        was_open
    }

    /// Reliable messages go through the hub from here on: what of them went over the path and is not known to have come, before what
    /// waits.
    pub(super) fn go_back(&mut self) {
        let rests = self.session.as_mut().map(Session::take_unacknowledged).unwrap_or_default();
        let (id, ends) = (self.id, self.is_over());
        let back = PathWord::Back { id, ends, rests: rests.len() as u64 };
        let rests = rests.into_iter().map(|(number, Outgoing { channel, payload, .. })| PathWord::Rest {
            id,
            number,
            channel,
            payload,
        });
        let words: Vec<PathWord> = std::iter::once(back).chain(rests).collect();
        for word in words.into_iter().rev() {
            let message = self.through_hub(channel::PATH, word.encode());
            self.queue_bytes += message.payload.len() + WAITING_MESSAGE_BYTES;
            self.queue.push_front(message);
        }
        self.out = Out::Queue;
    }

    /// A message to the other end, as the hub carries it.
    pub(super) fn through_hub(&self, channel: ChannelId, payload: Bytes) -> Outgoing {
        let upward = Upward { to: To::Member(self.peer), stamp: false, payload };
        Outgoing::new(channel, upward.encode())
    }

    /// The other end sends its reliable messages through the hub from here on.
    pub(super) fn stop_reliable(&mut self) {
        if let Some(session) = &mut self.session {
            session.stop_reliable();
        }
    }

    /// Lets time pass for what is not the session's: an end that was held up for what it sent too fast may go on.
    pub(super) fn pass_time(&mut self, now: Instant) {
        if let Phase::Over { unread_from, .. } = &mut self.phase {
            unread_from.take_if(|from| *from <= now);
        }
        if self.hold_until.take_if(|until| *until <= now).is_some()
            && let Some(session) = &mut self.session
        {
            session.hold_acks(self.over_at.is_none());
        }
    }

    /// The other end has ended it, too, and so many messages follow.
    pub(super) fn ended_there(&mut self, count: u64) {
        if let Phase::Over { rests: rests @ None, .. } = &mut self.phase {
            *rests = Some(count);
        }
    }

    /// One of them came. Says whether it is news.
    pub(super) fn rest(&mut self, number: u64) -> bool {
        if let Phase::Over { rests: Some(rests), .. } = &mut self.phase {
            *rests = rests.saturating_sub(1);
        }
        self.session.as_mut().is_none_or(|session| session.takes_elsewhere(number))
    }

    /// Whether the other end may still read what was sent over the path, as far as is known.
    pub(super) fn may_be_read(&self) -> bool {
        matches!(self.phase, Phase::Over { unread_from: Some(_), rests: None })
    }

    /// A sequenced message goes over the path.
    pub(super) fn carries_in_sequence(&mut self, channel: ChannelId, now: Instant) {
        self.carried.insert(channel, now);
    }

    /// Whether one that went over it may come later than what is sent through the hub.
    pub(super) fn may_come_late(&self, channel: ChannelId, now: Instant) -> bool {
        let is_recent = self.carried.get(&channel).is_some_and(|at| now < *at + PATH_SILENCE);
        self.may_be_read() || self.is_open() && is_recent
    }

    /// Whether so much waits that nothing more is taken.
    pub(super) fn is_full(&self) -> bool {
        self.queue_bytes > RELIABLE_QUEUE_BYTES_MAX
    }

    /// A sequenced message came through the hub: whether it may be older than one that came over the path.
    pub(super) fn may_be_older(&self, now: Instant) -> bool {
        let until = match (self.over_at, self.ended_at) {
            (Some(over), _) => Some(over + LATE),
            // That word may never come, if the other end's process is another one by now.
            (None, Some(ended)) => Some(ended + SILENCE_TIMEOUT),
            (None, None) => None,
        };
        self.has_sequenced && until.is_none_or(|until| now < until)
    }

    /// What the other end sent through the hub before it went over has come. Gives what waited for that.
    pub(super) fn over(&mut self, now: Instant) -> Vec<Came> {
        self.over_at.get_or_insert(now);
        if let Some(session) = &mut self.session {
            session.hold_acks(false);
        }
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// A message came over the path. Gives it back if it is to be read; an error if its sender sends too much.
    pub(super) fn take(
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

    /// Takes bytes from what may come. Says whether there were as many.
    fn spend(&mut self, bytes: usize, now: Instant) -> bool {
        let passed = now.saturating_since(self.allowed_at).as_micros();
        let gained = u64::try_from(passed).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_SECOND) / 1_000_000;
        if gained > 0 {
            self.allowed_at = now;
        }
        let most = i64::try_from(BYTES_PER_SECOND).unwrap_or(i64::MAX);
        self.allowance = self.allowance.saturating_add(i64::try_from(gained).unwrap_or(i64::MAX)).min(most);
        self.allowance = self.allowance.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        if self.allowance < 0
            && let Some(session) = &mut self.session
        {
            session.hold_acks(true);
            let debt_us = self.allowance.unsigned_abs().saturating_mul(1_000_000) / BYTES_PER_SECOND;
            self.hold_until = Some(now + Duration::from_micros(debt_us.max(1_000)));
        }
        self.allowance >= 0
    }

    /// Queues a message to the other end, to go through the hub.
    pub(super) fn push(&mut self, message: Outgoing) {
        let message = self.through_hub(message.channel, message.payload);
        self.queue_bytes += message.payload.len() + WAITING_MESSAGE_BYTES;
        self.queue.push_back(message);
        self.out = Out::Queue;
    }

    /// The next that goes through the hub.
    pub(super) fn next_queued(&self) -> Option<&Outgoing> {
        self.queue.front()
    }

    /// It went.
    pub(super) fn pop_queued(&mut self) {
        if let Some(message) = self.queue.pop_front() {
            self.queue_bytes -= message.payload.len() + WAITING_MESSAGE_BYTES;
        }
        if self.queue.is_empty() && self.out == Out::Queue {
            self.out = Out::Relay;
        }
    }
}
