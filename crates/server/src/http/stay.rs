//! HTTP keep-alive, for requests to the services: their clients send more than one.
//!
//! An open connection costs its client nothing, so it must take nothing that others need (threat 19):
//!
//! - The idle timeout between two requests is the time for a request's head, `handshake_time`: 5 s by
//!   default.
//! - A request with its answer takes at most [`EXCHANGE_TIME`].
//! - Requests are paced like those of the JSON socket.
//! - At most a quarter of all connections are kept alive, and of these one address has its share. Beyond
//!   that, the connection closes after its answer.

use super::EXCHANGE_TIME;
use crate::connection_limit::{ConnectionLimit, Permit, share};
use crate::pace::Pace;
use core::pin::pin;
use parlor_hub::Origin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::{Instant, timeout_at};

/// One in this many connections may be kept alive.
const STAYING_SHARE: usize = 4;

/// Returns the limit of keep-alive connections for a server with this limit of connections. An address has
/// the usual share of them, or a quarter of the connections that the configuration gives it.
pub(crate) fn keep_alive_limit(connections_max: usize, of_origin: Option<usize>) -> ConnectionLimit {
    let all = connections_max / STAYING_SHARE;
    let of_origin = of_origin.map_or_else(|| share(all), |configured| (configured / STAYING_SHARE).max(1));
    ConnectionLimit::new(all, of_origin)
}

/// The keep-alive state of one connection.
pub(super) struct Stay {
    /// The pace of the first request's origin.
    pace: tokio::sync::Mutex<Option<Pace>>,
    now: Mutex<Now>,
}

struct Now {
    /// When the current exchange must be over.
    until: Instant,
    /// The place of a connection that is kept alive.
    place: Option<Permit>,
}

impl Stay {
    pub(super) fn new() -> Self {
        let now = Now { until: Instant::now() + EXCHANGE_TIME, place: None };
        Stay { pace: tokio::sync::Mutex::default(), now: Mutex::new(now) }
    }

    /// Handles the arrival of a request.
    pub(super) fn asked(&self) {
        self.lock().until = Instant::now() + EXCHANGE_TIME;
    }

    /// Waits for the pace. Returns whether the connection is kept alive after this request.
    pub(super) async fn stays(&self, limit: &ConnectionLimit, origin: Origin) -> bool {
        self.pace.lock().await.get_or_insert_with(|| Pace::new(origin)).wait().await;
        let place = &mut self.lock().place;
        if place.is_none() {
            *place = limit.enter(Some(origin));
        }
        place.is_some()
    }

    /// Runs a connection until it ends, or until an exchange takes too long.
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
