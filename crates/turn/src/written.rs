//! Immutable parts of a document with cached JSON.

use core::ops::Deref;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::sync::Arc;

/// An immutable value with its JSON, which is serialized once however often the document around it is
/// written. Clones share both.
#[derive(Clone, Debug)]
pub struct Written<T>(Arc<(T, Option<Box<RawValue>>)>);

impl<T: Serialize> Written<T> {
    /// Freezes a value and serializes it.
    pub(super) fn new(value: T) -> Self {
        // Serialization is retried, and its error reported, at each write.
        let json = to_raw_value(&value).ok();
        Written(Arc::new((value, json)))
    }
}

impl<T> Deref for Written<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T: PartialEq> PartialEq for Written<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.0 == other.0.0
    }
}

impl<T: Serialize> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.1 {
            Some(json) => json.serialize(serializer),
            None => self.0.0.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Written::new)
    }
}

impl<T: JsonSchema> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_written_and_read_as_the_value_itself() {
        let value = json!({ "a": [1, "x\n"], "b": null });
        let written = Written::new(value.clone());
        let around = json!({ "in": value });
        #[derive(Serialize)]
        struct Around<'a> {
            r#in: &'a Written<serde_json::Value>,
        }
        let text = serde_json::to_string(&Around { r#in: &written }).unwrap();
        assert_eq!(text, around.to_string());
        assert_eq!(serde_json::to_value(Around { r#in: &written }).unwrap(), around);
        assert_eq!(serde_json::from_str::<Written<serde_json::Value>>(&value.to_string()).unwrap(), written);
        assert_ne!(Written::new(json!(1)), Written::new(json!(2)));
    }
}
