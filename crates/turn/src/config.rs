//! The configuration of a room, written by the operator of a game, or by a room's creator where the server
//! allows it.
//!
//! Every field is optional. [`Config::read`] refuses invalid values, naming the field, and fills in defaults
//! that depend on other fields. A stored room thus keeps its setup even if a later server has other defaults.

use super::clients::ClientsMay;
use super::json;
use super::limits::{
    DATA_BYTES_MAX, MOVE_BYTES, MOVE_BYTES_MAX, MOVE_TYPES_MAX, NAME_CHARS_MAX, PLAYERS_MAX, PROPOSALS,
    PROPOSALS_MAX, REQUIRED_FIELDS_MAX, STATE_BYTES, STATE_BYTES_MAX, TEMPLATE_CHARS_MAX, TIMEOUT_MS_MAX,
    TIMEOUT_MS_MIN, VALIDATION_TIMEOUT_MS, WORD_PATTERN,
};
use super::notify::{GAME_END_VARIABLES, TURN_START_VARIABLES, unknown_variable};
use super::refusal::{Code, Refusal};
use super::rules::{RuleSets, Rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A room's configuration. `docs/turn-rooms.md` describes each field and its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The game's name: matchmaking finds rooms of the same game.
    #[schemars(regex(pattern = WORD_PATTERN))]
    pub game: Option<String>,
    /// The room's default name.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub name: Option<String>,
    /// The name of the rule set. Default: none; players are trusted or vote on moves.
    #[schemars(regex(pattern = WORD_PATTERN))]
    pub rules: Option<String>,
    /// The number of players.
    pub players: Players,
    /// Whether the room is listed.
    pub visibility: Visibility,
    /// Whether players move in turns.
    pub turn_based: Option<bool>,
    /// Whether the game starts automatically once enough players have joined.
    pub auto_start: Option<bool>,
    /// Whether players may join a running game.
    pub late_join: Option<bool>,
    /// Whether accounts that do not play may read the room.
    pub spectators: bool,
    /// The players' roles in the game.
    #[schemars(length(max = PLAYERS_MAX), inner(regex(pattern = WORD_PATTERN)))]
    pub roles: Vec<String>,
    /// How roles are assigned.
    pub role_assignment: RoleAssignment,
    /// Time limit of a turn.
    #[schemars(range(min = TIMEOUT_MS_MIN, max = TIMEOUT_MS_MAX))]
    pub turn_timeout_ms: Option<u64>,
    /// What happens when a turn times out.
    pub on_timeout: OnTimeout,
    /// Which other players must accept a move.
    pub quorum: Quorum,
    /// Time limit for rejecting a move.
    #[schemars(range(min = TIMEOUT_MS_MIN, max = TIMEOUT_MS_MAX))]
    pub validation_timeout_ms: u64,
    /// The move types of each phase and their required fields.
    pub moves: Moves,
    /// The initial state.
    #[schemars(with = "Map<String, Value>")]
    pub state: Value,
    /// Metadata of the room; its creator can add to it.
    #[schemars(with = "Map<String, Value>")]
    pub metadata: Value,
    /// Size limits.
    pub limits: Limits,
    /// Push notifications for absent players.
    pub notifications: Notifications,
    /// Which fields the client that creates a room may set.
    pub clients_may: ClientsMay,
}

/// The number of players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Players {
    /// The minimum to start the game.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub min: Option<u16>,
    /// The maximum number of seats.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub max: Option<u16>,
    /// The number of seats where the room's creator gives none. Default: `max`.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub usual: Option<u16>,
}

/// Whether a room is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Any player may find and join it.
    #[default]
    Public,
    /// Only players with its code or id find it.
    Private,
}

/// How roles are assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleAssignment {
    /// At random.
    #[default]
    Random,
    /// By the host, when it starts the game.
    Assigned,
    /// In the order of joining.
    FirstCome,
}

/// What happens to a player whose turn times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The player is out of the game.
    #[default]
    Forfeit,
    /// The turn passes to the next player.
    Skip,
}

/// Which other players must accept a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quorum {
    /// A move stands at once.
    #[default]
    None,
    /// All others must accept it.
    All,
    /// More than half of the others must accept it.
    Majority,
}

/// The moves of each phase. An omitted phase allows none, except `playing`, which then allows any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Moves {
    /// Before the game.
    #[schemars(extend("maxProperties" = MOVE_TYPES_MAX))]
    pub waiting: Option<BTreeMap<String, MoveType>>,
    /// In the game.
    #[schemars(extend("maxProperties" = MOVE_TYPES_MAX))]
    pub playing: Option<BTreeMap<String, MoveType>>,
    /// After the game.
    #[schemars(extend("maxProperties" = MOVE_TYPES_MAX))]
    pub ended: Option<BTreeMap<String, MoveType>>,
}

/// The requirements of a move type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MoveType {
    /// Required top-level fields of the move's data; null counts as missing.
    #[schemars(length(max = REQUIRED_FIELDS_MAX), inner(regex(pattern = WORD_PATTERN)))]
    pub required_fields: Vec<String>,
}

/// Size limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum state size in bytes of compact JSON.
    #[schemars(range(min = 2, max = STATE_BYTES_MAX))]
    pub state_bytes: usize,
    /// Maximum move size in bytes: its data and its patch together.
    #[schemars(range(min = 2, max = MOVE_BYTES_MAX))]
    pub move_bytes: usize,
    /// Maximum moves waiting for votes in games without turns. With turns it is one.
    #[schemars(range(min = 1, max = PROPOSALS_MAX))]
    pub proposals: u16,
}

/// Push notifications for absent players. Omitted ones are not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notifications {
    /// For the player whose turn begins.
    pub on_turn_start: Option<Template>,
    /// For all players except the one who ended the game.
    pub on_game_end: Option<Template>,
}

/// A text with variables such as `{{room_name}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The title.
    #[schemars(length(min = 1, max = TEMPLATE_CHARS_MAX))]
    pub title: String,
    /// The body text.
    #[schemars(length(min = 1, max = TEMPLATE_CHARS_MAX))]
    pub body: String,
}

/// Default minimum and maximum number of players.
pub(super) const PLAYERS_DEFAULT: (u16, u16) = (1, 4);

impl Default for Config {
    fn default() -> Self {
        let nothing = || Value::Object(Map::new());
        Config {
            game: None,
            name: None,
            rules: None,
            players: Players::default(),
            visibility: Visibility::default(),
            turn_based: None,
            auto_start: None,
            late_join: None,
            spectators: false,
            roles: Vec::new(),
            role_assignment: RoleAssignment::default(),
            turn_timeout_ms: None,
            on_timeout: OnTimeout::default(),
            quorum: Quorum::default(),
            validation_timeout_ms: VALIDATION_TIMEOUT_MS,
            moves: Moves::default(),
            state: nothing(),
            metadata: nothing(),
            limits: Limits::default(),
            notifications: Notifications::default(),
            clients_may: ClientsMay::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { state_bytes: STATE_BYTES, move_bytes: MOVE_BYTES, proposals: PROPOSALS }
    }
}

impl Config {
    /// Parses and checks a configuration, and fills in defaults that depend on other fields. `app` is the
    /// default game.
    ///
    /// # Errors
    /// `bad_config` with the path of the first wrong field, starting with `config.`.
    pub fn read(written: &Value, app: &str, rules: &RuleSets) -> Result<Config, Refusal> {
        let mut config: Config = json::read("config", written).map_err(as_bad_config)?;
        config.game.get_or_insert_with(|| app.to_owned());
        let rules = config.named_rules(rules)?;
        config.check_words()?;
        config.check_sizes()?;
        config.settle_players(rules)?;
        config.settle_turns(rules)?;
        config.check_timers()?;
        config.check_peers(rules)?;
        config.settle_start(rules)?;
        config.check_moves(rules)?;
        config.check_notifications()?;
        Ok(config)
    }

    /// Returns the game's name.
    pub fn game(&self) -> &str {
        self.game.as_deref().unwrap_or_default()
    }

    /// Returns the minimum number of players.
    pub fn players_min(&self) -> u16 {
        self.players.min.unwrap_or(PLAYERS_DEFAULT.0)
    }

    /// Returns the maximum number of players.
    pub fn players_max(&self) -> u16 {
        self.players.max.unwrap_or(PLAYERS_DEFAULT.1)
    }

    /// Returns the default number of seats.
    pub fn players_usual(&self) -> u16 {
        self.players.usual.unwrap_or(self.players_max())
    }

    /// Whether players move in turns.
    pub fn is_turn_based(&self) -> bool {
        self.turn_based.unwrap_or(self.rules.is_some())
    }

    /// Whether the game starts automatically.
    pub fn starts_itself(&self) -> bool {
        self.auto_start.unwrap_or(false)
    }

    /// Whether players may join a running game.
    pub fn takes_late_players(&self) -> bool {
        self.late_join.unwrap_or(!self.is_turn_based())
    }

    fn named_rules<'a>(&self, rules: &'a RuleSets) -> Result<Option<&'a dyn Rules>, Refusal> {
        let Some(name) = &self.rules else { return Ok(None) };
        let found = rules.get(name).ok_or_else(|| {
            let names: Vec<&str> = rules.names().collect();
            bad(
                "rules",
                format!(
                    "this server has no rule set {name:?}; it has {}: name one or leave `rules` out",
                    list(&names)
                ),
            )
        })?;
        Ok(Some(found))
    }

    fn check_words(&self) -> Result<(), Refusal> {
        check_word("game", self.game())?;
        if let Some(name) = &self.name {
            json::check_text("config.name", name, NAME_CHARS_MAX).map_err(as_bad_config)?;
        }
        let mut seen = BTreeSet::new();
        if self.roles.len() > usize::from(PLAYERS_MAX) {
            return Err(bad("roles", format!("at most {PLAYERS_MAX} roles: a room has no more players")));
        }
        for (index, role) in self.roles.iter().enumerate() {
            check_word(&format!("roles[{index}]"), role)?;
            if !seen.insert(role) {
                return Err(bad(&format!("roles[{index}]"), format!("{role:?} stands there twice")));
            }
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), Refusal> {
        within("limits.state_bytes", self.limits.state_bytes, 2, STATE_BYTES_MAX)?;
        within("limits.move_bytes", self.limits.move_bytes, 2, MOVE_BYTES_MAX)?;
        within("limits.proposals", self.limits.proposals, 1, PROPOSALS_MAX)?;
        for (path, value, most) in [
            ("config.state", &self.state, self.limits.state_bytes),
            ("config.metadata", &self.metadata, DATA_BYTES_MAX),
        ] {
            json::check_object(path, value).map_err(as_bad_config)?;
            json::check_size(path, value, most).map_err(as_bad_config)?;
        }
        Ok(())
    }

    /// Sets the numbers of players. Requirements of the rules override defaults.
    fn settle_players(&mut self, rules: Option<&dyn Rules>) -> Result<(), Refusal> {
        let (least, most) = rules.map_or((1, PLAYERS_MAX), |rules| rules.players().into_inner());
        self.start_by_hand(least)?;
        // A given minimum means automatic start at that number; the default of 1 would start at once, with
        // one player. Rules with a fixed number of players imply it.
        let is_given = self.players.min.is_some() || (rules.is_some() && least == most);
        if let Some(rules) = rules {
            let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            for (path, given) in [("players.min", self.players.min), ("players.max", self.players.max)] {
                if given.is_some_and(|given| !(least..=most).contains(&given)) {
                    let sentence = format!("the rules {:?} are for {range} players", rules.name());
                    return Err(bad(path, sentence));
                }
            }
            self.players.min.get_or_insert(least);
            self.players.max.get_or_insert(most);
        }
        let min = self.players_min();
        let max = self.players.max.unwrap_or(PLAYERS_DEFAULT.1.max(min));
        within("players.min", min, 1, PLAYERS_MAX)?;
        within("players.max", max, 1, PLAYERS_MAX)?;
        let usual = self.players.usual;
        usual.map_or(Ok(()), |usual| within("players.usual", usual, min, max))?;
        self.players = Players { min: Some(min), max: Some(max), usual };
        self.auto_start.get_or_insert(is_given && self.role_assignment != RoleAssignment::Assigned);
        Ok(())
    }

    /// A minimum above the maximum is never reached: the host starts the game, with whoever is there.
    fn start_by_hand(&mut self, least: u16) -> Result<(), Refusal> {
        let (Some(min), Some(max)) = (self.players.min, self.players.max) else { return Ok(()) };
        if min <= max {
            return Ok(());
        }
        within("players.min", min, 1, PLAYERS_MAX)?;
        if self.auto_start == Some(true) {
            let sentence = format!(
                "is {min} and `players.max` {max}: the game would never begin by itself; leave `auto_start` out"
            );
            return Err(bad("players.min", sentence));
        }
        self.players.min = Some(least);
        self.auto_start = Some(false);
        Ok(())
    }

    fn settle_turns(&mut self, rules: Option<&dyn Rules>) -> Result<(), Refusal> {
        if rules.is_some() && self.turn_based == Some(false) {
            return Err(bad("turn_based", "games with rules have turns: leave it out".to_owned()));
        }
        let turn_based = *self.turn_based.get_or_insert(rules.is_some());
        if rules.is_some() && self.late_join == Some(true) {
            let sentence = "games with rules take nobody in while they go on: leave it out".to_owned();
            return Err(bad("late_join", sentence));
        }
        self.late_join.get_or_insert(!turn_based);
        Ok(())
    }

    fn check_timers(&self) -> Result<(), Refusal> {
        within("validation_timeout_ms", self.validation_timeout_ms, TIMEOUT_MS_MIN, TIMEOUT_MS_MAX)?;
        let Some(timeout) = self.turn_timeout_ms else { return Ok(()) };
        within("turn_timeout_ms", timeout, TIMEOUT_MS_MIN, TIMEOUT_MS_MAX)?;
        if !self.is_turn_based() {
            return Err(bad("turn_timeout_ms", "there are no turns: set `turn_based` to true".to_owned()));
        }
        if self.rules.is_some() && self.on_timeout == OnTimeout::Skip {
            let sentence = "rules say whose turn it is, so none can be skipped: use \"forfeit\"".to_owned();
            return Err(bad("on_timeout", sentence));
        }
        Ok(())
    }

    fn check_peers(&self, rules: Option<&dyn Rules>) -> Result<(), Refusal> {
        if rules.is_some() && self.quorum != Quorum::None {
            return Err(bad("quorum", "the rules judge the moves: leave it out".to_owned()));
        }
        Ok(())
    }

    fn settle_start(&mut self, rules: Option<&dyn Rules>) -> Result<(), Refusal> {
        if let Some(rules) = rules {
            if !self.roles.is_empty() {
                return Err(bad(
                    "roles",
                    format!("the rules {:?} give the roles: leave it out", rules.name()),
                ));
            }
            if self.role_assignment != RoleAssignment::Random {
                let sentence = "the rules give the roles in the order of turns: leave it out";
                return Err(bad("role_assignment", sentence.to_owned()));
            }
            if self.state != Value::Object(Map::new()) {
                return Err(bad(
                    "state",
                    format!("the rules {:?} make the state: leave it out", rules.name()),
                ));
            }
        }
        if self.starts_itself() && self.role_assignment == RoleAssignment::Assigned {
            let sentence = "the host assigns the roles when it starts the game: set `auto_start` to false";
            return Err(bad("role_assignment", sentence.to_owned()));
        }
        Ok(())
    }

    fn check_moves(&self, rules: Option<&dyn Rules>) -> Result<(), Refusal> {
        if rules.is_some() && self.moves != Moves::default() {
            return Err(bad("moves", "the rules know their moves: leave it out".to_owned()));
        }
        let phases = [
            ("waiting", &self.moves.waiting),
            ("playing", &self.moves.playing),
            ("ended", &self.moves.ended),
        ];
        for (phase, types) in phases {
            let Some(types) = types else { continue };
            let path = format!("moves.{phase}");
            if types.len() > MOVE_TYPES_MAX {
                return Err(bad(&path, format!("at most {MOVE_TYPES_MAX} types of moves")));
            }
            for (name, needs) in types {
                check_word(&format!("{path}.{name}"), name)?;
                if needs.required_fields.len() > REQUIRED_FIELDS_MAX {
                    let sentence = format!("at most {REQUIRED_FIELDS_MAX} fields");
                    return Err(bad(&format!("{path}.{name}.required_fields"), sentence));
                }
                for (index, field) in needs.required_fields.iter().enumerate() {
                    check_word(&format!("{path}.{name}.required_fields[{index}]"), field)?;
                }
            }
        }
        Ok(())
    }

    fn check_notifications(&self) -> Result<(), Refusal> {
        let templates = [
            ("on_turn_start", &self.notifications.on_turn_start, TURN_START_VARIABLES),
            ("on_game_end", &self.notifications.on_game_end, GAME_END_VARIABLES),
        ];
        for (name, template, known) in templates {
            let Some(template) = template else { continue };
            for (part, text) in [("title", &template.title), ("body", &template.body)] {
                let path = format!("config.notifications.{name}.{part}");
                json::check_text(&path, text, TEMPLATE_CHARS_MAX).map_err(as_bad_config)?;
                if let Some(unknown) = unknown_variable(text, &known) {
                    let sentence = format!("knows no {{{{{unknown}}}}}; it knows {}", known.join(", "));
                    return Err(Refusal::at(Code::BadConfig, path, sentence));
                }
            }
        }
        Ok(())
    }
}

fn bad(path: &str, sentence: String) -> Refusal {
    Refusal::at(Code::BadConfig, format!("config.{path}"), sentence)
}

pub(super) fn as_bad_config(refusal: Refusal) -> Refusal {
    Refusal { code: Code::BadConfig, ..refusal }
}

fn within<T: PartialOrd + std::fmt::Display>(path: &str, value: T, least: T, most: T) -> Result<(), Refusal> {
    if value < least || value > most {
        return Err(bad(path, format!("is {value}; it must be {least} to {most}")));
    }
    Ok(())
}

fn check_word(path: &str, word: &str) -> Result<(), Refusal> {
    json::check_word(&format!("config.{path}"), word).map_err(as_bad_config)
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
