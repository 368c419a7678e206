//! Steps that are run more than once.

use super::room::Room;

/// Steps that are run more than once.
impl Room {
    /// Whether the step that the game is in was run before and is run again: because what a guest predicted turned out
    /// otherwise, or an input came late to a host that re-simulates. What such a step sends and shows was sent and shown.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.with(|core, _| core.is_replay())
    }

    /// Whether a one-shot effect is to be shown, such as a sound or a flash: the first time that it is asked for under this
    /// number in 256 ticks, however often the step that brings it is run again.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM");
    /// # let play_sound = || ();
    /// let step = room.tick_number().map_or(0, |tick| u64::from(tick.0));
    /// if room.once("shot", step) {
    ///     play_sound();
    /// }
    /// ```
    pub fn once(&mut self, effect: &str, number: u64) -> bool {
        self.with(|core, _| core.once(effect, number))
    }
}
