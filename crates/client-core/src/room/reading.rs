//! The effects of what arrives: messages, members, and host migration, in which the host role passes to another
//! member, perhaps to this one.

use super::{Joined, RoomCore};
use crate::error::misbehaved;
use crate::event::{ClosedReason, Event, Message};
use crate::inbox::{Arrived, Came, Inbox};
use crate::info::ReasonCode;
use crate::message::{FLOW, Typed, decode_typed, is_match_data, is_of_game};
use crate::migration::Held;
use crate::rollback::RollbackLane;
use crate::state::{News, SharedState};
use bytes::Bytes;
use parlor_proto::OrderedSet;
use parlor_proto::channel::{self, Channel, Codec};
use parlor_proto::session::{self, Outgoing, SendError, Session};
use parlor_proto::wire::action::{Action, AskedBy, RefusedAction};
use parlor_proto::wire::control::{HandOverRefusal, Handover, ToHub, ToMember};
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, Sender};
use parlor_proto::wire::handshake::Authority;
use parlor_proto::wire::replica::StateOf;
use parlor_proto::{CloseReason, EntityId, Epoch, Instant, MemberId, PathId, Tick, limits};
use parlor_sync::keyed::Taken;
use parlor_sync::value::Value;
use std::sync::Arc;

/// What arrived, in order.
impl RoomCore {
    /// Processes arrivals as of their arrival. A failure ends the session as of `now`, because arrivals may
    /// have waited longer than a goodbye lingers.
    pub(super) fn read_arrived(&mut self, now: Instant) {
        if !self.status.is_closed()
            && let Err(reason) = self.give_held(now)
        {
            self.break_off(reason, now);
        }
        while let Some(Arrived { at, came }) = self.inbox.next_arrived() {
            // No event follows `Event::Closed`, even if more had arrived before the game left.
            if !self.status.is_closed()
                && let Err(reason) = self.read(came, at)
            {
                self.break_off(reason, now);
            }
        }
        self.has_read();
    }

    fn read(&mut self, came: Came, at: Instant) -> Result<(), CloseReason> {
        let event = match came {
            Came::Session(event) => event,
            Came::Path(from, id, message) => return self.read_path(from, id, message, at),
            Came::Reopened(welcome) => return self.reopened(*welcome, at),
            Came::Link(news) => {
                self.read_link(news, at);
                return Ok(());
            }
        };
        match event {
            session::Event::Welcome(welcome) => return self.welcomed(*welcome, at),
            session::Event::Message(message) => return self.read_message(message, at),
            session::Event::Rejected(away) => self.rejected(away),
            session::Event::Closed(reason) => self.close_with(ClosedReason::Session(reason)),
            // These never wait (see `drain_session`), and a client has no peer that sends a hello.
            session::Event::Delivered(_)
            | session::Event::Lost(_)
            | session::Event::Hello(_)
            | session::Event::Resume(_)
            | session::Event::Resumed(_)
            | session::Event::Seat(_)
            | session::Event::Moved(_)
            | session::Event::Silent => {}
        }
        Ok(())
    }

    /// Takes in a message of the hub.
    fn read_message(&mut self, message: session::Message, at: Instant) -> Result<(), CloseReason> {
        if message.channel == channel::CONTROL {
            return self.read_control(message, at);
        }
        let Some(message) = self.hold(message, at)? else { return Ok(()) };
        let Some(joined) = &mut self.joined else { return Ok(()) };
        match message.channel {
            channel::STATE => {
                let before = joined.shared.world().tick();
                if joined.migration.is_old(message.epoch) {
                    return Ok(());
                }
                if let SharedState::Member(member) = &mut joined.shared {
                    let news = member.take_packet(None, message.payload, at);
                    let news = news.map_err(|error| misbehaved("state", &error))?;
                    return self.took_state(before, news, at);
                }
            }
            channel::REPLICAS => {
                let state = StateOf::decode(message.payload);
                let state = state.map_err(|error| misbehaved("a player's state", &error))?;
                let (arrived, players) = (joined.simulation.room_time(at), &joined.players);
                let taken = joined.replicas.take(state, arrived, |member| players.get(member).is_some());
                taken.map_err(|error| misbehaved("a player's state", &error))?;
            }
            channel::ACTIONS => return self.read_action(message.payload),
            channel::CHECKPOINT => return self.read_checkpoint(message.payload, at),
            channel::ROLLBACK => return self.read_rollback(message.payload),
            channel if is_match_data(channel) => return self.read_data(message),
            channel::INPUT => self.read_input(MemberId(message.key), message.payload, at),
            channel => {
                let row =
                    *self.options.channels.get(channel).expect("a session takes messages of its table only");
                let bytes = message.payload.len();
                let downward = Downward::decode(message.payload);
                let downward = downward.map_err(|error| misbehaved("a message", &error))?;
                return self.read_letter(row, downward, bytes, at);
            }
        }
        Ok(())
    }

    /// Takes in a message from a path. A malformed one ends the path, but not the session with the hub.
    fn read_path(
        &mut self,
        from: MemberId,
        id: PathId,
        message: session::Message,
        at: Instant,
    ) -> Result<(), CloseReason> {
        let is_reliable =
            self.options.channels.get(message.channel).is_some_and(|row| row.lane.is_reliable());
        let message = if is_reliable { self.hold_of_path(from, id, message, at)? } else { Some(message) };
        let (Some(message), Some(joined)) = (message, &mut self.joined) else { return Ok(()) };
        if message.epoch < joined.welcome.epoch && !is_reliable {
            // It may be for a previous authority.
            return Ok(());
        }
        match message.channel {
            channel::STATE => {
                let before = joined.shared.world().tick();
                let SharedState::Member(member) = &mut joined.shared else { return Ok(()) };
                match member.take_packet(Some(id), message.payload, at) {
                    Ok(news) => self.took_state(before, news, at),
                    Err(error) => {
                        let why = format!("its state could not be read: {error}");
                        self.with_paths(|paths, _, around| paths.lost(id, &why, around, at));
                        Ok(())
                    }
                }
            }
            channel::INPUT => {
                self.read_input(from, message.payload, at);
                Ok(())
            }
            channel::REPLICAS => {
                let arrived = joined.simulation.room_time(at);
                if let Err(error) = joined.replicas.take_direct(from, id, message.payload, arrived) {
                    let why = format!("its player's state could not be read: {error}");
                    self.with_paths(|paths, _, around| paths.lost(id, &why, around, at));
                }
                Ok(())
            }
            channel if is_match_data(channel) => {
                let Ok(MatchData { op, payload }) = MatchData::decode(message.payload) else {
                    self.messages_unreadable += 1;
                    return Ok(());
                };
                let bytes = payload.len();
                self.inbox.tell_message(Event::Data { from, op, order: None, data: payload }, bytes, true)
            }
            channel => {
                let Some(row) = self.options.channels.get(channel).copied() else { return Ok(()) };
                let bytes = message.payload.len();
                let (from, payload) = (Sender::Member(from), message.payload);
                let downward = Downward { from, order: None, authority_of: None, payload };
                self.read_letter(row, downward, bytes, at)
            }
        }
    }

    /// Takes in a game's message of `bytes`.
    fn read_letter(
        &mut self,
        row: Channel,
        downward: Downward,
        bytes: usize,
        at: Instant,
    ) -> Result<(), CloseReason> {
        let Downward { from, order, authority_of, payload } = downward;
        self.connection.saw_order(order);
        if !self.is_meant(authority_of) {
            return Ok(());
        }
        let event = match row.codec {
            Codec::Typed => match decode_typed(payload) {
                Some(Typed { kind, value, .. }) if kind == FLOW => {
                    let is_read = matches!(from, Sender::Member(from) if self.heard_flow(from, &value, at));
                    self.messages_unreadable += u64::from(!is_read);
                    return Ok(());
                }
                Some(Typed { kind, event_time, value }) => {
                    Event::Message(Message { from, kind, order, event_time, value })
                }
                None => {
                    self.messages_unreadable += 1;
                    return Ok(());
                }
            },
            Codec::Raw | Codec::Parlor => Event::Raw { from, channel: row.id, order, payload },
        };
        self.inbox.tell_message(event, bytes, !row.lane.is_reliable())
    }

    /// Takes in data of a player of the match.
    fn read_data(&mut self, message: session::Message) -> Result<(), CloseReason> {
        let bytes = message.payload.len();
        let may_be_dropped = message.channel == channel::MATCH_DATA_UNRELIABLE;
        let unreadable = |error| misbehaved("match data", &error);
        let Downward { from, order, payload, .. } = Downward::decode(message.payload).map_err(unreadable)?;
        self.connection.saw_order(order);
        let MatchData { op, payload } = MatchData::decode(payload).map_err(unreadable)?;
        // The hub itself sends no data to a match.
        let Sender::Member(from) = from else { return Ok(()) };
        self.inbox.tell_message(Event::Data { from, op, order, data: payload }, bytes, may_be_dropped)
    }

    /// Takes in an input message that arrived `at`.
    fn read_input(&mut self, from: MemberId, message: Bytes, at: Instant) {
        let Some(joined) = &mut self.joined else { return };
        // An input of a player that has left is late; one of an unannounced player is early, and its next one
        // comes soon.
        let is_wanted = joined.is_host() || joined.migration.is_heir();
        if !is_wanted || joined.players.get(from).is_none() {
            return;
        }
        // The hub forwards inputs unread, so an unreadable one is its sender's fault alone.
        if joined.simulation.take_input(from, message, at).is_err() {
            self.messages_unreadable += 1;
        }
    }

    /// Takes in a message of the rollback lane. The hub does not read it, so its sender alone is at fault for
    /// its content.
    fn read_rollback(&mut self, payload: Bytes) -> Result<(), CloseReason> {
        let downward = Downward::decode(payload);
        let downward = downward.map_err(|error| misbehaved("the envelope of a rollback message", &error))?;
        let (Some(joined), Sender::Member(member)) = (&self.joined, downward.from) else { return Ok(()) };
        let authority = joined.welcome.authority.member();
        if !self.lane.handle_message(member, authority, downward.payload) {
            self.messages_unreadable += 1;
        }
        Ok(())
    }

    /// Passes an action to the game at the host, or sends the refusal to the member that asked.
    fn read_action(&mut self, payload: Bytes) -> Result<(), CloseReason> {
        let asked = AskedBy::decode(payload).map_err(|error| misbehaved("an action", &error))?;
        let AskedBy { from, epoch, action: Action { entity, name, value } } = asked;
        let Some(joined) = self.joined.as_ref().filter(|_| self.is_meant(Some(epoch))) else { return Ok(()) };
        // The entity may have changed its owner while the action was in flight, so the hub's check is not
        // enough.
        if let Some(why) = joined.shared.refusal(from, entity) {
            let refused = RefusedAction { entity, name, why };
            self.tell_hub(&ToHub::RefuseAction { member: from, refused });
            return Ok(());
        }
        let bytes = value.len();
        let Ok(value) = Value::decode(value) else {
            self.messages_unreadable += 1;
            return Ok(());
        };
        self.inbox.tell_bounded(Event::Action { from, entity, name, value }, bytes)
    }

    /// Handles a control message of the hub.
    fn read_control(&mut self, message: session::Message, at: Instant) -> Result<(), CloseReason> {
        let decoded =
            ToMember::decode(message.payload).map_err(|error| misbehaved("room control", &error))?;
        if let Some((control, joined)) = decoded.as_ref().zip(self.joined.as_ref())
            && !joined.players.is_of_spectator(control)
            && !joined.players.is_confirmed_by(control)
        {
            self.recording.hear(control);
        }
        match (decoded, &mut self.joined) {
            (Some(ToMember::Authority(handover)), Some(_)) => self.read_handover(handover, at),
            (Some(ToMember::GoesOn { epoch }), Some(joined)) if joined.welcome.epoch == epoch => {
                joined.host_heard(&mut self.inbox, at)
            }
            (Some(ToMember::NotHandedOver(why)), Some(_)) => self.not_handed_over(why),
            (Some(ToMember::Reopened { gap, .. }), Some(_)) => {
                self.inbox.tell_bounded(Event::Reopened { gap }, 0)
            }
            (Some(ToMember::ActionsDecided(decisions)), Some(joined)) => {
                let refused = decisions.into_iter().filter_map(|one| joined.simulation.action_decided(one));
                refused
                    .into_iter()
                    .try_for_each(|event| self.inbox.tell_bounded(event, limits::LABEL_BYTES_MAX))
            }
            (Some(control), Some(_)) => self.hear_members(control),
            _ => Ok(()),
        }
    }

    /// Handles the news of a packet of state. `before` is the newest tick known before it.
    fn took_state(
        &mut self,
        before: Option<Tick>,
        news: Option<News>,
        at: Instant,
    ) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        joined.simulation.heard_state(before, joined.shared.world().tick(), at);
        joined.simulation.settle_keys(&joined.shared);
        let Some(news) = news else { return Ok(()) };
        if news.is_of_successor {
            joined.host_heard(&mut self.inbox, at)?;
        }
        joined.checksums.note(&joined.shared);
        self.inbox.tell_entities(news.despawned, news.spawned)?;
        if let Some(update) = news.update {
            self.inbox.tell_state(update, |key| joined.shared.has(key));
        }
        if news.is_switch
            && let Some(id) = joined.shared.source()
        {
            self.tell_hub(&ToHub::PathUp { id });
        }
        Ok(())
    }

    pub(super) fn tell_hub(&mut self, message: &ToHub) {
        self.connection.tell_hub(message);
        self.wants_driver = true;
    }
}

/// Host migration.
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
    fn read_handover(&mut self, handover: Handover, at: Instant) -> Result<(), CloseReason> {
        let Some(joined) = &self.joined else { return Ok(()) };
        let Handover { epoch, member, .. } = handover;
        if epoch <= joined.welcome.epoch {
            return Ok(());
        }
        let me = joined.welcome.member;
        let previous = joined.welcome.authority.member();
        self.status.report(ReasonCode::HostMigrating);
        self.with_paths(|paths, _, around| paths.host_changed(around, at));
        let Some((session, joined)) = self.connection.session_mut().zip(self.joined.as_mut()) else {
            return Ok(());
        };
        (joined.welcome.epoch, joined.welcome.authority) = (epoch, Authority::Member(member));
        session.set_epoch(epoch);
        joined.players.set_host(member);
        let is_me = member == me;
        session.set_watched(is_me, at);
        joined.migration.named(previous, member, is_me.then_some(handover), at);
        self.inbox.tell_bounded(Event::HostMigration { previous, new: member, is_me }, 0)?;
        if previous == Some(me) && !is_me {
            joined.migration.follow_from(epoch);
            joined.forget_world(&mut self.inbox)?;
            joined.shared.configure(&self.options);
            // If the queue is too full for it, the session is about to end as too slow.
            let follow = ToHub::Follow { epoch }.encode();
            let _: Result<(), SendError> = session.send(Outgoing::new(channel::CONTROL, follow));
            self.wants_driver = true;
        }
        joined.begin_anew(handover.tick);
        for refused in joined.simulation.abandon_actions() {
            self.inbox.tell_bounded(refused, 0)?;
        }
        self.lane = RollbackLane::default();
        if is_me {
            return self.inherit(at);
        }
        joined.migration.forget_acks();
        session.hold_acks_from(None);
        self.give_held(at)
    }

    /// Goes on as the host, because the hub names nobody else.
    fn not_handed_over(&mut self, why: HandOverRefusal) -> Result<(), CloseReason> {
        let is_asked = self.joined.as_mut().is_some_and(|joined| joined.migration.hand_over_mut().end());
        if is_asked { self.inbox.tell_bounded(Event::HandOverRefused { why }, 0) } else { Ok(()) }
    }

    /// Takes in a part of the checkpoint.
    fn read_checkpoint(&mut self, part: Bytes, at: Instant) -> Result<(), CloseReason> {
        let Some(Joined { welcome, shared, migration, .. }) = &mut self.joined else { return Ok(()) };
        migration.take_part(part, welcome.epoch, (shared.world().schema(), welcome.tick_rate))?;
        self.inherit(at)
    }

    /// Becomes the host, if this process is the heir and has the whole checkpoint.
    fn inherit(&mut self, at: Instant) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let schema = Arc::clone(joined.shared.world().schema());
        let Some((host, tick)) = joined.migration.succeed(&schema, joined.welcome.tick_rate)? else {
            return Ok(());
        };
        let before: OrderedSet<EntityId> = joined.shared.entities().collect();
        joined.shared = SharedState::Host(Box::new(host));
        let after: OrderedSet<EntityId> = joined.shared.entities().collect();
        let gone = before.iter().copied().filter(|entity| !after.contains(entity));
        let new = after.iter().copied().filter(|entity| !before.contains(entity));
        self.inbox.tell_entities(gone, new)?;
        joined.simulation.take_over(&self.options, tick, joined.migration.pauses(), at);
        joined.host_heard(&mut self.inbox, at)?;
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
    fn hold(
        &mut self,
        message: session::Message,
        at: Instant,
    ) -> Result<Option<session::Message>, CloseReason> {
        let is_early = self.is_early(&message);
        let is_reliable =
            self.options.channels.get(message.channel).is_some_and(|row| row.lane.is_reliable());
        let joined = self.joined.as_mut().filter(|joined| is_early || joined.awaits_host(&message));
        let Some(joined) = joined else { return Ok(Some(message)) };
        if joined.migration.keep(message.payload.len(), || Held::Hub(message), at) {
            return Ok(None);
        }
        if is_reliable {
            return Err(CloseReason::NotPolled);
        }
        self.inbox.count_dropped();
        Ok(None)
    }

    /// Holds a reliable message that came over a path, or in place of one, behind held messages that its sender
    /// sent before it on the same channel. What the sender sends later by the hub has a higher number there than
    /// those, so it waits, too.
    fn hold_of_path(
        &mut self,
        from: MemberId,
        id: PathId,
        message: session::Message,
        at: Instant,
    ) -> Result<Option<session::Message>, CloseReason> {
        let joined =
            self.joined.as_mut().filter(|joined| joined.migration.holds_before(from, message.channel));
        let Some(joined) = joined else { return Ok(Some(message)) };
        let is_kept = joined.migration.keep(message.payload.len(), || Held::Path(from, id, message), at);
        if is_kept { Ok(None) } else { Err(CloseReason::NotPolled) }
    }

    /// Delivers the held messages to the game.
    fn give_held(&mut self, now: Instant) -> Result<(), CloseReason> {
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
    pub(super) fn note_deferred(&mut self, message: &session::Message) {
        let row = self.options.channels.get(message.channel);
        if !row.is_some_and(|row| row.lane.is_reliable()) {
            return;
        }
        let may_pass_on = self.may_pass_on();
        let Some((session, joined)) = self.connection.session_mut().zip(self.joined.as_mut()) else { return };
        // A handover is under way, and it may name this process.
        let is_news = message.epoch > joined.welcome.epoch;
        if !is_news && !may_pass_on {
            return;
        }
        if joined.migration.defer_ack(message.payload.len()) {
            session.hold_acks(true);
        } else {
            session.hold_acks_from(None);
        }
    }

    /// Whether a message arrived ahead of an earlier one. Its acknowledgement would cover that one, too, so a
    /// host with migration reads it later.
    fn is_early(&self, message: &session::Message) -> bool {
        let received = self.connection.session().map_or(0, Session::received_reliable);
        message.number.is_some_and(|number| number >= received) && is_of_game(message) && self.may_pass_on()
    }

    /// Notes that all received messages are queued as events or held.
    fn has_read(&mut self) {
        let Some((session, joined)) = self.connection.session_mut().zip(self.joined.as_mut()) else { return };
        joined.migration.has_read(session.received_reliable());
    }

    /// The messages consumed by the host's game, for the next commit: the game has polled again after
    /// receiving all of them.
    pub(super) fn handled(&self) -> Option<Taken> {
        let joined = self.joined.as_ref().filter(|_| self.inbox.is_given() && self.may_pass_on())?;
        let number = joined.migration.read()?;
        Some(Taken { epoch: joined.welcome.epoch, number })
    }

    /// Notes that the host's state records the consumed messages.
    pub(super) fn note_recorded(&mut self) {
        let Some(joined) = &mut self.joined else { return };
        let host = joined.shared.host();
        let Some((taken, tick)) = host.and_then(|host| host.taken().zip(host.world().tick())) else { return };
        joined.migration.recorded(taken.number, tick);
    }

    /// Acknowledges messages consumed in ticks that the hub has completely.
    pub(super) fn acknowledge_handled(&mut self) {
        let Some((session, joined)) = self.connection.session_mut().zip(self.joined.as_mut()) else { return };
        let watermark = joined.shared.host().and_then(|host| host.upstream().ack_watermark());
        let Some(watermark) = watermark else { return };
        if let Some(below) = joined.migration.release(watermark) {
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
        self.simulation.begin_anew();
        if let SharedState::Member(member) = &mut self.shared {
            member.await_transfer(tick);
        }
    }

    /// Forgets the world and its simulation at this process.
    fn forget_world(&mut self, inbox: &mut Inbox) -> Result<(), CloseReason> {
        inbox.tell_entities(self.shared.entities(), [])?;
        let schema = Arc::clone(self.shared.world().schema());
        self.shared = SharedState::new(false, self.welcome.member, schema, self.welcome.tick_rate);
        self.simulation.follow();
        Ok(())
    }

    /// Notes that the new authority was heard.
    fn host_heard(&mut self, inbox: &mut Inbox, at: Instant) -> Result<(), CloseReason> {
        if !self.migration.heard() {
            return Ok(());
        }
        if self.migration.pauses() && !self.is_host() {
            self.simulation.go_on(at);
        }
        let previous = self.migration.hosts().0;
        match self.welcome.authority.member() {
            Some(host) => inbox.tell_bounded(Event::HostChanged { host, previous }, 0),
            None => Ok(()),
        }
    }
}
