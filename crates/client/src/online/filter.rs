//! Properties and conditions on them, for searches.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A property: a whole number or a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Property {
    /// A whole number.
    Number(i64),
    /// A text, up to 256 bytes.
    Text(String),
}

/// Properties by name.
pub type Properties = BTreeMap<String, Property>;

impl From<i64> for Property {
    fn from(number: i64) -> Self {
        Property::Number(number)
    }
}

impl From<i32> for Property {
    fn from(number: i32) -> Self {
        Property::Number(number.into())
    }
}

impl From<&str> for Property {
    fn from(text: &str) -> Self {
        Property::Text(text.to_owned())
    }
}

impl From<String> for Property {
    fn from(text: String) -> Self {
        Property::Text(text)
    }
}

/// Conditions on properties, which all must hold: up to 16. Numbers are compared with numbers, and texts with texts.
///
/// ```
/// use parlor::online::Filter;
/// let filter = Filter::new().any_of("map", ["mill", "dust"]).at_least("level", 5).less_than("level", 20);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(Map<String, Value>);

impl Filter {
    /// Without conditions: everything fits.
    pub fn new() -> Self {
        Filter::default()
    }

    /// The property has this value.
    #[must_use]
    pub fn is(self, name: &str, value: impl Into<Property>) -> Self {
        self.compared(name, "eq", value)
    }

    /// The property has one of these values: up to 16. It replaces other conditions on the property.
    #[must_use]
    pub fn any_of<T: Into<Property>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<Property> = values.into_iter().map(Into::into).collect();
        self.0.insert(name.to_owned(), json!(values));
        self
    }

    /// The property has another value, or is missing.
    #[must_use]
    pub fn is_not(self, name: &str, value: impl Into<Property>) -> Self {
        self.compared(name, "ne", value)
    }

    /// The property is less than this.
    #[must_use]
    pub fn less_than(self, name: &str, value: impl Into<Property>) -> Self {
        self.compared(name, "lt", value)
    }

    /// The property is this or less.
    #[must_use]
    pub fn at_most(self, name: &str, value: impl Into<Property>) -> Self {
        self.compared(name, "le", value)
    }

    /// The property is greater than this.
    #[must_use]
    pub fn greater_than(self, name: &str, value: impl Into<Property>) -> Self {
        self.compared(name, "gt", value)
    }

    /// The property is this or greater.
    #[must_use]
    pub fn at_least(self, name: &str, value: impl Into<Property>) -> Self {
        self.compared(name, "ge", value)
    }

    /// The property is there, or it is not.
    #[must_use]
    pub fn exists(mut self, name: &str, exists: bool) -> Self {
        self.of(name).insert("exists".to_owned(), exists.into());
        self
    }

    fn compared(mut self, name: &str, by: &str, value: impl Into<Property>) -> Self {
        self.of(name).insert(by.to_owned(), json!(value.into()));
        self
    }

    /// The comparisons of a property. A list of values gives way to them.
    fn of(&mut self, name: &str) -> &mut Map<String, Value> {
        let entry = self.0.entry(name.to_owned()).or_insert_with(|| Map::new().into());
        if !entry.is_object() {
            *entry = Map::new().into();
        }
        match entry {
            Value::Object(comparisons) => comparisons,
            _ => unreachable!("it was made one"),
        }
    }

    /// As the server reads it; `None` without conditions.
    pub(super) fn to_json(&self) -> Option<Value> {
        (!self.0.is_empty()).then(|| self.0.clone().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_one_property_stand_together() {
        let filter = Filter::new().at_least("level", 5).less_than("level", 20).any_of("map", ["mill"]);
        let expected = json!({ "level": { "ge": 5, "lt": 20 }, "map": ["mill"] });
        assert_eq!(filter.to_json(), Some(expected));
        let changed = filter.is_not("map", "dust").exists("mod", false).to_json().expect("it has some");
        assert_eq!(
            (&changed["map"], &changed["mod"]),
            (&json!({ "ne": "dust" }), &json!({ "exists": false }))
        );
        assert_eq!(Filter::new().to_json(), None);
    }
}
