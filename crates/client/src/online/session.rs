//! What makes a player the same one after a restart.

use data_encoding::HEXLOWER;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// What stands before the digits.
const HEAD: &str = "parlor-session-1-";
const SECRET_BYTES: usize = 32;

/// Proves which account a player has: the id of this device, which it has made itself.
///
/// **It is a secret.** Whoever has it has the account, so keep it where the game keeps what nobody else may read, and do not log it: its
/// `Debug` form does not show it, its text does. [`SignIn::session_file`](super::SignIn::session_file) keeps it in a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    secret: [u8; SECRET_BYTES],
}

/// Why a session cannot be had.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The text is none. It is not repeated, because it may be most of a secret.
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
    /// The file holds something else.
    #[error("{} holds no session: name another file, or delete it to begin as somebody else", path.display())]
    NotInFile {
        /// The file.
        path: PathBuf,
    },
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(String),
}

impl Session {
    /// A new one: somebody whom no server knows.
    ///
    /// # Errors
    /// [`SessionError::NoRandomness`].
    pub fn new() -> Result<Self, SessionError> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|error| SessionError::NoRandomness(error.to_string()))?;
        Ok(Session { secret })
    }

    /// The one that a file keeps. If there is no such file, a new one, which the file keeps from then on, for its owner's eyes only.
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
                    // Another process of the same player was faster.
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

    /// What the server knows the device by.
    pub(super) fn device(&self) -> String {
        HEXLOWER.encode(&self.secret)
    }

    /// A number that differs between sessions, for waits that shall.
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
