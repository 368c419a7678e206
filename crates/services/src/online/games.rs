//! Games: the source of a turn room's configuration.
//!
//! The operator's folder has a file for each game, `NAME.json`. It is polled: a changed file applies to rooms
//! opened from then on, and an invalid one leaves its predecessor in use. Without a folder a development
//! server accepts clients' configurations, and any other server opens no turn rooms. Otherwise strangers
//! could write texts in the game's name (threat 52).

use super::Services;
use super::failure::{Failure, Kind};
use super::json;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_turn::limits::WORD_BYTES_MAX;
use parlor_turn::{ConfiguredBy, Game, Mode, RuleSets, TurnRoom};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::DefaultHasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Maximum number of games in a folder.
pub(super) const GAMES_MAX: usize = 256;
/// Maximum size of a game's file, in bytes.
const FILE_BYTES_MAX: u64 = 512 * 1024;
/// Polling interval of the folder.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The suffix of a game's file.
const ENDING: &str = ".json";

/// Why the games could not be loaded.
#[derive(Debug, Error)]
pub enum GamesError {
    /// The folder cannot be read.
    #[error("the folder of games {} cannot be read: {error}. Make it, with a file NAME.json for each game", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// There are too many files.
    #[error("the folder of games {} has more than {GAMES_MAX} files: take out those of games that are not served", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
    },
    /// The file's name is not the name of a game.
    #[error(
        "{} is called like no game: NAME.json, of 1 to {WORD_BYTES_MAX} letters, digits, `.`, `_` or `-`", path.display()
    )]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("the game's file {} cannot be read: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The file is not valid JSON, or repeats a key.
    #[error("the game's file {} is no JSON that can be read: {error}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The error with its line.
        error: serde_json::Error,
    },
    /// A field has an invalid value.
    #[error("the game's file {}: {}{sentence}", path.display(), field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field, as the file spells it.
        field: Option<String>,
        /// What is wrong.
        sentence: String,
    },
}

type ByApp = BTreeMap<String, Arc<Game>>;

/// The source of rooms' configurations.
#[derive(Debug)]
pub(super) enum Games {
    /// The creator of each room: for development.
    Clients,
    /// No source: no rooms are opened.
    Nobody,
    /// The operator's folder.
    Folder(Folder),
}

/// The operator's games.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    rules: RuleSets,
    games: Mutex<Arc<ByApp>>,
    /// The result of the last look, for comparison.
    found: Mutex<Found>,
}

/// The result of a look at the folder: for each app a hash of its file's content.
#[derive(Debug, Default)]
struct Found {
    marks: BTreeMap<String, u64>,
    /// The error of the folder itself, if any.
    wrong: Option<String>,
}

impl Games {
    /// Reads the games of a folder. Without one `is_development` decides.
    pub(super) fn open(
        folder: Option<&Path>,
        is_development: bool,
        rules: &RuleSets,
    ) -> Result<Games, GamesError> {
        let Some(path) = folder else {
            return Ok(if is_development { Games::Clients } else { Games::Nobody });
        };
        let folder = Folder {
            path: path.to_owned(),
            rules: rules.clone(),
            games: Mutex::default(),
            found: Mutex::default(),
        };
        for app in folder.apps()? {
            folder.look_at(&app)?;
        }
        Ok(Games::Folder(folder))
    }

    /// Whether all new rooms have configurations of the operator.
    pub(super) fn are_operators(&self) -> bool {
        !matches!(self, Games::Clients)
    }

    /// Whether texts of this room's configuration may be sent in the game's name.
    pub(super) fn speaks_for(&self, room: &TurnRoom) -> bool {
        !self.are_operators() || room.configured_by() == ConfiguredBy::Operator
    }

    /// The default game of an app's rooms.
    pub(super) fn game_of(&self, app: &str) -> String {
        let found = self.game(app).and_then(|game| Some(game.mode(None)?.game().to_owned()));
        found.unwrap_or_else(|| app.to_owned())
    }

    /// The configuration of rooms that an app's players open; `None` if they bring their own.
    pub(super) fn find(&self, app: &str, mode: Option<&str>) -> Result<Option<Arc<Mode>>, Failure> {
        let none = |code, sentence: String| Failure::new(Kind::NotFound, code, sentence);
        let game = match self {
            Games::Clients if mode.is_some() => {
                let sentence = "a game has modes where the server has games of its operator's (--games FOLDER): leave it out";
                return Err(none("no_such_mode", sentence.into()).at("mode"));
            }
            Games::Clients => return Ok(None),
            Games::Nobody => {
                let sentence = format!(
                    "this server has no games, and takes none from clients: its operator starts it with --games FOLDER, and a file \
                     {app}.json in it (docs/turn-rooms.md)"
                );
                return Err(Failure::new(Kind::Forbidden, "no_games", sentence));
            }
            Games::Folder(_) => self.game(app).ok_or_else(|| {
                let sentence = format!(
                    "this server has no game {app:?}: its operator puts a file {app}.json into the folder of --games"
                );
                none("no_such_game", sentence)
            })?,
        };
        let found = game.mode(mode).cloned();
        found.map(Some).ok_or_else(|| {
            let modes: Vec<&str> = game.modes().collect();
            let modes = if modes.is_empty() { "none".to_owned() } else { modes.join(", ") };
            none("no_such_mode", format!("this game has no such mode; it has {modes}")).at("mode")
        })
    }

    fn game(&self, app: &str) -> Option<Arc<Game>> {
        match self {
            Games::Folder(folder) => lock(&folder.games).get(app).cloned(),
            Games::Clients | Games::Nobody => None,
        }
    }
}

impl Folder {
    /// The apps with a file.
    fn apps(&self) -> Result<Vec<String>, GamesError> {
        let unread = |error| GamesError::Folder { path: self.path.clone(), error };
        let mut apps = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(unread)? {
            let name = entry.map_err(unread)?.file_name();
            let path = self.path.join(&name);
            // Files of editors and mounts begin with a dot.
            let Some(app) = name.to_string_lossy().strip_suffix(ENDING).map(str::to_owned) else { continue };
            if app.starts_with('.') || !path.is_file() {
                continue;
            }
            let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if !(1..=WORD_BYTES_MAX).contains(&app.len()) || !app.bytes().all(is_legal) {
                return Err(GamesError::Name { path });
            }
            if apps.len() == GAMES_MAX {
                return Err(GamesError::TooMany { path: self.path.clone() });
            }
            apps.push(app);
        }
        Ok(apps)
    }

    /// Reads the file of an app if its content changed. Returns whether it did.
    fn look_at(&self, app: &str) -> Result<bool, GamesError> {
        let path = self.path.join(format!("{app}{ENDING}"));
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) => {
                // Logged once, until the file can be read again or has another error.
                let is_new = self.is_new(app, &error.to_string());
                return if is_new { Err(GamesError::File { path, error }) } else { Ok(false) };
            }
        };
        if !self.is_new(app, &text) {
            return Ok(false);
        }
        let written = json::strict(&text).map_err(|error| GamesError::Json { path: path.clone(), error })?;
        let game = Game::read(app, &written, &self.rules).map_err(|refusal| GamesError::Field {
            path,
            field: refusal.path,
            sentence: refusal.sentence,
        })?;
        let modes = game.modes().map(Some).chain([None]).filter_map(|name| game.mode(name));
        for preset in modes.filter_map(|mode| mode.unknown_preset()).collect::<BTreeSet<_>>() {
            tracing::warn!(%app, %preset, "this server has no such rule set: the file's own rules judge the moves");
        }
        Arc::make_mut(&mut lock(&self.games)).insert(app.to_owned(), Arc::new(game));
        Ok(true)
    }

    /// Records the finding for an app. Returns whether it changed.
    fn is_new(&self, app: &str, what: &(impl Hash + ?Sized)) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let mark = hasher.finish();
        lock(&self.found).marks.insert(app.to_owned(), mark) != Some(mark)
    }

    /// Reads all changed files.
    fn look_again(&self) {
        let apps = match self.apps() {
            Ok(apps) => {
                lock(&self.found).wrong = None;
                apps
            }
            Err(error) => {
                let said = error.to_string();
                let before = lock(&self.found).wrong.replace(said.clone());
                if before.as_ref() != Some(&said) {
                    tracing::warn!(error = %said, "the folder of games cannot be read: what was read before counts");
                }
                return;
            }
        };
        for app in &apps {
            match self.look_at(app) {
                Ok(true) => tracing::info!(app, "the configuration of a game was read"),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the configuration of a game is wrong: what was read before counts");
                }
            }
        }
        let is_gone = |app: &String| !apps.contains(app);
        lock(&self.found).marks.retain(|app, _| !is_gone(app));
        let mut games = lock(&self.games);
        if games.keys().any(is_gone) {
            Arc::make_mut(&mut games).retain(|app, _| !is_gone(app));
            tracing::info!("the configuration of a game was taken out: no rooms of it are opened");
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes: take something out")));
    }
    Ok(text)
}

/// Polls the folder, as long as the services run.
pub(super) async fn watch(services: Services) {
    if !matches!(services.games(), Games::Folder(_)) {
        return;
    }
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let services = services.clone();
        let looking = move || {
            if let Games::Folder(folder) = services.games() {
                folder.look_again();
            }
        };
        if tokio::task::spawn_blocking(looking).await.is_err() {
            return;
        }
    }
}
