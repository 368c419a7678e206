//! How a room is set up: what the operator of a game, or the creator of a room where the server allows it, writes down.
//!
//! Every field may be left out. [`Config::read`] refuses what cannot be, naming the field, and fills in what depends on other
//! fields, so that a stored room stays as it was set up even if a later server has other defaults.

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

/// A room's configuration. `docs/turn-rooms.md` says what each field means and what it is when it is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The game: rooms of one game find each other.
    #[schemars(regex(pattern = WORD_PATTERN))]
    pub game: Option<String>,
    /// The room's name where its creator gives none.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub name: Option<String>,
    /// The rule set, by name. Without one the players are trusted, or judge each other.
    #[schemars(regex(pattern = WORD_PATTERN))]
    pub rules: Option<String>,
    /// How many play.
    pub players: Players,
    /// Whether the room is listed.
    pub visibility: Visibility,
    /// Whether players move in turns.
    pub turn_based: Option<bool>,
    /// Whether the game begins by itself with the last player that it needs.
    pub auto_start: Option<bool>,
    /// Whether players may join while the game goes on.
    pub late_join: Option<bool>,
    /// Whether accounts that do not play may read the room.
    pub spectators: bool,
    /// What players are called in the game.
    #[schemars(length(max = PLAYERS_MAX), inner(regex(pattern = WORD_PATTERN)))]
    pub roles: Vec<String>,
    /// Who gets which role.
    pub role_assignment: RoleAssignment,
    /// How long a turn may take.
    #[schemars(range(min = TIMEOUT_MS_MIN, max = TIMEOUT_MS_MAX))]
    pub turn_timeout_ms: Option<u64>,
    /// What happens to a player whose turn takes longer.
    pub on_timeout: OnTimeout,
    /// Which of the others must accept a move.
    pub quorum: Quorum,
    /// How long they have to say no.
    #[schemars(range(min = TIMEOUT_MS_MIN, max = TIMEOUT_MS_MAX))]
    pub validation_timeout_ms: u64,
    /// Which moves there are in which phase, and which fields they need.
    pub moves: Moves,
    /// What the state is before the first move.
    #[schemars(with = "Map<String, Value>")]
    pub state: Value,
    /// What is said about the room; the creator of a room can add to it.
    #[schemars(with = "Map<String, Value>")]
    pub metadata: Value,
    /// How much fits.
    pub limits: Limits,
    /// Texts that call players who are away.
    pub notifications: Notifications,
}

/// How many play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Players {
    /// Fewer do not begin.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub min: Option<u16>,
    /// More do not fit.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub max: Option<u16>,
}

/// Whether a room is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Anybody may find and join it.
    #[default]
    Public,
    /// Only who has its code or its id finds it.
    Private,
}

/// Who gets which role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleAssignment {
    /// Drawn.
    #[default]
    Random,
    /// By the host, when it starts the game.
    Assigned,
    /// In the order of joining.
    FirstCome,
}

/// What happens to a player whose turn takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The player is out of the game.
    #[default]
    Forfeit,
    /// The turn passes to the next.
    Skip,
}

/// Which of the others must accept a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quorum {
    /// A move stands at once.
    #[default]
    None,
    /// All others must accept it.
    All,
    /// More than half of the others must.
    Majority,
}

/// The moves of each phase. A phase that is left out has none, but for `playing`, which then has any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Moves {
    /// Before the game.
    #[schemars(extend("maxProperties" = MOVE_TYPES_MAX))]
    pub waiting: Option<BTreeMap<String, MoveType>>,
    /// In the game.
    #[schemars(extend("maxProperties" = MOVE_TYPES_MAX))]
    pub playing: Option<BTreeMap<String, MoveType>>,
    /// After it.
    #[schemars(extend("maxProperties" = MOVE_TYPES_MAX))]
    pub ended: Option<BTreeMap<String, MoveType>>,
}

/// What a type of move needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MoveType {
    /// Fields that the move's data must have, at its top, and not null.
    #[schemars(length(max = REQUIRED_FIELDS_MAX), inner(regex(pattern = WORD_PATTERN)))]
    pub required_fields: Vec<String>,
}

/// How much fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Of the state, as compact JSON.
    #[schemars(range(min = 2, max = STATE_BYTES_MAX))]
    pub state_bytes: usize,
    /// Of a move: its data and its patch of the state together.
    #[schemars(range(min = 2, max = MOVE_BYTES_MAX))]
    pub move_bytes: usize,
    /// Moves that may wait for the word of the others, in games without turns. With turns it is one.
    #[schemars(range(min = 1, max = PROPOSALS_MAX))]
    pub proposals: u16,
}

/// Texts that call players who are away. What is left out is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notifications {
    /// To whom the turn passes.
    pub on_turn_start: Option<Template>,
    /// To all but who made the last move.
    pub on_game_end: Option<Template>,
}

/// A text with variables such as `{{room_name}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The headline.
    #[schemars(length(min = 1, max = TEMPLATE_CHARS_MAX))]
    pub title: String,
    /// The text.
    #[schemars(length(min = 1, max = TEMPLATE_CHARS_MAX))]
    pub body: String,
}

/// Seats of a room whose configuration says nothing.
const PLAYERS_DEFAULT: (u16, u16) = (1, 4);

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
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { state_bytes: STATE_BYTES, move_bytes: MOVE_BYTES, proposals: PROPOSALS }
    }
}

impl Config {
    /// The configuration that `written` is, checked and with what depends on other fields filled in. `app` is the game where
    /// `written` names none.
    ///
    /// # Errors
    /// `bad_config` with the path of the first field that is wrong, from `config.` on.
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

    /// The game's name.
    #[must_use]
    pub fn game(&self) -> &str {
        self.game.as_deref().unwrap_or_default()
    }

    /// Fewest players.
    #[must_use]
    pub fn players_min(&self) -> u16 {
        self.players.min.unwrap_or(PLAYERS_DEFAULT.0)
    }

    /// Most players.
    #[must_use]
    pub fn players_max(&self) -> u16 {
        self.players.max.unwrap_or(PLAYERS_DEFAULT.1)
    }

    /// Whether players move in turns.
    #[must_use]
    pub fn is_turn_based(&self) -> bool {
        self.turn_based.unwrap_or(self.rules.is_some())
    }

    /// Whether the game begins by itself.
    #[must_use]
    pub fn starts_itself(&self) -> bool {
        self.auto_start.unwrap_or(false)
    }

    /// Whether players may join while the game goes on.
    #[must_use]
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

    /// What rules need goes before what is usual.
    fn settle_players(&mut self, rules: Option<&dyn Rules>) -> Result<(), Refusal> {
        let (least, most) = rules.map_or((1, PLAYERS_MAX), |rules| rules.players().into_inner());
        // Whoever gives a least number means the game to begin with it; the usual 1 would begin at once, alone. A game for one
        // number of players and no other needs not be told it.
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
        if min > max {
            let sentence = format!(
                "is {min} and `players.max` {max}: the game could never begin; for a start by the host alone set \
                 `auto_start` to false"
            );
            return Err(bad("players.min", sentence));
        }
        self.players = Players { min: Some(min), max: Some(max) };
        self.auto_start.get_or_insert(is_given && self.role_assignment != RoleAssignment::Assigned);
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

fn as_bad_config(refusal: Refusal) -> Refusal {
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
