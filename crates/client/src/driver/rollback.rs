//! A rollback lane and the light overlay, as a game holds them.

use super::room::Room;
use crate::core::{OverlayDiagnostics, RollbackConfig, RollbackRequest, RoomError};
use parlor_proto::{MemberId, Tick};
use parlor_sync::rollback::{Diagnostics, Event, InputStatus};
use parlor_sync::value::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A rollback lane: a state that players make together from their inputs. Every process runs all steps, with guesses of what has not
/// come yet, and runs them again when a guess was wrong. It suits games in which every press counts and whose whole state is
/// small: fighting games, ball games, anything for two to eight.
///
/// ```no_run
/// use parlor::{Event, MemberId, RollbackConfig, RollbackRequest, Room, Tick};
///
/// fn play(room: &mut Room, players: Vec<MemberId>, begin: Tick) -> Result<(), Box<dyn std::error::Error>> {
///     room.rollback(&RollbackConfig::new(players.clone(), begin))?;
///     loop {
///         while let Some(event) = room.poll() {
///             if let Event::Closed(why) = event {
///                 return Err(why.into());
///             }
///         }
///         let pressed = 1i32;
///         while room.rollback_step(&pressed)? {
///             while let Some(request) = room.rollback_request() {
///                 // What is under keys is saved and loaded by itself.
///                 if let RollbackRequest::Advance { .. } = request {
///                     for player in &players {
///                         let key = format!("paddle/{player}");
///                         let place: i32 = room.rollback_state(&key)?.unwrap_or_default();
///                         let pressed = room.rollback_input::<i32>(*player)?.map_or(0, |(pressed, _)| pressed);
///                         room.set_rollback_state(&key, &(place + pressed))?;
///                     }
///                 }
///             }
///         }
///         // Draw what `room.rollback_state` gives.
///         std::thread::sleep(std::time::Duration::from_millis(4));
///     }
/// }
/// ```
impl Room {
    /// Begins a rollback lane, in place of the one that there may have been. All who take part begin it with the same players,
    /// in the same order, and the same first step, a step of the room; agree on them by state or a message first.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or a value is out of its bounds.
    pub fn rollback(&mut self, config: &RollbackConfig) -> Result<(), RoomError> {
        self.with(|core, _| core.rollback(config))
    }

    /// Begins one more step of the lane with this player's input, if one is due and can be run: then do all that
    /// [`rollback_request`](Self::rollback_request) says, and ask again, once a frame until it says no. An input may have up to
    /// 64 encoded bytes.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is too large.
    pub fn rollback_step<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<bool, RoomError> {
        let (step, wakes) = self.with(|core, now| {
            let step = core.rollback_step(input, now);
            // What the lane says goes out with the last step of a frame.
            let wakes = !matches!(step, Ok(true)) && core.take_wants_driver();
            (step, wakes)
        });
        if wakes {
            self.shared.wake();
        }
        step
    }

    /// What the game must do next for its lane; `None` when it is where it should be.
    pub fn rollback_request(&mut self) -> Option<RollbackRequest> {
        self.with(|core, _| core.rollback_request())
    }

    /// The checksum of the game's own state that was kept as that before step `tick`; the same state must have the same on every
    /// machine. What is under keys is in it by itself.
    pub fn rollback_saved(&mut self, tick: Tick, checksum: u64) {
        self.with(|core, _| core.rollback_saved(tick, checksum));
    }

    /// What a player does in the step that [`RollbackRequest::Advance`] asked for, and how sure that is; `None` if it has not
    /// pressed anything yet.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player in the lane, or the input is not as the type wants it.
    pub fn rollback_input<T: DeserializeOwned>(
        &self,
        player: MemberId,
    ) -> Result<Option<(T, InputStatus)>, RoomError> {
        self.with(|core, _| core.rollback_input(player))
    }

    /// Sets a key of the lane's state, within a step.
    ///
    /// # Errors
    /// [`RoomError`] if there is no lane, or key or value are out of their bounds.
    pub fn set_rollback_state<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.set_rollback_state(key, value))
    }

    /// The value of a key as this process has it at present, guesses included; for a key that the lane does not have, what
    /// [`get`](Self::get) gives.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn rollback_state<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.with(|core, _| core.rollback_state(key))
    }

    /// All keys of the lane with their values, in ascending order.
    #[must_use]
    pub fn rollback_states(&self) -> Vec<(String, Value)> {
        self.with(|core, _| core.rollback_states())
    }

    /// Removes a key of the lane's state, within a step; says whether there was one.
    pub fn clear_rollback(&mut self, key: &str) -> bool {
        self.with(|core, _| core.clear_rollback(key))
    }

    /// Ends the lane, with all that is under its keys.
    pub fn clear_rollback_all(&mut self) {
        self.with(|core, _| core.clear_rollback_all());
    }

    /// What the lane has to tell, oldest first: two ends that differ, or that this one was away for too long.
    pub fn rollback_event(&mut self) -> Option<Event> {
        self.with(|core, _| core.rollback_event())
    }

    /// What the lane counted, and its last corrections; `None` without one.
    #[must_use]
    pub fn rollback_diagnostics(&self) -> Option<Diagnostics> {
        self.with(|core, _| core.rollback_diagnostics())
    }
}

/// The light overlay: a guest says itself what a key will be, reads that at once, and it is compared with the host's word when that
/// is there. It replays nothing; for entities there is prediction that does.
impl Room {
    /// For how many ticks a prediction stands while the host's word does not come, 1 to 64. Default 64.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or it is out of its bounds.
    pub fn configure_prediction(&mut self, ticks: u32) -> Result<(), RoomError> {
        self.with(|core, _| core.configure_prediction(ticks))
    }

    /// Says what a key will be once the host has used this player's input of the step that was run last.
    ///
    /// ```no_run
    /// # fn step(room: &mut parlor::Room) -> Result<(), parlor::RoomError> {
    /// while room.tick() {
    ///     room.send_input(&1i32)?;
    ///     let place: i32 = room.predicted("tank/1")?.unwrap_or_default();
    ///     room.set_predicted("tank/1", &(place + 1))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or more than 64 keys would be predicted.
    pub fn set_predicted<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        self.with(|core, _| core.set_predicted(key, value))
    }

    /// The value of a key as this process predicted it last; where there is no prediction, what [`get`](Self::get) gives.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn predicted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.with(|core, _| core.predicted(key))
    }

    /// What the predictions of keys came to.
    #[must_use]
    pub fn prediction_diagnostics(&self) -> OverlayDiagnostics {
        self.with(|core, _| core.prediction_diagnostics())
    }
}
