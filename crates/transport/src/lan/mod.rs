//! Rooms on the local network: servers announce theirs by multicast DNS (RFC 6762, RFC 6763), and whoever looks for them finds
//! address and certificate without a server in between.
//!
//! An announcement proves nothing. Whoever is on the same network can announce a room, under any code; what the fingerprint
//! in it makes sure of is only that the room joined is the one announced. So it is for networks whose members trust
//! each other as far as to play; elsewhere an invite link names its server, and a room with a secret is never announced.
//!
//! - [`Advertiser`]: what a server announces, and its end · [`Discovery`]: what others announce, to be polled
//! - [`Network`]: where both happen

mod advertise;
mod discover;
mod record;

pub use advertise::{Advertisement, Advertiser};
pub use discover::{Discovery, LanEvent};
pub use record::LanRoom;

use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;
use mdns_sd::{IfKind, IfPredicate, ServiceDaemon};
use std::io;
use std::net::UdpSocket;
use thiserror::Error;

/// The type of service under which rooms are announced (RFC 6763 §7).
pub const SERVICE: &str = "_parlor._udp.local.";
/// The port of multicast DNS.
pub const MDNS_PORT: u16 = 5353;
/// The address of multicast DNS.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

/// Where announcements are made and heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The UDP port: [`MDNS_PORT`], or another one for a world of its own, as tests want it.
    pub port: u16,
    /// Whether only this machine takes part.
    pub is_loopback_only: bool,
}

impl Default for Network {
    fn default() -> Self {
        Network { port: MDNS_PORT, is_loopback_only: false }
    }
}

impl Network {
    /// A world of its own within this machine, for tests: on the loopback interface, and a port that nobody uses. It waits a moment
    /// to hear itself.
    ///
    /// # Errors
    /// The loopback interface passes no multicast, or not at once.
    pub fn within_this_machine() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let port = socket.local_addr()?.port();
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.send_to(b"?", (GROUP, port))?;
        socket.recv(&mut [0])?;
        Ok(Network { port, is_loopback_only: true })
    }

    /// Starts the thread that listens and announces.
    fn start(self) -> Result<ServiceDaemon, LanError> {
        let daemon = ServiceDaemon::new_with_port(self.port).map_err(LanError::of)?;
        if self.is_loopback_only {
            let elsewhere = IfPredicate::new(|interface| !interface.is_loopback());
            daemon.disable_interface(IfKind::Predicate(elsewhere)).map_err(LanError::of)?;
        }
        Ok(daemon)
    }
}

/// The local network cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("rooms on the local network can neither be announced nor found: {0}")]
pub struct LanError(String);

impl LanError {
    fn of(error: impl fmt::Display) -> Self {
        LanError(error.to_string())
    }
}
