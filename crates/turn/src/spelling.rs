//! Field names of game files: Parlor's, or those of RUN.game's `config.json`. Both are converted to Parlor's
//! names here. The original path of each field is kept, so that refusals name what the operator wrote.

use super::config::Config;
use super::json;
use super::refusal::{Code, Refusal};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

type Object = Map<String, Value>;

/// The field of RUN.game's file that holds what a game file holds here.
const ROOMS: &str = "rooms";
/// Fields whose nested fields have more than one spelling.
const WITH_PARTS: [&str; 4] = ["players", "notifications", "clients_may", "limits"];
/// RUN.game's names of fields that Parlor has too.
const RENAMED: [(&str, &str); 5] = [
    ("gameType", "game"),
    ("rulesPreset", "rules"),
    ("minPlayers", "players.min"),
    ("maxPlayers", "players.max"),
    ("playerRoles", "roles"),
];
/// RUN.game's names of room options.
const OPTIONS: [(&str, &str); 5] = [
    ("name", "name"),
    ("maxPlayers", "players.usual"),
    ("isPrivate", "visibility"),
    ("customMetadata", "metadata"),
    ("metadata", "metadata"),
];
/// RUN.game's names of matchmaking criteria.
const CRITERIA: [(&str, &str); 4] = [
    ("rulesPreset", "criteria.rules"),
    ("maxPlayers", "criteria.max_players"),
    ("customMetadata", "criteria.metadata"),
    ("name", "criteria.name"),
];

/// A game file, or a part of it, in Parlor's field names.
#[derive(Clone, Debug, Default)]
pub(super) struct Spelled {
    /// The configuration of rooms.
    pub(super) config: Object,
    /// Overrides for private rooms.
    pub(super) private: Object,
    /// Matchmaking criteria.
    pub(super) criteria: Object,
    /// Overrides of each mode, as written.
    pub(super) modes: Object,
    /// Original paths of the fields, by Parlor's names.
    places: BTreeMap<String, String>,
}

impl Spelled {
    /// Converts a whole file.
    ///
    /// # Errors
    /// `bad_config` with the path of the first field that is unknown, or given twice with different values.
    pub(super) fn file(written: &Value) -> Result<Spelled, Refusal> {
        json::check_depth("", written).map_err(bad)?;
        let Value::Object(file) = written else {
            return Err(wrong("", "a game's file must be an object, in braces"));
        };
        match file.get(ROOMS) {
            // Its other fields are for other services.
            Some(rooms) => Spelled::part(ROOMS, rooms, true),
            None => Spelled::part("", written, true),
        }
    }

    /// Converts the fields at `place`: a file's, or a mode's overrides.
    pub(super) fn part(place: &str, written: &Value, is_file: bool) -> Result<Spelled, Refusal> {
        let mut spelled = Spelled::default();
        for (name, value) in object(place, written)? {
            let place = join(place, name);
            match name.as_str() {
                "modes" if is_file => spelled.modes = object(&place, value)?.clone(),
                "criteria" => spelled.all("criteria", &place, value)?,
                "matchmaking" => spelled.matchmaking(&place, value)?,
                "private" => spelled.private(&place, value)?,
                "createOptions" => spelled.options("", &place, value)?,
                "privateMatchDefaults" => spelled.private_matches(&place, value)?,
                "defaultRules" => spelled.default_rules(&place, value)?,
                _ => spelled.field("", &place, name, value)?,
            }
        }
        Ok(spelled)
    }

    /// Returns this with a mode's overrides.
    pub(super) fn with(&self, mode: Spelled) -> Spelled {
        let mut all = self.clone();
        for (whole, part) in [
            (&mut all.config, mode.config),
            (&mut all.private, mode.private),
            (&mut all.criteria, mode.criteria),
        ] {
            *whole = merged(whole, part);
        }
        all.places.extend(mode.places);
        all
    }

    /// Whether a field has RUN.game's name.
    pub(super) fn is_runs(&self, ours: &str, theirs: &str) -> bool {
        self.places.get(ours).is_some_and(|place| place.ends_with(theirs))
    }

    /// Returns the original path of a field that a refusal names. `part` is its source: empty for the
    /// configuration, else `private` or `criteria`.
    pub(super) fn place(&self, part: &str, path: &str) -> String {
        let path = path.strip_prefix("config").unwrap_or(path).trim_start_matches('.');
        let within = |part: &str| self.longest(&join(part, path));
        // `private` holds only overrides, so other fields are looked up in the configuration.
        let found = if part == "private" { within(part).or_else(|| within("")) } else { within(part) };
        found.unwrap_or_else(|| join(part, path))
    }

    fn longest(&self, path: &str) -> Option<String> {
        let ends = path.match_indices(['.', '[']).map(|(at, _)| at).chain([path.len()]);
        let mut known = ends.filter_map(|end| Some((end, self.places.get(&path[..end])?)));
        known.next_back().map(|(end, place)| format!("{place}{}", &path[end..]))
    }

    /// Converts one field in Parlor's or RUN.game's naming.
    fn field(&mut self, part: &str, place: &str, name: &str, value: &Value) -> Result<(), Refusal> {
        if let Some((_, ours)) = RENAMED.iter().find(|(theirs, _)| *theirs == name) {
            // RUN.game's preset `default` means no rules.
            let value = if name == "rulesPreset" && value == "default" { &Value::Null } else { value };
            return self.put(&join(part, ours), place, value.clone());
        }
        match name {
            "playerInitialization" => self.put(&join(part, "role_assignment"), place, assignment(value)),
            "moves" => self.moves(part, place, value),
            _ if !is_known(name) => Err(unknown(place, name)),
            _ if WITH_PARTS.contains(&name) => self.parts(&join(part, name), place, value),
            _ => self.put(&join(part, name), place, value.clone()),
        }
    }

    /// Converts a field whose nested fields are converted one by one.
    fn parts(&mut self, ours: &str, place: &str, value: &Value) -> Result<(), Refusal> {
        let Value::Object(fields) = value else { return self.put(ours, place, value.clone()) };
        for (name, value) in fields {
            let inner = match name.as_str() {
                "onTurnStart" => "on_turn_start",
                "onGameEnd" => "on_game_end",
                _ => name,
            };
            self.put(&join(ours, inner), &join(place, name), value.clone())?;
        }
        Ok(())
    }

    fn moves(&mut self, part: &str, place: &str, value: &Value) -> Result<(), Refusal> {
        let mut value = value.clone();
        let ours = join(part, "moves");
        for (phase, types) in value.as_object_mut().into_iter().flatten() {
            for (kind, needs) in types.as_object_mut().into_iter().flatten() {
                let Value::Object(needs) = needs else { continue };
                if let Some(fields) = needs.remove("requiredFields") {
                    let theirs = format!("{place}.{phase}.{kind}.requiredFields");
                    self.places.insert(format!("{ours}.{phase}.{kind}.required_fields"), theirs);
                    needs.insert("required_fields".to_owned(), fields);
                }
            }
        }
        self.put(&ours, place, value)
    }

    fn default_rules(&mut self, place: &str, value: &Value) -> Result<(), Refusal> {
        for (name, value) in object(place, value)? {
            let place = join(place, name);
            match name.as_str() {
                "turnBased" => self.put("turn_based", &place, value.clone())?,
                "minPlayers" | "maxPlayers" => self.field("", &place, name, value)?,
                "allowedMessageTypes" => self.moves("", &place, value)?,
                _ => return Err(unknown(&place, name)),
            }
        }
        Ok(())
    }

    fn options(&mut self, part: &str, place: &str, value: &Value) -> Result<(), Refusal> {
        for (name, value) in object(place, value)? {
            let place = join(place, name);
            let ours =
                OPTIONS.iter().find(|(theirs, _)| theirs == name).ok_or_else(|| unknown(&place, name))?;
            let value = match (name.as_str(), value) {
                ("isPrivate", Value::Bool(true)) => "private".into(),
                ("isPrivate", Value::Bool(false)) => "public".into(),
                _ => value.clone(),
            };
            self.put(&join(part, ours.1), &place, value)?;
        }
        Ok(())
    }

    fn private(&mut self, place: &str, value: &Value) -> Result<(), Refusal> {
        for (name, value) in object(place, value)? {
            self.field("private", &join(place, name), name, value)?;
        }
        Ok(())
    }

    fn private_matches(&mut self, place: &str, value: &Value) -> Result<(), Refusal> {
        for (name, value) in object(place, value)? {
            let place = join(place, name);
            match name.as_str() {
                "allowCustomCode" => self.put("private.clients_may.code", &place, value.clone())?,
                "createOptions" => self.options("private", &place, value)?,
                _ => return Err(unknown(&place, name)),
            }
        }
        Ok(())
    }

    fn matchmaking(&mut self, place: &str, value: &Value) -> Result<(), Refusal> {
        for (name, value) in object(place, value)? {
            let place = join(place, name);
            if name != "defaultCriteria" {
                return Err(unknown(&place, name));
            }
            for (name, value) in object(&place, value)? {
                let place = join(&place, name);
                match (name.as_str(), value) {
                    ("hasSpace", Value::Bool(true)) | ("isPrivate", Value::Bool(false)) => {}
                    ("hasSpace" | "isPrivate", _) => {
                        let sentence = "a room is only given to somebody who looks for one if it is public and has a seat: \
                                        leave it out";
                        return Err(wrong(&place, sentence));
                    }
                    _ => {
                        let theirs = CRITERIA.iter().find(|(theirs, _)| theirs == name);
                        let ours =
                            theirs.map_or_else(|| join("criteria", name), |(_, ours)| (*ours).to_owned());
                        self.put(&ours, &place, value.clone())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Copies an object's fields one by one, without renaming.
    fn all(&mut self, ours: &str, place: &str, value: &Value) -> Result<(), Refusal> {
        for (name, value) in object(place, value)? {
            self.put(&join(ours, name), &join(place, name), value.clone())?;
        }
        Ok(())
    }

    /// Stores a field. `ours` is its path, with a prefix `private.` or `criteria.` for those parts.
    fn put(&mut self, ours: &str, place: &str, value: Value) -> Result<(), Refusal> {
        let (mut into, path) = match ours.split_once('.') {
            Some(("private", path)) => (&mut self.private, path),
            Some(("criteria", path)) => (&mut self.criteria, path),
            _ => (&mut self.config, ours),
        };
        // Criteria names come from the operator and may contain dots; Parlor's paths have at most one.
        let (outer, name) = match path.split_once('.') {
            Some((outer, name)) if WITH_PARTS.contains(&outer) => (Some(outer), name),
            _ => (None, path),
        };
        if let Some(outer) = outer {
            let inner = into.entry(outer).or_insert_with(|| Value::Object(Object::new()));
            let Value::Object(inner) = inner else {
                return Err(wrong(place, "is said twice: name it once"));
            };
            into = inner;
        }
        if into.get(name).is_some_and(|said| *said != value) {
            let other = self.places.get(ours).map_or(ours, String::as_str);
            return Err(wrong(place, &format!("says something else than `{other}`: name it once")));
        }
        into.insert(name.to_owned(), value);
        self.places.insert(ours.to_owned(), place.to_owned());
        Ok(())
    }
}

/// Returns `whole` with `part` merged into it, as in RFC 7396.
pub(super) fn merged(whole: &Object, part: Object) -> Object {
    let mut value = Value::Object(whole.clone());
    json::merge(&mut value, &Value::Object(part));
    match value {
        Value::Object(fields) => fields,
        // An object merged with an object is an object.
        _ => Object::new(),
    }
}

fn assignment(value: &Value) -> Value {
    if value == "first-come-first-served" { "first_come".into() } else { value.clone() }
}

fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Returns the names of a configuration's fields.
fn names() -> impl Iterator<Item = String> {
    let fields = serde_json::to_value(Config::default()).ok();
    let fields = fields.and_then(|fields| fields.as_object().cloned()).unwrap_or_default();
    fields.into_iter().map(|(name, _)| name)
}

fn unknown(place: &str, name: &str) -> Refusal {
    let sentence = format!(
        "there is no field {name:?} here: docs/turn-rooms.md lists those that a game's file may have"
    );
    wrong(place, &sentence)
}

fn object<'a>(place: &str, value: &'a Value) -> Result<&'a Object, Refusal> {
    value.as_object().ok_or_else(|| wrong(place, "must be an object, in braces"))
}

fn wrong(place: &str, sentence: &str) -> Refusal {
    match place {
        "" => Refusal::new(Code::BadConfig, sentence),
        _ => Refusal::at(Code::BadConfig, place, sentence),
    }
}

fn bad(refusal: Refusal) -> Refusal {
    Refusal { code: Code::BadConfig, path: refusal.path.filter(|path| !path.is_empty()), ..refusal }
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}
