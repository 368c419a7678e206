//! How the server is reached.

use super::packet_log::PacketLog;
use super::passport::Passport;
use parlor_client_core::Mode;
use parlor_transport::discovery::{Registry, ServerAddress};
use parlor_transport::impaired::Conditions;
use parlor_transport::inside::Inside;
use std::sync::Arc;

/// Which transports a room tries to reach its server by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportPreference {
    /// QUIC, and WebSocket where QUIC gets no answer.
    #[default]
    Auto,
    /// QUIC only.
    Quic,
    /// WebSocket only.
    WebSocket,
}

/// How the server is reached.
#[derive(Clone, Debug)]
pub(super) struct ConnectOptions {
    pub(super) mode: Mode,
    pub(super) server: Option<ServerAddress>,
    /// The server of the settings file, where neither code nor environment name one.
    pub(super) server_of_file: Option<ServerAddress>,
    pub(super) transport: TransportPreference,
    pub(super) roots: Option<String>,
    pub(super) registry: Registry,
    pub(super) scheme: String,
    pub(super) join_page: Option<String>,
    /// The way into a server of this process, if the game runs one.
    pub(super) inside: Option<Inside>,
    /// The address of the server whose only room is joined, if the game has no code.
    pub(super) at: Option<ServerAddress>,
    /// The network on which a server of this process announces its rooms, and on which rooms are looked for.
    #[cfg(feature = "lan")]
    pub(super) lan: Option<parlor_transport::lan::Network>,
    /// What the game tells of its room where a server of this process announces it; `None` for no announcement.
    #[cfg(feature = "server")]
    pub(super) listing: Option<parlor_transport::lan::Listing>,
    /// Where others reach the server, if an invite is to have another address than the one that this process dials.
    pub(super) public: Option<ServerAddress>,
    /// The bad network that the room is on, for development.
    pub(super) conditions: Option<Conditions>,
    /// Where the room's packets are logged, for development.
    pub(super) packet_log: Option<PacketLog>,
    /// The account that the player comes in as.
    pub(super) passport: Option<Arc<dyn Passport>>,
}

impl ConnectOptions {
    /// The way into the server of this process, if an address is its and no network shall lie between.
    pub(super) fn inside(&self, address: &ServerAddress) -> Option<&Inside> {
        let is_free = self.transport == TransportPreference::Auto && self.conditions.is_none();
        self.inside.as_ref().filter(|inside| is_free && inside.leads_to(address))
    }

    /// Whether a server of this process is to announce its rooms.
    pub(super) fn announces(&self) -> bool {
        #[cfg(feature = "server")]
        return self.lan.is_some();
        #[cfg(not(feature = "server"))]
        false
    }

    /// What an invite says of the server at an address.
    pub(super) fn public<'a>(&'a self, address: &'a ServerAddress) -> &'a ServerAddress {
        self.public.as_ref().unwrap_or(address)
    }
}

/// Checks the scheme of invite links (RFC 3986 §3.1).
pub(crate) fn check_scheme(scheme: &str) -> Result<(), String> {
    let may_have = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(may_have) {
        return Ok(());
    }
    Err(format!(
        "invite_scheme is {scheme:?}; it begins with a letter and may have letters, digits, +, - and ."
    ))
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            mode: Mode::Auto,
            server: None,
            server_of_file: None,
            transport: TransportPreference::Auto,
            roots: None,
            registry: Registry::of_this_user(),
            scheme: "parlor".into(),
            join_page: None,
            inside: None,
            at: None,
            #[cfg(feature = "lan")]
            lan: None,
            #[cfg(feature = "server")]
            listing: Some(parlor_transport::lan::Listing::default()),
            public: None,
            conditions: None,
            packet_log: None,
            passport: None,
        }
    }
}
