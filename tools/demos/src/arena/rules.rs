//! The rules: driving, firing, and hits. Pure, and the same code at the host, which decides, and at every
//! member, which predicts its own tank.
//!
//! A tank's whole state is in its component, quantized. So a step starts from equal data at all ends and
//! gives equal results.

use parlor::replicated;
use parlor::schema::{Kind, Schema, SchemaError};
use serde::{Deserialize, Serialize};
use std::f32::consts::{FRAC_1_SQRT_2, TAU};

/// Steps per second.
pub const HZ: u16 = 30;
/// The arena, in metres.
pub const SIDES_M: [f32; 2] = [96.0, 64.0];
/// A tank is a disc.
pub const TANK_RADIUS_M: f32 = 1.5;
/// Discs that nothing passes: where, and how large.
pub const PILLARS: [([f32; 2], f32); 5] =
    [([24.0, 20.0], 3.0), ([72.0, 20.0], 3.0), ([48.0, 32.0], 5.0), ([24.0, 44.0], 3.0), ([72.0, 44.0], 3.0)];
/// How far a shot reaches.
pub const RANGE_M: f32 = 60.0;
/// Hits that a tank takes before it begins anew.
pub(super) const HEALTH: u8 = 5;
/// Parts of a turn that can be aimed at.
pub const AIM_STEPS: u16 = 1_024;
/// How far from where its tank is at the host a player may have fired. Whoever was pushed does not know it yet, and its shot shall fly
/// from where it aimed. Half of a tank, and less than any cover is wide.
pub(super) const LENIENCE_M: f32 = TANK_RADIUS_M;

const SPEED_MPS: f32 = 9.0;
const ACCELERATION_MPS2: f32 = 45.0;
/// Steps from one shot to the next: four in a second.
const RELOAD_STEPS: u8 = 8;
const STEP_S: f32 = 1.0 / HZ as f32;
/// Resolution of places, in parts of a metre.
const PARTS_PER_M: f32 = 512.0;

/// What a player wants in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// -1, 0 or 1: west, no way, east.
    pub east: i8,
    /// -1, 0 or 1: north, no way, south.
    pub south: i8,
    /// Where the gun points, in parts of a turn: 0 is east, a quarter is south.
    pub aim: u16,
    /// Whether it fires as soon as it can.
    pub fire: bool,
    /// In a step in which it fires, from where, as its player sees it, in parts of a metre. What it foresees of its own tank may
    /// be wrong, and the shot shall fly as it was seen.
    pub from: Option<[u16; 2]>,
}

/// The shared state of a tank. A member predicts its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tank {
    /// In metres, from the north-west corner.
    pub position: [f32; 2],
    /// In metres per second.
    pub velocity: [f32; 2],
    /// Where the gun points, in radians.
    pub aim: f32,
    /// Steps until it can fire.
    pub reload: u8,
    /// Shots that it fired.
    pub shots: u16,
}

replicated!(Tank as "tank" => {
    position: Kind::vector2(0.0, SIDES_M[0] as f64, 1.0 / 512.0),
    velocity: Kind::vector2(-32.0, 32.0, 1.0 / 256.0),
    aim: Kind::angle(AIM_STEPS as u32),
    reload: Kind::int(0, RELOAD_STEPS as i64),
    shots: Kind::int(0, u16::MAX as i64),
});

/// What only the host decides about a tank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Hits that it can take.
    pub health: u8,
    /// Hits that it made.
    pub hits: u16,
    /// How often it was shot to pieces.
    pub deaths: u16,
}

replicated!(Life as "life" => {
    health: Kind::int(0, HEALTH as i64),
    hits: Kind::int(0, u16::MAX as i64),
    deaths: Kind::int(0, u16::MAX as i64),
});

/// A shot, which hits in the step in which it is fired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shot {
    /// Where it was fired, in metres.
    pub from: [f32; 2],
    /// In radians.
    pub aim: f32,
    /// The shooter's count of its shots, this one included.
    pub number: u16,
}

/// The schema of the arena: all members see everything.
///
/// # Errors
/// It cannot be built, which only a change of these rules can bring about.
pub fn schema() -> Result<Schema, SchemaError> {
    Schema::builder().replicate::<Tank>().replicate::<Life>().build()
}

/// Radians of parts of a turn.
pub(super) fn radians(aim: u16) -> f32 {
    f32::from(aim % AIM_STEPS) / f32::from(AIM_STEPS) * TAU
}

/// Parts of a turn of radians.
pub fn aim_of(radians: f32) -> u16 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to AIM_STEPS")]
    let parts = (radians / TAU * f32::from(AIM_STEPS)).rem_euclid(f32::from(AIM_STEPS)).round() as u16;
    parts % AIM_STEPS
}

impl Tank {
    /// A tank at rest that is as far from reloaded as can be.
    pub fn at(position: [f32; 2]) -> Tank {
        Tank { position, reload: RELOAD_STEPS, ..Tank::default() }
    }

    /// One step as ordered; the shot, if one is fired.
    pub fn step(&mut self, order: Order) -> Option<Shot> {
        self.aim = radians(order.aim);
        self.accelerate([f32::from(order.east.signum()), f32::from(order.south.signum())]);
        for (at, velocity) in self.position.iter_mut().zip(self.velocity) {
            *at += velocity * STEP_S;
        }
        self.stay_inside();
        self.reload = self.reload.saturating_sub(1);
        if !order.fire || self.reload > 0 {
            return None;
        }
        (self.reload, self.shots) = (RELOAD_STEPS, self.shots.wrapping_add(1));
        let claimed = order.from.map(legal).filter(|from| apart(*from, self.position) <= LENIENCE_M);
        Some(Shot { from: claimed.unwrap_or(self.position), aim: self.aim, number: self.shots })
    }

    /// The order as it is sent: if this tank fires in the step that obeys it, it says from where.
    pub fn aimed(self, order: Order) -> Order {
        let mut then = self;
        let fired = then.step(Order { from: None, ..order });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the arena")]
        let parts = |at: f32| (at * PARTS_PER_M).round() as u16;
        Order { from: fired.map(|shot| shot.from.map(parts)), ..order }
    }

    fn accelerate(&mut self, way: [f32; 2]) {
        let is_diagonal = way[0] != 0.0 && way[1] != 0.0;
        let speed = if is_diagonal { SPEED_MPS * FRAC_1_SQRT_2 } else { SPEED_MPS };
        let lacks = [way[0] * speed - self.velocity[0], way[1] * speed - self.velocity[1]];
        let length = norm(lacks);
        let part = if length > 0.0 { (ACCELERATION_MPS2 * STEP_S / length).min(1.0) } else { 0.0 };
        self.velocity = [self.velocity[0] + lacks[0] * part, self.velocity[1] + lacks[1] * part];
    }

    fn stay_inside(&mut self) {
        for (centre, radius) in PILLARS {
            let off = [self.position[0] - centre[0], self.position[1] - centre[1]];
            let (away, least) = (norm(off), radius + TANK_RADIUS_M);
            if away < least {
                // In the very middle any way out is as good.
                let out = if away > 0.0 { [off[0] / away, off[1] / away] } else { [1.0, 0.0] };
                self.position = [centre[0] + out[0] * least, centre[1] + out[1] * least];
                let into = (self.velocity[0] * out[0] + self.velocity[1] * out[1]).min(0.0);
                self.velocity = [self.velocity[0] - out[0] * into, self.velocity[1] - out[1] * into];
            }
        }
        for ((at, velocity), side) in self.position.iter_mut().zip(&mut self.velocity).zip(SIDES_M) {
            let inside = at.clamp(TANK_RADIUS_M, side - TANK_RADIUS_M);
            if inside != *at {
                (*at, *velocity) = (inside, 0.0);
            }
        }
    }
}

impl Shot {
    /// Which of these discs the shot meets first, if no pillar is before it.
    pub fn meets<T: Copy>(&self, targets: impl IntoIterator<Item = (T, [f32; 2])>) -> Option<T> {
        let until =
            PILLARS.iter().filter_map(|(at, radius)| self.reaches(*at, *radius)).fold(RANGE_M, f32::min);
        let met =
            targets.into_iter().filter_map(|(target, at)| Some((self.reaches(at, TANK_RADIUS_M)?, target)));
        met.filter(|(away, _)| *away <= until).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, target)| target)
    }

    /// How far it flies until it meets a disc.
    pub fn reaches(&self, at: [f32; 2], radius: f32) -> Option<f32> {
        let (south, east) = self.aim.sin_cos();
        let to = [at[0] - self.from[0], at[1] - self.from[1]];
        let along = to[0] * east + to[1] * south;
        let aside = to[0] * south - to[1] * east;
        let half = radius * radius - aside * aside;
        // Whoever stands in a disc does not shoot at it.
        (half >= 0.0).then(|| along - half.sqrt()).filter(|away| (0.0..=RANGE_M).contains(away))
    }

    /// By how much it passes the edge of the nearest disc ahead, or how deep in it goes, in metres.
    pub fn margin(&self, targets: impl IntoIterator<Item = [f32; 2]>) -> Option<f32> {
        let (south, east) = self.aim.sin_cos();
        let edges = targets.into_iter().filter_map(|at| {
            let to = [at[0] - self.from[0], at[1] - self.from[1]];
            (to[0] * east + to[1] * south > 0.0)
                .then(|| ((to[0] * south - to[1] * east).abs() - TANK_RADIUS_M).abs())
        });
        edges.min_by(f32::total_cmp)
    }
}

/// A received place, clamped to the arena and outside of pillars.
fn legal(parts: [u16; 2]) -> [f32; 2] {
    let mut tank = Tank::at(parts.map(|part| f32::from(part) / PARTS_PER_M));
    tank.stay_inside();
    tank.position
}

/// How far two places are apart.
fn apart(a: [f32; 2], b: [f32; 2]) -> f32 {
    norm([a[0] - b[0], a[1] - b[1]])
}

/// Length of a vector. Without `hypot`, whose last bits differ between machines.
fn norm([x, y]: [f32; 2]) -> f32 {
    (x * x + y * y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_aimed_at_is_read_back() {
        (0..AIM_STEPS).for_each(|aim| assert_eq!(aim_of(radians(aim)), aim));
        assert_eq!(aim_of(-TAU / 4.0), 768);
    }

    #[test]
    fn an_order_shows_in_its_step_and_a_gun_reloads() {
        let mut tank = Tank::at([48.0, 10.0]);
        let order = Order { east: 1, aim: 256, fire: true, ..Order::default() };
        let fired: Vec<bool> = (0..24).map(|_| tank.step(order).is_some()).collect();
        assert!(tank.velocity[0] > 0.0 && aim_of(tank.aim) == 256);
        assert_eq!((fired.iter().filter(|fired| **fired).count(), tank.shots), (3, 3));
    }

    #[test]
    fn a_shot_flies_from_where_it_was_seen_and_from_nowhere_else() {
        let order = Order { aim: 256, fire: true, ..Order::default() };
        let loaded = |position| Tank { reload: 1, ..Tank::at(position) };
        let sent = loaded([40.0, 10.0]).aimed(order);
        assert_eq!(sent, Order { from: Some([40 * 512, 10 * 512]), ..order });
        assert_eq!(Tank::at([40.0, 10.0]).aimed(order).from, None, "it is not loaded");
        let from = |position, order| loaded(position).step(order).map(|shot| shot.from);
        // It was pushed, and did not know.
        assert_eq!(from([41.0, 10.5], sent), Some([40.0, 10.0]));
        assert_eq!(from([42.0, 10.5], sent), Some([42.0, 10.5]), "too far off is made up");
        // Nobody shoots out of a pillar: those do not stop what begins in them.
        let inside = Order { from: Some([24 * 512, 15 * 512 + 400]), ..order };
        let shot = from([24.0, 15.4], inside);
        assert!(shot.is_some_and(|[_, south]| south <= 20.0 - 3.0 - TANK_RADIUS_M), "{shot:?}");
        assert_eq!(from([24.0, 15.4], Order { from: Some([0, u16::MAX]), ..order }), Some([24.0, 15.4]));
    }

    #[test]
    fn a_shot_meets_the_first_and_not_what_a_pillar_hides() {
        let shot = Shot { from: [10.0, 32.0], aim: 0.0, number: 1 };
        assert_eq!(shot.meets([(1, [35.0, 32.0]), (2, [20.0, 33.0]), (3, [5.0, 32.0])]), Some(2));
        assert_eq!(shot.meets([(1, [60.0, 32.0])]), None, "the middle pillar is before it");
        assert_eq!(shot.meets([(1, [20.0, 34.0])]), None);
    }

    proptest! {
        #[test]
        fn nobody_leaves_the_arena_or_enters_a_pillar(
            start in (2.0f32..94.0, 2.0f32..62.0),
            kick in (-32.0f32..32.0, -32.0f32..32.0),
            ways in proptest::collection::vec((-1i8..=1, -1i8..=1), 1..100),
        ) {
            let mut tank = Tank { velocity: [kick.0, kick.1], ..Tank::at([start.0, start.1]) };
            for (east, south) in ways {
                tank.step(Order { east, south, ..Order::default() });
                for (at, side) in tank.position.iter().zip(SIDES_M) {
                    prop_assert!((TANK_RADIUS_M..=side - TANK_RADIUS_M).contains(at));
                }
                for (centre, radius) in PILLARS {
                    let away = apart(tank.position, centre);
                    prop_assert!(away > radius + TANK_RADIUS_M - 1e-3);
                }
            }
        }
    }
}
