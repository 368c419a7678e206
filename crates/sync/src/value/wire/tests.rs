use super::*;
use proptest::prelude::*;

const BYTES_MAX: usize = 1 << 16;

fn round_trip(value: &Value) -> Bytes {
    let bytes = value.encode(BYTES_MAX).unwrap();
    assert_eq!(&Value::decode(bytes.clone()).unwrap(), value);
    bytes
}

fn refused(bytes: &[u8]) -> DecodeError {
    Value::decode(Bytes::copy_from_slice(bytes)).unwrap_err()
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| Value::List(vec![inner]))
}

#[test]
fn every_form_has_its_width() {
    for (value, width) in [
        (Value::Null, 1),
        (true.into(), 1),
        (127.into(), 1),
        ((-32).into(), 1),
        (128.into(), 3),
        ((-33).into(), 2),
        (i32::MIN.into(), 5),
        (i64::MIN.into(), 9),
        (1.5.into(), 5),
        (0.1f32.into(), 5),
        (0.1f64.into(), 9),
        ("x".repeat(31).into(), 32),
        ("x".repeat(32).into(), 34),
        (Value::List(vec![Value::Null; 15]), 16),
        (Value::List(vec![Value::Null; 16]), 18),
    ] {
        assert_eq!(round_trip(&value).len(), width, "{value}");
    }
}

#[test]
fn threat_18_special_floats_have_one_form_or_none() {
    for value in
        [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), f64::INFINITY, f64::NEG_INFINITY]
    {
        let error = Value::List(vec![value.into()]).encode(BYTES_MAX).unwrap_err();
        assert_eq!((error.kind(), error.path()), (&ValueErrorKind::NotFinite, "[0]"));
        let bits = [&[FLOAT_8][..], &value.to_bits().to_le_bytes()].concat();
        assert_eq!(refused(&bits), DecodeError::NotFinite);
    }
    for value in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::INFINITY, f32::NEG_INFINITY] {
        assert!(Value::from(value).encode(BYTES_MAX).is_err());
        let bits = [&[FLOAT_4][..], &value.to_bits().to_le_bytes()].concat();
        assert_eq!(refused(&bits), DecodeError::NotFinite);
    }
    // −0.0 is sent as 0.0 and rejected when received, in either width; so is a wide 0.0.
    let zero = Value::Float(0.0).encode(BYTES_MAX).unwrap();
    assert_eq!(Value::Float(-0.0).encode(BYTES_MAX).unwrap(), zero);
    for bits in [
        [&[FLOAT_4][..], &(-0.0f32).to_bits().to_le_bytes()].concat(),
        [&[FLOAT_8][..], &(-0.0f64).to_bits().to_le_bytes()].concat(),
        [&[FLOAT_8][..], &0.0f64.to_bits().to_le_bytes()].concat(),
        [&[FLOAT_8][..], &1.5f64.to_bits().to_le_bytes()].concat(),
    ] {
        assert_eq!(refused(&bits), DecodeError::NotCanonical { what: "a number" });
    }
    // The smallest and largest of both widths are numbers like any other.
    for (value, width) in [
        (f64::from(f32::from_bits(1)), 5),
        (f64::from(-f32::from_bits(1)), 5),
        (f64::from(f32::MAX), 5),
        (f64::from_bits(1), 9),
        (-f64::MIN_POSITIVE, 9),
        (f64::MAX, 9),
    ] {
        assert_eq!(round_trip(&value.into()).len(), width, "{value:e}");
    }
}

/// Special floats in every kind of field that can hold a number: at the top, in lists and maps, short and
/// long, and nested.
#[test]
fn threat_18_every_special_float_in_every_kind_of_field() {
    let name = [1, b'a'];
    let fields = |count: u8| -> Vec<u8> { (0..count).flat_map(|at| [1, b'A' + at, NULL]).collect() };
    let heads: [(&str, Vec<u8>); 8] = [
        ("a value", vec![]),
        ("the first item", vec![LIST | 1]),
        ("the last item", vec![LIST | 3, NULL, NULL]),
        ("an item of a long list", [&[LIST_LONG, 16][..], &[NULL; 15]].concat()),
        ("a field", [&[MAP | 1][..], &name].concat()),
        ("a field of a long map", [&[MAP_LONG, 16][..], &fields(15), &name].concat()),
        ("an item of a field", [&[MAP | 1][..], &name, &[LIST | 1]].concat()),
        ("a field of an item", [&[LIST | 1, MAP | 1][..], &name].concat()),
    ];
    let wide =
        [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), f64::INFINITY, f64::NEG_INFINITY, -0.0];
    let narrow = [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::INFINITY, f32::NEG_INFINITY, -0.0];
    let wide = wide.iter().map(|value| [&[FLOAT_8][..], &value.to_bits().to_le_bytes()].concat());
    let narrow = narrow.iter().map(|value| [&[FLOAT_4][..], &value.to_bits().to_le_bytes()].concat());
    let special: Vec<Vec<u8>> = wide.chain(narrow).collect();
    let finite = [FLOAT_8, 1, 0, 0, 0, 0, 0, 0, 0];
    for (what, head) in &heads {
        // Any other number is valid there, including the smallest denormal.
        assert!(Value::decode([&head[..], &finite].concat().into()).is_ok(), "{what}");
        for bits in &special {
            let is_zero =
                bits[1..bits.len() - 1].iter().all(|byte| *byte == 0) && bits[bits.len() - 1] == 0x80;
            let expected = match is_zero {
                true => DecodeError::NotCanonical { what: "a number" },
                false => DecodeError::NotFinite,
            };
            assert_eq!(refused(&[&head[..], bits].concat()), expected, "{bits:x?} as {what}");
        }
    }
}

/// Counted, not timed: of a million levels no more than the limit are read.
#[test]
fn threat_17_a_million_levels_are_given_up_after_those_that_may_be() {
    for level in [&[LIST | 1][..], &[MAP | 1, 0], &[LIST_LONG, 16], &[MAP_LONG, 16, 0]] {
        let bytes = level.repeat(1_000_000);
        let mut decoder = Decoder { reader: Reader::new(bytes.clone().into()) };
        assert_eq!(decoder.value(0), Err(DecodeError::TooDeep));
        let read = bytes.len() - decoder.reader.remaining();
        assert!(read <= (VALUE_DEPTH_MAX + 1) * level.len(), "{read} bytes were read");
    }
}

#[test]
fn a_description_goes_around_the_deepest_value_and_no_further() {
    let mut out = b"before it".to_vec();
    nested(VALUE_DEPTH_MAX + WRAPPED_DEPTH).encode_wrapped(&mut out).unwrap();
    assert_eq!(out.len(), "before it".len() + VALUE_DEPTH_MAX + WRAPPED_DEPTH + 1);
    let error = nested(VALUE_DEPTH_MAX + WRAPPED_DEPTH + 1).encode_wrapped(&mut out).unwrap_err();
    assert_eq!(error.kind(), &ValueErrorKind::TooDeep);
}

#[test]
fn values_that_follow_one_another_are_read_one_by_one() {
    let values = [Value::from("a"), 7.into(), nested(3), Value::Null];
    let mut bytes = Vec::new();
    values.iter().for_each(|value| value.encode_wrapped(&mut bytes).unwrap());
    let mut bytes = Bytes::from(bytes);
    for value in values {
        assert_eq!(Value::decode_next(&mut bytes), Ok(value));
    }
    assert!(bytes.is_empty() && Value::decode_next(&mut bytes).is_err());
}

#[test]
fn threat_17_depth_is_bounded_both_ways() {
    round_trip(&nested(VALUE_DEPTH_MAX));
    let error = nested(VALUE_DEPTH_MAX + 1).encode(BYTES_MAX).unwrap_err();
    assert_eq!(error.kind(), &ValueErrorKind::TooDeep);
    assert_eq!(refused(&[LIST | 1; 1_000_000]), DecodeError::TooDeep);
    assert_eq!(refused(&[MAP | 1, 0].repeat(1_000_000)), DecodeError::TooDeep);
}

#[test]
fn threat_17_keys_ascend_and_do_not_repeat() {
    assert!(Value::decode(Bytes::from_static(&[MAP | 2, 1, b'a', 1, 1, b'b', 2])).is_ok());
    assert_eq!(refused(&[MAP | 2, 1, b'b', 1, 1, b'a', 2]), DecodeError::KeysNotAscending);
    assert_eq!(refused(&[MAP | 2, 1, b'a', 1, 1, b'a', 2]), DecodeError::KeysNotAscending);
}

#[test]
fn threat_16_a_claimed_length_takes_nothing() {
    let huge = [0xbf, 0xff, 0xff, 0xff];
    for tag in [LIST_LONG, MAP_LONG] {
        let bytes = [&[tag][..], &huge].concat();
        assert_eq!(refused(&bytes), DecodeError::TooManyItems { count: 0x3fff_ffff, left: 0 });
    }
    for tag in [TEXT_LONG, BYTES] {
        let bytes = [&[tag][..], &huge].concat();
        assert!(matches!(refused(&bytes), DecodeError::Read(ReadError::Truncated { .. })));
    }
}

#[test]
fn longer_forms_than_needed_are_refused() {
    for bytes in [
        &[INT_1, 5][..],
        &[INT_2, 100, 0],
        &[INT_2, 0xff, 0xff],
        &[INT_4, 0, 1, 0, 0],
        &[INT_8, 0, 0, 0, 0, 0, 0, 0, 0],
        &[TEXT_LONG, 1, b'x'],
        &[LIST_LONG, 1, NULL],
        &[MAP_LONG, 0],
    ] {
        assert!(matches!(refused(bytes), DecodeError::NotCanonical { .. }), "{bytes:x?}");
    }
    assert_eq!(refused(&[0xcd]), DecodeError::UnknownTag { tag: 0xcd });
    assert_eq!(refused(&[NULL, NULL]), DecodeError::Read(ReadError::Trailing { left: 1 }));
    assert_eq!(refused(&[TEXT | 1, 0xff]), DecodeError::Read(ReadError::NotUtf8 { field: "text" }));
}

#[test]
fn the_size_is_bounded_by_the_caller() {
    let value = Value::List(vec!["abc".into(), Bytes::from_static(b"defg").into()]);
    let bytes = round_trip(&value);
    assert_eq!(value.encode(bytes.len()).unwrap(), bytes);
    for max in 0..bytes.len() {
        assert_eq!(value.encode(max).unwrap_err().kind(), &ValueErrorKind::TooLarge { max });
    }
}

/// Values of every kind, a few levels deep.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (any::<i64>(), 0u32..64).prop_map(|(value, shift)| Value::Int(value >> shift)),
        any::<f32>().prop_filter("finite", |it| it.is_finite()).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|it| Value::Bytes(it.into())),
    ];
    leaf.prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(Value::List),
            proptest::collection::btree_map(".{0,8}", inner, 0..20)
                .prop_map(|it| Value::Map(Map::from_pairs(it.into_iter().collect()).unwrap())),
        ]
    })
}

proptest! {
    #[test]
    fn values_come_back(value in values()) {
        round_trip(&value);
    }

    #[test]
    fn any_bytes_are_a_value_in_its_one_form_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = Value::decode(bytes.clone().into()) {
            prop_assert_eq!(&value.encode(BYTES_MAX).unwrap()[..], &bytes[..]);
        }
    }

    #[test]
    fn a_damaged_value_is_another_in_its_one_form_or_an_error(value in values(), at: prop::sample::Index, with: u8) {
        let mut bytes = value.encode(BYTES_MAX).unwrap().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = with;
        if let Ok(value) = Value::decode(bytes.clone().into()) {
            prop_assert_eq!(&value.encode(BYTES_MAX).unwrap()[..], &bytes[..]);
        }
        bytes.truncate(at);
        prop_assert!(Value::decode(bytes.into()).is_err());
    }
}
