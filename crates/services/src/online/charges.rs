//! Budgets of addresses and their neighbourhoods for unauthenticated work: a number at once, and one more
//! after each interval. Local callers are not charged, unless local connections are limited too.

use super::failure::{Failure, Kind};
use parlor_hub::Origin;
use parlor_hub::budget::{Budgets, Rate};
use parlor_server::embed::{Clock, lock};
use std::sync::Mutex;

/// The allowed rates of one kind of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) of_address: Rate,
    pub(super) of_neighbourhood: Rate,
    /// What a refusal says there were too many of, for example `passwords came`.
    pub(super) what: &'static str,
}

/// The debts of addresses and their neighbourhoods for one kind of work.
pub(super) struct Charges {
    rates: Rates,
    owed: Mutex<Owed>,
    clock: Clock,
}

struct Owed {
    addresses: Budgets,
    neighbourhoods: Budgets,
}

impl Charges {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(rates: Rates, clock: Clock, mut random: impl FnMut() -> u64) -> Self {
        let addresses = Budgets::new(&mut random);
        let owed = Mutex::new(Owed { addresses, neighbourhoods: Budgets::new(&mut random) });
        Charges { rates, owed, clock }
    }

    /// Charges an address once.
    ///
    /// # Errors
    /// The address or its neighbourhood must wait.
    pub(super) fn charge(&self, origin: Origin) -> Result<(), Failure> {
        self.charge_if(origin, || Ok(()))
    }

    /// Charges an address once if `begin` starts the work. It holds the lock meanwhile, so `begin` must be
    /// short.
    ///
    /// # Errors
    /// The address or its neighbourhood must wait; or the error of `begin`.
    pub(super) fn charge_if(
        &self,
        origin: Origin,
        begin: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if origin == Origin::LOCAL {
            return begin();
        }
        let (Rates { of_address, of_neighbourhood, what }, now) = (self.rates, self.clock.now());
        let mut owed = lock(&self.owed);
        let Owed { addresses, neighbourhoods } = &mut *owed;
        let wait = addresses.wait(origin.0, of_address, now);
        let wait = wait.max(neighbourhoods.wait(origin.neighbourhood(), of_neighbourhood, now));
        if !wait.is_zero() {
            let sentence = format!("too many {what} from your network: ask again later");
            return Err(Failure::new(Kind::TooOften, "too_often", sentence).after(wait));
        }
        begin()?;
        addresses.spend(origin.0, of_address, now);
        neighbourhoods.spend(origin.neighbourhood(), of_neighbourhood, now);
        Ok(())
    }
}
