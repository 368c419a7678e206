//! Names of a game and its environment, which separate stored data.

use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Maximum length of an id, in bytes.
pub const ID_BYTES_MAX: usize = 64;
/// The environment of a game that names none.
pub const ENVIRONMENT: &str = "production";

/// The environment for a name: games and tokens may omit it.
pub fn environment_of(named: &str) -> &str {
    if named.is_empty() { ENVIRONMENT } else { named }
}

/// Why a text is not a valid id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} is not possible: {sentence}")]
pub struct InvalidId {
    /// The kind of id.
    pub what: &'static str,
    /// What is wrong, for a person.
    pub sentence: String,
}

fn invalid(what: &'static str, sentence: &str) -> InvalidId {
    InvalidId { what, sentence: sentence.to_owned() }
}

/// An app and its environment, for example `chess` and `staging`. Data of one realm is never visible in
/// another.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Realm {
    /// Both, with a slash between them, as the store has it.
    path: Arc<str>,
}

impl Realm {
    /// The realm of an app's environment.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] if a name is empty, too long, or has a slash or a control character.
    pub fn new(app: &str, environment: &str) -> Result<Realm, InvalidId> {
        for (what, name) in [("the app", app), ("the environment", environment)] {
            check_id(what, name)?;
            if name.contains('/') {
                return Err(invalid(what, "a slash may not stand in its name"));
            }
        }
        Ok(Realm { path: format!("{app}/{environment}").into() })
    }

    /// The app.
    pub fn app(&self) -> &str {
        self.path.split_once('/').map_or("", |(app, _)| app)
    }

    /// The environment.
    pub fn environment(&self) -> &str {
        self.path.split_once('/').map_or("", |(_, environment)| environment)
    }

    /// Both, with a slash between them.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The realm with this [`path`](Self::path).
    ///
    /// # Errors
    ///
    /// [`InvalidId`] if no realm can have it.
    pub fn from_path(path: &str) -> Result<Realm, InvalidId> {
        let no_slash = || invalid("the realm", "it has no slash between app and environment");
        let (app, environment) = path.split_once('/').ok_or_else(no_slash)?;
        Realm::new(app, environment)
    }
}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Checks that a text can be an id. `what` names the kind of id for the error.
///
/// # Errors
///
/// [`InvalidId`] if it is empty, too long, or has a control character.
pub fn check_id(what: &'static str, text: &str) -> Result<(), InvalidId> {
    if text.is_empty() || text.len() > ID_BYTES_MAX {
        let sentence = format!("it has {} bytes, and 1 to {ID_BYTES_MAX} are possible", text.len());
        return Err(InvalidId { what, sentence });
    }
    let has_control = if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.chars().any(char::is_control)
    };
    if has_control {
        return Err(invalid(what, "it has a control character: use letters, digits and signs"));
    }
    Ok(())
}
