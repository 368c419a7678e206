//! Keep-alive of connections that use the services, since more requests follow.
//!
//! A connection costs its client nothing, so it must not take places that others need (threat 19). An idle
//! connection is closed after the time limit of a request head, and asks no faster than the JSON socket. At
//! most a quarter of all connections stay open; the others are closed after their answer.

use super::EXCHANGE_TIME;
use crate::connection_limit::{ConnectionLimit, Permit};
use crate::pace::Pace;
use core::pin::pin;
use parlor_hub::Origin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::{Instant, timeout_at};

/// Of so many connections one may stay.
const STAYING_SHARE: usize = 4;

/// The places of connections that stay, of a server that takes so many connections.
pub(crate) fn places(connections_max: usize) -> ConnectionLimit {
    ConnectionLimit::for_all(connections_max / STAYING_SHARE)
}

/// One connection, from one request to the next.
pub(super) struct Stay {
    /// Of the first request's origin.
    pace: tokio::sync::Mutex<Option<Pace>>,
    now: Mutex<Now>,
}

struct Now {
    /// When the exchange that is under way must be over.
    until: Instant,
    /// The place of a connection that stays.
    place: Option<Permit>,
}

impl Stay {
    pub(super) fn new() -> Self {
        let now = Now { until: Instant::now() + EXCHANGE_TIME, place: None };
        Stay { pace: tokio::sync::Mutex::default(), now: Mutex::new(now) }
    }

    /// A request has come.
    pub(super) fn asked(&self) {
        self.lock().until = Instant::now() + EXCHANGE_TIME;
    }

    /// Whether the connection may stay after this request, which its pace may hold up.
    pub(super) async fn stays(&self, places: &ConnectionLimit, origin: Origin) -> bool {
        self.pace.lock().await.get_or_insert_with(|| Pace::new(origin)).wait().await;
        let place = &mut self.lock().place;
        if place.is_none() {
            *place = places.enter(None);
        }
        place.is_some()
    }

    /// Lets a connection run until it ends, or until an exchange takes too long.
    pub(super) async fn watch<T>(&self, connection: impl Future<Output = T>) -> Option<T> {
        let mut connection = pin!(connection);
        loop {
            let until = self.lock().until;
            match timeout_at(until, &mut connection).await {
                Ok(ended) => return Some(ended),
                Err(_) if self.lock().until > until => {}
                Err(_) => return None,
            }
        }
    }

    /// Each change is one step, so a panic leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
