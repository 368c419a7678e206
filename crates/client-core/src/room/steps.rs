//! Steps: when one is due, which are run again, and rewinding within them.

use super::{Joined, RoomCore};
use crate::error::RoomError;
use crate::info::Diagnostics;
use crate::options::Options;
use crate::simulation::{Past, Step};
use crate::state::SharedState;
use parlor_proto::session::Session;
use parlor_proto::{ApiMisuse, Instant, MemberId, Tick};
use parlor_sync::limits::REWIND_MAX;
use parlor_sync::prediction::{Frame, Rerun};

/// For a game: replayed steps, and rewinding.
impl RoomCore {
    /// Whether the current step is a replay. Its messages and effects have been sent and shown, and its
    /// inputs are the recorded ones.
    pub fn is_replay(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.step().is_replay)
    }

    /// Whether to show a one-shot effect, such as a sound or a flash: true for the first call with this name
    /// and number in 256 ticks, however often its step is [replayed](Self::is_replay). The number
    /// distinguishes effects of one name and must be the same in a replay, such as the step's number or a
    /// shot's.
    ///
    /// An effect that first occurs in a replay is shown then: better late than never. Always false before the
    /// room is open.
    pub fn once(&mut self, effect: &str, number: u64) -> bool {
        let Some(joined) = &mut self.joined else { return false };
        joined.once.is_first(effect, number, joined.ticker.tick())
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
        let rewind_max = self.options.rewind_max.min(REWIND_MAX);
        let (_, joined) = self.open_as_host("look back")?;
        if joined.players.get(member).is_none() {
            return Err(ApiMisuse::NoSuchPlayer(member).into());
        }
        let (present, moment) = joined.seen_by(member);
        let oldest = present - rewind_max;
        let world = joined.shared.world();
        Ok(look(&mut joined.rewinds.past(world, member, moment, (oldest, present))))
    }
}

impl Joined {
    /// The clock that this process runs its steps by.
    pub(super) fn simulation_time(&self, now: Instant) -> Instant {
        self.pace.time(self.room_time(now))
    }

    /// Updates the clocks, before checking whether a step is due.
    pub(super) fn keep_pace(&mut self, options: &Options, session: &Session, now: Instant) {
        let mut has_jumped = false;
        if let Some(offset_us) = session.clock_offset_us() {
            has_jumped = self.clock.follow(offset_us, now);
            if options.has_lead() && !self.is_host() && !self.pace.has_lead() {
                let round_trip = session.rtt().unwrap_or_default();
                let room_time = self.room_time(now);
                let rate = self.welcome.tick_rate;
                self.pace.lead_from(room_time, rate, round_trip);
                has_jumped = true;
            }
        }
        let room_time = self.room_time(now);
        has_jumped |= self.pace.advance(room_time);
        has_jumped |= self.hear_report();
        // Without its lead a step's input would be late, and the host would report it once there is one.
        let waits_for_lead = options.has_lead() && !self.is_host() && !self.pace.has_lead();
        if has_jumped || waits_for_lead {
            self.ticker.begin_at(self.simulation_time(now));
        }
    }

    /// Applies the host's report on this member's inputs. Returns whether the steps jumped ahead.
    fn hear_report(&mut self) -> bool {
        let Some(report) = self.shared.input_report() else { return false };
        let Some(has_jumped) = self.pace.reported(report) else { return false };
        self.inputs.reported(report);
        has_jumped
    }

    /// Notes the first run of a step.
    pub(super) fn began(&mut self, tick: Tick, now: Instant) {
        let room_time = self.room_time(now);
        // Whatever step earlier writes counted for, the game is in this one.
        self.label = tick;
        self.pace.ran(tick);
        if self.is_host() {
            self.inputs.ran(tick, room_time);
        }
    }

    /// Measures the delay of a packet of the host's state. `before` is the newest tick known before it.
    pub(super) fn heard_state(&mut self, before: Option<Tick>, arrived: Instant) {
        // Retransmitted state says nothing about the delay.
        if let Some(newest) = self.shared.world().tick().filter(|newest| before != Some(*newest)) {
            let room_time = self.room_time(arrived);
            self.pace.state_arrived(self.welcome.tick_rate.begins(newest), room_time);
        }
    }

    pub(super) fn diagnose_pace(&self, diagnostics: &mut Diagnostics) {
        diagnostics.time_synchronized = self.clock.is_synchronized();
        diagnostics.time_variance = self.clock.variance();
        self.pace.diagnose(diagnostics);
        let counters = self.inputs.counters(self.is_host());
        diagnostics.inputs_late = counters.late;
        diagnostics.inputs_missing = counters.missing;
        diagnostics.inputs_refused = counters.ancient + counters.far_ahead;
    }

    /// The step that is due for everything that is not simulated: the room's, when steps are run ahead of it.
    pub(super) fn room_tick(&self, now: Instant) -> Tick {
        let room_time = self.room_time(now);
        if self.pace.time(room_time) == room_time {
            self.ticker.label(room_time)
        } else {
            self.welcome.tick_rate.tick_at(room_time)
        }
    }

    /// The current or last step of the game.
    pub(super) fn step(&self) -> Step {
        match self.replay.running() {
            Some(tick) => Step { tick, is_replay: true },
            None => Step { tick: self.ticker.tick(), is_replay: false },
        }
    }

    /// Called at the host before the next step. Saves the state at the end of the last step. If an input came
    /// late for a step that was run, and the next step is a new one, rolls the entities back and queues the
    /// steps from there.
    ///
    /// Published state stays published. Results of the replay go out with the next new step.
    pub(super) fn resimulate(&mut self, now: Instant) {
        let is_due = self.ticker.until_next(self.simulation_time(now)).is_zero();
        let (ended, is_waiting) = (self.step().tick, self.replay.is_waiting());
        let Some(resimulation) = self.resimulation.as_deref_mut().filter(|_| is_waiting || is_due) else {
            return;
        };
        let Some(world) = self.shared.host_mut().map(|host| host.world_mut()) else { return };
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
    pub(super) fn frame(&self, now: Instant) -> Frame {
        let rate = self.welcome.tick_rate;
        let since = self.simulation_time(now).saturating_since(rate.begins(self.ticker.tick()));
        Frame { phase: since.as_secs_f64() / rate.interval().as_secs_f64(), now }
    }

    /// Compares predictions with the host's state. Rolls mispredictions back and queues the steps since then.
    pub(super) fn reconcile(&mut self, now: Instant) {
        let (frame, newest) = (self.frame(now), self.ticker.tick());
        let SharedState::Member(member) = &mut self.shared else { return };
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

    /// Begins a step of the game.
    pub(super) fn enter_step(&mut self) {
        let tick = self.step().tick;
        self.shared.begin_step(tick);
    }

    pub(super) fn diagnose_prediction(&self, diagnostics: &mut Diagnostics) {
        diagnostics.steps_replayed = self.replay.replayed();
        diagnostics.effects_forgotten = self.once.forgotten();
        self.shared.diagnose_prediction(diagnostics);
    }

    pub(super) fn diagnose_past(&self, diagnostics: &mut Diagnostics) {
        self.rewinds.diagnose(diagnostics);
        if let Some(resimulation) = &self.resimulation {
            resimulation.diagnose(diagnostics);
        }
    }

    /// When the current step began, and what moment a member drew when it made its input for it. Both in room
    /// time; `None` if it drew nothing.
    fn seen_by(&self, member: MemberId) -> (Instant, Option<Instant>) {
        let (rate, tick) = (self.welcome.tick_rate, self.input_tick());
        let input = if member == self.welcome.member { None } else { self.inputs.of(member, tick) };
        let drawn = input.and_then(|input| Some(input.view?.moment(input.tick, rate)));
        (rate.begins(tick), drawn)
    }
}
