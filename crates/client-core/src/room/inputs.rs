//! Inputs of players, and a guest's predictions of keys.

use super::{Joined, RoomCore};
use crate::error::RoomError;
use crate::simulation::OverlayDiagnostics;
use crate::state::SharedState;
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::{Instant, MemberId, Tick, channel, limits};
use parlor_sync::inputs::{Arrival, Counters, Input};
use parlor_sync::limits::INPUTS_SENT_MAX;
#[cfg(doc)]
use parlor_sync::limits::OVERLAY_TICKS_MAX;
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// For a game: inputs, and predicted values of keys.
impl RoomCore {
    /// Records this player's input for the last step, and sends it until the host has used it. The host's own
    /// input takes the same route within its process.
    ///
    /// Does nothing in a [replayed](Self::is_replay) step: the recorded input counts.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is larger than [`limits::INPUT_BYTES_MAX`].
    pub fn send_input<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<(), RoomError> {
        let has_lead = self.options.has_lead();
        let (_, joined) = self.open_with_host("be sent inputs")?;
        if joined.step().is_replay {
            return Ok(());
        }
        let encoded = to_value(input)?.encode(limits::INPUT_BYTES_MAX)?;
        let tick = joined.input_tick();
        joined.inputs.record(tick, joined.shared.drawn(), encoded);
        if joined.is_host() {
            return Ok(());
        }
        // Without lead an input is used on arrival: only the newest counts.
        let repeated = if has_lead { INPUTS_SENT_MAX } else { 0 };
        if let Some(message) = joined.inputs.own_message(repeated) {
            let key = joined.welcome.member.0;
            self.post_input(Outgoing { key, ..Outgoing::new(channel::INPUT, message) })?;
        }
        Ok(())
    }

    /// A player's input for the current step, or its newest earlier one. `None` until the first arrives. The
    /// host may read any player's, and acknowledges its use to the player; a guest reads only its own.
    ///
    /// # Errors
    /// [`RoomError`] if a guest asks for another player's input, or the input does not match the type: a
    /// hostile player can send anything.
    pub fn input<T: DeserializeOwned>(&mut self, player: MemberId) -> Result<Option<T>, RoomError> {
        let (_, joined) = self.open("read inputs")?;
        let (me, is_host) = (joined.welcome.member, joined.is_host());
        let tick = joined.input_tick();
        if player != me && !is_host {
            return Err(joined.not_host("read inputs").into());
        }
        let input = if player == me { joined.inputs.own_at(tick) } else { joined.inputs.of(player, tick) };
        let Some(Input { tick, encoded, .. }) = input.cloned() else { return Ok(None) };
        let value = Value::decode(encoded).expect("it was read when it came, or written here");
        let read = match from_value(&value) {
            Ok(read) => read,
            Err(error) => {
                self.messages_unreadable += 1;
                return Err(error.into());
            }
        };
        // The host needs no acknowledgement of its own input, which would be a state update for every step.
        joined.inputs.used(player, tick);
        Ok(Some(read))
    }

    /// The inputs of all players for the current step, at the host. Players without an input and unreadable
    /// inputs are left out: a hostile player can send anything.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn inputs<T: DeserializeOwned>(&mut self) -> Result<Vec<(MemberId, T)>, RoomError> {
        let (_, joined) = self.open_as_host("read inputs")?;
        let me = joined.welcome.member;
        let mut members: Vec<MemberId> = joined.inputs.members().chain([me]).collect();
        members.sort_unstable();
        let mut all = Vec::with_capacity(members.len());
        for member in members {
            // One that cannot be read is counted.
            let input = self.input(member).ok().flatten();
            all.extend(input.map(|input| (member, input)));
        }
        Ok(all)
    }

    /// Counters of a player's inputs, at the host; `None` if none came.
    pub fn input_counters(&self, player: MemberId) -> Option<Counters> {
        self.joined.as_ref()?.inputs.counters_of(player)
    }

    /// Takes in an input message that arrived `at`.
    pub(super) fn read_input(&mut self, from: MemberId, message: Bytes, at: Instant) {
        let Some(joined) = &mut self.joined else { return };
        // An input of a player that has left is late; one of an unannounced player is early, and its next one
        // comes soon.
        let is_wanted = joined.is_host() || joined.migration.is_heir();
        if !is_wanted || joined.players.get(from).is_none() {
            return;
        }
        let room_time = joined.room_time(at);
        let tick = joined.welcome.tick_rate.tick_at(room_time);
        // The hub forwards inputs unread, so an unreadable one is its sender's fault alone.
        if joined.inputs.take(from, message, Arrival { at: room_time, tick }).is_err() {
            self.messages_unreadable += 1;
        }
    }

    /// Sets the lifetime of an unconfirmed key prediction in ticks, 1 to [`OVERLAY_TICKS_MAX`]. Default: that
    /// maximum, as for predicted components.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the number is out of bounds.
    pub fn configure_prediction(&mut self, ticks: u32) -> Result<(), RoomError> {
        self.open("configure predictions")?.1.overlay.set_ticks(ticks)
    }

    /// Predicts the value of a key after the host has used this player's input of the last step.
    /// [`predicted`](Self::predicted) returns it at once, until the host's state for that step replaces it.
    /// Does nothing at the host, whose values are final.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or there would be too many keys.
    pub fn set_predicted<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        let value = to_value(value)?;
        let (_, joined) = self.open("predict a key")?;
        if joined.is_host() {
            return Ok(());
        }
        let tick = joined.step().tick;
        joined.overlay.set(key, tick, value)
    }

    /// The newest predicted value of a key; without a prediction, the same as [`get`](Self::get).
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn predicted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        match self.joined.as_ref().and_then(|joined| joined.overlay.get(key)) {
            Some(value) => Ok(Some(from_value(value)?)),
            None => self.get(key),
        }
    }

    /// Counters of the predictions of keys.
    pub fn prediction_diagnostics(&self) -> OverlayDiagnostics {
        self.joined.as_ref().map(|joined| joined.overlay.diagnostics()).unwrap_or_default()
    }
}

impl Joined {
    /// The step that inputs are for: the current one. For a game that does not run steps, the one that its
    /// writes count for.
    pub(super) fn input_tick(&self) -> Tick {
        let step = self.step();
        if step.is_replay || !self.label.is_newer_than(step.tick) { step.tick } else { self.label }
    }

    /// Compares predictions of keys with the host's state.
    pub(super) fn settle_overlay(&mut self) {
        if let SharedState::Member(member) = &self.shared
            && let Some(acked) = member.keys().input_ack()
        {
            self.overlay.settle(acked, |key| self.shared.get(key));
        }
    }
}
