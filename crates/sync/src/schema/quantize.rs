//! Converts numbers to lanes and back.
//!
//! Reading quantized lanes and quantizing them again gives the same lanes. This also holds after a conversion
//! to `f32`, if that distinguishes the steps of the range.

use super::error::FieldFault;
use super::kind::{FIELD_NUMBERS_MAX, Kind, Range, middle};
use core::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2, TAU};

/// Quantizes the numbers of a value into its lanes. Numbers outside the range are clamped. −0 and subnormal
/// numbers are numbers like others and have no form of their own.
pub(super) fn quantize(kind: &Kind, numbers: &[f64], lanes: &mut [i32]) -> Result<(), FieldFault> {
    if numbers.len() != kind.numbers() || lanes.len() != kind.lanes() {
        return Err(FieldFault::WrongCount { found: numbers.len(), expected: kind.numbers() });
    }
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(FieldFault::NotFinite);
    }
    match kind {
        Kind::Bool => lanes[0] = i32::from(numbers[0] != 0.0),
        Kind::Int { min, max } => lanes[0] = quantize_int(numbers[0], *min, *max),
        Kind::Float { min, max, step } | Kind::Vector { min, max, step, .. } => {
            quantize_all(Range::new(*min, *max, *step), numbers, lanes);
        }
        Kind::Angle { steps } => lanes[0] = quantize_angle(numbers[0], *steps),
        Kind::UnitVector { bits } => {
            lanes.copy_from_slice(&quantize_direction([numbers[0], numbers[1], numbers[2]], *bits));
        }
        Kind::Rotation { bits } => lanes.copy_from_slice(&quantize_rotation(array(numbers), *bits)),
        Kind::Transform { position, rotation_bits } => {
            quantize_all(*position, &numbers[..3], &mut lanes[..3]);
            lanes[3..7].copy_from_slice(&quantize_rotation(array(&numbers[3..7]), *rotation_bits));
        }
        Kind::Body { position, rotation_bits, velocity, spin } => {
            quantize_all(*position, &numbers[..3], &mut lanes[..3]);
            lanes[3..7].copy_from_slice(&quantize_rotation(array(&numbers[3..7]), *rotation_bits));
            quantize_all(*velocity, &numbers[7..10], &mut lanes[7..10]);
            quantize_all(*spin, &numbers[10..13], &mut lanes[10..13]);
        }
        Kind::Enum { names } => lanes[0] = quantize_choice(numbers[0], names.len())?,
        Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => {}
    }
    Ok(())
}

/// Reads the numbers of a value from its lanes. Lanes that quantizing cannot produce are read as a nearby
/// value.
pub(super) fn dequantize(kind: &Kind, lanes: &[i32], numbers: &mut [f64]) {
    if numbers.len() != kind.numbers() || lanes.len() != kind.lanes() {
        return numbers.fill(0.0);
    }
    match kind {
        Kind::Bool | Kind::Enum { .. } => numbers[0] = f64::from(lanes[0]),
        // Both are below 2^53, and so is their sum within the range.
        Kind::Int { min, .. } => numbers[0] = min.saturating_add(i64::from(lanes[0])) as f64,
        Kind::Float { min, max, step } | Kind::Vector { min, max, step, .. } => {
            dequantize_all(Range::new(*min, *max, *step), lanes, numbers);
        }
        Kind::Angle { steps } => numbers[0] = dequantize_angle(lanes[0], *steps),
        Kind::UnitVector { bits } => {
            numbers.copy_from_slice(&dequantize_direction([lanes[0], lanes[1]], *bits))
        }
        Kind::Rotation { bits } => numbers.copy_from_slice(&dequantize_rotation(array(lanes), *bits)),
        Kind::Transform { position, rotation_bits } => {
            dequantize_all(*position, &lanes[..3], &mut numbers[..3]);
            numbers[3..7].copy_from_slice(&dequantize_rotation(array(&lanes[3..7]), *rotation_bits));
        }
        Kind::Body { position, rotation_bits, velocity, spin } => {
            dequantize_all(*position, &lanes[..3], &mut numbers[..3]);
            numbers[3..7].copy_from_slice(&dequantize_rotation(array(&lanes[3..7]), *rotation_bits));
            dequantize_all(*velocity, &lanes[7..10], &mut numbers[7..10]);
            dequantize_all(*spin, &lanes[10..13], &mut numbers[10..13]);
        }
        Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => {}
    }
}

/// Returns the numbers of a value of `kind`, in an array with space for every kind.
pub(super) fn numbers_of(kind: &Kind, lanes: &[i32]) -> [f64; FIELD_NUMBERS_MAX] {
    let mut numbers = [0.0; FIELD_NUMBERS_MAX];
    if let Some(numbers) = numbers.get_mut(..kind.numbers()) {
        dequantize(kind, lanes, numbers);
    }
    numbers
}

/// Whether lanes within their spans are canonical: quantizing gives each direction and rotation a unique
/// form.
pub(super) fn is_canonical(kind: &Kind, lanes: &[i32]) -> bool {
    match kind {
        Kind::UnitVector { bits } => {
            let m = signed_middle(*bits);
            let at = [lanes[0] - m, lanes[1] - m];
            at == one_form(at, m)
        }
        Kind::Rotation { bits } => rotation_is_canonical(array(lanes), *bits),
        Kind::Transform { rotation_bits, .. } | Kind::Body { rotation_bits, .. } => {
            rotation_is_canonical(array(&lanes[3..7]), *rotation_bits)
        }
        _ => true,
    }
}

fn array<T: Copy, const N: usize>(slice: &[T]) -> [T; N] {
    slice.try_into().expect("the count of a kind's numbers and lanes was compared")
}

/// Converts a float that is an integer within a lane's span; saturates otherwise.
#[allow(clippy::cast_possible_truncation)]
fn to_lane(number: f64) -> i32 {
    number as i32
}

#[allow(clippy::cast_precision_loss)] // a schema has whole numbers below 2^53
fn quantize_int(number: f64, min: i64, max: i64) -> i32 {
    let (min, max) = (min as f64, max as f64);
    to_lane(number.round().max(min).min(max) - min)
}

fn quantize_all(range: Range, numbers: &[f64], lanes: &mut [i32]) {
    let span = f64::from(range.span());
    for (number, lane) in numbers.iter().zip(lanes) {
        *lane = to_lane(((number - range.min) / range.step).round().max(0.0).min(span));
    }
}

fn dequantize_all(range: Range, lanes: &[i32], numbers: &mut [f64]) {
    for (lane, number) in lanes.iter().zip(numbers) {
        // Rounding may put the last step beyond the end, and the end may be −0, which + 0 turns into 0.
        *number = (range.min + f64::from(*lane) * range.step).min(range.max) + 0.0;
    }
}

fn quantize_choice(number: f64, count: usize) -> Result<i32, FieldFault> {
    let index = to_lane(number);
    match usize::try_from(index) {
        Ok(at) if at < count => Ok(index),
        _ => Err(FieldFault::NoSuchChoice { index: usize::try_from(index).unwrap_or(usize::MAX), count }),
    }
}

fn quantize_angle(radians: f64, steps: u32) -> i32 {
    let turns = radians / TAU;
    let lane = ((turns - turns.floor()) * f64::from(steps)).round();
    if lane >= f64::from(steps) { 0 } else { to_lane(lane) }
}

fn dequantize_angle(lane: i32, steps: u32) -> f64 {
    let part = f64::from(lane) / f64::from(steps.max(1));
    let radians = part * TAU;
    if part > 0.5 { radians - TAU } else { radians.min(PI) }
}

fn signed_middle(bits: u8) -> i32 {
    i32::try_from(middle(bits)).expect("it has at most 15 bits")
}

/// Normalizes a vector; `None` if its length is 0.
fn normalized<const N: usize>(vector: [f64; N]) -> Option<[f64; N]> {
    // Scaled first: squares of tiny numbers underflow, those of huge ones overflow.
    let largest = vector.iter().fold(0.0f64, |largest, part| largest.max(part.abs()));
    if largest == 0.0 {
        return None;
    }
    let scaled = vector.map(|part| part / largest);
    let length = scaled.iter().map(|part| part * part).sum::<f64>().sqrt();
    Some(scaled.map(|part| part / length))
}

/// Quantizes a direction as a point of an octahedron, unfolded to a square. After Meyer, Süßmuth, Sußner,
/// Stamminger and Greiner, "On Floating-Point Normal Vectors" (2010), as surveyed by Cigolle and others, "A
/// Survey of Efficient Representations for Independent Unit Vectors" (2014). The number of steps of the
/// square's sides is even, so that the axes are exact.
fn quantize_direction(vector: [f64; 3], bits: u8) -> [i32; 2] {
    let m = signed_middle(bits);
    let [x, y, z] = normalized(vector).unwrap_or([0.0, 0.0, 1.0]);
    let sum = x.abs() + y.abs() + z.abs();
    let (x, y) = (x / sum, y / sum);
    let (u, v) = if z < 0.0 { fold(x, y) } else { (x, y) };
    let at = one_form([u, v].map(|part| to_lane((part * f64::from(m)).round())), m);
    at.map(|part| part + m)
}

fn dequantize_direction(lanes: [i32; 2], bits: u8) -> [f64; 3] {
    let m = signed_middle(bits);
    let [u, v] = lanes.map(|lane| f64::from(lane.saturating_sub(m)) / f64::from(m.max(1)));
    let z = 1.0 - u.abs() - v.abs();
    let (x, y) = if z < 0.0 { fold(u, v) } else { (u, v) };
    normalized([x, y, z]).unwrap_or([0.0, 0.0, 1.0])
}

/// Maps between the lower half of the octahedron and the corners of the square, in both directions.
fn fold(x: f64, y: f64) -> (f64, f64) {
    let sign = |part: f64| if part < 0.0 { -1.0 } else { 1.0 };
    ((1.0 - y.abs()) * sign(x), (1.0 - x.abs()) * sign(y))
}

/// The canonical form of a point of the square: on its border, a point and its mirror image are the same
/// direction.
fn one_form([u, v]: [i32; 2], m: i32) -> [i32; 2] {
    let (on_u, on_v) = (u.abs() == m, v.abs() == m);
    [if on_v { u.abs() } else { u }, if on_u { v.abs() } else { v }]
}

/// Quantizes a rotation as its smallest three parts. The largest part by magnitude is omitted, since it
/// follows from the others. If it is negative, all signs are flipped, which gives the same rotation. After
/// Glenn Fiedler, "Snapshot Compression" (2015). The others are at most 1/√2; `m` steps lie between 0 and
/// that.
///
/// When two parts have about the same size, several forms would be valid, and rounding could alternate
/// between them. So the form is chosen by integers alone: the omitted part must round to no less than those
/// after it, and to more than those before it.
fn quantize_rotation(quaternion: [f64; 4], bits: u8) -> [i32; 4] {
    let m = signed_middle(bits);
    let unit = normalized(quaternion).unwrap_or([0.0, 0.0, 0.0, 1.0]);
    let steps = unit.map(|part| part * SQRT_2 * f64::from(m));
    let largest = steps.iter().fold(0.0f64, |largest, part| largest.max(part.abs()));
    let near = |index: &usize| steps[*index].abs() >= largest - 1.0;
    for index in (0..4).filter(near) {
        let form = smallest_three(steps, index, m);
        if is_form(index, form, m) {
            return to_lanes(index, form, m);
        }
    }
    // Rounding made the others so large that too little is left for the largest.
    let index = steps.iter().position(|part| part.abs() == largest).unwrap_or(3);
    let mut form = smallest_three(steps, index, m);
    while !is_form(index, form, m) {
        let widest = form.iter_mut().max_by_key(|part| part.abs()).expect("there are three");
        *widest -= widest.signum();
    }
    to_lanes(index, form, m)
}

fn smallest_three(steps: [f64; 4], left_out: usize, m: i32) -> [i32; 3] {
    let sign = if steps[left_out] < 0.0 { -1.0 } else { 1.0 };
    others(left_out).map(|index| to_lane((steps[index] * sign).round()).clamp(-m, m))
}

/// The indices of the three parts that are kept.
fn others(left_out: usize) -> [usize; 3] {
    core::array::from_fn(|part| part + usize::from(part >= left_out))
}

fn to_lanes(left_out: usize, form: [i32; 3], m: i32) -> [i32; 4] {
    let largest = i32::try_from(left_out).expect("it is at most 3");
    [largest, form[0] + m, form[1] + m, form[2] + m]
}

/// The square of the omitted part, in squared steps: what the others leave of the whole.
fn square_left(form: [i32; 3], m: i32) -> i64 {
    let square = |part: i32| i64::from(part) * i64::from(part);
    2 * square(m) - form.into_iter().map(square).sum::<i64>()
}

fn is_form(left_out: usize, form: [i32; 3], m: i32) -> bool {
    let Some(largest) = rounded_sqrt(square_left(form, m)) else { return false };
    form.into_iter().zip(others(left_out)).all(|(part, index)| {
        let part = i64::from(part.abs());
        if index < left_out { part < largest } else { part <= largest }
    })
}

/// The rounded square root of a number below 2^52; `None` for a negative one.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // both are below 2^52
fn rounded_sqrt(square: i64) -> Option<i64> {
    if square < 0 {
        return None;
    }
    let floor = (square as f64).sqrt().floor() as i64;
    Some(floor + i64::from(square - floor * floor > floor))
}

fn rotation_is_canonical(lanes: [i32; 4], bits: u8) -> bool {
    let m = signed_middle(bits);
    let form = [lanes[1] - m, lanes[2] - m, lanes[3] - m];
    usize::try_from(lanes[0]).is_ok_and(|largest| largest < 4 && is_form(largest, form, m))
}

#[allow(clippy::cast_precision_loss)] // below 2^52
fn dequantize_rotation(lanes: [i32; 4], bits: u8) -> [f64; 4] {
    let m = signed_middle(bits);
    let left_out = usize::try_from(lanes[0] & 3).unwrap_or(3);
    let form = [lanes[1], lanes[2], lanes[3]].map(|lane| lane.clamp(0, 2 * m) - m);
    let step = FRAC_1_SQRT_2 / f64::from(m.max(1));
    let left = square_left(form, m);
    let mut quaternion = [0.0; 4];
    quaternion[left_out] = (left.max(0) as f64).sqrt() * step;
    for (part, index) in form.into_iter().zip(others(left_out)) {
        quaternion[index] = f64::from(part) * step;
    }
    // Only lanes that were not quantized have nothing left.
    if left > 0 { quaternion } else { normalized(quaternion).unwrap_or([0.0, 0.0, 0.0, 1.0]) }
}

#[cfg(test)]
mod tests;
