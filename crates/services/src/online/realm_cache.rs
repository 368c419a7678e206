//! What operators have defined in each realm, remembered until somebody changes it. In a cluster another node may change
//! it: the store counts these changes, and what is remembered is compared with that count before it is used.

use super::Services;
use super::failure::Failure;
use crate::store::StoreError;
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Maximum number of remembered realms. Beyond it all are read again.
const REALMS_MAX: usize = 4096;
/// In a cluster: how long what is remembered is used without a look at the count of changes.
const AGE_MAX: Duration = Duration::from_secs(1);

/// Held while definitions are read or changed.
pub(super) type Changing<'a> = tokio::sync::MutexGuard<'a, ()>;

/// The definitions of all realms.
pub(super) struct RealmCache<T> {
    realms: Mutex<HashMap<Realm, Remembered<T>>>,
    /// Held while definitions are read or changed, so that what is remembered is what is stored.
    changing: tokio::sync::Mutex<()>,
}

/// The definitions of a realm.
struct Remembered<T> {
    stored: Arc<T>,
    /// How many changes other nodes and this one had made before it was read; 0 for a server alone.
    changes: u64,
    looked_at: Instant,
}

impl<T> RealmCache<T> {
    pub(super) fn new() -> Self {
        RealmCache { realms: Mutex::default(), changing: tokio::sync::Mutex::new(()) }
    }

    /// What a realm has. `read` reads it from the store.
    pub(super) async fn get(
        &self,
        services: &Services,
        realm: &Realm,
        read: impl Future<Output = Result<T, Failure>>,
    ) -> Result<Arc<T>, Failure> {
        if let Some(known) = self.known(services, realm).await? {
            return Ok(known);
        }
        let changing = self.change().await;
        self.get_changing(services, realm, read, &changing).await
    }

    /// The same for a caller that holds the lock on changes.
    pub(super) async fn get_changing(
        &self,
        services: &Services,
        realm: &Realm,
        read: impl Future<Output = Result<T, Failure>>,
        _changing: &Changing<'_>,
    ) -> Result<Arc<T>, Failure> {
        if let Some(known) = self.known(services, realm).await? {
            return Ok(known);
        }
        // A definition whose answer was lost may be under way.
        services.store().behind_writes().await?;
        // What changes after this is read again.
        let changes = changes(services, realm).await?;
        Ok(self.put(realm, read.await?, changes))
    }

    /// Locks all definitions for a change.
    pub(super) async fn change(&self) -> Changing<'_> {
        self.changing.lock().await
    }

    /// What is remembered of a realm, if it is what is stored.
    async fn known(&self, services: &Services, realm: &Realm) -> Result<Option<Arc<T>>, Failure> {
        let is_shared = services.store().is_shared();
        let (known, before) = match lock(&self.realms).get(realm) {
            None => return Ok(None),
            Some(known) if !is_shared || known.looked_at.elapsed() <= AGE_MAX => {
                return Ok(Some(Arc::clone(&known.stored)));
            }
            Some(known) => (Arc::clone(&known.stored), known.changes),
        };
        let began = Instant::now();
        if changes(services, realm).await? != before {
            return Ok(None);
        }
        let mut realms = lock(&self.realms);
        if let Some(same) = realms.get_mut(realm).filter(|same| same.changes == before) {
            same.looked_at = began;
        }
        Ok(Some(known))
    }

    /// Remembers what is stored from here on. Of other nodes' changes it has those that were known before.
    pub(super) fn remember(&self, realm: &Realm, stored: T) -> Arc<T> {
        let changes = lock(&self.realms).get(realm).map_or(0, |before| before.changes);
        self.put(realm, stored, changes)
    }

    fn put(&self, realm: &Realm, stored: T, changes: u64) -> Arc<T> {
        let stored = Arc::new(stored);
        let mut realms = lock(&self.realms);
        if realms.len() >= REALMS_MAX {
            realms.clear();
        }
        let looked_at = Instant::now();
        realms.insert(realm.clone(), Remembered { stored: Arc::clone(&stored), changes, looked_at });
        stored
    }

    /// Forgets a realm after this error of a definition, so that it is read again: the definition may have been stored,
    /// or what is remembered is not what is stored. Errors that strangers can cause change nothing.
    pub(super) fn doubt(&self, realm: &Realm, error: &StoreError) {
        let is_certain =
            matches!(error, StoreError::Full { .. } | StoreError::Quota { .. } | StoreError::Invalid { .. });
        if !is_certain {
            lock(&self.realms).remove(realm);
        }
    }
}

/// How many changes of a realm's definitions the nodes of a cluster have made.
async fn changes(services: &Services, realm: &Realm) -> Result<u64, Failure> {
    if services.store().is_shared() { Ok(services.store().definition_changes(realm).await?) } else { Ok(0) }
}
