//! The known inputs of one player, by tick.

use super::config::Predictor;
use super::input::{Input, InputStatus, PlayerInput};
use crate::limits::ROLLBACK_RING_TICKS;
use parlor_proto::Tick;

/// The input of one tick.
#[derive(Clone, Copy, Debug)]
struct Slot {
    tick: Tick,
    /// `None` if it is not known.
    known: Option<PlayerInput>,
}

/// The inputs of one player.
#[derive(Debug)]
pub(super) struct Queue {
    slots: Vec<Slot>,
    /// The newest real input before the first unsettled tick; predictions start from it.
    anchor: (Tick, Input),
    predictor: Predictor,
}

impl Queue {
    pub(super) fn new(begin: Tick, predictor: Predictor) -> Self {
        let before = begin.offset(-1);
        Queue {
            slots: vec![Slot { tick: before, known: None }; ROLLBACK_RING_TICKS],
            anchor: (before, Input::EMPTY),
            predictor,
        }
    }

    fn index(tick: Tick) -> usize {
        tick.0 as usize % ROLLBACK_RING_TICKS
    }

    fn get(&self, tick: Tick) -> Option<PlayerInput> {
        let slot = self.slots[Self::index(tick)];
        slot.known.filter(|_| slot.tick == tick)
    }

    /// Returns the player's real input, if it is known and was not missed.
    pub(super) fn pressed(&self, tick: Tick) -> Option<Input> {
        self.get(tick).filter(|input| input.status == InputStatus::Known).map(|input| input.input)
    }

    /// Adds an input. Returns whether it is new.
    pub(super) fn press(&mut self, tick: Tick, input: Input) -> bool {
        if self.get(tick).is_some() {
            return false;
        }
        self.put(tick, PlayerInput { input, status: InputStatus::Known });
        true
    }

    /// Marks the input of `tick` as missed: the prediction counts, whatever the player sent. `settled` is the
    /// oldest unsettled tick.
    pub(super) fn miss(&mut self, tick: Tick, settled: Tick) {
        let input = self.guess(tick, settled);
        self.put(tick, PlayerInput { input, status: InputStatus::Missed });
    }

    fn put(&mut self, tick: Tick, input: PlayerInput) {
        self.slots[Self::index(tick)] = Slot { tick, known: Some(input) };
    }

    /// Settles a tick; all before it were settled.
    pub(super) fn settle(&mut self, tick: Tick) {
        if let Some(input) = self.pressed(tick) {
            self.anchor = (tick, input);
        }
    }

    /// Returns the input to use for a tick; `settled` is the oldest unsettled one.
    pub(super) fn at(&self, tick: Tick, settled: Tick) -> PlayerInput {
        self.get(tick).unwrap_or_else(|| PlayerInput {
            input: self.guess(tick, settled),
            status: InputStatus::Predicted,
        })
    }

    fn guess(&self, tick: Tick, settled: Tick) -> Input {
        let mut before = tick.offset(-1);
        while before.since(settled) >= 0 {
            if let Some(input) = self.pressed(before) {
                return self.predict(before, &input, tick);
            }
            before = before.offset(-1);
        }
        let (anchor, input) = &self.anchor;
        self.predict(*anchor, input, tick)
    }

    fn predict(&self, from: Tick, last: &Input, tick: Tick) -> Input {
        (self.predictor)(last, u32::try_from(tick.since(from)).unwrap_or(1))
    }
}
