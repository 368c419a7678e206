//! Matchmaking criteria.

use super::config::Config;
use super::json;
use super::limits::{CRITERIA_BYTES_MAX, CRITERIA_FIELDS_MAX, NAME_CHARS_MAX, PLAYERS_MAX, WORD_PATTERN};
use super::op::Create;
use super::refusal::{Code, Refusal};
use super::view::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// Criteria for a room, besides being listed and having a free seat. A room must meet all that are given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Criteria {
    /// Its exact name.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub name: Option<String>,
    /// The rule set that judges the moves.
    #[schemars(regex(pattern = WORD_PATTERN))]
    pub rules: Option<String>,
    /// The number of seats.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub max_players: Option<u16>,
    /// Required top-level metadata values, compared for equality; null requires the field to be absent.
    #[schemars(extend("maxProperties" = CRITERIA_FIELDS_MAX))]
    pub metadata: Map<String, Value>,
}

/// The input of criteria: a part of [`Summary`], whose JSON deserializes to this.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Listed {
    /// The room's name.
    pub name: String,
    /// The rule set that judges the moves.
    pub rules: Option<String>,
    /// The number of seats.
    pub max_players: u16,
    /// The room's metadata.
    pub metadata: Value,
}

impl Criteria {
    /// Parses and checks criteria.
    ///
    /// # Errors `bad_input`, `too_large` or `too_deep` with the path of the first wrong field, from
    /// `criteria.` on.
    pub fn read(written: &Value) -> Result<Criteria, Refusal> {
        let criteria: Criteria = json::read("criteria", written)?;
        if let Some(name) = &criteria.name {
            json::check_text("criteria.name", name, NAME_CHARS_MAX)?;
        }
        if let Some(rules) = &criteria.rules {
            json::check_word("criteria.rules", rules)?;
        }
        if criteria.max_players.is_some_and(|seats| !(1..=PLAYERS_MAX).contains(&seats)) {
            let sentence = format!("must be 1 to {PLAYERS_MAX}");
            return Err(Refusal::at(Code::BadInput, "criteria.max_players", sentence));
        }
        if criteria.metadata.len() > CRITERIA_FIELDS_MAX {
            let sentence = format!("at most {CRITERIA_FIELDS_MAX} values can be looked for: name fewer");
            return Err(Refusal::at(Code::TooLarge, "criteria.metadata", sentence));
        }
        json::check_size("criteria", written, CRITERIA_BYTES_MAX)?;
        Ok(criteria)
    }

    /// Whether every room meets them.
    pub fn is_empty(&self) -> bool {
        *self == Criteria::default()
    }

    /// Whether a room meets them.
    pub fn admit(&self, room: &Listed) -> bool {
        self.unmet(room).is_none()
    }

    /// Completes `create` so that the new room meets them: fills in what neither `create` nor `config` sets.
    /// A later search by the same criteria finds the room.
    ///
    /// # Errors
    /// `bad_input` or `too_large` with the path of a criterion that the room would not meet.
    pub fn met_by(&self, mut create: Create, config: &Config) -> Result<Create, Refusal> {
        if create.name.is_none() && config.name.is_none() {
            create.name.clone_from(&self.name);
        }
        let seats = self.max_players.filter(|seats| *seats != config.players_usual());
        create.max_players = create.max_players.or(seats);
        let metadata = create.metadata_with(config)?;
        let says = |field: &str| metadata.get(field).is_some_and(|value| !value.is_null());
        let wanted = self.metadata.iter().filter(|(field, value)| !value.is_null() && !says(field));
        let mut added: Map<String, Value> =
            create.metadata.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        added.extend(wanted.map(|(field, value)| (field.clone(), value.clone())));
        if !added.is_empty() {
            create.metadata = Some(Value::Object(added));
        }
        create.check(config).map_err(|refusal| {
            let path = refusal.path.unwrap_or_default();
            Refusal { path: Some(format!("criteria.{path}")), ..refusal }
        })?;
        let room = Listed {
            name: create.name_with(config),
            rules: config.rules.clone(),
            max_players: create.max_players_with(config),
            metadata: create.metadata_with(config)?,
        };
        match self.unmet(&room) {
            None => Ok(create),
            Some(path) => {
                let sentence =
                    "the room that would be opened if none is found does not meet this: ask for both alike";
                Err(Refusal::at(Code::BadInput, path, sentence))
            }
        }
    }

    /// Returns the path of the first criterion that a room does not meet.
    fn unmet(&self, room: &Listed) -> Option<String> {
        let unmet = if self.name.as_ref().is_some_and(|name| *name != room.name) {
            "name"
        } else if self.rules.is_some() && self.rules != room.rules {
            "rules"
        } else if self.max_players.is_some_and(|seats| seats != room.max_players) {
            "max_players"
        } else {
            let stands = |field: &str| room.metadata.get(field).unwrap_or(&Value::Null);
            let other = self.metadata.iter().find(|(field, value)| !is_same(value, stands(field)));
            return other.map(|(field, _)| format!("criteria.metadata.{field}"));
        };
        Some(format!("criteria.{unmet}"))
    }
}

impl From<&Summary<'_>> for Listed {
    fn from(summary: &Summary<'_>) -> Self {
        Listed {
            name: summary.name.to_owned(),
            rules: summary.rules.map(str::to_owned),
            max_players: summary.max_players,
            metadata: summary.metadata.clone(),
        }
    }
}

/// Whether two values are equal, regardless of number format: 3 is 3.0.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(field, one)| other.get(field).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

/// Compares integers exactly: as floats, those from 2⁵³ on would equal their neighbours.
fn is_same_number(one: &Number, other: &Number) -> bool {
    one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
}
