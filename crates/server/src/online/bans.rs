//! Who is banned, as far as it was looked up: an access token outlives the ban of its account by a few minutes, so each
//! operation of a player asks, and the store must not be asked each time.

use super::Services;
use super::failure::Failure;
use crate::store::{AccountId, Realm};
use crate::system::unix_ms;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Accounts that are remembered; when there are more, all are forgotten and looked up again.
const REMEMBERED_MAX: usize = 50_000;
/// For how long nothing is looked up again: another server on the same store may ban somebody.
const GOOD_FOR_MS: u64 = 60_000;

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Bans {
    /// Accounts that were not banned, and when they were looked up.
    free: Mutex<HashMap<(Realm, AccountId), u64>>,
}

impl Bans {
    /// An account was banned, or let in again.
    pub(super) fn changed(&self, realm: &Realm, account: &AccountId) {
        self.lock().remove(&(realm.clone(), account.clone()));
    }

    /// Refuses an account that is banned.
    pub(super) async fn check(
        &self,
        services: &Services,
        realm: &Realm,
        account: &AccountId,
    ) -> Result<(), Failure> {
        let key = (realm.clone(), account.clone());
        let now_ms = unix_ms();
        if self.lock().get(&key).is_some_and(|looked_up| now_ms.saturating_sub(*looked_up) < GOOD_FOR_MS) {
            return Ok(());
        }
        services.must_not_be_banned(realm, account).await?;
        let mut free = self.lock();
        if free.len() >= REMEMBERED_MAX {
            free.clear();
        }
        free.insert(key, now_ms);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Realm, AccountId), u64>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
