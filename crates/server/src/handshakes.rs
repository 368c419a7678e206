//! Limits handshakes: for each address, and for all together (threat 2).
//!
//! A handshake costs the server a signature and memory, and the client nothing. The limit reserves capacity
//! for live rooms.
//!
//! Unverified addresses have a separate budget. Beyond it, clients must first prove their address, which
//! costs a round trip and no memory; then the other budget applies. So a flood from false addresses delays
//! others by one round trip, and takes at most half of all handshakes.

use parlor_hub::Origin;
use parlor_hub::budget::{Budget, Budgets, Rate};
use parlor_proto::Instant;

/// Default of [`Config::handshakes_per_second`](crate::Config::handshakes_per_second).
pub const HANDSHAKES_PER_SECOND: u32 = 10;
/// Default of [`Config::handshakes_per_second_all`](crate::Config::handshakes_per_second_all).
pub const HANDSHAKES_PER_SECOND_ALL: u32 = 500;

/// Burst of one address, in seconds of its rate: a school shares one address.
const BURST_S: u32 = 5;
/// Burst of all addresses, in seconds of their rate: after a restart all clients reconnect.
const BURST_ALL_S: u32 = 2;
/// The budget of a neighbourhood, in budgets of an address.
const NEIGHBOURHOOD: u32 = 4;

/// The decision about a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The handshake may begin.
    Begin,
    /// The client must first prove its address.
    Prove,
    /// Rejected for now.
    Refuse,
}

/// Counts handshakes.
#[derive(Debug)]
pub(crate) struct Handshakes {
    address: Rate,
    neighbourhood: Rate,
    all: Rate,
    proven: AddressBudgets,
    unproven: AddressBudgets,
    begun: Budget,
}

/// The budgets of one kind: of verified addresses, or of others.
#[derive(Debug)]
struct AddressBudgets {
    origins: Budgets,
    neighbourhoods: Budgets,
}

impl Handshakes {
    /// Returns empty budgets. `random` returns unpredictable numbers, uniform over 64 bits.
    pub(crate) fn new(per_second: u32, per_second_all: u32, mut random: impl FnMut() -> u64) -> Self {
        let mut budgets = || AddressBudgets {
            origins: Budgets::new(&mut random),
            neighbourhoods: Budgets::new(&mut random),
        };
        Handshakes {
            address: Rate::per_second(per_second, BURST_S),
            neighbourhood: Rate::per_second(per_second.saturating_mul(NEIGHBOURHOOD), BURST_S),
            all: Rate::per_second(per_second_all, BURST_ALL_S),
            proven: budgets(),
            unproven: budgets(),
            begun: Budget::default(),
        }
    }

    /// Decides about a connection attempt, and counts the handshake if it begins. `is_proven`: whether the
    /// address is verified.
    pub(crate) fn decide(&mut self, origin: Origin, is_proven: bool, now: Instant) -> Verdict {
        if origin == Origin::LOCAL {
            return Verdict::Begin;
        }
        let Handshakes { address, neighbourhood, all, .. } = *self;
        let (budgets, of_all, otherwise) = if is_proven {
            (&mut self.proven, all, Verdict::Refuse)
        } else {
            (&mut self.unproven, Rate { burst: all.burst / 2, ..all }, Verdict::Prove)
        };
        let may = self.begun.wait(of_all, now).is_zero()
            && budgets.origins.wait(origin.0, address, now).is_zero()
            && budgets.neighbourhoods.wait(origin.neighbourhood(), neighbourhood, now).is_zero();
        if !may {
            return otherwise;
        }
        self.begun.spend(all, now);
        budgets.origins.spend(origin.0, address, now);
        budgets.neighbourhoods.spend(origin.neighbourhood(), neighbourhood, now);
        Verdict::Begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const START: Instant = Instant::from_millis(1);

    fn handshakes() -> Handshakes {
        let mut state = 1_u64;
        Handshakes::new(HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_ALL, || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        })
    }

    fn far_apart(number: u64) -> Origin {
        Origin((number + 1) << 16)
    }

    /// A minute in steps of a millisecond.
    fn minute() -> impl Iterator<Item = Instant> {
        (0..60_000).map(|ms| START + Duration::from_millis(ms))
    }

    #[test]
    fn threat_02_a_flood_of_one_address_leaves_the_others_theirs() {
        let mut handshakes = handshakes();
        let mut begun = 0;
        for now in minute() {
            for _ in 0..2 {
                begun += u32::from(handshakes.decide(far_apart(0), true, now) == Verdict::Begin);
            }
            if now.as_millis() % 1_000 == 0 {
                assert_eq!(handshakes.decide(far_apart(now.as_millis()), true, now), Verdict::Begin);
            }
        }
        let most = HANDSHAKES_PER_SECOND * (60 + BURST_S);
        assert!((most - 1..=most).contains(&begun), "{begun}");
    }

    #[test]
    fn threat_02_at_five_times_the_capacity_no_more_than_the_capacity_is_begun() {
        let mut handshakes = handshakes();
        let mut begun = 0;
        let mut next = 0;
        for now in minute() {
            for _ in 0..5 * HANDSHAKES_PER_SECOND_ALL / 1_000 + 1 {
                next += 1;
                begun += u32::from(handshakes.decide(far_apart(next % 10_000), true, now) == Verdict::Begin);
            }
        }
        let most = HANDSHAKES_PER_SECOND_ALL * (60 + BURST_ALL_S);
        assert!((most * 9 / 10..=most).contains(&begun), "{begun}");
    }

    #[test]
    fn threat_02_false_addresses_use_up_nobody_elses_budget() {
        let mut handshakes = handshakes();
        let victim = far_apart(7);
        for (at, now) in minute().enumerate() {
            for of_others in 0..3 {
                let spoofed = far_apart(100 + (at as u64 * 3 + of_others) % 50_000);
                assert_ne!(handshakes.decide(spoofed, false, now), Verdict::Refuse, "it is asked for proof");
            }
            handshakes.decide(victim, false, now);
            if at % 200 == 199 {
                // At worst the victim proves its address, and is then admitted.
                assert_ne!(handshakes.decide(victim, false, now), Verdict::Refuse);
                assert_eq!(handshakes.decide(victim, true, now), Verdict::Begin, "at {now}");
            }
        }
        assert_eq!(handshakes.decide(victim, false, START + Duration::from_secs(60)), Verdict::Prove);
    }

    #[test]
    fn threat_02_many_addresses_of_one_neighbourhood_share_a_budget() {
        let mut handshakes = handshakes();
        let mut begun = 0;
        for now in minute().step_by(10) {
            for address in 0..4 {
                let origin = Origin((9 << 16) | ((now.as_millis() + address) % 256));
                begun += u32::from(handshakes.decide(origin, true, now) == Verdict::Begin);
            }
        }
        assert!(begun <= HANDSHAKES_PER_SECOND * NEIGHBOURHOOD * (60 + BURST_S), "{begun}");
    }

    #[test]
    fn this_machine_is_exempt() {
        let mut handshakes = handshakes();
        assert!((0..10_000).all(|_| handshakes.decide(Origin::LOCAL, false, START) == Verdict::Begin));
        assert_eq!(handshakes.decide(far_apart(1), false, START), Verdict::Begin);
    }
}
