//! The address of a bus over NATS.

use crate::store::Protection;
use core::fmt;
use core::str::FromStr;
use percent_encoding::percent_decode_str;

/// The port of NATS.
const PORT: u16 = 4222;

/// The address of a NATS server: `nats://USER:PASSWORD@HOST:PORT`, or `tls://…` for TLS.
///
/// TLS requires that the server proves its name. `?sslrootcert=FILE` has the certificates to trust instead of the
/// machine's.
#[derive(Clone, PartialEq, Eq)]
pub struct BusAddress {
    pub(super) host: String,
    pub(super) port: u16,
    /// User and password.
    pub(super) user: Option<(String, String)>,
    pub(super) protection: Protection,
}

/// The text is no [`BusAddress`]. It does not repeat the text, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address of the bus is refused: {0}")]
pub struct InvalidBusAddress(&'static str);

impl FromStr for BusAddress {
    type Err = InvalidBusAddress;

    fn from_str(text: &str) -> Result<Self, InvalidBusAddress> {
        let form = InvalidBusAddress("it is nats://USER:PASSWORD@HOST:PORT, or tls://… for TLS");
        let (scheme, rest) = text.split_once("://").ok_or(form.clone())?;
        let is_tls = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(form),
        };
        let implied = match (is_tls, rest.contains("sslmode="), rest.contains('?')) {
            (true, false, false) => "?sslmode=verify-full",
            (true, false, true) => "&sslmode=verify-full",
            _ => "",
        };
        let (protection, rest) = Protection::take(&format!("{rest}{implied}")).map_err(InvalidBusAddress)?;
        if is_tls && protection == Protection::None {
            return Err(InvalidBusAddress("tls:// and sslmode=disable contradict each other"));
        }
        let (user, place) = rest.rsplit_once('@').map_or((None, &*rest), |(user, place)| (Some(user), place));
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| InvalidBusAddress("its port is no number up to 65535"))?)
            }
            _ => (place, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_part) {
            return Err(form);
        }
        let user = user.map(|user| {
            let (user, password) = user.split_once(':').ok_or(form.clone())?;
            let decoded = |part: &str| percent_decode_str(part).decode_utf8().map(|text| text.into_owned());
            let both = decoded(user).and_then(|user| Ok((user, decoded(password)?)));
            both.map_err(|_| InvalidBusAddress("its user or password is not UTF-8"))
        });
        Ok(BusAddress { host, port, user: user.transpose()?, protection })
    }
}

/// Without the password, for logs.
impl fmt::Debug for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.protection == Protection::None { "nats" } else { "tls" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_server_and_perhaps_a_user() {
        let read = |text: &str| text.parse::<BusAddress>().unwrap();
        let plain = read("nats://db.example.com");
        assert_eq!((plain.host.as_str(), plain.port, &plain.user), ("db.example.com", PORT, &None));
        let whole = read("tls://ada:s%40cret@[::1]:7/?sslrootcert=ca.pem");
        assert_eq!((whole.host.as_str(), whole.port), ("::1", 7));
        assert_eq!(whole.user, Some(("ada".to_owned(), "s@cret".to_owned())));
        assert_eq!(whole.protection, Protection::Roots("ca.pem".into()));
        assert!(!format!("{whole:?}").contains("cret@"));
        assert_eq!(read("tls://a").protection, Protection::System);
        assert_eq!(read("[::1]".replace("[::1]", "nats://[::1]").as_str()).port, PORT);
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for text in [
            "",
            "localhost:4222",
            "redis://a",
            "nats://",
            "nats://a b",
            "nats://a:70000",
            "nats://ada@a",
            "nats://ada:secret%FF@a",
            "tls://a?sslmode=prefer",
            "tls://a?sslmode=disable",
        ] {
            let error = text.parse::<BusAddress>().expect_err(text).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
