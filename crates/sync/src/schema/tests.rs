use super::*;
use crate::limits::{FIELD_SPAN_MAX, FIELDS_MAX, LANES_MAX};
use crate::value::Value;
use crate::{choice, replicated};
use parlor_proto::TickRate;
use parlor_proto::limits::LABEL_BYTES_MAX;
use parlor_proto::wire::cursor::{ReadError, Write};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Idle,
    Run,
    Jump,
}
choice!(Mode { Idle, Run, Jump });

/// A field of every kind.
#[derive(Clone, Debug, PartialEq)]
struct All {
    alive: bool,
    shells: u8,
    heat: f32,
    heading: f32,
    flat: [f32; 2],
    place: [f32; 3],
    aim: [f32; 3],
    turn: [f32; 4],
    wheel: Transform,
    body: Body,
    mode: Mode,
    name: String,
    blob: Vec<u8>,
    value: Value,
}

const METRES: Range = Range::new(-256.0, 256.0, 1.0 / 512.0);

replicated!(All as "all", priority(300), condition(Condition::NotOwner) => {
    alive: Kind::Bool,
    shells: Kind::int(0, 200),
    heat: Kind::float(0.0, 1.0, 1.0 / 256.0).threshold(3),
    heading: Kind::angle(1024).threshold(2),
    flat: Kind::vector2(-10.0, 10.0, 0.01),
    place: Kind::vector3(-10.0, 10.0, 0.01).interpolation(Interpolation::None),
    aim: Kind::unit_vector(10),
    turn: Kind::rotation(9).interpolation(Interpolation::Linear),
    wheel: Kind::Transform { position: METRES, rotation_bits: 9 },
    body: Kind::Body {
        position: METRES,
        rotation_bits: 9,
        velocity: Range::new(-50.0, 50.0, 1.0 / 64.0),
        spin: Range::new(-40.0, 40.0, 1.0 / 32.0),
    },
    mode: Kind::choice::<Mode>(),
    name: Kind::text(16),
    blob: Kind::bytes(8),
    value: Kind::any(32),
});

fn all() -> All {
    All {
        alive: true,
        shells: 17,
        heat: 0.5,
        heading: -1.0,
        flat: [1.0, -2.0],
        place: [3.0, 4.0, -5.0],
        aim: [0.0, -1.0, 0.0],
        turn: [0.0, 0.0, 0.0, 1.0],
        wheel: Transform { position: [1.0, 2.0, 3.0], ..Transform::default() },
        body: Body { position: [-1.0, 0.5, 100.0], velocity: [1.0, -3.0, 0.0], ..Body::default() },
        mode: Mode::Jump,
        name: "Ülf".to_owned(),
        blob: vec![0, 255],
        value: Value::List(vec![1.into(), "x".into()]),
    }
}

fn row(value: &All) -> Result<(Vec<i32>, Vec<Bytes>), RowError> {
    let component = All::component();
    let (mut lanes, mut blobs) = component.rest_row();
    let mut writer = RowWriter::new(&component, &mut lanes, &mut blobs);
    value.write(&mut writer);
    writer.finish()?;
    component.check_row(&lanes, &blobs)?;
    Ok((lanes, blobs))
}

fn read(lanes: &[i32], blobs: &[Bytes]) -> All {
    All::read(&RowReader::new(&All::component(), lanes, blobs))
}

fn schema() -> Schema {
    Schema::builder().replicate::<All>().interest("all", "body", 64.0, 80.0).build().unwrap()
}

#[test]
fn a_struct_goes_into_a_row_and_comes_back() {
    let (lanes, blobs) = row(&all()).unwrap();
    let read = read(&lanes, &blobs);
    assert_eq!(row(&read).unwrap(), (lanes, blobs), "what was read is quantized to the same");
    // Values that quantizing keeps exactly.
    let rough = All { heading: -1.0, turn: all().turn, ..read.clone() };
    assert_eq!(rough, All { flat: read.flat, place: read.place, ..all() });
    assert!((read.heading + 1.0).abs() < 0.0031 && (read.place[2] + 5.0).abs() < 0.0051);
}

#[test]
fn a_row_at_rest_is_in_order() {
    let component = All::component();
    let (lanes, blobs) = component.rest_row();
    component.check_row(&lanes, &blobs).unwrap();
    let rest = read(&lanes, &blobs);
    assert_eq!((rest.turn, rest.body, rest.value), ([0.0, 0.0, 0.0, 1.0], Body::default(), Value::Null));
}

/// Sets one number of one field.
type Poke = (&'static str, fn(&mut All, f32));

const NUMBERS: [Poke; 15] = [
    ("heat", |all, it| all.heat = it),
    ("heading", |all, it| all.heading = it),
    ("flat", |all, it| all.flat[1] = it),
    ("place", |all, it| all.place[2] = it),
    ("aim", |all, it| all.aim[0] = it),
    ("aim", |all, it| all.aim = [it; 3]),
    ("turn", |all, it| all.turn[3] = it),
    ("turn", |all, it| all.turn = [it; 4]),
    ("wheel", |all, it| all.wheel.position[0] = it),
    ("wheel", |all, it| all.wheel.rotation[2] = it),
    ("body", |all, it| all.body.position[1] = it),
    ("body", |all, it| all.body.rotation[1] = it),
    ("body", |all, it| all.body.velocity[1] = it),
    ("body", |all, it| all.body.spin[2] = it),
    ("value", |all, it| all.value = Value::List(vec![it.into()])),
];

#[test]
fn threat_18_numbers_that_are_not_finite_are_refused_by_name_in_every_kind() {
    for (field, poke) in NUMBERS {
        for special in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut value = all();
            poke(&mut value, special);
            let error = row(&value).unwrap_err();
            assert_eq!((error.component.as_str(), error.field.as_str()), ("all", field), "{special}");
            assert!(error.to_string().contains("must be finite"), "{error}");
        }
    }
}

#[test]
fn threat_18_minus_zero_and_subnormal_numbers_have_the_form_of_zero_in_every_kind() {
    for (field, poke) in NUMBERS {
        let with = |number: f32| {
            let mut value = all();
            poke(&mut value, number);
            row(&value).unwrap()
        };
        let zero = with(0.0);
        assert_eq!(with(-0.0), zero, "{field}");
        if field != "value" && field != "aim" && field != "turn" {
            for tiny in [f32::from_bits(1), -f32::from_bits(1), f32::MIN_POSITIVE / 2.0] {
                assert_eq!(with(tiny), zero, "{field}");
            }
        }
        // No value read is −0 or subnormal, nor the result of an extreme number.
        for number in [-0.0, f32::from_bits(1), f32::MAX, f32::MIN, f32::EPSILON] {
            let (lanes, blobs) = with(number);
            let component = All::component();
            let row = RowReader::new(&component, &lanes, &blobs);
            for field in 0..component.fields().len() {
                for number in row.field(field).numbers() {
                    assert!(number.is_normal() || number.to_bits() == 0, "{number:e} in {field}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let too_long = All { name: "x".repeat(17), ..all() };
    let error = row(&too_long).unwrap_err();
    assert_eq!(error.fault, FieldFault::TooLong { bytes: 17, max: 16 });
    assert_eq!(error.to_string(), "all.name: 17 bytes are more than the 16 allowed");
    let too_long = All { blob: vec![0; 9], ..all() };
    assert_eq!(row(&too_long).unwrap_err().fault, FieldFault::TooLong { bytes: 9, max: 8 });
    let too_long = All { value: Value::Text("x".repeat(40)), ..all() };
    assert!(matches!(row(&too_long).unwrap_err().fault, FieldFault::Value(_)));

    let component = All::component();
    let (mut lanes, mut blobs) = component.rest_row();
    let mut writer = RowWriter::new(&component, &mut lanes, &mut blobs);
    writer.set(0, &1.0f32);
    writer.set(99, &true);
    let error = writer.finish().unwrap_err();
    assert_eq!(error.to_string(), "all.alive: f32 does not fit a field of this kind");
    for (field, numbers, said) in [
        (10, &[3.0][..], "all.mode: there is no name 3 among 3"),
        (10, &[-1.0], "all.mode: there is no name"),
        (5, &[0.0; 2], "all.place: 2 numbers for a field that has 3"),
        (11, &[0.0], "all.name: 1 numbers for a field that has 0"),
        (77, &[0.0], "all.77: a field that there is not does not fit"),
    ] {
        let mut writer = RowWriter::new(&component, &mut lanes, &mut blobs);
        writer.set_numbers(field, numbers);
        let error = writer.finish().unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn a_row_from_elsewhere_is_checked() {
    let component = All::component();
    let (lanes, blobs) = row(&all()).unwrap();
    for (lane, kind) in component.lane_kinds().iter().enumerate() {
        for wrong in [-1, i32::MIN, i32::try_from(kind.span).unwrap().saturating_add(1)] {
            let mut lanes = lanes.clone();
            lanes[lane] = wrong;
            let error = component.check_row(&lanes, &blobs).unwrap_err();
            assert_eq!(error.fault, FieldFault::Lane);
            let field = component.find(&error.field).unwrap();
            assert!(component.field_lanes(field).contains(&lane));
        }
    }
    let turn = component.field_lanes(component.find("turn").unwrap()).start;
    let mut twisted = lanes.clone();
    twisted[turn + 1..turn + 4].fill(0);
    assert_eq!(component.check_row(&twisted, &blobs).unwrap_err().field, "turn");
    assert!(component.check_row(&lanes[1..], &blobs).is_err());
    assert!(component.check_row(&lanes, &blobs[..2]).is_err());
    for (blob, wrong) in
        [(0, "\u{e9}\u{e9}".as_bytes()[..3].to_vec()), (1, vec![0; 9]), (2, vec![]), (2, vec![0xff; 40])]
    {
        let mut blobs = blobs.clone();
        blobs[blob] = wrong.into();
        assert!(component.check_row(&lanes, &blobs).is_err(), "{blob}");
    }
}

#[test]
fn a_change_within_the_threshold_is_none() {
    let component = All::component();
    let (lanes, _) = row(&all()).unwrap();
    let at = |name: &str| component.field_lanes(component.find(name).unwrap()).start;
    let with = |lane: usize, value: i32| {
        let mut lanes = lanes.clone();
        lanes[lane] = value;
        lanes
    };
    let heat = at("heat");
    assert!(!component.is_change(&lanes, &lanes));
    assert!(!component.is_change(&lanes, &with(heat, lanes[heat] + 3)));
    assert!(component.is_change(&lanes, &with(heat, lanes[heat] - 4)));
    assert!(component.is_change(&lanes, &with(at("shells"), 18)), "a field without a threshold");
    // Around the turn: 1023 and 1 are 2 apart.
    let heading = at("heading");
    assert!(!component.is_change(&with(heading, 1023), &with(heading, 1)));
    assert!(component.is_change(&with(heading, 1023), &with(heading, 2)));

    let turning = Component::builder("t").field("turn", Kind::rotation(9).threshold(9)).build();
    assert!(turning.is_change(&[3, 255, 255, 255], &[2, 255, 255, 255]), "another part left out is a change");
    assert!(!turning.is_change(&[3, 255, 255, 255], &[3, 246, 255, 264]));
    let plain = Component::builder("p").field("n", Kind::int(0, 9)).build();
    assert!(plain.is_change(&[1], &[2]) && !plain.is_change(&[2], &[2]));
}

#[test]
fn a_schema_knows_its_components() {
    let schema = schema();
    let names: Vec<_> = schema.components().iter().map(Component::name).collect();
    assert_eq!(names, ["keyed.key", "input.ack", "all"], "built-in ones first, then as registered");
    assert_eq!((schema.find("keyed.key"), schema.find("input.ack")), (Some(KEYED_KEY), Some(INPUT_ACK)));
    let id = schema.find("all").unwrap();
    let component = schema.get(id).unwrap();
    assert_eq!(*component, All::component());
    assert_eq!((component.priority(), component.condition()), (300, Condition::NotOwner));
    assert_eq!((component.lanes(), component.blobs(), component.numbers()), (36, 3, 37));
    assert_eq!(schema.interest().unwrap().field, component.find("body").unwrap());
    assert_eq!(schema.find("none"), None);
    assert_eq!(Schema::builder().build().unwrap(), Schema::default());
    assert!(Schema::bare().replicate::<All>().build().unwrap().find("keyed.key").is_none());
}

#[test]
fn the_lanes_of_a_body_know_their_velocity() {
    let component = All::component();
    let lanes = component.field_lanes(component.find("body").unwrap());
    let kinds = &component.lane_kinds()[lanes.clone()];
    for (axis, kind) in kinds[..3].iter().enumerate() {
        let LaneRole::Position { velocity: Some(velocity) } = kind.role else { panic!("it has one") };
        assert_eq!(velocity.lane, lanes.start + 7 + axis);
        let rate = TickRate::new(32).unwrap();
        // 3 m/s are 3 × 512 steps per second, and 48 per tick.
        let per_tick = velocity.per_tick(rate);
        let lane = i64::from((3 + 50) * 64);
        assert_eq!((per_tick.offset_q16 + per_tick.scale_q16 * lane) >> PER_TICK_FRACTION_BITS, 48);
    }
    assert_eq!(kinds[3].role, LaneRole::RotationLargest);
    assert!(kinds[4..7].iter().all(|lane| lane.role == LaneRole::RotationPart && lane.span == 510));
    assert_eq!(kinds[7], LaneKind { span: 6400, role: LaneRole::Plain });
}

#[test]
fn the_way_of_one_tick_overflows_for_no_range() {
    let finest = Range::new(-1e-3, 1e-3, 1e-12);
    for velocity in [Range::new(-1e15, 1e15, 1e6), Range::new(0.0, 1e15, 1e15), Range::new(-1e15, -1e14, 1e9)]
    {
        let lane = VelocityLane::new(0, finest, velocity);
        let per_tick = lane.per_tick(TickRate::new(1).unwrap());
        for at in [0, i64::from(velocity.span())] {
            let way = per_tick.scale_q16.checked_mul(at).and_then(|way| way.checked_add(per_tick.offset_q16));
            assert!(way.and_then(|way| way.checked_mul(128)).is_some());
        }
    }
}

fn fault_of(kind: impl Into<Field>) -> String {
    let component = Component::builder("c").field("f", kind).build();
    Schema::builder().component(component).build().unwrap_err().to_string()
}

#[test]
fn ranges_that_cannot_be_are_refused_by_name() {
    for (kind, part) in [
        (Kind::float(f64::NAN, 1.0, 0.1), "not finite"),
        (Kind::float(0.0, f64::INFINITY, 0.1), "not finite"),
        (Kind::float(0.0, 1.0, f64::NAN), "not finite"),
        (Kind::float(0.0, 1.0, f64::MIN_POSITIVE / 2.0), "subnormal"),
        (Kind::float(1.0, 1.0, 0.1), "no range"),
        (Kind::float(2.0, 1.0, 0.1), "no range"),
        (Kind::float(0.0, 1.0, 0.0), "not above 0"),
        (Kind::float(0.0, 1.0, -0.1), "not above 0"),
        (Kind::float(0.0, 1.0, 3.0), "larger than its range"),
        (Kind::float(0.0, 1.0, 1e-10), "2^31 steps"),
        (Kind::float(0.0, 1e16, 1e10), "10^15"),
        (Kind::float(1e14, 1e14 + 1.0, 0.1), "too fine"),
        (Kind::int(3, 3), "no range"),
        (Kind::int(0, 1 << 31), "2^31 values"),
        (Kind::int(i64::MIN, i64::MIN + 5), "2^53"),
        (Kind::angle(1), "parts of a turn"),
        (Kind::angle((1 << 22) + 1), "parts of a turn"),
        (Kind::Vector { dims: 4, min: 0.0, max: 1.0, step: 0.1 }, "2 or 3 components"),
        (Kind::vector3(0.0, 1.0, f64::NEG_INFINITY), "not finite"),
        (Kind::unit_vector(3), "4 to 16 bits"),
        (Kind::unit_vector(17), "4 to 16 bits"),
        (Kind::rotation(255), "4 to 12 bits"),
        (Kind::Transform { position: Range::new(0.0, 0.0, 1.0), rotation_bits: 9 }, "no range"),
        (Kind::Transform { position: METRES, rotation_bits: 3 }, "4 to 12 bits"),
        (
            Kind::Body {
                position: METRES,
                rotation_bits: 9,
                velocity: METRES,
                spin: Range::new(0.0, 1.0, 0.0),
            },
            "not above 0",
        ),
        (Kind::Enum { names: vec![] }, "1 to 256 names"),
        (Kind::Enum { names: vec!["a".into(); 2] }, "twice"),
        (Kind::Enum { names: vec![String::new()] }, "1 to 64 bytes"),
        (Kind::text(0), "one byte"),
        (Kind::any(16_385), "16 KiB"),
    ] {
        let said = fault_of(kind.clone());
        assert!(said.contains("the field c.f") && said.contains(part), "{kind:?}: {said}");
    }
    // The largest possible.
    let widest = Component::builder("c")
        .field("int", Kind::int(0, i64::from(FIELD_SPAN_MAX)))
        .field("float", Kind::float_bits(-1.0, 1.0, 31))
        .build();
    let schema = Schema::bare().component(widest).build().unwrap();
    assert_eq!(schema.components()[0].lane_kinds()[0].span, FIELD_SPAN_MAX);
}

#[test]
fn interpolations_and_thresholds_fit_their_kind() {
    use Interpolation::{Hermite, Linear, Spherical};
    for field in [
        Kind::Bool.interpolation(Linear),
        Kind::text(3).interpolation(Linear),
        Kind::float(0.0, 1.0, 0.1).interpolation(Spherical),
        Kind::Transform { position: METRES, rotation_bits: 9 }.interpolation(Hermite),
    ] {
        assert!(fault_of(field).contains("interpolation"));
    }
    for field in [Kind::Bool.threshold(1), Kind::text(3).threshold(1), Kind::int(0, 5).threshold(5)] {
        assert!(fault_of(field).contains("threshold"));
    }
}

#[test]
fn what_is_registered_twice_is_refused() {
    let twice = Schema::builder().replicate::<All>().replicate::<All>().build();
    assert_eq!(twice, Err(SchemaError::DuplicateComponent { component: "all".to_owned() }));
    let built_in = Component::builder("input.ack").field("n", Kind::Bool).build();
    assert!(matches!(
        Schema::builder().component(built_in).build(),
        Err(SchemaError::DuplicateComponent { .. })
    ));
    let fields = Component::builder("c").field("n", Kind::Bool).field("n", Kind::Bool).build();
    let field = Schema::builder().component(fields).build();
    assert_eq!(field, Err(SchemaError::DuplicateField { component: "c".into(), field: "n".into() }));
}

#[test]
fn a_schema_is_bounded() {
    let component = |name: &str, fields: usize, kind: Kind| {
        let builder = Component::builder(name);
        (0..fields).fold(builder, |builder, n| builder.field(&format!("f{n}"), kind.clone())).build()
    };
    let build = |component| Schema::builder().component(component).build();
    assert!(build(component("c", FIELDS_MAX, Kind::Bool)).is_ok());
    assert!(matches!(
        build(component("c", FIELDS_MAX + 1, Kind::Bool)),
        Err(SchemaError::TooManyFields { .. })
    ));
    assert!(build(component("c", LANES_MAX / 4, Kind::rotation(9))).is_ok());
    let wide = build(component("c", LANES_MAX / 4 + 1, Kind::rotation(9)));
    assert_eq!(wide, Err(SchemaError::TooManyLanes { component: "c".into(), lanes: LANES_MAX + 4 }));
    assert!(matches!(build(component("c", 0, Kind::Bool)), Err(SchemaError::NoFields { .. })));
    for name in [String::new(), "x".repeat(LABEL_BYTES_MAX + 1)] {
        assert_eq!(build(component(&name, 1, Kind::Bool)), Err(SchemaError::Name { name }));
    }
    let mute = Component::builder("c").field("n", Kind::Bool).priority(0).build();
    assert!(matches!(build(mute), Err(SchemaError::Priority { .. })));
    let many = |count: usize, fields: usize| {
        let all = (0..count).map(|n| component(&format!("c{n}"), fields, Kind::float(0.0, 1.0, 0.1)));
        all.fold(Schema::builder(), SchemaBuilder::component).build()
    };
    assert_eq!(many(COMPONENTS_MAX, 1).unwrap().components().len(), COMPONENTS_MAX + 2);
    assert_eq!(many(COMPONENTS_MAX + 1, 1), Err(SchemaError::TooManyComponents));
    assert!(matches!(many(COMPONENTS_MAX, FIELDS_MAX), Err(SchemaError::TooLarge { .. })));
}

#[test]
fn a_rust_type_that_cannot_hold_its_kind_is_refused() {
    struct Wrong {
        fine: bool,
        small: i8,
    }
    replicated!(Wrong as "wrong" => { fine: Kind::Bool, small: Kind::int(0, 128) });
    let error = Schema::builder().replicate::<Wrong>().build().unwrap_err();
    assert_eq!(error.to_string(), "the field wrong.small is i8 in Rust, which does not hold its kind");
    assert!(Wrong { fine: true, small: 1 }.fine, "it is a type like others");
}

#[test]
fn interest_is_measured_by_a_place() {
    let with = |field: &str, radius: f64, leave: f64| {
        Schema::builder().replicate::<All>().interest("all", field, radius, leave).build()
    };
    for field in ["flat", "place", "wheel", "body"] {
        assert!(with(field, 10.0, 10.0).is_ok());
    }
    for field in ["heat", "name", "none"] {
        assert!(matches!(with(field, 10.0, 12.0), Err(SchemaError::InterestField { .. })));
    }
    for (radius, leave) in
        [(0.0, 1.0), (-0.0, 1.0), (5.0, 4.9), (f64::NAN, 1.0), (1.0, f64::NAN), (1.0, f64::INFINITY)]
    {
        assert!(matches!(with("body", radius, leave), Err(SchemaError::InterestRadius { .. })));
    }
}

#[test]
fn a_schema_comes_back_from_its_bytes() {
    for schema in [schema(), Schema::default(), Schema::bare().replicate::<All>().build().unwrap()] {
        let bytes = schema.encode();
        let again = Schema::decode(bytes.clone()).unwrap();
        assert_eq!((again.hash(), &again), (schema.hash(), &schema));
        assert_eq!(again.encode(), bytes);
    }
    assert_eq!(Schema::default().encode().as_ref(), [1, 0, 0]);
    let urgent = Component::builder("c").field("a", Kind::Bool.priority(512)).field("b", Kind::Bool).build();
    let again = Schema::decode(Schema::bare().component(urgent).build().unwrap().encode()).unwrap();
    let priorities = again.components()[0].fields().iter().map(|field| field.priority.map(|it| it.get()));
    assert_eq!(priorities.collect::<Vec<_>>(), [Some(512), None]);
    assert!(Schema::decode(bytes_of(&[0], &[0x80, 0, 1, 0])).is_ok());
    let none = Schema::decode(bytes_of(&[0], &[0x80, 0, 0, 0]));
    assert_eq!(none, Err(ReadError::OutOfRange { field: "a priority" }.into()));
}

#[test]
fn whatever_differs_has_another_hash() {
    let one = |name: &str, field: Field| {
        let component = Component::builder("c").field(name, field).build();
        Schema::builder().component(component).build().unwrap().hash()
    };
    let float = |max: f64| Field::from(Kind::float(0.0, max, 0.1));
    let hashes = [
        one("f", float(1.0)),
        one("g", float(1.0)),
        one("f", float(1.1)),
        one("f", float(1.0).threshold(1)),
        one("f", float(1.0).priority(256)),
        one("f", float(1.0).interpolation(Interpolation::None)),
        Schema::default().hash(),
        Schema::bare().build().unwrap().hash(),
    ];
    for (index, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..index].contains(hash), "{index}");
    }
}

/// The bytes of a schema with one component of one field.
fn bytes_of(kind: &[u8], tail: &[u8]) -> Bytes {
    let mut out = vec![0, 1, 1, b'c'];
    out.put_varint(256);
    out.put(&[0, 1, 1, b'f']);
    out.put(kind);
    out.put(tail);
    out.into()
}

#[test]
fn bytes_that_are_no_schema_are_refused_by_name() {
    let plain = [0, 0, 0];
    assert!(Schema::decode(bytes_of(&[0], &plain)).is_ok());
    let unknown = Schema::decode(bytes_of(&[13], &plain)).unwrap_err();
    assert_eq!(unknown, SchemaError::UnknownKind { component: "c".into(), field: "f".into(), kind: 13 });
    assert!(unknown.to_string().contains("c.f is of the unknown kind 13"));
    let trailing = Schema::decode(bytes_of(&[0], &[0, 0, 0, 0]));
    assert_eq!(trailing, Err(ReadError::Trailing { left: 1 }.into()));
    for (bytes, field) in [
        (bytes_of(&[0], &[4, 0, 0]), "an interpolation"),
        (bytes_of(&[0], &[0, 0, 2]), "interest"),
        (Bytes::from_static(&[2, 0, 0]), "the flags of a schema"),
    ] {
        assert!(
            matches!(Schema::decode(bytes), Err(SchemaError::Read(ReadError::Unknown { field: at, .. })) if at == field)
        );
    }
    assert!(matches!(Schema::decode(vec![0; 9000].into()), Err(SchemaError::TooLarge { bytes: 9000 })));
}

#[test]
fn threat_18_special_floats_in_the_ranges_of_a_schema_are_refused() {
    for special in [-0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::from_bits(1), f64::MAX]
    {
        for at in 0..3 {
            let mut range = [0.0, 1.0, 0.1];
            range[at] = special;
            let mut kind = vec![2];
            range.iter().for_each(|number| kind.put_u64(number.to_bits()));
            assert!(Schema::decode(bytes_of(&kind, &[1, 0, 0])).is_err(), "{special:e} at {at}");
        }
    }
    // A builder normalizes it.
    let component = Component::builder("c").field("f", Kind::float(-0.0, 1.0, 0.1)).build();
    let schema = Schema::bare().component(component).build().unwrap();
    assert_eq!(Schema::decode(schema.encode()), Ok(schema));
}

proptest! {
    #[test]
    fn a_schema_that_is_cut_short_or_changed_is_refused_or_has_one_form(at in 0usize..700, byte: u8, cut: bool) {
        let mut bytes = schema().encode().to_vec();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        match Schema::decode(bytes.clone().into()) {
            Ok(schema) => prop_assert_eq!(schema.encode(), bytes.clone()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        if cut {
            prop_assert!(Schema::decode(bytes.into()).is_err());
        }
    }
}
