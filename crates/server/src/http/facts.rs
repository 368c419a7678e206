//! Shared data of the HTTP handlers.

use super::pages::{Pages, Stranger};
use crate::access::Access;
use crate::metrics::Metrics;
use crate::mutex::lock;
use crate::node::Node;
use crate::seldom::Seldom;
use crate::shard::Shards;
use crate::web_identity::WebHashes;
use crate::web_pages::WebPages;
use axum::response::{IntoResponse, Response};
use core::net::IpAddr;
use hyper::StatusCode;
use parlor_proto::RoomCode;
use parlor_transport::Fingerprint;
use parlor_transport::discovery::{Invite, ServerAddress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The path of the services.
pub(super) const SERVICES: &str = "/v1";

/// Constants of the running server, and whether it is shutting down.
pub(crate) struct Facts {
    pub(crate) port: u16,
    /// The port under which it is reached by its public name, if it has one.
    pub(crate) public_port: u16,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Hashes of the certificates for browsers.
    pub(crate) web_hashes: WebHashes,
    /// The widest reachable address comes first.
    pub(crate) addresses: Vec<ServerAddress>,
    pub(crate) is_going_down: AtomicBool,
    /// The web pages that may send requests.
    pub(crate) pages: Pages,
    /// Limits the log of rejected page requests.
    pub(crate) strangers: Mutex<Seldom>,
    /// The games that browsers play from here.
    pub(crate) web_pages: WebPages,
    /// The counters.
    pub(crate) metrics: Arc<Metrics>,
}

impl Facts {
    /// The invite to a room.
    pub(crate) fn invite(&self, code: RoomCode, secret: Option<&str>) -> Invite {
        Invite { code, server: self.addresses.first().cloned(), secret: secret.map(str::to_owned) }
    }

    /// Logs a rejected page, sometimes.
    pub(crate) fn log(&self, stranger: &Stranger) {
        if let Some(unsaid) = lock(&self.strangers).may_say() {
            tracing::warn!(unsaid, "{stranger}");
        }
    }

    pub(crate) fn is_going_down(&self) -> bool {
        self.is_going_down.load(Ordering::Relaxed)
    }
}

/// The requester, by its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote(pub(super) IpAddr);

/// The state of a handler.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) shards: Shards,
    pub(super) facts: Arc<Facts>,
    pub(super) access: Access,
    /// The node that the server is, if it is one.
    pub(super) node: Option<Arc<dyn Node>>,
}

/// Whether a path belongs to the services.
pub(super) fn is_for_services(path: &str) -> bool {
    path.strip_prefix(SERVICES).is_some_and(|rest| rest.starts_with('/'))
}

pub(super) async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "There is nothing here. / says what there is.\n").into_response()
}

pub(super) fn going_down() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "The server is going down.\n").into_response()
}
