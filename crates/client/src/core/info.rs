//! What a game can ask about its room and its connection.

use parlor_proto::{Epoch, MemberId, RoomCode, RoomId, SessionId, Tick};
use std::time::Duration;

/// Where a room stands, as truthfully as this process knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomInfo {
    /// What this process is in the room.
    pub role: Role,
    /// The room's code, once it is known.
    pub code: Option<RoomCode>,
    /// The room, once it is open.
    pub room: Option<RoomId>,
    /// The session, once it is open.
    pub session: Option<SessionId>,
    /// Which player this process is, once the room is open.
    pub local_id: Option<MemberId>,
    /// Who decides in the room, once it is open.
    pub host_id: Option<MemberId>,
    /// How often that has changed.
    pub epoch: Epoch,
    /// Players that the room may have at once, once it is open.
    pub max_players: Option<u16>,
    /// How far the room reaches.
    pub scope: Scope,
    /// Which way packets go.
    pub transport_path: TransportPath,
    /// What the connection is doing, once there is something to say.
    pub transport_status: Option<TransportStatus>,
    /// What last went wrong.
    pub last_reason_code: Option<ReasonCode>,
    /// What was asked for.
    pub requested_mode: Mode,
    /// How the room was found; for whoever joined it.
    pub join_path: Option<JoinPath>,
    /// What the room is reached by.
    pub connectivity: Connectivity,
}

/// What this process is in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It decides.
    Host,
    /// Another decides.
    Client,
}

/// How a room shall be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Through the configured server if there is one, otherwise through a server on this machine.
    #[default]
    Auto,
    /// Through a server on this machine only.
    Local,
    /// Through the configured server only.
    Relay,
}

/// How far a room reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Its server is on this machine.
    Local,
    /// Its server is elsewhere.
    Internet,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportPath {
    /// Through a hub on this machine.
    LocalRoom,
    /// The hub elsewhere is being reached.
    RelayPending,
    /// Through a hub elsewhere.
    RelayRoom,
}

/// What the connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportStatus {
    /// The room stands in the directory.
    Registered,
    /// The hub relays.
    RelayReady,
    /// It failed; [`RoomInfo::last_reason_code`] says why.
    Error,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonCode {
    /// No room has the code (any more).
    RoomExpired,
    /// The hub could not be reached or did not let in.
    RelayAttachFailed,
    /// Nothing was heard from the hub for too long.
    ControlHeartbeatTimeout,
    /// The host left or is gone.
    PeerLeft,
}

/// How a room was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinPath {
    /// In the registry of this machine.
    Local,
    /// Not on this machine, so through the configured server.
    InternetFallback,
    /// Through the server that the game, or an invite, named.
    InternetExplicit,
}

/// What a room is reached by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connectivity {
    /// The server's address, once one was chosen.
    pub server: Option<String>,
    /// What connects to it, once it stands.
    pub link: Option<parlor_proto::LinkKind>,
}

macro_rules! words {
    ($type:ty { $($variant:ident => $word:literal),* $(,)? }) => {
        impl $type {
            /// The word for it in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

words!(Role { Host => "host", Client => "client" });
words!(Mode { Auto => "auto", Local => "local", Relay => "relay" });
words!(Scope { Local => "local", Internet => "internet" });
words!(TransportPath { LocalRoom => "local_room", RelayPending => "relay_pending", RelayRoom => "relay_room" });
words!(TransportStatus { Registered => "registered", RelayReady => "relay_ready", Error => "error" });
words!(ReasonCode {
    RoomExpired => "room_expired",
    RelayAttachFailed => "relay_attach_failed",
    ControlHeartbeatTimeout => "control_heartbeat_timeout",
    PeerLeft => "peer_left",
});
words!(JoinPath {
    Local => "local",
    InternetFallback => "internet_fallback",
    InternetExplicit => "internet_explicit",
});

/// What was counted and measured, for a net graph or a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// Round trip to the hub, smoothed, once measured.
    pub rtt: Option<Duration>,
    /// Mean deviation of the round trip.
    pub rtt_jitter: Duration,
    /// What the session counted.
    pub session: parlor_proto::session::Stats,
    /// State updates that were decoded.
    pub updates_decoded: u64,
    /// State updates that were older than what was there.
    pub updates_outdated: u64,
    /// State updates that could not be built on what was there.
    pub updates_gapped: u64,
    /// State updates that were published, for the host.
    pub updates_published: u64,
    /// How much the arrival of updates wavers, in ms.
    pub jitter_ms: f64,
    /// How far behind the newest update the interpolated reads are, in ms.
    pub buffer_delay_ms: f64,
    /// The last step that was run.
    pub tick: Tick,
    /// Steps that were dropped because the game was behind.
    pub ticks_dropped: u64,
    /// How often the room's time jumped, because it was too far off to be moved smoothly.
    pub clock_jumps: u64,
    /// Unreliable messages that were dropped because the game did not take them.
    pub events_dropped: u64,
    /// Messages and inputs of others that could not be read; their senders' fault.
    pub messages_unreadable: u64,
}
