//! Serializes Rust types into values.

use super::wire::deeper;
use super::{Map, Value, ValueError, ValueErrorKind};
use bytes::Bytes;
use serde::Serialize;
use serde::ser::{self, Impossible};

/// Serializes `source` into a value. Structs become maps by field name, enums are tagged with their variant's
/// name as in `serde_json`, `None` and `()` are [`Null`](Value::Null), newtypes are their content, tuples are
/// lists, a `char` is text.
///
/// # Errors
/// [`ValueError`] with the path of a number that is not finite, beyond `i64::MAX` or 128 bits wide, of
/// nesting that is too deep, or of a map whose keys are not text, integers, bools or names of an enum.
pub fn to_value<T: Serialize + ?Sized>(source: &T) -> Result<Value, ValueError> {
    source.serialize(Serializer { depth: 0 })
}

/// Serializes one value at nesting depth `depth`.
#[derive(Clone, Copy)]
struct Serializer {
    depth: usize,
}

impl Serializer {
    fn inner(self) -> Result<Serializer, ValueError> {
        let depth = deeper(self.depth).ok_or(ValueErrorKind::TooDeep)?;
        Ok(Serializer { depth })
    }

    fn list(self, variant: Option<&'static str>) -> Result<ListMaker, ValueError> {
        let outer = if variant.is_some() { self.inner()? } else { self };
        Ok(ListMaker { inner: outer.inner()?, variant, items: Vec::new() })
    }

    fn map(self, variant: Option<&'static str>) -> Result<MapMaker, ValueError> {
        let outer = if variant.is_some() { self.inner()? } else { self };
        Ok(MapMaker { inner: outer.inner()?, variant, key: None, pairs: Vec::new() })
    }
}

impl ser::Serializer for Serializer {
    type Ok = Value;
    type Error = ValueError;
    type SerializeSeq = ListMaker;
    type SerializeTuple = ListMaker;
    type SerializeTupleStruct = ListMaker;
    type SerializeTupleVariant = ListMaker;
    type SerializeMap = MapMaker;
    type SerializeStruct = MapMaker;
    type SerializeStructVariant = MapMaker;

    fn serialize_bool(self, value: bool) -> Result<Value, ValueError> {
        Ok(Value::Bool(value))
    }
    fn serialize_i8(self, value: i8) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_i128(self, _: i128) -> Result<Value, ValueError> {
        Err(ValueErrorKind::Wide.into())
    }
    fn serialize_u8(self, value: u8) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<Value, ValueError> {
        value.try_into()
    }
    fn serialize_u128(self, _: u128) -> Result<Value, ValueError> {
        Err(ValueErrorKind::Wide.into())
    }
    fn serialize_f32(self, value: f32) -> Result<Value, ValueError> {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<Value, ValueError> {
        if value.is_finite() { Ok(Value::Float(value)) } else { Err(ValueErrorKind::NotFinite.into()) }
    }
    fn serialize_char(self, value: char) -> Result<Value, ValueError> {
        Ok(Value::Text(value.into()))
    }
    fn serialize_str(self, value: &str) -> Result<Value, ValueError> {
        Ok(value.into())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Value, ValueError> {
        Ok(Value::Bytes(Bytes::copy_from_slice(value)))
    }
    fn serialize_none(self) -> Result<Value, ValueError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, ValueError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, ValueError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, ValueError> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, ValueError> {
        Ok(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, ValueError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, ValueError> {
        let value = value.serialize(self.inner()?).map_err(|error| error.in_field(variant))?;
        Ok(tagged(Some(variant), value))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<ListMaker, ValueError> {
        self.list(None)
    }
    fn serialize_tuple(self, _: usize) -> Result<ListMaker, ValueError> {
        self.list(None)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<ListMaker, ValueError> {
        self.list(None)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<ListMaker, ValueError> {
        self.list(Some(variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<MapMaker, ValueError> {
        self.map(None)
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<MapMaker, ValueError> {
        self.map(None)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<MapMaker, ValueError> {
        self.map(Some(variant))
    }
}

/// Tags an enum's content with its variant's name; leaves other content as it is.
fn tagged(variant: Option<&'static str>, content: Value) -> Value {
    let Some(variant) = variant else { return content };
    let mut map = Map::new();
    map.insert(variant, content);
    Value::Map(map)
}

fn below(variant: Option<&'static str>, error: ValueError) -> ValueError {
    match variant {
        Some(variant) => error.in_field(variant),
        None => error,
    }
}

struct ListMaker {
    inner: Serializer,
    variant: Option<&'static str>,
    items: Vec<Value>,
}

impl ListMaker {
    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ValueError> {
        let index = self.items.len();
        let item = item.serialize(self.inner).map_err(|error| below(self.variant, error.in_item(index)))?;
        self.items.push(item);
        Ok(())
    }

    fn finish(self) -> Value {
        tagged(self.variant, Value::List(self.items))
    }
}

macro_rules! list {
    ($($role:ident $push:ident),*) => {$(
        impl ser::$role for ListMaker {
            type Ok = Value;
            type Error = ValueError;

            fn $push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ValueError> {
                self.push(item)
            }
            fn end(self) -> Result<Value, ValueError> {
                Ok(self.finish())
            }
        }
    )*};
}

list!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

struct MapMaker {
    inner: Serializer,
    variant: Option<&'static str>,
    key: Option<String>,
    pairs: Vec<(String, Value)>,
}

impl MapMaker {
    fn push<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), ValueError> {
        let value = value.serialize(self.inner).map_err(|error| below(self.variant, error.in_field(&key)))?;
        self.pairs.push((key, value));
        Ok(())
    }

    fn finish(self) -> Result<Value, ValueError> {
        let map = Map::from_pairs(self.pairs).map_err(|key| ValueErrorKind::DuplicateKey { key })?;
        Ok(tagged(self.variant, Value::Map(map)))
    }
}

impl ser::SerializeMap for MapMaker {
    type Ok = Value;
    type Error = ValueError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ValueError> {
        self.key = Some(key.serialize(KeySerializer)?);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        let key = self.key.take().expect("serde gives the key before its value");
        self.push(key, value)
    }
    fn end(self) -> Result<Value, ValueError> {
        self.finish()
    }
}

macro_rules! fields {
    ($($role:ident),*) => {$(
        impl ser::$role for MapMaker {
            type Ok = Value;
            type Error = ValueError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), ValueError> {
                self.push(key.to_owned(), value)
            }
            fn end(self) -> Result<Value, ValueError> {
                self.finish()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

/// Serializes a map's key as text.
struct KeySerializer;

type KeyResult = Result<String, ValueError>;

macro_rules! printed {
    ($($method:ident($type:ty)),*) => {$(
        fn $method(self, value: $type) -> KeyResult {
            Ok(value.to_string())
        }
    )*};
}

macro_rules! refused {
    ($($method:ident($($type:ty),*) -> $result:ty;)*) => {$(
        fn $method(self $(, _: $type)*) -> Result<$result, ValueError> {
            Err(ValueErrorKind::KeyNotText.into())
        }
    )*};
}

impl ser::Serializer for KeySerializer {
    type Ok = String;
    type Error = ValueError;
    type SerializeSeq = Impossible<String, ValueError>;
    type SerializeTuple = Impossible<String, ValueError>;
    type SerializeTupleStruct = Impossible<String, ValueError>;
    type SerializeTupleVariant = Impossible<String, ValueError>;
    type SerializeMap = Impossible<String, ValueError>;
    type SerializeStruct = Impossible<String, ValueError>;
    type SerializeStructVariant = Impossible<String, ValueError>;

    printed!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_char(char),
        serialize_str(&str)
    );

    refused! {
        serialize_f32(f32) -> String;
        serialize_f64(f64) -> String;
        serialize_bytes(&[u8]) -> String;
        serialize_none() -> String;
        serialize_unit() -> String;
        serialize_unit_struct(&'static str) -> String;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> KeyResult {
        Ok(variant.to_owned())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> KeyResult {
        value.serialize(self)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> KeyResult {
        Err(ValueErrorKind::KeyNotText.into())
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> KeyResult {
        Err(ValueErrorKind::KeyNotText.into())
    }
}
