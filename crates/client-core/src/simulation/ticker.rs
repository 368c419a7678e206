//! The fixed step: which tick is due at a room time.

use parlor_proto::{Instant, Tick, TickRate};
use std::time::Duration;

/// Consecutive steps before the rest of a backlog is dropped.
pub(crate) const STEPS_MAX: u32 = 8;

/// Decides when a step of the room is due.
#[derive(Debug)]
pub(crate) struct Ticker {
    rate: TickRate,
    /// The last step that was run.
    tick: Tick,
    /// Whether the game has ever run a due step.
    has_stepped: bool,
    /// Steps run since the last moment at which none was due.
    in_a_row: u32,
    /// Consecutive steps allowed until then, if more than [`STEPS_MAX`].
    catch_up: u32,
    /// The steps of a pause, to be left out.
    pause: Option<Pause>,
    dropped: u64,
}

/// A span of steps that nobody runs.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// The last step before it.
    before: Tick,
    /// The last step of it.
    last: Tick,
}

impl Ticker {
    /// A ticker whose first step is the one after the step of `room_time`.
    pub(crate) fn new(rate: TickRate, room_time: Instant) -> Self {
        Ticker {
            rate,
            tick: rate.tick_at(room_time),
            has_stepped: false,
            in_a_row: 0,
            catch_up: 0,
            pause: None,
            dropped: 0,
        }
    }

    /// Restarts from `room_time`, because the time was only estimated before. The steps in between are
    /// skipped and not counted.
    pub(crate) fn begin_at(&mut self, room_time: Instant) {
        let tick = self.rate.tick_at(room_time);
        if tick.is_newer_than(self.tick) {
            (self.tick, self.pause) = (tick, None);
        }
    }

    /// Continues after step `tick` of another host. Steps due since then are run, the last `most` of them at
    /// once. After a pause, which began with the last step that was run here, the steps of it are left out.
    pub(crate) fn take_over(&mut self, tick: Option<Tick>, has_paused: bool, room_time: Instant, most: u32) {
        let due = self.rate.tick_at(room_time);
        let earlier = |one: Tick, other: Tick| if one.is_newer_than(other) { other } else { one };
        let later = |one: Tick, other: Tick| if one.is_newer_than(other) { one } else { other };
        let before = if has_paused { tick.map_or(self.tick, |tick| later(self.tick, tick)) } else { due };
        let before = earlier(before, due);
        // Without a step of the last host all since the room's opening are due, and none from before it.
        let oldest = Tick(before.0.saturating_sub(most));
        self.tick = earlier(tick.map_or(oldest, |tick| later(oldest, tick)), before);
        (self.in_a_row, self.catch_up) = (0, most);
        self.pause = due.is_newer_than(before).then_some(Pause { before, last: due });
        self.leave_out();
    }

    /// Leaves the steps of the pause out, once those before it are run.
    fn leave_out(&mut self) {
        if let Some(Pause { last, .. }) = self.pause.take_if(|pause| !pause.before.is_newer_than(self.tick)) {
            self.tick = last;
            (self.in_a_row, self.catch_up) = (0, 0);
        }
    }

    /// Whether a step is due; if so, it counts as run. After [`STEPS_MAX`] consecutive steps the rest of the
    /// backlog is dropped: otherwise a game that cannot keep up would fall behind without bound.
    pub(crate) fn step(&mut self, room_time: Instant) -> bool {
        self.leave_out();
        let due = self.rate.tick_at(room_time);
        let behind = due.since(self.tick);
        if behind <= 0 {
            (self.in_a_row, self.catch_up) = (0, 0);
            return false;
        }
        if self.in_a_row >= STEPS_MAX.max(self.catch_up) {
            self.drop_due(room_time);
            return false;
        }
        self.in_a_row += 1;
        self.has_stepped = true;
        self.tick = self.tick.next();
        true
    }

    /// Drops and counts the steps that are due.
    pub(crate) fn drop_due(&mut self, room_time: Instant) {
        let due = self.rate.tick_at(room_time);
        if due.is_newer_than(self.tick) {
            self.dropped += u64::from(due.since(self.tick).unsigned_abs());
            (self.tick, self.pause) = (due, None);
            (self.in_a_row, self.catch_up) = (0, 0);
        }
    }

    /// The last step that was run.
    pub(crate) fn tick(&self) -> Tick {
        self.tick
    }

    /// The tick under which writes up to `room_time` are committed: the last step's. A game that does not run
    /// steps gets the tick before the current one, so that its writes cannot take the place of a step that is
    /// run late.
    pub(crate) fn label(&self, room_time: Instant) -> Tick {
        let due = self.rate.tick_at(room_time);
        let behind = due.since(self.tick);
        let is_close = u32::try_from(behind).is_ok_and(|behind| behind <= STEPS_MAX.max(self.catch_up));
        let is_in_step = self.has_stepped && (is_close || self.pause.is_some());
        if is_in_step || behind <= 0 { self.tick } else { due.offset(-1) }
    }

    /// Steps dropped because the game was behind.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Time until the next step is due.
    pub(crate) fn until_next(&self, room_time: Instant) -> Duration {
        if self.rate.tick_at(room_time).is_newer_than(self.tick) {
            return Duration::ZERO;
        }
        self.rate.interval().saturating_sub(self.rate.phase_at(room_time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_steps_a_second_whatever_the_frame_rate() {
        for frame_us in [1_000, 6_944, 16_667, 40_000] {
            let mut ticker = Ticker::new(TickRate::DEFAULT, Instant::ZERO);
            let mut steps = 0;
            for frame in 1..=(10_000_000 / frame_us) {
                while ticker.step(Instant::from_micros(frame * frame_us)) {
                    steps += 1;
                }
            }
            assert!((299..=300).contains(&steps), "{steps} steps at {frame_us} µs a frame");
            assert_eq!(ticker.dropped(), 0);
        }
    }

    #[test]
    fn every_step_has_its_own_label_however_late_it_is_run() {
        let mut ticker = Ticker::new(TickRate::DEFAULT, Instant::ZERO);
        for frame in 1..1_000 {
            let room_time = Instant::from_millis(frame * 130);
            while ticker.step(room_time) {
                assert_eq!(ticker.label(room_time), ticker.tick());
            }
        }
    }

    #[test]
    fn a_host_that_takes_over_a_young_room_begins_with_its_first_step() {
        for has_paused in [false, true] {
            let mut ticker = Ticker::new(TickRate::DEFAULT, Instant::ZERO);
            ticker.take_over(None, has_paused, Instant::from_millis(300), 32);
            let mut ticks = Vec::new();
            for time_ms in [300, 334, 367] {
                while ticker.step(Instant::from_millis(time_ms)) {
                    ticks.push(ticker.tick().0);
                }
            }
            let all: Vec<u32> = (1..=11).collect();
            assert_eq!(ticks, if has_paused { vec![10, 11] } else { all });
        }
    }

    #[test]
    fn a_game_without_steps_has_labels_that_move_with_the_clock() {
        let mut ticker = Ticker::new(TickRate::DEFAULT, Instant::from_millis(1_000));
        assert_eq!(ticker.label(Instant::from_millis(1_000)), Tick(30));
        assert_eq!(ticker.label(Instant::from_millis(1_100)), Tick(32));
        // Once the game steps, its writes between two steps belong to the step before.
        assert!(ticker.step(Instant::from_millis(1_100)));
        assert_eq!(ticker.label(Instant::from_millis(1_133)), Tick(31));
        // The game has stopped stepping.
        assert_eq!(ticker.label(Instant::from_millis(60_000)), Tick(1_799));
    }

    #[test]
    fn what_was_guessed_is_no_backlog() {
        let mut ticker = Ticker::new(TickRate::DEFAULT, Instant::from_millis(1_000));
        ticker.begin_at(Instant::from_millis(500));
        assert_eq!(ticker.tick(), Tick(30));
        ticker.begin_at(Instant::from_millis(2_000));
        assert!(!ticker.step(Instant::from_millis(2_000)));
        assert!(ticker.step(Instant::from_millis(2_034)));
        assert_eq!(ticker.dropped(), 0);
    }

    #[test]
    fn a_host_of_a_room_without_a_step_begins_at_its_opening() {
        let rate = TickRate::new(20).unwrap();
        for (age_ms, has_paused) in [(0, false), (150, false), (150, true), (60_000, false)] {
            let now = Instant::ZERO + Duration::from_millis(age_ms);
            let mut ticker = Ticker::new(rate, now);
            ticker.take_over(None, has_paused, now, 32);
            let due = rate.tick_at(now);
            let before = ticker.tick();
            assert!(before.0 <= due.0 && due.0 - before.0 <= 32, "{before} of {due}");
        }
    }

    #[test]
    fn a_backlog_is_dropped_and_counted() {
        let mut ticker = Ticker::new(TickRate::DEFAULT, Instant::ZERO);
        let steps = std::iter::repeat_with(|| ticker.step(Instant::from_millis(10_000)))
            .take_while(|due| *due)
            .count();
        assert_eq!(steps, 8);
        assert_eq!(ticker.dropped(), 292);
        assert!(!ticker.step(Instant::from_millis(10_000)));
        assert!(ticker.step(Instant::from_millis(10_034)));
    }
}
