//! The host's part passes to another member, perhaps to this one.
//!
//! A member that is named becomes an *heir*: it collects the checkpoint that the hub sends it, and inputs that come for the authority, and
//! takes no steps; what it reads is what it knew. With the whole checkpoint it is the host. A host that hears that another was
//! named is a member that knows nothing yet: what it wrote since is nobody's.

use super::event::Event;
use super::inbox::Inbox;
use super::info::ReasonCode;
use super::overlay::Overlay;
use super::pace::Pace;
use super::reading::misbehaved;
use super::replay::Replay;
use super::resimulation::Resimulation;
use super::rewind::Rewinds;
use super::room::{Joined, RoomCore};
use super::shared::{Host, Shared};
use super::unhandled::Unhandled;
use bytes::Bytes;
use parlor_proto::session::{self, Outgoing};
use parlor_proto::wire::control::{Handover, ToHub};
use parlor_proto::wire::handshake::Authority;
use parlor_proto::wire::replica::Checkpoint;
use parlor_proto::{CloseReason, EntityId, Epoch, Instant, MemberId, PathId, Tick, channel, limits};
use parlor_sync::limits::RESIMULATE_TICKS_MAX;
use parlor_sync::schema::Schema;
use parlor_sync::world::{IdsUsed, Replica};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of messages that wait for an heir to become the host, at most. A hub sends it less in that time.
const HELD_BYTES_MAX: usize = 1024 * 1024;
/// What each of them counts beside its own.
const HELD_MESSAGE_BYTES: usize = 64;

/// How the host's part passes on.
#[derive(Debug, Default)]
pub(super) struct Migration {
    /// What the hub gives this member, because it is named under an epoch, or will hear of it in a moment.
    checkpoint: Option<(Epoch, Box<Replica>)>,
    /// Under what this process becomes the host.
    heir: Option<Handover>,
    /// Messages that are for the host's game.
    held: Vec<(Held, Instant)>,
    held_bytes: usize,
    /// What the host was told and has not acknowledged.
    pub(super) unhandled: Unhandled,
    /// Whether the new authority was not heard yet.
    is_under_way: bool,
    has_completed: bool,
    previous: Option<MemberId>,
    new: Option<MemberId>,
    /// What came under an older epoch was another stream's.
    follows_from: Option<Epoch>,
}

/// A message that waits, and which way it came.
#[derive(Debug)]
enum Held {
    Hub(session::Message),
    Path(MemberId, PathId, session::Message),
}

impl Migration {
    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    pub(super) fn has_completed(&self) -> bool {
        self.has_completed
    }

    /// Whose the part was before, and whose it became, the last time.
    pub(super) fn hosts(&self) -> (Option<MemberId>, Option<MemberId>) {
        (self.previous, self.new)
    }

    /// Whether a packet of state is of a stream that ended.
    pub(super) fn is_old(&self, epoch: Epoch) -> bool {
        self.follows_from.is_some_and(|from| epoch < from)
    }

    /// Whether this process is named and is not the host yet.
    pub(super) fn is_heir(&self) -> bool {
        self.heir.is_some()
    }
}

impl RoomCore {
    /// Ends the room for everybody, for the host; anybody else leaves. In a room where no other member takes the host's part
    /// its [leaving](Self::leave) does the same.
    pub fn stop(&mut self, now: Instant) {
        let reason =
            if self.migrates() && self.is_host() { CloseReason::HostLeft } else { CloseReason::Left };
        self.break_off(reason, now);
    }

    /// Whether another member takes the part of this host: it opened the room so, or became the host itself.
    pub(super) fn migrates(&self) -> bool {
        let has_migrated = self.joined.as_ref().is_some_and(|joined| joined.welcome.epoch > Epoch(0));
        self.options.host_silence.is_some() || has_migrated
    }

    /// The hub names another authority.
    pub(super) fn read_handover(&mut self, handover: Handover, at: Instant) -> Result<(), CloseReason> {
        let Some(joined) = &self.joined else { return Ok(()) };
        let Handover { epoch, member, .. } = handover;
        if epoch <= joined.welcome.epoch {
            return Ok(());
        }
        let me = joined.welcome.member;
        let previous = joined.welcome.authority.member();
        self.last_reason = Some(ReasonCode::HostMigrating);
        self.end_paths("another player is named host", at);
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return Ok(()) };
        (joined.welcome.epoch, joined.welcome.authority) = (epoch, Authority::Member(member));
        session.set_epoch(epoch);
        joined.players.set_host(member);
        let migration = &mut joined.migration;
        (migration.previous, migration.new, migration.is_under_way) = (previous, Some(member), true);
        migration.heir = (member == me).then_some(handover);
        let is_me = member == me;
        self.inbox.tell_bounded(Event::HostMigration { previous, new: member, is_me }, 0)?;
        if previous == Some(me) && !is_me {
            joined.migration.follows_from = Some(epoch);
            joined.forget_world(&mut self.inbox)?;
            joined.shared.predict(&self.options, me);
            let follow = ToHub::Follow { epoch };
            // If so much waits that it cannot be said, the session is about to end as too slow.
            let _: Result<(), session::SendError> =
                session.send(Outgoing::new(channel::CONTROL, follow.encode()));
            self.wants_driver = true;
        }
        joined.begin_anew(handover.tick);
        if is_me {
            return self.inherit(at);
        }
        joined.migration.unhandled = Unhandled::default();
        session.hold_acks_from(None);
        self.give_held(at)
    }

    /// The new authority goes on with the state.
    pub(super) fn read_goes_on(&mut self, epoch: Epoch) -> Result<(), CloseReason> {
        match &mut self.joined {
            Some(joined) if joined.welcome.epoch == epoch => joined.host_heard(&mut self.inbox),
            _ => Ok(()),
        }
    }

    /// A part of the checkpoint came.
    pub(super) fn read_checkpoint(&mut self, payload: Bytes, at: Instant) -> Result<(), CloseReason> {
        let bad = |error: &dyn std::error::Error| misbehaved("a checkpoint", error);
        let Checkpoint { epoch, packet } = Checkpoint::decode(payload).map_err(|error| bad(&error))?;
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let is_named = joined.migration.heir.is_some_and(|heir| heir.epoch == epoch);
        if epoch < joined.welcome.epoch || epoch == joined.welcome.epoch && !is_named {
            return Ok(());
        }
        let (schema, rate) = (Arc::clone(joined.shared.world().schema()), joined.welcome.tick_rate);
        let checkpoint = &mut joined.migration.checkpoint;
        if checkpoint.as_ref().is_none_or(|(of, _)| *of != epoch) {
            *checkpoint = Some((epoch, Box::new(Replica::of_everything(schema, rate))));
        }
        if let Some((_, replica)) = checkpoint {
            replica.apply(packet).map_err(|error| bad(&error))?;
        }
        self.inherit(at)
    }

    /// Becomes the host, if it is to and has all of the checkpoint.
    fn inherit(&mut self, at: Instant) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let Some(handover) = joined.migration.heir else { return Ok(()) };
        let schema = Arc::clone(joined.shared.world().schema());
        let Some(replica) = joined.migration.take_checkpoint(&handover, schema, joined.welcome.tick_rate)
        else {
            return Ok(());
        };
        let used = IdsUsed { slots: handover.slots, generation: handover.generation };
        let (rate, epoch) = (joined.welcome.tick_rate, handover.epoch);
        let host =
            Host::succeed(replica, used, rate, epoch).map_err(|error| misbehaved("a checkpoint", &error))?;
        let before: BTreeSet<EntityId> = joined.shared.entities().collect();
        joined.shared = Shared::Host(Box::new(host));
        let after: BTreeSet<EntityId> = joined.shared.entities().collect();
        for entity in before.difference(&after) {
            self.inbox.tell_bounded(Event::Despawned { entity: *entity }, 0)?;
        }
        for entity in after.difference(&before) {
            self.inbox.tell_bounded(Event::Spawned { entity: *entity }, 0)?;
        }
        joined.migration.heir = None;
        joined.pace = Pace::of_host(&self.options, rate);
        joined.resimulation = Resimulation::new(&self.options);
        let room_time = joined.simulation_time(at);
        joined.ticker.go_on(handover.tick, room_time, RESIMULATE_TICKS_MAX);
        joined.label = joined.ticker.tick();
        joined.host_heard(&mut self.inbox)?;
        self.wants_driver = true;
        self.give_held(at)
    }

    /// Whether this process is who a message is for: `authority_of` says under which epoch it is for the authority, if not for the
    /// member itself. What was for an authority that is no more went to the next one, too.
    pub(super) fn is_meant(&self, authority_of: Option<Epoch>) -> bool {
        let epoch = self.joined.as_ref().map(|joined| joined.welcome.epoch);
        authority_of.is_none_or(|of| Some(of) == epoch)
    }

    /// Keeps what is for the host's game until this process is the host, or knows that it is not; gives it back if there is
    /// nothing to wait for.
    pub(super) fn hold(
        &mut self,
        message: session::Message,
        at: Instant,
    ) -> Result<Option<session::Message>, CloseReason> {
        let is_early = self.is_early(&message);
        let is_reliable =
            self.options.channels.get(message.channel).is_some_and(|row| row.lane.is_reliable());
        let joined = self.joined.as_mut().filter(|joined| {
            let is_behind = || is_reliable && is_of_game(&message) && joined.migration.holds_of_path();
            is_early || joined.awaits_host(&message) || is_behind()
        });
        let Some(joined) = joined else { return Ok(Some(message)) };
        if joined.migration.keep(message.payload.len(), || Held::Hub(message), at) {
            return Ok(None);
        }
        if is_reliable {
            return Err(CloseReason::NotPolled);
        }
        self.inbox.dropped += 1;
        Ok(None)
    }

    /// The same for a reliable message that came over a path, or instead of one: where anything waits it waits behind it, since its
    /// sender may have sent that before, and what comes later waits behind it.
    pub(super) fn hold_of_path(
        &mut self,
        from: MemberId,
        id: PathId,
        message: session::Message,
        at: Instant,
    ) -> Result<Option<session::Message>, CloseReason> {
        let joined = self.joined.as_mut().filter(|joined| !joined.migration.held.is_empty());
        let Some(joined) = joined else { return Ok(Some(message)) };
        let is_kept = joined.migration.keep(message.payload.len(), || Held::Path(from, id, message), at);
        if is_kept { Ok(None) } else { Err(CloseReason::NotPolled) }
    }

    /// Gives the game what waited.
    pub(super) fn give_held(&mut self, now: Instant) -> Result<(), CloseReason> {
        let Some(joined) = self.joined.as_mut().filter(|joined| !joined.migration.held.is_empty()) else {
            return Ok(());
        };
        joined.migration.held_bytes = 0;
        for (held, at) in std::mem::take(&mut joined.migration.held) {
            match held {
                Held::Hub(message) => self.read_message(message, at.min(now))?,
                Held::Path(from, id, message) => self.read_path(from, id, message, at.min(now))?,
            }
        }
        Ok(())
    }
}

impl Migration {
    fn holds_of_path(&self) -> bool {
        self.held.iter().any(|(held, _)| matches!(held, Held::Path(..)))
    }

    /// Keeps a message of so many bytes, if there is room.
    fn keep(&mut self, bytes: usize, held: impl FnOnce() -> Held, at: Instant) -> bool {
        let bytes = self.held_bytes + bytes + HELD_MESSAGE_BYTES;
        let has_room = bytes <= HELD_BYTES_MAX;
        if has_room {
            self.held_bytes = bytes;
            self.held.push((held(), at));
        }
        has_room
    }

    /// The checkpoint, if all of it is there.
    fn take_checkpoint(
        &mut self,
        handover: &Handover,
        schema: Arc<Schema>,
        rate: parlor_proto::TickRate,
    ) -> Option<Replica> {
        if handover.tick.is_none() {
            return Some(Replica::of_everything(schema, rate));
        }
        let is_whole = |(epoch, replica): &mut (Epoch, Box<Replica>)| {
            *epoch == handover.epoch && replica.settled() == handover.tick
        };
        self.checkpoint.take_if(is_whole).map(|(_, replica)| *replica)
    }
}

/// Whether a message becomes an event for the game.
pub(super) fn is_of_game(message: &session::Message) -> bool {
    let channel = message.channel;
    channel == channel::ACTIONS
        || channel.0 >= limits::APP_CHANNEL_FIRST
        || (channel::MESSAGE_ORDERED.0..=channel::MESSAGE_SEQUENCED.0).contains(&channel.0)
}

impl Joined {
    /// Whether a message has to wait: for this process to be the host, or to know who is.
    fn awaits_host(&self, message: &session::Message) -> bool {
        let is_open = self.migration.is_heir() || message.epoch > self.welcome.epoch;
        is_open && is_of_game(message)
    }

    /// Whoever decided, and what was drawn and run ahead of it, is over: what is state of ticks beyond `tick` is another's.
    fn begin_anew(&mut self, tick: Option<Tick>) {
        self.replay = Replay::default();
        self.overlay = Overlay::default();
        self.rewinds = Rewinds::default();
        self.rollback = None;
        if let Shared::Member(member) = &mut self.shared {
            member.await_transfer(tick);
        }
    }

    /// Nothing is known of the world any more, nor of how this process simulates it.
    fn forget_world(&mut self, inbox: &mut Inbox) -> Result<(), CloseReason> {
        for entity in self.shared.entities() {
            inbox.tell_bounded(Event::Despawned { entity }, 0)?;
        }
        let schema = Arc::clone(self.shared.world().schema());
        self.shared = Shared::new(false, self.welcome.member, schema, self.welcome.tick_rate);
        self.pace = Pace::default();
        self.resimulation = None;
        Ok(())
    }

    /// The new authority was heard.
    pub(super) fn host_heard(&mut self, inbox: &mut Inbox) -> Result<(), CloseReason> {
        if !std::mem::take(&mut self.migration.is_under_way) {
            return Ok(());
        }
        self.migration.has_completed = true;
        match self.welcome.authority.member() {
            Some(host) => inbox.tell_bounded(Event::HostChanged { host }, 0),
            None => Ok(()),
        }
    }
}
