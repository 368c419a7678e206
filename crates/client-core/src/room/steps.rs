//! Polls and steps: when one is due, what a game does, predicts and looks back at in one, and its commit.

use super::{Joined, RoomCore};
use crate::action::{Action, Making, Scene};
use crate::error::{RoomError, not_host};
use crate::event::{Event, StateUpdate};
use crate::options::Options;
use crate::rollback::{RollbackConfig, RollbackLane};
use crate::simulation::{Begun, OverlayDiagnostics, Past};
use crate::state::{Host, SharedState};
use crate::world::WorldAccess;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::{HandOver, ToHub};
use parlor_proto::wire::envelope::Upward;
use parlor_proto::wire::handshake::capability;
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId, Tick, TickRate, channel, limits};
use parlor_sync::inputs::{Counters, Input};
#[cfg(doc)]
use parlor_sync::limits::OVERLAY_TICKS_MAX;
use parlor_sync::limits::{INPUTS_SENT_MAX, ROLLBACK_INPUT_BYTES_MAX};
use parlor_sync::schema::{ComponentId, Replicated};
use parlor_sync::value::{Value, from_value, to_value};
use parlor_sync::world::Diagnostics as WorldDiagnostics;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// For a game: events and steps.
impl RoomCore {
    /// The next event. Everything that a game can read changes only in here: after a poll that returns
    /// `None`, state, players and inputs stand still until the next poll.
    pub fn poll(&mut self, now: Instant) -> Option<Event> {
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        self.commit(now);
        self.read_arrived(now);
        self.check_patience(now);
        if let Some(joined) = &mut self.joined {
            joined.players.set_reached(|player| self.paths.is_open_to(player));
        }
        self.next_event()
    }

    /// The next event. Events wait for the complete list of members: a game that sees the room open must be
    /// able to read all members.
    fn next_event(&mut self) -> Option<Event> {
        let is_complete = self.joined.as_ref().is_none_or(|joined| joined.players.is_complete());
        if is_complete || self.status.is_closed() { self.inbox.next_event() } else { None }
    }

    /// Whether a step of the room is due; if so it counts as run, and [`tick_number`](Self::tick_number) is
    /// its number. Publishes the writes since the previous step. Replayed steps come first, marked by
    /// [`is_replay`](Self::is_replay): call this in a loop until it returns false.
    ///
    /// At most eight steps come in a row; the rest of a backlog is dropped and counted.
    pub fn tick(&mut self, now: Instant) -> bool {
        self.give_up_actions(now);
        self.commit(now);
        self.repeat_actions();
        let Some((session, joined)) = self.connection.session_mut().zip(self.joined.as_mut()) else {
            return false;
        };
        let host = (joined.is_host(), joined.shared.input_report());
        joined.simulation.keep_pace(&self.options, session, host, now);
        if self.status.is_closed() || joined.migration.holds_steps() {
            return false;
        }
        let begun = joined.simulation.begin_step(&mut joined.shared, now);
        if let Some(Begun::New { room_tick }) = begun {
            session.set_tick(room_tick);
        }
        if begun.is_none() {
            return false;
        }
        let decisions = joined.scene(&self.options, now).run_step();
        self.tell_decisions(decisions);
        true
    }

    /// Lets `elapsed` of the game's own time pass. With the first call the game brings the time: from then on a step
    /// is due once enough of it has passed, and none without another call.
    ///
    /// Steps stay in phase with the room's. Game time that is ahead of the room's is discarded. What is missing is
    /// made up for by a twentieth of what passes. Beyond 250 ms it leaps: the steps in between are dropped and
    /// counted. Zero never leaps, so that a game can pause. Does nothing before the room is open, and while a
    /// migration holds steps.
    pub fn advance(&mut self, elapsed: Duration, now: Instant) {
        if let Some(joined) = self.joined.as_mut().filter(|joined| !joined.migration.holds_steps()) {
            joined.simulation.advance(elapsed, now);
        }
    }

    /// Commits the writes since the last commit, under the step that was run.
    fn commit(&mut self, now: Instant) {
        let taken = self.handled();
        let Some(joined) = &mut self.joined else { return };
        let Joined { shared, simulation, replicas, checksums, migration, .. } = joined;
        shared.end_step();
        let label = simulation.label(now);
        self.wants_driver |= replicas.commit(simulation.room_tick(now));
        // Results of replayed steps belong to the next new step.
        if simulation.is_replaying() || migration.hand_over().is_sealed() {
            return;
        }
        let Some(host) = shared.host_mut() else { return };
        if host.commit(label, taken, || simulation.input_reports(now)) {
            checksums.note(shared);
            self.wants_driver = true;
        }
        if shared.host().is_some_and(Host::is_committed) {
            migration.hand_over_mut().committed();
        }
        self.recording.observe(shared.world(), simulation.room_time(now));
        self.note_recorded();
        self.request_hand_over(now);
    }

    /// Whether the current step is a replay. Its messages and effects have been sent and shown, and its
    /// inputs are the recorded ones.
    pub fn is_replay(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.simulation.step().is_replay)
    }

    /// The current or last step of the game. A [replayed](Self::is_replay) step keeps its number.
    pub fn tick_number(&self) -> Option<Tick> {
        self.joined.as_ref().map(|joined| joined.simulation.step().tick)
    }

    /// The newest tick of which the game drew something, by its interpolated reads: the newest state if it has read none
    /// lately. `None` at the host, and before the first state.
    pub fn drawn_tick(&self) -> Option<Tick> {
        let joined = self.joined.as_ref()?;
        Some(joined.welcome.tick_rate.tick_at(joined.shared.drawn()?))
    }

    /// Steps of the room per second, once it is open.
    pub fn tick_rate(&self) -> Option<TickRate> {
        self.joined.as_ref().map(|joined| joined.welcome.tick_rate)
    }

    /// Time until the next step is due, for a loop that sleeps. The length of a step while none is due because
    /// of a migration.
    pub fn until_next_tick(&self, now: Instant) -> Option<Duration> {
        self.joined.as_ref().map(|joined| match joined.migration.holds_steps() {
            true => joined.welcome.tick_rate.interval(),
            false => joined.simulation.until_next(now),
        })
    }

    /// Whether to show a one-shot effect, such as a sound or a flash: true for the first call with this name
    /// and number in 256 ticks, however often its step is [replayed](Self::is_replay). The number
    /// distinguishes effects of one name and must be the same in a replay, such as the step's number or a
    /// shot's.
    ///
    /// An effect that first occurs in a replay is shown then: better late than never. Always false before the
    /// room is open.
    pub fn once(&mut self, effect: &str, number: u64) -> bool {
        self.joined.as_mut().is_some_and(|joined| joined.simulation.is_first(effect, number))
    }

    /// Lag compensation: lets the host look at the world as `member` saw it when it made the input for the
    /// current step, to judge a shot by what the shooter aimed at. It rewinds to the moment that the member
    /// reported as drawn, at most [`Options::rewind_max`](crate::Options::rewind_max). Longer rewinds are
    /// counted and cut to the maximum. For the host's own player, and one without an input yet, it is the
    /// present.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such player.
    pub fn rewind<R>(
        &mut self,
        member: MemberId,
        look: impl FnOnce(&mut Past<'_>) -> R,
    ) -> Result<R, RoomError> {
        let rewind_max = self.options.rewind_max;
        let (_, joined) = self.open_as_host("look back")?;
        if joined.players.get(member).is_none() {
            return Err(ApiMisuse::NoSuchPlayer(member).into());
        }
        Ok(look(&mut joined.simulation.past(joined.shared.world(), member, rewind_max)))
    }
}

/// For a game: inputs.
impl RoomCore {
    /// Records this player's input for the last step, and sends it until the host has used it. The host's own
    /// input takes the same route within its process.
    ///
    /// Does nothing in a [replayed](Self::is_replay) step: the recorded input counts.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is larger than [`limits::INPUT_BYTES_MAX`].
    pub fn send_input<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<(), RoomError> {
        self.open_as_player("send inputs")?;
        let (_, joined) = self.open_with_host("be sent inputs")?;
        if joined.simulation.step().is_replay {
            return Ok(());
        }
        let encoded = to_value(input)?.encode(limits::INPUT_BYTES_MAX)?;
        joined.simulation.record_input(joined.shared.drawn(), Some(encoded))?;
        if joined.is_host() { Ok(()) } else { self.post_inputs() }
    }

    /// Sends the inputs that the host has not used, at a guest.
    pub(super) fn post_inputs(&mut self) -> Result<(), RoomError> {
        let repeats = self.options.protocol.repeats_inputs(self.options.has_lead());
        let (_, joined) = self.open_with_host("be sent inputs")?;
        let repeated = if repeats { INPUTS_SENT_MAX } else { 0 };
        if let Some(message) = joined.simulation.own_inputs(repeated) {
            let host = joined.welcome.authority.member();
            let message = Outgoing { key: joined.welcome.member.0, ..Outgoing::new(channel::INPUT, message) };
            self.with_paths(|paths, _, around| paths.post_input(message, host, around.hub))?;
        }
        Ok(())
    }

    /// Sends the actions that the host has not decided, in the step that ends, if the game sent no input in it.
    fn repeat_actions(&mut self) {
        let Some(joined) = &mut self.joined else { return };
        if joined.simulation.must_repeat_actions() {
            // What is repeated was encoded before, and the room is open or about to close.
            let recorded = joined.simulation.record_input(joined.shared.drawn(), None);
            let _: Result<(), RoomError> = recorded.and_then(|()| self.post_inputs());
        }
    }

    /// A player's input for the current step, or its newest earlier one. `None` until the first arrives. The
    /// host may read any player's, and acknowledges its use to the player; a guest reads only its own.
    ///
    /// # Errors
    /// [`RoomError`] if a guest asks for another player's input, or the input does not match the type: a
    /// hostile player can send anything.
    pub fn input<T: DeserializeOwned>(&mut self, player: MemberId) -> Result<Option<T>, RoomError> {
        let (_, joined) = self.open("read inputs")?;
        if player != joined.welcome.member && !joined.is_host() {
            return Err(not_host(&joined.welcome, "read inputs").into());
        }
        let Some(Input { tick, encoded, .. }) = joined.simulation.input(player).cloned() else {
            return Ok(None);
        };
        let value = Value::decode(encoded).expect("it was read when it came, or written here");
        match from_value(&value) {
            Ok(read) => {
                joined.simulation.used_input(player, tick);
                Ok(Some(read))
            }
            // A step with actions and without an input.
            Err(_) if value == Value::Null => Ok(None),
            Err(error) => {
                self.messages_unreadable += 1;
                Err(error.into())
            }
        }
    }

    /// The inputs of all players for the current step, at the host. Players without an input and unreadable
    /// inputs are left out: a hostile player can send anything.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn inputs<T: DeserializeOwned>(&mut self) -> Result<Vec<(MemberId, T)>, RoomError> {
        let members = self.open_as_host("read inputs")?.1.simulation.input_members();
        let mut all = Vec::with_capacity(members.len());
        for member in members {
            // One that cannot be read is counted.
            let input = self.input(member).ok().flatten();
            all.extend(input.map(|input| (member, input)));
        }
        Ok(all)
    }

    /// The newest step whose input of a player the host has used: at the host of every player, at a guest its own.
    /// `None` if none was used.
    pub fn input_ack(&self, player: MemberId) -> Option<Tick> {
        let joined = self.joined.as_ref()?;
        match &joined.shared {
            SharedState::Host(_) => joined.simulation.newest_used(player),
            SharedState::Member(member) if player == joined.welcome.member => member.keys().input_ack(),
            SharedState::Member(_) => None,
        }
    }

    /// Counters of a player's inputs, at the host; `None` if none came.
    pub fn input_counters(&self, player: MemberId) -> Option<Counters> {
        self.joined.as_ref()?.simulation.input_counters(player)
    }
}

/// For a game: a planned hand-over, after the host's last step.
impl RoomCore {
    /// Hands the host's part over to another player, or to the one that the hub names, at the end of the step that
    /// runs or comes next. This process takes no more steps then, and stays as a player. [`Event::HostMigration`]
    /// follows, or [`Event::HandOverRefused`] if the hub refuses.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, the room has no host migration, a hand-over is under way, there
    /// is no such player, or no other one, it is not connected, or the server is too old.
    pub fn hand_over(&mut self, to: Option<MemberId>, now: Instant) -> Result<(), RoomError> {
        let migrates = self.migrates();
        let Joined { welcome, players, migration, .. } = self.open_as_host("hand its part over")?.1;
        if to == Some(welcome.member) {
            return Err(ApiMisuse::Bounds("this player is the host already: name another one".into()).into());
        }
        if let Some(why) = migration.hand_over().refusal(migrates, || players.unfit(to)) {
            return Err(RoomError::NotHandedOver { why });
        }
        if welcome.capabilities & capability::HANDS_OVER == 0 {
            let text = "this server is older and hands no host's part over: leave, or use a newer server";
            return Err(ApiMisuse::Bounds(text.into()).into());
        }
        migration.hand_over_mut().begin(to, now);
        self.wants_driver = true;
        Ok(())
    }

    /// Asks the hub for the hand-over that the game wants, if it is time for it.
    pub(super) fn request_hand_over(&mut self, now: Instant) {
        let Some(Joined { welcome, shared, migration, .. }) = &mut self.joined else { return };
        let Some(host) = shared.host() else { return };
        if let Some(to) = migration.hand_over_mut().take_request(host.is_at_hub(), now) {
            let epoch = welcome.epoch;
            self.tell_hub(&ToHub::HandOver(HandOver { epoch, to }));
        }
    }
}

/// For a game: predicted actions.
impl RoomCore {
    /// Makes a predicted action on an entity of this player's own, in a step: it is applied at once, again in
    /// replays of this step, and at the host in the same step, which decides. The host's own is decided at once. If
    /// the host refuses it, [`Event::ActionRefused`] is raised and the prediction is undone. Does nothing in a
    /// [replayed](Self::is_replay) step: what was made in it is applied again.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if the action is refused already here; nothing changed then. [`RoomError`] if it is not
    /// [defined](crate::Options::actions), does not fit the input of its step, or too many were made.
    pub fn act_predicted<A: Action>(
        &mut self,
        entity: EntityId,
        action: &A,
        now: Instant,
    ) -> Result<(), RoomError> {
        self.open_as_player("act")?;
        self.open_with_host("act")?;
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let making = joined.scene(&self.options, now).make(entity, A::NAME, to_value(action)?)?;
        if making == Making::Send { self.post_inputs() } else { Ok(()) }
    }

    /// The entities that predicted actions wrote in the current step so far, spawned and despawned ones included, in
    /// ascending order.
    pub fn acted(&self) -> Vec<EntityId> {
        self.joined.as_ref().map(|joined| joined.simulation.acted().collect()).unwrap_or_default()
    }
}

impl Joined {
    /// The room as far as predicted actions concern it.
    pub(super) fn scene<'a>(&'a mut self, options: &'a Options, now: Instant) -> Scene<'a> {
        let Joined { shared, simulation, welcome, players, .. } = self;
        let (actions, rewind_max) = (&options.actions, options.rewind_max);
        Scene { actions, shared, simulation, welcome, players, rewind_max, now }
    }
}

/// For a game: predicted values of keys.
impl RoomCore {
    /// Sets the lifetime of an unconfirmed key prediction in ticks, 1 to [`OVERLAY_TICKS_MAX`]. Default: that
    /// maximum, as for predicted components.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the number is out of bounds.
    pub fn configure_prediction(&mut self, ticks: u32) -> Result<(), RoomError> {
        self.open("configure predictions")?.1.simulation.set_prediction_ticks(ticks)
    }

    /// Predicts the value of a key after the host has used this player's input of the last step.
    /// [`predicted`](Self::predicted) returns it at once, until the host's state for that step replaces it.
    /// Does nothing at the host, whose values are final.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or there would be too many keys.
    pub fn set_predicted<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        let value = to_value(value)?;
        let (_, joined) = self.open_as_player("predict a key")?;
        if joined.is_host() { Ok(()) } else { joined.simulation.predict_key(key, value) }
    }

    /// The newest predicted value of a key; without a prediction, the same as [`get`](Self::get).
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn predicted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        match self.joined.as_ref().and_then(|joined| joined.simulation.predicted_key(key)) {
            Some(value) => Ok(Some(from_value(value)?)),
            None => self.get(key),
        }
    }

    /// Counters of the predictions of all keys, or of one. Those of one are kept for the last 256 keys.
    pub fn prediction_diagnostics(&self, key: Option<&str>) -> OverlayDiagnostics {
        self.joined.as_ref().map(|joined| joined.simulation.key_predictions(key)).unwrap_or_default()
    }
}

/// For a game: a rollback lane.
impl RoomCore {
    /// Begins a rollback lane, replacing the previous one. All participants begin it with the same players,
    /// in the same order, and the same first step: agree on them by state or a message first.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or a value is out of bounds.
    pub fn rollback(&mut self, config: &RollbackConfig) -> Result<(), RoomError> {
        let Joined { welcome, players, .. } = &*self.open_with_host("begin a rollback lane")?.1;
        let mut named = config.players.iter();
        if let Some(watcher) = named.find(|id| players.member(**id).is_some_and(|it| it.is_spectator)) {
            return Err(ApiMisuse::NoSuchPlayer(*watcher).into());
        }
        let (me, authority) = (welcome.member, welcome.authority.member());
        self.lane.begin(config, me, authority)
    }

    /// Begins the next step of the lane with this player's input, if one is due and can be run. Then serve
    /// all of [`next_request`](RollbackLane::next_request), and call this again. An input takes effect a few
    /// ticks later, and has at most 64 encoded bytes; a spectator's is ignored. Without a lane no step is
    /// due.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is too large.
    pub fn rollback_step<T: Serialize + ?Sized>(
        &mut self,
        input: &T,
        now: Instant,
    ) -> Result<bool, RoomError> {
        let encoded = to_value(input)?.encode(ROLLBACK_INPUT_BYTES_MAX)?;
        self.open("run a step of the rollback lane")?;
        let Some(Joined { welcome, simulation, players, .. }) = &self.joined else { return Ok(false) };
        let target = welcome.tick_rate.tick_at(simulation.room_time(now));
        if self.lane.step(&encoded, target)? {
            return Ok(true);
        }
        let (me, authority) = (welcome.member, welcome.authority.member());
        let is_there = |member: MemberId| member != me && players.member(member).is_some();
        let mut sent = false;
        while let Some((to, payload)) = self.lane.poll_message(authority, is_there) {
            let message = Upward { to, stamp: false, payload }.encode();
            self.connection.say(Outgoing::new(channel::ROLLBACK, message))?;
            sent = true;
        }
        self.wants_driver |= sent;
        Ok(false)
    }

    /// The value of a key of the lane, predictions included; for a key that the lane does not have, the same
    /// as [`get`](Self::get).
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn rollback_state<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        match self.lane.get(key)? {
            Some(value) => Ok(Some(value)),
            None => self.get(key),
        }
    }

    /// The rollback lane; without one, its reads return nothing.
    pub fn lane(&self) -> &RollbackLane {
        &self.lane
    }

    /// The rollback lane, to run its requests.
    pub fn lane_mut(&mut self) -> &mut RollbackLane {
        &mut self.lane
    }
}

/// For a game: entities, and own states of players.
impl RoomCore {
    /// The entities of the room as of `now`.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open yet. After its end the last known state can still be read.
    pub fn world(&mut self, now: Instant) -> Result<WorldAccess<'_>, RoomError> {
        let what = "look at its entities";
        let joined = self.joined.as_mut().ok_or(RoomError::Misuse(ApiMisuse::NotOpen { what }))?;
        let Joined { shared, simulation, welcome, players, .. } = joined;
        Ok(WorldAccess::new(shared, simulation, (welcome, players), self.status.closed(), now))
    }

    /// Takes the entities whose components changed since the last call, with one bit for each changed
    /// component: see [`component_id`](Self::component_id). For a new entity all bits are set. Empty at the
    /// host, which wrote the changes.
    pub fn take_changes(&mut self) -> Vec<(EntityId, u64)> {
        match self.joined.as_mut().map(|joined| &mut joined.shared) {
            Some(SharedState::Member(member)) => member.take_changes(),
            Some(SharedState::Host(_)) | None => Vec::new(),
        }
    }

    /// Metadata of the newest update of the world that reads return: as in [`Event::State`], for entities too, and
    /// without names of keys. `None` before the first update, and at the host, which makes them.
    pub fn world_update(&self) -> Option<StateUpdate> {
        match &self.joined.as_ref()?.shared {
            SharedState::Member(member) => member.newest_update(),
            SharedState::Host(_) => None,
        }
    }

    /// The number of a component in the schema, which is its bit in [`take_changes`](Self::take_changes).
    /// `None` before the room is open, or if the schema has no such component.
    pub fn component_id<C: Replicated>(&self) -> Option<ComponentId> {
        self.joined.as_ref()?.shared.world().schema().find(C::NAME)
    }

    /// Diagnostics of the world's stream. At the host: of the stream to its hub. At a member: what a receiver
    /// can know (packets, bytes, entries, visible entities, age of baselines, delay).
    pub fn world_diagnostics(&self, now: Instant) -> Option<WorldDiagnostics> {
        let joined = self.joined.as_ref()?;
        let tick = joined.welcome.tick_rate.tick_at(joined.simulation.room_time(now));
        Some(joined.shared.world_diagnostics(tick))
    }
}
