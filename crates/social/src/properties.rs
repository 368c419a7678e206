//! Properties of lobbies and tickets, and conditions on them.

use crate::limits::{CONDITION_VALUES_MAX, CONDITIONS_MAX, NUMBER_MAX, PROPERTIES_MAX, PROPERTY_BYTES_MAX};
use crate::name::Name;
use core::cmp::Ordering;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// A value: a whole number or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Property {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

/// What a lobby, a member or a ticket says of itself, by name.
pub type Properties = BTreeMap<String, Property>;

/// A condition on one property: a value that it has, several of which it has one, or comparisons which all must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Condition {
    /// It has this value.
    Is(Property),
    /// It has one of these values.
    Any(Vec<Property>),
    /// All of these hold.
    All(Comparisons),
}

/// Comparisons of a property. Numbers are compared with numbers and texts with texts, by their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparisons {
    /// It is equal to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eq: Option<Property>,
    /// It is not equal to this, or missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ne: Option<Property>,
    /// It is less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lt: Option<Property>,
    /// It is less than this or equal to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub le: Option<Property>,
    /// It is greater than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gt: Option<Property>,
    /// It is greater than this or equal to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ge: Option<Property>,
    /// It is there, or it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}

/// Conditions on properties, which all must hold.
pub type Filter = BTreeMap<String, Condition>;

/// What is wrong with properties or a filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: {sentence}")]
pub struct BadProperty {
    /// The property; empty if there are too many.
    pub name: String,
    /// What is wrong.
    pub sentence: String,
}

impl BadProperty {
    fn new(name: &str, sentence: impl Into<String>) -> Self {
        BadProperty { name: name.to_owned(), sentence: sentence.into() }
    }
}

impl From<&str> for Property {
    fn from(text: &str) -> Self {
        Property::Text(text.to_owned())
    }
}

impl From<i64> for Property {
    fn from(number: i64) -> Self {
        Property::Number(number)
    }
}

impl Property {
    /// Compares two of one kind.
    fn compare(&self, other: &Property) -> Option<Ordering> {
        match (self, other) {
            (Property::Number(one), Property::Number(other)) => Some(one.cmp(other)),
            (Property::Text(one), Property::Text(other)) => Some(one.as_bytes().cmp(other.as_bytes())),
            _ => None,
        }
    }

    fn check(&self, name: &str) -> Result<(), BadProperty> {
        match self {
            Property::Number(number) if number.unsigned_abs() > NUMBER_MAX.unsigned_abs() => {
                Err(BadProperty::new(name, format!("a number is -{NUMBER_MAX} to {NUMBER_MAX}")))
            }
            Property::Text(text) if text.len() > PROPERTY_BYTES_MAX => {
                Err(BadProperty::new(name, format!("a text has at most {PROPERTY_BYTES_MAX} bytes")))
            }
            Property::Number(_) | Property::Text(_) => Ok(()),
        }
    }
}

/// Checks properties: their names, values and number.
///
/// # Errors
/// [`BadProperty`].
pub fn check_properties(properties: &Properties) -> Result<(), BadProperty> {
    if properties.len() > PROPERTIES_MAX {
        return Err(BadProperty::new("", format!("{PROPERTIES_MAX} are the most")));
    }
    properties.iter().try_for_each(|(name, value)| {
        Name::new(name).map_err(|error| BadProperty::new(name, error.to_string()))?;
        value.check(name)
    })
}

/// Checks a filter: its names, values and number of conditions. Fields of what is searched have an `@` before their
/// name; `fields` are those that there are.
///
/// # Errors
/// [`BadProperty`].
pub fn check_filter(filter: &Filter, fields: &[&str]) -> Result<(), BadProperty> {
    let mut conditions = 0;
    for (name, condition) in filter {
        let is_field = name.strip_prefix('@').is_some_and(|field| fields.contains(&field));
        if !is_field {
            Name::new(name).map_err(|error| BadProperty::new(name, error.to_string()))?;
        }
        match condition {
            Condition::Is(value) => {
                conditions += 1;
                value.check(name)?;
            }
            Condition::Any(values) => {
                conditions += 1;
                if !(1..=CONDITION_VALUES_MAX).contains(&values.len()) {
                    return Err(BadProperty::new(
                        name,
                        format!("a list has 1 to {CONDITION_VALUES_MAX} values"),
                    ));
                }
                values.iter().try_for_each(|value| value.check(name))?;
            }
            Condition::All(Comparisons { eq, ne, lt, le, gt, ge, exists }) => {
                let values = [eq, ne, lt, le, gt, ge];
                let count =
                    values.iter().filter(|value| value.is_some()).count() + usize::from(exists.is_some());
                if count == 0 {
                    return Err(BadProperty::new(name, "compare by eq, ne, lt, le, gt, ge or exists"));
                }
                conditions += count;
                values.into_iter().flatten().try_for_each(|value| value.check(name))?;
            }
        }
    }
    if conditions > CONDITIONS_MAX {
        return Err(BadProperty::new("", format!("{CONDITIONS_MAX} conditions are the most")));
    }
    Ok(())
}

impl Condition {
    /// Whether a property, or its absence, meets this.
    pub fn admits(&self, value: Option<&Property>) -> bool {
        match self {
            Condition::Is(wanted) => value == Some(wanted),
            Condition::Any(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Condition::All(all) => {
                let ordered = |wanted: &Option<Property>, holds: fn(Ordering) -> bool| {
                    wanted
                        .as_ref()
                        .is_none_or(|wanted| value.and_then(|value| value.compare(wanted)).is_some_and(holds))
                };
                all.eq.as_ref().is_none_or(|wanted| value == Some(wanted))
                    && all.ne.as_ref().is_none_or(|unwanted| value != Some(unwanted))
                    && ordered(&all.lt, Ordering::is_lt)
                    && ordered(&all.le, Ordering::is_le)
                    && ordered(&all.gt, Ordering::is_gt)
                    && ordered(&all.ge, Ordering::is_ge)
                    && all.exists.is_none_or(|exists| exists == value.is_some())
            }
        }
    }
}

/// Whether all conditions of a filter hold.
pub fn admits(filter: &Filter, properties: &Properties) -> bool {
    filter.iter().all(|(name, condition)| condition.admits(properties.get(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn property() -> impl Strategy<Value = Property> {
        prop_oneof![
            (-3_i64..4).prop_map(Property::Number),
            "[ab]{0,2}".prop_map(Property::Text),
            Just(Property::Number(NUMBER_MAX)),
        ]
    }

    /// A comparison in plain words.
    fn meets(op: usize, value: Option<&Property>, wanted: &Property) -> bool {
        use Property::{Number, Text};
        match (op, value) {
            (0, value) => value == Some(wanted),
            (1, value) => value != Some(wanted),
            (_, None) => false,
            (op, Some(value)) => {
                let less = match (value, wanted) {
                    (Number(one), Number(other)) => (one < other, one == other),
                    (Text(one), Text(other)) => (one < other, one == other),
                    _ => return false,
                };
                match op {
                    2 => less.0,
                    3 => less.0 || less.1,
                    4 => !less.0 && !less.1,
                    _ => !less.0,
                }
            }
        }
    }

    proptest! {
        #[test]
        fn t5_comparisons_are_what_they_say(op in 0_usize..6, value in proptest::option::of(property()), wanted in property()) {
            let word = ["eq", "ne", "lt", "le", "gt", "ge"][op];
            let json = serde_json::json!({ "level": { word: wanted } });
            let filter: Filter = serde_json::from_value(json).unwrap();
            check_filter(&filter, &[]).unwrap();
            let properties: Properties = value.iter().map(|value| ("level".to_owned(), value.clone())).collect();
            prop_assert_eq!(admits(&filter, &properties), meets(op, value.as_ref(), &wanted));
        }

        #[test]
        fn t5_any_json_is_read_or_refused(text in "[\\[\\]{}\":,0-9a-z.@ -]{0,60}") {
            if let Ok(filter) = serde_json::from_str::<Filter>(&text) {
                let _ = check_filter(&filter, &["members"]);
                let _ = admits(&filter, &Properties::new());
            }
        }
    }

    #[test]
    fn t5_filters_have_an_end_and_name_what_is_wrong() {
        let filter = |json: serde_json::Value| serde_json::from_value::<Filter>(json);
        let bad =
            |json: serde_json::Value| check_filter(&filter(json).unwrap(), &["members"]).unwrap_err().name;
        assert_eq!(bad(serde_json::json!({ "a b": 1 })), "a b");
        assert_eq!(bad(serde_json::json!({ "@owner": 1 })), "@owner");
        assert_eq!(bad(serde_json::json!({ "a": [] })), "a");
        assert_eq!(bad(serde_json::json!({ "a": {} })), "a");
        assert_eq!(bad(serde_json::json!({ "a": "x".repeat(300) })), "a");
        assert_eq!(bad(serde_json::json!({ "a": i64::MAX })), "a");
        let many: serde_json::Map<_, _> = (0..17).map(|at| (format!("n{at}"), 1.into())).collect();
        assert_eq!(bad(many.into()), "");
        for wrong in [
            serde_json::json!({ "a": 1.5 }),
            serde_json::json!({ "a": null }),
            serde_json::json!({ "a": { "≥": 5 } }),
        ] {
            assert!(filter(wrong.clone()).is_err(), "{wrong}");
        }
        let fine = filter(
            serde_json::json!({ "map": ["mill", "dust"], "@members": { "ge": 2, "lt": 8 }, "mod": { "exists": false } }),
        );
        check_filter(&fine.unwrap(), &["members"]).unwrap();
    }
}
