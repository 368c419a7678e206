//! Configuration of a server.

use crate::admission::Policy;
use crate::handshakes::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_ALL};
use crate::kept::KEPT_MATCHES;
use crate::renewal::CERTIFICATE_EVERY;
use crate::system;
use crate::time::Time;
use crate::web_pages::WebPages;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::num::NonZeroU16;
use core::time::Duration;
use parlor_hub::StateMemory;
use parlor_proto::limits;
use parlor_transport::Impairment;
use parlor_transport::discovery::{DEFAULT_PORT, Registry};
use parlor_transport::lan::Network;
use std::path::PathBuf;

/// Default of [`Config::rooms_max`].
pub const ROOMS_MAX: usize = 10_000;
/// Default of [`Config::connections_max`].
pub const CONNECTIONS_MAX: usize = 4_096;

/// Default of [`Config::state_rate`].
pub const STATE_RATE: u32 = 192 * 1024;
/// Minimum of [`Config::state_rate`]: with less a room's state would hardly arrive.
pub const STATE_RATE_MIN: u32 = 4 * 1024;

/// Default memory for the state of all rooms, in bytes, where the system does not report its memory.
pub const STATE_MEMORY: usize = 1 << 30;
/// Minimum of the default memory for the state of all rooms, in bytes, where the system reports its memory.
pub const STATE_MEMORY_MIN: usize = 256 << 20;

/// Maximum of [`Config::flush_quantum`], in milliseconds: more would be felt in every game.
pub const FLUSH_QUANTUM_MS_MAX: u64 = 20;

/// Default of [`Config::grace`].
pub const GRACE: Duration = Duration::from_secs(30);

/// Maximum of [`Config::grace`], in seconds: the life of a room whose members are all disconnected.
pub const GRACE_S_MAX: u64 = 600;

/// How long a lost member is remembered once its seat is free, unless the configuration says otherwise.
pub const REMEMBER: Duration = Duration::from_secs(600);

/// Longest [`Config::remember`], in seconds.
pub const REMEMBER_S_MAX: u64 = 3_600;

/// Configuration of a server. Default: a development server, open to all who can reach this machine.
///
/// ```
/// use parlor_server::Config;
/// let config = Config { port: 0, apps: Some(vec!["tanks".into()]), ..Config::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on. Default: `::`, all addresses of both families; without IPv6 all IPv4
    /// addresses.
    pub listen: IpAddr,
    /// The port, UDP and TCP. 0 chooses one that is free for both.
    pub port: u16,
    /// How the server proves its identity.
    pub identity: IdentitySource,
    /// How often the files of [`IdentitySource::Files`] are read. Changes apply from the next handshake on.
    pub certificate_every: Duration,
    /// The games that it serves; `None` for all.
    pub apps: Option<Vec<String>>,
    /// Maximum number of rooms at once; shards have equal parts.
    pub rooms_max: usize,
    /// Whether rooms may have dedicated hosts: processes without a player. Their rooms hold many more members
    /// than player-hosted ones.
    pub dedicated: bool,
    /// Memory limits of room state, in bytes: for one room, for all rooms opened from one address, and in
    /// all. Shards have equal parts. Beyond them no room is opened, and the largest rooms end.
    pub state_memory: StateMemory,
    /// Maximum average bytes of state for one member in a second. The rest waits, the most urgent first. At
    /// least [`STATE_RATE_MIN`].
    pub state_rate: u32,
    /// Number of threads for rooms. Each has its own port, UDP and TCP: [`port`](Self::port) and the
    /// following ones. Clients connect to the first; all must be reachable.
    pub shards: NonZeroU16,
    /// How long a room may delay messages to batch them: it adds latency and saves packets. Zero sends at
    /// once; at most [`FLUSH_QUANTUM_MS_MAX`].
    pub flush_quantum: Duration,
    /// How long a disconnected member's seat is kept; at most [`GRACE_S_MAX`]. Zero keeps none: a
    /// disconnected member has left.
    pub grace: Duration,
    /// How long a member that did not come back in that time is remembered, so that it has its id and its player data
    /// again when it returns to its room; at most [`REMEMBER_S_MAX`]. Zero remembers none: who returns is a newcomer.
    pub remember: Duration,
    /// Whether the server is in the process of a game that hosts a room, and ends with it. Guests take the
    /// host to be gone after [a silence](parlor_proto::limits::HOST_GONE_TIMEOUT), and do not reconnect.
    /// Unset for a server with rooms of others. It enters its rooms in the [`registry`](Self::registry), but
    /// not itself: no other process opens a room on it.
    pub is_of_host: bool,
    /// Maximum number of connections at once on TCP, and as many again on QUIC.
    pub connections_max: usize,
    /// Maximum number of connections of one address on TCP, and as many again on QUIC. An IPv6 address stands
    /// for its network of 64 bits; 256 neighbours together have four times as many. Default: `None`, an
    /// eighth of all, and at least 16. Local processes are not counted, unless
    /// [`limits_local`](Self::limits_local) is set.
    pub connections_per_address: Option<usize>,
    /// The origins of web pages that may use the server beside its own, as browsers send them
    /// (`https://game.example`, `http://localhost:5173`). Other programs send no origin and need no entry.
    pub web_origins: Vec<String>,
    /// Handshakes that one address may begin a second on average, and a few times as many at once. An IPv6
    /// address stands for its network of 64 bits; 256 neighbours together have four times as many.
    pub handshakes_per_second: u32,
    /// Handshakes that all addresses may begin a second on average: the machine's capacity beside its live
    /// rooms.
    pub handshakes_per_second_all: u32,
    /// Time for each step of a client before its hello; at most
    /// [`HANDSHAKE_TIMEOUT`](parlor_proto::limits::HANDSHAKE_TIMEOUT), which is also the time for the hello.
    pub handshake_time: Duration,
    /// Applies connection limits to local clients too. Default: off, because a local process has easier
    /// attacks than a flood. Behind a local proxy all clients seem local.
    pub limits_local: bool,
    /// Admission by tokens, and their issuer. `None`: players with an account may bring a ticket, others are
    /// anonymous, and other tokens are rejected.
    pub admission: Option<Policy>,
    /// Registry for other processes of this machine. Only a server with a development identity on a loopback
    /// address enters itself; a real certificate needs no registry.
    pub registry: Option<Registry>,
    /// Folder for room logs, one file for each room. The files hold the rooms' secrets and all messages.
    pub room_log: Option<PathBuf>,
    /// The name or address in invites, with a port if the public one differs (`play.example.com`,
    /// `play.example.com:443`). Default: this machine's address.
    pub public_host: Option<String>,
    /// The games that browsers play from here. Default: none, `/` is a text.
    pub web_pages: WebPages,
    /// For development: simulates a bad network on all sockets, in both directions.
    pub impairment: Option<Impairment>,
    /// The local network on which its rooms are announced, except those with a secret. Anyone there can join
    /// them without a code. Default: `None`, no announcements.
    pub lan: Option<Network>,
    /// Whether a room is announced there only by [`Server::announce`](crate::Server::announce). Default: false,
    /// all rooms are, without a name.
    pub lan_on_request: bool,
    /// Address of the monitoring port, HTTP without TLS: `/metrics`, `/health` and `/ready`. Port 0 chooses a
    /// free one. Default: `None`, no port.
    pub metrics: Option<SocketAddr>,
    /// Maximum number of kept matches of one account at once, if the server has [services](crate::embed).
    pub kept_matches: usize,
    /// The clock of the services. Tests move it.
    pub time: Time,
}

/// Half of the machine's memory, in bytes: the limit for the state of all rooms.
fn state_memory_of(memory_bytes: Option<usize>) -> usize {
    memory_bytes.map_or(STATE_MEMORY, |bytes| bytes / 2).max(STATE_MEMORY_MIN)
}

/// How a server proves its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySource {
    /// A self-signed certificate. Clients know it by its fingerprint.
    Development {
        /// The folder that keeps it, so that the fingerprint survives restarts; made if missing. Without a
        /// folder each start has a new fingerprint.
        folder: Option<PathBuf>,
    },
    /// A certificate of an authority that clients trust.
    Files {
        /// The certificate chain, leaf first (PEM).
        certificate: PathBuf,
        /// The private key (PEM); may be the same file.
        key: PathBuf,
    },
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port: DEFAULT_PORT,
            identity: IdentitySource::Development { folder: None },
            certificate_every: CERTIFICATE_EVERY,
            apps: None,
            rooms_max: ROOMS_MAX,
            state_memory: StateMemory::of(state_memory_of(system::memory_bytes())),
            dedicated: false,
            state_rate: STATE_RATE,
            shards: NonZeroU16::MIN,
            flush_quantum: Duration::ZERO,
            grace: GRACE,
            remember: REMEMBER,
            is_of_host: false,
            connections_max: CONNECTIONS_MAX,
            connections_per_address: None,
            web_origins: Vec::new(),
            handshakes_per_second: HANDSHAKES_PER_SECOND,
            handshakes_per_second_all: HANDSHAKES_PER_SECOND_ALL,
            handshake_time: limits::HANDSHAKE_TIMEOUT,
            limits_local: false,
            admission: None,
            registry: None,
            room_log: None,
            public_host: None,
            web_pages: WebPages::default(),
            impairment: None,
            lan: None,
            lan_on_request: false,
            metrics: None,
            kept_matches: KEPT_MATCHES,
            time: Time::default(),
        }
    }
}
