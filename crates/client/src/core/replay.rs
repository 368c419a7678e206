//! Steps that are run again, because something turned out otherwise than it was when they were run first.

use super::room::{Joined, RoomCore};
use parlor_proto::Tick;

/// Which step a room is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Its number.
    pub(super) tick: Tick,
    /// Whether it was run before.
    pub(super) is_replay: bool,
}

/// Steps that wait to be run again, oldest first, and the one of them that is running.
///
/// Whoever queues steps has set everything back to what it was when `next` began. They come with the next calls of
/// [`RoomCore::tick`], before any that is due, whatever the clock says.
#[derive(Debug, Default)]
pub(super) struct Replay {
    waiting: Option<Span>,
    running: Option<Tick>,
    replayed: u64,
}

/// Steps in a row.
#[derive(Clone, Copy, Debug)]
struct Span {
    next: Tick,
    last: Tick,
}

impl Replay {
    /// Has the steps from `next` to `last` run again, both included; none if `last` is older. What waited before is
    /// forgotten: everything was set back to `next`, and its steps are among these.
    pub(super) fn queue(&mut self, next: Tick, last: Tick) {
        self.waiting = (!next.is_newer_than(last)).then_some(Span { next, last });
    }

    /// What waits is not run again after all: something else set everything right.
    pub(super) fn cancel(&mut self) {
        self.waiting = None;
    }

    /// Begins the next step that waits; says which. With none, what ran is over.
    pub(super) fn advance(&mut self) -> Option<Tick> {
        self.running = self.waiting.map(|span| span.next);
        self.waiting = self
            .waiting
            .map(|Span { next, last }| Span { next: next.next(), last })
            .filter(|span| !span.next.is_newer_than(span.last));
        self.replayed += u64::from(self.running.is_some());
        self.running
    }

    /// The step that is running, if it is one that was run before.
    pub(super) fn running(&self) -> Option<Tick> {
        self.running
    }

    /// Whether a step waits to be run again.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Steps that were run again, in all.
    pub(super) fn replayed(&self) -> u64 {
        self.replayed
    }
}

impl Joined {
    /// The step that the game is in, or was in last.
    pub(super) fn step(&self) -> Step {
        match self.replay.running() {
            Some(tick) => Step { tick, is_replay: true },
            None => Step { tick: self.ticker.tick(), is_replay: false },
        }
    }
}

impl RoomCore {
    /// Whether the step that the game is in was run before and is run again: then what it sends and shows has been sent and
    /// shown, and its inputs are those that were recorded.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.step().is_replay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(replay: &mut Replay) -> Vec<u32> {
        std::iter::from_fn(|| replay.advance()).map(|tick| tick.0).collect()
    }

    #[test]
    fn steps_come_again_once_each_and_in_order() {
        let mut replay = Replay::default();
        assert!(run(&mut replay).is_empty());
        replay.queue(Tick(7), Tick(9));
        assert_eq!(replay.running(), None, "none has begun");
        assert_eq!(run(&mut replay), [7, 8, 9]);
        assert_eq!((replay.running(), replay.is_waiting(), replay.replayed()), (None, false, 3));
    }

    #[test]
    fn what_was_set_back_further_is_run_from_there() {
        let mut replay = Replay::default();
        replay.queue(Tick(7), Tick(9));
        replay.advance();
        replay.queue(Tick(5), Tick(9));
        assert_eq!(replay.running(), Some(Tick(7)), "what runs is not cut short");
        assert_eq!(run(&mut replay), [5, 6, 7, 8, 9]);
        replay.queue(Tick(10), Tick(9));
        assert!(run(&mut replay).is_empty(), "nothing came after");
    }
}
