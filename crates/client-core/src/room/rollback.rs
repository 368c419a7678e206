//! The rollback lane: its calls for a game, and its messages.

use super::{Joined, RoomCore};
use crate::connection::say;
use crate::error::{RoomError, misbehaved};
use crate::rollback::{RollbackConfig, RollbackLane, RollbackRequest};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::envelope::{Downward, Sender, Upward};
use parlor_proto::{ApiMisuse, CloseReason, Instant, MemberId, Tick, channel, limits};
use parlor_sync::limits::ROLLBACK_INPUT_BYTES_MAX;
use parlor_sync::rollback::{Diagnostics, Event, InputStatus};
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// For a game: a rollback lane.
impl RoomCore {
    /// Begins a rollback lane, replacing the previous one. All participants begin it with the same players,
    /// in the same order, and the same first step: agree on them by state or a message first.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or a value is out of bounds.
    pub fn rollback(&mut self, config: &RollbackConfig) -> Result<(), RoomError> {
        let (_, joined) = self.open_with_host("begin a rollback lane")?;
        let (me, authority) = (joined.welcome.member, joined.welcome.authority.member());
        joined.rollback = Some(Box::new(RollbackLane::new(config, me, authority)?));
        Ok(())
    }

    /// Begins the next step of the lane with this player's input, if one is due and can be run. Then serve
    /// all of [`rollback_request`](Self::rollback_request), and call this again. An input takes effect a few
    /// ticks later, and has at most 64 encoded bytes; a spectator's is ignored. Without a lane no step is
    /// due.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is too large.
    pub fn rollback_step<T: Serialize + ?Sized>(
        &mut self,
        input: &T,
        now: Instant,
    ) -> Result<bool, RoomError> {
        let encoded = to_value(input)?.encode(ROLLBACK_INPUT_BYTES_MAX)?;
        let is_away = self.reconnect.is_away();
        let (session, joined) = self.open("run a step of the rollback lane")?;
        let target = joined.welcome.tick_rate.tick_at(joined.room_time(now));
        let Some(lane) = &mut joined.rollback else { return Ok(false) };
        if lane.step(&encoded, target)? {
            return Ok(true);
        }
        let (me, authority) = (joined.welcome.member, joined.welcome.authority.member());
        let players = &joined.players;
        let is_there = |member: MemberId| member != me && players.get(member).is_some();
        let mut sent = false;
        while let Some((to, payload)) = lane.poll_message(authority, is_there) {
            let message = Upward { to, stamp: false, payload }.encode();
            say(session, is_away, Outgoing::new(channel::ROLLBACK, message))?;
            sent = true;
        }
        self.wants_driver |= sent;
        Ok(false)
    }

    /// What the game must do next for its lane; `None` when nothing is left to do.
    pub fn rollback_request(&mut self) -> Option<RollbackRequest> {
        self.lane_mut()?.next_request()
    }

    /// Records the checksum of the game's own state saved before step `tick`, to detect desyncs. It must be
    /// equal on every machine. The lane's keys are included automatically.
    pub fn rollback_saved(&mut self, tick: Tick, checksum: u64) {
        if let Some(lane) = self.lane_mut() {
            lane.saved(tick, checksum);
        }
    }

    /// A player's input in the step of [`RollbackRequest::Advance`], and whether it is confirmed; `None`
    /// until the player's first input.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player in the lane, or the input does not match the type. A hostile
    /// player can send anything, but it sends the same to all.
    pub fn rollback_input<T: DeserializeOwned>(
        &self,
        player: MemberId,
    ) -> Result<Option<(T, InputStatus)>, RoomError> {
        let lane = self.lane().ok_or(ApiMisuse::NoSuchPlayer(player))?;
        let Some((encoded, status)) = lane.input(player)? else { return Ok(None) };
        match Value::decode(encoded) {
            Ok(value) => Ok(Some((from_value(&value)?, status))),
            // Only its sender is at fault, and it sent nothing that can be decoded.
            Err(_) => Ok(None),
        }
    }

    /// Sets a key of the lane's state, within a step. Keys are saved, restored and compared with the other
    /// ends automatically.
    ///
    /// # Errors
    /// [`RoomError`] if there is no lane, or key or value exceed their bounds.
    pub fn set_rollback_state<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), RoomError> {
        let encoded = to_value(value)?.encode(limits::STATE_VALUE_BYTES_MAX)?;
        let what = "set the state of a rollback lane";
        self.lane_mut().ok_or(RoomError::Misuse(ApiMisuse::NotOpen { what }))?.set(key, encoded)
    }

    /// The value of a key at this end, predictions included; for a key that the lane does not have, the same
    /// as [`get`](Self::get).
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn rollback_state<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        match self.lane().and_then(|lane| lane.get(key)) {
            Some(value) => Ok(Some(from_value(&value)?)),
            None => self.get(key),
        }
    }

    /// All keys of the lane with their values, in ascending order.
    pub fn rollback_states(&self) -> Vec<(String, Value)> {
        self.lane().map(|lane| lane.states().collect()).unwrap_or_default()
    }

    /// Removes a key of the lane's state, within a step. Returns whether it existed.
    pub fn clear_rollback(&mut self, key: &str) -> bool {
        self.lane_mut().is_some_and(|lane| lane.remove(key))
    }

    /// Ends the lane and discards its keys.
    pub fn clear_rollback_all(&mut self) {
        if let Some(joined) = &mut self.joined {
            joined.rollback = None;
        }
    }

    /// The next event of the lane, oldest first: a desync of two ends, or that this end was away too long.
    pub fn rollback_event(&mut self) -> Option<Event> {
        self.lane_mut()?.poll_event()
    }

    /// Counters of the lane, and its last corrections; `None` without one.
    pub fn rollback_diagnostics(&self) -> Option<Diagnostics> {
        self.lane().map(|lane| lane.diagnostics())
    }

    fn lane(&self) -> Option<&RollbackLane> {
        self.joined.as_ref()?.rollback.as_deref()
    }

    fn lane_mut(&mut self) -> Option<&mut RollbackLane> {
        self.joined.as_mut()?.rollback.as_deref_mut()
    }

    /// Takes in a message of the lane. The hub does not read it, so its sender alone is at fault for its
    /// content.
    pub(super) fn read_rollback(&mut self, payload: Bytes) -> Result<(), CloseReason> {
        let downward = Downward::decode(payload);
        let downward = downward.map_err(|error| misbehaved("the envelope of a rollback message", &error))?;
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let authority = joined.welcome.authority.member();
        let (Some(lane), Sender::Member(member)) = (&mut joined.rollback, downward.from) else {
            return Ok(());
        };
        if !lane.handle_message(member, authority, downward.payload) {
            self.messages_unreadable += 1;
        }
        Ok(())
    }
}

impl Joined {
    pub(super) fn left_rollback(&mut self, member: MemberId) {
        if let Some(lane) = &mut self.rollback {
            lane.left(member);
        }
    }
}
