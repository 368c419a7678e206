//! Host migration: the host role passes to another member, perhaps to this one.

use super::{Joined, RoomCore};
use crate::error::misbehaved;
use crate::event::Event;
use crate::inbox::Inbox;
use crate::info::ReasonCode;
use crate::message::is_of_game;
use crate::migration::{DeferredAcks, Held};
use crate::simulation::{Overlay, Pace, Replay, Resimulation, Rewinds};
use crate::state::{Host, SharedState};
use bytes::Bytes;
use parlor_proto::session::{self, Message, Outgoing, Session};
use parlor_proto::wire::control::{Handover, ToHub};
use parlor_proto::wire::handshake::Authority;
use parlor_proto::wire::replica::Checkpoint;
use parlor_proto::{CloseReason, EntityId, Epoch, Instant, MemberId, PathId, Tick, channel};
use parlor_sync::keyed::Taken;
use parlor_sync::limits::RESIMULATE_TICKS_MAX;
use parlor_sync::world::{IdsUsed, Replica};
use std::collections::BTreeSet;
use std::sync::Arc;

impl RoomCore {
    /// Ends the room for all members, at the host; another member only leaves. In a room without migration
    /// the host's [leaving](Self::leave) also ends it.
    pub fn stop(&mut self, now: Instant) {
        let reason =
            if self.migrates() && self.is_host() { CloseReason::HostLeft } else { CloseReason::Left };
        self.break_off(reason, now);
    }

    /// Whether another member can take over from this host: the room was opened so, or this process became
    /// the host by migration.
    pub(super) fn migrates(&self) -> bool {
        let has_migrated = self.joined.as_ref().is_some_and(|joined| joined.welcome.epoch > Epoch(0));
        self.options.host_timeout.is_some() || has_migrated
    }

    /// Handles the hub's choice of another authority.
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
        let is_me = member == me;
        joined.migration.named(previous, member, is_me.then_some(handover));
        self.inbox.tell_bounded(Event::HostMigration { previous, new: member, is_me }, 0)?;
        if previous == Some(me) && !is_me {
            joined.migration.follow_from(epoch);
            joined.forget_world(&mut self.inbox)?;
            joined.shared.predict(&self.options, me);
            let follow = ToHub::Follow { epoch };
            // If the queue is too full for it, the session is about to end as too slow.
            let _: Result<(), session::SendError> =
                session.send(Outgoing::new(channel::CONTROL, follow.encode()));
            self.wants_driver = true;
        }
        joined.begin_anew(handover.tick);
        if is_me {
            return self.inherit(at);
        }
        joined.migration.deferred_acks = DeferredAcks::default();
        session.hold_acks_from(None);
        self.give_held(at)
    }

    /// Notes that the new authority continues the state.
    pub(super) fn read_goes_on(&mut self, epoch: Epoch) -> Result<(), CloseReason> {
        match &mut self.joined {
            Some(joined) if joined.welcome.epoch == epoch => joined.host_heard(&mut self.inbox),
            _ => Ok(()),
        }
    }

    /// Takes in a part of the checkpoint.
    pub(super) fn read_checkpoint(&mut self, payload: Bytes, at: Instant) -> Result<(), CloseReason> {
        let bad = |error: &dyn std::error::Error| misbehaved("a checkpoint", error);
        let Checkpoint { epoch, packet } = Checkpoint::decode(payload).map_err(|error| bad(&error))?;
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let is_named = joined.migration.heir().is_some_and(|heir| heir.epoch == epoch);
        if epoch < joined.welcome.epoch || epoch == joined.welcome.epoch && !is_named {
            return Ok(());
        }
        let (schema, rate) = (Arc::clone(joined.shared.world().schema()), joined.welcome.tick_rate);
        let replica = joined.migration.checkpoint(epoch, || Replica::of_everything(schema, rate));
        replica.apply(packet).map_err(|error| bad(&error))?;
        self.inherit(at)
    }

    /// Becomes the host, if this process is the heir and has the whole checkpoint.
    fn inherit(&mut self, at: Instant) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let Some(handover) = joined.migration.heir() else { return Ok(()) };
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
        joined.shared = SharedState::Host(Box::new(host));
        let after: BTreeSet<EntityId> = joined.shared.entities().collect();
        for entity in before.difference(&after) {
            self.inbox.tell_bounded(Event::Despawned { entity: *entity }, 0)?;
        }
        for entity in after.difference(&before) {
            self.inbox.tell_bounded(Event::Spawned { entity: *entity }, 0)?;
        }
        joined.migration.inherited();
        joined.pace = Pace::of_host(&self.options, rate);
        joined.resimulation = Resimulation::new(&self.options);
        let room_time = joined.simulation_time(at);
        joined.ticker.go_on(handover.tick, room_time, RESIMULATE_TICKS_MAX);
        joined.label = joined.ticker.tick();
        joined.host_heard(&mut self.inbox)?;
        self.wants_driver = true;
        self.give_held(at)
    }

    /// Whether a message is for this process. `authority_of` is the epoch of the addressed authority; `None`
    /// for a message to the member itself. Messages to a previous authority went to the next one, too.
    pub(super) fn is_meant(&self, authority_of: Option<Epoch>) -> bool {
        let epoch = self.joined.as_ref().map(|joined| joined.welcome.epoch);
        authority_of.is_none_or(|of| Some(of) == epoch)
    }

    /// Holds a message for the host's game until this process is the host, or knows that it is not. Returns
    /// it if there is nothing to wait for.
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

    /// Holds a reliable message that came over a path, or in place of one. It waits behind any held message,
    /// since its sender may have sent that one earlier. Later messages wait behind it.
    pub(super) fn hold_of_path(
        &mut self,
        from: MemberId,
        id: PathId,
        message: session::Message,
        at: Instant,
    ) -> Result<Option<session::Message>, CloseReason> {
        let joined = self.joined.as_mut().filter(|joined| joined.migration.is_holding());
        let Some(joined) = joined else { return Ok(Some(message)) };
        let is_kept = joined.migration.keep(message.payload.len(), || Held::Path(from, id, message), at);
        if is_kept { Ok(None) } else { Err(CloseReason::NotPolled) }
    }

    /// Delivers the held messages to the game.
    pub(super) fn give_held(&mut self, now: Instant) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        for (held, at) in joined.migration.take_held() {
            match held {
                Held::Hub(message) => self.read_message(message, at.min(now))?,
                Held::Path(from, id, message) => self.read_path(from, id, message, at.min(now))?,
            }
        }
        Ok(())
    }

    /// Whether this process is or becomes the host, and another member can take over from it.
    fn may_pass_on(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| {
            let passes_on = self.options.host_timeout.is_some() || joined.welcome.epoch > Epoch(0);
            passes_on && (joined.is_host() || joined.migration.is_heir())
        })
    }

    /// Notes a message that the game has not received yet.
    pub(super) fn note_deferred(&mut self, message: &Message) {
        let row = self.options.channels.get(message.channel);
        if !row.is_some_and(|row| row.lane.is_reliable()) {
            return;
        }
        let may_pass_on = self.may_pass_on();
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        // A handover is under way, and it may name this process.
        let is_news = message.epoch > joined.welcome.epoch;
        if !is_news && !may_pass_on {
            return;
        }
        if joined.migration.deferred_acks.came(message.payload.len()) {
            session.hold_acks(true);
        } else {
            session.hold_acks_from(None);
        }
    }

    /// Whether a message arrived ahead of an earlier one. Its acknowledgement would cover that one, too, so a
    /// host with migration reads it later.
    pub(super) fn is_early(&self, message: &Message) -> bool {
        let received = self.session.as_ref().map_or(0, Session::received_reliable);
        message.number.is_some_and(|number| number >= received) && is_of_game(message) && self.may_pass_on()
    }

    /// Notes that all received messages are queued as events.
    pub(super) fn has_read(&mut self) {
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        joined.migration.deferred_acks.has_read(session.received_reliable());
    }

    /// The messages consumed by the host's game, for the next commit: the game has polled again after
    /// receiving all of them.
    pub(super) fn handled(&self) -> Option<Taken> {
        let joined = self.joined.as_ref().filter(|_| self.inbox.is_given() && self.may_pass_on())?;
        let number = joined.migration.deferred_acks.read()?;
        Some(Taken { epoch: joined.welcome.epoch, number })
    }

    /// Notes that the host's state records the consumed messages.
    pub(super) fn note_recorded(&mut self) {
        let Some(joined) = &mut self.joined else { return };
        let host = joined.shared.host();
        let Some((taken, tick)) = host.and_then(|host| host.taken().zip(host.world().tick())) else { return };
        joined.migration.deferred_acks.recorded(taken.number, tick);
    }

    /// Acknowledges messages consumed in ticks that the hub has completely.
    pub(super) fn acknowledge_handled(&mut self) {
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        let watermark = joined.shared.host().and_then(|host| host.upstream().ack_watermark());
        let Some(watermark) = watermark else { return };
        if let Some(below) = joined.migration.deferred_acks.release(watermark) {
            session.hold_acks_from(below);
            self.wants_driver = true;
        }
    }
}

impl Joined {
    /// Whether a message must wait until this process is the host, or knows the host.
    fn awaits_host(&self, message: &session::Message) -> bool {
        let is_open = self.migration.is_heir() || message.epoch > self.welcome.epoch;
        is_open && is_of_game(message)
    }

    /// Discards what was drawn and predicted under the previous authority. State of ticks beyond `tick` is
    /// the next one's.
    fn begin_anew(&mut self, tick: Option<Tick>) {
        self.replay = Replay::default();
        self.overlay = Overlay::default();
        self.rewinds = Rewinds::default();
        self.rollback = None;
        if let SharedState::Member(member) = &mut self.shared {
            member.await_transfer(tick);
        }
    }

    /// Forgets the world and its simulation at this process.
    fn forget_world(&mut self, inbox: &mut Inbox) -> Result<(), CloseReason> {
        for entity in self.shared.entities() {
            inbox.tell_bounded(Event::Despawned { entity }, 0)?;
        }
        let schema = Arc::clone(self.shared.world().schema());
        self.shared = SharedState::new(false, self.welcome.member, schema, self.welcome.tick_rate);
        self.pace = Pace::default();
        self.resimulation = None;
        Ok(())
    }

    /// Notes that the new authority was heard.
    pub(super) fn host_heard(&mut self, inbox: &mut Inbox) -> Result<(), CloseReason> {
        if !self.migration.heard() {
            return Ok(());
        }
        match self.welcome.authority.member() {
            Some(host) => inbox.tell_bounded(Event::HostChanged { host }, 0),
            None => Ok(()),
        }
    }
}
