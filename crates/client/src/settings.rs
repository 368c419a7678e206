//! A game's settings file, `parlor.toml`: which modules it may use, its server, and defaults of its rooms.

mod file;

use crate::modules::Module;
pub(crate) use file::{Multiplayer, Server};
use std::env;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use thiserror::Error;

/// The file that is looked for in the working directory.
const FILE: &str = "parlor.toml";
/// The environment variable that names another file.
const VARIABLE: &str = "PARLOR_SETTINGS";
/// Maximum length of the file.
const BYTES_MAX: u64 = 64 * 1024;

/// The settings of this process, read once.
static CURRENT: OnceLock<Result<Settings, SettingsError>> = OnceLock::new();

/// Settings of a game, from its file `parlor.toml` (docs/settings.md has each key):
///
/// ```toml
/// [modules]
/// network = false
/// [server]
/// address = "play.example.com"
/// [multiplayer]
/// max_players = 8
/// ```
///
/// A process has one `Settings`: those that it [installs](Self::install), otherwise the file that the environment
/// variable `PARLOR_SETTINGS` names, otherwise `parlor.toml` in the working directory, otherwise none. They are read
/// when the first room, connection, search or sign-in begins. Options that code sets win over the environment,
/// the environment wins over the file, and the file over defaults.
///
/// A file that cannot be read, an unknown key or a wrong value is no default: every module then refuses with
/// [`SettingsError`]'s text.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What they were read from, for messages.
    origin: String,
    tables: file::Tables,
}

/// Why there are no settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("the settings file {} cannot be read: {detail}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        detail: String,
    },
    /// A key is unknown, or a value wrong. The text names the line, and what is allowed.
    #[error("the settings in {origin} are wrong: {detail}")]
    Wrong {
        /// The file, or what else they were read from.
        origin: String,
        /// What is wrong.
        detail: String,
    },
    /// The process has settings already.
    #[error(
        "this process has read its settings already: install them before its first room, connection or sign-in"
    )]
    InUse,
}

impl Settings {
    /// Loads the settings from a file.
    ///
    /// # Errors
    /// [`SettingsError`] if there is no such file, it has more than 64 KiB, or it is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SettingsError> {
        let path = path.as_ref();
        Settings::from_file(path)?.ok_or_else(|| unreadable(path, "it does not exist"))
    }

    /// The settings in a file; `None` if there is no such file.
    fn from_file(path: &Path) -> Result<Option<Self>, SettingsError> {
        let text = read(path).map_err(|detail| unreadable(path, &detail))?;
        text.map(|text| Settings::parse(&text, path.display().to_string())).transpose()
    }

    fn parse(text: &str, origin: String) -> Result<Self, SettingsError> {
        match file::Tables::parse(text) {
            Ok(tables) => Ok(Settings { origin, tables }),
            Err(detail) => Err(SettingsError::Wrong { origin, detail }),
        }
    }

    /// Makes these the settings of this process, in place of any file. Call it before the first room, connection,
    /// search or sign-in.
    ///
    /// ```
    /// use parlor::{Module, Settings};
    /// let settings: Settings = "[modules]\nnetwork = false".parse()?;
    /// settings.install()?;
    /// let refused = Module::Net.require().expect_err("it is switched off");
    /// assert_eq!(refused.code(), "optional_module_net_disabled");
    /// # Ok::<(), parlor::SettingsError>(())
    /// ```
    ///
    /// # Errors
    /// [`SettingsError::InUse`]: the process has settings already.
    pub fn install(self) -> Result<(), SettingsError> {
        CURRENT.set(Ok(self)).map_err(|_| SettingsError::InUse)
    }

    /// The settings of this process. Reads them if they were not read.
    ///
    /// # Errors
    /// [`SettingsError`], the same each time.
    pub fn current() -> Result<&'static Settings, SettingsError> {
        CURRENT.get_or_init(Settings::find).as_ref().map_err(Clone::clone)
    }

    fn find() -> Result<Self, SettingsError> {
        match env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Settings::load(Path::new(&path)),
            None => Ok(Settings::from_file(Path::new(FILE))?.unwrap_or_default()),
        }
    }

    /// Whether they allow a module. A module that no key names is allowed.
    pub fn allow(&self, module: Module) -> bool {
        self.tables.modules.allow(module)
    }

    /// What they were read from: a file's path; empty if there was no file.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn server(&self) -> &Server {
        &self.tables.server
    }

    pub(crate) fn multiplayer(&self) -> &Multiplayer {
        &self.tables.multiplayer
    }
}

/// Settings that a game carries in its code.
impl FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        Settings::parse(text, "the game's code".to_owned())
    }
}

fn unreadable(file: &Path, detail: &str) -> SettingsError {
    SettingsError::Unreadable { file: file.to_owned(), detail: detail.to_owned() }
}

/// The text of a file; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let error = text.parse::<Settings>().expect_err(text);
        assert!(matches!(error, SettingsError::Wrong { .. }));
        error.to_string()
    }

    #[test]
    fn a1_an_unknown_key_is_refused_by_its_line_and_what_is_allowed() {
        for (text, line, unknown, known) in [
            ("[modules]\nsound = true", 2, "sound", "multiplayer"),
            ("[server]\n\nadress = \"x\"", 3, "adress", "address"),
            ("[multiplayer]\nmax_player = 4", 2, "max_player", "max_players"),
            ("[rooms]", 1, "rooms", "multiplayer"),
        ] {
            let said = wrong(text);
            for part in [&format!("line {line}"), unknown, known, "the game's code"] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        // A file of this name that is a server's.
        let said = wrong("port = 7700\npublic-host = \"play.example.com\"");
        assert!(said.contains("line 1") && said.contains("parlor serve"), "{said}");
    }

    #[test]
    fn a5_a_wrong_value_is_refused_by_its_line_and_its_bounds() {
        for (text, allowed) in [
            ("[modules]\nlan = \"no\"", "boolean"),
            ("[server]\naddress = \"play example\"", "host"),
            ("[server]\ntransport = \"tcp\"", "websocket"),
            ("[multiplayer]\nmax_players = 1", "2 to 255"),
            ("[multiplayer]\nmax_players = 256", "2 to 255"),
            ("[multiplayer]\ntick_hz = -1", "1 to 240"),
            ("[multiplayer]\nhost_timeout_ms = 99", "100 to 10000"),
            ("[multiplayer]\nmigration_grace_ms = 499", "500 to 60000"),
            ("[multiplayer]\nprotocol = \"tcp\"", "reliable"),
            ("[multiplayer]\nmode = \"udp\"", "p2p"),
            ("[multiplayer]\npaths = \"tcp\"", "p2p"),
            ("[multiplayer]\nsimulation_delay_ticks = 33", "0 to 32"),
            ("[multiplayer]\nrewind_max_ms = 251", "0 to 250"),
            ("[multiplayer]\npreset = \"fast\"", "calm"),
            ("[multiplayer]\npresence_ms = 999", "1000 to 8000"),
            ("[multiplayer]\ngrace_ms = -1", "0 to 86400000"),
            ("[multiplayer]\nreconnect_policy = { attempts = 0 }", "attempts is 0; it may be 1 to 1000"),
            ("[multiplayer]\nreconnect_policy = { jitter = 0.6 }", "jitter is 0.6; it may be 0 to 0.5"),
            ("[multiplayer]\nreconnect_policy = { delay_ms = 10 }", "delay_first_ms"),
            ("[multiplayer]\nlead_tuning = { margin_ms = 251 }", "0 to 250 ms"),
            ("[multiplayer]\nlead_tuning = { gain_per_mille = 201 }", "5 to 200"),
            ("[multiplayer]\nlead_tuning = { dilation_per_mille = 4 }", "5 to 250"),
            ("[multiplayer]\nrender_delay = { shortest_ms = 501, longest_ms = 502 }", "zero to 500 ms"),
            ("[multiplayer]\nimpairment = \"loss=200%\"", "loss"),
            (
                "[multiplayer]\nname = \"\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\"",
                "48 bytes",
            ),
        ] {
            let said = wrong(text);
            assert!(said.contains("line 2") && said.contains(allowed), "{said}");
        }
        let said = wrong("[multiplayer]\nhost_timeout_ms = 500");
        assert!(said.contains("host_migration"), "a timeout that nothing would use: {said}");
        let said = wrong("[server]\ncoordinator = \"a.example\"\nrelay = \"b.example\"");
        assert!(
            said.contains("coordinator") && said.contains("relay") && said.contains("one server"),
            "{said}"
        );
    }

    #[test]
    fn a5_a_coordinator_and_a_relay_are_one_server() {
        for text in ["address = \"a.example:1\"", "relay = \"a.example:1\"", "coordinator = \"a.example:1\""]
        {
            let settings: Settings = format!("[server]\n{text}").parse().expect(text);
            assert_eq!(settings.server().address().expect("it is named").to_string(), "a.example:1");
        }
    }

    #[test]
    fn a1_a_module_is_allowed_unless_it_is_switched_off() {
        let settings: Settings = "[modules]\nnetwork = false\nlan = true".parse().expect("it is right");
        let allowed = Module::ALL.map(|module| settings.allow(module));
        assert_eq!(allowed, Module::ALL.map(|module| module != Module::Net));
        let short: Settings = "[modules]\nnet = false".parse().expect("it is right");
        assert!(!short.allow(Module::Net));
        assert!(Module::ALL.iter().all(|module| Settings::default().allow(*module)));
    }

    #[test]
    fn a_file_that_is_too_long_or_no_text_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(FILE);
        let said = |path: &Path| Settings::load(path).expect_err("it is refused").to_string();
        assert!(said(&path).contains("does not exist"));
        std::fs::write(&path, "#".repeat(64 * 1024)).expect("it is ours");
        let settings = Settings::load(&path).expect("a comment");
        assert_eq!(settings.origin(), path.display().to_string());
        std::fs::write(&path, "#".repeat(64 * 1024 + 1)).expect("it is ours");
        assert!(said(&path).contains("65536"));
        std::fs::write(&path, [b'#', 0xff]).expect("it is ours");
        assert!(said(&path).contains(FILE));
        std::fs::remove_file(&path).expect("it is ours");
        std::fs::create_dir(&path).expect("it is ours");
        assert!(said(&path).contains(FILE));
    }
}
