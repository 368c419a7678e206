//! What the lanes of a component are, for whoever codes them.

use super::kind::Range;
use parlor_proto::TickRate;

/// One lane: a quantized number from 0 to its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneKind {
    /// Largest number, at most [`FIELD_SPAN_MAX`](crate::limits::FIELD_SPAN_MAX).
    pub span: u32,
    /// What the number means.
    pub role: LaneRole,
}

/// What the number in a lane means, as far as it helps to foretell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaneRole {
    /// A number of which nothing is known: a whole number, a velocity, half of a direction.
    Plain,
    /// Part of a turn: after `steps − 1` comes 0.
    Cyclic {
        /// Parts of a turn.
        steps: u32,
    },
    /// A number that may move steadily: of `Float` and `Vector`, and of positions.
    Position {
        /// The lane that says how fast, if there is one.
        velocity: Option<VelocityLane>,
    },
    /// Which part of a quaternion is left out: 0 x, 1 y, 2 z, 3 w. Three parts follow.
    RotationLargest,
    /// One of the other three parts of a quaternion, in the order x, y, z, w; its middle is 0.
    RotationPart,
    /// Yes or no.
    Flag,
    /// Index of a name.
    Choice,
}

/// The lane that holds the velocity of a position's lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VelocityLane {
    /// Its index among the lanes of the component.
    pub lane: usize,
    /// Steps of the position per second when the velocity's lane is 0: velocity's min ÷ position's step.
    pub offset_per_s: f64,
    /// Steps of the position per second for each step of the velocity's lane: velocity's step ÷ position's
    /// step.
    pub scale_per_s: f64,
    /// Span of the velocity's lane.
    pub span: u32,
}

/// How far a position moves in one tick, as numbers of fixed point: `(offset + scale × velocity's lane) /
/// 2^16` steps. For every lane within its span the sum is within ±2^55, so that 128 ticks of it fit an `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerTick {
    /// Steps of the position, × 2^16.
    pub offset_q16: i64,
    /// Steps of the position for each step of the velocity, × 2^16.
    pub scale_q16: i64,
}

/// Bits after the point of a [`PerTick`].
pub const PER_TICK_FRACTION_BITS: u32 = 16;

impl VelocityLane {
    pub(super) fn new(lane: usize, position: Range, velocity: Range) -> Self {
        VelocityLane {
            lane,
            offset_per_s: velocity.min / position.step,
            scale_per_s: velocity.step / position.step,
            span: velocity.span(),
        }
    }

    /// The same for one tick: `round(per second × 2^16 ÷ Hz)`, halves away from 0, each limited to 2^54 in
    /// all.
    #[allow(clippy::cast_possible_truncation)] // a float saturates, and is limited
    pub fn per_tick(&self, rate: TickRate) -> PerTick {
        const LIMIT: i64 = 1 << 54;
        let fixed =
            |per_s: f64| (per_s * f64::from(1u32 << PER_TICK_FRACTION_BITS) / f64::from(rate.hz())).round();
        let scale_max = LIMIT / i64::from(self.span.max(1));
        PerTick {
            offset_q16: (fixed(self.offset_per_s) as i64).clamp(-LIMIT, LIMIT),
            scale_q16: (fixed(self.scale_per_s) as i64).clamp(0, scale_max),
        }
    }
}

impl LaneKind {
    /// By how many steps two numbers of this lane differ; of a cyclic one, the shorter way.
    pub fn distance(&self, a: i32, b: i32) -> u32 {
        let apart = a.abs_diff(b);
        match self.role {
            LaneRole::Cyclic { steps } => apart.min(steps.saturating_sub(apart)),
            _ => apart,
        }
    }
}
