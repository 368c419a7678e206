//! Fields that the replicator adds to a template.
//!
//! They follow the game's fields. Each moving field without a velocity of its own gets a rate
//! (`parlor.rate.N`, in its unit per second) or a spin (`parlor.spin.N`, in radians per second, around the
//! axes of the world). N is the index of the field; a transform gets both, in this order. So each state can
//! be extrapolated by itself, whatever was lost before it.
//!
//! Two more come last. `parlor.beat` alternates, so that a repeated state counts as a change. `parlor.cut`
//! counts, modulo [`CUTS`], the states that did not follow from the one before.

use super::template::Tolerance;
use crate::schema::{Field, Interpolation, Kind};

/// Prefix of names that games may not use.
pub(super) const RESERVED: &str = "parlor.";
const BEAT: &str = "parlor.beat";
const CUT: &str = "parlor.cut";

/// Cuts that can be distinguished.
pub(super) const CUTS: i32 = 4;

/// Largest rate of an angle and of a rotation, in radians per second. Faster turns are sent more often.
const SPIN_MAX: f64 = 32.0;
/// Finest step of such a rate, in radians per second.
const SPIN_STEP: f64 = 1.0 / 256.0;

pub(super) fn rate_name(field: usize) -> String {
    format!("parlor.rate.{field}")
}

pub(super) fn spin_name(field: usize) -> String {
    format!("parlor.spin.{field}")
}

/// Whether a field of this name is the rate or spin of another.
pub(super) fn is_rate(name: &str) -> bool {
    name.starts_with("parlor.rate.") || name.starts_with("parlor.spin.")
}

/// Names and kinds of the fields added to these, in order. The precision of a rate follows from the
/// tolerances: the sender extrapolates with the quantized rates.
pub(super) fn added<'a>(fields: impl Iterator<Item = (&'a Field, Tolerance)>) -> Vec<(String, Kind)> {
    let mut added = Vec::new();
    for (index, (field, tolerance)) in fields.enumerate() {
        if field.interpolation == Interpolation::None {
            continue;
        }
        let mut rate = |dims: u8, min: f64, max: f64, step: f64| {
            let (most, step) = (max - min, (4.0 * step).max(tolerance.off_by / 2.0).min((max - min) / 4.0));
            added.push((rate_name(index), line(dims, most, step)));
        };
        match &field.kind {
            Kind::Float { min, max, step } => rate(1, *min, *max, *step),
            Kind::Vector { dims, min, max, step } => rate(*dims, *min, *max, *step),
            Kind::Transform { position, .. } => rate(3, position.min, position.max, position.step),
            _ => {}
        }
        let spin = (tolerance.turned_by / 2.0).clamp(SPIN_STEP, 1.0);
        match &field.kind {
            Kind::Angle { .. } => added.push((spin_name(index), line(1, SPIN_MAX, spin))),
            Kind::Rotation { .. } | Kind::Transform { .. } => {
                added.push((spin_name(index), line(3, SPIN_MAX, spin)))
            }
            _ => {}
        }
    }
    added.push((BEAT.to_owned(), Kind::Bool));
    added.push((CUT.to_owned(), Kind::int(0, i64::from(CUTS) - 1)));
    added
}

/// Whether `is` is a valid field in place of `expected`: the sender chooses the precision of rates.
pub(super) fn is_like(is: &Field, expected: &(String, Kind)) -> bool {
    let (name, kind) = expected;
    is.name == *name
        && match (&is.kind, kind) {
            (Kind::Vector { dims, .. }, Kind::Vector { dims: expected, .. }) => dims == expected,
            (Kind::Float { .. }, Kind::Float { .. }) => true,
            (is, expected) => is == expected,
        }
}

fn line(dims: u8, most: f64, step: f64) -> Kind {
    // The middle is exactly 0: a resting state is extrapolated as resting.
    let most = (most / step).ceil() * step;
    match dims {
        1 => Kind::float(-most, most, step),
        dims => Kind::Vector { dims, min: -most, max: most, step },
    }
}
