//! What members say: messages and actions, and the states of their own.

use super::{Joined, RoomCore};
use crate::error::RoomError;
use crate::event::Event;
use crate::message::{FLOW, MessageOptions, RESERVED, check_name, encode_typed};
use crate::options::Protocol;
use crate::paths::Letter;
use crate::replicas::SaidFlow;
use bytes::Bytes;
use parlor_proto::channel::{self, Codec};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::Action;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ApiMisuse, ChannelId, EntityId, Instant, Lane, MemberId, limits};
use parlor_sync::replicator::{Flows, Latency, Own};
use parlor_sync::schema::{Replicated, RowReader, RowWriter};
use parlor_sync::value::{Value, from_value, to_value};
use parlor_sync::world::WorldError;
use serde::Serialize;
use std::time::Duration;

/// For a game: messages and actions.
impl RoomCore {
    /// How messages and inputs travel unless the game says otherwise.
    pub fn protocol(&self) -> Protocol {
        self.options.protocol
    }

    /// Sends a typed message on a lane.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the message is too large or cannot be written.
    pub fn send<T: Serialize + ?Sized>(
        &mut self,
        lane: Lane,
        to: Recipient,
        kind: &str,
        message: &T,
        stamp: bool,
        now: Instant,
    ) -> Result<(), RoomError> {
        self.send_with(&MessageOptions { lane, stamp, event_time: None }, to, kind, message, now)
    }

    /// Sends a typed message with options.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with<T: Serialize + ?Sized>(
        &mut self,
        options: &MessageOptions,
        to: Recipient,
        kind: &str,
        message: &T,
        now: Instant,
    ) -> Result<(), RoomError> {
        if kind.starts_with(RESERVED) {
            let text = format!(
                "a kind of message begins with {RESERVED}, which Parlor has for itself: rename {kind}"
            );
            return Err(ApiMisuse::Bounds(text).into());
        }
        let (payload, bytes) = encode_typed(kind, options.event_time, message)?;
        self.post((channel::typed(options.lane), payload), bytes, to, options.stamp, now)
    }

    /// Sends bytes on a channel of the game's own.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, the channel is not declared, or the message is too large.
    pub fn send_raw(
        &mut self,
        channel: ChannelId,
        to: Recipient,
        bytes: Bytes,
        stamp: bool,
        now: Instant,
    ) -> Result<(), RoomError> {
        match self.options.channels.get(channel) {
            Some(row) if row.codec == Codec::Raw => {
                let len = bytes.len();
                self.post((channel, bytes), len, to, stamp, now)
            }
            _ => Err(ApiMisuse::NoSuchChannel(channel).into()),
        }
    }

    /// Sends data to players of a match. Reliable data is ordered: all receivers get it in the same order.
    /// Unreliable data may be lost and is not ordered.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not an open match, a recipient is not in it, or the data exceeds 64 KiB.
    pub fn send_data(
        &mut self,
        op: i64,
        to: Recipient,
        bytes: Bytes,
        reliably: bool,
        now: Instant,
    ) -> Result<(), RoomError> {
        if !self.open("send data")?.1.is_match() {
            let text = "only a match has match data: send a message, or open the room by Room::create_match";
            return Err(ApiMisuse::Bounds(text.into()).into());
        }
        let channel = if reliably { channel::MATCH_DATA } else { channel::MATCH_DATA_UNRELIABLE };
        let len = bytes.len();
        self.post((channel, MatchData { op, payload: bytes }.encode()), len, to, false, now)
    }

    /// Sends a payload that counts as a message of `bytes`.
    fn post(
        &mut self,
        (channel, payload): (ChannelId, Bytes),
        bytes: usize,
        mut to: Recipient,
        stamp: bool,
        now: Instant,
    ) -> Result<(), RoomError> {
        let (_, joined) = self.open_as_player("send a message")?;
        let hub_max = usize::try_from(joined.welcome.limits.message_bytes).unwrap_or(usize::MAX);
        let max = limits::MESSAGE_BYTES_MAX.min(hub_max);
        if bytes > max {
            return Err(ApiMisuse::MessageTooLarge { bytes, max }.into());
        }
        if to == Recipient::Authority && joined.is_match() {
            return Err(ApiMisuse::NoHost { what: "be sent a message as the host" }.into());
        }
        joined.players.check_recipient(&mut to)?;
        let lane = self.options.channels.get(channel).ok_or(ApiMisuse::NoSuchChannel(channel))?.lane;
        let letter = Letter { channel, lane, to, stamp, payload };
        self.with_paths(|paths, players, around| match players {
            Some(players) => paths.post(letter, players, around, now),
            None => Ok(()),
        })?;
        self.wants_driver = true;
        Ok(())
    }

    /// Asks the host for an action on an entity of this player's own. The host's game gets [`Event::Action`], in
    /// the order of the requests.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if, as far as this process knows, the entity does not exist or has another
    /// owner. If the host finds out later, [`Event::ActionRefused`] is raised. [`RoomError`] if the room is not
    /// open, or name or payload exceed their bounds.
    pub fn act<T: Serialize + ?Sized>(
        &mut self,
        entity: EntityId,
        name: &str,
        payload: &T,
    ) -> Result<(), RoomError> {
        check_name("the name of an action", name).map_err(ApiMisuse::Bounds)?;
        let value = to_value(payload)?;
        let encoded = value.encode(limits::MESSAGE_BYTES_MAX)?;
        self.open_as_player("act")?;
        let (connection, joined) = self.open_with_host("act")?;
        let (me, name) = (joined.welcome.member, name.to_owned());
        if let Some(why) = joined.shared.refusal(me, entity) {
            return Err(RoomError::Refused { entity, why });
        }
        if joined.is_host() {
            let event = Event::Action { from: me, entity, name, value };
            return self.inbox.tell_bounded(event, encoded.len()).map_err(|_| RoomError::Full);
        }
        let action = Action { entity, name, value: encoded };
        connection.say(Outgoing::new(channel::ACTIONS, action.encode()))?;
        self.wants_driver = true;
        Ok(())
    }
}

/// For a game: the states that players send of themselves.
impl RoomCore {
    /// Sets this player's own state, as often as the game likes. Each step decides whether an update must be
    /// sent.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or has no template, a number is NaN or infinite, or the type
    /// does not fit the template.
    pub fn set_own<C: Replicated>(&mut self, state: &C) -> Result<(), RoomError> {
        self.write_own(|row| state.write(row))
    }

    /// Sets fields of this player's own state, without a Rust type: the others keep their values.
    ///
    /// # Errors
    /// As [`set_own`](Self::set_own).
    pub fn write_own(&mut self, write: impl FnOnce(&mut RowWriter<'_>)) -> Result<(), RoomError> {
        let own = self.own_state("set its own state")?;
        Ok(own.write(write).map_err(WorldError::Row)?)
    }

    /// Marks the next own state as a teleport: other members jump to it without interpolation.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or has no template.
    pub fn teleport_own(&mut self) -> Result<(), RoomError> {
        self.own_state("set its own state")?.teleport();
        Ok(())
    }

    /// The state of a player at `at` of room time. Default: at `now`. It is extrapolated beyond the newest
    /// update; errors are blended away. This player's own state is as last set. `None` until an update
    /// arrives, or if the state has another type.
    pub fn remote_state<C: Replicated>(
        &mut self,
        member: MemberId,
        at: Option<Duration>,
        now: Instant,
    ) -> Option<C> {
        let read = |row: &RowReader<'_>| (row.component().name() == C::NAME).then(|| C::read(row));
        self.remote_row(member, at, now, read).flatten()
    }

    /// As [`remote_state`](Self::remote_state), without a Rust type: what `read` makes of the fields. The game's come
    /// first; the component says their kinds.
    pub fn remote_row<R>(
        &mut self,
        member: MemberId,
        at: Option<Duration>,
        now: Instant,
        read: impl FnOnce(&RowReader<'_>) -> R,
    ) -> Option<R> {
        let joined = self.joined.as_mut()?;
        let at = at.map_or_else(|| joined.simulation.room_time(now), |at| Instant::ZERO + at);
        if member == joined.welcome.member {
            return joined.replicas.own()?.row().map(|row| read(&row));
        }
        joined.players.get(member)?;
        Some(read(&joined.replicas.state_at(member, at)?.row()))
    }

    /// How a player's own states travel here, and this player's there. The other measures the latter and is asked
    /// for it, again while the game reads it: it comes after a round trip.
    pub fn remote_flows(&mut self, member: MemberId, now: Instant) -> Flows {
        let Some(joined) = &mut self.joined else { return Flows::default() };
        let (flows, asks) = joined.replicas.flows(member, joined.simulation.room_time(now));
        if asks {
            self.say_flow(member, None, now);
        }
        flows
    }

    /// Takes in what another member says of the flow of own states. One that asks is answered, but not at any rate.
    pub(super) fn heard_flow(&mut self, from: MemberId, value: &Value, at: Instant) -> bool {
        let (Ok(said), Some(joined)) = (from_value(value), &mut self.joined) else { return false };
        let now = joined.simulation.room_time(at);
        if let Some(answer) = joined.replicas.heard_flow(from, said, now) {
            self.say_flow(from, Some(answer), at);
        }
        true
    }

    /// Asks a member for the flow of this player's states to it, or tells it that of its own.
    fn say_flow(&mut self, to: MemberId, said: Option<SaidFlow>, now: Instant) {
        // It may be lost: the next one is as good. A room that takes no message has none to measure.
        if let Ok((payload, bytes)) = encode_typed(FLOW, None, &said) {
            let _ = self.post((channel::MESSAGE_UNRELIABLE, payload), bytes, to.into(), false, now);
        }
    }

    /// Delay of a player's own states on their way here.
    pub fn remote_latency(&self, member: MemberId) -> Option<Latency> {
        self.joined.as_ref()?.replicas.latency(member)
    }

    /// The recipient of messages to the primary, if there is one.
    pub fn primary(&self) -> Option<MemberId> {
        self.joined.as_ref().and_then(|joined| joined.players.primary())
    }

    fn own_state(&mut self, what: &'static str) -> Result<&mut Own, RoomError> {
        self.open_as_player(what)?;
        let (_, Joined { replicas, .. }) = self.open_with_host(what)?;
        let missing = "this room was opened without a template: give RoomBuilder::template() one first";
        replicas.own_mut().ok_or_else(|| ApiMisuse::Bounds(missing.into()).into())
    }
}
