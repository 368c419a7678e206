//! Traffic budgets of members, so that no member pays for another's excess.
//!
//! Budgets count bytes × receivers. Unreliable messages have an account per pair of sender and receiver,
//! reliable ones an account per receiver for all senders. The totals of a sender and of a room are thus
//! bounded by those of the receivers. One more account covers all unreliable messages of the room. The
//! authority's state and the hub's own messages are bounded elsewhere and never held back here.

use parlor_proto::{Instant, MemberId, TickRate, limits};
use std::collections::{BTreeMap, BTreeSet};

/// The capacity of an account, and how fast it drains.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: u64,
    burst: u64,
}

/// Unreliable bytes from one sender to one receiver. A message of full size passes, and the receiver's queue
/// has room for other senders' messages beside it.
const UNRELIABLE_OF_PAIR: Rate = Rate {
    per_second: 128 * 1024,
    burst: (limits::PAYLOAD_BYTES_MAX + limits::WAITING_MESSAGE_BYTES) as u64,
};
/// Unreliable bytes × receivers of a room.
const UNRELIABLE_OF_ROOM: Rate = Rate { per_second: 8 * 1024 * 1024, burst: 8 * 1024 * 1024 };
/// Reliable bytes from all senders to one receiver. An active receiver's unacknowledged bytes of a quarter
/// second then fit into its queue, so that others' messages never disconnect it.
const RELIABLE_OF_RECEIVER: Rate = Rate { per_second: 256 * 1024, burst: 96 * 1024 };

/// Own-state bytes that a member may send.
const OWN_STATE: Rate = Rate {
    per_second: limits::OWN_STATE_BYTES_PER_SECOND as u64,
    burst: limits::OWN_STATE_BYTES_PER_SECOND as u64,
};

/// Reliable bytes of one sender that may wait for their receivers' budgets. A member that exceeds it is
/// disconnected: it is at fault, not its receivers.
pub(super) const SENDER_WAITING_BYTES_MAX: usize = 256 * 1024;

const _: () = {
    assert!(UNRELIABLE_OF_PAIR.burst < limits::UNRELIABLE_QUEUE_BYTES_MAX as u64 * 2 / 3);
    assert!(
        RELIABLE_OF_RECEIVER.burst >= (limits::PAYLOAD_BYTES_MAX + limits::WAITING_MESSAGE_BYTES) as u64,
        "a message of full size passes"
    );
    assert!(
        RELIABLE_OF_RECEIVER.burst + RELIABLE_OF_RECEIVER.per_second / 4
            <= limits::RELIABLE_QUEUE_BYTES_MAX as u64
    );
    assert!(
        SENDER_WAITING_BYTES_MAX > limits::RELIABLE_QUEUE_BYTES_MAX,
        "whoever sends what its own queue takes at once is not at fault"
    );
};

/// A leaky bucket.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// In millionths, so that intervals of a microsecond are not rounded away.
    level: u64,
    at: Instant,
}

const MILLIONTHS: u64 = 1_000_000;

impl Account {
    fn new(now: Instant) -> Self {
        Account { level: 0, at: now }
    }

    fn pass_time(&mut self, rate: Rate, now: Instant) {
        let elapsed_us = now.as_micros().saturating_sub(self.at.as_micros());
        self.level = self.level.saturating_sub(elapsed_us.saturating_mul(rate.per_second));
        self.at = self.at.max(now);
    }

    fn has_room(&self, rate: Rate, units: u64) -> bool {
        self.level.saturating_add(units.saturating_mul(MILLIONTHS)) <= rate.burst * MILLIONTHS
    }

    fn charge(&mut self, units: u64) {
        self.level = self.level.saturating_add(units.saturating_mul(MILLIONTHS));
    }

    /// Charges the units if they fit.
    fn take(&mut self, rate: Rate, units: u64, now: Instant) -> bool {
        self.pass_time(rate, now);
        let has_room = self.has_room(rate, units);
        if has_room {
            self.charge(units);
        }
        has_room
    }
}

/// The accounts of a room.
#[derive(Debug)]
pub(super) struct Budgets {
    inputs_rate: Rate,
    inputs: BTreeMap<MemberId, Account>,
    unreliable: BTreeMap<(MemberId, MemberId), Account>,
    unreliable_of_room: Account,
    reliable: BTreeMap<MemberId, Account>,
    own_states: BTreeMap<MemberId, Account>,
    states_rate: Rate,
    /// Rates of members with a lower path capacity.
    states_rates: BTreeMap<MemberId, Rate>,
    /// By receiver of others' own states.
    states: BTreeMap<MemberId, Account>,
    /// Members that were notified that they exceeded a budget.
    told: BTreeSet<MemberId>,
}

impl Budgets {
    /// Creates the accounts. A member receives at most `state_bytes_per_second` of all others' own states.
    pub(super) fn new(tick_rate: TickRate, state_bytes_per_second: u32, opened: Instant) -> Self {
        let states = u64::from(state_bytes_per_second);
        let per_second = u64::from(tick_rate.hz());
        Budgets {
            // Half a second of inputs may come at once, after a link has stalled for that long.
            inputs_rate: Rate { per_second, burst: (per_second / 2).max(16) },
            inputs: BTreeMap::new(),
            unreliable: BTreeMap::new(),
            unreliable_of_room: Account::new(opened),
            reliable: BTreeMap::new(),
            own_states: BTreeMap::new(),
            states_rate: rate_of_states(states),
            states_rates: BTreeMap::new(),
            states: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Charges an input; returns whether it is within one per step.
    pub(super) fn take_input(&mut self, from: MemberId, now: Instant) -> bool {
        self.inputs.entry(from).or_insert_with(|| Account::new(now)).take(self.inputs_rate, 1, now)
    }

    /// Charges an unreliable message; returns whether it may be sent.
    pub(super) fn take_unreliable(
        &mut self,
        from: MemberId,
        to: MemberId,
        bytes: usize,
        now: Instant,
    ) -> bool {
        let units = units(bytes);
        self.unreliable_of_room.pass_time(UNRELIABLE_OF_ROOM, now);
        if !self.unreliable_of_room.has_room(UNRELIABLE_OF_ROOM, units) {
            return false;
        }
        let pair = self.unreliable.entry((from, to)).or_insert_with(|| Account::new(now));
        let may_go = pair.take(UNRELIABLE_OF_PAIR, units, now);
        if may_go {
            self.unreliable_of_room.charge(units);
        }
        may_go
    }

    /// Charges a reliable message; returns whether it may be sent to all its receivers now. It goes to all or
    /// waits, because each receiver gets a sender's messages in order.
    pub(super) fn take_reliable(&mut self, to: &[MemberId], bytes: usize, now: Instant) -> bool {
        let units = units(bytes);
        let may_go = to.iter().all(|member| {
            let account = self.reliable.entry(*member).or_insert_with(|| Account::new(now));
            account.pass_time(RELIABLE_OF_RECEIVER, now);
            account.has_room(RELIABLE_OF_RECEIVER, units)
        });
        if may_go {
            to.iter().for_each(|member| self.charge_reliable(*member, bytes, now));
        }
        may_go
    }

    /// Charges a message of the hub itself: it never waits, but delays others' messages.
    pub(super) fn charge_reliable(&mut self, to: MemberId, bytes: usize, now: Instant) {
        let account = self.reliable.entry(to).or_insert_with(|| Account::new(now));
        account.pass_time(RELIABLE_OF_RECEIVER, now);
        account.charge(units(bytes));
    }

    /// Charges own-state bytes; returns whether the member may send them.
    pub(super) fn take_own_state(&mut self, from: MemberId, bytes: usize, now: Instant) -> bool {
        let account = self.own_states.entry(from).or_insert_with(|| Account::new(now));
        account.take(OWN_STATE, bytes as u64, now)
    }

    /// Whether a member's budget for others' own states has room.
    pub(super) fn has_room_for_states(&mut self, to: MemberId, now: Instant) -> bool {
        let rate = self.states_rate_of(to);
        let account = self.states.entry(to).or_insert_with(|| Account::new(now));
        account.pass_time(rate, now);
        account.has_room(rate, 0)
    }

    /// Sets the path capacity of a member, `None` if unknown. It bounds the rate of others' own states.
    pub(super) fn set_path(&mut self, member: MemberId, bytes_per_second: Option<u32>) {
        let room = bytes_per_second.map(|carries| u64::from(room_for_state(carries)));
        match room.filter(|room| *room < self.states_rate.per_second) {
            Some(room) => self.states_rates.insert(member, rate_of_states(room)),
            None => self.states_rates.remove(&member),
        };
    }

    /// Returns the rate at which a member receives others' own states.
    fn states_rate_of(&self, to: MemberId) -> Rate {
        self.states_rates.get(&to).copied().unwrap_or(self.states_rate)
    }

    /// Charges the sent bytes of others' own states.
    pub(super) fn charge_states(&mut self, to: MemberId, bytes: usize, now: Instant) {
        let rate = self.states_rate_of(to);
        let account = self.states.entry(to).or_insert_with(|| Account::new(now));
        account.pass_time(rate, now);
        account.charge(bytes as u64);
    }

    /// Whether a member must be notified that it exceeded a budget: true once.
    pub(super) fn is_news(&mut self, member: MemberId) -> bool {
        self.told.insert(member)
    }

    pub(super) fn remove(&mut self, member: MemberId) {
        self.inputs.remove(&member);
        self.unreliable.retain(|(from, to), _| *from != member && *to != member);
        self.reliable.remove(&member);
        self.own_states.remove(&member);
        self.states.remove(&member);
        self.states_rates.remove(&member);
        self.told.remove(&member);
    }
}

fn rate_of_states(per_second: u64) -> Rate {
    Rate { per_second, burst: per_second / 8 }
}

/// Returns the state bytes per second that fit on a path of this capacity, less the overhead of session, QUIC
/// and acknowledgements. Other messages may exceed it; then the connection blocks and no state is made.
pub(super) const fn room_for_state(carries: u32) -> u32 {
    carries - carries / 16
}

/// Returns the cost of a message of this size, the same as in its receivers' queues.
fn units(bytes: usize) -> u64 {
    (bytes + limits::WAITING_MESSAGE_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const RATE: Rate = Rate { per_second: 1_000, burst: 500 };

    proptest! {
        /// In any period an account takes at most its burst plus what drains meanwhile.
        #[test]
        fn an_account_takes_its_burst_and_its_rate(
            steps in proptest::collection::vec((0u64..300_000, 1u64..200), 1..200),
        ) {
            let mut now = Instant::ZERO;
            let mut account = Account::new(now);
            let mut taken: Vec<(Instant, u64)> = Vec::new();
            for (wait_us, units) in steps {
                now += Duration::from_micros(wait_us);
                let may = account.take(RATE, units, now);
                let fits = (0..=taken.len()).all(|from| {
                    let began = taken.get(from).map_or(now, |(at, _)| *at);
                    let sum = taken[from..].iter().map(|(_, units)| units).sum::<u64>() + units;
                    sum * 1_000_000 <= RATE.burst * 1_000_000 + (now.as_micros() - began.as_micros()) * RATE.per_second
                });
                prop_assert_eq!(may, fits);
                if may {
                    taken.push((now, units));
                }
            }
        }
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_nothing() {
        let mut account = Account::new(Instant::from_millis(50));
        assert!(account.take(RATE, 500, Instant::from_millis(50)));
        assert!(!account.take(RATE, 1, Instant::from_millis(50)));
        assert!(!account.take(RATE, 1, Instant::from_millis(20)));
        assert!(account.take(RATE, 1, Instant::from_millis(51)));
    }
}
