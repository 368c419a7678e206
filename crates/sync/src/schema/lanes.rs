//! The kinds of a component's lanes, for the coder.

use super::kind::Range;
use parlor_proto::TickRate;

/// One lane: a quantized number from 0 to its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneKind {
    /// The largest number, at most [`FIELD_SPAN_MAX`](crate::limits::FIELD_SPAN_MAX).
    pub span: u32,
    /// The meaning of the number.
    pub role: LaneRole,
}

/// The meaning of a lane's number, as far as it helps to predict it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaneRole {
    /// A number without a prediction: an integer, a velocity, half of a direction.
    Plain,
    /// A part of a turn: 0 follows `steps − 1`.
    Cyclic {
        /// Steps of a turn.
        steps: u32,
    },
    /// A number that may move steadily: of `Float`, `Vector` or a position.
    Position {
        /// The lane with its velocity, if there is one.
        velocity: Option<VelocityLane>,
    },
    /// Which part of a quaternion is omitted: 0 x, 1 y, 2 z, 3 w. Three parts follow.
    RotationLargest,
    /// One of the other three parts of a quaternion, in the order x, y, z, w; its middle is 0.
    RotationPart,
    /// Yes or no.
    Flag,
    /// The index of a name.
    Choice,
}

/// The lane with the velocity of a position's lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VelocityLane {
    /// Its index among the lanes of the component.
    pub lane: usize,
    /// Steps of the position per second for a velocity lane of 0: the velocity's min ÷ the position's step.
    pub offset_per_s: f64,
    /// Steps of the position per second for each step of the velocity's lane: the velocity's step ÷ the
    /// position's step.
    pub scale_per_s: f64,
    /// The span of the velocity's lane.
    pub span: u32,
}

/// The motion of a position in one tick, in fixed point: `(offset + scale × velocity's lane) / 2^16` steps.
/// For every lane within its span the sum is within ±2^55, so that 128 ticks of it fit an `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerTick {
    /// Steps of the position, × 2^16.
    pub offset_q16: i64,
    /// Steps of the position for each step of the velocity, × 2^16.
    pub scale_q16: i64,
}

/// Fraction bits of a [`PerTick`].
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
    /// The difference between two numbers of this lane in steps; for a cyclic one, by the shorter way.
    pub fn distance(&self, a: i32, b: i32) -> u32 {
        let apart = a.abs_diff(b);
        match self.role {
            LaneRole::Cyclic { steps } => apart.min(steps.saturating_sub(apart)),
            _ => apart,
        }
    }
}
