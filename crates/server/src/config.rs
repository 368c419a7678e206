//! What a server may be told.

use crate::admission::Policy;
use crate::handshakes::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_ALL};
use crate::kept::KEPT_MATCHES;
use crate::renewal::CERTIFICATE_EVERY;
use crate::system;
use crate::time::Time;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::num::NonZeroU16;
use core::time::Duration;
use parlor_hub::StateMemory;
use parlor_proto::limits;
use parlor_transport::Impairment;
use parlor_transport::discovery::{DEFAULT_PORT, Registry};
use parlor_transport::lan::Network;
use std::path::PathBuf;

/// How many rooms may live at once, unless the configuration says otherwise.
pub const ROOMS_MAX: usize = 10_000;
/// How many connections there may be at once on TCP, and as many again on QUIC, unless the configuration says
/// otherwise.
pub const CONNECTIONS_MAX: usize = 4_096;

/// Bytes of state that one member is sent in a second at most, unless the configuration says otherwise.
pub const STATE_RATE: u32 = 192 * 1024;
/// Least [`Config::state_rate`]: with less a room's state would hardly arrive at all.
pub const STATE_RATE_MIN: u32 = 4 * 1024;

/// Bytes of memory that the state of all rooms may take where the system does not say how much there is.
pub const STATE_MEMORY: usize = 1 << 30;
/// Least that a server takes for it by itself.
pub const STATE_MEMORY_MIN: usize = 256 << 20;

/// Longest [`Config::flush_quantum`], in milliseconds: more would be felt in every game.
pub const FLUSH_QUANTUM_MS_MAX: u64 = 20;

/// How long the seat of a member is kept whose connection is lost, unless the configuration says otherwise.
pub const GRACE: Duration = Duration::from_secs(30);

/// Longest [`Config::grace`], in seconds: a room whose members are all gone lives for so long.
pub const GRACE_S_MAX: u64 = 600;

/// What a server may be told. The default is a development server for anybody who reaches this machine.
///
/// ```
/// use parlor_server::Config;
/// let config = Config { port: 0, apps: Some(vec!["tanks".into()]), ..Config::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on. `::`, the default, stands for all addresses of both families; on a machine without
    /// IPv6 for all of IPv4.
    pub listen: IpAddr,
    /// The port, UDP and TCP. 0 takes one that is free for both.
    pub port: u16,
    /// How the server proves who it is.
    pub identity: IdentitySource,
    /// How often the files of [`IdentitySource::Files`] are looked at: what is there then is used from the next handshake on.
    pub certificate_every: Duration,
    /// The games that it serves; `None` for any.
    pub apps: Option<Vec<String>>,
    /// How many rooms may live at once; shards have equal parts of it.
    pub rooms_max: usize,
    /// Whether rooms may have dedicated hosts: processes without a player, in whose rooms many more members fit than in one that a
    /// player hosts.
    pub dedicated: bool,
    /// How much memory the state of rooms may take, in bytes: that of one room, that of all rooms that one address opened, and that of
    /// all; shards have equal parts of it. Beyond it no room is opened, and the largest end.
    pub state_memory: StateMemory,
    /// Bytes of state that one member is sent in a second on the long run, at most: what does not fit waits for its turn, the
    /// most urgent first. Never less than [`STATE_RATE_MIN`].
    pub state_rate: u32,
    /// Over how many threads the rooms are spread. Each has a port of its own: [`port`](Self::port) and those that follow it,
    /// UDP and TCP. Clients need to know the first alone; all must be reachable.
    pub shards: NonZeroU16,
    /// How long a room may hold back what it has to send, so that what comes meanwhile goes in the same packets: it costs
    /// latency and saves packets. Zero sends at once; at most
    /// [`FLUSH_QUANTUM_MS_MAX`].
    pub flush_quantum: Duration,
    /// How long the seat of a member is kept whose connection is lost, so that it can come back; at most [`GRACE_S_MAX`].
    /// Zero keeps none: such a member has left.
    pub grace: Duration,
    /// Whether the server lives in the process of a game that hosts a room, and ends with it: guests who hear nothing of it for
    /// [a while](parlor_proto::limits::HOST_GONE_TIMEOUT) take the host to be gone, instead of trying to reach it again. Unset for
    /// a server that rooms of others are on. It enters its rooms in the [`registry`](Self::registry), but not itself: no other process
    /// opens a room on it.
    pub is_of_host: bool,
    /// How many connections there may be at once on TCP, and as many again on QUIC.
    pub connections_max: usize,
    /// How many of them one address may have on TCP, and as many again on QUIC. An IPv6 address stands for its network of 64
    /// bits; 256 neighbours together have four times as many. `None`, the default, is an eighth of all, and 16 at least. This
    /// machine's own processes are not counted, unless [`limits_local`](Self::limits_local) says so.
    pub connections_per_address: Option<usize>,
    /// The origins of web pages that may use the server beside its own, as browsers send them (`https://game.example`,
    /// `http://localhost:5173`). Programs that are no browsers have none, and need none.
    pub web_origins: Vec<String>,
    /// How many handshakes one address may begin in each second on the long run, and a few times as many at once. An IPv6
    /// address stands for its network of 64 bits; 256 neighbours together have four times as many.
    pub handshakes_per_second: u32,
    /// How many all may begin in each second on the long run: what the machine has to spare beside the rooms that live.
    pub handshakes_per_second_all: u32,
    /// How long a client may take for each step until it has said hello; at most
    /// [`HANDSHAKE_TIMEOUT`](parlor_proto::limits::HANDSHAKE_TIMEOUT), which is also how long it has for the hello.
    pub handshake_time: Duration,
    /// Whether connections from this machine are counted like all others. They are not unless this says so: whoever can
    /// run processes here needs no flood. Behind a proxy on the same machine everybody seems to come from here.
    pub limits_local: bool,
    /// Whether tokens say who comes in, and whose. Without it whoever has an account here may bring a ticket, everybody else is
    /// anonymous, and any other token is refused.
    pub admission: Option<Policy>,
    /// Where the server and its rooms are entered for other processes of this machine to find. Only a server with a
    /// development identity that listens on a loopback address enters itself; a real certificate needs no such help.
    pub registry: Option<Registry>,
    /// A folder to which everything that rooms are told is written, one file for each room. The files hold the rooms'
    /// secrets and all that members say.
    pub room_log: Option<PathBuf>,
    /// The name or address that invites have, perhaps with a port where the outside has another one
    /// (`play.example.com`, `play.example.com:443`). Without it they have this machine's own address.
    pub public_host: Option<String>,
    /// A tool for development: the bad network that all its sockets are on, in both directions.
    pub impairment: Option<Impairment>,
    /// The local network on which its rooms are announced, but those with a secret: whoever is there can find and join them
    /// without being told a code. `None`, the default, announces nothing.
    pub lan: Option<Network>,
    /// Where figures for monitoring are given out, over HTTP without TLS: `/metrics`, `/health` and `/ready`. Port 0 takes a free one.
    /// `None`, the default, gives out none.
    pub metrics: Option<SocketAddr>,
    /// Matches of one account that are kept at once, where the server has [services](crate::embed) that keep them.
    pub kept_matches: usize,
    /// The clock of the services. Tests move it.
    pub time: Time,
}

/// What the state of all rooms may take on a machine with so much memory, in bytes: half of it.
fn state_memory_of(memory_bytes: Option<usize>) -> usize {
    memory_bytes.map_or(STATE_MEMORY, |bytes| bytes / 2).max(STATE_MEMORY_MIN)
}

/// How a server proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySource {
    /// A certificate that the server makes itself. Clients know it by its fingerprint.
    Development {
        /// Where it is kept, so that the fingerprint stays over restarts; made if it does not exist. Without it every
        /// start has another fingerprint.
        folder: Option<PathBuf>,
    },
    /// A certificate that clients trust by whoever issued it.
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
            impairment: None,
            lan: None,
            metrics: None,
            kept_matches: KEPT_MATCHES,
            time: Time::default(),
        }
    }
}
