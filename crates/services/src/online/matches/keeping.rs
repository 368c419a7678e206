//! Stores the logs of kept matches, a group of entries at a time, as fast as the store accepts them.

use super::{CUT_REFUSED, CUT_STORE_FULL, CUT_UNAVAILABLE, entry};
use crate::cluster::Duty;
use crate::online::Services;
use crate::online::lives::rest_since;
use crate::store::{AccountId, Appended, GROUP_ENTRIES_MAX, MatchEntry, NewMatch, StoreError};
use core::time::Duration;
use parlor_hub::room::KeptEntry;
use parlor_server::embed::{Mark, MatchKey, MatchLogReceiver, QueuedEntry, unix_s};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Maximum number of entries taken from the queue at once.
const TURN_MAX: usize = 1_024;
/// Maximum bytes of a group, except for its last entry.
const GROUP_BYTES: usize = 1 << 20;
/// How often a server records that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
/// A server without such a record for this long has ended, and its matches with it.
const SILENCE_MAX_MS: u64 = 120_000;
/// Maximum number of matches that one transaction deletes.
const FORGET_AT_ONCE: usize = 20;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Runs until all shards have ended and their entries are stored. `server` is this server's name in the
/// store.
pub(in crate::online) async fn keep(services: Services, mut kept: MatchLogReceiver, server: Arc<str>) {
    while let Some((said, marks)) = kept.take(TURN_MAX).await {
        let mut by_match: BTreeMap<MatchKey, (Vec<QueuedEntry>, Mark)> = BTreeMap::new();
        for said in said {
            by_match.entry(said.of.clone()).or_default().0.push(said);
        }
        for (of, mark) in marks {
            by_match.entry(of).or_default().1 = mark;
        }
        let mut storing = JoinSet::new();
        for (of, (said, mark)) in by_match {
            let (services, server) = (services.clone(), Arc::clone(&server));
            storing.spawn(Writer { services, of, server, end: None }.write(said, mark));
        }
        while let Some(stored) = storing.join_next().await {
            if let Err(error) = stored
                && error.is_panic()
            {
                tracing::error!(%error, "keeping a match failed; please report this");
            }
        }
    }
}

/// Stores the entries of one match from one batch.
struct Writer {
    services: Services,
    of: MatchKey,
    server: Arc<str>,
    /// Why the log has ended; `None` if it has not.
    end: Option<LogEnd>,
}

/// Why a log has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogEnd {
    /// The store ended it: it reached a limit or was deleted.
    Over,
    /// The store is full.
    StoreFull,
    /// The store rejected an entry, which is a defect.
    Refused,
}

impl LogEnd {
    /// The reason for the log's last entry. `None` if the store ended the log and records the reason itself.
    fn cut(self) -> Option<&'static str> {
        match self {
            LogEnd::Over => None,
            LogEnd::StoreFull => Some(CUT_STORE_FULL),
            LogEnd::Refused => Some(CUT_REFUSED),
        }
    }
}

/// A request to the store.
enum StoreRequest {
    Open(NewMatch),
    Append(Vec<MatchEntry>),
    Cut(&'static str),
    Close { ended_ms: u64 },
}

/// Entries that are stored together, and their reserved bytes in the queue.
#[derive(Default)]
struct Group {
    entries: Vec<MatchEntry>,
    reserved: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Writer {
    async fn write(mut self, said: Vec<QueuedEntry>, mark: Mark) {
        let (mut group, mut ended_ms) = (Group::default(), mark.ended_ms);
        for QueuedEntry { number, at_ms, entry: happened, reserved, .. } in said {
            if let KeptEntry::Opened { label, by, .. } = &happened {
                let (id, server) = (self.of.id.as_str().to_owned(), self.server.to_string());
                let owner = by.as_deref().and_then(|user| AccountId::new(user).ok());
                let new = NewMatch { id, server, label: label.clone(), opened_ms: at_ms, owner };
                self.ask(StoreRequest::Open(new)).await;
            }
            if happened == KeptEntry::Ended {
                ended_ms = Some(at_ms);
            }
            group.push(entry::stored(number, at_ms, happened), reserved);
            if group.entries.len() >= GROUP_ENTRIES_MAX || group.bytes >= GROUP_BYTES {
                self.append(core::mem::take(&mut group)).await;
            }
        }
        self.append(group).await;
        if let Some(why) = self.end.and_then(LogEnd::cut) {
            self.ask(StoreRequest::Cut(why)).await;
        } else if mark.is_cut {
            self.ask(StoreRequest::Cut(CUT_UNAVAILABLE)).await;
        }
        if let Some(ended_ms) = ended_ms {
            self.ask(StoreRequest::Close { ended_ms }).await;
        }
    }

    /// Stores a group. Afterwards its reserved bytes in the queue are free.
    async fn append(&mut self, group: Group) {
        if !group.entries.is_empty() && self.end.is_none() {
            self.ask(StoreRequest::Append(group.entries)).await;
        }
    }

    /// Sends a request to the store, and repeats it while the store is unavailable.
    async fn ask(&mut self, request: StoreRequest) {
        loop {
            match self.try_once(&request).await {
                Ok(end) => return self.end = self.end.or(end),
                Err(StoreError::Unavailable { retry_after_ms, reason }) => {
                    tracing::debug!(%reason, "a match waits for the store");
                    tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
                }
                Err(StoreError::Full { .. }) => {
                    self.services.access().kept().store_is_full(unix_s());
                    return self.end = self.end.or(Some(LogEnd::StoreFull));
                }
                Err(StoreError::Quota { .. }) => {
                    if let StoreRequest::Open(NewMatch { owner: Some(owner), .. }) = &request {
                        self.is_over_quota(owner);
                    }
                    return self.end = self.end.or(Some(LogEnd::Over));
                }
                // An operator deleted the match while it was running.
                Err(StoreError::Missing { .. }) => return self.end = self.end.or(Some(LogEnd::Over)),
                Err(error) => {
                    let MatchKey { realm, id } = &self.of;
                    tracing::error!(%error, ?realm, %id, "a match cannot be kept; please report this");
                    return self.end = Some(LogEnd::Refused);
                }
            }
        }
    }

    /// Records that an account has too many bytes of logs: admission rejects its next kept match by name.
    fn is_over_quota(&self, owner: &AccountId) {
        let realm = &self.of.realm;
        tracing::info!(?realm, %owner, "an account has no room for more logs of matches");
        self.services.access().kept().is_full(realm.app(), realm.environment(), owner.as_str(), unix_s());
    }

    async fn try_once(&self, request: &StoreRequest) -> Result<Option<LogEnd>, StoreError> {
        let (store, MatchKey { realm, id }) = (self.services.store(), &self.of);
        match request {
            StoreRequest::Open(new) => store.open_match(realm, new.clone()).await?,
            StoreRequest::Append(entries) => {
                return match store.append_to_match(realm, id.as_str(), entries.clone()).await? {
                    Appended::Kept(_) => Ok(None),
                    Appended::Over => Ok(Some(LogEnd::Over)),
                    Appended::OverQuota(owner) => {
                        self.is_over_quota(&owner);
                        Ok(Some(LogEnd::Over))
                    }
                };
            }
            StoreRequest::Cut(why) => store.cut_match(realm, id.as_str(), why).await?,
            StoreRequest::Close { ended_ms } => store.close_match(realm, id.as_str(), *ended_ms).await?,
        }
        Ok(None)
    }
}

impl Group {
    fn push(&mut self, entry: MatchEntry, reserved: OwnedSemaphorePermit) {
        self.bytes += entry.body.len();
        self.entries.push(entry);
        self.reserved.push(reserved);
    }
}

/// Records that this server is alive, ends the matches of servers that are not, and deletes old matches. Runs
/// as long as the services.
pub(in crate::online) async fn look_after(services: Services, server: Arc<str>, keep_days: u64) {
    let mut said_ms = services.time().now_ms();
    loop {
        tokio::time::sleep(ALIVE_EVERY).await;
        let now_ms = services.time().now_ms();
        // A server that could not reach the store for long does not know which others are alive.
        let could = now_ms.saturating_sub(said_ms) < SILENCE_MAX_MS;
        let seen_since_ms = if could { now_ms.saturating_sub(SILENCE_MAX_MS) } else { 0 };
        let looked = async {
            services.store().keep_matches_alive(&server, now_ms, seen_since_ms).await?;
            said_ms = now_ms;
            if !services.has_duty(Duty::Matches).await {
                return Ok(());
            }
            forget(&services, now_ms.saturating_sub(keep_days.saturating_mul(DAY_MS))).await
        };
        if let Err(error) = looked.await {
            tracing::debug!(%error, "kept matches could not be looked after");
        }
    }
}

/// Records that this server is alive, before it has any match, and ends the open matches of servers that are not: of
/// all, unless other nodes use this store.
pub(in crate::online) async fn begin(services: &Services, server: &str) -> Result<(), StoreError> {
    let now_ms = services.time().now_ms();
    let in_cluster = services.cluster().is_some();
    let seen_since_ms = if in_cluster { now_ms.saturating_sub(SILENCE_MAX_MS) } else { u64::MAX };
    let ended = services.store().keep_matches_alive(server, now_ms, seen_since_ms).await?;
    if ended > 0 {
        tracing::info!(ended, "matches were open when their server ended");
    }
    Ok(())
}

/// Deletes matches that ended before a time, and the entries of deleted ones, in small parts. Returns after
/// [`ALIVE_EVERY`] even if more remain.
async fn forget(services: &Services, ended_before_ms: u64) -> Result<(), StoreError> {
    let (store, until) = (services.store(), Instant::now() + ALIVE_EVERY);
    let (mut forgets, mut sweeps) = (true, true);
    while (forgets || sweeps) && Instant::now() < until {
        let began = Instant::now();
        if forgets {
            forgets = store.forget_old_matches(ended_before_ms, FORGET_AT_ONCE).await? == FORGET_AT_ONCE;
        } else {
            sweeps = store.sweep_matches().await?;
        }
        rest_since(began).await;
    }
    Ok(())
}
