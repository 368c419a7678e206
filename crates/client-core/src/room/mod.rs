//! The room as a game and a driver see it.
//!
//! Six files know several machines: this one has the room and what a game reads and writes, `connection` the
//! driver's face and the ends of a room, `steps` what happens in a step, `actions` what members do with entities of
//! their own, `reading` the effects of what arrives, host migration among them, and `report` the status of the
//! room and its measurements.
//! Everything else is a machine of its own, in a file or folder beside this one.

mod actions;
mod connection;
mod reading;
mod report;
mod steps;

use crate::connection::Connection;
use crate::error::{RoomError, not_host};
use crate::event::ClosedReason;
use crate::inbox::Inbox;
use crate::info::{JoinPath, Mode, Scope};
use crate::message::encode_typed;
use crate::migration::Migration;
use crate::options::{Options, Protocol};
use crate::paths::{Letter, Paths};
use crate::players::{Player, Players};
use crate::recording::Recording;
use crate::replicas::Replicas;
use crate::rollback::RollbackLane;
use crate::simulation::Simulation;
use crate::state::{Checksums, SharedState};
use crate::status::Status;
use bytes::Bytes;
use parlor_proto::channel::{self, Codec};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::{PlayerData, ToHub};
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::{RoomKind, Welcome};
use parlor_proto::{ApiMisuse, ChannelId, Instant, Lane, MemberId, limits};
use parlor_sync::keyed::{Audience, Hints};
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

const HOST_WRITES: &str = "the host has the world that is written";

/// Where a driver found the room's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address, for a person to read.
    pub server: String,
    /// The address of the server that was asked for the room. It may have sent this process to another one.
    pub asked: String,
    /// Where it runs.
    pub scope: Scope,
    /// How a joining process found the room.
    pub join_path: Option<JoinPath>,
}

/// A room without sockets. See the [module](super).
#[derive(Debug)]
pub struct RoomCore {
    options: Options,
    mode: Mode,
    found: Option<Found>,
    /// Whether the code of the room to join is yet to be found: see [`find_code`](Self::find_code).
    is_code_unknown: bool,
    connection: Connection,
    paths: Paths,
    joined: Option<Joined>,
    lane: RollbackLane,
    recording: Recording,
    status: Status,
    inbox: Inbox,
    /// Whether data to send is queued that the driver does not know of.
    wants_driver: bool,
    messages_unreadable: u64,
}

/// State that exists once the room is open.
#[derive(Debug)]
struct Joined {
    welcome: Welcome,
    players: Players,
    shared: SharedState,
    checksums: Checksums,
    replicas: Replicas,
    simulation: Simulation,
    migration: Migration,
}

impl RoomCore {
    /// Creates a room that is not connected yet.
    pub fn new(options: Options, mode: Mode) -> Self {
        RoomCore {
            connection: Connection::new(options.reconnect_policy),
            options,
            mode,
            found: None,
            is_code_unknown: false,
            paths: Paths::default(),
            joined: None,
            lane: RollbackLane::default(),
            recording: Recording::default(),
            status: Status::default(),
            inbox: Inbox::default(),
            wants_driver: false,
            messages_unreadable: 0,
        }
    }

    /// The open room, for a call of the game.
    fn open(&mut self, what: &'static str) -> Result<(&mut Connection, &mut Joined), RoomError> {
        if let Some(closed) = self.status.closed() {
            return Err(ApiMisuse::Closed(closed.as_close_reason()).into());
        }
        match &mut self.joined {
            Some(joined) => Ok((&mut self.connection, joined)),
            None => Err(ApiMisuse::NotOpen { what }.into()),
        }
    }

    /// The open room, for calls that need a room with a host.
    fn open_with_host(&mut self, what: &'static str) -> Result<(&mut Connection, &mut Joined), RoomError> {
        let (connection, joined) = self.open(what)?;
        if joined.is_match() { Err(ApiMisuse::NoHost { what }.into()) } else { Ok((connection, joined)) }
    }

    /// The open room, for calls that only the host may make.
    fn open_as_host(&mut self, what: &'static str) -> Result<(&mut Connection, &mut Joined), RoomError> {
        let (connection, joined) = self.open(what)?;
        if joined.is_host() { Ok((connection, joined)) } else { Err(not_host(&joined.welcome, what).into()) }
    }
}

impl Joined {
    /// Whether this process writes the world. An heir without the whole checkpoint does not.
    fn is_host(&self) -> bool {
        self.shared.host().is_some()
    }

    /// Whether the hub runs the room and all members are equal.
    fn is_match(&self) -> bool {
        self.welcome.kind == RoomKind::Match
    }

    /// The first named recipient that is not in the room.
    fn unknown_addressee(&self, to: &Recipient) -> Option<MemberId> {
        match to {
            Recipient::Member(member) => self.players.first_unknown([*member].into_iter()),
            Recipient::Members(members) => self.players.first_unknown(members.iter().copied()),
            Recipient::Authority
            | Recipient::Others
            | Recipient::Everyone
            | Recipient::Primary
            | Recipient::Except(_) => None,
        }
    }
}

/// For a game: messages.
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
        if kind.is_empty() || kind.len() > limits::LABEL_BYTES_MAX {
            let (len, max) = (kind.len(), limits::LABEL_BYTES_MAX);
            let text = format!("the kind of a message has {len} bytes; it may have 1 to {max}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        // The size is checked below, together with the other limits.
        let value = to_value(message)?.encode(usize::MAX)?;
        let payload = encode_typed(kind, &value);
        self.post((channel::typed(lane), payload), value.len(), to, stamp, now)
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
        let (_, joined) = self.open("send a message")?;
        let hub_max = usize::try_from(joined.welcome.limits.message_bytes).unwrap_or(usize::MAX);
        let max = limits::MESSAGE_BYTES_MAX.min(hub_max);
        if bytes > max {
            return Err(ApiMisuse::MessageTooLarge { bytes, max }.into());
        }
        if to == Recipient::Authority && joined.is_match() {
            return Err(ApiMisuse::NoHost { what: "be sent a message as the host" }.into());
        }
        if let Recipient::Members(members) | Recipient::Except(members) = &mut to {
            members.sort_unstable();
            members.dedup();
        }
        // This check also keeps the list shorter than the limit of the hub.
        if let Some(unknown) = joined.unknown_addressee(&to) {
            return Err(ApiMisuse::NoSuchPlayer(unknown).into());
        }
        let lane = self.options.channels.get(channel).ok_or(ApiMisuse::NoSuchChannel(channel))?.lane;
        let letter = Letter { channel, lane, to, stamp, payload };
        self.with_paths(|paths, players, around| match players {
            Some(players) => paths.post(letter, players, around, now),
            None => Ok(()),
        })?;
        self.wants_driver = true;
        Ok(())
    }
}

/// For a game: keyed state.
impl RoomCore {
    /// Sets a key of the state for all members that may see it, at the host. Members have it after the step.
    /// An unchanged value costs nothing.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or key or value exceed their bounds.
    pub fn set<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
        audience: Audience,
    ) -> Result<(), RoomError> {
        let value = to_value(value)?;
        let (_, joined) = self.open_as_host("set state")?;
        joined.shared.host_mut().expect(HOST_WRITES).set(key, &value, audience)?;
        Ok(())
    }

    /// Removes a key of the state, at the host. Returns whether it existed.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn remove(&mut self, key: &str) -> Result<bool, RoomError> {
        let (_, joined) = self.open_as_host("remove state")?;
        Ok(joined.shared.host_mut().expect(HOST_WRITES).remove_key(key)?)
    }

    /// Declares how the values of all keys with this prefix interpolate, at the host.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there are too many declarations.
    pub fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), RoomError> {
        let (_, joined) = self.open_as_host("declare how state moves")?;
        joined.shared.host_mut().expect(HOST_WRITES).declare(prefix, hints)?;
        Ok(())
    }

    /// The value of a key as the host last wrote it, as far as this process knows.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        let value = self.joined.as_ref().and_then(|joined| joined.shared.get(key));
        Ok(value.map(|value| from_value(&value)).transpose()?)
    }

    /// The interpolated value of a key at `now`: a little in the past, so that it moves evenly. At the host:
    /// the value itself.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn interpolated<T: DeserializeOwned>(
        &mut self,
        key: &str,
        now: Instant,
    ) -> Result<Option<T>, RoomError> {
        let value = self.joined.as_mut().and_then(|joined| joined.shared.interpolated(key, now));
        Ok(value.map(|value| from_value(&value)).transpose()?)
    }

    /// All keys that this process sees with their values as the host last wrote them, in ascending order.
    pub fn all(&self) -> Vec<(String, Value)> {
        let Some(Joined { shared, .. }) = &self.joined else { return Vec::new() };
        let keys = shared.key_names().into_iter();
        keys.filter_map(|key| shared.get(&key).map(|value| (key, value))).collect()
    }

    /// All keys that this process sees with their interpolated values at `now`, in ascending order. At the
    /// host: the values themselves. A key without a value at that moment is left out.
    pub fn all_interpolated(&mut self, now: Instant) -> Vec<(String, Value)> {
        let Some(Joined { shared, .. }) = &mut self.joined else { return Vec::new() };
        let keys = shared.key_names().into_iter();
        keys.filter_map(|key| shared.interpolated(&key, now).map(|value| (key, value))).collect()
    }

    /// All keys that this process sees, in ascending order.
    pub fn keys(&self) -> Vec<String> {
        self.joined.as_ref().map(|joined| joined.shared.key_names()).unwrap_or_default()
    }

    /// The sequence and hash of the state that reads return. Two processes with the same view at the same
    /// sequence have the same hash. `None` before the first update, and while part of the state is missing.
    pub fn state_hash(&self) -> Option<(u64, u64)> {
        self.joined.as_ref().and_then(|joined| joined.shared.hash())
    }

    /// The sequences and hashes that [`Options::hash_every`](crate::Options::hash_every) enables, oldest
    /// first, the last 256. A sequence at which this process lacked part of the state is left out.
    pub fn state_checksums(&self) -> Vec<(u64, u64)> {
        self.joined.as_ref().map(|joined| joined.checksums.iter().collect()).unwrap_or_default()
    }
}

/// For a game: players, and what is to be read of the room.
impl RoomCore {
    /// Sets a value of player data; `None` removes it. A player sets its own, the host any player's.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player, it is another one and this process is not the host, or key
    /// or value exceed their bounds.
    pub fn set_player_data(
        &mut self,
        player: MemberId,
        key: &str,
        value: Option<&Value>,
    ) -> Result<(), RoomError> {
        let encoded = value.map(|value| value.encode(limits::PLAYER_DATA_VALUE_BYTES_MAX)).transpose()?;
        let data = PlayerData { member: player, key: key.to_owned(), value: encoded };
        data.check().map_err(ApiMisuse::Bounds)?;
        let (connection, joined) = self.open("set player data")?;
        if joined.players.get(player).is_none() {
            return Err(ApiMisuse::NoSuchPlayer(player).into());
        }
        if player != joined.welcome.member && !joined.is_host() {
            return Err(not_host(&joined.welcome, "set another's player data").into());
        }
        let members_max = joined.welcome.kind.members_max(joined.welcome.max_players);
        joined.players.check_data(&data, members_max)?;
        connection.say(Outgoing::new(channel::CONTROL, ToHub::SetData(data).encode()))?;
        self.wants_driver = true;
        Ok(())
    }

    /// Removes a player from the room, at the host. One that is gone already does not return; otherwise that changes
    /// nothing.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or it is to remove itself.
    pub fn kick(&mut self, player: MemberId, reason: &str) -> Result<(), RoomError> {
        let (connection, joined) = self.open_as_host("remove a player")?;
        if player == joined.welcome.member {
            return Err(ApiMisuse::Bounds("the host cannot remove itself: leave instead".into()).into());
        }
        connection.say(Outgoing::new(
            channel::CONTROL,
            ToHub::Kick { member: player, reason: reason.to_owned() }.encode(),
        ))?;
        self.wants_driver = true;
        Ok(())
    }

    /// Whether the room is open and not over.
    pub fn is_connected(&self) -> bool {
        self.joined.is_some() && !self.status.is_closed()
    }

    /// Why the room is over for this process, if it is.
    pub fn closed(&self) -> Option<&ClosedReason> {
        self.status.closed()
    }

    /// Whether this process is the host.
    pub fn is_host(&self) -> bool {
        self.joined.as_ref().is_some_and(Joined::is_host)
    }

    /// This player's id, once the room is open.
    pub fn local_id(&self) -> Option<MemberId> {
        self.joined.as_ref().map(|joined| joined.welcome.member)
    }

    /// All players in the room, by id.
    pub fn players(&self) -> &[Player] {
        self.joined.as_ref().map_or(&[], |joined| joined.players.all())
    }

    /// The same for a driver to keep, once the room is open. It stays as it is; changes are in another list.
    pub fn shared_players(&self) -> Option<&Arc<Vec<Player>>> {
        self.joined.as_ref().map(|joined| joined.players.shared())
    }

    /// One player.
    pub fn player(&self, id: MemberId) -> Option<&Player> {
        self.joined.as_ref().and_then(|joined| joined.players.get(id))
    }

    /// Players in the room, the host included.
    pub fn player_count(&self) -> usize {
        self.players().len()
    }

    /// Time since the room opened. Equal at all members, up to the precision of clock synchronisation.
    pub fn server_time(&self, now: Instant) -> Option<Duration> {
        self.joined.as_ref().map(|joined| joined.simulation.since_opened(now))
    }
}

/// For a game: recording, at the host.
impl RoomCore {
    /// Starts a recording at the host: the present world, every commit, and members that join and leave. Read
    /// the bytes with [`Recording::take_bytes`].
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, the room is not open, or a recording is running.
    pub fn start_recording(&mut self) -> Result<(), RoomError> {
        self.open_as_host("record the room")?;
        let Some(Joined { welcome, shared, players, .. }) = &self.joined else { return Ok(()) };
        self.recording.start(&self.options, welcome, shared.world(), players)
    }

    /// The room's newest recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The room's newest recording, to take its bytes or stop it.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }
}
