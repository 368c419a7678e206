//! Public and local addresses of the server for invites.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use parlor_transport::Fingerprint;
use parlor_transport::discovery::{AddressError, ServerAddress};
use std::net::UdpSocket;

/// A documentation address: unused, and behind the default route.
const FAR_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// As [`FAR_V4`].
const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// The addresses of a server, the widest reachable first.
pub(crate) fn addresses(
    public: Option<ServerAddress>,
    listen: IpAddr,
    port: u16,
    fingerprint: Option<Fingerprint>,
) -> Vec<ServerAddress> {
    let own = |host: IpAddr| ServerAddress { host: host.to_string(), port, fingerprint };
    let mut addresses: Vec<ServerAddress> = public.into_iter().collect();
    if listen.is_unspecified() {
        addresses.extend(outward(FAR_V4.into()).map(own));
        if listen.is_ipv6() {
            addresses.extend(outward(FAR_V6.into()).map(own));
        }
        addresses.push(own(Ipv4Addr::LOCALHOST.into()));
    } else {
        addresses.push(own(listen));
    }
    addresses
}

/// This machine's address as others on its network see it: the source address of packets to `far`. Connecting
/// a UDP socket only asks the routing table; no packet is sent. `None` without a network.
fn outward(far: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match far {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(far, 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

/// The public host as an address. Default port: the listening port.
pub(crate) fn public_address(
    text: &str,
    port: u16,
    fingerprint: Option<Fingerprint>,
) -> Result<ServerAddress, AddressError> {
    let address: ServerAddress = text.parse()?;
    if address.fingerprint.is_some() {
        let why = "the fingerprint is the server's own matter";
        return Err(AddressError { text: text.to_owned(), why });
    }
    let has_port = text != address.host && text != format!("[{}]", address.host);
    Ok(ServerAddress { port: if has_port { address.port } else { port }, fingerprint, ..address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_host_has_the_port_listened_on_unless_it_names_one() {
        let public = |text| public_address(text, 9, None).map(|address| address.to_string());
        assert_eq!(public("play.example.com"), Ok("play.example.com:9".into()));
        assert_eq!(public("play.example.com:443"), Ok("play.example.com:443".into()));
        assert_eq!(public("::1"), Ok("[::1]:9".into()));
        assert_eq!(public("[::1]"), Ok("[::1]:9".into()));
        assert_eq!(public("[::1]:7700"), Ok("[::1]:7700".into()));
        assert!(public("no host").is_err());
        assert!(public(&format!("x#{}", Fingerprint([1; 32]))).is_err());
    }

    #[test]
    fn the_address_that_reaches_furthest_comes_first() {
        let public = public_address("play.example.com", 9, None).unwrap();
        let all = addresses(Some(public.clone()), Ipv4Addr::UNSPECIFIED.into(), 9, None);
        assert_eq!(all.first(), Some(&public));
        assert_eq!(all.last().unwrap().to_string(), "127.0.0.1:9");
        let one = addresses(None, Ipv4Addr::LOCALHOST.into(), 9, None);
        assert_eq!(one.len(), 1, "it listens on no other");
    }
}
