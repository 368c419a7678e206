//! LAN discovery of rooms. Servers announce rooms by multicast DNS (RFC 6762, RFC 6763); players find address
//! and certificate without a central server.
//!
//! An announcement is not authenticated. Any machine on the network can announce a room under any code. The
//! fingerprint only ensures that the room joined is the one announced. Use it on networks whose members trust
//! each other enough to play. Elsewhere an invite link names its server. A room with a secret is never
//! announced.
//!
//! - [`Advertiser`]: announces rooms and withdraws them · [`Discovery`]: finds rooms, by polling
//! - [`Network`]: the scope of both

mod advertise;
mod discover;
mod record;

pub use advertise::{Advertisement, Advertiser};
pub use discover::{Discovery, LanEvent};
pub use record::{LanRoom, Listing};

use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;
use mdns_sd::{IfKind, IfPredicate, ServiceDaemon};
use std::io;
use std::net::UdpSocket;
use thiserror::Error;

/// The DNS-SD service type of rooms (RFC 6763 §7).
pub const SERVICE: &str = "_parlor._udp.local.";
/// The port of multicast DNS.
pub const MDNS_PORT: u16 = 5353;
/// The address of multicast DNS.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

/// The network on which announcements are sent and heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The UDP port: [`MDNS_PORT`], or another one to isolate tests.
    pub port: u16,
    /// Whether only the loopback interface is used.
    pub is_loopback_only: bool,
}

impl Default for Network {
    fn default() -> Self {
        Network { port: MDNS_PORT, is_loopback_only: false }
    }
}

impl Network {
    /// Returns an isolated network for tests: the loopback interface and an unused port. Waits a moment to
    /// hear itself.
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
