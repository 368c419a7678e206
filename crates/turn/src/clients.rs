//! The fields of a room's configuration that clients may set. The operator sets the rest.

use super::refusal::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which fields the creator of a room, and later its host, may override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a field of the configuration that is allowed or not"
)]
pub struct ClientsMay {
    /// The room's name.
    pub name: bool,
    /// Whether it is listed.
    pub visibility: bool,
    /// Fewer seats than the configuration's maximum.
    pub max_players: bool,
    /// Values that override the configuration's metadata.
    pub metadata: bool,
    /// A chosen code instead of a drawn one. A chosen code can be guessed.
    pub code: bool,
}

impl Default for ClientsMay {
    fn default() -> Self {
        ClientsMay { name: true, visibility: true, max_players: true, metadata: true, code: false }
    }
}

/// Refuses a field that differs from the operator's value, unless clients may set it.
pub(super) fn allow(path: &str, may: bool, is_same: bool) -> Result<(), Refusal> {
    if may || is_same { Ok(()) } else { Err(operators(path)) }
}

/// Returns the refusal of a field that clients may not set.
pub(super) fn operators(path: &str) -> Refusal {
    let sentence = "the operator of this game decides this, and says something else: leave it out";
    Refusal::at(Code::OperatorDecides, path, sentence)
}
