//! Deserializes values into Rust types.

use super::{Map, Value, ValueError, ValueErrorKind};
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

/// Deserializes `value` into a `T`, by the rules of [`to_value`](super::to_value). Integers are read only
/// from [`Value::Int`], floating-point numbers from both kinds.
///
/// # Errors
/// [`ValueError`] with the path of the value that does not fit.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, ValueError> {
    T::deserialize(ValueDeserializer(value))
}

#[derive(Clone, Copy)]
struct ValueDeserializer<'de>(&'de Value);

impl<'de> ValueDeserializer<'de> {
    fn int<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Int(value) => visitor.visit_i64(*value),
            _ => Err(self.not("a whole number")),
        }
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.not("text")),
        }
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let Value::List(items) = self.0 else { return Err(self.not("a list")) };
        let mut access = ListAccess { items, next: 0 };
        let made = visitor.visit_seq(&mut access)?;
        let (taken, len) = (access.next, items.len());
        if taken < len {
            return Err(ValueError::mismatch(format!("a list of {taken}"), format!("a list of {len}")));
        }
        Ok(made)
    }

    fn map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Map(map) => visitor.visit_map(MapAccess { map, fields: map.iter(), value: None }),
            _ => Err(self.not("a map")),
        }
    }

    fn not(self, expected: &str) -> ValueError {
        ValueError::mismatch(expected, self.0.kind())
    }
}

macro_rules! forwarded {
    ($($method:ident => $to:ident),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
            self.$to(visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for ValueDeserializer<'de> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::List(_) => self.list(visitor),
            Value::Map(_) => self.map(visitor),
        }
    }

    forwarded! {
        deserialize_i8 => int, deserialize_i16 => int, deserialize_i32 => int, deserialize_i64 => int,
        deserialize_u8 => int, deserialize_u16 => int, deserialize_u32 => int, deserialize_u64 => int,
        deserialize_char => text, deserialize_str => text, deserialize_string => text,
        deserialize_identifier => text,
        deserialize_byte_buf => deserialize_bytes,
        deserialize_seq => list, deserialize_map => map,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Bool(value) => visitor.visit_bool(*value),
            _ => Err(self.not("a bool")),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueErrorKind::Wide.into())
    }

    fn deserialize_u128<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueErrorKind::Wide.into())
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Float(value) if value.abs() > f64::from(f32::MAX) => {
                Err(ValueError::mismatch("a number that an f32 can hold", value))
            }
            _ => self.deserialize_f64(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            _ => Err(self.not("a number")),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            _ => Err(self.not("bytes")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            _ => Err(self.not("nothing")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ValueError> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.list(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Text(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Map(map) => match (map.len(), map.iter().next()) {
                (1, Some((name, content))) => visitor.visit_enum(VariantAccess { name, content }),
                (len, _) => {
                    Err(ValueError::mismatch("a map with the name of a variant", format!("{len} fields")))
                }
            },
            _ => Err(self.not("the name of a variant")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_unit()
    }
}

struct ListAccess<'de> {
    items: &'de [Value],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for &mut ListAccess<'de> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let index = self.next;
        let Some(item) = self.items.get(index) else { return Ok(None) };
        self.next += 1;
        seed.deserialize(ValueDeserializer(item)).map(Some).map_err(|error| error.in_item(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct MapAccess<'de, I> {
    map: &'de Map,
    fields: I,
    value: Option<(&'de str, &'de Value)>,
}

impl<'de, I: Iterator<Item = (&'de str, &'de Value)>> de::MapAccess<'de> for MapAccess<'de, I> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        self.value = self.fields.next();
        let Some((name, _)) = self.value else { return Ok(None) };
        seed.deserialize(KeyDeserializer(name)).map(Some).map_err(|error| error.in_field(name))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        let (name, value) = self.value.take().expect("serde asks for a key before its value");
        seed.deserialize(ValueDeserializer(value)).map_err(|error| error.in_field(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.map.len())
    }
}

/// A map's key: text, or a number or bool written as text.
struct KeyDeserializer<'de>(&'de str);

impl<'de> KeyDeserializer<'de> {
    fn int<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        if let Ok(value) = self.0.parse::<i64>() {
            return visitor.visit_i64(value);
        }
        let value =
            self.0.parse::<u64>().map_err(|_| ValueError::mismatch("a whole number as key", "text"))?;
        visitor.visit_u64(value)
    }

    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_borrowed_str(self.0)
    }
}

impl<'de> de::Deserializer<'de> for KeyDeserializer<'de> {
    type Error = ValueError;

    forwarded! {
        deserialize_any => any,
        deserialize_i8 => int, deserialize_i16 => int, deserialize_i32 => int, deserialize_i64 => int,
        deserialize_u8 => int, deserialize_u16 => int, deserialize_u32 => int, deserialize_u64 => int,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(ValueError::mismatch("a bool as key", "text")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let name: StrDeserializer<'_, ValueError> = self.0.into_deserializer();
        visitor.visit_enum(name)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

/// The content of an enum under its variant's name.
struct VariantAccess<'de> {
    name: &'de str,
    content: &'de Value,
}

impl<'de> de::EnumAccess<'de> for VariantAccess<'de> {
    type Error = ValueError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ValueError> {
        let name: StrDeserializer<'_, ValueError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for VariantAccess<'de> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        match self.content {
            Value::Null => Ok(()),
            other => Err(ValueError::mismatch("nothing", other.kind()).in_field(self.name)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ValueError> {
        seed.deserialize(ValueDeserializer(self.content)).map_err(|error| error.in_field(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ValueError> {
        ValueDeserializer(self.content).list(visitor).map_err(|error| error.in_field(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        ValueDeserializer(self.content).map(visitor).map_err(|error| error.in_field(self.name))
    }
}

#[cfg(test)]
mod tests;
