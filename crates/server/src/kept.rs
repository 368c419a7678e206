//! Which accounts may have matches kept, and how many at once.
//!
//! The hubs ask when a match opens and report its end. The store checks each log entry's size
//! (`services/src/store/matches.rs`). A creator without room for more logs is rejected here for a while, so
//! that the next match is rejected by name before it opens.

use crate::mutex::lock;
use crate::realm::environment_of;
use parlor_hub::admission_policy::Admitted;
use parlor_proto::wire::handshake::{Hello, Refusal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Default of [`Config::kept_matches`](crate::Config::kept_matches).
pub const KEPT_MATCHES: usize = 8;
/// Maximum number of remembered accounts without room for logs. Beyond it all are forgotten, and the store
/// decides again.
const FULL_MAX: usize = 10_000;
/// Seconds until the store is asked again about an account without room.
const FULL_S: u64 = 30;

/// App, environment and user.
type Who = (String, String, String);

/// Counts kept matches. Cheap to clone; all shards share one.
#[derive(Clone, Debug)]
pub struct KeptQuota {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    at_once: usize,
    /// Live kept matches by account, so there are at most as many entries as live kept matches.
    live: Mutex<HashMap<Who, usize>>,
    /// Accounts without room for logs, and until when this is assumed, in seconds since 1970.
    full: Mutex<HashMap<Who, u64>>,
    /// Until when the whole store is assumed full, in seconds since 1970.
    store_full_s: AtomicU64,
    refused: AtomicU64,
}

impl KeptQuota {
    pub(crate) fn new(at_once: usize) -> Self {
        let (live, full) = (Mutex::default(), Mutex::default());
        let (store_full_s, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        KeptQuota { inner: Arc::new(Inner { at_once, live, full, store_full_s, refused }) }
    }

    /// Counts a match that opens.
    pub(crate) fn open(&self, hello: &Hello, admitted: &Admitted, now_s: u64) -> Result<(), Refusal> {
        self.count(hello, admitted, now_s).inspect_err(|_| {
            self.inner.refused.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn count(&self, hello: &Hello, admitted: &Admitted, now_s: u64) -> Result<(), Refusal> {
        let user = admitted.user.as_deref().ok_or(Refusal::KeepNeedsUser)?;
        let who = who(&hello.app, &hello.environment, user);
        if now_s < self.inner.store_full_s.load(Ordering::Relaxed) {
            let detail = "the server's store is full; open the match without keep, or try again later";
            return Err(Refusal::KeepQuota { detail: detail.into() });
        }
        if lock(&self.inner.full).get(&who).is_some_and(|until_s| now_s < *until_s) {
            let detail = "the logs of your matches take all the room that an account has; wait until old ones are deleted";
            return Err(Refusal::KeepQuota { detail: detail.into() });
        }
        let mut live = lock(&self.inner.live);
        let count = live.get(&who).copied().unwrap_or(0);
        if count >= self.inner.at_once {
            let detail =
                format!("{count} matches of yours are kept already; end one, or open this one without keep");
            return Err(Refusal::KeepQuota { detail });
        }
        live.insert(who, count + 1);
        Ok(())
    }

    /// Counts a match that ended.
    pub(crate) fn ended(&self, app: &str, environment: &str, user: &str) {
        let who = who(app, environment, user);
        let mut live = lock(&self.inner.live);
        let left = live.get(&who).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            live.remove(&who);
        } else {
            live.insert(who, left);
        }
    }

    /// Records that the store has no room for logs of this account.
    pub fn is_full(&self, app: &str, environment: &str, user: &str, now_s: u64) {
        let mut full = lock(&self.inner.full);
        full.retain(|_, until_s| now_s < *until_s);
        if full.len() >= FULL_MAX {
            full.clear();
        }
        full.insert(who(app, environment, user), now_s.saturating_add(FULL_S));
    }

    /// Records that the store is full for all.
    pub fn store_is_full(&self, now_s: u64) {
        self.inner.store_full_s.store(now_s.saturating_add(FULL_S), Ordering::Relaxed);
    }

    /// Matches that were rejected because their logs could not be kept.
    pub fn refused(&self) -> u64 {
        self.inner.refused.load(Ordering::Relaxed)
    }
}

fn who(app: &str, environment: &str, user: &str) -> Who {
    (app.to_owned(), environment_of(environment).to_owned(), user.to_owned())
}
