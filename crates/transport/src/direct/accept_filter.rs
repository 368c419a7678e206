//! Filters the connections that a dialer's sockets accept: only expected peers, by connection id. All others
//! get no answer.

use quinn::{ConnectionId, Endpoint, Incoming};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Concurrent attempts of one [`Direct`](super::Direct).
pub const ATTEMPTS_MAX: usize = 64;
/// Candidates tried for one player; the rest are ignored.
pub const CANDIDATES_MAX: usize = 8;

/// Expected connections, by the id in their first packet.
#[derive(Clone, Debug, Default)]
pub(super) struct AcceptFilter(Arc<Mutex<HashMap<ConnectionId, mpsc::Sender<Incoming>>>>);

impl AcceptFilter {
    /// Expects one connection for each of these ids until the returned value is dropped.
    pub(super) fn expect(&self, names: Vec<ConnectionId>) -> Expected {
        let (sender, incoming) = mpsc::channel(CANDIDATES_MAX);
        let mut expected = self.lock();
        for name in &names {
            expected.insert(*name, sender.clone());
        }
        drop(expected);
        Expected { filter: self.clone(), names, incoming }
    }

    /// Accepts expected connections of a socket until it is closed.
    pub(super) async fn receive(self, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            // Each id is valid once: a replayed first packet is ignored.
            let attempt = self.lock().remove(&incoming.orig_dst_cid());
            match attempt {
                // There is room for one of each id, so it fails only when the attempt is over.
                Some(attempt) => {
                    if let Err(refused) = attempt.try_send(incoming) {
                        refused.into_inner().ignore();
                    }
                }
                None => incoming.ignore(),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, mpsc::Sender<Incoming>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections that one attempt expects.
#[derive(Debug)]
pub(super) struct Expected {
    filter: AcceptFilter,
    names: Vec<ConnectionId>,
    incoming: mpsc::Receiver<Incoming>,
}

impl Expected {
    /// Returns the next connection; `None` once all have come. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut expected = self.filter.lock();
        for name in &self.names {
            expected.remove(name);
        }
    }
}
