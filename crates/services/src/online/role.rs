//! Roles that may use an operation.

use crate::store::Role;

/// The roles that may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// All callers, signed in or not.
    Anybody,
    /// Only these roles.
    Only(&'static [Role]),
}

impl Allowed {
    /// Whether this role is allowed; `None` is a caller without a sign-in.
    pub(crate) fn allows(self, role: Option<Role>) -> bool {
        match self {
            Allowed::Anybody => true,
            Allowed::Only(roles) => role.is_some_and(|role| roles.contains(&role)),
        }
    }
}

/// A role, spelled as in tokens.
pub(super) mod word {
    use crate::store::Role;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(role: &Role, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(role.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Role, D::Error> {
        let word = String::deserialize(from)?;
        Role::from_word(&word).ok_or_else(|| D::Error::custom("there is no such role"))
    }
}
