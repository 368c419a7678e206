//! Stores events of kept matches, a group at a time, as fast as the store allows.

use super::{CUT_REFUSED, CUT_STORE_FULL, CUT_UNAVAILABLE, entry};
use crate::online::Services;
use crate::store::{AccountId, Appended, GROUP_ENTRIES_MAX, MatchEntry, NewMatch, StoreError};
use core::time::Duration;
use parlor_hub::room::KeptEntry;
use parlor_server::embed::{Kept, Mark, MatchKey, Said, unix_s};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

/// Entries that are taken at once.
const TURN_MAX: usize = 1_024;
/// Bytes of the entries of a group, but for the last of them.
const GROUP_BYTES: usize = 1 << 20;
/// How often a server says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
/// After so long without a word a server is taken to have ended, and its matches with it.
const SILENCE_MAX_MS: u64 = 120_000;
/// Old matches that are forgotten in one transaction.
const FORGET_AT_ONCE: usize = 100;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Runs until all shards have ended and all that they said is stored. `server` is what this one calls itself in the store.
pub(in crate::online) async fn keep(services: Services, mut kept: Kept, server: Arc<str>) {
    while let Some((said, marks)) = kept.take(TURN_MAX).await {
        let mut by_match: BTreeMap<MatchKey, (Vec<Said>, Mark)> = BTreeMap::new();
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

/// What of one match is stored in one turn.
struct Writer {
    services: Services,
    of: MatchKey,
    server: Arc<str>,
    /// Why the log takes nothing more, if it does not.
    end: Option<LogEnd>,
}

/// Why a log takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogEnd {
    /// The store says so: it is full, it was forgotten.
    Over,
    /// The store has as many bytes as it may have.
    StoreFull,
    /// The store refused something, which is a defect.
    Refused,
}

impl LogEnd {
    /// What the log says of it; the store says it by itself where it ends a log.
    fn cut(self) -> Option<&'static str> {
        match self {
            LogEnd::Over => None,
            LogEnd::StoreFull => Some(CUT_STORE_FULL),
            LogEnd::Refused => Some(CUT_REFUSED),
        }
    }
}

/// What the store is asked for.
enum Verb {
    Open(NewMatch),
    Append(Vec<MatchEntry>),
    Cut(&'static str),
    Close { ended_ms: u64 },
}

/// Entries that go into the store together, and the room that they take in the queue meanwhile.
#[derive(Default)]
struct Group {
    entries: Vec<MatchEntry>,
    places: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Writer {
    async fn write(mut self, said: Vec<Said>, mark: Mark) {
        let (mut group, mut ended_ms) = (Group::default(), mark.ended_ms);
        for Said { number, at_ms, entry: happened, place, .. } in said {
            if let KeptEntry::Opened { label, by, .. } = &happened {
                let (id, server) = (self.of.id.as_str().to_owned(), self.server.to_string());
                let owner = by.as_deref().and_then(|user| AccountId::new(user).ok());
                let new = NewMatch { id, server, label: label.clone(), opened_ms: at_ms, owner };
                self.ask(Verb::Open(new)).await;
            }
            if happened == KeptEntry::Ended {
                ended_ms = Some(at_ms);
            }
            group.push(entry::stored(number, at_ms, happened), place);
            if group.entries.len() >= GROUP_ENTRIES_MAX || group.bytes >= GROUP_BYTES {
                self.append(core::mem::take(&mut group)).await;
            }
        }
        self.append(group).await;
        if let Some(why) = self.end.and_then(LogEnd::cut) {
            self.ask(Verb::Cut(why)).await;
        } else if mark.is_cut {
            self.ask(Verb::Cut(CUT_UNAVAILABLE)).await;
        }
        if let Some(ended_ms) = ended_ms {
            self.ask(Verb::Close { ended_ms }).await;
        }
    }

    /// The group's room in the queue is free again once this is over.
    async fn append(&mut self, group: Group) {
        if !group.entries.is_empty() && self.end.is_none() {
            self.ask(Verb::Append(group.entries)).await;
        }
    }

    /// Asks the store, and again as long as it is unavailable.
    async fn ask(&mut self, verb: Verb) {
        loop {
            match self.try_once(&verb).await {
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
                    if let Verb::Open(NewMatch { owner: Some(owner), .. }) = &verb {
                        self.is_over_quota(owner);
                    }
                    return self.end = self.end.or(Some(LogEnd::Over));
                }
                // Somebody had the match forgotten while it went on.
                Err(StoreError::Missing { .. }) => return self.end = self.end.or(Some(LogEnd::Over)),
                Err(error) => {
                    let MatchKey { realm, id } = &self.of;
                    tracing::error!(%error, ?realm, %id, "a match cannot be kept; please report this");
                    return self.end = Some(LogEnd::Refused);
                }
            }
        }
    }

    /// Admission refuses the next one by name.
    fn is_over_quota(&self, owner: &AccountId) {
        let realm = &self.of.realm;
        tracing::info!(?realm, %owner, "an account has no room for more logs of matches");
        self.services.access().kept().is_full(realm.app(), realm.environment(), owner.as_str(), unix_s());
    }

    async fn try_once(&self, verb: &Verb) -> Result<Option<LogEnd>, StoreError> {
        let (store, MatchKey { realm, id }) = (self.services.store(), &self.of);
        match verb {
            Verb::Open(new) => store.open_match(realm, new.clone()).await?,
            Verb::Append(entries) => {
                return match store.append_to_match(realm, id.as_str(), entries.clone()).await? {
                    Appended::Kept(_) => Ok(None),
                    Appended::Over => Ok(Some(LogEnd::Over)),
                    Appended::OverQuota(owner) => {
                        self.is_over_quota(&owner);
                        Ok(Some(LogEnd::Over))
                    }
                };
            }
            Verb::Cut(why) => store.cut_match(realm, id.as_str(), why).await?,
            Verb::Close { ended_ms } => store.close_match(realm, id.as_str(), *ended_ms).await?,
        }
        Ok(None)
    }
}

impl Group {
    fn push(&mut self, entry: MatchEntry, place: OwnedSemaphorePermit) {
        self.bytes += entry.body.len();
        self.entries.push(entry);
        self.places.push(place);
    }
}

/// Says that this server is there, ends what servers that are not left open, and forgets what is old. Runs as long as the services do.
pub(in crate::online) async fn look_after(services: Services, server: Arc<str>, keep_days: u64) {
    let mut said_ms = services.time().now_ms();
    loop {
        tokio::time::sleep(ALIVE_EVERY).await;
        let now_ms = services.time().now_ms();
        // Who could not say so for long itself does not know who else could not.
        let could = now_ms.saturating_sub(said_ms) < SILENCE_MAX_MS;
        let seen_since_ms = if could { now_ms.saturating_sub(SILENCE_MAX_MS) } else { 0 };
        let looked = async {
            services.store().keep_matches_alive(&server, now_ms, seen_since_ms).await?;
            said_ms = now_ms;
            forget(&services, now_ms.saturating_sub(keep_days.saturating_mul(DAY_MS))).await
        };
        if let Err(error) = looked.await {
            tracing::debug!(%error, "kept matches could not be looked after");
        }
    }
}

/// Says that this server is there, before it has any match, and ends what is open of all others: it has its store to itself.
pub(in crate::online) async fn begin(services: &Services, server: &str) -> Result<(), StoreError> {
    let now_ms = services.time().now_ms();
    let ended = services.store().keep_matches_alive(server, now_ms, u64::MAX).await?;
    if ended > 0 {
        tracing::info!(ended, "matches were open when their server ended");
    }
    Ok(())
}

/// Forgets matches that ended before a time, and deletes what is left of those that were forgotten, a little at a time.
async fn forget(services: &Services, ended_before_ms: u64) -> Result<(), StoreError> {
    while services.store().forget_old_matches(ended_before_ms, FORGET_AT_ONCE).await? == FORGET_AT_ONCE {}
    while services.store().sweep_matches().await? {}
    Ok(())
}
