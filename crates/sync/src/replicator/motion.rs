//! Extrapolation and interpolation of rows of numbers.
//!
//! Sender and receivers use the same [`Motion::extrapolate`]. The sender knows by it what the others show,
//! and sends when that is too far off.

use super::added::{is_rate, rate_name, spin_name};
use super::rotation::{self, Quaternion};
use crate::schema::{Component, Field, Interpolation, Kind, Range, RowReader};
use bytes::Bytes;
use core::f64::consts::TAU;
use core::time::Duration;

/// Weight of a new rate whose difference may come from quantizing alone.
const SMOOTHING: f64 = 0.25;

/// Maximum extrapolation beyond the newest row; after that the state stands still.
pub const EXTRAPOLATION_MAX: Duration = Duration::from_secs(1);

/// The motion of one component's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Motion {
    parts: Vec<Part>,
}

/// Numbers that move together.
#[derive(Clone, Debug)]
struct Part {
    /// The index of their field.
    field: usize,
    way: Way,
    /// Index of the first number.
    first: usize,
    count: usize,
    /// The numbers that hold their rate of change, if there are any.
    rate: Option<Rate>,
    /// Differences up to this may come from quantizing alone; in the unit of the part.
    resolution: f64,
}

/// The rate of change per second: as many numbers as move, or three for a rotation.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// Index of the first.
    first: usize,
    /// Whether the replicator added them; if not, the game sets them.
    is_added: bool,
}

/// The kind of motion.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// None: the numbers jump.
    Leap,
    /// None: a rate, used only to extrapolate.
    Rate,
    /// In a straight line, within a range.
    Line { min: f64, max: f64 },
    /// Around a circle, in radians.
    Turn,
    /// On a sphere.
    Direction,
    /// A quaternion.
    Rotation,
}

/// The difference between two rows in one field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Deviation {
    /// In the unit of the field; for positions and directions the length of the difference.
    pub(crate) off_by: f64,
    /// In radians.
    pub(crate) turned_by: f64,
    /// Whether it is more than quantizing alone would cause.
    pub(crate) is_real: bool,
    /// Whether a field that jumps differs.
    pub(crate) leapt: bool,
}

impl Motion {
    pub(crate) fn new(component: &Component) -> Self {
        let mut parts = Vec::new();
        for (index, field) in component.fields().iter().enumerate() {
            push_parts(index, field, component, &mut parts);
        }
        Motion { parts }
    }

    /// Extrapolates `newest` by `ahead_s` seconds, at most [`EXTRAPOLATION_MAX`].
    pub(super) fn extrapolate(&self, newest: &[f64], ahead_s: f64, out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(newest);
        let ahead_s = ahead_s.clamp(0.0, EXTRAPOLATION_MAX.as_secs_f64());
        for part in &self.parts {
            let Some(rate) = part.rate else { continue };
            let by = |axis: usize| newest[rate.first + axis] * ahead_s;
            if part.way == Way::Rotation {
                let turn = rotation::from_vector([by(0), by(1), by(2)]);
                set4(out, part.first, rotation::multiply(turn, get4(newest, part.first)));
            } else {
                for axis in 0..part.count {
                    let index = part.first + axis;
                    out[index] = part.way.limited(newest[index] + by(axis));
                }
            }
        }
    }

    /// Sets the added rates in `rates`, a row of numbers: the change from `before` to `after`, `gap_s`
    /// seconds later. Differences that may come from quantizing alone are averaged, so that steady motion has
    /// a steady rate.
    pub(super) fn measure(&self, before: &[f64], after: &[f64], gap_s: f64, rates: &mut [f64]) {
        let mut put = |index: usize, rate: f64, resolution: f64| {
            let is_noise = (rate - rates[index]).abs() * gap_s <= resolution;
            rates[index] += (rate - rates[index]) * if is_noise { SMOOTHING } else { 1.0 };
        };
        for part in &self.parts {
            let Some(rate) = part.rate.filter(|rate| rate.is_added) else { continue };
            if part.way == Way::Rotation {
                let turn = rotation::between(get4(before, part.first), get4(after, part.first));
                let turned = rotation::to_vector(turn);
                (0..3).for_each(|axis| put(rate.first + axis, turned[axis] / gap_s, part.resolution));
            } else {
                for axis in 0..part.count {
                    let index = part.first + axis;
                    put(
                        rate.first + axis,
                        part.way.way(before[index], after[index]) / gap_s,
                        part.resolution,
                    );
                }
            }
        }
    }

    /// Computes the offset from `truth` to `shown`.
    pub(crate) fn offset(&self, shown: &[f64], truth: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.resize(truth.len(), 0.0);
        for part in &self.parts {
            match part.way {
                Way::Leap | Way::Rate => {}
                Way::Rotation => {
                    let first = part.first;
                    set4(out, first, rotation::between(get4(truth, first), get4(shown, first)));
                }
                way => {
                    for index in part.first..part.first + part.count {
                        out[index] = way.way(truth[index], shown[index]);
                    }
                }
            }
        }
    }

    /// Adds a part of an [`offset`](Self::offset) to `truth`: 0 for none, 1 for all.
    pub(crate) fn put(&self, truth: &mut [f64], offset: &[f64], weight: f64) {
        for part in &self.parts {
            match part.way {
                Way::Leap | Way::Rate => {}
                Way::Rotation => {
                    let first = part.first;
                    let turn = rotation::power(get4(offset, first), weight);
                    set4(truth, first, rotation::multiply(turn, get4(truth, first)));
                }
                way => {
                    let numbers = part.first..part.first + part.count;
                    for index in numbers.clone() {
                        truth[index] = way.limited(truth[index] + offset[index] * weight);
                    }
                    part.tidy(&mut truth[numbers]);
                }
            }
        }
    }

    /// Interpolates `from` towards `to` by `t`, below 1. Fields that jump keep their value.
    pub(super) fn mix(&self, from: &mut [f64], to: &[f64], t: f64, scratch: &mut Vec<f64>) {
        self.offset(to, from, scratch);
        self.put(from, scratch, t);
    }

    /// The difference between two rows in one field. Velocities do not count by themselves.
    pub(crate) fn deviation(&self, field: usize, a: &[f64], b: &[f64]) -> Deviation {
        let mut deviation = Deviation::default();
        for part in self.parts.iter().filter(|part| part.field == field && part.way != Way::Rate) {
            let numbers = part.first..part.first + part.count;
            let apart = match part.way {
                Way::Rotation => rotation::angle(rotation::between(get4(a, part.first), get4(b, part.first))),
                way => numbers.map(|index| way.way(a[index], b[index]).powi(2)).sum::<f64>().sqrt(),
            };
            deviation.leapt |= part.way == Way::Leap && apart > 0.0;
            match part.way {
                Way::Rotation | Way::Turn => deviation.turned_by = deviation.turned_by.max(apart),
                _ => deviation.off_by = deviation.off_by.max(apart),
            }
            deviation.is_real |= apart > part.resolution;
        }
        deviation
    }
}

/// Returns the numbers of a row of lanes, field by field.
pub(super) fn numbers_of(component: &Component, lanes: &[i32], blobs: &[Bytes], out: &mut Vec<f64>) {
    let row = RowReader::new(component, lanes, blobs);
    out.clear();
    (0..component.fields().len()).for_each(|field| out.extend_from_slice(row.field(field).numbers()));
}

impl Way {
    /// The difference between two numbers; the shorter way around a circle.
    fn way(self, from: f64, to: f64) -> f64 {
        if self == Way::Turn { wrapped(to - from) } else { to - from }
    }

    fn limited(self, number: f64) -> f64 {
        match self {
            Way::Line { min, max } => number.max(min).min(max),
            Way::Turn => wrapped(number),
            _ => number,
        }
    }
}

impl Part {
    /// Normalizes a direction.
    fn tidy(&self, numbers: &mut [f64]) {
        if self.way == Way::Direction {
            let length = numbers.iter().map(|part| part * part).sum::<f64>().sqrt();
            if length > 0.0 {
                numbers.iter_mut().for_each(|part| *part /= length);
            } else {
                numbers.copy_from_slice(&[0.0, 0.0, 1.0]);
            }
        }
    }
}

/// The same angle in −π to π.
fn wrapped(radians: f64) -> f64 {
    radians - (radians / TAU).round() * TAU
}

fn get4(numbers: &[f64], first: usize) -> Quaternion {
    [numbers[first], numbers[first + 1], numbers[first + 2], numbers[first + 3]]
}

fn set4(numbers: &mut [f64], first: usize, quaternion: Quaternion) {
    numbers[first..first + 4].copy_from_slice(&quaternion);
}

fn line(range: Range) -> Way {
    Way::Line { min: range.min, max: range.max }
}

/// The angle of one step of a quaternion's part: its bits share a range of √2.
fn rotation_step(bits: u8) -> f64 {
    2.0 * core::f64::consts::SQRT_2 / 2f64.powi(i32::from(bits))
}

fn push_parts(index: usize, field: &Field, component: &Component, parts: &mut Vec<Part>) {
    let start = component.field_numbers(index).start;
    let added = |name: String| {
        let first = component.find(&name).map(|rate| component.field_numbers(rate).start);
        first.map(|first| Rate { first, is_added: true })
    };
    let own = |at: usize| Some(Rate { first: start + at, is_added: false });
    let mut push = |way: Way, at: usize, count: usize, rate: Option<Rate>, resolution: f64| {
        let leaps = field.interpolation == Interpolation::None && way != Way::Rate;
        let (way, rate, resolution) = if leaps { (Way::Leap, None, 0.0) } else { (way, rate, resolution) };
        parts.push(Part { field: index, way, first: start + at, count, rate, resolution });
    };
    let (rate, spin) = (rate_name(index), spin_name(index));
    match field.kind {
        _ if is_rate(&field.name) => push(Way::Rate, 0, field.kind.numbers(), None, 0.0),
        Kind::Bool | Kind::Int { .. } | Kind::Enum { .. } => push(Way::Leap, 0, 1, None, 0.0),
        Kind::Float { min, max, step } => push(Way::Line { min, max }, 0, 1, added(rate), step),
        Kind::Angle { steps } => push(Way::Turn, 0, 1, added(spin), TAU / f64::from(steps)),
        Kind::Vector { dims, min, max, step } => {
            push(Way::Line { min, max }, 0, usize::from(dims), added(rate), step * f64::from(dims).sqrt());
        }
        Kind::UnitVector { bits } => push(Way::Direction, 0, 3, None, 4.0 / 2f64.powi(i32::from(bits))),
        Kind::Rotation { bits } => push(Way::Rotation, 0, 4, added(spin), rotation_step(bits)),
        Kind::Transform { position, rotation_bits } => {
            push(line(position), 0, 3, added(rate), position.step * 3f64.sqrt());
            push(Way::Rotation, 3, 4, added(spin), rotation_step(rotation_bits));
        }
        Kind::Body { position, rotation_bits, .. } => {
            push(line(position), 0, 3, own(7), position.step * 3f64.sqrt());
            push(Way::Rotation, 3, 4, own(10), rotation_step(rotation_bits));
            push(Way::Rate, 7, 6, None, 0.0);
        }
        Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => {}
    }
}
