//! Host migration: the host role passes to another member, perhaps to this one.
//!
//! A named member becomes an *heir*: it collects the checkpoint from the hub and the inputs for the
//! authority. It takes no steps; its reads keep the last known state. With the whole checkpoint it becomes
//! the host. A host that hears that another was named becomes a member without state; its later writes are
//! discarded. A process that is welcomed as the authority of a room that it did not open is its own heir: it has
//! nothing of the world, and is named next.
//!
//! In a room that pauses, no member takes steps from the naming until the new host is heard. The new host makes
//! up for the steps before the pause, and nobody for those of the pause.

mod deferred_acks;
mod hand_over;

use deferred_acks::DeferredAcks;
use hand_over::HandOver;

use crate::error::misbehaved;
use crate::state::Host;
use bytes::Bytes;
use parlor_proto::session;
use parlor_proto::wire::control::Handover;
use parlor_proto::wire::envelope::{Downward, Sender};
use parlor_proto::wire::replica::Checkpoint;
use parlor_proto::{ChannelId, CloseReason, Epoch, Instant, MemberId, PathId, Tick, TickRate};
use parlor_sync::schema::Schema;
use parlor_sync::world::{IdsUsed, Replica};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of messages held for an heir at most. A hub sends less in that time.
const HELD_BYTES_MAX: usize = 1024 * 1024;
/// Overhead counted for each held message.
const HELD_MESSAGE_BYTES: usize = 64;

/// The member that sent a message of the game.
fn sender_of(message: &session::Message) -> Option<MemberId> {
    match Downward::decode(message.payload.clone()).ok()?.from {
        Sender::Member(member) => Some(member),
        _ => None,
    }
}

/// State of a host migration.
#[derive(Debug, Default)]
pub(crate) struct Migration {
    /// The checkpoint as far as it came, and its epoch. It may come before the word that names this member.
    checkpoint: Option<(Epoch, Box<Replica>)>,
    /// The handover that makes this process the host.
    heir: Option<Handover>,
    /// Whether this process has the authority's seat, and waits to be named.
    is_back: bool,
    /// The host's own wish to hand its part over.
    hand_over: HandOver,
    /// Messages for the host's game.
    held: Vec<(Held, Instant)>,
    held_bytes: usize,
    /// Received messages that the host has not acknowledged.
    deferred_acks: DeferredAcks,
    /// Whether steps pause until the new authority is heard.
    pauses: bool,
    /// Since when the new authority is awaited; `None` once it is heard.
    awaited_since: Option<Instant>,
    has_completed: bool,
    previous: Option<MemberId>,
    new: Option<MemberId>,
    /// State of older epochs belongs to an ended stream.
    follows_from: Option<Epoch>,
}

/// A held message, and the way it came.
#[derive(Debug)]
pub(crate) enum Held {
    Hub(session::Message),
    Path(MemberId, PathId, session::Message),
}

impl Migration {
    /// No migration yet. `pauses` says whether steps pause in one.
    pub(crate) fn new(pauses: bool) -> Self {
        Migration { pauses, ..Migration::default() }
    }

    /// The migration of a process that has the authority's seat since `at`, but not its world.
    pub(crate) fn of_own_heir(pauses: bool, at: Instant) -> Self {
        Migration { is_back: true, awaited_since: Some(at), ..Migration::new(pauses) }
    }

    /// Goes on as before in a room that another hub has reopened: that one knows of no hand-over, and numbers messages
    /// from their beginning.
    pub(crate) fn reopened(&mut self) {
        self.hand_over.end();
        self.forget_acks();
        self.take_held();
        self.checkpoint = None;
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.awaited_since.is_some()
    }

    /// Whether steps pause in a migration.
    pub(crate) fn pauses(&self) -> bool {
        self.pauses
    }

    /// Whether no step is due. An heir takes none in any case: it lacks the world.
    pub(crate) fn holds_steps(&self) -> bool {
        self.is_heir() || self.hand_over.is_sealed() || self.pauses && self.is_under_way()
    }

    /// Counts the wait for the new authority from `at` on: this process was away and could not hear it.
    pub(crate) fn await_anew(&mut self, at: Instant) {
        self.awaited_since = self.awaited_since.map(|_| at);
    }

    /// Whether the new authority is awaited for longer than `grace`.
    pub(crate) fn is_overdue(&self, grace: Duration, now: Instant) -> bool {
        self.awaited_since.is_some_and(|since| now.saturating_since(since) > grace)
    }

    pub(crate) fn has_completed(&self) -> bool {
        self.has_completed
    }

    /// The previous and the new host of the last migration.
    pub(crate) fn hosts(&self) -> (Option<MemberId>, Option<MemberId>) {
        (self.previous, self.new)
    }

    /// Whether a packet of state belongs to a stream that ended.
    pub(crate) fn is_old(&self, epoch: Epoch) -> bool {
        self.follows_from.is_some_and(|from| epoch < from)
    }

    /// Whether this process is named as host but is not the host yet.
    pub(crate) fn is_heir(&self) -> bool {
        self.heir.is_some() || self.is_back
    }

    /// Notes that another authority is named. `heir` is set if it is this process.
    pub(crate) fn named(
        &mut self,
        previous: Option<MemberId>,
        new: MemberId,
        heir: Option<Handover>,
        at: Instant,
    ) {
        (self.previous, self.new, self.heir) = (previous, Some(new), heir);
        self.is_back = false;
        self.hand_over.end();
        self.awaited_since.get_or_insert(at);
    }

    /// Turns this process from the host into a member, from `epoch` on.
    pub(crate) fn follow_from(&mut self, epoch: Epoch) {
        self.follows_from = Some(epoch);
    }

    /// Notes that the new authority was heard. Returns whether a migration was under way.
    pub(crate) fn heard(&mut self) -> bool {
        let was_under_way = self.awaited_since.take().is_some();
        self.has_completed |= was_under_way;
        was_under_way
    }

    /// Whether a message that comes over a path, or in place of one, waits behind a held one. An heir holds
    /// everything back.
    pub(crate) fn holds_before(&self, from: MemberId, channel: ChannelId) -> bool {
        let is_before = |held: &Held| match held {
            Held::Hub(message) => message.channel == channel && sender_of(message) == Some(from),
            Held::Path(sender, _, message) => message.channel == channel && *sender == from,
        };
        let mut held = self.held.iter().map(|(held, _)| held);
        if self.is_heir() { held.next().is_some() } else { held.any(is_before) }
    }

    /// Holds a message of `bytes`. Returns false if there is no room.
    pub(crate) fn keep(&mut self, bytes: usize, held: impl FnOnce() -> Held, at: Instant) -> bool {
        let bytes = self.held_bytes + bytes + HELD_MESSAGE_BYTES;
        let has_room = bytes <= HELD_BYTES_MAX;
        if has_room {
            self.held_bytes = bytes;
            self.held.push((held(), at));
        }
        has_room
    }

    /// Takes all held messages with their arrival times.
    pub(crate) fn take_held(&mut self) -> Vec<(Held, Instant)> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// Takes in a part of a checkpoint, in a room at the epoch `current`. A part of an epoch in which this process
    /// does not become the host is ignored.
    ///
    /// # Errors
    /// [`CloseReason::Misbehaved`] if it is malformed.
    pub(crate) fn take_part(
        &mut self,
        part: Bytes,
        current: Epoch,
        (schema, rate): (&Arc<Schema>, TickRate),
    ) -> Result<(), CloseReason> {
        let bad = |error: &dyn std::error::Error| misbehaved("a checkpoint", error);
        let Checkpoint { epoch, packet } = Checkpoint::decode(part).map_err(|error| bad(&error))?;
        let is_named = self.heir.is_some_and(|heir| heir.epoch == epoch);
        if epoch < current || epoch == current && !is_named {
            return Ok(());
        }
        self.checkpoint.take_if(|(of, _)| *of != epoch);
        let begin = || (epoch, Box::new(Replica::of_everything(Arc::clone(schema), rate)));
        let (_, replica) = self.checkpoint.get_or_insert_with(begin);
        replica.apply(packet).map_err(|error| bad(&error))?;
        Ok(())
    }

    /// Ends the wait of an heir that has the whole checkpoint: returns the host's state that it begins with, and
    /// the tick after which it goes on.
    ///
    /// # Errors
    /// [`CloseReason::Misbehaved`] if the checkpoint and the handover contradict each other.
    pub(crate) fn succeed(
        &mut self,
        schema: &Arc<Schema>,
        rate: TickRate,
    ) -> Result<Option<(Host, Option<Tick>)>, CloseReason> {
        let Some(handover) = self.heir else { return Ok(None) };
        let Some(replica) = self.take_checkpoint(&handover, schema, rate) else { return Ok(None) };
        let used = IdsUsed { slots: handover.slots, generation: handover.generation };
        let host = Host::succeed(replica, used, rate, handover.epoch);
        let host = host.map_err(|error| misbehaved("a checkpoint", &error))?;
        self.heir = None;
        Ok(Some((host, handover.tick)))
    }

    /// Takes the checkpoint if it is complete.
    fn take_checkpoint(
        &mut self,
        handover: &Handover,
        schema: &Arc<Schema>,
        rate: TickRate,
    ) -> Option<Replica> {
        if handover.tick.is_none() {
            return Some(Replica::of_everything(Arc::clone(schema), rate));
        }
        let is_whole = |(epoch, replica): &mut (Epoch, Box<Replica>)| {
            *epoch == handover.epoch && replica.settled() == handover.tick
        };
        self.checkpoint.take_if(is_whole).map(|(_, replica)| *replica)
    }
}

/// A planned hand-over by this process, the host.
impl Migration {
    pub(crate) fn hand_over(&self) -> &HandOver {
        &self.hand_over
    }

    pub(crate) fn hand_over_mut(&mut self) -> &mut HandOver {
        &mut self.hand_over
    }
}

/// Acknowledgements that wait until the hub has what came of the messages.
impl Migration {
    /// Notes a received message of `bytes` that the game has not read. Returns whether its acknowledgement may
    /// be deferred.
    pub(crate) fn defer_ack(&mut self, bytes: usize) -> bool {
        self.deferred_acks.came(bytes)
    }

    /// Notes that every message of the hub's below number `received` is queued as an event or held.
    pub(crate) fn has_read(&mut self, received: u64) {
        let held = self.held.iter().filter_map(|(held, _)| match held {
            Held::Hub(message) => message.number.map(|number| (number, message.payload.len())),
            Held::Path(..) => None,
        });
        self.deferred_acks.has_read(received, held);
    }

    /// The exclusive upper bound of the messages that the game has read; `None` if no acknowledgement is
    /// owed.
    pub(crate) fn read(&self) -> Option<u64> {
        self.deferred_acks.read()
    }

    /// Notes that the state of `tick` records every message below `number` as consumed.
    pub(crate) fn recorded(&mut self, number: u64, tick: Tick) {
        self.deferred_acks.recorded(number, tick);
    }

    /// Notes that the hub has all of the state of `tick`. Returns the new exclusive upper bound to
    /// acknowledge, if it grew: see [`DeferredAcks::release`].
    pub(crate) fn release(&mut self, tick: Tick) -> Option<Option<u64>> {
        self.deferred_acks.release(tick)
    }

    /// Forgets the deferred acknowledgements: another process is the host.
    pub(crate) fn forget_acks(&mut self) {
        self.deferred_acks = DeferredAcks::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_proto::channel;
    use parlor_proto::wire::envelope::Downward;

    #[test]
    fn threat_25_what_comes_over_a_path_waits_behind_what_its_sender_said_before_on_that_channel() {
        let [one, other] = [MemberId(1), MemberId(2)];
        let sent =
            Downward { from: Sender::Member(one), order: None, authority_of: None, payload: Bytes::new() };
        let message = session::Message {
            channel: channel::MESSAGE_ORDERED,
            key: 0,
            number: Some(7),
            tick: None,
            epoch: Epoch(0),
            payload: sent.encode(),
        };
        let mut migration = Migration::new(false);
        assert!(!migration.holds_before(one, channel::MESSAGE_ORDERED));
        assert!(migration.keep(1, || Held::Hub(message.clone()), Instant::ZERO));
        assert!(migration.holds_before(one, channel::MESSAGE_ORDERED));
        assert!(!migration.holds_before(other, channel::MESSAGE_ORDERED), "another sender is not held up");
        assert!(!migration.holds_before(one, channel::MESSAGE_UNORDERED), "nor is another channel");
        assert!(migration.keep(1, || Held::Path(other, PathId(1), message), Instant::ZERO));
        assert!(migration.holds_before(other, channel::MESSAGE_ORDERED));
    }
}
