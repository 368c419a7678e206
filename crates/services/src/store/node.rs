//! The name of a server among those that share a store.

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

/// Maximum length of a [`NodeName`], that of a host name's part.
const NAME_LEN_MAX: usize = 63;

/// The name of a node: 1 to 63 lowercase letters, digits and hyphens, as a pod or a machine is named. No two
/// servers that share a store have the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

/// The text is no [`NodeName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a node: it has 1 to 63 lowercase letters, digits and hyphens")]
pub struct InvalidNodeName(String);

impl NodeName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = InvalidNodeName;

    fn from_str(text: &str) -> Result<Self, InvalidNodeName> {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty() || text.len() > NAME_LEN_MAX || !text.bytes().all(is_allowed) {
            return Err(InvalidNodeName(text.chars().take(NAME_LEN_MAX).collect()));
        }
        Ok(NodeName(text.into()))
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hosts() {
        for good in ["a", "parlor-0", "7", &"x".repeat(NAME_LEN_MAX)] {
            assert_eq!(good.parse::<NodeName>().unwrap().as_str(), good);
        }
        for bad in ["", "Parlor", "a.b", "a b", "ä", &"x".repeat(NAME_LEN_MAX + 1)] {
            assert!(bad.parse::<NodeName>().is_err(), "{bad}");
        }
    }
}
