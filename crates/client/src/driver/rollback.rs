//! A rollback lane, as a game holds it.

use super::room::Room;
use parlor_client_core::{RollbackConfig, RollbackKeyDiagnostics, RollbackRequest, RoomError};
use parlor_proto::{MemberId, Tick};
use parlor_sync::rollback::{Diagnostics, Event, InputStatus};
use parlor_sync::value::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Room {
    /// The rollback lane of this room.
    pub fn rollback(&self) -> Rollback<'_> {
        Rollback { room: self }
    }
}

/// A rollback lane, from [`Room::rollback`]: a state that players make together from their inputs. Every
/// process runs all steps, with guesses of what has not come yet, and runs them again when a guess was wrong.
/// It suits games in which every press counts and whose whole state is small: fighting games, ball games,
/// anything for two to eight.
///
/// ```no_run
/// use parlor::{Event, MemberId, RollbackConfig, RollbackRequest, Room, Tick};
///
/// fn play(room: &mut Room, players: Vec<MemberId>, begin: Tick) -> Result<(), Box<dyn std::error::Error>> {
///     room.rollback().begin(&RollbackConfig::new(players.clone(), begin))?;
///     loop {
///         while let Some(event) = room.poll() {
///             if let Event::Closed(why) = event {
///                 return Err(why.into());
///             }
///         }
///         let pressed = 1i32;
///         while room.rollback().step(&pressed)? {
///             while let Some(request) = room.rollback().request() {
///                 // What is under keys is saved and loaded by itself.
///                 if let RollbackRequest::Advance { .. } = request {
///                     for player in &players {
///                         let key = format!("paddle/{player}");
///                         let place: i32 = room.rollback().get(&key)?.unwrap_or_default();
///                         let pressed = room.rollback().input::<i32>(*player)?.map_or(0, |(pressed, _)| pressed);
///                         room.rollback().set(&key, &(place + pressed))?;
///                     }
///                 }
///             }
///         }
///         // Draw what `room.rollback().get` gives.
///         std::thread::sleep(std::time::Duration::from_millis(4));
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rollback<'a> {
    room: &'a Room,
}

impl Rollback<'_> {
    /// Begins a rollback lane, in place of the one that there may have been. All who take part begin it with
    /// the same players, in the same order, and the same first step, a step of the room; agree on them by
    /// state or a message first.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or a value is out of its bounds.
    pub fn begin(&self, config: &RollbackConfig) -> Result<(), RoomError> {
        self.room.with(|core, _| core.rollback(config))
    }

    /// Begins one more step of the lane with this player's input, if one is due and can be run: then do all
    /// that [`request`](Self::request) says, and ask again, once a frame until it says no. An input may have
    /// up to 64 encoded bytes.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is too large.
    pub fn step<T: Serialize + ?Sized>(&self, input: &T) -> Result<bool, RoomError> {
        let (step, wakes) = self.room.with(|core, now| {
            let step = core.rollback_step(input, now);
            // What the lane says goes out with the last step of a frame.
            let wakes = !matches!(step, Ok(true)) && core.take_wants_driver();
            (step, wakes)
        });
        if wakes {
            self.room.shared.wake();
        }
        step
    }

    /// What the game must do next for its lane; `None` when it is where it should be.
    pub fn request(&self) -> Option<RollbackRequest> {
        self.room.with(|core, _| core.lane_mut().next_request())
    }

    /// The checksum of the game's own state that was kept as that before step `tick`; the same state must
    /// have the same on every machine. What is under keys is in it by itself.
    pub fn saved(&self, tick: Tick, checksum: u64) {
        self.room.with(|core, _| core.lane_mut().saved(tick, checksum));
    }

    /// What a player does in the step that [`RollbackRequest::Advance`] asked for, and how sure that is;
    /// `None` if it has not pressed anything yet.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player in the lane, or the input is not as the type wants it.
    pub fn input<T: DeserializeOwned>(
        &self,
        player: MemberId,
    ) -> Result<Option<(T, InputStatus)>, RoomError> {
        self.room.with(|core, _| core.lane().input(player))
    }

    /// Sets a key of the lane's state, within a step.
    ///
    /// # Errors
    /// [`RoomError`] if there is no lane, or key or value are out of their bounds.
    pub fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<(), RoomError> {
        self.room.with(|core, _| core.lane_mut().set(key, value))
    }

    /// The value of a key as this process has it at present, guesses included; for a key that the lane does
    /// not have, what [`StateView::get`](super::StateView::get) gives.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.room.with(|core, _| core.rollback_state(key))
    }

    /// The authoritative value of a key: without guesses, as the host has settled it, at the newest step that this process
    /// has run with settled inputs alone. With that step. All processes have the same value for the same step. `None` if the
    /// lane does not have the key. Ask between steps.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn settled<T: DeserializeOwned>(&self, key: &str) -> Result<Option<(Tick, T)>, RoomError> {
        self.room.with(|core, _| core.lane().settled(key))
    }

    /// All keys of the lane with their values, in ascending order.
    pub fn states(&self) -> Vec<(String, Value)> {
        self.room.with(|core, _| core.lane().states())
    }

    /// Removes a key of the lane's state, within a step; says whether there was one.
    pub fn remove(&self, key: &str) -> bool {
        self.room.with(|core, _| core.lane_mut().remove(key))
    }

    /// Ends the lane, with all that is under its keys.
    pub fn end(&self) {
        self.room.with(|core, _| core.lane_mut().end());
    }

    /// What the lane has to tell, oldest first: two ends that differ, or that this one was away for too long.
    pub fn event(&self) -> Option<Event> {
        self.room.with(|core, _| core.lane_mut().poll_event())
    }

    /// What became of one key: its saved states, and how often a step that was run again gave it another value; `None` if the lane has
    /// no such key.
    pub fn key_diagnostics(&self, key: &str) -> Option<RollbackKeyDiagnostics> {
        self.room.with(|core, _| core.lane().key_diagnostics(key))
    }

    /// What the lane counted, and its last corrections; `None` without one.
    pub fn diagnostics(&self) -> Option<Diagnostics> {
        self.room.with(|core, _| core.lane().diagnostics())
    }
}
