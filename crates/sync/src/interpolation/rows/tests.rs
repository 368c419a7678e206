use super::*;
use crate::schema::{Body, Field, Range, RowWriter, Transform};
use crate::{choice, replicated};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Idle,
    Run,
}
choice!(Mode { Idle, Run });

#[derive(Clone, Debug, PartialEq)]
struct All {
    on: bool,
    count: i32,
    fixed: i32,
    heat: f64,
    heading: f64,
    place: [f64; 2],
    aim: [f64; 3],
    aim_along_chord: [f64; 3],
    turn: [f64; 4],
    turn_along_chord: [f64; 4],
    wheel: Transform,
    body: Body,
    mode: Mode,
    name: String,
}

const METRES: Range = Range::new(-100.0, 100.0, 1.0 / 1024.0);

fn body() -> Field {
    let (velocity, spin) = (Range::new(-64.0, 64.0, 1.0 / 1024.0), Range::new(-8.0, 8.0, 1.0 / 1024.0));
    Kind::Body { position: METRES, rotation_bits: 12, velocity, spin }.into()
}

replicated!(All as "all" => {
    on: Kind::Bool,
    count: Kind::int(-10, 10).interpolation(Interpolation::Linear),
    fixed: Kind::int(-10, 10),
    heat: Kind::float(0.0, 1.0, 1.0 / 1024.0),
    heading: Kind::angle(1 << 20),
    place: Kind::vector2(-10.0, 10.0, 1.0 / 1024.0),
    aim: Kind::unit_vector(16),
    aim_along_chord: Kind::unit_vector(16).interpolation(Interpolation::Linear),
    turn: Kind::rotation(12),
    turn_along_chord: Kind::rotation(12).interpolation(Interpolation::Linear),
    wheel: Kind::Transform { position: METRES, rotation_bits: 12 },
    body: body(),
    mode: Kind::choice::<Mode>(),
    name: Kind::text(8),
});

fn turned(axis: usize, radians: f64) -> [f64; 4] {
    let mut quaternion = [0.0, 0.0, 0.0, (radians / 2.0).cos()];
    quaternion[axis] = (radians / 2.0).sin();
    quaternion
}

#[allow(clippy::cast_possible_truncation)]
fn narrow<const N: usize>(numbers: [f64; N]) -> [f32; N] {
    numbers.map(|number| number as f32)
}

fn older() -> All {
    All {
        on: false,
        count: -2,
        fixed: 1,
        heat: 0.25,
        heading: 3.0,
        place: [0.0, 1.0],
        aim: [1.0, 0.0, 0.0],
        aim_along_chord: [1.0, 0.0, 0.0],
        turn: turned(2, 0.0),
        turn_along_chord: turned(2, 0.0),
        wheel: Transform { position: [0.0; 3], rotation: narrow(turned(0, 0.0)) },
        body: Body {
            position: [0.0; 3],
            velocity: [10.0, 0.0, 0.0],
            spin: [0.0, 0.0, 1.0],
            ..Body::default()
        },
        mode: Mode::Idle,
        name: "old".to_owned(),
    }
}

fn newer() -> All {
    All {
        on: true,
        count: 3,
        fixed: 5,
        heat: 0.75,
        heading: -3.0,
        place: [2.0, -1.0],
        aim: [0.0, 1.0, 0.0],
        aim_along_chord: [0.0, 1.0, 0.0],
        turn: turned(2, 1.0),
        turn_along_chord: turned(2, 1.0),
        wheel: Transform { position: [1.0; 3], rotation: narrow(turned(0, 1.0)) },
        body: Body {
            position: [0.5, 0.0, 0.0],
            velocity: [0.0, 10.0, 0.0],
            spin: [0.0, 0.0, 2.0],
            ..Body::default()
        },
        mode: Mode::Run,
        name: "new".to_owned(),
    }
}

fn row(value: &All) -> (Vec<i32>, Vec<Bytes>) {
    let component = All::component();
    let (mut lanes, mut blobs) = component.rest_row();
    let mut writer = RowWriter::new(&component, &mut lanes, &mut blobs);
    value.write(&mut writer);
    writer.finish().unwrap();
    (lanes, blobs)
}

fn at(t: f64) -> All {
    between(&older(), &newer(), t)
}

fn between(older: &All, newer: &All, t: f64) -> All {
    let component = All::component();
    let ((a, a_blobs), (b, b_blobs)) = (row(older), row(newer));
    let mut sample = Sample::default();
    let (older, newer) = (Row { lanes: &a, blobs: &a_blobs }, Row { lanes: &b, blobs: &b_blobs });
    sample.mix(&component, older, newer, 0.1, t);
    sample.read(&component)
}

fn raw(value: &All) -> All {
    let (lanes, blobs) = row(value);
    All::read(&RowReader::new(&All::component(), &lanes, &blobs))
}

fn close<const N: usize>(a: [f64; N], b: [f64; N]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < 3e-3)
}

#[test]
fn at_its_ends_it_is_what_was_sent() {
    for t in [0.0, -3.0, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(at(t), raw(&older()));
    }
    assert_eq!(at(1.0), raw(&newer()));
}

#[test]
fn halfway_each_kind_moves_as_it_should() {
    let half = at(0.5);
    assert_eq!(
        (half.on, half.fixed, half.mode, half.name.as_str()),
        (false, 1, Mode::Idle, "old"),
        "they snap"
    );
    assert_eq!(half.count, 1, "whole numbers stay whole");
    assert_eq!(half.heat, 0.5);
    assert!(
        (half.heading.abs() - PI).abs() < 1e-4,
        "the shorter way leads across π, not 0: {}",
        half.heading
    );
    assert!(close(half.place, [1.0, 0.0]));
    let diagonal = [0.5f64.sqrt(), 0.5f64.sqrt(), 0.0];
    assert!(close(half.aim, diagonal) && close(half.aim_along_chord, diagonal));
    assert!(close(half.turn, turned(2, 0.5)) && close(half.turn_along_chord, turned(2, 0.5)));
    assert!(close(half.wheel.rotation.map(f64::from), turned(0, 0.5)));
    // The curve leaves along x and arrives along y: a straight line would be at 0.25 and 0.
    assert!(close(half.body.position.map(f64::from), [0.375, -0.125, 0.0]), "{:?}", half.body.position);
    assert!(close(half.body.velocity.map(f64::from), [5.0, 5.0, 0.0]));
}

#[test]
fn an_arc_has_an_even_pace_and_a_chord_has_not() {
    let quarter = at(0.25);
    let aim = |radians: f64| [radians.cos(), radians.sin(), 0.0];
    assert!(close(quarter.aim, aim(PI / 8.0)));
    assert!(!close(quarter.aim_along_chord, aim(PI / 8.0)));
    assert!(close(quarter.turn, turned(2, 0.25)));
    let length = quarter.aim_along_chord.iter().map(|part| part * part).sum::<f64>();
    assert!((length - 1.0).abs() < 1e-9);
}

#[test]
fn rotations_take_the_shorter_way() {
    // From 3 rad to −1.4 rad it is 4.4 down and 1.88 up.
    let (a, b) = (turned(2, 3.0), turned(2, -1.4));
    let older = All { turn: a, turn_along_chord: a, ..older() };
    let newer = All { turn: b, turn_along_chord: b, ..newer() };
    let half = between(&older, &newer, 0.5);
    for turn in [half.turn, half.turn_along_chord] {
        let expected = turned(2, (3.0 - 1.4 + TAU) / 2.0);
        assert!(close(turn, expected) || close(turn.map(|part| -part), expected), "{turn:?}");
    }
}

#[test]
fn between_opposite_directions_the_older_stands() {
    let (a, b) = ([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]);
    let older = All { aim: a, aim_along_chord: a, ..older() };
    let newer = All { aim: b, aim_along_chord: b, ..newer() };
    let half = between(&older, &newer, 0.5);
    assert_eq!((half.aim, half.aim_along_chord), (a, a));
    assert_eq!(between(&older, &newer, 1.0).aim, b);
}

#[test]
fn beyond_the_newer_it_goes_on_for_a_while() {
    let beyond = at(1.5);
    assert_eq!((beyond.fixed, beyond.mode, beyond.name.as_str()), (5, Mode::Run, "new"));
    assert!((beyond.heat - 1.0).abs() < 1e-9);
    assert!(close(beyond.place, [3.0, -2.0]));
    assert!(close(beyond.aim, [-(0.5f64.sqrt()), 0.5f64.sqrt(), 0.0]));
    assert!(close(beyond.turn, turned(2, 1.5)) && close(beyond.turn_along_chord, turned(2, 1.5)));
    // 50 ms at 10 m/s along y and 2 rad/s around z.
    assert!(close(beyond.body.position.map(f64::from), [0.5, 0.5, 0.0]));
    assert!(close(beyond.body.rotation.map(f64::from), turned(2, 0.1)));
    assert_eq!(at(3.0).heat, 1.0, "never beyond the range");
    assert_eq!(at(3.0).count, 10);
    let longest = 1.0 + EXTRAPOLATION_MAX.as_secs_f64() / 0.1;
    for t in [longest + 1.0, 1e300, f64::INFINITY] {
        assert_eq!(at(t), at(longest));
    }
    assert_ne!(at(longest), at(longest - 1.0));
}

#[test]
fn without_an_interval_nothing_goes_on() {
    let component = All::component();
    let ((a, a_blobs), (b, b_blobs)) = (row(&older()), row(&newer()));
    for interval_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut sample = Sample::default();
        let (older, newer) = (Row { lanes: &a, blobs: &a_blobs }, Row { lanes: &b, blobs: &b_blobs });
        sample.mix(&component, older, newer, interval_s, 7.0);
        assert_eq!(sample.read::<All>(&component), raw(&super::tests::newer()));
    }
}

proptest! {
    #[test]
    fn whatever_the_lanes_are_the_numbers_are_finite_and_in_range(
        a in proptest::collection::vec(any::<i32>(), 48), b in proptest::collection::vec(any::<i32>(), 48), t in -1.0..20.0f64,
    ) {
        let component = All::component();
        let cut = |lanes: &[i32]| -> Vec<i32> {
            let kinds = component.lane_kinds().iter().zip(lanes);
            kinds.map(|(kind, lane)| i32::try_from(lane.unsigned_abs() % (kind.span + 1)).unwrap()).collect()
        };
        let (a, b) = (cut(&a), cut(&b));
        let blobs = vec![Bytes::new()];
        let mut sample = Sample::default();
        sample.mix(&component, Row { lanes: &a, blobs: &blobs }, Row { lanes: &b, blobs: &blobs }, 0.05, t);
        prop_assert!(sample.numbers().iter().all(|number| number.is_finite()));
        let read: All = sample.read(&component);
        prop_assert!((-10..=10).contains(&read.count) && (0.0..=1.0).contains(&read.heat));
        prop_assert!(read.body.position.iter().all(|at| at.abs() <= 100.0));
        for quaternion in [read.turn, read.body.rotation.map(f64::from)] {
            let length = quaternion.iter().map(|part| part * part).sum::<f64>();
            prop_assert!((length - 1.0).abs() < 1e-4, "{quaternion:?}");
        }
    }
}
