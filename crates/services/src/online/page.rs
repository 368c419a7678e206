//! The size of a list's page.

use crate::store::PAGE_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Default number of entries in a page.
const DEFAULT: usize = 100;

/// Maximum number of entries wanted from a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub(super) struct Limit(usize);

impl Limit {
    /// The number of rows to request from the store.
    pub(super) fn rows(self) -> usize {
        self.0
    }
}

impl Default for Limit {
    fn default() -> Self {
        Limit(DEFAULT)
    }
}

impl TryFrom<u64> for Limit {
    type Error = String;

    fn try_from(wanted: u64) -> Result<Self, String> {
        let rows = usize::try_from(wanted).ok().filter(|rows| (1..=PAGE_MAX).contains(rows));
        rows.map(Limit).ok_or_else(|| format!("a part of a list has 1 to {PAGE_MAX} entries"))
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": DEFAULT })
    }
}
