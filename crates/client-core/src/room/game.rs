//! A game's calls on its room: messages, inputs, state, players.

use super::paths::Letter;
use super::{Joined, RoomCore};
use crate::connection::LinkState;
use crate::connection::say;
use crate::error::RoomError;
use crate::event::ClosedReason;
use crate::info::{Connectivity, Diagnostics, Role, RoomInfo, Scope, TransportPath, TransportStatus};
use crate::message::encode_typed;
use crate::migration::Migration;
use crate::options::Wish;
use crate::players::Player;
use bytes::Bytes;
use parlor_proto::channel::{self, Codec};
use parlor_proto::session::{Outgoing, Session};
use parlor_proto::wire::control::{PlayerData, ToHub};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ApiMisuse, ChannelId, CloseReason, Epoch, Instant, Lane, MemberId, Tick, limits};
use parlor_sync::keyed::{Audience, Hints};
use parlor_sync::value::{Value, ValueError, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

const HOST_WRITES: &str = "the host has the world that is written";

/// For a game: actions.
impl RoomCore {
    /// Leaves the room. If the host leaves, the room ends, unless another player takes the host role
    /// ([`Options::host_timeout`](super::Options::host_timeout)). Messages sent before still arrive.
    pub fn leave(&mut self, now: Instant) {
        self.break_off(CloseReason::Left, now);
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
    ) -> Result<(), RoomError> {
        if kind.is_empty() || kind.len() > limits::LABEL_BYTES_MAX {
            let (len, max) = (kind.len(), limits::LABEL_BYTES_MAX);
            let text = format!("the kind of a message has {len} bytes; it may have 1 to {max}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        // The size is checked below, together with the other limits.
        let value = to_value(message)?.encode(usize::MAX)?;
        let payload = encode_typed(kind, &value);
        self.send_enveloped(channel::typed(lane), to, payload, value.len(), stamp)
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
    ) -> Result<(), RoomError> {
        match self.options.channels.get(channel) {
            Some(row) if row.codec == Codec::Raw => {
                let len = bytes.len();
                self.send_enveloped(channel, to, bytes, len, stamp)
            }
            _ => Err(ApiMisuse::NoSuchChannel(channel).into()),
        }
    }

    /// Sends a payload that counts as a message of `bytes`.
    pub(super) fn send_enveloped(
        &mut self,
        channel: ChannelId,
        mut to: Recipient,
        payload: Bytes,
        bytes: usize,
        stamp: bool,
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
        self.post(Letter { channel, lane, to, stamp, payload })?;
        self.wants_driver = true;
        Ok(())
    }

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

    /// All keys that this process sees, in ascending order.
    pub fn keys(&self) -> Vec<String> {
        self.joined.as_ref().map(|joined| joined.shared.key_names()).unwrap_or_default()
    }

    /// The sequence and hash of the state that reads return. Two processes with the same view at the same
    /// sequence have the same hash. `None` before the first update, and while part of the state is missing.
    pub fn state_hash(&self) -> Option<(u64, u64)> {
        self.joined.as_ref().and_then(|joined| joined.shared.hash())
    }

    /// The sequences and hashes that [`Options::hash_every`](super::Options::hash_every) enables, oldest
    /// first, the last 256. A sequence at which this process lacked part of the state is left out.
    pub fn state_checksums(&self) -> Vec<(u64, u64)> {
        self.joined.as_ref().map(|joined| joined.checksums.iter().collect()).unwrap_or_default()
    }

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
        let is_away = self.reconnect.is_away();
        let (session, joined) = self.open("set player data")?;
        let held = joined.players.get(player).ok_or(ApiMisuse::NoSuchPlayer(player))?;
        if player != joined.welcome.member && !joined.is_host() {
            return Err(joined.not_host("set another's player data").into());
        }
        let is_new = value.is_some() && held.all_data().all(|(other, _)| other != key);
        if is_new && held.all_data().count() >= limits::PLAYER_DATA_KEYS_MAX {
            let text = format!("a player may have {} values of player data", limits::PLAYER_DATA_KEYS_MAX);
            return Err(ApiMisuse::Bounds(text).into());
        }
        let others = held.all_data().filter(|(other, _)| *other != key);
        let others = others
            .map(|(key, value)| Ok(key.len() + value.encode(limits::PLAYER_DATA_VALUE_BYTES_MAX)?.len()));
        let others = others.sum::<Result<usize, ValueError>>()?;
        let bytes = others + data.value.as_ref().map_or(0, |value| key.len() + value.len());
        let members_max = joined.welcome.kind.members_max(joined.welcome.max_players);
        let max = limits::player_data_bytes_max(members_max);
        if bytes > max {
            let text =
                format!("the player data of a player may have {max} bytes in all, this would make {bytes}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        say(session, is_away, Outgoing::new(channel::CONTROL, ToHub::SetData(data).encode()))?;
        self.wants_driver = true;
        Ok(())
    }

    /// Removes a player from the room, at the host.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such player, or it is the host itself.
    pub fn kick(&mut self, player: MemberId, reason: &str) -> Result<(), RoomError> {
        let (session, joined) = self.open_as_host("remove a player")?;
        if player == joined.welcome.member {
            return Err(ApiMisuse::Bounds("the host cannot remove itself: leave instead".into()).into());
        }
        joined.players.get(player).ok_or(ApiMisuse::NoSuchPlayer(player))?;
        session.send(Outgoing::new(
            channel::CONTROL,
            ToHub::Kick { member: player, reason: reason.to_owned() }.encode(),
        ))?;
        self.wants_driver = true;
        Ok(())
    }

    pub(super) fn open(&mut self, what: &'static str) -> Result<(&mut Session, &mut Joined), RoomError> {
        if let Some(closed) = &self.closed {
            return Err(ApiMisuse::Closed(closed.as_close_reason()).into());
        }
        let open = self.session.as_mut().zip(self.joined.as_mut());
        open.ok_or(RoomError::Misuse(ApiMisuse::NotOpen { what }))
    }

    pub(super) fn open_as_host(
        &mut self,
        what: &'static str,
    ) -> Result<(&mut Session, &mut Joined), RoomError> {
        let (session, joined) = self.open(what)?;
        if joined.is_host() { Ok((session, joined)) } else { Err(joined.not_host(what).into()) }
    }
}

/// For a game: reads.
impl RoomCore {
    /// Whether the room is open and not over.
    pub fn is_connected(&self) -> bool {
        self.joined.is_some() && self.closed.is_none()
    }

    /// Why the room is over for this process, if it is.
    pub fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
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

    /// Round trip to the hub; zero at the host, `None` until measured.
    pub fn ping(&self) -> Option<Duration> {
        if self.is_host() { Some(Duration::ZERO) } else { self.session.as_ref().and_then(Session::rtt) }
    }

    /// Time since the room opened. Equal at all members, up to the precision of clock synchronisation.
    pub fn server_time(&self, now: Instant) -> Option<Duration> {
        self.joined.as_ref().map(|joined| joined.clock.since(joined.welcome.opened, now))
    }

    /// The current or last step of the game. A [replayed](Self::is_replay) step keeps its number.
    pub fn tick_number(&self) -> Option<Tick> {
        self.joined.as_ref().map(|joined| joined.step().tick)
    }

    /// Time until the next step is due, for a loop that sleeps.
    pub fn until_next_tick(&self, now: Instant) -> Option<Duration> {
        self.joined.as_ref().map(|joined| joined.ticker.until_next(joined.simulation_time(now)))
    }

    /// State of the room and its connection.
    pub fn info(&self) -> RoomInfo {
        let welcome = self.joined.as_ref().map(|joined| &joined.welcome);
        let migration = self.joined.as_ref().map(|joined| &joined.migration);
        let is_host = match welcome {
            Some(_) => self.is_host(),
            None => matches!(self.options.intent, Wish::Host { .. }),
        };
        let role = if is_host { Role::Host } else { Role::Client };
        let chosen = match self.options.intent {
            Wish::Host { code, .. } => code,
            Wish::Join { code } => Some(code),
            Wish::Match { .. } | Wish::Resume { .. } => None,
        };
        let (path, path_status) = self.path_info();
        let scope = match path {
            Some(TransportPath::DirectUdp) => Scope::Direct,
            _ => self.found.as_ref().map_or(Scope::Internet, |found| found.scope),
        };
        RoomInfo {
            role,
            code: welcome.map(|welcome| welcome.code).or(chosen),
            room: welcome.map(|welcome| welcome.room),
            session: welcome.map(|welcome| welcome.session),
            local_id: self.local_id(),
            host_id: welcome.and_then(|welcome| welcome.authority.member()),
            epoch: welcome.map_or(Epoch::default(), |welcome| welcome.epoch),
            migrating: migration.is_some_and(Migration::is_under_way),
            migration_completed: migration.is_some_and(Migration::has_completed),
            previous_host: migration.and_then(|migration| migration.hosts().0),
            new_host: migration.and_then(|migration| migration.hosts().1),
            max_players: welcome.map(|welcome| welcome.max_players),
            scope,
            transport_path: path.unwrap_or(match (scope, self.joined.is_some()) {
                (Scope::Local, _) => TransportPath::LocalRoom,
                (Scope::Internet | Scope::Direct, true) => TransportPath::RelayRoom,
                (Scope::Internet | Scope::Direct, false) => TransportPath::RelayPending,
            }),
            transport_status: match (&self.closed, self.is_connected()) {
                (Some(ClosedReason::Session(CloseReason::Left)), _) | (None, false) => None,
                (Some(_), _) => Some(TransportStatus::Error),
                (None, true) if self.link_state != LinkState::Connected => {
                    Some(TransportStatus::ResumePending)
                }
                (None, true) if path_status.is_some() => path_status,
                (None, true) if self.has_resumed => Some(TransportStatus::Resumed),
                (None, true) if self.is_host() && self.player_count() < 2 => {
                    Some(TransportStatus::Registered)
                }
                (None, true) => Some(TransportStatus::RelayReady),
            },
            last_reason_code: self.last_reason,
            requested_mode: self.mode,
            requested_paths: self.options.paths,
            peer_candidate: self.peer_candidate(),
            join_path: self.found.as_ref().and_then(|found| found.join_path),
            connectivity: Connectivity {
                server: self.found.as_ref().map(|found| found.server.clone()),
                link: self.link,
            },
        }
    }

    /// Steps dropped because the game was behind, as in [`diagnostics`](Self::diagnostics).
    pub fn ticks_dropped(&self) -> u64 {
        self.joined.as_ref().map_or(0, |joined| joined.ticker.dropped())
    }

    /// Counters and measurements.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics {
            rtt: self.session.as_ref().and_then(Session::rtt),
            rtt_jitter: self.session.as_ref().map(Session::rtt_jitter).unwrap_or_default(),
            session: self.session.as_ref().map(Session::stats).unwrap_or_default(),
            events_dropped: self.inbox.dropped,
            messages_unreadable: self.messages_unreadable,
            ..Diagnostics::default()
        };
        if let Some(joined) = &self.joined {
            diagnostics.tick = joined.ticker.tick();
            diagnostics.ticks_dropped = joined.ticker.dropped();
            diagnostics.clock_jumps = joined.clock.jumps();
            joined.diagnose_pace(&mut diagnostics);
            joined.diagnose_prediction(&mut diagnostics);
            joined.diagnose_past(&mut diagnostics);
            joined.shared.diagnose(&mut diagnostics);
        }
        diagnostics
    }
}
