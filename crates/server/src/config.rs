//! What a server may be told.

use core::net::{IpAddr, Ipv6Addr};
use parlor_transport::discovery::{DEFAULT_PORT, Registry};
use std::path::PathBuf;

/// How many rooms may live at once, unless the configuration says otherwise.
pub const ROOMS_MAX: usize = 10_000;
/// How many connections there may be at once on TCP, and as many again on QUIC, unless the configuration says
/// otherwise.
pub const CONNECTIONS_MAX: usize = 4_096;

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
    /// The games that it serves; `None` for any.
    pub apps: Option<Vec<String>>,
    /// How many rooms may live at once.
    pub rooms_max: usize,
    /// How many connections there may be at once on TCP, and as many again on QUIC.
    pub connections_max: usize,
    /// Where the server and its rooms are entered for other processes of this machine to find. Only a server with a
    /// development identity that listens on a loopback address enters itself; a real certificate needs no such help.
    pub registry: Option<Registry>,
    /// A folder to which everything that rooms are told is written, one file for each room. The files hold the rooms'
    /// secrets and all that members say.
    pub room_log: Option<PathBuf>,
    /// The name or address that invites have, perhaps with a port where the outside has another one
    /// (`play.example.com`, `play.example.com:443`). Without it they have this machine's own address.
    pub public_host: Option<String>,
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
            apps: None,
            rooms_max: ROOMS_MAX,
            connections_max: CONNECTIONS_MAX,
            registry: None,
            room_log: None,
            public_host: None,
        }
    }
}
