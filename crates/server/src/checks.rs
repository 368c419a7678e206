//! Checks of settings and of this machine, before a server starts here. They leave nothing behind.

use crate::bind;
use crate::config::{Config, IdentitySource};
use crate::error::StartError;
use crate::files;
use crate::identity::{self, IDENTITY_FILE, IdentitySourceError};
use crate::server::check_settings;
use crate::system;
use core::net::{IpAddr, SocketAddr};
use parlor_transport::quic::{Engine, HandshakeLimits};
use parlor_transport::{Identity, ServerTls};

/// Checks what a start checks before it opens a port, except for the [identity]. `has_services` says whether
/// there are accounts.
///
/// # Errors
/// As of [`Server::start`](crate::Server::start).
pub fn settings(config: &Config, has_services: bool) -> Result<(), StartError> {
    check_settings(config, has_services)
}

/// Loads the identity. `None` is a development identity that the start will make.
///
/// # Errors
/// As of [`Server::start`](crate::Server::start).
pub fn identity(source: &IdentitySource) -> Result<Option<Identity>, IdentitySourceError> {
    match source {
        IdentitySource::Development { folder: None } => Ok(None),
        IdentitySource::Development { folder: Some(folder) } if !folder.join(IDENTITY_FILE).exists() => {
            Ok(None)
        }
        source => identity::obtain(source).map(Some),
    }
}

/// Opens the TCP port, and closes it again. Must be called in a tokio runtime.
///
/// # Errors
/// [`StartError::Tcp`].
pub fn tcp_port(listen: IpAddr, port: u16) -> Result<(), StartError> {
    bind::bind_tcp(SocketAddr::new(listen, port)).map(|_| ())
}

/// Opens the UDP port, and closes it again. Must be called in a tokio runtime.
///
/// # Errors
/// [`StartError::Udp`].
pub fn udp_port(listen: IpAddr, port: u16) -> Result<(), StartError> {
    let identity = Identity::generate(&["localhost"])
        .map_err(|error| StartError::Identity(IdentitySourceError::NotMade(error)))?;
    // As all addresses are without IPv6.
    let listen = bind::bind_tcp(SocketAddr::new(listen, 0))?.local_addr().map_or(listen, |addr| addr.ip());
    let (addr, tls) = (SocketAddr::new(listen, port), ServerTls::new(&identity));
    Engine::bind(addr, &tls, HandshakeLimits::default(), None)?;
    Ok(())
}

/// The limit of open files and the number that so many connections need, if the limit is too low.
pub fn file_shortage(connections_max: usize) -> Option<(u64, u64)> {
    files::shortage(connections_max)
}

/// Bytes of memory that this process may use: the machine's, or its container's limit if that is lower.
/// `None` if the system reports neither.
pub fn memory_bytes() -> Option<usize> {
    system::memory_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn a_port_is_free_or_taken_and_looking_takes_it_from_nobody() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let tcp = std::net::TcpListener::bind((here, 0)).unwrap();
        let taken = tcp.local_addr().unwrap().port();
        assert!(matches!(tcp_port(here, taken), Err(StartError::Tcp { .. })));
        let udp = std::net::UdpSocket::bind((here, 0)).unwrap();
        let taken = udp.local_addr().unwrap().port();
        assert!(matches!(udp_port(here, taken), Err(StartError::Udp(_))));
        drop((tcp, udp));
        for _ in 0..2 {
            tcp_port(here, taken).unwrap();
            udp_port(here, taken).unwrap();
        }
    }

    #[test]
    fn a_development_identity_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let source = IdentitySource::Development { folder: Some(folder.path().join("new")) };
        assert!(identity(&source).unwrap().is_none());
        assert!(!folder.path().join("new").exists());
        let made = identity::obtain(&source).unwrap().fingerprint();
        assert_eq!(identity(&source).unwrap().map(|kept| kept.fingerprint()), Some(made));
    }
}
