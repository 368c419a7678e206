//! The address of a store, as operators write it.

use super::error::OpenError;
use parlor_transport::Trust;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A local file.
    Sqlite(PathBuf),
    /// A server, in the form `postgres://…`.
    Postgres(String),
}

impl Address {
    /// Parses a path, `sqlite://` and a path, or `postgres://user:password@host/database`.
    pub(super) fn parse(text: &str) -> Result<Address, OpenError> {
        let error = |sentence| OpenError::Address { address: without_password(text), sentence };
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Address::Postgres(text.to_owned()));
        }
        let path = match text.split_once("://") {
            Some(("sqlite", path)) => path,
            Some(_) => {
                return Err(error("a store is a path, sqlite://PATH or postgres://USER@HOST/DATABASE"));
            }
            None => text,
        };
        if path.is_empty() || path.contains('\0') || path == ":memory:" {
            return Err(error("name a file, such as data/parlor.db: a store survives its server"));
        }
        Ok(Address::Sqlite(path.into()))
    }
}

/// The protection of the connection to a PostgreSQL server, from `sslmode` and `sslrootcert` of its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// None.
    None,
    /// TLS. An authority that this machine trusts must certify the server's name.
    System,
    /// TLS. One of the certificates in this file must certify the server's name.
    Roots(PathBuf),
}

impl Protection {
    /// Whom a client trusts; `None` without TLS.
    ///
    /// # Errors
    /// The certificates cannot be read, with their file.
    pub(crate) fn trust(&self) -> Result<Option<Trust>, (PathBuf, io::Error)> {
        Ok(match self {
            Protection::None => None,
            Protection::System => Some(Trust::System),
            Protection::Roots(path) => {
                let pem = std::fs::read_to_string(path).map_err(|error| (path.clone(), error))?;
                Some(Trust::Roots(pem))
            }
        })
    }

    /// Returns the protection and the address without it, or what is wrong.
    pub(crate) fn take(address: &str) -> Result<(Protection, String), &'static str> {
        let (place, query) = address.split_once('?').unwrap_or((address, ""));
        let (mut mode, mut roots, mut others) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(value),
                Some((key, _)) if key.starts_with("ssl") => {
                    return Err("of what begins with ssl, only sslmode and sslrootcert are known");
                }
                _ => others.push(pair),
            }
        }
        let protection = match (mode, roots) {
            (None | Some("disable"), None) => Protection::None,
            (None | Some("disable"), Some(_)) => {
                return Err("sslrootcert without sslmode=verify-full would protect nothing");
            }
            // TLS always requires a proven name, so both mean the same.
            (Some("require" | "verify-full"), roots) => {
                match roots.map(|path| percent_decode_str(path).decode_utf8()) {
                    None | Some(Ok(Cow::Borrowed("system"))) => Protection::System,
                    Some(Ok(path)) => Protection::Roots(path.into_owned().into()),
                    Some(Err(_)) => return Err("sslrootcert is no path in UTF-8"),
                }
            }
            (Some(_), _) => {
                return Err(
                    "sslmode is disable, require or verify-full, of which the last two verify the server's \
                            name: others could end without protection, or with somebody else",
                );
            }
        };
        let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
        Ok((protection, format!("{place}{query}")))
    }
}

/// The address without its password, for logs.
pub(super) fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let Some((user, place)) = rest.rsplit_once('@') else { return text.to_owned() };
    let user = user.split(':').next().unwrap_or_default();
    format!("{scheme}://{user}@{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_or_a_server() {
        for text in ["data/parlor.db", "sqlite://data/parlor.db"] {
            assert_eq!(Address::parse(text).unwrap(), Address::Sqlite("data/parlor.db".into()));
        }
        let server = "postgres://parlor@localhost/parlor";
        assert_eq!(Address::parse(server).unwrap(), Address::Postgres(server.to_owned()));
    }

    #[test]
    fn protection_is_what_the_address_says_or_the_address_is_refused() {
        let take = |query: &str| Protection::take(&format!("postgres://ada@db/parlor{query}"));
        let plain = |query: &str| format!("postgres://ada@db/parlor{query}");
        assert_eq!(take(""), Ok((Protection::None, plain(""))));
        assert_eq!(take("?sslmode=disable&user=a"), Ok((Protection::None, plain("?user=a"))));
        assert_eq!(take("?sslmode=require"), Ok((Protection::System, plain(""))));
        assert_eq!(take("?a=b&sslmode=verify-full&c=d"), Ok((Protection::System, plain("?a=b&c=d"))));
        assert_eq!(take("?sslmode=verify-full&sslrootcert=system"), Ok((Protection::System, plain(""))));
        let roots = Protection::Roots("/etc/db ca.pem".into());
        assert_eq!(take("?sslrootcert=%2Fetc%2Fdb%20ca.pem&sslmode=require"), Ok((roots, plain(""))));
        for refused in [
            "?sslmode=prefer",
            "?sslmode=allow",
            "?sslmode=verify-ca",
            "?sslmode=",
            "?sslmode=REQUIRE",
            "?sslrootcert=ca.pem",
            "?sslmode=disable&sslrootcert=ca.pem",
            "?sslmode=require&sslcert=mine.pem",
            "?sslnegotiation=direct",
            "?sslmode=require&sslrootcert=%FF",
        ] {
            assert!(take(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for text in ["", "sqlite://", ":memory:", "redis://ada:secret@localhost"] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(without_password("postgres://ada:s@cret@host/db"), "postgres://ada@host/db");
    }
}
