//! Where a store is: what an operator writes.

use super::error::OpenError;
use std::path::PathBuf;

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A file of this machine.
    Sqlite(PathBuf),
    /// A server, as `postgres://…` says it.
    Postgres(String),
}

impl Address {
    /// A path, `sqlite://` and a path, or `postgres://user:password@host/database`.
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

/// The address as it may stand in a log.
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
    fn what_is_no_address_is_refused_without_its_password() {
        for text in ["", "sqlite://", ":memory:", "redis://ada:secret@localhost"] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(without_password("postgres://ada:s@cret@host/db"), "postgres://ada@host/db");
    }
}
