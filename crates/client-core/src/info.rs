//! What a game can read about its room and its connection.

use crate::options::PathMode;
use core::net::SocketAddr;
use parlor_proto::{Epoch, MemberId, RoomCode, RoomId, SessionId, Tick};
use parlor_sync::prediction::PredictionCounters;
use parlor_sync::replicator::Latency;
use std::time::Duration;

/// State of a room, as far as this process knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomInfo {
    /// The role of this process in the room.
    pub role: Role,
    /// The room's code, once known.
    pub code: Option<RoomCode>,
    /// The room's id, once it is open.
    pub room: Option<RoomId>,
    /// The session's id, once it is open.
    pub session: Option<SessionId>,
    /// This player's id, once the room is open.
    pub local_id: Option<MemberId>,
    /// The host's id, once the room is open.
    pub host_id: Option<MemberId>,
    /// How often the authority has changed.
    pub epoch: Epoch,
    /// Whether a migration is under way: the new host was named and has not been heard.
    pub migrating: bool,
    /// Whether a migration has completed: the new host was heard.
    pub migration_completed: bool,
    /// The host before the last migration.
    pub previous_host: Option<MemberId>,
    /// The host after the last migration.
    pub new_host: Option<MemberId>,
    /// Players that the room admits at once, once it is open.
    pub max_players: Option<u16>,
    /// Where the room's server runs.
    pub scope: Scope,
    /// Which way packets go.
    pub transport_path: TransportPath,
    /// Status of the connection, once there is one to report.
    pub transport_status: Option<TransportStatus>,
    /// The last error.
    pub last_reason_code: Option<ReasonCode>,
    /// The requested mode: [`Mode::P2p`] with [`PathMode::P2p`], otherwise which server was asked for.
    pub requested_mode: Mode,
    /// The requested paths beside the server.
    pub requested_paths: PathMode,
    /// The host's address on the direct path; `None` without such a path, and at the host.
    pub peer_candidate: Option<SocketAddr>,
    /// How a joining member found the room.
    pub join_path: Option<JoinPath>,
    /// The server and the link.
    pub connectivity: Connectivity,
}

/// The role of a process in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The host: it is the authority.
    Host,
    /// A guest.
    Client,
    /// A guest that watches only.
    Spectator,
}

/// Which server a room uses, and whether it plays without a direct path. [`PathMode`] says which direct paths
/// are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Through the configured server if there is one, otherwise through a server on this machine.
    #[default]
    Auto,
    /// Through a server on this machine only.
    Local,
    /// Through the configured server only.
    Relay,
    /// As `Auto`, and the host by a direct path or not at all: [`PathMode::P2p`].
    P2p,
}

/// Where the other end is that this process plays with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// On this machine or its local network: the server, or the host at the other end of a direct path.
    Local,
    /// Elsewhere, through a server.
    Internet,
    /// Elsewhere, without a server: the host is reached directly, or serves all others directly.
    Direct,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportPath {
    /// Through a hub on this machine or its local network, or over a direct path within it:
    /// [`TransportStatus::DirectUdpReady`] tells them apart at a guest, [`Player::transport`](crate::Player) at
    /// both ends.
    LocalRoom,
    /// To a hub elsewhere that is being connected to.
    RelayPending,
    /// Through a hub elsewhere.
    RelayRoom,
    /// A direct path between this player and the host is being tried; the hub relays until it opens.
    DirectUdpPending,
    /// State, inputs and messages between this player and the host use a direct path. At the host: to all
    /// others.
    DirectUdp,
}

/// Status of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportStatus {
    /// The room is in the directory.
    Registered,
    /// The hub relays.
    RelayReady,
    /// The connection is lost; this process reconnects to the hub.
    ResumePending,
    /// The hub relays, over a later connection.
    Resumed,
    /// A direct path to the host is being tried.
    DirectUdpPending,
    /// A direct path is open.
    DirectUdpReady,
    /// No direct path opened in time; the hub relays.
    DirectUdpTimeout,
    /// The direct path was lost; the hub relays.
    RelayFallback,
    /// It failed; [`RoomInfo::last_reason_code`] says why.
    Error,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonCode {
    /// No room has the code, or no longer has it.
    RoomExpired,
    /// The hub could not be reached or refused this process.
    RelayAttachFailed,
    /// The hub was silent for too long.
    ControlHeartbeatTimeout,
    /// The host left or is gone.
    PeerLeft,
    /// No direct path to the host opened in time.
    DirectUdpTimeout,
    /// The other end of the path was not the host, or refused this player.
    DirectRuntimeAttachFailed,
    /// Another player was named host.
    HostMigrating,
}

/// How a room was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinPath {
    /// In this machine's registry.
    Local,
    /// Not on this machine, so through the configured server.
    InternetFallback,
    /// Through the server named by the game or an invite.
    InternetExplicit,
    /// By the address of its server, without a code.
    Direct,
}

/// The server of a room and the link to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connectivity {
    /// The requested mode.
    pub mode: Mode,
    /// Address of the server that was asked for the room, once chosen.
    pub coordinator: Option<String>,
    /// Address of the server that has the room and relays what no direct path carries. Another one than the
    /// coordinator if that sent this process there.
    pub relay: Option<String>,
    /// The link's kind, once connected.
    pub link: Option<parlor_proto::LinkKind>,
}

macro_rules! words {
    ($type:ty { $($variant:ident => $word:literal),* $(,)? }) => {
        impl $type {
            /// Returns the name in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

words!(Role { Host => "host", Client => "client", Spectator => "spectator" });
words!(Mode { Auto => "auto", Local => "local", Relay => "relay", P2p => "p2p" });
words!(Scope { Local => "local", Internet => "internet", Direct => "direct" });
words!(TransportPath {
    LocalRoom => "local_room",
    RelayPending => "relay_pending",
    RelayRoom => "relay_room",
    DirectUdpPending => "direct_udp_pending",
    DirectUdp => "direct_udp",
});
words!(TransportStatus {
    Registered => "registered",
    RelayReady => "relay_ready",
    ResumePending => "resume_pending",
    Resumed => "resumed",
    DirectUdpPending => "direct_udp_pending",
    DirectUdpReady => "direct_udp_ready",
    DirectUdpTimeout => "direct_udp_timeout",
    RelayFallback => "relay_fallback",
    Error => "error",
});
words!(ReasonCode {
    RoomExpired => "room_expired",
    RelayAttachFailed => "relay_attach_failed",
    ControlHeartbeatTimeout => "control_heartbeat_timeout",
    PeerLeft => "peer_left",
    DirectUdpTimeout => "direct_udp_timeout",
    DirectRuntimeAttachFailed => "direct_runtime_attach_failed",
    HostMigrating => "host_migrating",
});
words!(JoinPath {
    Local => "local",
    InternetFallback => "internet_fallback",
    InternetExplicit => "internet_explicit",
    Direct => "direct",
});

/// Counters and measurements, for a net graph or a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// Smoothed round trip to the hub, once measured.
    pub rtt: Option<Duration>,
    /// Mean deviation of the round trip.
    pub rtt_jitter: Duration,
    /// Counters of the session.
    pub session: parlor_proto::session::Stats,
    /// State updates decoded.
    pub updates_decoded: u64,
    /// State updates older than the state held.
    pub updates_outdated: u64,
    /// State updates dropped for lack of their baseline.
    pub updates_gapped: u64,
    /// State updates published by the host.
    pub updates_published: u64,
    /// Jitter of the arrival of updates, in ms.
    pub jitter_ms: f64,
    /// Delay of the interpolated reads behind the newest update, in ms.
    pub buffer_delay_ms: f64,
    /// The last step that was run.
    pub tick: Tick,
    /// Steps dropped because the game was behind.
    pub ticks_dropped: u64,
    /// How far the steps of a game that brings its time are behind: up to 250 ms. Zero by the room's clock.
    pub game_time_behind: Duration,
    /// Steps run again.
    pub steps_replayed: u64,
    /// Right and wrong predictions; zero at the host.
    pub prediction: PredictionCounters,
    /// One-shot effects that may be shown twice, because too many were shown to remember.
    pub effects_forgotten: u64,
    /// Predicted actions of this player that the host has not decided.
    pub actions_pending: usize,
    /// Predicted actions that were refused: of this player, and at the host by it.
    pub actions_refused: u64,
    /// Whether the room's clock is reliable: measured, and within 10 ms of the measurements.
    pub time_synchronized: bool,
    /// Variation between measurements of the room's clock.
    pub time_variance: Duration,
    /// Delay of the host's state: from the begin of its step to its arrival here. `None` at the host.
    pub latency_down: Option<Latency>,
    /// Delay of inputs from here to the host's game, as the host reports it: the worst of each half second,
    /// low by up to one frame of the host. `None` at the host, and until it has used an input.
    pub latency_up: Option<Latency>,
    /// Lead of the steps ahead of the room's time, in ms; 0 without lead.
    pub lead_ms: f64,
    /// Speed of the steps relative to the room's time: 0.95 to 1.05; 1 without lead.
    pub dilation: f64,
    /// How early inputs reach the host before their step, in ms: the minimum of the last half second,
    /// negative if late. `None` at the host, and until it has used an input.
    pub input_margin_ms: Option<i16>,
    /// Inputs that came after their step: a member counts its own, the host all.
    pub inputs_late: u64,
    /// Steps that the host ran without the input of an active member, summed over members; 0 at a member.
    pub inputs_missing: u64,
    /// Inputs that the host ignored because their step was long over or far ahead; 0 at a member.
    pub inputs_refused: u64,
    /// How often the host's game rewound to a player's view; 0 at a member.
    pub rewinds: u64,
    /// How often a rewind was cut to the maximum; 0 at a member.
    pub rewinds_beyond: u64,
    /// How often the host ran steps again for a late input; 0 at a member.
    pub resimulations: u64,
    /// How often it could not go back far enough for the input, which then counts from a later step on.
    pub resimulations_short: u64,
    /// How often the room's clock jumped, because its error was too large to smooth.
    pub clock_jumps: u64,
    /// Unreliable messages dropped because the game did not poll.
    pub events_dropped: u64,
    /// Unreadable messages and inputs of other members; their senders' fault.
    pub messages_unreadable: u64,
}
