//! A game file of the server's operator: room configuration, overrides for private rooms and modes, and
//! default matchmaking criteria. A client names the game and perhaps a mode, and may set only what the file
//! allows.

use super::clients::{allow, operators};
use super::config::{Config, PLAYERS_DEFAULT, Visibility, as_bad_config};
use super::criteria::{Criteria, is_same};
use super::json;
use super::op::Create;
use super::refusal::{Code, Refusal};
use super::rules::RuleSets;
use super::spelling::{Spelled, merged};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of modes of a game.
const MODES_MAX: usize = 64;

/// A game.
#[derive(Clone, Debug, PartialEq)]
pub struct Game {
    usual: Arc<Mode>,
    modes: BTreeMap<String, Arc<Mode>>,
}

/// A game in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    public: SetUp,
    private: SetUp,
    criteria: Map<String, Value>,
    preset: Option<String>,
}

/// A configuration and its JSON, which clients' values are compared with.
#[derive(Clone, Debug, PartialEq)]
struct SetUp {
    config: Config,
    written: Value,
}

impl Game {
    /// Parses a game file. `name` is the file's name: the default game name of its rooms.
    ///
    /// # Errors
    /// `bad_config` with the path of the first wrong field, as the file spells it.
    pub fn read(name: &str, file: &Value, rules: &RuleSets) -> Result<Game, Refusal> {
        let spelled = Spelled::file(file)?;
        let usual = Mode::read(name, &spelled, rules)?;
        let root = if file.get("rooms").is_some() { "rooms.modes" } else { "modes" };
        if spelled.modes.len() > MODES_MAX {
            return Err(Refusal::at(Code::BadConfig, root, format!("has more than {MODES_MAX} modes")));
        }
        let mut games = BTreeMap::from([(usual.game().to_owned(), String::new())]);
        let mut modes = BTreeMap::new();
        for (mode, written) in &spelled.modes {
            let place = format!("{root}.{mode}");
            json::check_word(&place, mode).map_err(as_bad_config)?;
            let changed = Spelled::part(&place, written, false)?;
            let names_game = changed.config.contains_key("game");
            let mut all = spelled.with(changed);
            if !names_game {
                // Matchmaking goes by game name, and must not mix two modes.
                all.config.insert("game".to_owned(), format!("{}.{mode}", usual.game()).into());
            }
            let read = Mode::read(name, &all, rules)?;
            if let Some(other) = games.insert(read.game().to_owned(), mode.clone()) {
                let other = if other.is_empty() { "the game without a mode".into() } else { other };
                let sentence = format!(
                    "has the same `game` as {other}: rooms of one would be given to who looks for the other"
                );
                return Err(Refusal::at(Code::BadConfig, place, sentence));
            }
            modes.insert(mode.clone(), Arc::new(read));
        }
        Ok(Game { usual: Arc::new(usual), modes })
    }

    /// Returns a mode, or the game's default mode for `None`.
    pub fn mode(&self, name: Option<&str>) -> Option<&Arc<Mode>> {
        name.map_or(Some(&self.usual), |name| self.modes.get(name))
    }

    /// Returns the names of the modes.
    pub fn modes(&self) -> impl Iterator<Item = &str> {
        self.modes.keys().map(String::as_str)
    }
}

impl Mode {
    fn read(name: &str, spelled: &Spelled, rules: &RuleSets) -> Result<Mode, Refusal> {
        let (mut usual, mut criteria) = (spelled.config.clone(), spelled.criteria.clone());
        if spelled.is_runs("players.min", "minPlayers") {
            seats_of_run(&mut usual);
        }
        // A preset of RUN.game's own names checks beside those in the file; the latter hold here.
        let is_known = |preset: &str| rules.get(preset).is_some();
        let preset = usual.get("rules").and_then(Value::as_str).map(str::to_owned);
        let preset = preset.filter(|preset| spelled.is_runs("rules", "rulesPreset") && !is_known(preset));
        if let Some(preset) = &preset {
            usual.remove("rules");
            // All rooms of the game have it.
            if criteria.get("rules").is_some_and(|wanted| wanted == preset) {
                criteria.remove("rules");
            }
        }
        let public = SetUp::read(name, &usual, rules).map_err(|refusal| placed(spelled, "", refusal))?;
        let mut different = merged(&usual, spelled.private.clone());
        seats_for(&mut different);
        different.insert("visibility".to_owned(), "private".into());
        let private =
            SetUp::read(name, &different, rules).map_err(|refusal| placed(spelled, "private", refusal))?;
        let mode = Mode { public, private, criteria, preset };
        // A client that searches without criteria must be able to open a room.
        let criteria = mode.criteria(None).map_err(|refusal| placed(spelled, "", refusal))?;
        let met = criteria.met_by(Create::default(), &mode.public.config);
        met.map_err(|refusal| placed(spelled, "", refusal))?;
        Ok(mode)
    }

    /// Returns the preset that a file of RUN.game names and this server does not have: the file's own rules alone judge
    /// the moves.
    pub fn unknown_preset(&self) -> Option<&str> {
        self.preset.as_deref()
    }

    /// Returns the game name of this mode's rooms.
    pub fn game(&self) -> &str {
        self.public.config.game()
    }

    /// Returns the configuration for a new room of this visibility. Default: the file's visibility.
    ///
    /// # Errors
    /// `operator_decides` if the client may not set the visibility, or if `written` differs from the file.
    pub fn config(&self, asked: Option<Visibility>, written: Option<&Value>) -> Result<&Config, Refusal> {
        let usual = self.public.config.visibility;
        let visibility = asked.unwrap_or(usual);
        allow("visibility", self.public.config.clients_may.visibility, visibility == usual)?;
        let set_up = match visibility {
            Visibility::Public => &self.public,
            Visibility::Private => &self.private,
        };
        if let Some(written) = written {
            let _: Config = json::read("config", written).map_err(as_bad_config)?;
            // Matching either is enough: a client sends the same for both kinds of rooms.
            let differs = differing("config", written, &set_up.written)
                .filter(|_| differing("config", written, &self.public.written).is_some());
            differs.map_or(Ok(()), |path| Err(operators(&path)))?;
        }
        Ok(&set_up.config)
    }

    /// Returns a search's criteria: the client's, completed by the file's.
    ///
    /// # Errors
    /// See [`Criteria::read`].
    pub fn criteria(&self, asked: Option<&Value>) -> Result<Criteria, Refusal> {
        let mut all = Value::Object(self.criteria.clone());
        if let Some(asked) = asked {
            // In a criterion on metadata null means "absent"; in a patch it would remove the field.
            Criteria::read(asked)?;
            let fields = asked.as_object().into_iter().flatten();
            for (name, value) in fields {
                match (name.as_str(), value, all.get_mut(name)) {
                    ("metadata", Value::Object(more), Some(Value::Object(metadata))) => {
                        metadata.extend(more.clone());
                    }
                    _ => all[name] = value.clone(),
                }
            }
        }
        Criteria::read(&all)
    }
}

impl SetUp {
    fn read(name: &str, fields: &Map<String, Value>, rules: &RuleSets) -> Result<SetUp, Refusal> {
        let config = Config::read(&Value::Object(fields.clone()), name, rules)?;
        let written = serde_json::to_value(&config)
            .map_err(|error| Refusal::new(Code::BadConfig, format!("it cannot be written again: {error}")))?;
        Ok(SetUp { config, written })
    }
}

/// Adds RUN.game's default maximum, which a minimum may exceed so that the host starts the game.
fn seats_of_run(fields: &mut Map<String, Value>) {
    let Some(Value::Object(players)) = fields.get_mut("players") else { return };
    let is_more = |min: u64| min > u64::from(PLAYERS_DEFAULT.1);
    if players.get("min").and_then(Value::as_u64).is_some_and(is_more) {
        players.entry("max").or_insert(PLAYERS_DEFAULT.1.into());
    }
}

/// Raises the seats of a private match: setting its usual number allows that many.
fn seats_for(fields: &mut Map<String, Value>) {
    let Some(Value::Object(players)) = fields.get_mut("players") else { return };
    let number = |name: &str| players.get(name).and_then(Value::as_u64);
    if let (Some(usual), Some(max)) = (number("usual"), number("max"))
        && usual > max
    {
        players.insert("max".to_owned(), usual.into());
    }
}

/// Returns the first field in which `asked` differs from `stands`.
fn differing(path: &str, asked: &Value, stands: &Value) -> Option<String> {
    match (asked, stands) {
        (Value::Object(asked), Value::Object(stands)) => asked.iter().find_map(|(name, asked)| {
            differing(&format!("{path}.{name}"), asked, stands.get(name).unwrap_or(&Value::Null))
        }),
        _ => (!is_same(asked, stands)).then(|| path.to_owned()),
    }
}

/// Returns the refusal with the path as the file spells it.
fn placed(spelled: &Spelled, part: &str, refusal: Refusal) -> Refusal {
    let path = refusal.path.as_deref().map(|path| spelled.place(part, path));
    Refusal { code: Code::BadConfig, path: path.filter(|path| !path.is_empty()), ..refusal }
}
