//! Running steps: when one is due, its inputs, and which steps are run again.
//!
//! [`Simulation`] owns the machines of this folder. Its methods take what they need of the room: the state to
//! roll back, the session that measures the clock.

mod actions;
mod game_time;
mod inputs;
mod overlay;
mod pace;
mod replay;
mod resimulation;
mod rewind;
mod ticker;

pub(crate) use actions::{Applied, Asked, Origin};
pub use overlay::OverlayDiagnostics;
pub(crate) use replay::Step;
pub use rewind::Past;

use crate::error::RoomError;
use crate::info::Diagnostics;
use crate::options::Options;
use crate::state::SharedState;
use actions::ActionLog;
use bytes::Bytes;
use game_time::GameTime;
use inputs::Inputs;
use overlay::Overlay;
use pace::Pace;
use parlor_proto::OrderedMap;
use parlor_proto::session::Session;
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{Instant, MemberId, Tick, TickRate, limits};
use parlor_sync::clock::Clock;
use parlor_sync::inputs::{Arrival, Counters, Input, InputError, Report};
use parlor_sync::limits::{RESIMULATE_TICKS_MAX, REWIND_MAX};
use parlor_sync::prediction::{Frame, Once, Rerun};
use parlor_sync::value::Value;
use parlor_sync::world::World;
use replay::Replay;
use resimulation::Resimulation;
use rewind::Rewinds;
use std::time::Duration;
use ticker::Ticker;

/// The steps of an open room at this process.
#[derive(Debug)]
pub(crate) struct Simulation {
    me: MemberId,
    rate: TickRate,
    /// When the room opened, by the hub's clock.
    opened: Instant,
    clock: Clock,
    game_time: GameTime,
    ticker: Ticker,
    replay: Replay,
    /// The one-shot effects already shown.
    once: Once,
    inputs: Inputs,
    actions: ActionLog,
    pace: Pace,
    rewinds: Rewinds,
    overlay: Overlay,
    /// At a host whose game enables it.
    resimulation: Option<Box<Resimulation>>,
    /// The step that the last commit's writes counted for.
    label: Tick,
}

/// A step that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// One that is run again.
    Replay,
    /// A new one. `room_tick` is the room's step at that time.
    New { room_tick: Tick },
}

impl Simulation {
    /// The simulation of a room whose welcome came at `at`.
    pub(crate) fn new(welcome: &Welcome, options: &Options, is_host: bool, at: Instant) -> Self {
        let rate = welcome.tick_rate;
        let clock = Clock::new(welcome.now, at);
        let room_time = clock.room_time(welcome.opened, at);
        Simulation {
            me: welcome.member,
            rate,
            opened: welcome.opened,
            clock,
            game_time: GameTime::default(),
            ticker: Ticker::new(rate, room_time),
            replay: Replay::default(),
            once: Once::default(),
            inputs: Inputs::new(rate),
            actions: ActionLog::default(),
            pace: if is_host { Pace::of_host(options, rate) } else { Pace::default() },
            rewinds: Rewinds::default(),
            overlay: Overlay::default(),
            resimulation: Resimulation::new(options).filter(|_| is_host),
            label: rate.tick_at(room_time),
        }
    }

    /// Follows the clock of another hub, which has reopened the room. Steps go on.
    pub(crate) fn reopened(&mut self, welcome: &Welcome, at: Instant) {
        (self.opened, self.clock) = (welcome.opened, Clock::new(welcome.now, at));
    }

    /// Discards what was drawn and predicted under the previous authority.
    pub(crate) fn begin_anew(&mut self) {
        self.replay = Replay::default();
        self.overlay = Overlay::default();
        self.rewinds = Rewinds::default();
    }

    /// Turns a host's simulation into a guest's.
    pub(crate) fn follow(&mut self) {
        self.pace = Pace::default();
        self.resimulation = None;
    }

    /// Turns a guest's simulation into the host's, which goes on after step `tick` of the previous host.
    /// `has_paused` says that the steps since the last one of this process are left out.
    pub(crate) fn take_over(&mut self, options: &Options, tick: Option<Tick>, has_paused: bool, at: Instant) {
        self.pace = Pace::of_host(options, self.rate);
        self.resimulation = Resimulation::new(options);
        let time = self.jump(at);
        self.ticker.take_over(tick, has_paused, time, RESIMULATE_TICKS_MAX);
        self.label = self.ticker.tick();
    }

    /// Goes on after a pause, without the steps of it.
    pub(crate) fn go_on(&mut self, at: Instant) {
        let time = self.jump(at);
        self.ticker.begin_at(time);
    }
}

/// Clocks.
impl Simulation {
    /// The room's time.
    pub(crate) fn room_time(&self, now: Instant) -> Instant {
        self.clock.room_time(self.opened, now)
    }

    /// Time since the room opened.
    pub(crate) fn since_opened(&self, now: Instant) -> Duration {
        self.clock.since(self.opened, now)
    }

    /// The clock that steps are due by.
    fn due(&self, now: Instant) -> Instant {
        self.pace.time(self.room_time(now))
    }

    /// The clock that this process runs its steps by.
    fn time(&self, now: Instant) -> Instant {
        self.game_time.time(self.due(now))
    }

    /// The same after a jump of the clock that steps are due by.
    fn jump(&mut self, now: Instant) -> Instant {
        let due = self.due(now);
        self.game_time.jump(due);
        due
    }

    /// Lets the game's time pass, which steps are run by from here on.
    pub(crate) fn advance(&mut self, elapsed: Duration, now: Instant) {
        let due = self.due(now);
        if self.game_time.pass(elapsed, self.pace.dilation(), due) {
            self.ticker.drop_due(due);
        }
    }

    /// Updates the clocks, before checking whether a step is due. `is_host` says whether this process writes
    /// the world; `report` is the host's report on this member's inputs.
    pub(crate) fn keep_pace(
        &mut self,
        options: &Options,
        session: &Session,
        (is_host, report): (bool, Option<Report>),
        now: Instant,
    ) {
        let mut has_jumped = false;
        if let Some(offset_us) = session.clock_offset_us() {
            has_jumped = self.clock.follow(offset_us, now);
            if options.has_lead() && !is_host && !self.pace.has_lead() {
                let round_trip = session.rtt().unwrap_or_default();
                let room_time = self.room_time(now);
                self.pace.lead_from(options.lead_tuning, room_time, self.rate, round_trip);
                has_jumped = true;
            }
        }
        let room_time = self.room_time(now);
        has_jumped |= self.pace.advance(room_time);
        has_jumped |= report.is_some_and(|report| self.hear_report(report));
        // Without its lead a step's input would be late, and the host would report it once there is one.
        let waits_for_lead = options.has_lead() && !is_host && !self.pace.has_lead();
        if has_jumped || waits_for_lead {
            let time = self.jump(now);
            self.ticker.begin_at(time);
        }
    }

    /// Applies the host's report on this member's inputs. Returns whether the steps jumped ahead.
    fn hear_report(&mut self, report: Report) -> bool {
        let Some(has_jumped) = self.pace.reported(report) else { return false };
        self.inputs.reported(report);
        has_jumped
    }

    /// Measures the delay of a packet of the host's state. `before` is the newest tick known before it,
    /// `newest` the one known after it.
    pub(crate) fn heard_state(&mut self, before: Option<Tick>, newest: Option<Tick>, arrived: Instant) {
        // Retransmitted state says nothing about the delay.
        if let Some(newest) = newest.filter(|newest| before != Some(*newest)) {
            let room_time = self.room_time(arrived);
            self.pace.state_arrived(self.rate.begins(newest), room_time);
        }
    }
}

/// Steps.
impl Simulation {
    /// The current or last step of the game.
    pub(crate) fn step(&self) -> Step {
        match self.replay.running() {
            Some(tick) => Step { tick, is_replay: true },
            None => Step { tick: self.ticker.tick(), is_replay: false },
        }
    }

    /// Whether steps are being run again.
    pub(crate) fn is_replaying(&self) -> bool {
        self.step().is_replay || self.replay.is_waiting()
    }

    /// Steps dropped because the game was behind.
    pub(crate) fn ticks_dropped(&self) -> u64 {
        self.ticker.dropped()
    }

    /// Time until the next step is due.
    pub(crate) fn until_next(&self, now: Instant) -> Duration {
        self.ticker.until_next(self.time(now))
    }

    /// Whether an effect is to be shown: see [`RoomCore::once`](crate::RoomCore::once).
    pub(crate) fn is_first(&mut self, effect: &str, number: u64) -> bool {
        self.once.is_first(effect, number, self.ticker.tick())
    }

    /// Begins the next step, if one is due or must be run again.
    pub(crate) fn begin_step(&mut self, shared: &mut SharedState, now: Instant) -> Option<Begun> {
        self.resimulate(shared, now);
        self.reconcile(shared, now);
        let begun = if self.replay.advance().is_some() {
            Begun::Replay
        } else {
            let time = self.time(now);
            if !self.ticker.step(time) {
                return None;
            }
            let room_tick = self.room_tick(now);
            self.began(shared.host().is_some(), now);
            Begun::New { room_tick }
        };
        shared.begin_step(self.step().tick);
        self.actions.begin_step();
        Some(begun)
    }

    /// Notes the first run of a step.
    fn began(&mut self, is_host: bool, now: Instant) {
        let (tick, room_time) = (self.ticker.tick(), self.room_time(now));
        // Whatever step earlier writes counted for, the game is in this one.
        self.label = tick;
        self.pace.ran(tick);
        if is_host {
            self.inputs.ran(tick, room_time);
        }
    }

    /// Returns the step that the writes since the last commit count for.
    pub(crate) fn label(&mut self, now: Instant) -> Tick {
        self.label = self.ticker.label(self.time(now));
        self.label
    }

    /// The step that is due for everything that is not simulated: the room's, when steps are run ahead of it.
    pub(crate) fn room_tick(&self, now: Instant) -> Tick {
        let room_time = self.room_time(now);
        if self.pace.time(room_time) == room_time {
            self.ticker.label(room_time)
        } else {
            self.rate.tick_at(room_time)
        }
    }

    /// Called at the host before the next step. Saves the state at the end of the last step. If an input came
    /// late for a step that was run, and the next step is a new one, rolls the entities back and queues the
    /// steps from there.
    ///
    /// Published state stays published. Results of the replay go out with the next new step.
    fn resimulate(&mut self, shared: &mut SharedState, now: Instant) {
        let is_due = self.until_next(now).is_zero();
        let (ended, is_waiting) = (self.step().tick, self.replay.is_waiting());
        let Some(resimulation) = self.resimulation.as_deref_mut().filter(|_| is_waiting || is_due) else {
            return;
        };
        let Some(world) = shared.host_mut().map(|host| host.world_mut()) else { return };
        resimulation.save(world, ended);
        if is_waiting {
            return;
        }
        let Some(late) = self.inputs.take_late() else { return };
        if let Some(first) = resimulation.go_back(world, late, ended) {
            self.replay.queue(first, ended);
        }
    }

    /// The moment between two steps that is drawn at `now`.
    pub(crate) fn frame(&self, now: Instant) -> Frame {
        let since = self.time(now).saturating_since(self.rate.begins(self.ticker.tick()));
        Frame { phase: since.as_secs_f64() / self.rate.interval().as_secs_f64(), now }
    }

    /// Compares predictions with the host's state. Rolls mispredictions back and queues the steps since then.
    fn reconcile(&mut self, shared: &mut SharedState, now: Instant) {
        let (frame, newest) = (self.frame(now), self.ticker.tick());
        let SharedState::Member(member) = shared else { return };
        if self.replay.is_waiting() {
            if member.is_rerunning() {
                return;
            }
            // A discontinuity between two hosts: no prediction counts.
            self.replay.cancel();
        }
        if let Some(Rerun { first, last }) = member.reconcile(newest, frame) {
            self.replay.queue(first, last);
        }
    }
}

/// Inputs.
impl Simulation {
    /// The step that inputs are for: the current one. For a game that does not run steps, the one that its
    /// writes count for.
    fn input_tick(&self) -> Tick {
        let step = self.step();
        if step.is_replay || !self.label.is_newer_than(step.tick) { step.tick } else { self.label }
    }

    /// Records this process's input for the current step, with the actions that are to be sent in it. Without an
    /// input the newest earlier one is repeated. `drawn` is the moment that the player saw.
    pub(crate) fn record_input(
        &mut self,
        drawn: Option<Instant>,
        encoded: Option<Bytes>,
    ) -> Result<(), RoomError> {
        let tick = self.input_tick();
        let earlier = || self.inputs.own_at(tick).map(|input| input.encoded.clone());
        let encoded = match encoded.or_else(earlier) {
            Some(encoded) => encoded,
            None => Value::Null.encode(limits::INPUT_BYTES_MAX)?,
        };
        let with_actions = self.actions.encode(tick, &encoded)?;
        self.inputs.record(tick, drawn, encoded, with_actions);
        Ok(())
    }

    /// Encodes this process's newest inputs that the host has not used, with up to `repeated` older ones.
    pub(crate) fn own_inputs(&self, repeated: usize) -> Option<Bytes> {
        self.inputs.own_message(repeated)
    }

    /// A member's input for the current step, or its newest earlier one.
    pub(crate) fn input(&self, member: MemberId) -> Option<&Input> {
        let tick = self.input_tick();
        if member == self.me { self.inputs.own_at(tick) } else { self.inputs.of(member, tick) }
    }

    /// Notes that the host's game used an input of a member. Its own needs no acknowledgement, which would be
    /// a state update for every step.
    pub(crate) fn used_input(&mut self, member: MemberId, tick: Tick) {
        self.inputs.used(member, tick);
    }

    /// The newest step whose input of a member the game used, at the host. Its own is used in its step.
    pub(crate) fn newest_used(&self, member: MemberId) -> Option<Tick> {
        let own = || self.inputs.own_at(self.input_tick()).map(|input| input.tick);
        if member == self.me { own() } else { self.inputs.newest_used(member) }
    }

    /// The members that may have inputs, at the host: this process and those that sent some.
    pub(crate) fn input_members(&self) -> Vec<MemberId> {
        let mut members: Vec<MemberId> = self.inputs.members().chain([self.me]).collect();
        members.sort_unstable();
        members
    }

    /// Takes in a member's input message, at the host.
    pub(crate) fn take_input(
        &mut self,
        from: MemberId,
        message: Bytes,
        arrived: Instant,
    ) -> Result<(), InputError> {
        let at = self.room_time(arrived);
        self.inputs.take(from, message, Arrival { at, tick: self.rate.tick_at(at) })
    }

    /// The reports to the members whose inputs were used, at the host.
    pub(crate) fn input_reports(&mut self, now: Instant) -> OrderedMap<MemberId, Report> {
        let room_time = self.room_time(now);
        self.inputs.reports(room_time)
    }

    /// Counters of another member's inputs, at the host; `None` if none came.
    pub(crate) fn input_counters(&self, member: MemberId) -> Option<Counters> {
        self.inputs.counters_of(member)
    }

    /// Notes that a member has left.
    pub(crate) fn left(&mut self, member: MemberId) {
        self.inputs.left(member);
    }

    /// The world as a member saw it when it made its input for the current step, at most `most` ago.
    pub(crate) fn past<'a>(&mut self, world: &'a World, member: MemberId, most: Duration) -> Past<'a> {
        let tick = self.input_tick();
        let present = self.rate.begins(tick);
        let input = if member == self.me { None } else { self.inputs.of(member, tick) };
        let drawn = input.and_then(|input| Some(input.view?.moment(input.tick, self.rate)));
        let oldest = present - most.min(REWIND_MAX);
        self.rewinds.past(world, member, drawn, (oldest, present))
    }
}

/// Predicted keys.
impl Simulation {
    /// Sets the lifetime of an unconfirmed prediction of a key, in ticks.
    pub(crate) fn set_prediction_ticks(&mut self, ticks: u32) -> Result<(), RoomError> {
        self.overlay.set_ticks(ticks)
    }

    /// Predicts a key as of the current step.
    pub(crate) fn predict_key(&mut self, key: &str, value: Value) -> Result<(), RoomError> {
        let tick = self.step().tick;
        self.overlay.set(key, tick, value)
    }

    /// The newest prediction of a key.
    pub(crate) fn predicted_key(&self, key: &str) -> Option<&Value> {
        self.overlay.get(key)
    }

    /// Compares predictions of keys with the host's state.
    pub(crate) fn settle_keys(&mut self, shared: &SharedState) {
        if let SharedState::Member(member) = shared
            && let Some(acked) = member.keys().input_ack()
        {
            self.overlay.settle(acked, |key| shared.get(key));
        }
    }

    /// Counters of the predictions of all keys, or of one.
    pub(crate) fn key_predictions(&self, key: Option<&str>) -> OverlayDiagnostics {
        key.map_or_else(|| self.overlay.diagnostics(), |key| self.overlay.diagnostics_of(key))
    }
}

impl Simulation {
    pub(crate) fn diagnose(&self, is_host: bool, diagnostics: &mut Diagnostics) {
        diagnostics.tick = self.ticker.tick();
        diagnostics.ticks_dropped = self.ticker.dropped();
        diagnostics.clock_jumps = self.clock.jumps();
        diagnostics.time_synchronized = self.clock.is_synchronized();
        diagnostics.time_variance = self.clock.variance();
        diagnostics.game_time_behind = self.game_time.behind();
        self.pace.diagnose(diagnostics);
        let counters = self.inputs.counters(is_host);
        diagnostics.inputs_late = counters.late;
        diagnostics.inputs_missing = counters.missing;
        diagnostics.inputs_refused = counters.ancient + counters.far_ahead;
        diagnostics.steps_replayed = self.replay.replayed();
        diagnostics.effects_forgotten = self.once.forgotten();
        (diagnostics.actions_pending, diagnostics.actions_refused) = self.actions.counts();
        self.rewinds.diagnose(diagnostics);
        if let Some(resimulation) = &self.resimulation {
            resimulation.diagnose(diagnostics);
        }
    }
}
