//! What the log says, once, to a developer whose loop does not fit a room.

use parlor_proto::Instant;
use std::time::Duration;

/// A game that makes a call in every frame does so within both of them.
const MISSING_FRAMES: u32 = 30;
const MISSING_TIME: Duration = Duration::from_secs(1);

/// Watches how a game calls a room.
#[derive(Debug)]
pub(super) struct LoopAdvice {
    polled: Calls,
    /// Of [`Room::advance`](super::Room::advance), once the game has called it.
    advanced: Option<Calls>,
    has_said_poll: bool,
    has_said_advance: bool,
    has_said_blocked: bool,
}

/// When the game made a call last.
#[derive(Debug)]
struct Calls {
    at: Instant,
    /// Frames since then.
    frames: u32,
}

impl Calls {
    fn new(at: Instant) -> Self {
        Calls { at, frames: 0 }
    }

    /// Counts a frame. Returns whether the call is missing in frame after frame.
    fn are_missing(&mut self, now: Instant) -> bool {
        self.frames = self.frames.saturating_add(1);
        self.frames >= MISSING_FRAMES && now.saturating_since(self.at) >= MISSING_TIME
    }
}

impl LoopAdvice {
    /// For a room that is opened now.
    pub(super) fn new(now: Instant) -> Self {
        LoopAdvice {
            polled: Calls::new(now),
            advanced: None,
            has_said_poll: false,
            has_said_advance: false,
            has_said_blocked: false,
        }
    }

    /// The game polled.
    pub(super) fn polled(&mut self, now: Instant) {
        self.polled = Calls::new(now);
    }

    /// The game brought its time.
    pub(super) fn advanced(&mut self, now: Instant) {
        self.advanced = Some(Calls::new(now));
    }

    /// The game asked for a step, and none is due: its frame has had all of them. `dropped` is how many steps the room has dropped.
    pub(super) fn frame_ended(&mut self, now: Instant, dropped: u64) -> Option<String> {
        let is_unpolled = self.polled.are_missing(now);
        let is_stopped = self.advanced.as_mut().is_some_and(|advanced| advanced.are_missing(now));
        if is_unpolled && !self.has_said_poll {
            self.has_said_poll = true;
            return Some(
                "the game calls step() and not poll(): nothing that it reads changes, and no step is due before the room is open. \
                 Begin each frame with `while let Some(event) = room.poll()`"
                    .to_owned(),
            );
        }
        if is_stopped && !self.has_said_advance {
            self.has_said_advance = true;
            return Some(
                "the game has called advance(), which says that it brings the time, and calls only step(): no step is due. \
                 Call advance() once in each frame, with zero while the game pauses"
                    .to_owned(),
            );
        }
        if !self.has_said_blocked && dropped > 0 && self.advanced.is_some() {
            self.has_said_blocked = true;
            return Some(format!(
                "the time that the game brings was more than 250 ms behind the room's clock: {dropped} steps were dropped and never run \
                 (Diagnostics::ticks_dropped counts on). That is so after a pause, and in slow motion. Otherwise give \
                 advance() all the time that has passed since its last call"
            ));
        }
        if !self.has_said_blocked && dropped > 0 {
            self.has_said_blocked = true;
            return Some(format!(
                "the game's loop was blocked for longer than eight steps: {dropped} steps were dropped and never run \
                 (Diagnostics::ticks_dropped counts on). Call poll() and step() in every frame, sleep no longer than \
                 room.until_next_tick(), and load or wait on another thread"
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_that_steps_and_never_polls_is_told_once() {
        let mut advice = LoopAdvice::new(Instant::ZERO);
        let at = |frame: u64| Instant::from_millis(frame * 16);
        let said: Vec<u64> = (1..1_000).filter(|frame| advice.frame_ended(at(*frame), 0).is_some()).collect();
        assert_eq!(said, [63], "after a second");
    }

    #[test]
    fn a_game_that_polls_in_every_frame_is_told_nothing_however_slow_or_fast_it_is() {
        for frame_ms in [0, 16, 5_000] {
            let mut advice = LoopAdvice::new(Instant::ZERO);
            for frame in 1..1_000 {
                let now = Instant::from_millis(frame * frame_ms);
                advice.polled(now);
                assert_eq!(advice.frame_ended(now, 0), None, "{frame_ms} ms a frame");
            }
        }
    }

    #[test]
    fn a_game_that_brings_time_once_and_no_more_is_told_once() {
        let (mut advice, mut said) = (LoopAdvice::new(Instant::ZERO), Vec::new());
        for frame in 1..1_000 {
            let now = Instant::from_millis(frame * 16);
            advice.polled(now);
            if frame <= 100 {
                advice.advanced(now);
            }
            said.extend(advice.frame_ended(now, 0).map(|text| (frame, text)));
        }
        let [(frame, text)] = &said[..] else { panic!("{said:?}") };
        assert!(*frame == 163 && text.contains("advance()"), "{said:?}");
    }

    #[test]
    fn a_loop_that_blocks_is_told_once() {
        let mut advice = LoopAdvice::new(Instant::ZERO);
        let mut said = [0, 3, 3, 9].map(|dropped| advice.frame_ended(Instant::ZERO, dropped)).into_iter();
        assert_eq!(said.next(), Some(None));
        assert!(said.next().flatten().is_some_and(|said| said.contains(": 3 steps were dropped")));
        assert!(said.all(|said| said.is_none()));
        let mut advice = LoopAdvice::new(Instant::ZERO);
        advice.advanced(Instant::ZERO);
        let said = advice.frame_ended(Instant::ZERO, 3);
        assert!(
            said.is_some_and(|said| said.contains(": 3 steps were dropped") && said.contains("slow motion"))
        );
    }
}
