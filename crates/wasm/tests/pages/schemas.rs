//! A description of a schema stands for the same schema as the Rust types do.

use crate::support::{fault, give, list, map, ok};
use parlor_sync::replicated;
use parlor_sync::schema::{
    Body, Choice, Condition, Interpolation, Kind, Range, Schema, SchemaBuilder, Transform,
};
use parlor_sync::value::Value;
use parlor_wasm::exports::module;
use parlor_wasm::memory;

struct Dot {
    x: f32,
    hue: u16,
}
replicated!(Dot as "dot" => { x: Kind::float(-8.0, 8.0, 0.25), hue: Kind::int(0, 359) });

struct Tank {
    position: [f64; 2],
    heading: f32,
    shells: u8,
    alive: bool,
}
replicated!(Tank as "tank", priority(512), condition(Condition::NotOwner) => {
    position: Kind::vector2(-256.0, 256.0, 1.0 / 512.0).threshold(2),
    heading: Kind::angle(1024).interpolation(Interpolation::None),
    shells: Kind::int(0, 20),
    alive: Kind::Bool,
});

struct Ship {
    place: Transform,
    nose: [f32; 3],
    roll: [f32; 4],
    drift: [f32; 3],
}
replicated!(Ship as "ship" => {
    place: Kind::Transform { position: Range::new(-100.0, 100.0, 0.01), rotation_bits: 9 },
    nose: Kind::unit_vector(8),
    roll: Kind::rotation(10).interpolation(Interpolation::Spherical),
    drift: Kind::vector3(-1.0, 1.0, 0.125),
});

struct Crate {
    body: Body,
    fuse: f32,
}
replicated!(Crate as "crate", condition(Condition::OwnerOnly) => {
    body: Kind::Body {
        position: Range::new(-100.0, 100.0, 0.002),
        rotation_bits: 9,
        velocity: Range::new(-50.0, 50.0, 0.01),
        spin: Range::new(-40.0, 40.0, 0.02),
    },
    fuse: Kind::float_bits(0.0, 10.0, 7),
});

#[derive(Clone, Copy)]
enum Mood {
    Calm,
    Angry,
}

impl Choice for Mood {
    const NAMES: &'static [&'static str] = &["calm", "angry"];

    fn index(self) -> usize {
        self as usize
    }

    fn from_index(index: usize) -> Self {
        if index == 1 { Mood::Angry } else { Mood::Calm }
    }
}

struct Note {
    mood: Mood,
    text: String,
    raw: Vec<u8>,
    more: Value,
}
replicated!(Note as "note" => {
    mood: Kind::choice::<Mood>(),
    text: Kind::text(24),
    raw: Kind::bytes(8),
    more: Kind::any(64),
});

fn range(min: f64, max: f64, step: f64) -> [(&'static str, Value); 3] {
    [("min", min.into()), ("max", max.into()), ("step", step.into())]
}

/// A field's description.
fn field<const N: usize>(name: &str, kind: &str, more: [(&str, Value); N]) -> Value {
    let Value::Map(mut field) = map(more) else { unreachable!() };
    field.insert("name", name);
    field.insert("kind", kind);
    Value::Map(field)
}

fn component<const N: usize, const M: usize>(
    name: &str,
    fields: [Value; N],
    more: [(&str, Value); M],
) -> Value {
    let Value::Map(mut component) = map(more) else { unreachable!() };
    component.insert("name", name);
    component.insert("fields", list(fields));
    Value::Map(component)
}

fn dot() -> Value {
    let hue = field("hue", "int", [("min", 0.into()), ("max", 359.into())]);
    component("dot", [field("x", "float", range(-8.0, 8.0, 0.25)), hue], [])
}

fn tank() -> Value {
    let [min, max, step] = range(-256.0, 256.0, 1.0 / 512.0);
    let fields = [
        field("position", "vec2", [min, max, step, ("threshold", 2.into())]),
        field("heading", "angle", [("steps", 1024.into()), ("interpolate", "none".into())]),
        field("shells", "int", [("min", 0.into()), ("max", 20.into())]),
        field("alive", "bool", []),
    ];
    component("tank", fields, [("priority", 512.into()), ("condition", "not-owner".into())])
}

fn ship() -> Value {
    let place = [("position", map(range(-100.0, 100.0, 0.01))), ("rotationBits", 9.into())];
    let fields = [
        field("place", "transform", place),
        field("nose", "unitVector", [("bits", 8.into())]),
        field("roll", "rotation", [("bits", 10.into()), ("interpolate", "spherical".into())]),
        field("drift", "vec3", range(-1.0, 1.0, 0.125)),
    ];
    component("ship", fields, [])
}

fn crate_() -> Value {
    let body = [
        ("position", map(range(-100.0, 100.0, 0.002))),
        ("rotationBits", 9.into()),
        ("velocity", map(range(-50.0, 50.0, 0.01))),
        ("spin", map(range(-40.0, 40.0, 0.02))),
    ];
    let fuse = [("min", 0.into()), ("max", 10.into()), ("bits", 7.into())];
    component(
        "crate",
        [field("body", "body", body), field("fuse", "floatBits", fuse)],
        [("condition", "owner".into())],
    )
}

fn note() -> Value {
    let fields = [
        field("mood", "oneOf", [("names", list(["calm".into(), "angry".into()]))]),
        field("text", "text", [("bytesMax", 24.into())]),
        field("raw", "bytes", [("bytesMax", 8.into())]),
        field("more", "any", [("bytesMax", 64.into())]),
    ];
    component("note", fields, [])
}

fn hash_of(description: Value) -> u64 {
    ok(module::schema_hash(give([description])));
    u64::from_le_bytes(memory::read().try_into().expect("a hash has 8 bytes"))
}

fn check(builder: SchemaBuilder, description: Value) {
    let schema: Schema = builder.build().expect("it is valid");
    assert_eq!(hash_of(description.clone()), schema.hash(), "{description}");
}

#[test]
fn five_schemas_have_the_hashes_of_their_rust_types() {
    let components = |list: Value| map([("components", list)]);
    check(Schema::builder(), components(list([])));
    check(Schema::builder().replicate::<Dot>(), components(list([dot()])));
    let near = [
        ("component", "tank".into()),
        ("field", "position".into()),
        ("radius", 64.into()),
        ("leave", 72.5.into()),
    ];
    check(
        Schema::builder().replicate::<Tank>().interest("tank", "position", 64.0, 72.5),
        map([("components", list([tank()])), ("interest", map(near))]),
    );
    check(Schema::builder().replicate::<Ship>().replicate::<Crate>(), components(list([ship(), crate_()])));
    check(
        Schema::builder().replicate::<Note>().replicate::<Dot>().replicate::<Tank>(),
        components(list([note(), dot(), tank()])),
    );
    let other_order = components(list([dot(), tank(), note()]));
    assert_ne!(hash_of(components(list([note(), dot(), tank()]))), hash_of(other_order));
}

#[test]
fn a_wrong_description_is_named_by_its_place() {
    let one = |field: Value| map([("components", list([component("a", [field], [])]))]);
    let cases = [
        (1.into(), "bad_options", "schema"),
        (one(field("x", "floot", [])), "bad_options", "schema.components[0].fields[0].kind"),
        (one(field("x", "int", [("min", 0.into())])), "bad_options", "schema.components[0].fields[0].max"),
        (one(field("x", "bool", [("min", 0.into())])), "bad_options", "schema.components[0].fields[0].min"),
        (
            one(field("x", "angle", [("steps", (-1).into())])),
            "bad_options",
            "schema.components[0].fields[0].steps",
        ),
        (one(field("x", "angle", [("steps", 0.into())])), "bad_schema", "schema"),
        (one(field("x", "float", range(0.0, 0.0, 1.0))), "bad_schema", "schema"),
        (map([("components", list([dot(), dot()]))]), "bad_schema", "schema"),
        (map([("componets", list([]))]), "bad_options", "schema.componets"),
    ];
    for (description, code, path) in cases {
        assert_eq!(module::schema_hash(give([description.clone()])), -1, "{description}");
        let fault_value = crate::support::taken_one();
        assert_eq!(crate::support::text(&fault_value, "path"), path, "{description}");
        assert_eq!(fault(), code, "{description}");
    }
}

#[test]
fn a_codec_can_ask_whether_bytes_are_a_value() {
    assert_eq!(module::value_check(give([map([("a", 1.5.into())])])), 0);
    for wrong in [&b""[..], b"\xc3\x05", b"\x82\x01b\x01\x01a\x01", b"\x00\x00", b"\xdf"] {
        assert_eq!(module::value_check(crate::support::give_bytes(&[wrong, b""].concat())), -1, "{wrong:?}");
    }
}
