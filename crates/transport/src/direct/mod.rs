//! Direct paths: links between two players without a server in between (NAT hole punching).
//!
//! The hub introduces two players. Each gets the other's candidates (possible addresses), its certificate's
//! fingerprint and the path's id. Both then dial all candidates of the other at once, from the sockets that
//! they use for the hub. An outgoing packet opens the player's own NAT for incoming ones. One of the
//! resulting connections is kept.
//!
//! - Both ends authenticate (`tls`). Unexpected connections get no answer (`accept_filter`).
//! - A candidate may be a stranger's address. One that does not answer gets [`PROBES_MAX`] datagrams, then
//!   none ever again from the same [`Direct`] (`probe`).
//! - Connections are dialled and accepted only during [`Direct::open`].

mod accept_filter;
mod agree;
mod name;
pub(crate) mod probe;
mod race;
mod tls;

pub use accept_filter::{ATTEMPTS_MAX, CANDIDATES_MAX};
pub use probe::PROBES_MAX;

use crate::identity::{Fingerprint, Identity};
use crate::link::Link;
use crate::quic::Dialer;
use crate::quic::link::establish;
use accept_filter::{AcceptFilter, Expected};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use quinn::ConnectionId;
use rustls::sign::CertifiedKey;
use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::task::JoinSet;

/// Unanswered addresses that are remembered. At this limit, no new addresses are dialled.
const UNANSWERED_MAX: usize = 1024;

/// Documentation addresses (RFC 5737, RFC 3849) that stand for the internet when asking the system for its
/// own outgoing address. Nothing is sent to them.
const FAR_AWAY: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9),
];

/// Which end of a path this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Decides which connection is kept. Prefers those that it dialled: their other end follows a change of
    /// address.
    Dial,
    /// Accepts the other end's decision.
    Accept,
}

/// Description of a path to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The path's id at both ends, from the hub: a secret number.
    pub id: u64,
    /// Which end this is.
    pub role: Role,
    /// The fingerprint of the other end's certificate.
    pub peer: Fingerprint,
    /// Where the other end may be.
    pub candidates: Vec<SocketAddr>,
    /// Where the hub is. Candidates on loopback are tried only if it is there too.
    pub hub: SocketAddr,
    /// How long it may take.
    pub deadline: Duration,
}

/// Why a direct path could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The peer did not answer in time.
    #[error(
        "no direct way to the other player was found within {} ms, at {dialled} of its addresses: their networks do not let \
         them through, or it did not try{}",
        waited.as_millis(),
        last.as_ref().map(|last| format!(" (the last that went wrong: {last})")).unwrap_or_default()
    )]
    TimedOut {
        /// The timeout.
        waited: Duration,
        /// The number of addresses dialled.
        dialled: usize,
        /// The last error, if there was one.
        last: Option<String>,
    },
    /// A connection broke before both ends agreed on it.
    #[error("a direct connection broke before it could be used: {detail}")]
    Broke {
        /// The library's error.
        detail: String,
    },
    /// Too many attempts are active.
    #[error("{ATTEMPTS_MAX} direct paths are being opened already: wait until one of them is done")]
    TooMany,
    /// No socket is available.
    #[error("no socket for direct paths: {detail}")]
    NoSocket {
        /// The system's error.
        detail: String,
    },
}

/// The direct paths of one dialer, under one identity. Dropping it stops accepting connections; existing
/// links stay alive.
#[derive(Debug)]
pub struct Direct {
    dialer: Arc<Dialer>,
    own: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    filter: AcceptFilter,
    receivers: Mutex<Receivers>,
    /// Addresses to which something was sent and that were never seen to be a peer's.
    unanswered: Mutex<BTreeSet<SocketAddr>>,
    under_way: AtomicUsize,
}

/// The accepting tasks, by address family.
#[derive(Debug, Default)]
struct Receivers {
    is_open: [bool; 2],
    tasks: JoinSet<()>,
}

impl Direct {
    /// Creates direct paths from this dialer's sockets, with this certificate.
    pub fn new(dialer: Arc<Dialer>, identity: &Identity) -> Self {
        Direct {
            dialer,
            own: identity.certified(),
            fingerprint: identity.fingerprint(),
            filter: AcceptFilter::default(),
            receivers: Mutex::default(),
            unanswered: Mutex::default(),
            under_way: AtomicUsize::new(0),
        }
    }

    /// The fingerprint by which other ends verify this one.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns this end's candidates, beside the address that the hub sees: the local addresses of the routes
    /// to the hub and to the internet, with the ports of the dialer's sockets. At most four; none on
    /// loopback. Other networks' addresses are left out: they would reveal more about a player than they
    /// help. Must be called in a tokio runtime.
    pub fn candidates(&self, hub: SocketAddr) -> Vec<SocketAddr> {
        let mut candidates: Vec<SocketAddr> = Vec::new();
        for towards in [[hub].as_slice(), &FAR_AWAY].concat() {
            let Some(ip) = own_address(towards).filter(|ip| is_worth_telling(*ip)) else { continue };
            // A machine without this address family has no socket for it either.
            let Ok(port) = self.port(ip.is_ipv6()) else { continue };
            let candidate = SocketAddr::new(ip, port);
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        candidates
    }

    /// Opens a path: dials all candidates and accepts the peer's dials, until both ends agree on one
    /// connection. Must be called in the dialer's tokio runtime. Cancel-safe.
    ///
    /// # Errors
    /// [`PathError`]; the relay continues meanwhile, so nothing is lost.
    pub async fn open(&self, attempt: &Attempt) -> Result<Link, PathError> {
        let _slot = Slot::take(&self.under_way)?;
        let expected = self.receive_on_all(attempt)?;
        let dials = self.choose_dials(attempt);
        let race = race::Race::new(self, attempt, dials, expected);
        let connection = race.run().await?;
        establish(connection).map_err(|violation| PathError::Broke { detail: violation.to_string() })
    }

    /// Lets the peer in, whichever of this end's candidates it dials.
    fn receive_on_all(&self, attempt: &Attempt) -> Result<Expected, PathError> {
        for is_ipv6 in [false, true] {
            let is_wanted = attempt.candidates.iter().any(|addr| canonical(*addr).is_ipv6() == is_ipv6);
            if is_wanted || self.dialer.has_socket(is_ipv6) {
                // A machine may lack a family; the other one is tried then.
                if let Err(error) = self.receive_on(is_ipv6) {
                    tracing::debug!(is_ipv6, %error, "no socket for direct paths");
                }
            }
        }
        if self.lock_receivers().is_open == [false, false] {
            return Err(PathError::NoSocket { detail: "neither IPv4 nor IPv6 has one".to_owned() });
        }
        let names = indices().map(|index| name::of(attempt.id, attempt.peer, self.fingerprint, index));
        Ok(self.filter.expect(names.collect()))
    }

    fn receive_on(&self, is_ipv6: bool) -> io::Result<()> {
        let mut receivers = self.lock_receivers();
        if !receivers.is_open[usize::from(is_ipv6)] {
            let endpoint = self.dialer.socket(is_ipv6)?.endpoint;
            // Accepted connections use the configuration of their attempt, never this one.
            endpoint.set_server_config(Some(tls::accepting(&self.own, self.fingerprint)));
            receivers.tasks.spawn(self.filter.clone().receive(endpoint));
            receivers.is_open[usize::from(is_ipv6)] = true;
        }
        Ok(())
    }

    /// The candidates to dial, each with its initial connection id. They count as unanswered from here on.
    fn choose_dials(&self, attempt: &Attempt) -> Vec<(SocketAddr, ConnectionId)> {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dials = Vec::new();
        for (index, candidate) in indices().zip(&attempt.candidates) {
            let candidate = canonical(*candidate);
            let is_new = !unanswered.contains(&candidate) && unanswered.len() < UNANSWERED_MAX;
            if is_new && is_worth_a_try(candidate, attempt.hub) {
                unanswered.insert(candidate);
                dials.push((candidate, name::of(attempt.id, self.fingerprint, attempt.peer, index)));
            }
        }
        dials
    }

    /// Records that a peer answered at this address.
    fn answered(&self, addr: SocketAddr) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(&addr);
    }

    fn port(&self, is_ipv6: bool) -> io::Result<u16> {
        Ok(self.dialer.socket(is_ipv6)?.endpoint.local_addr()?.port())
    }

    fn lock_receivers(&self) -> MutexGuard<'_, Receivers> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The indices in a list of candidates.
fn indices() -> impl Iterator<Item = u8> {
    0..u8::try_from(CANDIDATES_MAX).expect("candidates are few")
}

/// The address by which this machine would send there, according to the routing table; nothing is sent.
fn own_address(towards: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr =
        if towards.is_ipv6() { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(towards).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Whether others may reach this machine at its address. A link-local address needs an interface name, which
/// is meaningless on other machines.
fn is_worth_telling(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_loopback() && !ip.is_unspecified() && !is_link_local
}

/// Converts an IPv4-mapped IPv6 address to IPv4: a hub that listens on both families sees those.
fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

/// Whether a candidate may be dialled at all. The hub has checked it already, but is not trusted.
fn is_worth_a_try(candidate: SocketAddr, hub: SocketAddr) -> bool {
    let ip = canonical(candidate).ip();
    let is_one_host = match ip {
        IpAddr::V4(ip) => !ip.is_broadcast(),
        IpAddr::V6(_) => true,
    };
    let is_here = ip.is_loopback();
    candidate.port() != 0
        && is_one_host
        && !ip.is_multicast()
        && !ip.is_unspecified()
        && (!is_here || hub.ip().to_canonical().is_loopback())
}

/// A slot of the concurrent attempts.
struct Slot<'a>(&'a AtomicUsize);

impl<'a> Slot<'a> {
    fn take(under_way: &'a AtomicUsize) -> Result<Self, PathError> {
        let before = under_way.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(under_way);
        if before < ATTEMPTS_MAX { Ok(slot) } else { Err(PathError::TooMany) }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_machine_elsewhere_is_worth_a_try() {
        let hub: SocketAddr = "203.0.113.9:7777".parse().unwrap();
        let here: SocketAddr = "127.0.0.1:7777".parse().unwrap();
        for fine in ["192.168.1.7:5000", "203.0.113.9:7777", "[2001:db8::7]:5000", "[fd00::1]:1"] {
            assert!(is_worth_a_try(fine.parse().unwrap(), hub), "{fine}");
        }
        for forged in [
            "192.168.1.7:0",
            "0.0.0.0:5000",
            "255.255.255.255:5000",
            "224.0.0.251:5353",
            "[ff02::fb]:5353",
            "[::]:5000",
            "[::ffff:224.0.0.251]:5353",
        ] {
            assert!(!is_worth_a_try(forged.parse().unwrap(), hub), "{forged}");
            assert!(!is_worth_a_try(forged.parse().unwrap(), here), "{forged}");
        }
        for own in ["127.0.0.1:5000", "[::1]:5000", "[::ffff:127.0.0.1]:5000"] {
            assert!(!is_worth_a_try(own.parse().unwrap(), hub), "{own}");
            assert!(is_worth_a_try(own.parse().unwrap(), here), "{own}");
        }
    }
}
