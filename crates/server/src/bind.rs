//! One port number on TCP and UDP.

use crate::error::StartError;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use parlor_transport::ServerTls;
use parlor_transport::impaired::Conditions;
use parlor_transport::quic::{Engine, HandshakeLimits};
use socket2::{Domain, Socket, Type};
use std::io;
use tokio::net::TcpListener;

/// How many free TCP ports are tried for one that is free on UDP too.
const TRIES: usize = 16;
/// Connections that wait for accept. The operating system may allow fewer.
const BACKLOG: i32 = 1_024;

/// Both sockets, and their common address.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) tcp: TcpListener,
    pub(crate) quic: Engine,
    pub(crate) addr: SocketAddr,
}

/// Opens `port` on both; 0 takes one that is free on both.
pub(crate) fn bind(
    listen: IpAddr,
    port: u16,
    tls: &ServerTls,
    conditions: Option<&Conditions>,
) -> Result<Bound, StartError> {
    let mut tried = 0;
    loop {
        tried += 1;
        let tcp = bind_tcp(SocketAddr::new(listen, port))?;
        let addr = tcp
            .local_addr()
            .map_err(|error| StartError::Tcp { addr: SocketAddr::new(listen, port), error })?;
        match Engine::bind(addr, tls, HandshakeLimits::default(), conditions) {
            Ok(quic) => return Ok(Bound { tcp, quic, addr }),
            Err(error) if port != 0 => return Err(error.into()),
            Err(last) if tried == TRIES => return Err(StartError::NoFreePort { tried, last }),
            Err(error) => tracing::debug!(%error, "a free TCP port is taken on UDP, another is tried"),
        }
    }
}

/// Opens a TCP port. On a machine without IPv6 "all addresses" means all IPv4 addresses.
pub(crate) fn bind_tcp(addr: SocketAddr) -> Result<TcpListener, StartError> {
    let all_v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), addr.port());
    match listen_on(addr) {
        Err(error) if addr.is_ipv6() && addr.ip().is_unspecified() && has_no_ipv6(&error) => {
            tracing::debug!(%error, "this machine has no IPv6");
            listen_on(all_v4).map_err(|error| StartError::Tcp { addr: all_v4, error })
        }
        listener => listener.map_err(|error| StartError::Tcp { addr, error }),
    }
}

fn has_no_ipv6(error: &io::Error) -> bool {
    // Linux reports "address family not supported", which has no `ErrorKind` of its own.
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported)
        || matches!(error.raw_os_error(), Some(97 | 47 | 10_047))
}

fn listen_on(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    if addr.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restarted server must not wait until the system forgets the connections of its predecessor. On
    // Windows the option means something else: two servers may share a port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}
