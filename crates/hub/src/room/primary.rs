//! Chooses the primary of a room: the member to which others send events that one member must decide.
//!
//! In a room where each member owns its state there is no authority, but one member must spawn the ball and
//! count the goals. The hub names it, and names another when it lags or leaves.
//!
//! Hysteresis prevents flapping. The role moves only if the primary leaves, or lags in three measurements in
//! a row and a better member exists. A member that recovers does not take it back. A primary that replaced a
//! lagging one keeps the role for a while.

use parlor_proto::MemberId;
use parlor_proto::wire::control::Presence;
use std::collections::BTreeMap;

/// Consecutive bad measurements after which a member counts as lagging.
const BAD_MEASURES: u32 = 3;
/// Consecutive good measurements after which a lagging member counts as fit again.
const GOOD_MEASURES: u32 = 10;
/// Measurements during which a new primary keeps the role even if it lags, unless it disconnects.
const HOLD_MEASURES: u32 = 20;
/// A round trip is bad if it exceeds the others' median by this, in ms, and by half of that median.
const LAG_MS: u32 = 100;

/// Chooses the primary of one room. Its only clock is the count of measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct Primary {
    members: BTreeMap<MemberId, Record>,
    primary: Option<MemberId>,
    /// Measurements of the primary since it was named, up to [`HOLD_MEASURES`].
    held: u32,
}

/// The measurements of one member.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// The last round trip; `None` if it was disconnected.
    rtt_ms: Option<u32>,
    /// The result of the last measurement.
    last: Standing,
    /// Consecutive bad measurements, at most [`BAD_MEASURES`].
    bad: u32,
    /// Consecutive measurements while disconnected, at most [`BAD_MEASURES`].
    away: u32,
    /// Consecutive good measurements, at most [`GOOD_MEASURES`].
    good: u32,
    /// Its stable standing, until enough consecutive measurements contradict it.
    settled: Standing,
}

/// The fitness of a member, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    #[default]
    Fit,
    Lags,
    Away,
}

impl Primary {
    /// Creates a room without members.
    pub(super) fn new() -> Self {
        Primary::default()
    }

    /// Returns the primary; `None` in a room without members.
    pub(super) fn primary(&self) -> Option<MemberId> {
        self.primary
    }

    /// Adds a member. Returns whether the primary changed.
    pub(super) fn joined(&mut self, member: MemberId) -> bool {
        self.members.entry(member).or_default();
        self.primary.is_none() && self.name(Some(member))
    }

    /// Removes a member. Returns whether the primary changed.
    pub(super) fn left(&mut self, member: MemberId) -> bool {
        self.members.remove(&member);
        self.primary == Some(member) && self.name(self.fittest())
    }

    /// Records a measurement. Returns whether the primary changed. Ignores members that are not in the room.
    pub(super) fn measured(&mut self, presence: &Presence) -> bool {
        let standing = self.judge(presence);
        let Some(record) = self.members.get_mut(&presence.member) else { return false };
        record.rtt_ms = presence.rtt_ms.filter(|_| presence.connected);
        record.count(standing);
        if self.primary == Some(presence.member) {
            self.held = HOLD_MEASURES.min(self.held + 1);
        }
        self.reconsider()
    }

    /// Names another primary if the current one is unfit and a fitter member exists.
    fn reconsider(&mut self) -> bool {
        let Some(record) = self.primary.and_then(|primary| self.members.get(&primary)) else { return false };
        let may_move = match record.settled {
            Standing::Fit => false,
            Standing::Lags => self.held >= HOLD_MEASURES,
            Standing::Away => true,
        };
        let is_worse =
            |other: MemberId| self.members.get(&other).is_some_and(|it| it.fitness() < record.settled);
        may_move && self.fittest().is_some_and(is_worse) && self.name(self.fittest())
    }

    fn name(&mut self, member: Option<MemberId>) -> bool {
        self.held = 0;
        let before = std::mem::replace(&mut self.primary, member);
        before != member
    }

    /// Returns the fittest member, the lowest id among equals.
    fn fittest(&self) -> Option<MemberId> {
        let fitness = self.members.iter().map(|(id, record)| (record.fitness(), *id));
        fitness.min().map(|(_, id)| id)
    }

    fn judge(&self, presence: &Presence) -> Standing {
        if !presence.connected {
            return Standing::Away;
        }
        let median_ms = self.median_of_others_ms(presence.member);
        let is_late = presence.rtt_ms.zip(median_ms).is_some_and(|(rtt_ms, median_ms)| {
            let bound_ms = median_ms.saturating_add(LAG_MS.max(median_ms / 2));
            rtt_ms > bound_ms
        });
        if presence.slow || is_late { Standing::Lags } else { Standing::Fit }
    }

    /// Returns the lower median of the others' round trips; `None` if none was measured.
    fn median_of_others_ms(&self, member: MemberId) -> Option<u32> {
        let others = self.members.iter().filter(|(id, _)| **id != member);
        let mut rtts_ms: Vec<u32> = others.filter_map(|(_, record)| record.rtt_ms).collect();
        rtts_ms.sort_unstable();
        rtts_ms.get(rtts_ms.len().saturating_sub(1) / 2).copied()
    }
}

impl Record {
    fn count(&mut self, standing: Standing) {
        self.last = standing;
        let next = |holds: bool, run: u32, most: u32| if holds { most.min(run + 1) } else { 0 };
        self.good = next(standing == Standing::Fit, self.good, GOOD_MEASURES);
        self.bad = next(standing != Standing::Fit, self.bad, BAD_MEASURES);
        self.away = next(standing == Standing::Away, self.away, BAD_MEASURES);
        if self.away == BAD_MEASURES {
            self.settled = Standing::Away;
        } else if self.bad == BAD_MEASURES {
            self.settled = Standing::Lags;
        } else if self.good == GOOD_MEASURES {
            self.settled = Standing::Fit;
        }
    }

    /// Returns its fitness to become the primary: one bad measurement disqualifies it.
    fn fitness(&self) -> Standing {
        self.last.max(self.settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fine(member: u32, rtt_ms: u32) -> Presence {
        Presence { member: MemberId(member), connected: true, slow: false, rtt_ms: Some(rtt_ms) }
    }

    fn away(member: u32) -> Presence {
        Presence { connected: false, ..fine(member, 20) }
    }

    fn room(members: u32) -> Primary {
        let mut room = Primary::new();
        (0..members).for_each(|member| {
            room.joined(MemberId(member));
        });
        (0..members).for_each(|member| {
            room.measured(&fine(member, 20));
        });
        room
    }

    /// Measures all members `rounds` times; returns how often the primary changed.
    fn measure(room: &mut Primary, rounds: u32, presences: &[Presence]) -> usize {
        (0..rounds).flat_map(|_| presences).filter(|presence| room.measured(presence)).count()
    }

    #[test]
    fn t10_the_first_is_the_primary_and_the_lowest_follows_one_that_leaves() {
        let mut room = Primary::new();
        assert_eq!(room.primary(), None);
        assert!(room.joined(MemberId(3)));
        assert!(!room.joined(MemberId(1)), "who comes later takes nothing over");
        assert!(!room.joined(MemberId(2)));
        assert_eq!(room.primary(), Some(MemberId(3)));
        assert!(!room.left(MemberId(2)));
        assert!(room.left(MemberId(3)));
        assert_eq!(room.primary(), Some(MemberId(1)));
        assert!(room.left(MemberId(1)));
        assert_eq!(room.primary(), None);
    }

    #[test]
    fn t10_a_primary_that_lags_hands_over_after_three_measures_in_a_row() {
        for bad in [fine(0, 140), Presence { slow: true, ..fine(0, 20) }] {
            let mut room = room(3);
            measure(&mut room, HOLD_MEASURES, &[fine(0, 20), fine(1, 20), fine(2, 20)]);
            assert_eq!(measure(&mut room, BAD_MEASURES - 1, &[bad]), 0);
            assert_eq!(measure(&mut room, 1, &[fine(0, 20)]), 0, "one good measure begins anew");
            assert_eq!(measure(&mut room, BAD_MEASURES - 1, &[bad]), 0);
            assert_eq!(measure(&mut room, 1, &[bad]), 1, "{bad:?}");
            assert_eq!(room.primary(), Some(MemberId(1)));
            let all_fine = [fine(0, 20), fine(1, 20), fine(2, 20)];
            assert_eq!(measure(&mut room, 100, &all_fine), 0, "who recovers does not take it back");
        }
    }

    #[test]
    fn one_that_is_not_connected_hands_over_even_before_its_time() {
        let mut room = room(2);
        assert_eq!(measure(&mut room, BAD_MEASURES - 1, &[away(0)]), 0);
        assert_eq!(measure(&mut room, 1, &[away(0)]), 1);
        assert_eq!(room.primary(), Some(MemberId(1)));
    }

    #[test]
    fn one_that_lags_before_its_time_is_not_gone_because_it_was_away_for_a_moment() {
        let mut room = room(2);
        let slow = Presence { slow: true, ..fine(0, 20) };
        assert_eq!(measure(&mut room, 1, &[slow, slow, away(0), slow, away(0), away(0)]), 0);
        assert_eq!(measure(&mut room, 1, &[away(0)]), 1);
    }

    #[test]
    fn who_lags_at_the_moment_is_passed_over() {
        let mut room = room(4);
        measure(&mut room, 1, &[away(1), Presence { slow: true, ..fine(2, 20) }]);
        room.left(MemberId(0));
        assert_eq!(room.primary(), Some(MemberId(3)));
    }

    #[test]
    fn it_stays_where_nobody_does_better() {
        let mut room = room(3);
        let all_slow = [0, 1, 2].map(|member| Presence { slow: true, ..fine(member, 20) });
        assert_eq!(measure(&mut room, 100, &all_slow), 0);
        assert_eq!(measure(&mut room, 100, &[0, 1, 2].map(away)), 0);
        // One comes back, slowly: it is fitter than a disconnected one.
        assert_eq!(measure(&mut room, GOOD_MEASURES, &[all_slow[2]]), 1);
        assert_eq!(room.primary(), Some(MemberId(2)));
    }

    #[test]
    fn round_trips_that_are_long_for_everybody_are_no_lag() {
        let mut room = room(3);
        assert_eq!(measure(&mut room, 100, &[fine(0, 500), fine(1, 450), fine(2, 400)]), 0);
    }

    proptest! {
        #[test]
        fn it_never_flaps(seed in proptest::collection::vec((0u32..4, 0u32..400, 0u8..10), 1..2_000)) {
            let mut room = room(4);
            let mut of_primary = HOLD_MEASURES;
            for (member, rtt_ms, luck) in seed {
                let presence = Presence { slow: luck == 0, ..fine(member, rtt_ms) };
                of_primary += u32::from(room.primary() == Some(MemberId(member)));
                if room.measured(&presence) {
                    prop_assert!(of_primary >= HOLD_MEASURES, "it changed after {of_primary} measures");
                    of_primary = 0;
                }
            }
        }

        #[test]
        fn the_primary_is_always_a_member(script in proptest::collection::vec((0u32..6, 0u8..4, any::<bool>()), 0..200)) {
            let (mut room, mut seated) = (Primary::new(), std::collections::BTreeSet::new());
            for (member, verb, connected) in script {
                let before = room.primary();
                let changed = match verb {
                    0 => { seated.insert(MemberId(member)); room.joined(MemberId(member)) }
                    1 => { seated.remove(&MemberId(member)); room.left(MemberId(member)) }
                    _ => room.measured(&Presence { connected, ..fine(member, 20) }),
                };
                prop_assert_eq!(changed, before != room.primary());
                prop_assert_eq!(room.primary().is_some(), !seated.is_empty());
                prop_assert!(room.primary().is_none_or(|primary| seated.contains(&primary)));
            }
        }
    }
}
