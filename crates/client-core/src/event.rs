//! Events for the game, in the order in which they happened.

use crate::info::ReasonCode;
use crate::players::Player;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::control::{HandOverRefusal, LeaveReason};
use parlor_proto::wire::envelope::Sender;
use parlor_proto::wire::handshake::{Refusal, RetryAfter};
use parlor_proto::{ChannelId, CloseReason, EntityId, MemberId, RoomCode, Tick};
use parlor_sync::value::{Value, ValueError, from_value};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// An event of a room. Events come out of `poll` only, never from another thread, and own their data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The room is open and this process is in it. All members can be [read](super::RoomCore::players). A
    /// [`PlayerJoined`](Event::PlayerJoined) or [`SpectatorJoined`](Event::SpectatorJoined) follows for each, this
    /// one first.
    Open {
        /// The code to share. For a match: its id.
        code: RoomCode,
    },
    /// A player is in the room.
    PlayerJoined(Player),
    /// A player has left the room. If it was lost for good, the reason says how: its connection broke
    /// ([`ConnectionLost`](LeaveReason::ConnectionLost)), nothing was heard of it
    /// ([`TimedOut`](LeaveReason::TimedOut)), or it was [`TooSlow`](LeaveReason::TooSlow). Such a player may return
    /// with its id and its player data, and then joins again: what is its own in the world is still under its id,
    /// unless the host took it away.
    PlayerLeft {
        /// Its id.
        id: MemberId,
        /// Its name.
        name: String,
        /// Why it left.
        reason: LeaveReason,
    },
    /// A spectator is in the room: it watches only. The loss and return of its connection raise no event.
    SpectatorJoined(Player),
    /// A spectator has left the room.
    SpectatorLeft {
        /// Its id.
        id: MemberId,
        /// Its name.
        name: String,
        /// Why it left, as of a [player](Event::PlayerLeft).
        reason: LeaveReason,
    },
    /// Another player's connection is lost. The player stays in the room and its seat is kept for a while. It
    /// comes [back](Event::PlayerBack) or [leaves](Event::PlayerLeft).
    PlayerLost {
        /// Its id.
        id: MemberId,
        /// How it was lost: its connection broke, or nothing was heard of it.
        reason: LeaveReason,
    },
    /// Another player has reconnected.
    PlayerBack {
        /// Its id.
        id: MemberId,
    },
    /// This process has lost its connection and will reconnect. The room keeps its last known state; reliable
    /// messages wait. [`Reconnected`](Event::Reconnected) or [`Closed`](Event::Closed) follows.
    ConnectionLost {
        /// How it was lost: it broke, or nothing was heard of the server.
        reason: LeaveReason,
        /// The cause, for a person to read.
        detail: String,
    },
    /// This process tries to reconnect.
    Reconnecting {
        /// The attempt's number, counted from 1.
        attempt: u32,
    },
    /// This process is connected again.
    Reconnected {
        /// Whether this process rejoined, because its seat was not kept long enough. Events before this one reported
        /// all known players and entities as gone; the present ones are announced anew. Its id and its player
        /// data are what they were, if the server still knows it and a seat was free; otherwise it is a newcomer
        /// with another id. If false, its seat was kept, and nothing reliable was lost, unless
        /// [`Reopened`](Event::Reopened) follows.
        state_resynced: bool,
    },
    /// The room goes on at another server: its server is gone, or has moved the room. Players keep their ids, and the
    /// host has its world. Reads return the last known state until the new server has all of it. If the connection was
    /// lost before, [`Reconnected`](Event::Reconnected) comes first.
    Reopened {
        /// Whether messages may have been lost: what the old server had taken and not passed on. None is delivered
        /// twice.
        gap: bool,
    },
    /// The host is silent or gone, or hands its part over, and another player takes the host role. Or the host's
    /// process began anew, and it is its own successor. The world stands still until
    /// [`HostChanged`](Event::HostChanged), while the game goes on drawing. In a room of keyed state no
    /// player's steps are due meanwhile; [`Options::migration_pause`](crate::Options::migration_pause) sets it.
    /// Prediction and interpolation restart with the new host's state, and a rollback session ends.
    HostMigration {
        /// The previous host. It may still be in the room, as a guest, or be the new one.
        previous: Option<MemberId>,
        /// The new host.
        new: MemberId,
        /// Whether this process is the new host. After [`HostChanged`](Event::HostChanged) it has the whole
        /// world and writes it.
        is_me: bool,
    },
    /// The new host has taken over the world.
    HostChanged {
        /// The new host.
        host: MemberId,
        /// The previous host. It may still be in the room, as a guest, or be the new one.
        previous: Option<MemberId>,
    },
    /// This process stays the host: the server refused the [hand-over](super::RoomCore::hand_over) that it asked for.
    HandOverRefused {
        /// Why.
        why: HandOverRefusal,
    },
    /// Player data changed.
    PlayerData {
        /// The player that it belongs to.
        id: MemberId,
        /// The key.
        key: String,
        /// The new value; `None` if the key was removed.
        value: Option<Value>,
    },
    /// A typed message came.
    Message(Message),
    /// A message came on one of the game's own channels.
    Raw {
        /// The sender.
        from: Sender,
        /// The channel.
        channel: ChannelId,
        /// Its number in the room's order, if its sender asked for one.
        order: Option<u64>,
        /// The message.
        payload: Bytes,
    },
    /// A player of a match sent data.
    Data {
        /// The sender.
        from: MemberId,
        /// The game's op code.
        op: i64,
        /// Its number in the match's order: all receivers get ordered data in ascending order of these
        /// numbers. `None` for unreliable data.
        order: Option<u64>,
        /// The payload.
        data: Bytes,
    },
    /// A player's connection became slow, or recovered. A slow player gets only the newest state; unreliable
    /// messages to it are dropped. Reliable messages wait; when too many wait, the player is disconnected as
    /// too slow. `id` may be this player's own.
    Slow {
        /// The player.
        id: MemberId,
        /// Whether it is slow from here on.
        slow: bool,
    },
    /// This player exceeds its room's rate limit, and some of its unreliable messages were dropped: send
    /// less. Raised once.
    Throttled,
    /// State came from the host. Reads return it from here on.
    State(StateUpdate),
    /// An entity came into view.
    Spawned {
        /// The entity.
        entity: EntityId,
    },
    /// An entity was despawned or left the view.
    Despawned {
        /// The entity.
        entity: EntityId,
    },
    /// A player requests an action on an entity of its own. Raised at the host.
    Action {
        /// The player. The hub fills it in, so it cannot be forged.
        from: MemberId,
        /// The entity; this player owns it.
        entity: EntityId,
        /// The action's name, chosen by the game.
        name: String,
        /// The action's argument.
        value: Value,
    },
    /// An action that this player requested was refused.
    ActionRefused {
        /// The entity.
        entity: EntityId,
        /// The action's name.
        name: String,
        /// Why.
        why: ActionRefusal,
    },
    /// The primary changed, or there is none: see
    /// [`Recipient::Primary`](parlor_proto::wire::envelope::Recipient::Primary).
    Primary {
        /// The primary.
        member: Option<MemberId>,
    },
    /// The room is over for this process. No event follows.
    Closed(ClosedReason),
}

/// A typed message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The sender. The hub fills it in, so it cannot be forged.
    pub from: Sender,
    /// The message's kind, chosen by the game.
    pub kind: String,
    /// Its number in the room's order, if its sender asked for one. All receivers agree on it.
    pub order: Option<u64>,
    /// When what it tells happened, in [`server_time`](crate::RoomCore::server_time), if its sender said so. It is
    /// the sender's word: a game that lets it decide anything compares it with the time that it has itself.
    pub event_time: Option<Duration>,
    /// The content.
    pub value: Value,
}

impl Message {
    /// Decodes the content into the game's own type.
    ///
    /// # Errors
    /// [`ValueError`] with the path of the field that does not match the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        from_value(&self.value)
    }
}

/// Metadata of a state update.
#[derive(Clone, Debug, PartialEq)]
pub struct StateUpdate {
    /// Sequence number: the tick under which the host committed the newest part of the update. Host and
    /// members use the same numbers. It never decreases. Two updates share a number if the second brought
    /// what the first had overtaken.
    pub sequence: u64,
    /// The same, as a tick.
    pub server_tick: Tick,
    /// Room time when that tick began, in ms.
    pub server_time_ms: u64,
    /// Length of a tick, in ms.
    pub tick_interval_ms: f64,
    /// The newest of this player's input ticks that the host has used.
    pub input_ack_tick: Option<Tick>,
    /// What kind of update this is.
    pub source: StateSource,
    /// Jitter of the arrival of updates, in ms.
    pub jitter_ms: f64,
    /// Delay of the interpolated reads behind the newest update, in ms.
    pub buffer_delay_ms: f64,
    /// Updates that interpolation has buffered.
    pub history_depth: usize,
    /// Buffered state that interpolation has not shown yet, in ms.
    pub buffered_server_time_ms: f64,
    /// Keys that changed, in ascending order. If the game polls rarely, updates are merged; a key that was
    /// set and removed in between may be missing.
    pub changed: Vec<String>,
}

/// The kind of a state update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSource {
    /// A delta to state that this process had.
    Delta,
    /// Full state, or a part of it, because this process had no baseline.
    Complete,
    /// Full state across a discontinuity: snap to it, do not interpolate.
    Transfer,
}

impl StateSource {
    /// Returns the kind's name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            StateSource::Delta => "delta",
            StateSource::Complete => "complete",
            StateSource::Transfer => "transfer",
        }
    }
}

/// Why a room is over for this process.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClosedReason {
    /// The open session ended.
    #[error(transparent)]
    Session(#[from] CloseReason),
    /// The server refused this process.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The server asks to retry later.
    #[error("the server asks to try again in {:.0} s: {}", .0.after.as_secs_f64().ceil(), .0.detail)]
    RetryAfter(RetryAfter),
    /// The server could not be reached or could not be trusted.
    #[error("{0}")]
    Connect(ConnectFailure),
    /// No direct path to the host came up in time, and the game does not play without one
    /// ([`PathMode::P2p`](crate::PathMode::P2p)). [`RoomInfo::last_reason_code`](crate::RoomInfo::last_reason_code) has
    /// [`ReasonCode::DirectUdpTimeout`](crate::ReasonCode::DirectUdpTimeout), or
    /// [`ReasonCode::DirectRuntimeAttachFailed`](crate::ReasonCode::DirectRuntimeAttachFailed) if another process answered.
    #[error("there is no direct path to the host: {}", .0.detail)]
    NoDirectPath(NoDirectPath),
    /// The server refused the player's account: see `RoomBuilder::account`.
    #[error("{sentence} ({code})")]
    Account {
        /// Error code for programs; docs/online.md lists them.
        code: String,
        /// Message for people; says what to do.
        sentence: String,
    },
}

impl ClosedReason {
    /// Converts the reason to a [`CloseReason`].
    pub(super) fn as_close_reason(&self) -> CloseReason {
        match self {
            ClosedReason::Session(reason) => reason.clone(),
            other => CloseReason::ConnectionLost { detail: other.to_string() },
        }
    }

    /// Returns the reason's name in JSON and logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            ClosedReason::Session(reason) => reason.as_str(),
            ClosedReason::Refused(refusal) => refusal.as_str(),
            ClosedReason::RetryAfter(_) => "retry_after",
            ClosedReason::Connect(failure) => failure.kind.as_str(),
            ClosedReason::NoDirectPath(_) => "no_direct_path",
            ClosedReason::Account { .. } => "account",
        }
    }
}

/// Why there is no direct path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDirectPath {
    /// The reason as a word for programs.
    pub reason: ReasonCode,
    /// What happened and what to do, for a person to read.
    pub detail: String,
}

/// Why no server was reached, and what was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectFailure {
    /// The kind of failure.
    pub kind: ConnectFailureKind,
    /// What happened and what to do, for a person to read.
    pub detail: String,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Kinds of connection failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectFailureKind {
    /// No server is configured and none was found on this machine.
    NoServer,
    /// The address, invite or code is malformed.
    BadAddress,
    /// The name did not resolve.
    UnknownHost,
    /// No peer answered.
    Unreachable,
    /// A peer answered that could not be trusted.
    Untrusted,
    /// A peer answered that does not speak Parlor.
    NotParlor,
    /// A module is left out of the build, or switched off in the game's settings. Nothing was tried.
    ModuleDisabled {
        /// The error code, such as `optional_module_multiplayer_disabled`.
        code: &'static str,
    },
    /// No room of the game is known at the address.
    NoRoom,
    /// Several rooms of the game are known at the address, and no code says which is meant.
    SeveralRooms,
    /// The file of the packet log could not be made. Nothing was tried.
    NoPacketLog,
}

impl ConnectFailureKind {
    /// Returns the failure's name in JSON and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConnectFailureKind::NoServer => "no_server",
            ConnectFailureKind::BadAddress => "bad_address",
            ConnectFailureKind::UnknownHost => "unknown_host",
            ConnectFailureKind::Unreachable => "unreachable",
            ConnectFailureKind::Untrusted => "untrusted",
            ConnectFailureKind::NotParlor => "not_parlor",
            ConnectFailureKind::ModuleDisabled { code } => code,
            ConnectFailureKind::NoRoom => "no_room",
            ConnectFailureKind::SeveralRooms => "several_rooms",
            ConnectFailureKind::NoPacketLog => "no_packet_log",
        }
    }
}
