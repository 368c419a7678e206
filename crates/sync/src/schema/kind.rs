//! Kinds of fields, and how many numbers, lanes and blobs a value of each has.

use super::lanes::{LaneKind, LaneRole, VelocityLane};
use super::{Choice, Field, Interpolation};
use crate::limits::{
    ANGLE_STEPS_MAX, BLOB_BYTES_MAX, CHOICES_MAX, FIELD_ABS_MAX, FIELD_SPAN_MAX, FIELD_STEP_MIN, INT_ABS_MAX,
    RESOLUTION_BITS_MAX, ROTATION_BITS_MAX, ROTATION_BITS_MIN, UNIT_VECTOR_BITS_MAX, UNIT_VECTOR_BITS_MIN,
};
use parlor_proto::limits::LABEL_BYTES_MAX;

/// Maximum numbers of a field's value: those of a body.
pub const FIELD_NUMBERS_MAX: usize = 13;

/// A range of numbers and its resolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The minimum, in the unit of the field. Numbers below it are clamped.
    pub min: f64,
    /// The maximum, in the unit of the field, above `min`. Numbers above it are clamped.
    pub max: f64,
    /// The distance of two adjacent numbers, in the unit of the field, above 0. A value is rounded to the
    /// nearest one, so its error is at most half of it.
    pub step: f64,
}

impl Range {
    /// Creates a range from `min` to `max` in steps of `step`.
    pub const fn new(min: f64, max: f64, step: f64) -> Self {
        Range { min, max, step }
    }

    /// The number of steps in the range, and so the largest lane. Saturates for a range that is invalid in a
    /// schema.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
    pub fn span(self) -> u32 {
        // Rounding may make the intended number of steps slightly smaller.
        ((self.max - self.min) / self.step + 1.0 / 1024.0).floor() as u32
    }
}

/// The kind of a field: its values and their resolution.
///
/// | kind | Rust types | numbers | lanes |
/// |---|---|---|---|
/// | `Bool` | `bool` | 1: 0 or 1 | 1 |
/// | `Int` | all integers up to 64 bits | 1 | 1: the number − `min` |
/// | `Float` | `f32`, `f64` | 1 | 1: steps above `min` |
/// | `Angle` | `f32`, `f64` | 1, in radians | 1: part of a turn |
/// | `Vector` | `[f32; 2]`, `[f32; 3]`, `[f64; 2]`, `[f64; 3]` | `dims` | `dims`, as of `Float` |
/// | `UnitVector` | `[f32; 3]`, `[f64; 3]` | 3 | 2: an octahedron, unfolded |
/// | `Rotation` | `[f32; 4]`, `[f64; 4]` as x, y, z, w | 4 | 4: which is largest, and the others |
/// | `Transform` | [`Transform`](super::Transform) | 7 | 3 + 4 |
/// | `Body` | [`Body`](super::Body) | 13 | 3 + 4 + 3 + 3 |
/// | `Enum` | what implements [`Choice`] | 1: its index | 1 |
/// | `Bytes` of 4 and of 8 | `f32` and `f64` too: [`plain_f32`](Kind::plain_f32) | none | none, but one blob |
/// | `Text`, `Bytes`, `Any` | `String`; `Vec<u8>`, `Bytes`; `Value` | none | none, but one blob |
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Yes or no.
    Bool,
    /// A whole number.
    Int {
        /// The minimum. Numbers below it are clamped.
        min: i64,
        /// The maximum, at most [`FIELD_SPAN_MAX`] above `min`. Numbers above it are clamped.
        max: i64,
    },
    /// A number in a range.
    Float {
        /// See [`Range::min`].
        min: f64,
        /// See [`Range::max`].
        max: f64,
        /// See [`Range::step`].
        step: f64,
    },
    /// An angle in radians, cyclic; it is read from −π (exclusive) to π.
    Angle {
        /// Steps of a turn, 2 to [`ANGLE_STEPS_MAX`].
        steps: u32,
    },
    /// A vector whose components share a range.
    Vector {
        /// The number of components: 2 or 3.
        dims: u8,
        /// See [`Range::min`].
        min: f64,
        /// See [`Range::max`].
        max: f64,
        /// See [`Range::step`].
        step: f64,
    },
    /// A direction in space. A vector of length 0 counts as +z.
    UnitVector {
        /// Bits of each of its two lanes, [`UNIT_VECTOR_BITS_MIN`] to [`UNIT_VECTOR_BITS_MAX`].
        bits: u8,
    },
    /// A rotation in space, a quaternion x, y, z, w. One of length 0 counts as the identity.
    Rotation {
        /// Bits of each of the three parts that are sent, [`ROTATION_BITS_MIN`] to [`ROTATION_BITS_MAX`].
        bits: u8,
    },
    /// Position and rotation.
    Transform {
        /// The range of each component of the position.
        position: Range,
        /// As for `Rotation`.
        rotation_bits: u8,
    },
    /// Position, rotation, velocity and angular velocity.
    Body {
        /// The range of each component of the position.
        position: Range,
        /// As for `Rotation`.
        rotation_bits: u8,
        /// The range of each component of the velocity, in units of the position per second.
        velocity: Range,
        /// The range of each component of the angular velocity, in radians per second around the axes of the
        /// world.
        spin: Range,
    },
    /// One of several names.
    Enum {
        /// The names, by index.
        names: Vec<String>,
    },
    /// Text.
    Text {
        /// Maximum bytes of UTF-8.
        bytes_max: u16,
    },
    /// Bytes defined by the game.
    Bytes {
        /// Maximum bytes.
        bytes_max: u16,
    },
    /// Any [`Value`](crate::value::Value).
    Any {
        /// Maximum bytes of its encoding.
        bytes_max: u16,
    },
}

impl Kind {
    /// A whole number from `min` to `max`.
    pub const fn int(min: i64, max: i64) -> Kind {
        Kind::Int { min, max }
    }

    /// A number from `min` to `max` in steps of `step`.
    pub const fn float(min: f64, max: f64, step: f64) -> Kind {
        Kind::Float { min, max, step }
    }

    /// A number from `min` to `max` with a resolution of `bits` bits (1 to 31); both ends are exact.
    pub fn float_bits(min: f64, max: f64, bits: u8) -> Kind {
        let steps = 2f64.powi(i32::from(bits)) - 1.0;
        Kind::Float { min, max, step: (max - min) / steps }
    }

    /// Any finite `f32` as it is, without a range: 4 bytes, read and written as `f32`. It is not quantized, and so
    /// neither interpolated nor extrapolated: what moves is better a [`float`](Self::float).
    pub const fn plain_f32() -> Kind {
        Kind::Bytes { bytes_max: 4 }
    }

    /// As [`plain_f32`](Self::plain_f32), for `f64`: 8 bytes.
    pub const fn plain_f64() -> Kind {
        Kind::Bytes { bytes_max: 8 }
    }

    /// An angle in radians, with `steps` steps a turn.
    pub const fn angle(steps: u32) -> Kind {
        Kind::Angle { steps }
    }

    /// A vector in the plane, with components from `min` to `max` in steps of `step`.
    pub const fn vector2(min: f64, max: f64, step: f64) -> Kind {
        Kind::Vector { dims: 2, min, max, step }
    }

    /// A vector in space, with components from `min` to `max` in steps of `step`.
    pub const fn vector3(min: f64, max: f64, step: f64) -> Kind {
        Kind::Vector { dims: 3, min, max, step }
    }

    /// A direction in space.
    pub const fn unit_vector(bits: u8) -> Kind {
        Kind::UnitVector { bits }
    }

    /// A rotation in space.
    pub const fn rotation(bits: u8) -> Kind {
        Kind::Rotation { bits }
    }

    /// The variants of a type, in order.
    pub fn choice<C: Choice>() -> Kind {
        Kind::Enum { names: C::NAMES.iter().map(|&name| name.to_owned()).collect() }
    }

    /// Text of at most `bytes_max` bytes.
    pub const fn text(bytes_max: u16) -> Kind {
        Kind::Text { bytes_max }
    }

    /// At most `bytes_max` bytes.
    pub const fn bytes(bytes_max: u16) -> Kind {
        Kind::Bytes { bytes_max }
    }

    /// Any value that takes at most `bytes_max` bytes.
    pub const fn any(bytes_max: u16) -> Kind {
        Kind::Any { bytes_max }
    }

    /// Creates a field of this kind with this interpolation.
    pub fn interpolation(self, interpolation: Interpolation) -> Field {
        Field { interpolation, ..self.into() }
    }

    /// Creates a field of this kind with a threshold: a change of at most `steps` quantized steps is ignored.
    pub fn threshold(self, steps: u32) -> Field {
        Field { threshold: steps, ..self.into() }
    }

    /// Creates a field of this kind with a priority in a player's own state: 256 is normal, 512 twice as urgent.
    pub fn priority(self, priority: u16) -> Field {
        Field::from(self).priority(priority)
    }

    /// The number of lanes of a value.
    pub const fn lanes(&self) -> usize {
        match self {
            Kind::Bool | Kind::Int { .. } | Kind::Float { .. } | Kind::Angle { .. } | Kind::Enum { .. } => 1,
            Kind::Vector { dims, .. } => *dims as usize,
            Kind::UnitVector { .. } => 2,
            Kind::Rotation { .. } => 4,
            Kind::Transform { .. } => 7,
            Kind::Body { .. } => 13,
            Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => 0,
        }
    }

    /// The count of numbers of a value, before it is quantized: at most [`FIELD_NUMBERS_MAX`].
    pub const fn numbers(&self) -> usize {
        match self {
            Kind::UnitVector { .. } => 3,
            kind => kind.lanes(),
        }
    }

    /// Maximum bytes of a value's blob; `None` for kinds without.
    pub const fn blob_bytes_max(&self) -> Option<usize> {
        match self {
            Kind::Text { bytes_max } | Kind::Bytes { bytes_max } | Kind::Any { bytes_max } => {
                Some(*bytes_max as usize)
            }
            _ => None,
        }
    }

    /// The default interpolation of this kind.
    pub const fn interpolation_default(&self) -> Interpolation {
        match self {
            Kind::Float { .. } | Kind::Angle { .. } | Kind::Vector { .. } => Interpolation::Linear,
            Kind::UnitVector { .. } | Kind::Rotation { .. } | Kind::Transform { .. } => {
                Interpolation::Spherical
            }
            Kind::Body { .. } => Interpolation::Hermite,
            _ => Interpolation::None,
        }
    }

    /// Whether this kind supports an interpolation.
    pub const fn admits(&self, interpolation: Interpolation) -> bool {
        match interpolation {
            Interpolation::None => true,
            Interpolation::Linear => {
                !matches!(self, Kind::Bool | Kind::Enum { .. }) && self.blob_bytes_max().is_none()
            }
            Interpolation::Spherical => matches!(
                self,
                Kind::UnitVector { .. } | Kind::Rotation { .. } | Kind::Transform { .. } | Kind::Body { .. }
            ),
            Interpolation::Hermite => matches!(self, Kind::Body { .. }),
        }
    }

    /// Appends the kind of each lane to `out`, which has those of the component's fields before it.
    pub(super) fn push_lanes(&self, out: &mut Vec<LaneKind>) {
        let mut push = |span: u32, role: LaneRole| out.push(LaneKind { span, role });
        match self {
            Kind::Bool => push(1, LaneRole::Flag),
            Kind::Int { min, max } => {
                let span = u32::try_from(max.saturating_sub(*min)).unwrap_or(u32::MAX);
                push(span, LaneRole::Plain);
            }
            Kind::Float { min, max, step } => {
                push(Range::new(*min, *max, *step).span(), LaneRole::Position { velocity: None });
            }
            Kind::Angle { steps } => push(steps.saturating_sub(1), LaneRole::Cyclic { steps: *steps }),
            Kind::Vector { dims, min, max, step } => {
                let span = Range::new(*min, *max, *step).span();
                (0..*dims).for_each(|_| push(span, LaneRole::Position { velocity: None }));
            }
            Kind::UnitVector { bits } => {
                let span = 2 * middle(*bits);
                (0..2).for_each(|_| push(span, LaneRole::Plain));
            }
            Kind::Rotation { bits } => push_rotation(*bits, out),
            Kind::Transform { position, rotation_bits } => {
                (0..3).for_each(|_| push(position.span(), LaneRole::Position { velocity: None }));
                push_rotation(*rotation_bits, out);
            }
            Kind::Body { position, rotation_bits, velocity, spin } => {
                let first = out.len();
                for axis in 0..3 {
                    let velocity = Some(VelocityLane::new(first + 7 + axis, *position, *velocity));
                    out.push(LaneKind { span: position.span(), role: LaneRole::Position { velocity } });
                }
                push_rotation(*rotation_bits, out);
                for range in [velocity, velocity, velocity, spin, spin, spin] {
                    out.push(LaneKind { span: range.span(), role: LaneRole::Plain });
                }
            }
            Kind::Enum { names } => {
                let last = u32::try_from(names.len()).unwrap_or(u32::MAX).saturating_sub(1);
                push(last, LaneRole::Choice);
            }
            Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => {}
        }
    }

    /// Checks the parameters. The error continues "the field …".
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            Kind::Bool => Ok(()),
            Kind::Int { min, max } => check_int(*min, *max),
            Kind::Float { min, max, step } => check_range(Range::new(*min, *max, *step)),
            Kind::Angle { steps } if (2..=ANGLE_STEPS_MAX).contains(steps) => Ok(()),
            Kind::Angle { .. } => Err("must have 2 to 2^22 parts of a turn"),
            Kind::Vector { dims, min, max, step } => match dims {
                2 | 3 => check_range(Range::new(*min, *max, *step)),
                _ => Err("must have 2 or 3 components"),
            },
            Kind::UnitVector { bits } if (UNIT_VECTOR_BITS_MIN..=UNIT_VECTOR_BITS_MAX).contains(bits) => {
                Ok(())
            }
            Kind::UnitVector { .. } => Err("must have 4 to 16 bits for each lane of a direction"),
            Kind::Rotation { bits } => check_rotation(*bits),
            Kind::Transform { position, rotation_bits } => {
                check_range(*position)?;
                check_rotation(*rotation_bits)
            }
            Kind::Body { position, rotation_bits, velocity, spin } => {
                [position, velocity, spin].into_iter().try_for_each(|range| check_range(*range))?;
                check_rotation(*rotation_bits)
            }
            Kind::Enum { names } => check_names(names),
            Kind::Text { bytes_max } | Kind::Bytes { bytes_max } | Kind::Any { bytes_max } => {
                match *bytes_max {
                    0 => Err("must allow one byte or more"),
                    max if usize::from(max) > BLOB_BYTES_MAX => Err("may allow at most 16 KiB"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Half of the steps of a lane with `bits` bits and an exact middle: 2^(bits − 1) − 1.
pub(super) const fn middle(bits: u8) -> u32 {
    // Only an invalid schema has more.
    let bits = if bits > 16 { 16 } else { bits };
    (1u32 << bits >> 1).saturating_sub(1)
}

fn push_rotation(bits: u8, out: &mut Vec<LaneKind>) {
    out.push(LaneKind { span: 3, role: LaneRole::RotationLargest });
    let part = LaneKind { span: 2 * middle(bits), role: LaneRole::RotationPart };
    out.extend([part; 3]);
}

fn check_int(min: i64, max: i64) -> Result<(), &'static str> {
    if min >= max {
        return Err("has no range: min must be below max");
    }
    if min < -INT_ABS_MAX || max > INT_ABS_MAX {
        return Err("goes beyond 2^53, where not every whole number can be told apart");
    }
    if max - min > i64::from(FIELD_SPAN_MAX) {
        return Err("has more than 2^31 values: narrow its range");
    }
    Ok(())
}

fn check_range(range: Range) -> Result<(), &'static str> {
    let Range { min, max, step } = range;
    if [min, max, step].iter().any(|number| !number.is_finite()) {
        return Err("has a range that is not finite");
    }
    if [min, max, step].iter().any(|number| number.is_subnormal()) {
        return Err("has a subnormal number in its range: write 0 for it");
    }
    if min >= max {
        return Err("has no range: min must be below max");
    }
    if min < -FIELD_ABS_MAX || max > FIELD_ABS_MAX {
        return Err("has a range beyond 10^15: use a larger unit");
    }
    if step < FIELD_STEP_MIN {
        return Err("has a step that is not above 0, or below 10^-15");
    }
    let steps = (max - min) / step;
    if steps < 0.5 || range.span() == 0 {
        return Err("has a step that is larger than its range");
    }
    if range.span() > FIELD_SPAN_MAX {
        return Err("has more than 2^31 steps: make its step larger or its range smaller");
    }
    if min.abs().max(max.abs()) / step > (1u64 << RESOLUTION_BITS_MAX) as f64 {
        return Err("has a step too fine for numbers as large as its range: move the range closer to 0");
    }
    Ok(())
}

fn check_rotation(bits: u8) -> Result<(), &'static str> {
    if (ROTATION_BITS_MIN..=ROTATION_BITS_MAX).contains(&bits) {
        Ok(())
    } else {
        Err("must have 4 to 12 bits for each part of a rotation")
    }
}

fn check_names(names: &[String]) -> Result<(), &'static str> {
    if names.is_empty() || names.len() > CHOICES_MAX {
        return Err("must have 1 to 256 names to choose from");
    }
    if names.iter().any(|name| name.is_empty() || name.len() > LABEL_BYTES_MAX) {
        return Err("has a name to choose from that is not 1 to 64 bytes long");
    }
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("has a name to choose from twice");
    }
    Ok(())
}
