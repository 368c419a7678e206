//! What operators have defined in each realm, remembered until somebody changes it.

use super::Services;
use super::failure::Failure;
use crate::store::StoreError;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Maximum number of remembered realms. Beyond it all are read again.
const REALMS_MAX: usize = 4096;

/// Held while definitions are read or changed.
pub(super) type Changing<'a> = tokio::sync::MutexGuard<'a, ()>;

/// The definitions of all realms.
pub(super) struct RealmCache<T> {
    realms: Mutex<HashMap<Realm, Arc<T>>>,
    /// Held while definitions are read or changed, so that what is remembered is what is stored.
    changing: tokio::sync::Mutex<()>,
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
        if let Some(known) = self.known(realm) {
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
        if let Some(known) = self.known(realm) {
            return Ok(known);
        }
        // A definition whose answer was lost may be under way.
        services.store().behind_writes().await?;
        Ok(self.remember(realm, read.await?))
    }

    /// Locks all definitions for a change.
    pub(super) async fn change(&self) -> Changing<'_> {
        self.changing.lock().await
    }

    fn known(&self, realm: &Realm) -> Option<Arc<T>> {
        lock(&self.realms).get(realm).cloned()
    }

    /// Remembers what is stored.
    pub(super) fn remember(&self, realm: &Realm, stored: T) -> Arc<T> {
        let stored = Arc::new(stored);
        let mut realms = lock(&self.realms);
        if realms.len() >= REALMS_MAX {
            realms.clear();
        }
        realms.insert(realm.clone(), Arc::clone(&stored));
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
