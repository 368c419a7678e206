//! Self-describing values, used in keyed state, messages and inputs.
//!
//! A [`Value`] has exactly one encoding, so equal values have equal bytes, and the bytes can be compared,
//! hashed and shared. Rust types are converted through serde: [`to_value`] and [`from_value`].
//!
//! ```
//! use parlor_sync::value::{Value, from_value, to_value};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Tank {
//!     x: f32,
//!     shells: u8,
//! }
//!
//! let tank = Tank { x: 1.5, shells: 3 };
//! let value = to_value(&tank)?;
//! let bytes = value.encode(100)?;
//! assert_eq!(Value::decode(bytes)?, value);
//! assert_eq!(from_value::<Tank>(&value)?, tank);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod de;
mod error;
mod map;
mod own_serde;
mod ser;
mod wire;

pub use de::from_value;
pub use error::{DecodeError, ValueError, ValueErrorKind};
pub use map::Map;
pub use ser::to_value;
pub use wire::WRAPPED_DEPTH;

use bytes::Bytes;
use core::fmt;
use parlor_proto::text::Quoted;

/// A self-describing value.
///
/// Not every value can be sent: [`encode`](Value::encode) rejects numbers that are not finite and nesting
/// beyond [`VALUE_DEPTH_MAX`](parlor_proto::limits::VALUE_DEPTH_MAX).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Null: from `None` and `()`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer. Unsigned numbers beyond `i64::MAX` are rejected with an error of their own.
    Int(i64),
    /// A floating-point number, from `f32` and `f64`. Encoded in four bytes if an `f32` holds it exactly,
    /// else in eight. −0.0 is sent as 0.0.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes defined by the game.
    Bytes(Bytes),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name.
    Map(Map),
}

impl Value {
    /// The kind of this value, as named in errors.
    pub const fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Returns the field `name`, if this is a map with such a field.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.get(name),
            _ => None,
        }
    }
}

/// Compact, in the style of JSON; bytes as `h'0a0b'`, as in CBOR's diagnostic notation.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write_float(f, *value),
            Value::Text(text) => write!(f, "{}", Quoted(text)),
            Value::Bytes(bytes) => {
                f.write_str("h'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Value::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{item}")?;
                }
                f.write_str("]")
            }
            Value::Map(map) => {
                f.write_str("{")?;
                for (index, (name, value)) in map.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    write!(f, "{}", Quoted(name))?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A number that is read back as a float of the same value.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    let size = value.abs();
    if value.is_finite() && value != 0.0 && !(1e-4..1e16).contains(&size) {
        write!(f, "{value:e}")
    } else if value.fract() == 0.0 {
        write!(f, "{value:.1}")
    } else {
        write!(f, "{value}")
    }
}

macro_rules! from {
    ($($source:ty => |$it:ident| $value:expr;)*) => {$(
        impl From<$source> for Value {
            fn from($it: $source) -> Value {
                $value
            }
        }
    )*};
}

from! {
    bool => |it| Value::Bool(it);
    i8 => |it| Value::Int(it.into());
    i16 => |it| Value::Int(it.into());
    i32 => |it| Value::Int(it.into());
    i64 => |it| Value::Int(it);
    u8 => |it| Value::Int(it.into());
    u16 => |it| Value::Int(it.into());
    u32 => |it| Value::Int(it.into());
    f32 => |it| Value::Float(it.into());
    f64 => |it| Value::Float(it);
    &str => |it| Value::Text(it.to_owned());
    String => |it| Value::Text(it);
    Bytes => |it| Value::Bytes(it);
    Vec<Value> => |it| Value::List(it);
    Map => |it| Value::Map(it);
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl TryFrom<u64> for Value {
    type Error = ValueError;

    /// Converts an integer up to `i64::MAX`; [`ValueErrorKind::IntTooLarge`] beyond it.
    fn try_from(value: u64) -> Result<Value, ValueError> {
        i64::try_from(value).map(Value::Int).map_err(|_| ValueErrorKind::IntTooLarge { value }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_float_prints_as_one(bits: u64, whole in -2_000_000_000_000_000_000_i64..=2_000_000_000_000_000_000) {
            for float in [f64::from_bits(bits), whole as f64, whole as f64 / 1e12, 0.0, -0.0, 1e16, 1e-4] {
                proptest::prop_assert_eq!(Value::Float(float).to_string(), format!("{float:?}"));
            }
        }
    }

    #[test]
    fn a_value_prints_like_json() {
        let map = Map::from_pairs(vec![
            ("z".to_owned(), Value::Null),
            ("a\"b".to_owned(), Value::List(vec![1.into(), 2.5.into(), "x\u{1}\n".into()])),
            ("c".to_owned(), Bytes::from_static(&[0x0a, 0xff]).into()),
        ])
        .unwrap();
        assert_eq!(Value::Map(map).to_string(), r#"{"a\"b":[1,2.5,"x\u0001\n"],"c":h'0aff',"z":null}"#);
    }

    #[test]
    fn an_unsigned_number_beyond_the_signed_range_is_named() {
        assert_eq!(Value::try_from(7u64).unwrap(), Value::Int(7));
        let error = Value::try_from(u64::MAX).unwrap_err();
        assert_eq!(error.kind(), &ValueErrorKind::IntTooLarge { value: u64::MAX });
    }
}
