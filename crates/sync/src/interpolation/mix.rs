//! Interpolates between two values.

use crate::keyed::{Hints, Interp};
use crate::value::{Map, Value};

/// How whole numbers move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeNumbers {
    /// Through whole numbers: for languages that tell them apart.
    #[default]
    StayWhole,
    /// As all other numbers: for languages with one kind of number, where 1 → 2 may be a position.
    MoveAsReals,
}

/// Returns the value at `t` between `older` and `newer`: `older` for `t` up to 0 (and for NaN), `newer` from
/// 1 on.
///
/// An angle may leave the range of its ends by up to half a period, since the shorter way may lead across 0.
pub fn interpolate(
    older: &Value,
    newer: &Value,
    t: f64,
    hints: &Hints,
    whole_numbers: WholeNumbers,
) -> Value {
    if t >= 1.0 {
        return newer.clone();
    }
    if t <= 0.0 || t.is_nan() {
        return older.clone();
    }
    let (mut whole, mut parts) = (None, Vec::new());
    for hint in hints.iter() {
        if hint.path.is_empty() {
            whole = Some(hint.interp);
        } else {
            parts.push((hint.path.as_str(), hint.interp));
        }
    }
    mix(older, newer, t, Rules { here: whole, below: &parts, whole_numbers })
}

/// The hints for a part of a value, and for its subparts by their paths from here.
#[derive(Clone, Copy)]
struct Rules<'a> {
    here: Option<Interp>,
    below: &'a [(&'a str, Interp)],
    whole_numbers: WholeNumbers,
}

impl Rules<'_> {
    /// Calls `then` with the hints for the part `name`.
    fn part<T>(self, name: &str, then: impl FnOnce(Rules<'_>) -> T) -> T {
        let (mut here, mut below) = (self.here, Vec::new());
        for (path, interp) in self.below {
            let (first, rest) = match path.split_once('.') {
                Some((first, rest)) => (first, Some(rest)),
                None => (*path, None),
            };
            match rest {
                _ if first != "*" && first != name => {}
                Some(rest) => below.push((rest, *interp)),
                None => here = Some(*interp),
            }
        }
        then(Rules { here, below: &below, ..self })
    }
}

fn mix(a: &Value, b: &Value, t: f64, rules: Rules<'_>) -> Value {
    match (a, b) {
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            let parts = a.iter().zip(b).enumerate();
            Value::List(parts.map(|(index, (a, b))| mix_item(index, a, b, t, rules)).collect())
        }
        (Value::Map(a), Value::Map(b)) => Value::Map(mix_map(a, b, t, rules)),
        (Value::Float(a), Value::Float(b)) => Value::Float(mix_float(*a, *b, t, rules.here)),
        (Value::Float(a), Value::Int(b)) => Value::Float(mix_float(*a, as_float(*b), t, rules.here)),
        (Value::Int(a), Value::Float(b)) => match rules.here {
            Some(Interp::Snap) => Value::Int(*a),
            interp => Value::Float(mix_float(as_float(*a), *b, t, interp)),
        },
        (Value::Int(a), Value::Int(b)) => match (rules.whole_numbers, rules.here) {
            (WholeNumbers::MoveAsReals, interp) if interp != Some(Interp::Snap) => {
                Value::Float(mix_float(as_float(*a), as_float(*b), t, interp))
            }
            (_, interp) => Value::Int(mix_int(*a, *b, t, interp)),
        },
        (a, _) => a.clone(),
    }
}

fn mix_item(index: usize, a: &Value, b: &Value, t: f64, rules: Rules<'_>) -> Value {
    if rules.below.is_empty() {
        return mix(a, b, t, rules);
    }
    rules.part(&index.to_string(), |rules| mix(a, b, t, rules))
}

/// Interpolates the older map's fields. A field that only one of the two has appears or disappears when the
/// newer is due.
fn mix_map(a: &Map, b: &Map, t: f64, rules: Rules<'_>) -> Map {
    let field = |name: &str, a: &Value, b: &Value| {
        if rules.below.is_empty() {
            return mix(a, b, t, rules);
        }
        rules.part(name, |rules| mix(a, b, t, rules))
    };
    let fields = a.iter().map(|(name, a)| {
        let value = b.get(name).map_or_else(|| a.clone(), |b| field(name, a, b));
        (name.to_owned(), value)
    });
    Map::from_pairs(fields.collect()).expect("the names of a map are distinct")
}

fn mix_float(a: f64, b: f64, t: f64, interp: Option<Interp>) -> f64 {
    match interp {
        Some(Interp::Snap) => a,
        Some(Interp::Angle { period }) => a + turn(a, b, period) * t,
        // Neither term overflows, and rounding must not exceed the ends.
        Some(Interp::Linear) | None => (a * (1.0 - t) + b * t).clamp(a.min(b), a.max(b)),
    }
}

#[allow(clippy::cast_possible_truncation)] // both are clamped between two whole numbers
fn mix_int(a: i64, b: i64, t: f64, interp: Option<Interp>) -> i64 {
    match interp {
        Some(Interp::Linear) | None => {
            let way = i128::from(b) - i128::from(a);
            let done = (way as f64 * t).round() as i128;
            let between = i128::from(a) + done.clamp(way.min(0), way.max(0));
            i64::try_from(between).expect("it lies between two that fit")
        }
        Some(Interp::Angle { period }) => {
            let done = (turn(as_float(a), as_float(b), period) * t).round();
            a.saturating_add(done as i64)
        }
        Some(Interp::Snap) => a,
    }
}

/// The difference from `a` to `b` by the shorter way around; 0 if the numbers are too large for it.
fn turn(a: f64, b: f64, period: f64) -> f64 {
    let forward = (b - a).rem_euclid(period);
    let turn = if forward > period / 2.0 { forward - period } else { forward };
    if turn.is_finite() { turn } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)] // interpolated values need not be exact
fn as_float(int: i64) -> f64 {
    int as f64
}
