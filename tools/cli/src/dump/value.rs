//! Fields of a row, for a person and for JSON.

use parlor_sync::schema::{Component, FieldReader, Kind, RowReader};
use parlor_sync::value;
use serde_json::{Value, json};

/// The value of a field, as JSON.
pub(crate) fn field(component: &Component, lanes: &[i32], blobs: &[bytes::Bytes], field: usize) -> Value {
    let reader = RowReader::new(component, lanes, blobs).field(field);
    let (Some(kind), numbers) = (reader.kind(), reader.numbers()) else { return Value::Null };
    match kind {
        Kind::Bool => json!(numbers.first() == Some(&1.0)),
        #[expect(clippy::cast_possible_truncation, reason = "whole numbers below 2^53")]
        Kind::Int { .. } => json!(numbers.first().map(|number| *number as i64)),
        Kind::Float { .. } | Kind::Angle { .. } => json!(numbers.first()),
        Kind::Vector { .. } | Kind::UnitVector { .. } | Kind::Rotation { .. } => json!(numbers),
        Kind::Transform { .. } => json!({ "position": part(numbers, 0, 3), "rotation": part(numbers, 3, 4) }),
        Kind::Body { .. } => json!({
            "position": part(numbers, 0, 3),
            "rotation": part(numbers, 3, 4),
            "velocity": part(numbers, 7, 3),
            "spin": part(numbers, 10, 3),
        }),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        Kind::Enum { names } => json!(numbers.first().and_then(|index| names.get(*index as usize))),
        Kind::Text { .. } | Kind::Bytes { .. } | Kind::Any { .. } => blob(kind, &reader),
    }
}

fn blob(kind: &Kind, reader: &FieldReader<'_>) -> Value {
    let bytes = reader.blob().cloned().unwrap_or_default();
    match kind {
        Kind::Text { .. } => json!(String::from_utf8_lossy(&bytes)),
        Kind::Any { .. } if let Ok(value) = value::Value::decode(bytes.clone()) => {
            serde_json::to_value(&value).unwrap_or(Value::Null)
        }
        _ => json!(hex(&bytes)),
    }
}

fn part(numbers: &[f64], from: usize, count: usize) -> &[f64] {
    numbers.get(from..from + count).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same for a person: numbers with few digits, and no quotes around what has no spaces.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => trimmed(number.as_f64().unwrap_or(0.0)),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} {}", shown(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        // With its escapes, so that no text of somebody else moves the cursor.
        value => value.to_string(),
    }
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The word for a kind.
pub(crate) const fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int { .. } => "int",
        Kind::Float { .. } => "float",
        Kind::Angle { .. } => "angle",
        Kind::Vector { .. } => "vector",
        Kind::UnitVector { .. } => "unit vector",
        Kind::Rotation { .. } => "rotation",
        Kind::Transform { .. } => "transform",
        Kind::Body { .. } => "body",
        Kind::Enum { .. } => "enum",
        Kind::Text { .. } => "text",
        Kind::Bytes { .. } => "bytes",
        Kind::Any { .. } => "any",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_for_a_person() {
        let value = json!({ "at": [1.0, -0.00001, 2.12345], "name": "a\u{1b}[2J", "lives": 3 });
        assert_eq!(shown(&value), r#"{at [1, 0, 2.1235], lives 3, name "a\u001b[2J"}"#);
    }
}
