//! What a game is told, in the order in which it happened.

use super::players::Player;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::From;
use parlor_proto::wire::handshake::{Refusal, RetryAfter};
use parlor_proto::{ChannelId, CloseReason, EntityId, MemberId, RoomCode, Tick};
use parlor_sync::value::{Value, ValueError, from_value};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::fmt;
use thiserror::Error;

/// What happened in a room. Events come out of `poll` only, never from another thread, and own what they carry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The room is open and this process is in it. Everybody who is there can be [asked for](super::RoomCore::players), and
    /// [`PlayerJoined`](Event::PlayerJoined) follows for each, this player first.
    Open {
        /// The code to share; of a match it is its id.
        code: RoomCode,
    },
    /// Somebody is in the room.
    PlayerJoined(Player),
    /// Somebody is not in the room any more.
    PlayerLeft {
        /// Who.
        id: MemberId,
        /// Under which name.
        name: String,
        /// Why.
        reason: LeaveReason,
    },
    /// Another player's connection is lost. It is in the room still, and its seat is kept for a while: it comes
    /// [back](Event::PlayerBack) or [leaves](Event::PlayerLeft).
    PlayerLost {
        /// Who.
        id: MemberId,
    },
    /// Another player's connection stands again.
    PlayerBack {
        /// Who.
        id: MemberId,
    },
    /// This process has lost its connection and will try to have another. The room stands still as it was known last; what is
    /// sent reliably waits. [`Reconnected`](Event::Reconnected) or [`Closed`](Event::Closed) follows.
    ConnectionLost {
        /// What a person may read about it.
        detail: String,
    },
    /// It is tried to reach the server again.
    Reconnecting {
        /// How often it has been, this time included.
        attempt: u32,
    },
    /// This process is connected again.
    Reconnected {
        /// Whether it is in the room as a newcomer, because its seat was not kept for long enough: it has another id, and of all
        /// players and entities that it knew it was told before that they left and went. Those that there are come anew.
        /// Otherwise it is who it was, and nothing reliable was lost.
        state_resynced: bool,
    },
    /// The host is silent or gone, and another player takes its part. Until [`HostChanged`](Event::HostChanged) the world stands
    /// still; a game that simulates waits for it, and draws on. Whatever was predicted or interpolated begins anew with the new
    /// host's state, and a rollback session is over.
    HostMigration {
        /// Who was the host. It may still be there, as a player like any other.
        previous: Option<MemberId>,
        /// Who becomes the host.
        new: MemberId,
        /// Whether that is this process. From [`HostChanged`](Event::HostChanged) on it has all of the world and writes it.
        is_me: bool,
    },
    /// The new host goes on with the world.
    HostChanged {
        /// Who it is.
        host: MemberId,
    },
    /// Player data changed.
    PlayerData {
        /// Whose.
        id: MemberId,
        /// Under which key.
        key: String,
        /// The new value; `None` if the key is gone.
        value: Option<Value>,
    },
    /// A typed message came.
    Message(Message),
    /// A message came on a channel of the game's own.
    Raw {
        /// From whom.
        from: From,
        /// On which channel.
        channel: ChannelId,
        /// Its place among the stamped messages of the room, if its sender asked for one.
        order: Option<u64>,
        /// The message.
        payload: Bytes,
    },
    /// A player of a match sent data.
    Data {
        /// Who.
        from: MemberId,
        /// What the game takes it for.
        op: i64,
        /// Its place among what has an order in the match: all who get two of them get them in the order of these numbers. `None` if
        /// it might have been lost.
        order: Option<u64>,
        /// What was sent.
        data: Bytes,
    },
    /// A player's connection takes less than the room has for it, or keeps up again. Of the state a slow player is given
    /// the newest alone, and unreliable messages to it are dropped; reliable ones wait, and when too many do it is
    /// disconnected as too slow. `id` may be this player's own.
    Slow {
        /// Who.
        id: MemberId,
        /// Whether it is slow from here on.
        slow: bool,
    },
    /// This player sends more than its room passes on, and some of its unreliable messages were dropped: send less. It is
    /// told once.
    Throttled,
    /// State came from the host. The reads give it from now on.
    State(StateUpdate),
    /// An entity came into sight: it is there from now on.
    Spawned {
        /// Which.
        entity: EntityId,
    },
    /// An entity is gone, or went out of sight.
    Despawned {
        /// Which.
        entity: EntityId,
    },
    /// A player asks for something to happen to an entity of its own; for the host.
    Action {
        /// Who. The hub writes this, so it is true.
        from: MemberId,
        /// The entity, which is this player's.
        entity: EntityId,
        /// What is asked for, in the game's own words.
        name: String,
        /// What belongs to it.
        value: Value,
    },
    /// Something that this player asked for was refused.
    ActionRefused {
        /// On which entity.
        entity: EntityId,
        /// What was asked for.
        name: String,
        /// Why.
        why: ActionRefusal,
    },
    /// Another player is primary, or none is: see [`send_to_primary`](super::RoomCore::send_to_primary).
    Primary {
        /// Who.
        member: Option<MemberId>,
    },
    /// The room is over for this process. Nothing comes after it.
    Closed(ClosedReason),
}

/// A typed message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// From whom. The hub writes this, so it is true.
    pub from: From,
    /// What kind of message, in the game's own words.
    pub kind: String,
    /// Its place among the stamped messages of the room, if its sender asked for one: all receivers agree on it.
    pub order: Option<u64>,
    /// What it says.
    pub value: Value,
}

impl Message {
    /// What it says, as the game's own type.
    ///
    /// # Errors
    /// [`ValueError`] with the path of the field that is not as the type wants it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        from_value(&self.value)
    }
}

/// What is known of an update of the state beside the state itself.
#[derive(Clone, Debug, PartialEq)]
pub struct StateUpdate {
    /// Its number: that of the tick under which the host committed the newest of it. Member and host mean the same by it.
    /// It never goes back; two updates have the same one if the second brought what the first had overtaken.
    pub sequence: u64,
    /// That tick.
    pub server_tick: Tick,
    /// Room time when that tick began, in ms.
    pub server_time_ms: u64,
    /// Length of a tick, in ms.
    pub tick_interval_ms: f64,
    /// The newest tick of this player whose input the host had used.
    pub input_ack_tick: Option<Tick>,
    /// Where it came from.
    pub source: StateSource,
    /// How much the arrival of updates wavers, in ms.
    pub jitter_ms: f64,
    /// How far behind the newest update the interpolated reads are, in ms.
    pub buffer_delay_ms: f64,
    /// Updates that the interpolated reads can look back on.
    pub history_depth: usize,
    /// How much state is there that the interpolated reads have not shown yet, in ms.
    pub buffered_server_time_ms: f64,
    /// Keys that changed, in ascending order. When many updates are told as one, because the game did not poll for
    /// long, a key that came and went meanwhile may be left out.
    pub changed: Vec<String>,
}

/// Where an update of the state came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSource {
    /// What changed since something that this process had.
    Delta,
    /// Everything, or a part of it, because this process had nothing to build on.
    Complete,
    /// Everything, across a break: snap to it, never smear into it.
    Transfer,
}

impl StateSource {
    /// The word for it in JSON.
    #[must_use]
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
    /// The session ended after it had been open.
    #[error("{0}")]
    Session(#[from] CloseReason),
    /// The server did not let this process in.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The server asks to try again later.
    #[error("the server asks to try again in {:.0} s: {}", .0.after.as_secs_f64().ceil(), .0.detail)]
    RetryAfter(RetryAfter),
    /// The server could not be reached, or not be trusted.
    #[error("{0}")]
    Connect(ConnectFailure),
    /// The server does not let the player in as its account: see `RoomBuilder::account`.
    #[error("{sentence} ({code})")]
    Account {
        /// For programs; docs/online.md lists them.
        code: String,
        /// For people; says what to do.
        sentence: String,
    },
}

impl ClosedReason {
    /// Why the session ended, for whoever needs it as that.
    pub(super) fn as_close_reason(&self) -> CloseReason {
        match self {
            ClosedReason::Session(reason) => reason.clone(),
            other => CloseReason::ConnectionLost { detail: other.to_string() },
        }
    }

    /// The word for it in JSON and logs.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            ClosedReason::Session(reason) => reason.as_str(),
            ClosedReason::Refused(refusal) => refusal.as_str(),
            ClosedReason::RetryAfter(_) => "retry_after",
            ClosedReason::Connect(failure) => failure.kind.as_str(),
            ClosedReason::Account { .. } => "account",
        }
    }
}

/// Why no server was reached, and what was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectFailure {
    /// Which failure.
    pub kind: ConnectFailureKind,
    /// What happened and what to do, for a person to read.
    pub detail: String,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Which failure kept this process from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectFailureKind {
    /// No server is configured and none was found on this machine.
    NoServer,
    /// The address or invite could not be read, or a code is no code.
    BadAddress,
    /// The name did not resolve.
    UnknownHost,
    /// Nothing answered.
    Unreachable,
    /// Something answered that could not be trusted.
    Untrusted,
    /// Something answered that does not speak Parlor.
    NotParlor,
}

impl ConnectFailureKind {
    /// The word for it in JSON and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ConnectFailureKind::NoServer => "no_server",
            ConnectFailureKind::BadAddress => "bad_address",
            ConnectFailureKind::UnknownHost => "unknown_host",
            ConnectFailureKind::Unreachable => "unreachable",
            ConnectFailureKind::Untrusted => "untrusted",
            ConnectFailureKind::NotParlor => "not_parlor",
        }
    }
}
