//! The share of each account and each room in the outbox of webhooks.
//!
//! The outbox is bounded, so a player with many calls could push out those of all others while the receiver
//! is down. Calls beyond a share are marked, and the store drops them first (threat 43).

use crate::store::{OUTBOX_BYTES_MAX, OUTBOX_MAX};
use core::hash::{Hash, Hasher};
use core::time::Duration;
use parlor_hub::budget::{Budgets, Rate};
use parlor_proto::Instant;
use parlor_server::embed::{Clock, lock};
use parlor_server::realm::Realm;
use parlor_turn::{Actor, TurnRoom};
use std::sync::Mutex;

/// Calls of one account: a fiftieth of the outbox at once, and 120 more an hour.
const SHARE: Rate = Rate { burst: 200, interval: Duration::from_secs(30) };
/// A call of more bytes counts as several.
const CALL_BYTES: u64 = OUTBOX_BYTES_MAX / OUTBOX_MAX;

/// The used shares of accounts and rooms.
pub(super) struct OutboxShares {
    used: Mutex<Budgets>,
    clock: Clock,
}

impl OutboxShares {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, random: impl FnMut() -> u64) -> Self {
        OutboxShares { used: Mutex::new(Budgets::new(random)), clock }
    }

    /// Charges the account that acts in a room with a call of this many bytes, or the room if the server
    /// acts. Returns whether the call is beyond the share; then it is not charged.
    pub(super) fn is_beyond(&self, realm: &Realm, actor: &Actor, room: &TurnRoom, bytes: usize) -> bool {
        let mut hasher = rustc_hash::FxHasher::default();
        match actor {
            Actor::Player(player) => (realm, 'p', player.as_str()).hash(&mut hasher),
            Actor::Server => (realm, 'r', room.id().as_str()).hash(&mut hasher),
        }
        self.spend(hasher.finish(), bytes, self.clock.now())
    }

    fn spend(&self, key: u64, bytes: usize, now: Instant) -> bool {
        let calls = (bytes as u64).div_ceil(CALL_BYTES).clamp(1, u64::from(SHARE.burst));
        let calls = u32::try_from(calls).unwrap_or(SHARE.burst);
        let mut used = lock(&self.used);
        if !used.wait_after(key, calls - 1, SHARE, now).is_zero() {
            return true;
        }
        (0..calls).for_each(|_| used.spend(key, SHARE, now));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_43_one_account_has_its_share_of_the_outbox_and_no_more() {
        let mut number = 0_u64;
        let shares = OutboxShares::new(Clock::start(), || {
            number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
            number
        });
        let now = Instant::from_millis(1);
        let within = |key, bytes| (0..1_000).filter(|_| !shares.spend(key, bytes, now)).count() as u64;
        assert_eq!(within(1, 100), u64::from(SHARE.burst));
        assert_eq!(within(2, 100), u64::from(SHARE.burst), "another one has its own");
        let large = 64 << 10;
        let most = u64::from(SHARE.burst) / (large as u64).div_ceil(CALL_BYTES);
        assert_eq!(within(3, large), most);
        assert!(most * large as u64 <= OUTBOX_BYTES_MAX / 40);
    }
}
