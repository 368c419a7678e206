//! Compares PROTOCOL.md's tables of schemas and worlds with the code.

use bytes::Bytes;
use parlor_sync::limits;
use parlor_sync::schema::{Component, Field, Interpolation, Kind, Range, Schema};

/// Returns the rows of the table of PROTOCOL.md whose head is `head`.
fn table(head: &str) -> Vec<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../PROTOCOL.md");
    let document = std::fs::read_to_string(path).expect("PROTOCOL.md is there");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let mut lines = document.lines().skip_while(|line| *line != head);
    assert!(lines.next().is_some(), "PROTOCOL.md has a table with the head {head}");
    lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect()
}

macro_rules! limits {
    ($($name:ident)*) => {
        [$((stringify!($name).to_owned(), limits::$name.to_string())),*]
    };
}

#[test]
fn limits_of_worlds_are_those_of_the_code() {
    let code = limits! {
        COMPONENTS_MAX FIELDS_MAX LANES_MAX CHOICES_MAX ANGLE_STEPS_MAX UNIT_VECTOR_BITS_MIN UNIT_VECTOR_BITS_MAX
        ROTATION_BITS_MIN ROTATION_BITS_MAX HINTS_MAX HINT_PATH_BYTES_MAX HINTS_BYTES_MAX ENTITIES_MAX
        WORLD_LANES_MAX WORLD_BLOB_BYTES_MAX ENTITY_BLOB_BYTES_MAX BASELINE_AGE_MAX HISTORY_TICKS RETREAT_TICKS_MAX NUMBER_WINDOW
        PACKET_ENTRIES_MAX PACKET_OUTPUT_BYTES_MAX PACKET_PART_BYTES WORLD_HISTORY_BYTES_MAX
    };
    let documented = table("| limit of worlds | value | kind | what |");
    let documented: Vec<_> = documented.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(documented, code);
}

/// Each kind with its name in PROTOCOL.md.
fn kinds() -> [(&'static str, Kind); 13] {
    let range = Range::new(-1.0, 1.0, 0.5);
    [
        ("bool", Kind::Bool),
        ("int", Kind::int(0, 5)),
        ("float", Kind::float(-1.0, 1.0, 0.5)),
        ("angle", Kind::angle(8)),
        ("vector", Kind::vector3(-1.0, 1.0, 0.5)),
        ("direction", Kind::unit_vector(8)),
        ("rotation", Kind::rotation(8)),
        ("transform", Kind::Transform { position: range, rotation_bits: 8 }),
        ("body", Kind::Body { position: range, rotation_bits: 8, velocity: range, spin: range }),
        ("enum", Kind::Enum { names: vec!["a".into()] }),
        ("text", Kind::text(3)),
        ("bytes", Kind::bytes(3)),
        ("any value", Kind::any(3)),
    ]
}

fn schema_of(field: Field) -> Option<Schema> {
    Schema::bare().component(Component::builder("c").field("f", field).build()).build().ok()
}

/// The bytes of a schema between the name of its one field and its interpolation.
fn kind_bytes(kind: &Kind) -> Bytes {
    let bytes = schema_of(kind.clone().interpolation(Interpolation::None)).expect("it is in order").encode();
    // Flags, count, name, priority (2 bytes from 64 on), condition, count, name · interpolation, threshold,
    // interest.
    bytes.slice(1 + 1 + 2 + 2 + 1 + 1 + 2..bytes.len() - 3)
}

#[test]
fn kinds_are_those_of_the_code() {
    let documented = table("| kind | field | parameters | lanes | may be played out |");
    assert_eq!(documented.len(), kinds().len());
    for (row, (name, kind)) in documented.iter().zip(kinds()) {
        assert_eq!((&*row[0], &*row[1]), (&*kind_bytes(&kind)[0].to_string(), name));
        let lanes = match &*row[3] {
            "count" => 3,
            "a blob" => 0,
            sum => sum.split(" + ").map(|each| each.parse::<usize>().expect("a number")).sum(),
        };
        assert_eq!(lanes, kind.lanes(), "{name}");
        assert_eq!(row[3] == "a blob", kind.blob_bytes_max().is_some(), "{name}");
        let all =
            [Interpolation::None, Interpolation::Linear, Interpolation::Spherical, Interpolation::Hermite];
        let played =
            all.iter().enumerate().filter(|(_, how)| schema_of(kind.clone().interpolation(**how)).is_some());
        let played: Vec<String> = played.map(|(number, _)| number.to_string()).collect();
        assert_eq!(row[4], played.join(", "), "{name}");
    }
}

#[test]
fn built_in_components_are_those_of_the_code() {
    let documented = table("| number | component | fields |");
    let schema = Schema::default();
    assert_eq!(documented.len(), schema.components().len());
    for (number, (row, component)) in documented.iter().zip(schema.components()).enumerate() {
        assert_eq!((&row[0], &*row[1]), (&number.to_string(), component.name()));
        let described: Vec<&str> = row[2].split(" · ").collect();
        assert_eq!(described.len(), component.fields().len(), "{}", component.name());
        for (text, field) in described.iter().zip(component.fields()) {
            let (name, kind) = text.split_once(": ").expect("a name and a kind");
            assert_eq!(name, field.name);
            let expected = match &field.kind {
                Kind::Text { bytes_max } => format!("text of {bytes_max}"),
                Kind::Bytes { bytes_max } => format!("bytes of {bytes_max}"),
                Kind::Any { bytes_max } => format!("any value of {bytes_max}"),
                Kind::Int { min: 0, max: 0x7fff_ffff } => "int from 0 to 2³¹ − 1".into(),
                Kind::Int { min, max } => format!("int from {min} to {max}").replace('-', "−"),
                other => panic!("{other:?} stands in no built-in component"),
            };
            assert_eq!(with_numbers(kind), expected);
        }
    }
}

/// Replaces the names of limits in the text by their numbers.
fn with_numbers(text: &str) -> String {
    use parlor_proto::limits::{STATE_KEY_BYTES_MAX, STATE_VALUE_BYTES_MAX};
    [
        ("STATE_KEY_BYTES_MAX", STATE_KEY_BYTES_MAX),
        ("STATE_VALUE_BYTES_MAX", STATE_VALUE_BYTES_MAX),
        ("HINTS_BYTES_MAX", limits::HINTS_BYTES_MAX),
    ]
    .into_iter()
    .fold(text.replace('`', ""), |text, (name, value)| text.replace(name, &value.to_string()))
}
