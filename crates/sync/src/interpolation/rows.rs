//! Interpolates rows of lanes between two updates, and extrapolates a little beyond the newer one.

use crate::limits::EXTRAPOLATION_MAX;
use crate::schema::{Component, FIELD_NUMBERS_MAX, Interpolation, Kind, Replicated, RowReader};
use bytes::Bytes;
use core::f64::consts::{PI, TAU};

/// One row of a component, as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// All lanes of the component.
    pub lanes: &'a [i32],
    /// All blobs of the component.
    pub blobs: &'a [Bytes],
}

/// An interpolated row: numbers that need not be whole steps. Reusing it avoids allocations.
///
/// ```
/// use parlor_sync::interpolation::{Row, Sample};
/// use parlor_sync::replicated;
/// use parlor_sync::schema::{Kind, Replicated};
///
/// struct Door {
///     open: f32,
/// }
/// replicated!(Door as "door" => { open: Kind::float(0.0, 10.0, 0.1) });
///
/// let (older, newer) = (Row { lanes: &[10], blobs: &[] }, Row { lanes: &[20], blobs: &[] });
/// let (door, mut sample) = (Door::component(), Sample::default());
/// sample.mix(&door, older, newer, 0.1, 0.25);
/// assert_eq!(sample.read::<Door>(&door).open, 1.25);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    numbers: Vec<f64>,
    blobs: Vec<Bytes>,
}

impl Sample {
    /// Sets this to the row at `t` between `older` and `newer`, rows of `component` that are `interval_s`
    /// seconds apart: `older` for `t` up to 0 (and for NaN), `newer` at 1.
    ///
    /// Fields move as their [`Interpolation`] says. Beyond 1 moving fields are extrapolated: a body by its
    /// velocity and spin, every other field by its motion between the two rows. The limit is
    /// [`EXTRAPOLATION_MAX`] and the range of each field. Pass a `t` of at most 1 to avoid extrapolation.
    pub fn mix(&mut self, component: &Component, older: Row<'_>, newer: Row<'_>, interval_s: f64, t: f64) {
        let interval_s = if interval_s.is_finite() { interval_s.max(0.0) } else { 0.0 };
        let beyond_s = ((t - 1.0) * interval_s).min(EXTRAPOLATION_MAX.as_secs_f64());
        let way = match t {
            t if t <= 0.0 || t.is_nan() => Way { t: 0.0, interval_s },
            t if t <= 1.0 => Way { t, interval_s },
            _ if interval_s > 0.0 => Way { t: 1.0 + beyond_s / interval_s, interval_s },
            _ => Way { t: 1.0, interval_s },
        };
        let (from, to) = (
            RowReader::new(component, older.lanes, older.blobs),
            RowReader::new(component, newer.lanes, newer.blobs),
        );
        self.numbers.resize(component.numbers(), 0.0);
        for (index, field) in component.fields().iter().enumerate() {
            let (a, b) = (from.field(index).array(), to.field(index).array());
            let numbers = mix(&field.kind, field.interpolation, a, b, way);
            let out = &mut self.numbers[component.field_numbers(index)];
            out.iter_mut().zip(numbers).for_each(|(out, number)| *out = number);
        }
        let blobs = if way.t < 1.0 { older.blobs } else { newer.blobs };
        self.blobs.clear();
        self.blobs.extend_from_slice(blobs);
    }

    /// Returns a reader. `component` must be the one that was mixed.
    pub fn row<'a>(&'a self, component: &'a Component) -> RowReader<'a> {
        RowReader::of_numbers(component, &self.numbers, &self.blobs)
    }

    /// Reads it as a Rust type. `component` must be the one that was mixed.
    pub fn read<C: Replicated>(&self, component: &Component) -> C {
        C::read(&self.row(component))
    }

    /// Returns the numbers of all fields, in order.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// The same, mutable.
    pub(crate) fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.numbers
    }
}

/// The position between two rows, and the time between them.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// At least 0.
    t: f64,
    /// At least 0, and above 0 if `t` is above 1.
    interval_s: f64,
}

type Numbers = [f64; FIELD_NUMBERS_MAX];

fn mix(kind: &Kind, interpolation: Interpolation, a: Numbers, b: Numbers, way: Way) -> Numbers {
    if way.t <= 0.0 {
        return a;
    }
    if way.t == 1.0 {
        return b;
    }
    if interpolation == Interpolation::None {
        return if way.t < 1.0 { a } else { b };
    }
    // A chord cannot be extended beyond its ends.
    let along_arc = interpolation != Interpolation::Linear || way.t > 1.0;
    let mut out = [0.0; FIELD_NUMBERS_MAX];
    match kind {
        Kind::Int { min, max } => {
            let number = line(a[0], b[0], way.t).round();
            out[0] = number.max(*min as f64).min(*max as f64);
        }
        Kind::Float { min, max, .. } | Kind::Vector { min, max, .. } => {
            out = core::array::from_fn(|index| line(a[index], b[index], way.t).max(*min).min(*max));
        }
        Kind::Angle { .. } => out[0] = turn(a[0], b[0], way.t),
        Kind::UnitVector { .. } => {
            let (a, b) = (part(&a, 0), part::<3>(&b, 0));
            put(&mut out, 0, if along_arc { arc(a, b, way.t) } else { chord(a, b, way.t) });
        }
        Kind::Rotation { .. } => put(&mut out, 0, rotate(part(&a, 0), part(&b, 0), way.t, along_arc)),
        Kind::Transform { position, .. } => {
            put(&mut out, 0, lines::<3>(&a, &b, 0, way.t).map(|at| at.max(position.min).min(position.max)));
            put(&mut out, 3, rotate(part(&a, 3), part(&b, 3), way.t, along_arc));
        }
        Kind::Body { position, .. } => {
            out = if way.t > 1.0 {
                coast(b, (way.t - 1.0) * way.interval_s)
            } else {
                between(interpolation, a, b, way)
            };
            out[..3].iter_mut().for_each(|at| *at = at.max(position.min).min(position.max));
        }
        Kind::Bool | Kind::Enum { .. } | Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => {
            out = if way.t < 1.0 { a } else { b };
        }
    }
    out
}

/// Interpolates between two states of a body.
fn between(interpolation: Interpolation, a: Numbers, b: Numbers, way: Way) -> Numbers {
    let mut out = [0.0; FIELD_NUMBERS_MAX];
    let position = match interpolation {
        Interpolation::Hermite => {
            let (velocity_a, velocity_b) = (part(&a, 7), part(&b, 7));
            hermite([part(&a, 0), part(&b, 0)], [velocity_a, velocity_b], way)
        }
        _ => lines(&a, &b, 0, way.t),
    };
    put(&mut out, 0, position);
    put(&mut out, 3, rotate(part(&a, 3), part(&b, 3), way.t, interpolation != Interpolation::Linear));
    put(&mut out, 7, lines::<6>(&a, &b, 7, way.t));
    out
}

/// Extrapolates a body by its last motion for `seconds`.
fn coast(body: Numbers, seconds: f64) -> Numbers {
    let mut out = body;
    for axis in 0..3 {
        out[axis] += body[7 + axis] * seconds;
    }
    let spin: [f64; 3] = part(&body, 10);
    let rate = length(spin);
    if rate > 0.0 {
        let (sin, cos) = (rate * seconds / 2.0).sin_cos();
        let [x, y, z] = spin.map(|part| part / rate * sin);
        put(&mut out, 3, product([x, y, z, cos], part(&body, 3)));
    }
    out
}

/// The cubic Hermite curve between both positions, with both velocities, per second, at its ends.
fn hermite(positions: [[f64; 3]; 2], velocities: [[f64; 3]; 2], way: Way) -> [f64; 3] {
    let Way { t, interval_s } = way;
    let (square, cube) = (t * t, t * t * t);
    core::array::from_fn(|axis| {
        let [from, to] = positions.map(|position| position[axis]);
        let [leaving, coming] = velocities.map(|velocity| velocity[axis] * interval_s);
        (2.0 * cube - 3.0 * square + 1.0) * from
            + (cube - 2.0 * square + t) * leaving
            + (3.0 * square - 2.0 * cube) * to
            + (cube - square) * coming
    })
}

fn line(a: f64, b: f64, t: f64) -> f64 {
    a * (1.0 - t) + b * t
}

fn lines<const N: usize>(a: &Numbers, b: &Numbers, from: usize, t: f64) -> [f64; N] {
    core::array::from_fn(|index| line(a[from + index], b[from + index], t))
}

/// The angle between two by the shorter way around, in −π to π.
fn turn(a: f64, b: f64, t: f64) -> f64 {
    let way = (b - a + PI).rem_euclid(TAU) - PI;
    let at = (a + way * t).rem_euclid(TAU);
    if at > PI { at - TAU } else { at }
}

/// Interpolates between two rotations by the shorter way.
fn rotate(a: [f64; 4], b: [f64; 4], t: f64, along_arc: bool) -> [f64; 4] {
    let b = if dot(a, b) < 0.0 { b.map(|part| -part) } else { b };
    if along_arc { arc(a, b, t) } else { chord(a, b, t) }
}

/// Interpolates between two unit vectors at constant speed along the great circle. Opposite ones have no
/// unique way between them.
fn arc<const N: usize>(a: [f64; N], b: [f64; N], t: f64) -> [f64; N] {
    let cos = dot(a, b);
    let across: [f64; N] = core::array::from_fn(|index| b[index] - a[index] * cos);
    let sin = length(across);
    if sin < 1e-9 {
        return a;
    }
    let (sin_at, cos_at) = (sin.atan2(cos) * t).sin_cos();
    core::array::from_fn(|index| a[index] * cos_at + across[index] / sin * sin_at)
}

/// Interpolates between two unit vectors in a straight line, normalized to length 1.
fn chord<const N: usize>(a: [f64; N], b: [f64; N], t: f64) -> [f64; N] {
    let at: [f64; N] = core::array::from_fn(|index| line(a[index], b[index], t));
    let length = length(at);
    if length < 1e-9 { a } else { at.map(|part| part / length) }
}

fn dot<const N: usize>(a: [f64; N], b: [f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn length<const N: usize>(vector: [f64; N]) -> f64 {
    dot(vector, vector).sqrt()
}

/// The rotation by `b`, then by `a`.
fn product(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    let ([ax, ay, az, aw], [bx, by, bz, bw]) = (a, b);
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

fn part<const N: usize>(numbers: &Numbers, from: usize) -> [f64; N] {
    core::array::from_fn(|index| numbers[from + index])
}

fn put<const N: usize>(numbers: &mut Numbers, from: usize, part: [f64; N]) {
    numbers[from..from + N].copy_from_slice(&part);
}

#[cfg(test)]
mod tests;
