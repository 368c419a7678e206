//! The content of an announcement, as properties of its service (RFC 6763 §6), each `key=value` with at most
//! 255 bytes:
//!
//! ```text
//! v    1                        the version of this table; others are ignored
//! fp   52 letters and digits    the fingerprint of the server's certificate
//! code 4 to 12                  the room's code
//! app  1 to 64 bytes of UTF-8   its game
//! env  0 to 64 bytes of UTF-8   the game's environment; omitted if empty
//! max  1 to 3 digits            the maximum number of players
//! name 0 to 64 bytes of UTF-8   the name that its game gives it; omitted if empty
//! data 0 to 200 bytes of UTF-8  what else its game tells of it; omitted if empty
//! ```
//!
//! Port and addresses are those of the service.

use crate::discovery::{Invite, ServerAddress};
use crate::identity::Fingerprint;
use core::net::IpAddr;
use parlor_proto::RoomCode;
use parlor_proto::limits::{LABEL_BYTES_MAX, MEMBERS_MAX_SERVER_RUN};

const VERSION: &str = "1";
/// Maximum addresses of a room that are kept: a machine has few.
const ADDRESSES_MAX: usize = 8;

/// Bytes of the data of a listing at most.
const DATA_BYTES_MAX: usize = 200;

/// What a game tells of its room where it is announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The room's name: up to 64 bytes of UTF-8 without control characters. Default: empty.
    pub name: String,
    /// Anything else, in a form of the game's own: up to 200 bytes of UTF-8 without control characters. Default: empty.
    pub data: String,
}

impl Listing {
    /// A listing with this name.
    pub fn named(name: &str) -> Self {
        Listing { name: name.to_owned(), data: String::new() }
    }

    /// Sets the data.
    #[must_use]
    pub fn data(mut self, data: &str) -> Self {
        data.clone_into(&mut self.data);
        self
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// What is wrong, and what would do.
    pub fn check(&self) -> Result<(), String> {
        for (what, text, max) in [("name", &self.name, LABEL_BYTES_MAX), ("data", &self.data, DATA_BYTES_MAX)]
        {
            if short(text, max).is_none() {
                return Err(format!(
                    "the {what} of a listing has up to {max} bytes without control characters; this one has {}",
                    text.len()
                ));
            }
        }
        Ok(())
    }
}

/// A room announced on the local network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanRoom {
    /// Its code.
    pub code: RoomCode,
    /// Its game.
    pub app: String,
    /// The game's environment; empty if there is none.
    pub environment: String,
    /// The maximum number of players.
    pub players_max: u16,
    /// What its game tells of it.
    pub listing: Listing,
    /// Its server's addresses, best first: at least one, each with the fingerprint of its certificate.
    pub servers: Vec<ServerAddress>,
}

impl LanRoom {
    /// Returns an invite to it.
    pub fn invite(&self) -> Invite {
        Invite { code: self.code, server: self.servers.first().cloned(), secret: None }
    }
}

/// The properties of a room's service.
pub(super) fn properties(
    code: RoomCode,
    app: &str,
    environment: &str,
    players_max: u16,
    fingerprint: Fingerprint,
    listing: &Listing,
) -> Vec<(&'static str, String)> {
    let mut properties = vec![
        ("v", VERSION.to_owned()),
        ("fp", fingerprint.to_string()),
        ("code", code.to_string()),
        ("app", app.to_owned()),
        ("max", players_max.to_string()),
    ];
    for (key, value) in [("env", environment), ("name", &listing.name), ("data", &listing.data)] {
        if !value.is_empty() {
            properties.push((key, value.to_owned()));
        }
    }
    properties
}

/// Parses a service's properties; `None` if it is not a room. They are untrusted.
pub(super) fn parse<'a>(
    property: impl Fn(&str) -> Option<&'a str>,
    port: u16,
    addresses: impl IntoIterator<Item = IpAddr>,
) -> Option<LanRoom> {
    if property("v")? != VERSION || port == 0 {
        return None;
    }
    let fingerprint: Fingerprint = property("fp")?.parse().ok()?;
    let players_max = property("max")?.parse().ok()?;
    let room = LanRoom {
        code: property("code")?.parse().ok()?,
        app: label(property("app")?).filter(|app| !app.is_empty())?,
        environment: label(property("env").unwrap_or_default())?,
        players_max,
        listing: Listing {
            name: label(property("name").unwrap_or_default())?,
            data: short(property("data").unwrap_or_default(), DATA_BYTES_MAX)?,
        },
        servers: servers(addresses, port, fingerprint),
    };
    let has_players = (1..=MEMBERS_MAX_SERVER_RUN).contains(&players_max);
    (has_players && !room.servers.is_empty()).then_some(room)
}

/// Returns a text that is safe to display: short, and without control characters.
fn label(text: &str) -> Option<String> {
    short(text, LABEL_BYTES_MAX)
}

/// Returns a text of at most `max` bytes without control characters.
fn short(text: &str, max: usize) -> Option<String> {
    let is_fit = text.len() <= max && !text.chars().any(char::is_control);
    is_fit.then(|| text.to_owned())
}

/// Returns the addresses of a server, best first. Link-local IPv6 addresses are left out: they would need an
/// interface name.
fn servers(
    addresses: impl IntoIterator<Item = IpAddr>,
    port: u16,
    fingerprint: Fingerprint,
) -> Vec<ServerAddress> {
    let is_of_a_host = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_broadcast() && !ip.is_multicast(),
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local(),
    };
    let mut addresses: Vec<IpAddr> = addresses.into_iter().filter(is_of_a_host).collect();
    // Routable addresses come first, IPv4 before IPv6: small networks usually have it configured.
    addresses.sort_unstable_by_key(|ip| (ip.is_loopback(), ip.is_ipv6(), *ip));
    addresses.dedup();
    addresses.truncate(ADDRESSES_MAX);
    let server = |ip: IpAddr| ServerAddress { host: ip.to_string(), port, fingerprint: Some(fingerprint) };
    addresses.into_iter().map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINT: Fingerprint = Fingerprint([9; 32]);

    fn code() -> RoomCode {
        "K7QM".parse().expect("a code")
    }

    fn read(properties: &[(&str, String)], port: u16, addresses: &[&str]) -> Option<LanRoom> {
        let property =
            |key: &str| properties.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str());
        parse(property, port, addresses.iter().map(|ip| ip.parse::<IpAddr>().expect("an address")))
    }

    fn plain() -> Vec<(&'static str, String)> {
        properties(code(), "tanks", "", 8, PRINT, &Listing::default())
    }

    fn with(key: &'static str, value: &str) -> Vec<(&'static str, String)> {
        let mut properties = plain();
        properties.retain(|(known, _)| *known != key);
        properties.push((key, value.to_owned()));
        properties
    }

    #[test]
    fn a_room_is_read_as_it_was_announced() {
        let listing = Listing::named(&"n".repeat(LABEL_BYTES_MAX)).data(&"d".repeat(DATA_BYTES_MAX));
        listing.check().expect("it is within its bounds");
        let properties = properties(code(), "tänks", "development", 16, PRINT, &listing);
        assert!(properties.iter().all(|(key, value)| key.len() + 1 + value.len() <= 255));
        let room = read(&properties, 7_700, &["10.0.0.2"]).expect("it is a room");
        assert_eq!(
            (room.code, room.app.as_str(), room.environment.as_str()),
            (code(), "tänks", "development")
        );
        assert_eq!((room.players_max, &room.listing), (16, &listing));
        let invite = room.invite();
        assert_eq!(invite.server.expect("it is found").to_string(), format!("10.0.0.2:7700#{PRINT}"));
    }

    #[test]
    fn the_most_promising_address_comes_first() {
        let all = [
            "::1",
            "fe80::1",
            "fd00::2",
            "127.0.0.1",
            "224.0.0.1",
            "192.0.2.7",
            "0.0.0.0",
            "10.0.0.2",
            "10.0.0.2",
        ];
        let room = read(&plain(), 1, &all).expect("it is a room");
        let hosts: Vec<&str> = room.servers.iter().map(|server| server.host.as_str()).collect();
        assert_eq!(hosts, ["10.0.0.2", "192.0.2.7", "fd00::2", "127.0.0.1", "::1"]);
        let many: Vec<String> = (1..100).map(|n| format!("10.0.0.{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(read(&plain(), 1, &many).expect("it is a room").servers.len(), ADDRESSES_MAX);
    }

    #[test]
    fn what_is_no_room_is_nothing() {
        let here: &[&str] = &["10.0.0.2"];
        assert!(read(&plain(), 1, here).is_some());
        for (key, value) in [
            ("v", "2"),
            ("fp", "short"),
            ("code", "K7"),
            ("code", "K7QM\u{1b}[2J"),
            ("app", ""),
            ("app", "tanks\u{1b}[2J"),
            ("app", "tanks\nroom FAKE"),
            ("app", &"x".repeat(LABEL_BYTES_MAX + 1)),
            ("env", "\u{7}"),
            ("max", "0"),
            ("max", "257"),
            ("max", "-1"),
            ("name", "ada\u{1b}[2J"),
            ("name", &"x".repeat(LABEL_BYTES_MAX + 1)),
            ("data", "a\nb"),
            ("data", &"x".repeat(DATA_BYTES_MAX + 1)),
        ] {
            assert_eq!(read(&with(key, value), 1, here), None, "{key}={value:?}");
        }
        for (key, _) in plain() {
            let mut less = plain();
            less.retain(|(known, _)| *known != key);
            assert_eq!(read(&less, 1, here), None, "without {key}");
        }
        assert_eq!(read(&plain(), 0, here), None);
        assert_eq!(read(&plain(), 1, &["224.0.0.251", "fe80::1"]), None);
    }
}
