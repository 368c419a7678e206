//! The room as a game and a driver see it.
//!
//! Seven files know several machines: this one has the room and what a game reads and writes, `messages` what members
//! say, and their own states, `connection` the driver's face and the ends of a room, `steps` what happens in a step
//! and after a host's last one, `outside` the actions that the game applies itself, `reading` the effects of what
//! arrives, host migration among them, and `reopening` what follows another server.
//! Everything else is a machine of its own, in a file or folder beside this one.

mod connection;
mod messages;
mod outside;
mod reading;
mod reopening;
mod steps;

pub use outside::{ActionFailed, ActionToApply};

use crate::connection::Connection;
use crate::error::{RoomError, not_host};
use crate::event::ClosedReason;
use crate::finding::Finding;
use crate::inbox::Inbox;
use crate::info::{Diagnostics, Mode, Role, RoomInfo};
use crate::migration::Migration;
use crate::options::Options;
use crate::paths::Paths;
use crate::players::{Player, Players};
use crate::recording::Recording;
use crate::replicas::Replicas;
use crate::rollback::RollbackLane;
use crate::simulation::Simulation;
use crate::state::{Checksums, SharedState};
use crate::status::Status;
use parlor_proto::channel::{self};
use parlor_proto::session::{Outgoing, Session};
use parlor_proto::wire::control::{PlayerData, ToHub};
use parlor_proto::wire::handshake::{RoomKind, Welcome};
use parlor_proto::{ApiMisuse, Epoch, Instant, MemberId, limits};
use parlor_sync::keyed::{Audience, Hints};
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

const HOST_WRITES: &str = "the host has the world that is written";

/// A room without sockets. See the [module](super).
#[derive(Debug)]
pub struct RoomCore {
    options: Options,
    finding: Finding,
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
            finding: Finding::new(mode),
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

    /// The open room, for calls that a spectator may not make.
    fn open_as_player(&mut self, what: &'static str) -> Result<(&mut Connection, &mut Joined), RoomError> {
        let (connection, joined) = self.open(what)?;
        match joined.welcome.spectates() {
            true => Err(ApiMisuse::Spectator { what }.into()),
            false => Ok((connection, joined)),
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
        self.entries("")
    }

    /// As [`all`](Self::all), of the keys with this prefix.
    pub fn entries(&self, prefix: &str) -> Vec<(String, Value)> {
        self.joined.as_ref().map(|joined| joined.shared.entries(prefix)).unwrap_or_default()
    }

    /// All keys that this process sees with their interpolated values at `now`, in ascending order. At the
    /// host: the values themselves. A key without a value at that moment is left out.
    pub fn all_interpolated(&mut self, now: Instant) -> Vec<(String, Value)> {
        self.entries_interpolated("", now)
    }

    /// As [`all_interpolated`](Self::all_interpolated), of the keys with this prefix.
    pub fn entries_interpolated(&mut self, prefix: &str, now: Instant) -> Vec<(String, Value)> {
        self.joined.as_mut().map(|joined| joined.shared.entries_interpolated(prefix, now)).unwrap_or_default()
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
        let (connection, joined) = self.open_as_player("set player data")?;
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

    /// All spectators in the room, by id.
    pub fn spectators(&self) -> &[Player] {
        self.joined.as_ref().map_or(&[], |joined| joined.players.spectators())
    }

    /// The same for a driver to keep, as [`shared_players`](Self::shared_players).
    pub fn shared_spectators(&self) -> Option<&Arc<Vec<Player>>> {
        self.joined.as_ref().map(|joined| joined.players.spectators())
    }

    /// Whether this process is a spectator.
    pub fn is_spectator(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.welcome.spectates())
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

/// For a game: the status of the room, and measurements.
impl RoomCore {
    /// Round trip to the hub; zero at the host, `None` until measured.
    pub fn ping(&self) -> Option<Duration> {
        if self.is_host() { Some(Duration::ZERO) } else { self.connection.session().and_then(Session::rtt) }
    }

    /// Round trip to the host: over the direct path while one is open, otherwise through the hub, by both ends'
    /// round trips to it. Zero at the host; `None` until measured, in a match, and if the host has no player.
    pub fn host_ping(&self) -> Option<Duration> {
        let joined = self.joined.as_ref()?;
        if joined.is_host() {
            return Some(Duration::ZERO);
        }
        let host = joined.welcome.authority.member()?;
        self.paths.rtt_to(host).or_else(|| {
            let of_host = joined.players.get(host)?.rtt_ms?;
            Some(self.ping()? + Duration::from_millis(of_host.into()))
        })
    }

    /// Whether a migration is under way: the new host was named and has not been heard.
    pub fn is_migrating(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.migration.is_under_way())
    }

    /// State of the room and its connection.
    pub fn info(&self) -> RoomInfo {
        let (joined, options) = (self.joined.as_ref(), &self.options);
        let welcome = joined.map(|joined| &joined.welcome);
        let migration = joined.map(|joined| &joined.migration);
        let is_host = welcome.map_or(options.is_of_host(), |_| self.is_host());
        let (path, path_status) = self.paths.info(joined.map(|joined| (&joined.shared, &joined.players)));
        let (scope, transport_path) = self.finding.way(path, joined.is_some());
        let is_alone = is_host && self.player_count() < 2;
        let connectivity = self.finding.connectivity(options.paths, self.connection.link());
        let chosen = || options.chosen_code().filter(|_| self.finding.is_code_known());
        RoomInfo {
            role: match (is_host, self.is_spectator()) {
                (true, _) => Role::Host,
                (false, true) => Role::Spectator,
                (false, false) => Role::Client,
            },
            code: welcome.map(|welcome| welcome.code).or_else(chosen),
            room: welcome.map(|welcome| welcome.room),
            session: welcome.map(|welcome| welcome.session),
            local_id: self.local_id(),
            host_id: welcome.and_then(|welcome| welcome.authority.member()),
            epoch: welcome.map_or(Epoch::default(), |welcome| welcome.epoch),
            migrating: self.is_migrating(),
            migration_completed: migration.is_some_and(Migration::has_completed),
            previous_host: migration.and_then(|migration| migration.hosts().0),
            new_host: migration.and_then(|migration| migration.hosts().1),
            max_players: welcome.map(|welcome| welcome.max_players),
            scope,
            transport_path,
            transport_status: self.status.transport(joined.is_some(), path_status, is_alone),
            last_reason_code: self.status.last_reason(),
            requested_mode: connectivity.mode,
            requested_paths: options.paths,
            peer_candidate: self.paths.peer_candidate(),
            join_path: self.finding.join_path(),
            connectivity,
        }
    }

    /// Steps dropped because the game was behind, as in [`diagnostics`](Self::diagnostics).
    pub fn ticks_dropped(&self) -> u64 {
        self.joined.as_ref().map_or(0, |joined| joined.simulation.ticks_dropped())
    }

    /// Counters and measurements.
    pub fn diagnostics(&self) -> Diagnostics {
        let session = self.connection.session();
        let mut diagnostics = Diagnostics {
            rtt: session.and_then(Session::rtt),
            rtt_jitter: session.map(Session::rtt_jitter).unwrap_or_default(),
            session: session.map(Session::stats).unwrap_or_default(),
            events_dropped: self.inbox.dropped(),
            messages_unreadable: self.messages_unreadable,
            ..Diagnostics::default()
        };
        if let Some(joined) = &self.joined {
            joined.simulation.diagnose(joined.is_host(), &mut diagnostics);
            joined.shared.diagnose(&mut diagnostics);
            joined.shared.diagnose_prediction(&mut diagnostics);
        }
        diagnostics
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
