//! What waits for the game: bounded, whatever the game does.

use super::comeback::LinkNews;
use super::event::{Event, StateUpdate};
use parlor_proto::session;
use parlor_proto::{CloseReason, Instant, MemberId, PathId};
use std::collections::{BTreeSet, VecDeque};

/// Bytes of messages that wait unread before they are turned into state and events although the game has not asked.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;
/// Bytes of events that may wait for the game.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// State events that may wait; beyond it the oldest are told as one.
const STATE_EVENTS_MAX: usize = 64;
/// Bytes of names of keys in the state events that wait; beyond it the oldest are told as one, too.
const STATE_EVENT_BYTES_MAX: usize = 256 * 1024;

/// Something that a driver brought and the game has not asked for.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) at: Instant,
    pub(super) came: Came,
}

/// What it is.
#[derive(Debug)]
pub(super) enum Came {
    /// A session says so.
    Session(session::Event),
    /// It came over a path, from the member at its other end.
    Path(MemberId, PathId, session::Message),
    /// Something became of the connection.
    Link(LinkNews),
}

/// Events, and what will become events with the next poll.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    arrived: VecDeque<Arrived>,
    arrived_bytes: usize,
    events: VecDeque<Waiting>,
    /// Of events that are not of the state.
    event_bytes: usize,
    state_events: usize,
    state_event_bytes: usize,
    /// Unreliable messages that were dropped because the game did not take them.
    pub(super) dropped: u64,
}

#[derive(Debug)]
struct Waiting {
    event: Event,
    bytes: usize,
    may_be_dropped: bool,
}

impl Inbox {
    /// Takes in what came. Says whether so much waits that it must be read now.
    pub(super) fn arrive(&mut self, at: Instant, came: Came) -> bool {
        if let Came::Session(session::Event::Message(message)) | Came::Path(_, _, message) = &came {
            self.arrived_bytes += message.payload.len() + 64;
        }
        self.arrived.push_back(Arrived { at, came });
        self.arrived_bytes > ARRIVED_BYTES_MAX
    }

    /// Whether the game was given all that was read.
    pub(super) fn is_given(&self) -> bool {
        self.events.is_empty()
    }

    /// The next of what came.
    pub(super) fn next_arrived(&mut self) -> Option<Arrived> {
        let next = self.arrived.pop_front();
        if self.arrived.is_empty() {
            self.arrived_bytes = 0;
        }
        next
    }

    /// Queues an event of which there is but one in the life of a room.
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(Waiting { event, bytes: 0, may_be_dropped: false });
    }

    /// Queues an event that must not be missed and that others can cause at will.
    ///
    /// # Errors
    /// As [`tell_message`](Self::tell_message).
    pub(super) fn tell_bounded(&mut self, event: Event, bytes: usize) -> Result<(), CloseReason> {
        self.tell_message(event, bytes, false)
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`CloseReason::NotPolled`] if too many wait that may not be dropped.
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

    /// Queues word of the state. If the game has not asked for long, the oldest become one; `exists` tells whether the
    /// state has a key.
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

    /// Makes one state event of the two oldest.
    fn join_oldest(&mut self, exists: &impl Fn(&str) -> bool) {
        let is_state = |waiting: &Waiting| matches!(waiting.event, Event::State(_));
        let Some(at) = self.events.iter().position(is_state) else { return };
        let Some(Waiting { event: Event::State(oldest), bytes, .. }) = self.events.remove(at) else { return };
        self.state_events -= 1;
        self.state_event_bytes -= bytes;
        let next = self.events.range_mut(at..).find(|waiting| is_state(waiting));
        let Some(Waiting { event: Event::State(next), bytes, .. }) = next else { return };
        self.state_event_bytes -= *bytes;
        // Keys that came and went meanwhile are left out: a host that uses ever new ones would make it grow for ever.
        let older = oldest.changed.into_iter().filter(|key| exists(key));
        let changed: BTreeSet<String> = older.chain(next.changed.drain(..)).collect();
        next.changed = changed.into_iter().collect();
        *bytes = names_bytes(next);
        self.state_event_bytes += *bytes;
    }

    /// The next event for the game.
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

/// Bytes that the names of the changed keys hold, each with what keeps it in the list.
fn names_bytes(update: &StateUpdate) -> usize {
    update.changed.iter().map(|key| key.len() + std::mem::size_of::<String>()).sum()
}

#[cfg(test)]
mod tests;
