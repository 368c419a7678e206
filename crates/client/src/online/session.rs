//! The session: the credential by which a player keeps its account after a restart.

use data_encoding::HEXLOWER;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// The prefix of the digits.
const HEAD: &str = "parlor-session-1-";
const SECRET_BYTES: usize = 32;

/// Proves which account a player has: a random device id, created on this machine.
///
/// **It is a secret.** Its holder controls the account. Keep it where only this player can read it, and do
/// not log it: its `Debug` form hides it, its text does not.
/// [`SignIn::session_file`](super::SignIn::session_file) keeps it in a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    secret: [u8; SECRET_BYTES],
}

/// Why a session could not be loaded or created.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The text is not a session. The error does not repeat it, because it may be most of a secret.
    #[error("this is no session: it begins with {HEAD:?} and has 64 digits behind that")]
    NotOne,
    /// The file cannot be read or written.
    #[error("the session cannot be kept in {}: {error}. Name a file that this user may write", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// The file holds something other than a session.
    #[error("{} holds no session: name another file, or delete it to begin as somebody else", path.display())]
    NotInFile {
        /// The file.
        path: PathBuf,
    },
    /// The operating system provides no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(String),
}

impl Session {
    /// Creates a session with a new device id, unknown to every server.
    ///
    /// # Errors
    /// [`SessionError::NoRandomness`].
    pub fn new() -> Result<Self, SessionError> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|error| SessionError::NoRandomness(error.to_string()))?;
        Ok(Session { secret })
    }

    /// Loads the session from a file. If the file does not exist, creates a session and saves it there,
    /// readable by its owner only.
    ///
    /// # Errors
    /// [`SessionError`] says what to do.
    pub fn kept(path: &Path) -> Result<Self, SessionError> {
        let failed = |error| SessionError::File { path: path.to_owned(), error };
        match std::fs::read_to_string(path) {
            Ok(text) => text
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .parse()
                .map_err(|_| SessionError::NotInFile { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let session = Session::new()?;
                if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                match session.write_new(path) {
                    // Another process of the same player created it first.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Session::kept(path),
                    written => written.map(|()| session).map_err(failed),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn write_new(&self, path: &Path) -> io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        writeln!(file, "{self}")?;
        file.sync_all()
    }

    /// The device id sent to the server.
    pub(super) fn device(&self) -> String {
        HEXLOWER.encode(&self.secret)
    }

    /// A seed that differs between sessions, for randomized waits.
    pub(super) fn seed(&self) -> u64 {
        self.secret.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}{}", self.device())
    }
}

impl FromStr for Session {
    type Err = SessionError;

    fn from_str(text: &str) -> Result<Self, SessionError> {
        let digits = text.strip_prefix(HEAD).ok_or(SessionError::NotOne)?;
        let secret = HEXLOWER.decode(digits.as_bytes()).map_err(|_| SessionError::NotOne)?;
        Ok(Session { secret: secret.try_into().map_err(|_| SessionError::NotOne)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_comes_back_from_its_text_and_is_not_shown_otherwise() {
        let session = Session { secret: [0x5a; SECRET_BYTES] };
        let text = session.to_string();
        assert_eq!(text.parse::<Session>().unwrap(), session);
        assert!(!format!("{session:?}").contains("5a5a"));
        for wrong in ["", "parlor-session-1-", &text[1..], &text[..text.len() - 2], &text.replace("5a", "5g")]
        {
            let error = wrong.parse::<Session>().expect_err(wrong);
            assert!(!error.to_string().contains("5a5a"), "{error}");
        }
    }

    #[test]
    fn a_file_keeps_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below").join("ada");
        let first = Session::kept(&path).unwrap();
        assert_eq!(Session::kept(&path).unwrap(), first);
        assert_ne!(Session::kept(&folder.path().join("bob")).unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(Session::kept(&path), Err(SessionError::NotInFile { .. })));
    }
}
