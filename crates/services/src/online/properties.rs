//! Checks of what lobbies and players say of themselves.

use super::failure::Failure;
use parlor_social::{BadProperty, Properties, check_properties};

/// Refuses properties of an input's field that are too many, too large or badly named.
pub(super) fn checked(field: &str, properties: &Properties) -> Result<(), Failure> {
    check_properties(properties).map_err(|error| bad_property(field, error))
}

/// The refusal of a property, or of a filter's condition, of an input's field.
pub(super) fn bad_property(field: &str, BadProperty { name, sentence }: BadProperty) -> Failure {
    let path = if name.is_empty() { field.to_owned() } else { format!("{field}.{name}") };
    Failure::field(path, sentence)
}
