//! JSON from strangers (threat 17): bounded depth, no duplicate keys, and errors that name the field's path.

use super::failure::{Failure, Kind};
use core::fmt;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Longest input of an operation, in bytes.
pub(crate) const INPUT_BYTES_MAX: usize = 64 * 1024;
/// Maximum nesting of arrays and objects.
pub(crate) const DEPTH_MAX: usize = 32;

/// Upper bound of the memory of a text that is parsed as JSON, in bytes: the sizes of `serde_json`'s values,
/// and the minimum of an allocation. Commas and the like within strings count too.
pub(crate) fn parsed_bytes_max(text: &[u8]) -> usize {
    const VALUE: usize = size_of::<Value>();
    /// A B-tree leaf has room for eleven entries, even for a single one.
    const OBJECT: usize = 11 * (VALUE + size_of::<String>()) + 64;
    /// Half of a string's own allocation, for each of its quotation marks.
    const QUOTE: usize = 16;
    /// Each character with a cost beyond its own byte, and that cost.
    const MARKS: [(u8, usize); 6] = [
        (b'{', OBJECT - 1),
        // A query may have a brace as `%7B`.
        (b'%', OBJECT - 1),
        (b'[', 4 * VALUE + 31),
        (b',', 2 * VALUE - 1),
        (b':', 2 * (VALUE + size_of::<String>()) - 1),
        (b'"', QUOTE - 1),
    ];
    // Counters of one byte in parts that do not overflow them: the compiler counts many bytes at once.
    let weigh = |part: &[u8]| {
        let mut counts = [0_u8; MARKS.len()];
        for byte in part {
            for (count, (mark, _)) in counts.iter_mut().zip(MARKS) {
                *count += u8::from(*byte == mark);
            }
        }
        counts.iter().zip(MARKS).map(|(count, (_, bytes))| usize::from(*count) * bytes).sum::<usize>()
    };
    text.len() + text.chunks(u8::MAX.into()).map(weigh).sum::<usize>()
}

/// Parses a text as JSON.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Failure> {
    let bad = |error: serde_json::Error| {
        let sentence = format!("this is no JSON that can be read here: {error}");
        Failure::new(Kind::BadInput, "bad_json", sentence)
    };
    if text.len() > INPUT_BYTES_MAX {
        return Err(too_large());
    }
    strict(text).map_err(bad)
}

/// Parses a text of any length as JSON with bounded depth and without duplicate keys.
pub(super) fn strict(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut from = serde_json::Deserializer::from_slice(text);
    let value = Strict { levels_left: DEPTH_MAX }.deserialize(&mut from)?;
    from.end()?;
    Ok(value)
}

/// The sentence for an input above [`INPUT_BYTES_MAX`].
pub(crate) fn too_large() -> Failure {
    let sentence = format!("the input is longer than the {INPUT_BYTES_MAX} bytes that it may have");
    Failure::new(Kind::TooLarge, "too_large", sentence)
}

/// Reads an input as an operation's type. Types reject unknown fields.
pub(crate) fn read<T: DeserializeOwned>(input: Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let said = error.into_inner().to_string();
        // Serde names the missing field, and as the path that of its object.
        let missing = said.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
        let path = match (path.as_str(), missing) {
            (".", Some(field)) => field.to_owned(),
            (_, Some(field)) => format!("{path}.{field}"),
            (".", None) => unknown(&said).unwrap_or_default().to_owned(),
            (_, None) => path,
        };
        let failure =
            Failure::new(Kind::BadInput, "bad_input", format!("the input is not as it must be: {said}"));
        if path.is_empty() { failure } else { failure.at(path) }
    })
}

/// The unknown field in serde's error.
fn unknown(said: &str) -> Option<&str> {
    said.strip_prefix("unknown field `")?.split('`').next()
}

/// Builds a value; fails on too much depth or a duplicate key.
#[derive(Clone, Copy)]
struct Strict {
    levels_left: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        let left = self.levels_left.checked_sub(1);
        let levels_left =
            left.ok_or_else(|| E::custom(format_args!("it is nested deeper than {DEPTH_MAX} levels")))?;
        Ok(Strict { levels_left })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut fields = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if fields.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key {key:?} stands there twice")));
            }
            let value = from.next_value_seed(inner)?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        name: String,
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        count: u32,
    }

    #[test]
    fn what_is_json_comes_as_it_is() {
        let text = r#"{"a":[1,-2,3.5,"x",null,true],"b":{}}"#;
        assert_eq!(parse(text.as_bytes()), Ok(json!({ "a": [1, -2, 3.5, "x", null, true], "b": {} })));
    }

    #[test]
    fn threat_17_deep_json_is_given_up_at_once() {
        let nested = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        let refused = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!((refused.code(), refused.status().as_u16()), ("bad_json", 400));
        // A longer text than an input may be is not parsed at all; one that fits is rejected at the first
        // level too many.
        assert_eq!(parse(&vec![b'['; 1_000_000]).unwrap_err().code(), "too_large");
        assert_eq!(parse(&[b'['; INPUT_BYTES_MAX]).unwrap_err().code(), "bad_json");
    }

    #[test]
    fn threat_17_a_key_that_stands_twice_is_refused() {
        let refused = parse(br#"{"a":{"b":1,"b":2}}"#).unwrap_err();
        assert!(refused.to_json()["sentence"].as_str().unwrap().contains("\"b\""), "{refused:?}");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        for (input, path) in [
            (json!({}), "name"),
            (json!({ "name": 7 }), "name"),
            (json!({ "name": "a", "inner": { "count": -1 } }), "inner.count"),
            (json!({ "name": "a", "inner": {} }), "inner.count"),
            (json!({ "name": "a", "inner": { "count": 1, "more": 2 } }), "inner.more"),
            (json!({ "name": "a", "more": 2 }), "more"),
        ] {
            let refused = read::<Outer>(input.clone()).unwrap_err().to_json();
            assert_eq!(refused["path"], path, "{input}: {refused}");
            assert_eq!(refused["code"], "bad_input");
        }
        let good = read::<Outer>(json!({ "name": "a", "inner": { "count": 1 } }));
        assert_eq!(good, Ok(Outer { name: "a".into(), inner: Some(Inner { count: 1 }) }));
    }
}
