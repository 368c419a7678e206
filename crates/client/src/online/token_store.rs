//! Stores the newest refresh token of a sign-in, in memory and in the file of its session.
//!
//! ```text
//! parlor-session-1-…                     who the player is
//! refresh SERVER/APP/ENVIRONMENT TOKEN    one line for each game at each server, the newest last
//! ```
//!
//! A token is valid once. The file is replaced atomically, so that it never has a partial token. It is read
//! again before each sign-in, because another process of the same player may have used the known token. A
//! lost token costs nothing: the player then signs in by device.

use super::session::Session;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The prefix of a token's line.
const WORD: &str = "refresh ";
/// The number of games whose tokens a file keeps. The oldest is dropped.
const KEPT_MAX: usize = 16;

/// Stores the refresh token of one game at one server.
pub(super) struct TokenStore {
    session: Session,
    path: Option<PathBuf>,
    realm: String,
    token: Option<String>,
}

impl TokenStore {
    pub(super) fn new(
        session: Session,
        path: Option<PathBuf>,
        server: &str,
        app: &str,
        environment: &str,
    ) -> Self {
        // The words of a line have no white space.
        let realm = format!("{server}/{app}/{environment}").split_whitespace().collect();
        TokenStore { session, path, realm, token: None }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the newest known token.
    pub(super) fn newest(&mut self) -> Option<String> {
        let kept = self.path.as_deref().and_then(|path| std::fs::read_to_string(path).ok());
        if let Some(kept) = kept {
            let of_realm = |line: &&str| named(line) == Some(&self.realm);
            let token = kept.lines().rev().find(of_realm).and_then(|line| line.rsplit(' ').next());
            self.token = token.map(str::to_owned);
        }
        self.token.clone()
    }

    /// Stores a token, or removes it. If the file cannot be written, the token is kept in memory until the
    /// game ends.
    pub(super) fn keep(&mut self, token: Option<String>) {
        self.token = token;
        if let Some(path) = &self.path {
            // The file has the player's identity already. As for the token, see this file's head for why
            // nothing is lost.
            let _ = self.write(path);
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let kept = std::fs::read_to_string(path)?;
        let others = kept.lines().filter(|line| named(line).is_some_and(|realm| realm != self.realm));
        let mut lines: Vec<String> = others.map(str::to_owned).collect();
        lines.extend(self.token.as_ref().map(|token| format!("{WORD}{} {token}", self.realm)));
        let text = lines.iter().skip(lines.len().saturating_sub(KEPT_MAX));
        let text: String = text.map(|line| format!("{line}\n")).collect();
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&beside)?;
        write!(file, "{}\n{text}", self.session)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    }
}

/// The realm of a line.
fn named(line: &str) -> Option<&str> {
    line.strip_prefix(WORD)?.split_once(' ').map(|(realm, _)| realm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_token_of_each_game_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada");
        let session = Session::kept(&path).unwrap();
        let tokens = |app: &str| {
            TokenStore::new(session.clone(), Some(path.clone()), "play.example.com", app, "production")
        };
        let (mut tanks, mut chess) = (tokens("tanks"), tokens("chess"));
        assert_eq!(tanks.newest(), None);
        tanks.keep(Some("s1.a".to_owned()));
        chess.keep(Some("s2.a".to_owned()));
        tanks.keep(Some("s1.b".to_owned()));
        assert_eq!(
            (tokens("tanks").newest(), tokens("chess").newest()),
            (Some("s1.b".into()), Some("s2.a".into()))
        );
        tanks.keep(None);
        assert_eq!((tokens("tanks").newest(), tokens("chess").newest()), (None, Some("s2.a".into())));
        assert_eq!(Session::kept(&path).unwrap(), session, "who the player is stays");
        for game in 0..2 * KEPT_MAX {
            tokens(&format!("game-{game}")).keep(Some("s.x".to_owned()));
        }
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines, 1 + KEPT_MAX, "and no more than so many");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn without_a_file_a_token_is_known_as_long_as_the_game_runs() {
        let mut tokens = TokenStore::new(Session::new().unwrap(), None, "play.example.com", "tanks", "");
        tokens.keep(Some("s1.a".to_owned()));
        assert_eq!(tokens.newest(), Some("s1.a".to_owned()));
    }
}
