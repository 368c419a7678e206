//! Budgets of accounts for one kind of operation: a number at once, and one more after each interval.

use super::failure::{Failure, Kind};
use crate::store::AccountId;
use parlor_hub::budget::{Budgets, Rate};
use parlor_server::embed::{Clock, lock};
use parlor_server::realm::Realm;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

/// The debts of accounts for one kind of operation, in a table of fixed size.
pub(super) struct AccountBudgets {
    rate: Rate,
    owed: Mutex<Budgets>,
    clock: Clock,
}

impl AccountBudgets {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(rate: Rate, clock: Clock, random: impl FnMut() -> u64) -> Self {
        AccountBudgets { rate, owed: Mutex::new(Budgets::new(random)), clock }
    }

    /// Charges an account once.
    ///
    /// # Errors
    /// The account must wait.
    pub(super) fn charge(&self, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
        let mut hasher = FxHasher::default();
        (realm, account).hash(&mut hasher);
        let (key, now) = (hasher.finish(), self.clock.now());
        let mut owed = lock(&self.owed);
        let wait = owed.wait(key, self.rate, now);
        if !wait.is_zero() {
            let sentence = "your account asks for this too often: ask again later";
            return Err(Failure::new(Kind::TooOften, "too_often", sentence).after(wait));
        }
        owed.spend(key, self.rate, now);
        Ok(())
    }
}
