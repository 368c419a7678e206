//! Invites: a room code, or a link with everything needed to join.
//!
//! ```text
//! SCHEME://join/CODE[?server=HOST:PORT[&fingerprint=F][&secret=S]]
//! https://HOST[:PORT]/join/CODE
//! ```
//!
//! The scheme is the game's own, so that an operating system can open the right game. The second form is the
//! URL of a server's web page for a room: the room is on that host.

use super::address::ServerAddress;
use core::fmt;
use core::str::FromStr;
use parlor_proto::{RoomCode, code::CodeError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

/// Characters to escape in a query (RFC 3986 §3.4): all except those that are safe in every link parser.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// An invite to a room.
///
/// ```
/// use parlor_transport::discovery::Invite;
/// let invite: Invite = "k7qm".parse().unwrap();
/// assert_eq!(invite.code.as_str(), "K7QM");
/// let invite: Invite = "tanks://join/K7QM?server=play.example.com:7700".parse().unwrap();
/// assert_eq!(invite.server.unwrap().port, 7700);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite {
    /// The room's code.
    pub code: RoomCode,
    /// The room's server; without one, the joiner's default applies.
    pub server: Option<ServerAddress>,
    /// The secret needed beside the code.
    pub secret: Option<String>,
}

/// Why a text is neither a code nor an invite.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InviteError {
    /// An invalid code.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// An invalid link.
    #[error(
        "{0:?} is not an invite: {1}. It is a room code, or a link like parlor://join/CODE?server=HOST:PORT"
    )]
    Link(String, String),
}

impl Invite {
    /// Returns the link, with a scheme like "parlor".
    pub fn link(&self, scheme: &str) -> String {
        let escape = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let mut fields = Vec::new();
        if let Some(server) = &self.server {
            let place = ServerAddress { fingerprint: None, ..server.clone() };
            fields.push(format!("server={}", escape(&place.to_string())));
            fields.extend(server.fingerprint.map(|print| format!("fingerprint={print}")));
        }
        fields.extend(self.secret.as_deref().map(|secret| format!("secret={}", escape(secret))));
        let query = if fields.is_empty() { String::new() } else { format!("?{}", fields.join("&")) };
        format!("{scheme}://join/{}{query}", self.code)
    }
}

impl FromStr for Invite {
    type Err = InviteError;

    fn from_str(text: &str) -> Result<Self, InviteError> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Invite { code: text.parse()?, server: None, secret: None });
        };
        let error = |why: String| InviteError::Link(text.to_owned(), why);
        let (server, path) = match page_of(scheme, rest) {
            Some((place, path)) => {
                let server = place.parse().map_err(|why: super::AddressError| error(why.to_string()))?;
                (Some(server), path.strip_prefix("join/").ok_or("its path does not begin with /join/"))
            }
            None => (None, rest.strip_prefix("join/").ok_or("it does not begin with join/")),
        };
        let path = path.map_err(|why| error(why.into()))?;
        let (code, query) = path.split_once('?').unwrap_or((path, ""));
        let mut invite = Invite { code: code.parse()?, server, secret: None };
        let mut fingerprint = None;
        for field in query.split('&').filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            let value =
                percent_decode_str(value).decode_utf8().map_err(|_| error(format!("{name} is no text")))?;
            match name {
                "server" => {
                    let address: ServerAddress =
                        value.parse().map_err(|why: super::AddressError| error(why.to_string()))?;
                    fingerprint = fingerprint.or(address.fingerprint);
                    invite.server = Some(address);
                }
                "fingerprint" => {
                    fingerprint = Some(value.parse().map_err(|_| error("its fingerprint is none".into()))?);
                }
                "secret" => invite.secret = Some(value.into_owned()),
                // Ignored: a newer game may add parameters.
                _ => {}
            }
        }
        match &mut invite.server {
            Some(server) => server.fingerprint = fingerprint,
            None if fingerprint.is_some() => return Err(error("it has a fingerprint and no server".into())),
            None => {}
        }
        Ok(invite)
    }
}

/// For the link of a web page: the address of its host, with the browser's default port, and its path.
fn page_of<'a>(scheme: &str, rest: &'a str) -> Option<(String, &'a str)> {
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    Some((if has_port { place.to_owned() } else { format!("{place}:{port}") }, path))
}

impl fmt::Display for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.link("parlor"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Fingerprint;

    #[test]
    fn invites_come_back_as_they_are_written() {
        let code: RoomCode = "K7QM".parse().expect("a code");
        let server = |fingerprint| Some(ServerAddress { host: "::1".into(), port: 9, fingerprint });
        for invite in [
            Invite { code, server: None, secret: None },
            Invite { code, server: server(None), secret: None },
            Invite { code, server: server(Some(Fingerprint([9; 32]))), secret: Some("a&b=c d/ü".into()) },
            Invite { code, server: None, secret: Some("x".into()) },
        ] {
            let link = invite.link("tanks");
            assert!(link.starts_with("tanks://join/K7QM"), "{link}");
            assert_eq!(link.parse(), Ok(invite));
        }
    }

    #[test]
    fn the_page_of_a_room_is_an_invite() {
        for (url, host, port) in [
            ("https://play.example.com/join/K7QM", "play.example.com", 443),
            ("https://play.example.com:7700/join/k7qm?x=1#top", "play.example.com", 7_700),
            ("http://127.0.0.1:40123/join/K7QM", "127.0.0.1", 40_123),
            ("HTTP://[::1]/join/K7QM", "::1", 80),
            ("https://[::1]:9/join/K7QM", "::1", 9),
        ] {
            let invite: Invite = url.parse().expect("it is the page of a room");
            let server = invite.server.expect("the page is at a server");
            assert_eq!(
                (invite.code.as_str(), server.host.as_str(), server.port),
                ("K7QM", host, port),
                "{url}"
            );
        }
        for text in ["https://play.example.com", "https://play.example.com/K7QM", "https:///join/K7QM"] {
            assert!(text.parse::<Invite>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_invite_says_why() {
        for text in [
            "",
            "K7",
            "parlor://K7QM",
            "parlor://join/!",
            "x://join/K7QM?server=",
            "x://join/K7QM?fingerprint=aa",
            "x://join/K7QM?secret=%ff",
        ] {
            assert!(text.parse::<Invite>().is_err(), "{text}");
        }
    }
}
