//! Which addresses share a budget.
//!
//! An origin is what one person can send from at no cost: an IPv4 address, or an IPv6 network of 64 bits,
//! which one subscriber has. A neighbourhood is what costs a little: 256 IPv4 addresses, a hoster's usual
//! unit, or an IPv6 network of 48 bits, the largest usual one of a subscriber.

use core::net::IpAddr;
use parlor_hub::Origin;

/// The 16 bits before an IPv4 address. They are a multicast prefix, so no IPv6 network equals an IPv4 origin.
const V4: u64 = 0xff00 << 48;

/// The origin of an address.
pub(crate) fn of(addr: IpAddr) -> Origin {
    match addr.to_canonical() {
        IpAddr::V4(addr) => {
            let [a, b, c, d] = addr.octets();
            // Three bytes in the neighbourhood's 48 bits, the last one below them.
            Origin(V4 | (u64::from(u32::from_be_bytes([0, a, b, c])) << 24) | u64::from(d))
        }
        IpAddr::V6(addr) => {
            let network = u64::try_from(u128::from(addr) >> 64).expect("the upper half has 64 bits");
            // The network of `::1` would be 0, which has another meaning.
            Origin(network.max(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(addr: &str) -> Origin {
        of(addr.parse().unwrap())
    }

    #[test]
    fn an_address_of_ipv4_is_an_origin_and_256_of_them_a_neighbourhood() {
        assert_eq!(origin("192.0.2.7"), origin("::ffff:192.0.2.7"));
        assert_ne!(origin("192.0.2.7"), origin("192.0.2.8"));
        assert_eq!(origin("192.0.2.7").neighbourhood(), origin("192.0.2.255").neighbourhood());
        assert_ne!(origin("192.0.2.7").neighbourhood(), origin("192.0.3.7").neighbourhood());
        assert_ne!(origin("0.0.0.0").neighbourhood(), origin("::1").neighbourhood());
    }

    #[test]
    fn a_network_of_ipv6_is_an_origin_and_65536_of_them_a_neighbourhood() {
        assert_eq!(origin("2001:db8:1:2::1"), origin("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(origin("2001:db8:1:2::1"), origin("2001:db8:1:3::1"));
        assert_eq!(origin("2001:db8:1:2::1").neighbourhood(), origin("2001:db8:1:ffff::1").neighbourhood());
        assert_ne!(origin("2001:db8:1:2::1").neighbourhood(), origin("2001:db8:2:2::1").neighbourhood());
    }

    #[test]
    fn no_address_is_exempt_by_its_number() {
        for addr in ["::", "::1", "0.0.0.0", "127.0.0.1", "::ffff:0.0.0.0", "255.255.255.255"] {
            assert_ne!(origin(addr), Origin::LOCAL, "{addr}");
        }
    }
}
