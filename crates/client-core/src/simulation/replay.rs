//! Steps that are run again after a correction.

use parlor_proto::Tick;

/// Which step a room is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its number.
    pub(crate) tick: Tick,
    /// Whether it was run before.
    pub(crate) is_replay: bool,
}

/// Steps queued to be run again, oldest first, and the running one.
///
/// The caller that queues steps has restored everything to the state before `next`. The steps come with the
/// next calls of [`RoomCore::tick`](crate::RoomCore::tick), before any due step and independent of the clock.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    waiting: Option<Span>,
    running: Option<Tick>,
    replayed: u64,
}

/// Consecutive steps.
#[derive(Clone, Copy, Debug)]
struct Span {
    next: Tick,
    last: Tick,
}

impl Replay {
    /// Queues the steps from `next` to `last`, both included; none if `last` is older. It replaces the queue:
    /// everything was restored to the state before `next`, and earlier queued steps are among these.
    pub(crate) fn queue(&mut self, next: Tick, last: Tick) {
        self.waiting = (!next.is_newer_than(last)).then_some(Span { next, last });
    }

    /// Clears the queue: the steps need not be run again after all.
    pub(crate) fn cancel(&mut self) {
        self.waiting = None;
    }

    /// Begins the next queued step and returns its number. Without one, the replay ends.
    pub(crate) fn advance(&mut self) -> Option<Tick> {
        self.running = self.waiting.map(|span| span.next);
        self.waiting = self
            .waiting
            .map(|Span { next, last }| Span { next: next.next(), last })
            .filter(|span| !span.next.is_newer_than(span.last));
        self.replayed += u64::from(self.running.is_some());
        self.running
    }

    /// The running step, if it is a replayed one.
    pub(crate) fn running(&self) -> Option<Tick> {
        self.running
    }

    /// Whether a step is queued.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Replayed steps in total.
    pub(crate) fn replayed(&self) -> u64 {
        self.replayed
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
