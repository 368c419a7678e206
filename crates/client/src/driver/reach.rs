//! How the server is reached.

use super::passport::Passport;
use crate::core::Mode;
use parlor_transport::discovery::{Registry, ServerAddress};
use parlor_transport::impaired::Conditions;
use parlor_transport::inside::Inside;
use std::sync::Arc;

/// What may connect to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
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
pub(super) struct Reach {
    pub(super) mode: Mode,
    pub(super) server: Option<ServerAddress>,
    pub(super) via: Via,
    pub(super) roots: Option<String>,
    pub(super) registry: Registry,
    pub(super) scheme: String,
    pub(super) join_page: Option<String>,
    /// The way into a server of this process, if the game runs one.
    pub(super) inside: Option<Inside>,
    /// The bad network that the room is on, for development.
    pub(super) conditions: Option<Conditions>,
    /// The account that the player comes in as.
    pub(super) passport: Option<Arc<dyn Passport>>,
}

impl Reach {
    /// The way into the server of this process, if an address is its and no network shall lie between.
    pub(super) fn inside(&self, address: &ServerAddress) -> Option<&Inside> {
        let is_free = self.via == Via::Auto && self.conditions.is_none();
        self.inside.as_ref().filter(|inside| is_free && inside.leads_to(address))
    }
}

impl Default for Reach {
    fn default() -> Self {
        Reach {
            mode: Mode::Auto,
            server: None,
            via: Via::Auto,
            roots: None,
            registry: Registry::of_this_user(),
            scheme: "parlor".into(),
            join_page: None,
            inside: None,
            conditions: None,
            passport: None,
        }
    }
}
