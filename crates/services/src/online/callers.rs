//! Checks of a caller before its operation: realm, account, ban, and guesses.

use super::budgets::AccountBudgets;
use super::failure::{Failure, Kind};
use super::table::Caller;
use super::{Services, bans};
use crate::store::{AccountId, Role};
use core::time::Duration;
use parlor_server::embed::OpenGuess;
use parlor_server::realm::{Realm, environment_of};

impl Caller {
    /// Whether it is no operator.
    pub(super) fn is_player(&self) -> bool {
        self.identity.as_ref().is_none_or(|identity| identity.role == Role::Player)
    }
}

/// An account's id in an input.
pub(super) fn account_id(text: &str, path: &str) -> Result<AccountId, Failure> {
    AccountId::new(text).map_err(|error| Failure::field(path, error.to_string()))
}

impl Services {
    /// The account that a request is about: the player's own, or the one that an operator names.
    pub(super) fn subject(
        &self,
        caller: &Caller,
        named: Option<&str>,
        path: &str,
    ) -> Result<(Realm, AccountId), Failure> {
        let (realm, own) = self.account_of(caller)?;
        match named {
            None if caller.is_player() => Ok((realm, own)),
            None => Err(Failure::missing(path, "name the player's account")),
            Some(named) => Ok((realm, account_id(named, path)?)),
        }
    }

    /// The same for what players do for themselves only.
    pub(super) fn own_or_named(
        &self,
        caller: &Caller,
        named: Option<&str>,
    ) -> Result<(Realm, AccountId), Failure> {
        let (realm, account) = self.subject(caller, named, "account")?;
        if caller.is_player() && account != self.account_of(caller)?.1 {
            return Err(Failure::field("account", "players do this for themselves: leave it out"));
        }
        Ok((realm, account))
    }

    /// Charges the caller's account, unless another node has done so.
    pub(super) fn charged(&self, caller: &Caller, budget: &AccountBudgets) -> Result<(), Failure> {
        if caller.via.is_some() {
            return Ok(());
        }
        let (realm, account) = self.account_of(caller)?;
        budget.charge(&realm, &account)
    }

    /// The realm named by a caller without a token.
    pub(super) fn realm(&self, app: &str, environment: &str) -> Result<Realm, Failure> {
        if self.0.apps.as_ref().is_some_and(|apps| !apps.iter().any(|served| served == app)) {
            let sentence = format!(
                "this server does not serve the game {app:?}: check its name and the server's address"
            );
            return Err(Failure::new(Kind::NotFound, "unknown_app", sentence).at("app"));
        }
        Ok(Realm::new(app, environment)?)
    }

    /// The caller's realm.
    pub(super) fn realm_of(&self, caller: &Caller) -> Result<Realm, Failure> {
        let identity = caller.identity.as_ref().ok_or_else(|| Failure::defect("nobody asks"))?;
        self.realm(&identity.aud, environment_of(&identity.env))
    }

    /// The account of the calling player.
    pub(super) fn account_of(&self, caller: &Caller) -> Result<(Realm, AccountId), Failure> {
        let realm = self.realm_of(caller)?;
        let identity = caller.identity.as_ref().ok_or_else(|| Failure::defect("nobody asks"))?;
        Ok((realm, AccountId::new(&identity.sub)?))
    }

    pub(super) async fn must_not_be_banned(&self, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
        match self.store().ban_of(realm, account, self.time().now_ms()).await? {
            Some(ban) => Err(bans::banned(&ban)),
            None => Ok(()),
        }
    }

    /// Rejects banned callers, and tokens with another role than their account's. An operator whose name
    /// cannot be an account's id is rejected too, because it could not be banned. Returns the account of a
    /// caller with a token.
    pub(super) async fn must_be_in_good_standing(
        &self,
        caller: &Caller,
    ) -> Result<Option<(Realm, AccountId)>, Failure> {
        let Some(identity) = &caller.identity else { return Ok(None) };
        let (realm, account) = self.account_of(caller)?;
        self.bans().check(self, &realm, &account, identity).await?;
        Ok(Some((realm, account)))
    }

    /// Charges a guess at a secret such as a password, before the lookup. It counts for the address, whether
    /// or not the caller has signed in.
    pub(super) fn guess_of_stranger(&self, caller: &Caller) -> Result<OpenGuess, Failure> {
        self.access().guess(caller.origin).map_err(too_many_guesses)
    }

    /// Charges a guess of an account, before the lookup.
    pub(super) fn guess_of_account(&self, caller: &Caller) -> Result<OpenGuess, Failure> {
        let (realm, account) = self.account_of(caller)?;
        self.access().guess_of(caller.origin, &realm, account.as_str()).map_err(too_many_guesses)
    }
}

fn too_many_guesses(wait: Duration) -> Failure {
    let sentence = "too many wrong guesses came from your account or your network: ask again later";
    Failure::new(Kind::TooOften, "too_often", sentence).after(wait)
}
