use super::*;
use proptest::prelude::*;

fn rotation(bits: u8) -> Kind {
    Kind::Rotation { bits }
}

fn lanes_of(kind: &Kind, numbers: &[f64]) -> Vec<i32> {
    let mut lanes = vec![-1; kind.lanes()];
    quantize(kind, numbers, &mut lanes).unwrap();
    lanes
}

fn read(kind: &Kind, lanes: &[i32]) -> Vec<f64> {
    numbers_of(kind, lanes)[..kind.numbers()].to_vec()
}

/// Reads `lanes` and quantizes the result again, directly and through `f32`.
#[allow(clippy::cast_possible_truncation)]
fn comes_back(kind: &Kind, lanes: &[i32]) {
    let numbers = read(kind, lanes);
    assert_eq!(lanes_of(kind, &numbers), lanes, "{kind:?} by {numbers:?}");
    let narrow: Vec<f64> = numbers.iter().map(|number| f64::from(*number as f32)).collect();
    assert_eq!(lanes_of(kind, &narrow), lanes, "{kind:?} by the f32 {narrow:?}");
}

/// All kinds with one lane that have few enough values to test each.
fn small_kinds() -> Vec<Kind> {
    vec![
        Kind::Bool,
        Kind::int(-3, 12),
        Kind::int(1_000_000, 1_001_000),
        Kind::float(-1.0, 1.0, 0.001),
        Kind::float(0.0, 1.0, 0.3),
        Kind::float(-1000.0, -999.0, 1.0 / 512.0),
        Kind::float_bits(-5.0, 17.0, 8),
        Kind::float_bits(0.0, 1.0, 16),
        Kind::angle(2),
        Kind::angle(3),
        Kind::angle(360),
        Kind::angle(1 << 16),
        Kind::Enum { names: ["a", "b", "c"].map(str::to_owned).to_vec() },
    ]
}

#[test]
fn every_lane_of_a_small_range_comes_back() {
    for kind in small_kinds() {
        let mut kinds = Vec::new();
        kind.push_lanes(&mut kinds);
        for lane in 0..=i32::try_from(kinds[0].span).unwrap() {
            comes_back(&kind, &[lane]);
        }
    }
}

#[test]
fn every_direction_of_few_bits_has_one_form_that_comes_back() {
    for bits in 4..=7 {
        let (kind, m) = (Kind::UnitVector { bits }, signed_middle(bits));
        let mut seen = std::collections::BTreeSet::new();
        for u in 0..=2 * m {
            for v in 0..=2 * m {
                let again = lanes_of(&kind, &read(&kind, &[u, v]));
                assert!(is_canonical(&kind, &again));
                assert_eq!(is_canonical(&kind, &[u, v]), again == [u, v], "{u} {v}");
                comes_back(&kind, &again);
                seen.insert(again);
            }
        }
        // Each side of the border occurs twice except for its middle, and the four corners are one direction.
        let side = usize::try_from(2 * m + 1).unwrap();
        let border_twice = 4 * usize::try_from(m - 1).unwrap() + 3;
        assert_eq!(seen.len(), side * side - border_twice);
    }
}

#[test]
fn every_rotation_of_few_bits_has_one_form_that_comes_back() {
    for bits in 4..=5 {
        let (kind, m) = (rotation(bits), signed_middle(bits));
        let mut forms = 0;
        for largest in 0..4 {
            for part in 0..(2 * m + 1).pow(3) {
                let side = 2 * m + 1;
                let lanes = [largest, part % side, part / side % side, part / side / side];
                let again = lanes_of(&kind, &read(&kind, &lanes));
                assert!(is_canonical(&kind, &again));
                if is_canonical(&kind, &lanes) {
                    assert_eq!(again, lanes);
                    comes_back(&kind, &lanes);
                    forms += 1;
                }
            }
        }
        assert!(forms > 4 * m.pow(3), "{forms} forms of {bits} bits");
    }
}

/// The angle in radians between two rotations.
fn angle_between(a: &[f64], b: &[f64]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let length = |q: &[f64]| q.iter().map(|part| part * part).sum::<f64>().sqrt();
    2.0 * (dot / length(a) / length(b)).abs().min(1.0).acos()
}

/// A quaternion whose parts have about the same size, where the forms of rotations meet.
fn near_ties() -> impl Strategy<Value = [f64; 4]> {
    let part = (any::<bool>(), 0u8..3, -2e-3..2e-3);
    let part = part.prop_map(|(minus, group, off): (bool, u8, f64)| {
        let magnitude = [0.5, 0.5, 0.0][usize::from(group)];
        (magnitude + off) * if minus { -1.0 } else { 1.0 }
    });
    [part.clone(), part.clone(), part.clone(), part].prop_map(|parts| parts)
}

fn quaternion() -> impl Strategy<Value = [f64; 4]> {
    prop_oneof![[-1.0..1.0, -1.0..1.0, -1.0..1.0, -1.0..1.0f64], near_ties()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_rotation_comes_back_within_its_resolution(quaternion in quaternion(), bits in 4u8..=12) {
        prop_assume!(quaternion.iter().any(|part| *part != 0.0));
        let kind = rotation(bits);
        let lanes = lanes_of(&kind, &quaternion);
        prop_assert!(is_canonical(&kind, &lanes));
        comes_back(&kind, &lanes);
        // Three parts are off by half a step each, near a tie by up to two, and the fourth accordingly.
        let step = FRAC_1_SQRT_2 / f64::from(middle(bits));
        prop_assert!(angle_between(&quaternion, &read(&kind, &lanes)) < 10.0 * step);
    }

    #[test]
    fn a_rotation_and_its_negative_are_one(quaternion in quaternion(), bits in 4u8..=12) {
        let kind = rotation(bits);
        prop_assert_eq!(lanes_of(&kind, &quaternion), lanes_of(&kind, &quaternion.map(|part| -part)));
    }

    /// Rotations near a tie in lanes, which random rotations rarely hit.
    #[test]
    fn rotations_in_lanes_come_back(bits in 4u8..=12, largest in 0i32..4, tie in 0usize..3, seed in any::<[u16; 3]>(), off in -2i32..=2) {
        let (kind, m) = (rotation(bits), signed_middle(bits));
        let mut form = seed.map(|seed| i32::from(seed) % (2 * m + 1) - m);
        form[tie] = 0;
        let left = square_left(form, m);
        prop_assume!(left > 0);
        // With this part, as much is left for the largest as for it.
        form[tie] = (to_lane((left as f64 / 2.0).sqrt()) + off).min(m);
        let lanes = [largest, form[0] + m, form[1] + m, form[2] + m];
        if is_canonical(&kind, &lanes) {
            comes_back(&kind, &lanes);
        } else {
            prop_assert_ne!(lanes_of(&kind, &read(&kind, &lanes)), lanes);
        }
    }

    #[test]
    fn a_direction_comes_back_within_its_resolution(vector in [-1.0..1.0, -1.0..1.0, -1.0..1.0f64], bits in 4u8..=16) {
        let kind = Kind::UnitVector { bits };
        let lanes = lanes_of(&kind, &vector);
        comes_back(&kind, &lanes);
        let (unit, read) = (normalized(vector).unwrap(), read(&kind, &lanes));
        let off = unit.iter().zip(read).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        prop_assert!(off < 3.0 / f64::from(middle(bits)));
    }

    #[test]
    fn a_number_comes_back_within_half_a_step(
        lowest in -1e6..1e6f64, steps in 1u32..1 << 22, step in prop_oneof![Just(1.0 / 512.0), 1e-3..10.0f64], part in -0.2..1.2f64,
    ) {
        let range = Range::new(lowest, lowest + f64::from(steps) * step, step);
        let kind = Kind::Float { min: range.min, max: range.max, step: range.step };
        prop_assert_eq!(kind.check(), Ok(()));
        prop_assert_eq!(range.span(), steps);
        let number = range.min + (range.max - range.min) * part;
        let lanes = lanes_of(&kind, &[number]);
        let read = read(&kind, &lanes);
        prop_assert_eq!(lanes_of(&kind, &read), lanes);
        let clamped = number.clamp(range.min, range.max);
        prop_assert!((read[0] - clamped).abs() <= step * 0.501);
    }

    #[test]
    fn numbers_of_any_range_that_a_schema_takes_come_back(
        bits in any::<[u64; 3]>(), sizes in [-40i32..50, -40i32..50, -50i32..45], lane in any::<u32>(),
    ) {
        let number = |index: usize| (bits[index] as f64 / 2f64.powi(63) - 1.0) * 2f64.powi(sizes[index]);
        let (a, b) = (number(0), number(1));
        let range = Range::new(a.min(b), a.max(b), number(2).abs());
        let kind = Kind::Vector { dims: 2, min: range.min, max: range.max, step: range.step };
        if kind.check().is_ok() {
            let lane = i32::try_from(lane % range.span()).unwrap();
            let lanes = [lane, i32::try_from(range.span()).unwrap()];
            prop_assert!(read(&kind, &lanes).iter().all(|number| (range.min..=range.max).contains(number)));
            prop_assert_eq!(lanes_of(&kind, &read(&kind, &lanes)), lanes);
        }
    }

    #[test]
    fn an_angle_comes_back_and_is_the_same_each_turn(steps in 2u32..=1 << 22, radians in -20.0..20.0f64, turns in -3i32..4) {
        let kind = Kind::angle(steps);
        let lanes = lanes_of(&kind, &[radians]);
        comes_back(&kind, &lanes);
        let read = read(&kind, &lanes)[0];
        prop_assert!(-PI < read && read <= PI);
        let off = (radians - read).rem_euclid(TAU);
        prop_assert!(off.min(TAU - off) <= 0.51 * TAU / f64::from(steps));
        let again = lanes_of(&kind, &[read + TAU * f64::from(turns)]);
        prop_assert_eq!(again, lanes);
    }

    #[test]
    fn lanes_that_nobody_quantized_are_read_as_something(lanes in any::<[i32; 13]>(), bits in 4u8..=12) {
        let range = Range::new(-1.0, 1.0, 0.01);
        for kind in [
            rotation(bits), Kind::UnitVector { bits }, Kind::angle(100), Kind::int(-5, 5), Kind::Bool,
            Kind::Transform { position: range, rotation_bits: bits },
            Kind::Body { position: range, rotation_bits: bits, velocity: range, spin: range },
        ] {
            let numbers = read(&kind, &lanes[..kind.lanes()]);
            prop_assert!(numbers.iter().all(|number| number.is_finite()));
        }
    }
}

#[test]
fn what_has_no_length_has_a_form_nevertheless() {
    for tiny in [0.0, -0.0, f64::MIN_POSITIVE / 4.0, 1e-300] {
        let rotation = rotation(9);
        let [x, .., w] = dequantize_rotation(array(&lanes_of(&rotation, &[0.0, 0.0, 0.0, tiny])), 9);
        assert_eq!((x, w), (0.0, 1.0));
        let up = Kind::UnitVector { bits: 9 };
        assert_eq!(read(&up, &lanes_of(&up, &[0.0, 0.0, tiny])), [0.0, 0.0, 1.0]);
    }
    let huge = lanes_of(&Kind::UnitVector { bits: 9 }, &[-f64::MAX, 0.0, -f64::MAX]);
    let read = read(&Kind::UnitVector { bits: 9 }, &huge);
    assert!((read[0] + FRAC_1_SQRT_2).abs() < 0.01 && read[1] == 0.0);
}

#[test]
fn what_is_out_of_range_becomes_its_end() {
    for (kind, number, expected) in [
        (Kind::float(-1.0, 2.0, 0.5), 1e300, 2.0),
        (Kind::float(-1.0, 2.0, 0.5), -f64::MAX, -1.0),
        (Kind::int(-7, 9), 1e300, 9.0),
        (Kind::int(-7, 9), i64::MIN as f64, -7.0),
        (Kind::float(-1.0, 1.0, 0.001), 5.0, 1.0),
        (Kind::float(0.0, 1.0, 0.3), 1.0, 0.899_999_999_999_999_9),
    ] {
        assert_eq!(read(&kind, &lanes_of(&kind, &[number])), [expected], "{kind:?}");
    }
}

#[test]
fn a_range_that_ends_at_minus_zero_ends_at_zero() {
    let kind = Kind::float(-1.0, -0.0, 0.5);
    assert_eq!(read(&kind, &[2])[0].to_bits(), 0);
}

#[test]
fn halves_are_rounded_away_from_the_least() {
    let kind = Kind::float(-1.0, 1.0, 0.5);
    assert_eq!(lanes_of(&kind, &[-0.75]), [1]);
    assert_eq!(lanes_of(&kind, &[0.25]), [3]);
    let kind = Kind::int(-5, 5);
    assert_eq!(read(&kind, &lanes_of(&kind, &[2.5])), [3.0]);
    assert_eq!(read(&kind, &lanes_of(&kind, &[-2.5])), [-3.0]);
}
