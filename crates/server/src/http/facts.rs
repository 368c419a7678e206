//! Shared data of the HTTP handlers.

use super::pages::Pages;
use crate::access::Access;
use crate::metrics::Metrics;
use crate::seldom::Seldom;
use crate::shard::Shards;
use axum::response::{IntoResponse, Response};
use core::net::IpAddr;
use hyper::StatusCode;
use parlor_proto::RoomCode;
use parlor_transport::Fingerprint;
use parlor_transport::discovery::{Invite, ServerAddress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Where the services are.
pub(super) const SERVICES: &str = "/v1";

/// What does not change while the server runs, and whether it is going down.
pub(crate) struct Facts {
    pub(crate) port: u16,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// The one that reaches furthest comes first.
    pub(crate) addresses: Vec<ServerAddress>,
    pub(crate) is_draining: AtomicBool,
    /// Which web pages may ask.
    pub(crate) pages: Pages,
    /// Who was refused as a page's request, for the log.
    pub(crate) strangers: Mutex<Seldom>,
    /// What is counted as it happens.
    pub(crate) metrics: Arc<Metrics>,
}

impl Facts {
    /// What a friend is given to join a room.
    pub(crate) fn invite(&self, code: RoomCode, secret: Option<&str>) -> Invite {
        Invite { code, server: self.addresses.first().cloned(), secret: secret.map(str::to_owned) }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// The requester, by its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote(pub(super) IpAddr);

/// What a handler is given.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) shards: Shards,
    pub(super) facts: Arc<Facts>,
    pub(super) access: Access,
}

/// Whether a path is one of the services.
pub(super) fn is_for_services(path: &str) -> bool {
    path.strip_prefix(SERVICES).is_some_and(|rest| rest.starts_with('/'))
}

pub(super) async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "There is nothing here. / says what there is.\n").into_response()
}

pub(super) fn going_down() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "The server is going down.\n").into_response()
}
