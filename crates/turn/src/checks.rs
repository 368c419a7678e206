//! The checks of a move.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The results of a move's checks.
///
/// A move that fails the check of the server or of the rules is refused at once and not recorded; the refusal has
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// Phase, turn, type, fields and size.
    pub server: Check,
    /// The rule set.
    pub rules: Check,
    /// The votes of the peers.
    pub peers: Check,
}

/// The result of one check of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// This room has no such check.
    NotApplicable,
    /// Undecided.
    Pending,
    /// The move passed.
    Valid,
    /// The move failed.
    Invalid,
    /// Peers rejected it.
    Disputed,
    /// Another change came first.
    Superseded,
}

impl Checks {
    /// The checks of a waiting move.
    pub(super) const PENDING: Checks =
        Checks { server: Check::Valid, rules: Check::NotApplicable, peers: Check::Pending };
}
