//! The queue of events for the game. It is bounded even if the game never polls.

use crate::event::{ClosedReason, Event, StateUpdate};
use parlor_proto::OrderedSet;
use parlor_proto::session;
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{CloseReason, EntityId, Instant, MemberId, PathId};
use std::collections::VecDeque;

/// Bytes of unread messages above which they are processed without a poll of the game.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;
/// Bytes of queued events at most.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Queued state events at most; beyond it the two oldest are merged.
const STATE_EVENTS_MAX: usize = 64;
/// Bytes of key names in queued state events at most; beyond it the two oldest are merged.
const STATE_EVENT_BYTES_MAX: usize = 256 * 1024;

/// Something that a driver delivered and the game has not polled yet.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) at: Instant,
    pub(super) came: Came,
}

/// What was delivered.
#[derive(Debug)]
pub(super) enum Came {
    /// An event of the session with the hub.
    Session(session::Event),
    /// A message over a path, from the member at its other end.
    Path(MemberId, PathId, session::Message),
    /// The welcome of another server, which has reopened the room.
    Reopened(Box<Welcome>),
    /// A change of the connection.
    Link(LinkNews),
}

/// A change of the connection.
#[derive(Debug)]
pub(crate) enum LinkNews {
    Lost {
        detail: String,
        /// Whether the loss was found by silence alone.
        is_silent: bool,
    },
    Attempt(u32),
    /// The session was resumed.
    Resumed,
    /// The session is gone; this process will rejoin as a newcomer.
    Gone,
    GivenUp {
        detail: String,
    },
    /// The server does not let the player rejoin.
    Refused(ClosedReason),
    /// The hub is silent, and it ran in the host's process.
    HostGone,
}

/// Queued events, and the input that becomes events at the next poll.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    arrived: VecDeque<Arrived>,
    arrived_bytes: usize,
    events: VecDeque<Waiting>,
    /// Bytes of the queued events that are not state events.
    event_bytes: usize,
    state_events: usize,
    state_event_bytes: usize,
    /// Unreliable messages dropped because the game did not poll.
    dropped: u64,
}

#[derive(Debug)]
struct Waiting {
    event: Event,
    bytes: usize,
    may_be_dropped: bool,
}

impl Inbox {
    /// Queues an arrival. Returns whether the queue is so full that it must be processed at once.
    pub(super) fn arrive(&mut self, at: Instant, came: Came) -> bool {
        if let Came::Session(session::Event::Message(message)) | Came::Path(_, _, message) = &came {
            self.arrived_bytes += message.payload.len() + 64;
        }
        self.arrived.push_back(Arrived { at, came });
        self.arrived_bytes > ARRIVED_BYTES_MAX
    }

    /// Unreliable messages dropped because the game did not poll.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Counts an unreliable message that was dropped elsewhere.
    pub(super) fn count_dropped(&mut self) {
        self.dropped += 1;
    }

    /// Whether the game has received all events that were read.
    pub(super) fn is_given(&self) -> bool {
        self.events.is_empty()
    }

    /// Removes the oldest arrival.
    pub(super) fn next_arrived(&mut self) -> Option<Arrived> {
        let next = self.arrived.pop_front();
        if self.arrived.is_empty() {
            self.arrived_bytes = 0;
        }
        next
    }

    /// Queues an event that occurs once in the life of a room.
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(Waiting { event, bytes: 0, may_be_dropped: false });
    }

    /// Queues an event that must not be dropped and that peers can cause at will.
    ///
    /// # Errors
    /// As [`tell_message`](Self::tell_message).
    pub(super) fn tell_bounded(&mut self, event: Event, bytes: usize) -> Result<(), CloseReason> {
        self.tell_message(event, bytes, false)
    }

    /// Queues the events of entities that came and went.
    ///
    /// # Errors
    /// As [`tell_message`](Self::tell_message).
    pub(super) fn tell_entities(
        &mut self,
        despawned: impl IntoIterator<Item = EntityId>,
        spawned: impl IntoIterator<Item = EntityId>,
    ) -> Result<(), CloseReason> {
        let despawned = despawned.into_iter().map(|entity| Event::Despawned { entity });
        let spawned = spawned.into_iter().map(|entity| Event::Spawned { entity });
        despawned.chain(spawned).try_for_each(|event| self.tell_bounded(event, 0))
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`CloseReason::NotPolled`] if too many undroppable events wait.
    pub(super) fn tell_message(
        &mut self,
        event: Event,
        bytes: usize,
        may_be_dropped: bool,
    ) -> Result<(), CloseReason> {
        let bytes = bytes + 64;
        while self.event_bytes + bytes > EVENT_BYTES_MAX {
            let Some(at) = self.events.iter().position(|waiting| waiting.may_be_dropped) else {
                return Err(CloseReason::NotPolled);
            };
            let gone = self.events.remove(at).expect("the index was just found");
            self.event_bytes -= gone.bytes;
            self.dropped += 1;
        }
        self.event_bytes += bytes;
        self.events.push_back(Waiting { event, bytes, may_be_dropped });
        Ok(())
    }

    /// Queues a state event, merging the oldest ones if the game has not polled for long. `exists` says
    /// whether the state has a key.
    pub(super) fn tell_state(&mut self, update: StateUpdate, exists: impl Fn(&str) -> bool) {
        let bytes = names_bytes(&update);
        self.events.push_back(Waiting { event: Event::State(update), bytes, may_be_dropped: false });
        self.state_events += 1;
        self.state_event_bytes += bytes;
        let is_over = |inbox: &Inbox| {
            inbox.state_events > STATE_EVENTS_MAX || inbox.state_event_bytes > STATE_EVENT_BYTES_MAX
        };
        while is_over(self) && self.state_events > 1 {
            self.join_oldest(&exists);
        }
    }

    /// Merges the two oldest state events.
    fn join_oldest(&mut self, exists: &impl Fn(&str) -> bool) {
        let is_state = |waiting: &Waiting| matches!(waiting.event, Event::State(_));
        let Some(at) = self.events.iter().position(is_state) else { return };
        let Some(Waiting { event: Event::State(oldest), bytes, .. }) = self.events.remove(at) else { return };
        self.state_events -= 1;
        self.state_event_bytes -= bytes;
        let next = self.events.range_mut(at..).find(|waiting| is_state(waiting));
        let Some(Waiting { event: Event::State(next), bytes, .. }) = next else { return };
        self.state_event_bytes -= *bytes;
        // Keys that were set and removed in between are left out: otherwise a host that keeps using fresh
        // keys would make the list grow without bound.
        let older = oldest.changed.into_iter().filter(|key| exists(key));
        let changed: OrderedSet<String> = older.chain(next.changed.drain(..)).collect();
        next.changed = changed.into_iter().collect();
        *bytes = names_bytes(next);
        self.state_event_bytes += *bytes;
    }

    /// Removes the oldest event.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        let Waiting { event, bytes, .. } = self.events.pop_front()?;
        if matches!(event, Event::State(_)) {
            self.state_events -= 1;
            self.state_event_bytes -= bytes;
        } else {
            self.event_bytes -= bytes;
        }
        Some(event)
    }
}

/// Memory of the names of the changed keys, list overhead included.
fn names_bytes(update: &StateUpdate) -> usize {
    update.changed.iter().map(|key| key.len() + std::mem::size_of::<String>()).sum()
}

#[cfg(test)]
mod tests;
