//! Whom a dialer's sockets let in: the peers of the attempts that are under way. Whoever else knocks gets no answer.

use super::CANDIDATES_MAX;
use quinn::{ConnectionId, Endpoint, Incoming};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Those who may come, by the id that they begin with.
#[derive(Clone, Debug, Default)]
pub(super) struct Guests(Arc<Mutex<HashMap<ConnectionId, mpsc::Sender<Incoming>>>>);

impl Guests {
    /// Lets whoever begins with one of these ids in, once each, as long as what this gives lives.
    pub(super) fn expect(&self, names: Vec<ConnectionId>) -> Expected {
        let (sender, incoming) = mpsc::channel(CANDIDATES_MAX);
        let mut guests = self.lock();
        for name in &names {
            guests.insert(*name, sender.clone());
        }
        drop(guests);
        Expected { guests: self.clone(), names, incoming }
    }

    /// Lets guests of a socket in until it is closed.
    pub(super) async fn receive(self, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            // Each id is good once: a copy of its packet that comes later is a stranger's.
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

/// The guests of one attempt.
#[derive(Debug)]
pub(super) struct Expected {
    guests: Guests,
    names: Vec<ConnectionId>,
    incoming: mpsc::Receiver<Incoming>,
}

impl Expected {
    /// The next that comes; `None` once all have come. May be cancelled.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut guests = self.guests.lock();
        for name in &self.names {
            guests.remove(name);
        }
    }
}
