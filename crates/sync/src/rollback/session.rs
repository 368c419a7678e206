//! One end of a rollback session.

use super::arbiter::Arbiter;
use super::config::{Config, Role, RollbackError};
use super::input::{Input, PlayerInput};
use super::messages::Unsaid;
use super::queue::Queue;
use super::report::{Diagnostics, Event};
use super::sums::Sums;
use crate::limits::{ROLLBACK_AHEAD_TICKS, ROLLBACK_PLAYERS_MAX, ROLLBACK_RING_TICKS};
use parlor_proto::Tick;
use std::collections::VecDeque;

/// Ticks beyond the next step for which inputs are accepted.
pub(super) const AHEAD_TICKS: i32 = ROLLBACK_AHEAD_TICKS.cast_signed();
/// Maximum ticks between two targets that count as elapsed time.
const JUMP_TICKS: i32 = 8;
/// Of old ticks, which are never rolled back to, every such one is saved for its checksum.
const SUM_EVERY: u32 = 16;

/// The game's next task. Requests must be done in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Save the state before step `tick`, and report its checksum with [`Rollback::saved`], if it has one.
    Save {
        /// The next step.
        tick: Tick,
    },
    /// Load the state that was saved before step `tick`.
    Load {
        /// The next step.
        tick: Tick,
    },
    /// Run a step.
    Advance {
        /// Its number.
        tick: Tick,
        /// The inputs, by player.
        inputs: &'a [PlayerInput],
        /// Whether the step is a replay: do not repeat its sounds and effects.
        is_replay: bool,
    },
}

/// One end of a session. See the [module](super).
///
/// In each frame, call [`handle_message`](Self::handle_message) for received messages and
/// [`add_input`](Self::add_input). Then call [`step`](Self::step) while it returns true, and after each call
/// do all requests of [`poll_request`](Self::poll_request). Then send the messages of
/// [`poll_message`](Self::poll_message).
#[derive(Debug)]
pub struct Rollback {
    pub(super) config: Config,
    pub(super) queues: Vec<Queue>,
    /// The inputs used in each step, by tick and player.
    used: Vec<PlayerInput>,
    /// The players that missed a tick, as the arbiter decided, for ticks not settled here yet.
    outcomes: Vec<Option<(Tick, u8)>>,
    /// All ticks before this one are settled and known here.
    pub(super) settled: Tick,
    /// The next step to run, the step to stop at, and the first that was never run.
    next: Tick,
    pub(super) end: Tick,
    fresh: Tick,
    is_saved: bool,
    /// The oldest step that was run with wrong inputs.
    wrong: Option<Tick>,
    target: Tick,
    /// Elapsed ticks according to the targets.
    pub(super) elapsed: Tick,
    /// The newest input of each player at this end.
    held: [Input; ROLLBACK_PLAYERS_MAX],
    /// Own inputs before this tick are the arbiter's to say: an earlier process may have sent others. `None`
    /// before the first step.
    own_from: Option<Tick>,
    /// Since when, in elapsed ticks, streams begin after what is settled here.
    pub(super) gap: Option<Tick>,
    /// The settled tick of each other player.
    theirs: [Tick; ROLLBACK_PLAYERS_MAX],
    pub(super) arbiter: Option<Arbiter>,
    pub(super) sums: Sums,
    pub(super) unsaid: Unsaid,
    pub(super) is_lost: bool,
    pub(super) events: VecDeque<Event>,
    pub(super) diagnostics: Diagnostics,
}

impl Rollback {
    /// Creates a session whose first step is [`Config::begin`]; the game has the state before it.
    ///
    /// # Errors
    /// [`RollbackError`] if a value is out of range.
    pub fn new(config: Config) -> Result<Self, RollbackError> {
        config.check()?;
        let (begin, count) = (config.begin, config.count());
        let mut session = Rollback {
            queues: (0..count).map(|_| Queue::new(begin, config.predictor)).collect(),
            used: vec![PlayerInput::NONE; ROLLBACK_RING_TICKS * count],
            outcomes: vec![None; ROLLBACK_RING_TICKS],
            settled: begin,
            next: begin,
            end: begin,
            fresh: begin,
            is_saved: false,
            wrong: None,
            target: begin.offset(-1),
            elapsed: Tick(0),
            held: [Input::EMPTY; ROLLBACK_PLAYERS_MAX],
            own_from: None,
            gap: None,
            theirs: [begin; ROLLBACK_PLAYERS_MAX],
            arbiter: config.is_arbiter().then(|| Arbiter::new(&config)),
            sums: Sums::new(count, begin),
            unsaid: Unsaid::default(),
            is_lost: false,
            events: VecDeque::new(),
            diagnostics: Diagnostics::default(),
            config,
        };
        // The steps within the initial delay have no input.
        for at in 0..config.input_delay {
            session.press_own(Tick(begin.0.wrapping_add(at)));
        }
        Ok(session)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the input of a player at this end. It applies from the next step that [`step`](Self::step)
    /// begins, until the next input is added.
    ///
    /// # Errors
    /// [`RollbackError`] if the player is not at this end, or the input is too large.
    pub fn add_input(&mut self, player: u8, bytes: &[u8]) -> Result<(), RollbackError> {
        if !self.is_own(player) {
            return Err(RollbackError::NotMine(player));
        }
        self.held[usize::from(player)] = Input::new(bytes).ok_or(RollbackError::TooLarge(bytes.len()))?;
        Ok(())
    }

    fn is_own(&self, player: u8) -> bool {
        match self.config.role {
            Role::Player(me) => player == me,
            Role::SyncTest { .. } => player < self.config.players,
            Role::Spectator { .. } | Role::Arbiter => false,
        }
    }

    /// Begins one more step, if it is due and possible; `target` is the step that is due by the room's clock.
    /// If it returns true, do all requests of [`poll_request`](Self::poll_request), and call it again.
    pub fn step(&mut self, target: Tick) -> bool {
        let is_new = target != self.target;
        if is_new {
            // A clock jump must not shorten a player's patience.
            self.elapsed = self.elapsed.offset(target.since(self.target).clamp(0, JUMP_TICKS));
            self.target = target;
            self.own_from.get_or_insert(self.config.own_from(target));
            self.unsaid = Unsaid::all(self.arbiter.is_some());
        }
        self.advance_settled();
        let is_due = self.target.since(self.end) >= 0;
        if !is_due || !self.may_step() {
            self.diagnostics.stalled += u64::from(is_due && is_new);
            return false;
        }
        let delay = i32::try_from(self.config.input_delay).expect("delays are short");
        self.press_own(self.end.offset(delay));
        if let Role::SyncTest { distance } = self.config.role {
            let back = self.end.offset(-i32::try_from(distance).expect("windows are short"));
            self.wrong = (back.since(self.config.begin) >= 0).then_some(back);
        }
        self.end = self.end.next();
        self.advance_settled();
        true
    }

    fn may_step(&self) -> bool {
        let window = i32::try_from(self.config.window).expect("windows are short");
        match self.config.role {
            Role::Spectator { delay } => {
                let delay = i32::try_from(delay).unwrap_or(i32::MAX);
                self.settled.is_newer_than(self.end) && self.target.since(self.end) >= delay
            }
            Role::SyncTest { .. } => true,
            Role::Player(_) | Role::Arbiter => self.end.since(self.settled) < window,
        }
    }

    fn press_own(&mut self, tick: Tick) {
        if self.own_from.is_some_and(|from| from.is_newer_than(tick)) {
            return;
        }
        for player in 0..self.config.players {
            if self.is_own(player) {
                self.press(player, tick, self.held[usize::from(player)]);
            }
        }
    }

    /// Returns the game's next task; `None` when there is nothing to do.
    pub fn poll_request(&mut self) -> Option<Request<'_>> {
        if let Some(tick) = self.wrong.take().filter(|wrong| self.next.is_newer_than(*wrong)) {
            let steps = u32::try_from(self.next.since(tick)).unwrap_or(0);
            self.diagnostics.corrected(tick, steps);
            if !matches!(self.config.role, Role::SyncTest { .. }) {
                self.sums.forget(tick, self.fresh.next());
            }
            (self.next, self.is_saved) = (tick, true);
            return Some(Request::Load { tick });
        }
        if self.next == self.end {
            return None;
        }
        let tick = self.next;
        if !self.is_saved && self.wants_save(tick) {
            self.is_saved = true;
            return Some(Request::Save { tick });
        }
        let is_replay = self.fresh.is_newer_than(tick);
        if is_replay {
            self.diagnostics.replayed += 1;
        } else {
            self.diagnostics.steps += 1;
            self.fresh = tick.next();
        }
        (self.next, self.is_saved) = (tick.next(), false);
        let first = self.used_at(tick);
        let count = self.config.count();
        for (player, queue) in self.queues.iter().enumerate() {
            self.used[first + player] = queue.at(tick, self.settled);
        }
        Some(Request::Advance { tick, inputs: &self.used[first..first + count], is_replay })
    }

    /// Whether the state before a step may be needed, for a rollback or for its checksum.
    fn wants_save(&self, tick: Tick) -> bool {
        let window = i32::try_from(self.config.window).expect("windows are short");
        match self.config.role {
            Role::Spectator { .. } => false,
            Role::SyncTest { .. } => true,
            Role::Player(_) | Role::Arbiter => {
                tick.since(self.settled) >= -window || tick.0.is_multiple_of(SUM_EVERY)
            }
        }
    }

    fn used_at(&self, tick: Tick) -> usize {
        tick.0 as usize % ROLLBACK_RING_TICKS * self.config.count()
    }

    /// Reports the checksum of the state saved before step `tick`. Ends compare checksums, so it must depend
    /// on nothing but the state, on every machine.
    pub fn saved(&mut self, tick: Tick, checksum: u64) {
        let differed = self.sums.saved(tick, checksum).is_some();
        let is_first = self.diagnostics.desyncs == 0;
        if differed && is_first && matches!(self.config.role, Role::SyncTest { .. }) {
            self.diagnostics.desyncs += 1;
            self.events.push_back(Event::Desync { player: None, tick, is_exact: true });
        }
    }

    /// Records that a player has left for good: its inputs are not waited for. For the arbiter.
    pub fn left(&mut self, player: u8) {
        if let Some(arbiter) = &mut self.arbiter {
            arbiter.left(player);
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let finals = self.finals();
        self.sums.compare_until(finals);
        if let Some(event) = self.sums.poll_event(finals) {
            self.diagnostics.desyncs += 1;
            return Some(event);
        }
        self.events.pop_front()
    }

    /// Returns the step that this end runs next.
    pub fn next(&self) -> Tick {
        self.next
    }

    /// Returns the counters.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = self.diagnostics;
        (diagnostics.next, diagnostics.settled) = (self.next, self.settled);
        diagnostics
    }

    /// Returns the inputs of a settled tick and which were missed, unless the tick is beyond the rollback
    /// window.
    pub fn settled_inputs(&self, tick: Tick) -> Option<[PlayerInput; ROLLBACK_PLAYERS_MAX]> {
        let age = self.settled.since(tick);
        if age <= 0 || age > AHEAD_TICKS || self.config.begin.is_newer_than(tick) {
            return None;
        }
        let mut inputs = [PlayerInput::NONE; ROLLBACK_PLAYERS_MAX];
        for (input, queue) in inputs.iter_mut().zip(&self.queues) {
            *input = queue.at(tick, self.settled);
        }
        Some(inputs)
    }

    /// Returns the newest tick that this end has reached with settled inputs alone: states before it and before
    /// all earlier ticks are final.
    pub fn finals(&self) -> Tick {
        let run = self.wrong.filter(|wrong| self.next.is_newer_than(*wrong)).unwrap_or(self.next);
        if run.is_newer_than(self.settled) { self.settled } else { run }
    }

    /// Adds an input, if its tick is not final and not too far ahead (threat 23).
    pub(super) fn press(&mut self, player: u8, tick: Tick, input: Input) {
        if self.settled.is_newer_than(tick) {
            return;
        }
        if tick.since(self.next) >= AHEAD_TICKS {
            self.diagnostics.refused += 1;
            return;
        }
        if self.queues[usize::from(player)].press(tick, input) {
            self.changed(player, tick);
        }
    }

    /// Records which players missed a tick, as the arbiter decided.
    pub(super) fn outcome(&mut self, tick: Tick, missed: u8) {
        if tick.since(self.settled) >= 0 && tick.since(self.next) < AHEAD_TICKS {
            self.outcomes[tick.0 as usize % ROLLBACK_RING_TICKS] = Some((tick, missed));
        }
    }

    /// Records another player's progress.
    pub(super) fn said_settled(&mut self, player: u8, settled: Tick) {
        let theirs = &mut self.theirs[usize::from(player)];
        if settled.is_newer_than(*theirs) {
            *theirs = settled;
        }
    }

    /// The oldest tick that some other player may not know to be settled.
    pub(super) fn others_settled(&self) -> Tick {
        let others = (0..self.config.players).filter(|player| self.config.me() != Some(*player));
        others
            .map(|player| self.theirs[usize::from(player)])
            .fold(self.settled, |oldest, theirs| if oldest.is_newer_than(theirs) { theirs } else { oldest })
    }

    /// A tick's input became known. If its prediction was wrong, the step and all later predictions from it
    /// are.
    fn changed(&mut self, player: u8, tick: Tick) {
        let (queue, count) = (&self.queues[usize::from(player)], self.config.count());
        let mut at = tick;
        while self.next.is_newer_than(at) {
            let input = queue.at(at, self.settled);
            if at != tick && input.status != super::InputStatus::Predicted {
                return;
            }
            let used = self.used[at.0 as usize % ROLLBACK_RING_TICKS * count + usize::from(player)];
            if used.input != input.input {
                if self.wrong.is_none_or(|wrong| wrong.is_newer_than(at)) {
                    self.wrong = Some(at);
                }
                return;
            }
            at = at.next();
        }
    }

    /// Settles all ticks that can be settled.
    pub(super) fn advance_settled(&mut self) {
        while self.settled.since(self.next) < AHEAD_TICKS {
            let tick = self.settled;
            let absent = (0..self.queues.len())
                .filter(|player| self.queues[*player].pressed(tick).is_none())
                .fold(0u8, |absent, player| absent | bit(player));
            let missed = match &mut self.arbiter {
                Some(arbiter) => arbiter.decide(absent, self.end.since(tick), self.elapsed),
                None => self.outcomes[tick.0 as usize % ROLLBACK_RING_TICKS]
                    .filter(|(at, missed)| *at == tick && absent & !missed == 0)
                    .map(|(_, missed)| missed),
            };
            let Some(missed) = missed else { return };
            self.settle(tick, missed);
        }
    }

    fn settle(&mut self, tick: Tick, missed: u8) {
        for player in 0..self.config.players {
            let queue = &mut self.queues[usize::from(player)];
            if missed & bit(player.into()) != 0 {
                queue.miss(tick, tick);
                self.diagnostics.missed_by_all += 1;
                self.diagnostics.missed += u64::from(self.config.me() == Some(player));
                self.changed(player, tick);
            } else {
                queue.settle(tick);
            }
        }
        let next = tick.next();
        if let Some(arbiter) = &mut self.arbiter {
            let queues = &self.queues;
            arbiter.log.push(missed, queues.iter().map(|queue| queue.at(tick, next).input));
        }
        self.settled = next;
    }
}

/// The bit of a player in a mask.
pub(super) fn bit(player: usize) -> u8 {
    1 << player
}
