//! Walkers and vehicles: the benchmark scene of state coding.
//!
//! A thousand walkers share an area of 512 × 512 × 32 m. Each has its own pace, from a person's to a
//! vehicle's. About every second, at random moments, it chooses an acceleration and a turn: it steers on,
//! straightens, brakes, or heads for another place. The choice takes effect within tenths of a second, as
//! with limbs and engines. It stands on hills, faces its direction, and leans into slopes and accelerations.
//!
//! The motion is drawn from a seed: the same calls give the same motion.

use parlor_impair::Rng;

/// Side of the area, in metres. Positions go from 0 to it along x and y.
pub const SIDE_M: f64 = 512.0;
/// Height of the area, in metres. Positions go from 0 to it along z.
pub const HEIGHT_M: f64 = 32.0;

/// A set of walkers.
#[derive(Clone, Debug)]
pub struct Walkers {
    rng: Rng,
    hills: Hills,
    all: Vec<Walker>,
    /// Number of moving walkers, from the first on; the others stand.
    moving: usize,
}

#[derive(Clone, Debug)]
struct Walker {
    /// Top speed, in m/s.
    pace: f64,
    /// How fast it reaches a chosen acceleration or turn, in 1/s.
    nimble: f64,
    x: f64,
    y: f64,
    heading: f64,
    speed: f64,
    acceleration: f64,
    turn: f64,
    pitch: f64,
    /// Its aim: speed in m/s, turn in rad/s, and the remaining time.
    aim_speed: f64,
    aim_turn: f64,
    decided_for_s: f64,
}

/// Heights as a sum of waves.
#[derive(Clone, Debug)]
struct Hills {
    /// Wave numbers along x and y, phase, and height of each.
    waves: [[f64; 4]; 6],
}

impl Hills {
    fn new(rng: &mut Rng) -> Self {
        let waves = [180.0, 130.0, 90.0, 60.0, 37.0, 21.0].map(|length: f64| {
            let (angle, phase) = (unit(rng) * core::f64::consts::TAU, unit(rng) * core::f64::consts::TAU);
            let number = core::f64::consts::TAU / length;
            [number * angle.cos(), number * angle.sin(), phase, length / 40.0]
        });
        Hills { waves }
    }

    fn height(&self, x: f64, y: f64) -> f64 {
        let sum: f64 =
            self.waves.iter().map(|[kx, ky, phase, high]| high * (kx * x + ky * y + phase).sin()).sum();
        (HEIGHT_M / 2.0 + sum).clamp(0.0, HEIGHT_M)
    }
}

/// A number from 0 to 1, exclusive.
#[allow(clippy::cast_precision_loss)]
fn unit(rng: &mut Rng) -> f64 {
    (rng.draw() >> 11) as f64 / (1u64 << 53) as f64
}

fn between(rng: &mut Rng, from: f64, to: f64) -> f64 {
    from + (to - from) * unit(rng)
}

impl Walker {
    fn new(rng: &mut Rng) -> Self {
        // Most are on foot, some ride, some drive.
        let pace = match rng.below(10) {
            0..5 => between(rng, 1.2, 2.5),
            5..8 => between(rng, 3.0, 7.0),
            _ => between(rng, 8.0, 20.0),
        };
        let mut walker = Walker {
            pace,
            nimble: between(rng, 4.0, 20.0),
            x: between(rng, 16.0, SIDE_M - 16.0),
            y: between(rng, 16.0, SIDE_M - 16.0),
            heading: between(rng, 0.0, core::f64::consts::TAU),
            speed: pace * unit(rng),
            acceleration: 0.0,
            turn: 0.0,
            pitch: 0.0,
            aim_speed: 0.0,
            aim_turn: 0.0,
            decided_for_s: 0.0,
        };
        walker.decide(rng);
        walker
    }

    fn decide(&mut self, rng: &mut Rng) {
        // Memoryless, one second on average.
        self.decided_for_s = -(1.0 - unit(rng)).ln();
        self.aim_speed = match rng.below(10) {
            0 => 0.0,
            1..5 => self.pace * between(rng, 0.3, 1.0),
            _ => self.aim_speed,
        };
        // Fast walkers turn in wide curves.
        let turn_max = (6.0 / (0.5 + self.speed)).min(2.5);
        self.aim_turn = match rng.below(3) {
            0 => 0.0,
            _ => between(rng, -turn_max, turn_max),
        };
    }

    fn step(&mut self, rng: &mut Rng, hills: &Hills, dt_s: f64) {
        self.decided_for_s -= dt_s;
        if self.decided_for_s <= 0.0 {
            self.decide(rng);
        }
        let near = |at: f64| !(12.0..=SIDE_M - 12.0).contains(&at);
        if near(self.x) || near(self.y) {
            // At the border: turn to the middle.
            let to_middle = (SIDE_M / 2.0 - self.y).atan2(SIDE_M / 2.0 - self.x);
            let off = (to_middle - self.heading).sin();
            self.aim_turn = 2.0 * off.signum() * off.abs().max(0.3);
        }
        let follow = (self.nimble * dt_s).min(1.0);
        // Comfortable for the pace: a person gains 2 m/s in a second, a vehicle about 4.
        let hardest = 1.0 + self.pace.sqrt();
        let wanted = ((self.aim_speed - self.speed) * 1.5).clamp(-1.5 * hardest, hardest);
        self.acceleration += (wanted - self.acceleration) * follow;
        self.turn += (self.aim_turn - self.turn) * follow;
        self.speed = (self.speed + self.acceleration * dt_s).clamp(0.0, self.pace);
        self.heading += self.turn * dt_s;
        self.x = (self.x + self.heading.cos() * self.speed * dt_s).clamp(0.0, SIDE_M);
        self.y = (self.y + self.heading.sin() * self.speed * dt_s).clamp(0.0, SIDE_M);
        let ahead = hills.height(self.x + self.heading.cos(), self.y + self.heading.sin());
        let slope = (ahead - hills.height(self.x, self.y)).atan();
        self.pitch += (slope + 0.02 * self.acceleration - self.pitch) * follow;
    }
}

impl Walkers {
    /// `count` walkers of this seed, all moving.
    pub fn new(seed: u64, count: usize) -> Self {
        let mut rng = Rng::new(seed);
        let hills = Hills::new(&mut rng);
        let all = (0..count).map(|_| Walker::new(&mut rng)).collect();
        Walkers { rng, hills, all, moving: count }
    }

    /// The same walkers, of which only `fraction` (0 to 1) move, always the same ones; the others stand.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn moving(mut self, fraction: f64) -> Self {
        self.moving = (self.all.len() as f64 * fraction.clamp(0.0, 1.0)).round() as usize;
        self
    }

    /// Walkers, standing ones included.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Lets them move for `dt_s` seconds. Motion is computed in steps of at most 1/60 s.
    pub fn step(&mut self, dt_s: f64) {
        let steps = (dt_s * 60.0).ceil().max(1.0);
        for index in 0..self.len() {
            if !self.is_moving(index) {
                continue;
            }
            let mut left = steps;
            while left > 0.5 {
                self.all[index].step(&mut self.rng, &self.hills, dt_s / steps);
                left -= 1.0;
            }
        }
    }

    /// Whether the walker moves at all. Those that do are spread evenly over all.
    pub fn is_moving(&self, index: usize) -> bool {
        let count = self.len();
        count > 0 && index * self.moving / count != (index + 1) * self.moving / count
    }

    /// Position in metres, and rotation as a quaternion x, y, z, w of length 1.
    ///
    /// # Panics
    ///
    /// If there is no walker of this index.
    pub fn get(&self, index: usize) -> ([f64; 3], [f64; 4]) {
        let walker = &self.all[index];
        let position = [walker.x, walker.y, self.hills.height(walker.x, walker.y)];
        let ((sin_yaw, cos_yaw), (sin_pitch, cos_pitch)) =
            ((walker.heading / 2.0).sin_cos(), (-walker.pitch / 2.0).sin_cos());
        // First the pitch around its own y axis, then the yaw around z.
        (position, [-sin_yaw * sin_pitch, cos_yaw * sin_pitch, sin_yaw * cos_pitch, cos_yaw * cos_pitch])
    }
}
