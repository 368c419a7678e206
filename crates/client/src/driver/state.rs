//! Keyed state, as all read it.

use super::room::Room;
use parlor_client_core::{OverlayDiagnostics, RoomError};
use parlor_sync::value::Value;
use serde::de::DeserializeOwned;

impl Room {
    /// The keyed state, to read. The [`Host`](super::Host) writes it.
    ///
    /// ```no_run
    /// # fn draw(room: &parlor::Room) -> Result<(), parlor::RoomError> {
    /// for key in room.state().keys() {
    ///     println!("{key}: {:?}", room.state().interpolated::<parlor::Value>(&key)?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn state(&self) -> StateView<'_> {
        StateView { room: self }
    }
}

/// The keyed state of a room, from [`Room::state`].
#[derive(Clone, Copy, Debug)]
pub struct StateView<'a> {
    room: &'a Room,
}

impl StateView<'_> {
    /// Latest known value of a key.
    ///
    /// # Errors
    /// [`RoomError::Value`] if the value does not fit the type.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.room.with(|core, _| core.get(key))
    }

    /// Value of a key to draw now: a little in the past, so that it moves evenly. On the host: the value
    /// itself.
    ///
    /// # Errors
    /// [`RoomError::Value`] if the value does not fit the type.
    pub fn interpolated<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.room.with(|core, now| core.interpolated(key, now))
    }

    /// All keys that this process may see with their latest known values, in ascending order.
    ///
    /// ```no_run
    /// # fn show(room: &parlor::Room) {
    /// for (key, value) in room.state().all() {
    ///     println!("{key}: {value:?}");
    /// }
    /// # }
    /// ```
    pub fn all(&self) -> Vec<(String, Value)> {
        self.room.with(|core, _| core.all())
    }

    /// The same with the values to draw now: see [`interpolated`](Self::interpolated).
    pub fn all_interpolated(&self) -> Vec<(String, Value)> {
        self.room.with(|core, now| core.all_interpolated(now))
    }

    /// All keys that this process may see, in ascending order.
    pub fn keys(&self) -> Vec<String> {
        self.room.with(|core, _| core.keys())
    }

    /// Sequence of the state that [`get`](Self::get) reads, and its checksum. Members that see the same keys
    /// have the same checksum at the same sequence.
    pub fn checksum(&self) -> Option<(u64, u64)> {
        self.room.with(|core, _| core.state_hash())
    }

    /// Checksums kept by [`RoomBuilder::hash_every`](super::RoomBuilder::hash_every): (sequence, checksum),
    /// oldest first, at most 256.
    pub fn checksums(&self) -> Vec<(u64, u64)> {
        self.room.with(|core, _| core.state_checksums())
    }
}

/// The light overlay: a guest says itself what a key will be
/// ([`Step::set_predicted`](super::Step::set_predicted)), reads that at once, and it is compared with the
/// host's word when that is there. It replays nothing; for entities there is prediction that does.
impl StateView<'_> {
    /// The value of a key as this process predicted it last; where there is no prediction, what
    /// [`get`](Self::get) gives.
    ///
    /// # Errors
    /// [`RoomError::Value`] if the value does not fit the type.
    pub fn predicted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.room.with(|core, _| core.predicted(key))
    }

    /// Sets for how many ticks a prediction stands while the host's word does not come: 1 to 64. Default: 64.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or it is out of its bounds.
    pub fn configure_prediction(&self, ticks: u32) -> Result<(), RoomError> {
        self.room.with(|core, _| core.configure_prediction(ticks))
    }

    /// What the predictions of keys came to.
    pub fn prediction_diagnostics(&self) -> OverlayDiagnostics {
        self.room.with(|core, _| core.prediction_diagnostics(None))
    }

    /// What the predictions of one key came to: how many wait for the host's word, were right, and were corrected. Kept for the last
    /// 256 keys.
    pub fn prediction_diagnostics_of(&self, key: &str) -> OverlayDiagnostics {
        self.room.with(|core, _| core.prediction_diagnostics(Some(key)))
    }
}
