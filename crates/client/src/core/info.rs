//! What a game can ask about its room and its connection.

use super::paths::PathMode;
use core::net::SocketAddr;
use parlor_proto::{Epoch, MemberId, RoomCode, RoomId, SessionId, Tick};
use parlor_sync::prediction::PredictionCounters;
use parlor_sync::replicator::Latency;
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
    /// Whether another player was named host and was not heard yet.
    pub migrating: bool,
    /// Whether the host's part has passed to another player and that one was heard.
    pub migration_completed: bool,
    /// Whose the part was before it passed to another player the last time.
    pub previous_host: Option<MemberId>,
    /// To whom it passed then.
    pub new_host: Option<MemberId>,
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
    /// Which paths beside the server were asked for.
    pub requested_paths: PathMode,
    /// Where the host is reached beside the server; `None` if it is not, and at the host.
    pub peer_candidate: Option<SocketAddr>,
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
    /// Its host is reached without a server, or hosts all others so.
    Direct,
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
    /// A path between this player and the host is tried; until it stands the hub relays.
    DirectUdpPending,
    /// State, inputs and messages between this player and the host go over a path of their own; at a host, to all others.
    DirectUdp,
}

/// What the connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportStatus {
    /// The room stands in the directory.
    Registered,
    /// The hub relays.
    RelayReady,
    /// The connection is lost, and the hub is being reached again.
    ResumePending,
    /// The hub relays, over another connection than at first.
    Resumed,
    /// A path to the host is tried.
    DirectUdpPending,
    /// One stands.
    DirectUdpReady,
    /// None came about; the hub relays.
    DirectUdpTimeout,
    /// One stood and is lost; the hub relays.
    RelayFallback,
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
    /// No path to the host came about in time.
    DirectUdpTimeout,
    /// Something was reached that was not the host, or did not take this player.
    DirectRuntimeAttachFailed,
    /// Another player was named host.
    HostMigrating,
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
    /// Steps that were run again.
    pub steps_replayed: u64,
    /// How often predictions were right and wrong; at the host nothing.
    pub prediction: PredictionCounters,
    /// One-shot effects that may be shown twice, because so many were shown that these were forgotten.
    pub effects_forgotten: u64,
    /// Whether the room's time is worth relying on: it was measured, and is within 10 ms of what was measured.
    pub time_synchronized: bool,
    /// How much one measurement of the room's time differs from the next.
    pub time_variance: Duration,
    /// How late the host's state arrives here: from the begin of the step that it is of. None at the host.
    pub latency_down: Option<Latency>,
    /// How long inputs take from here to the host's game, as the host reports; a frame of the host too little at most, and each
    /// the worst of half a second. None at the host, and while it has used none.
    pub latency_up: Option<Latency>,
    /// How far ahead of the room's time the steps are run, in ms; 0 without lead.
    pub lead_ms: f64,
    /// How much faster than the room's time the steps come: 0.95 to 1.05, and 1 without lead.
    pub dilation: f64,
    /// How long before the host runs a step the input for it is there, in ms: the least of the last half second, and negative if
    /// it was too late. None at the host, and while it has used none.
    pub input_margin_ms: Option<i16>,
    /// Inputs that came after their step: at a member its own, at the host everybody's.
    pub inputs_late: u64,
    /// Steps that the host ran without the input of a member that was sending, of all members; 0 at a member.
    pub inputs_missing: u64,
    /// Inputs for steps that are long over or far ahead, which the host ignored; 0 at a member.
    pub inputs_refused: u64,
    /// How often the host's game looked at what a player saw; 0 at a member.
    pub rewinds: u64,
    /// How often that was longer ago than may be looked at; 0 at a member.
    pub rewinds_beyond: u64,
    /// How often the host went back to run steps again for an input that came late; 0 at a member.
    pub resimulations: u64,
    /// How often it could not go back as far as the input asked for: that one counts from a later step on.
    pub resimulations_short: u64,
    /// How often the room's time jumped, because it was too far off to be moved smoothly.
    pub clock_jumps: u64,
    /// Unreliable messages that were dropped because the game did not take them.
    pub events_dropped: u64,
    /// Messages and inputs of others that could not be read; their senders' fault.
    pub messages_unreadable: u64,
}
