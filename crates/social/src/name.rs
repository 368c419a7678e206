//! Names of what operators define and players write.

use crate::limits::NAME_BYTES_MAX;
use core::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The name of a board, a statistic, an achievement, a ladder, a queue, a collection, an object or a slot: 1 to
/// [`NAME_BYTES_MAX`] letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// A text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a name has 1 to {NAME_BYTES_MAX} letters, digits, `.`, `_` or `-`")]
pub struct BadName;

impl Name {
    /// Checks that a text is a name.
    ///
    /// # Errors
    /// [`BadName`].
    pub fn new(text: &str) -> Result<Self, BadName> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.bytes().all(is_name) {
            return Err(BadName);
        }
        Ok(Name(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_few_characters_of_few_kinds() {
        for wrong in ["", "a b", "ä", "a/b", "a:b", "\u{0}", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(Name::new(wrong), Err(BadName), "{wrong}");
        }
        for right in ["a", "Castle_1.b-2", &"x".repeat(NAME_BYTES_MAX)] {
            assert_eq!(Name::new(right).unwrap().as_str(), right);
        }
    }
}
