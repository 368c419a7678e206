//! Server addresses, as people write them.

use super::DEFAULT_PORT;
use crate::identity::Fingerprint;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;
use thiserror::Error;

/// `HOST[:PORT][#FINGERPRINT]`. With a fingerprint, the server must have exactly that certificate; without
/// one, a certificate that the operating system trusts.
///
/// ```
/// use parlor_transport::discovery::ServerAddress;
/// let address: ServerAddress = "play.example.com".parse().unwrap();
/// assert_eq!((address.host.as_str(), address.port), ("play.example.com", 7700));
/// let address: ServerAddress = "[::1]:9000".parse().unwrap();
/// assert_eq!((address.host.as_str(), address.port), ("::1", 9000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The UDP port for QUIC and the TCP port for HTTP and WebSocket.
    pub port: u16,
    /// The fingerprint of its certificate.
    pub fingerprint: Option<Fingerprint>,
}

/// Why a text is not a server address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a server address: {why}. It is HOST, HOST:PORT or HOST:PORT#FINGERPRINT")]
pub struct AddressError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl ServerAddress {
    /// Whether it names this machine.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Whether both are on the same machine, judging by their names. The shards of a server are; their ports
    /// differ.
    pub fn is_on_host_of(&self, other: &ServerAddress) -> bool {
        self.host.eq_ignore_ascii_case(&other.host) || (self.is_loopback() && other.is_loopback())
    }

    /// Returns the base of URLs at this server; `scheme` is the one without TLS (`http` or `ws`). URLs use
    /// TLS. The exception is loopback, where servers accept connections without it, unless a certificate can
    /// be verified: with a fingerprint, or if `has_trust`.
    ///
    /// ```
    /// use parlor_transport::discovery::ServerAddress;
    ///
    /// let here: ServerAddress = "127.0.0.1:7700".parse().unwrap();
    /// assert_eq!(here.url("http", false), "http://127.0.0.1:7700");
    /// assert_eq!(here.url("http", true), "https://127.0.0.1:7700");
    /// let there: ServerAddress = "play.example.com".parse().unwrap();
    /// assert_eq!(there.url("ws", false), "wss://play.example.com:7700");
    /// ```
    pub fn url(&self, scheme: &str, has_trust: bool) -> String {
        let is_plain = self.is_loopback() && self.fingerprint.is_none() && !has_trust;
        let place = ServerAddress { fingerprint: None, ..self.clone() };
        format!("{scheme}{}://{place}", if is_plain { "" } else { "s" })
    }
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |why| AddressError { text: text.to_owned(), why };
        let (place, fingerprint) = match text.split_once('#') {
            Some((place, print)) => {
                (place, Some(print.parse().map_err(|_| error("what stands behind # is no fingerprint"))?))
            }
            None => (text, None),
        };
        let (host, port) = if let Some(rest) = place.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(|| error("the bracket is not closed"))?;
            host.parse::<Ipv6Addr>().map_err(|_| error("what stands in brackets is no IPv6 address"))?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(error("something stands behind the bracket")),
            }
        } else if place.parse::<Ipv6Addr>().is_ok() {
            (place, None)
        } else {
            place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)))
        };
        let port = match port {
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| error("the port is no number from 1 to 65535"))?,
            None => DEFAULT_PORT,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(error("the host is missing or has a letter that no host name has"));
        }
        Ok(ServerAddress { host: host.to_owned(), port, fingerprint })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }?;
        match self.fingerprint {
            Some(fingerprint) => write!(f, "#{fingerprint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_are_written() {
        let print = Fingerprint([7; 32]);
        for text in ["a.example:1", "127.0.0.1:7700", "[::1]:7700", &format!("x:80#{print}")] {
            assert_eq!(text.parse::<ServerAddress>().expect("well formed").to_string(), text);
        }
        assert_eq!("::1".parse::<ServerAddress>().expect("well formed").to_string(), "[::1]:7700");
        assert!("localhost".parse::<ServerAddress>().expect("well formed").is_loopback());
    }

    #[test]
    fn what_is_no_address_says_why() {
        for text in
            ["", ":80", "a:", "a:0", "a:70000", "a:b", "[::1", "[x]:1", "[::1]80", "a b", "http://x", "a#b"]
        {
            let error = text.parse::<ServerAddress>().expect_err(text);
            assert!(error.to_string().contains("HOST:PORT"), "{error}");
        }
    }
}
