//! Cache of banned accounts. Tokens outlive a ban, and a change of role, by minutes, so each operation checks
//! here. The cache saves a query of the store each time.

use super::Services;
use super::failure::{Failure, Kind};
use super::live;
use super::tokens::{Identity, Signer};
use crate::store::{AccountId, Ban, Role, SignInId, StoreError};
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::time::Instant;

/// Maximum number of cached callers. Beyond it the cache is emptied.
const REMEMBERED_MAX: usize = 50_000;
/// Life of a cached answer. Bans and role changes of this server apply at once.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The error code for a banned caller.
pub(super) const BANNED: &str = "banned";

/// The cached answers.
#[derive(Debug, Default)]
pub(super) struct Bans {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Callers that were not banned.
    free: HashMap<(Realm, AccountId), Free>,
    /// Counts changes. A lookup that began before a change is not cached.
    changes: u64,
}

/// A caller that was not banned.
#[derive(Clone, Copy, Debug)]
struct Free {
    looked_up: Instant,
    /// The role of the account; `None` if there is no such account.
    role: Option<Role>,
}

impl Known {
    fn enter(&mut self, key: (Realm, AccountId), free: Free, changes: u64) {
        if self.changes != changes {
            return;
        }
        if self.free.len() >= REMEMBERED_MAX {
            self.free.clear();
        }
        self.free.insert(key, free);
    }
}

impl Bans {
    /// Records that a ban was set or lifted, or that a role changed.
    pub(super) fn changed(&self, realm: &Realm, account: &AccountId) {
        let mut known = lock(&self.known);
        known.changes += 1;
        known.free.remove(&(realm.clone(), account.clone()));
    }

    /// Rejects banned callers, and tokens of accounts that have another role.
    pub(super) async fn check(
        &self,
        services: &Services,
        realm: &Realm,
        account: &AccountId,
        identity: &Identity,
    ) -> Result<(), Failure> {
        let key = (realm.clone(), account.clone());
        let (known, changes) = {
            let known = lock(&self.known);
            (known.free.get(&key).copied(), known.changes)
        };
        if let Some(free) = known.filter(|free| free.looked_up.elapsed() < GOOD_FOR) {
            return free.must_have(identity);
        }
        let free = match services.store().standing_of(realm, account, services.time().now_ms()).await {
            Ok((Some(ban), _)) => return Err(banned(&ban)),
            Ok((None, role)) => {
                let free = Free { looked_up: Instant::now(), role };
                lock(&self.known).enter(key, free, changes);
                free
            }
            // The cached answer holds while the store is unavailable: no ban can be set then, and operators
            // are needed most.
            Err(error @ StoreError::Unavailable { .. }) => known.ok_or(error)?,
            Err(error) => return Err(error.into()),
        };
        free.must_have(identity)
    }
}

impl Free {
    /// Rejects the token of an account that has another role or does not exist. An operator's role is in its
    /// token alone.
    fn must_have(self, identity: &Identity) -> Result<(), Failure> {
        if identity.signer == Signer::Operator || self.role == Some(identity.role) {
            return Ok(());
        }
        let sentence =
            "what this account may do has changed: get another access token with the refresh token";
        Err(Failure::new(Kind::SignedOut, "token_expired", sentence))
    }
}

/// Ends the connections of a banned account. Its tickets up to this second are barred: access tokens are valid for some
/// minutes more.
pub(super) fn put_out(services: &Services, realm: &Realm, account: &AccountId, at_s: u64) {
    services.bans().changed(realm, account);
    services.feeds().close(realm, account);
    services.leaves_all_lobbies(realm, account);
    services.leaves_all_searches(realm, account);
    if let Some(tickets) = services.access().tickets() {
        tickets.bar(realm.clone(), account.to_string(), at_s);
    }
}

/// Takes the seats of an account that was [put out](put_out): no ticket is accepted from there on, so the account
/// cannot return to a room that was already searched. Returns how many it had.
pub(super) async fn remove_from_rooms(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    reason: &str,
) -> Result<usize, Failure> {
    live::remove_account(services, realm, account, reason).await
}

/// Ends the feeds of a sign-in that has ended, or of all of an account, at all nodes.
pub(super) fn sign_out(services: &Services, realm: &Realm, account: &AccountId, sign_in: Option<&SignInId>) {
    services.has_ordered();
    services.feeds().sign_out(realm, account, sign_in);
}

/// Lets in an account whose ban was lifted.
pub(super) fn let_in(services: &Services, realm: &Realm, account: &AccountId) {
    services.bans().changed(realm, account);
    if let Some(tickets) = services.access().tickets() {
        tickets.unbar(realm.clone(), account.to_string());
    }
}

/// The sentence for a banned caller.
pub(super) fn banned(ban: &Ban) -> Failure {
    let until = ban.until_ms.map(|until_ms| format!(" until {until_ms} (milliseconds since 1970)"));
    let sentence = format!("this account is banned{}: {}", until.unwrap_or_default(), ban.reason);
    Failure::new(Kind::Forbidden, BANNED, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn threat_49_what_was_looked_up_before_a_ban_is_not_remembered_after_it() {
        let (bans, realm) = (Bans::default(), Realm::new("tanks", "production").unwrap());
        let account = AccountId::new("p1").unwrap();
        let free = Free { looked_up: Instant::now(), role: Some(Role::Player) };
        let enter = |changes| lock(&bans.known).enter((realm.clone(), account.clone()), free, changes);
        let remembers = || !lock(&bans.known).free.is_empty();
        enter(0);
        assert!(remembers());
        // A ban arrives during the next lookup.
        bans.changed(&realm, &account);
        assert!(!remembers());
        enter(0);
        assert!(!remembers());
        enter(1);
        assert!(remembers());
    }
}
