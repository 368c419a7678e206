//! Measurements of a run by seat, and their evaluation.

use parlor::{EntityId, MemberId};
use parlor_demos::arena::{Order, Tank, Verdict, aim_of};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Ticks after a disturbance in which a member's foresight is not counted: a second, in which the correction has come.
const DISTURBED_TICKS: u32 = 30;
/// How many ticks back it is searched for the order that a tank obeys.
const LATENCY_TICKS_MAX: u32 = 64;
/// A picture in which something moved less than this part of its way stands still.
const FROZEN_BELOW: f32 = 0.1;

/// What is written down at the host.
#[derive(Debug, Default)]
pub(super) struct HostLog {
    /// Every tank after every step.
    pub(super) tanks: BTreeMap<(u32, EntityId), Tank>,
    /// The order of every player that was used in every step.
    pub(super) orders: BTreeMap<(u32, MemberId), Order>,
    /// Every shot, by who fired and its number.
    pub(super) shots: BTreeMap<(MemberId, u16), Verdict>,
}

/// What is written down at a member.
#[derive(Debug, Default)]
pub(super) struct MemberLog {
    /// What it wanted in each step.
    pub(super) orders: BTreeMap<u32, Order>,
    /// Its own tank after each step, as foreseen when the step was run first.
    pub(super) foreseen: BTreeMap<u32, Tank>,
    /// Its shots in the order of their display.
    pub(super) shots: Vec<Verdict>,
    /// How far behind the newest moment the picture was, picture by picture.
    pub(super) delays_us: Vec<u32>,
    /// How far its idea of the room's time was off, at worst.
    pub(super) clock_error_max: Duration,
    pub(super) drones: Drones,
}

/// How evenly something moves that flies in a circle.
#[derive(Debug, Default)]
pub(super) struct Drones {
    last: BTreeMap<EntityId, (u64, [f32; 2])>,
    /// Pictures in which all drones could have moved.
    pub(super) pictures: u64,
    /// Those of them in which one stood still.
    pub(super) frozen: u64,
    /// Those in which one moved backward.
    pub(super) backward: u64,
}

impl Drones {
    /// Takes the picture of `at_us`, and says how evenly everything moved since the one before if that `counts`.
    pub(super) fn picture(&mut self, at_us: u64, drones: &[(EntityId, Tank)], counts: bool) {
        let (mut is_whole, mut frozen, mut backward) = (!drones.is_empty(), false, false);
        for (entity, drone) in drones {
            let before = self.last.insert(*entity, (at_us, drone.position));
            let Some((since_us, from)) = before else {
                is_whole = false;
                continue;
            };
            let speed = (drone.velocity[0].powi(2) + drone.velocity[1].powi(2)).sqrt();
            let moved = [drone.position[0] - from[0], drone.position[1] - from[1]];
            let along = (moved[0] * drone.velocity[0] + moved[1] * drone.velocity[1]) / speed.max(0.01);
            #[expect(clippy::cast_precision_loss, reason = "microseconds between two pictures")]
            let should = speed * (at_us - since_us) as f32 / 1e6;
            backward |= along < 0.0;
            frozen |= (0.0..FROZEN_BELOW * should).contains(&along);
        }
        if is_whole && counts {
            self.pictures += 1;
            self.backward += u64::from(backward);
            self.frozen += u64::from(frozen && !backward);
        }
    }
}

/// One member, after the run.
pub(super) struct Seat<'a> {
    pub(super) member: MemberId,
    pub(super) tank: Option<EntityId>,
    pub(super) log: &'a MemberLog,
}

/// How well a member foresaw its own tank.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Foresight {
    pub(super) steps: u64,
    pub(super) right: u64,
    pub(super) undisturbed: u64,
    pub(super) undisturbed_right: u64,
    pub(super) without_order: u64,
}

impl Seat<'_> {
    /// Compares what was foreseen with what became of it.
    pub(super) fn foresight(&self, host: &HostLog) -> Foresight {
        let mut sums = Foresight::default();
        let mut disturbed_until = 0;
        for (tick, foreseen) in &self.log.foreseen {
            let Some(decided) = self.tank.and_then(|tank| host.tanks.get(&(*tick, tank))) else { continue };
            let used = host.orders.get(&(*tick, self.member)).copied().unwrap_or_default();
            if self.log.orders.get(tick) != Some(&used) {
                sums.without_order += 1;
                disturbed_until = tick + DISTURBED_TICKS;
            }
            let is_right = u64::from(foreseen == decided);
            sums.steps += 1;
            sums.right += is_right;
            if *tick >= disturbed_until {
                sums.undisturbed += 1;
                sums.undisturbed_right += is_right;
            }
        }
        sums
    }

    /// How many ticks after an order the tank obeyed, at worst; none if it obeyed none of them.
    pub(super) fn latency_ticks_max(&self) -> Option<u32> {
        let obeyed = |tick: u32, tank: &Tank| {
            (0..LATENCY_TICKS_MAX).find(|back| {
                let order = tick.checked_sub(*back).and_then(|tick| self.log.orders.get(&tick));
                order.is_some_and(|order| order.aim == aim_of(tank.aim))
            })
        };
        let worst =
            self.log.foreseen.iter().map(|(tick, tank)| obeyed(*tick, tank).unwrap_or(LATENCY_TICKS_MAX));
        worst.max()
    }

    /// Orders of which the way differs from that of the one before.
    pub(super) fn order_changes(&self) -> usize {
        let orders: Vec<_> = self.log.orders.values().map(|order| (order.east, order.south)).collect();
        orders.windows(2).filter(|two| two[0] != two[1]).count()
    }
}

/// What became of the shots of all members.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shots {
    pub(super) fired: u64,
    pub(super) again: u64,
    pub(super) never: u64,
    pub(super) made_up: u64,
    pub(super) hits: u64,
    pub(super) agreed: u64,
    pub(super) disputed_margin_m_max: Option<f32>,
    pub(super) beyond: u64,
}

impl Shots {
    /// Adds the shots of one member.
    pub(super) fn add(&mut self, seat: &Seat<'_>, host: &HostLog) {
        let mut shown = BTreeSet::new();
        for verdict in &seat.log.shots {
            let is_new = shown.insert(verdict.number);
            self.again += u64::from(!is_new);
            match host.shots.get(&(seat.member, verdict.number)) {
                None => self.made_up += u64::from(is_new),
                Some(decided) if is_new => self.compare(verdict, decided),
                Some(_) => {}
            }
        }
        let fired = host.shots.keys().filter(|(by, _)| *by == seat.member);
        for (_, number) in fired {
            self.fired += 1;
            self.never += u64::from(!shown.contains(number));
        }
    }

    fn compare(&mut self, seen: &Verdict, decided: &Verdict) {
        if decided.is_beyond {
            self.beyond += 1;
        } else if seen.met.is_some() || decided.met.is_some() {
            self.hits += 1;
            if seen.met == decided.met {
                self.agreed += 1;
            } else {
                let worst = self.disputed_margin_m_max.unwrap_or(0.0);
                self.disputed_margin_m_max = Some(seen.margin_m.unwrap_or(f32::INFINITY).max(worst));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_demos::arena::Shot;

    const ME: MemberId = MemberId(1);
    const ENTITY: EntityId = EntityId { slot: 3, generation: 0 };
    const DRONE: EntityId = EntityId { slot: 4, generation: 0 };

    #[test]
    fn a_drone_that_stands_or_turns_back_is_seen() {
        let mut drones = Drones::default();
        // Ten metres a second, and a picture every ten milliseconds.
        for (at_ms, x) in [(0, 0.0), (10, 0.1), (20, 0.2), (30, 0.2), (40, 0.5), (50, 0.4), (60, 0.5)] {
            let drone = Tank { position: [x, 5.0], velocity: [10.0, 0.0], ..Tank::default() };
            drones.picture(at_ms * 1_000, &[(DRONE, drone)], true);
        }
        assert_eq!((drones.pictures, drones.frozen, drones.backward), (6, 1, 1));
        drones.picture(70_000, &[], true);
        assert_eq!(drones.pictures, 6, "what is not there does not stand");
    }

    fn logs() -> (HostLog, MemberLog) {
        let (mut host, mut member) = (HostLog::default(), MemberLog::default());
        for tick in 0..100u32 {
            let order = Order { aim: u16::try_from(tick).unwrap(), ..Order::default() };
            let mut tank = Tank::at([20.0, 30.0]);
            tank.step(order);
            host.tanks.insert((tick, ENTITY), tank);
            host.orders.insert((tick, ME), order);
            member.orders.insert(tick, order);
            member.foreseen.insert(tick, tank);
        }
        (host, member)
    }

    #[test]
    fn what_was_foreseen_wrongly_is_counted_and_told_from_an_order_that_never_came() {
        let (mut host, mut member) = logs();
        let foresight = |host: &HostLog, member: &MemberLog| {
            Seat { member: ME, tank: Some(ENTITY), log: member }.foresight(host)
        };
        let right =
            Foresight { steps: 100, right: 100, undisturbed: 100, undisturbed_right: 100, without_order: 0 };
        assert_eq!(foresight(&host, &member), right);
        member.foreseen.entry(90).and_modify(|tank| tank.position[0] += 1.0);
        let wrong = Foresight { right: 99, undisturbed_right: 99, ..right };
        assert_eq!(foresight(&host, &member), wrong);
        host.orders.insert((80, ME), Order::default());
        let excused =
            Foresight { right: 99, undisturbed: 80, undisturbed_right: 80, without_order: 1, ..right };
        assert_eq!(foresight(&host, &member), excused);
    }

    #[test]
    fn a_tank_that_obeys_late_is_found() {
        let (_, mut member) = logs();
        let late =
            |member: &MemberLog| Seat { member: ME, tank: Some(ENTITY), log: member }.latency_ticks_max();
        assert_eq!(late(&member), Some(0));
        let before = member.foreseen[&47];
        member.foreseen.insert(50, before);
        assert_eq!(late(&member), Some(3));
    }

    #[test]
    fn shots_are_counted_by_how_often_they_were_shown_and_by_what_they_met() {
        let (mut host, mut member) = (HostLog::default(), MemberLog::default());
        let shot = |number, met, is_beyond| {
            let shot = Shot { from: [0.0; 2], aim: 0.0, number };
            Verdict { by: ME, number, met, margin_m: Some(0.25), shot, is_beyond }
        };
        let decided = [
            (1, Some(DRONE), false),
            (2, None, false),
            (3, Some(DRONE), true),
            (4, None, false),
            (5, None, false),
        ];
        host.shots
            .extend(decided.map(|(number, met, is_beyond)| ((ME, number), shot(number, met, is_beyond))));
        let shown = [(1, Some(DRONE)), (2, Some(DRONE)), (2, Some(DRONE)), (3, None), (4, None), (9, None)];
        member.shots.extend(shown.map(|(number, met)| shot(number, met, false)));
        let mut shots = Shots::default();
        shots.add(&Seat { member: ME, tank: Some(ENTITY), log: &member }, &host);
        let disputed_margin_m_max = Some(0.25);
        let expected = Shots {
            fired: 5,
            again: 1,
            never: 1,
            made_up: 1,
            hits: 2,
            agreed: 1,
            disputed_margin_m_max,
            beyond: 1,
        };
        assert_eq!(shots, expected);
    }
}
