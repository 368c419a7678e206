//! Backups of a running store.

use super::error::{BackupError, OpenError};
use super::{Store, layouts, sqlite};
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The contents of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupFacts {
    /// The number of its layout.
    pub layout: u64,
    /// Number of accounts.
    pub accounts: u64,
    /// Number of turn rooms.
    pub rooms: u64,
}

impl Store {
    /// Copies the store at one instant into a new file, checks the copy, and returns its contents. Writes
    /// continue meanwhile.
    ///
    /// # Errors
    ///
    /// [`BackupError`]. Then `path` is as before.
    pub async fn backup(&self, path: &Path) -> Result<BackupFacts, BackupError> {
        let source = self.inner.backend.file().ok_or(BackupError::NotOurs)?;
        let path = path.to_owned();
        let target = path.clone();
        let done = tokio::task::spawn_blocking(move || back_up(&source, &target)).await;
        done.unwrap_or_else(|error| {
            Err(BackupError::File { path, error: io::Error::other(format!("it was broken off: {error}")) })
        })
    }
}

fn back_up(source: &Path, path: &Path) -> Result<BackupFacts, BackupError> {
    let file_error = |error| BackupError::File { path: path.to_owned(), error };
    if fs::exists(path).map_err(file_error)? {
        return Err(BackupError::Exists { path: path.to_owned() });
    }
    let draft = beside(path, ".draft");
    // SQLite would create a file that others can read.
    sqlite::private_file(&draft).map_err(file_error)?;
    let done = copy(source, &draft)
        .map_err(|error| file_error(io::Error::other(error)))
        .and_then(|()| check_backup(&draft))
        .and_then(|facts| {
            File::open(&draft).and_then(|file| file.sync_all()).map_err(file_error)?;
            // Linking, unlike renaming, never replaces a file.
            fs::hard_link(&draft, path).map_err(file_error)?;
            sync_folder(path).map_err(file_error)?;
            Ok(facts)
        });
    for left in [draft.clone(), beside(&draft, "-journal"), beside(&draft, "-wal"), beside(&draft, "-shm")] {
        if let Err(error) = remove_if_there(&left) {
            tracing::warn!(path = %left.display(), %error, "a draft of a backup stays behind: delete it");
        }
    }
    done
}

/// Copies all pages in one step. With a log beside the file that is one instant, and delays no writer.
pub(super) fn copy(source: &Path, draft: &Path) -> rusqlite::Result<()> {
    let from = sqlite::open(source, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut to = sqlite::open(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let backup = rusqlite::backup::Backup::new(&from, &mut to)?;
    while backup.step(-1)? != rusqlite::backup::StepResult::Done {}
    drop(backup);
    // A file that is complete without a log.
    to.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
}

#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Checks that a file is a sound store for this server, and returns its contents.
///
/// # Errors
///
/// [`BackupError::Unsound`], which says what is wrong.
pub fn check_backup(path: &Path) -> Result<BackupFacts, BackupError> {
    let unsound = |sentence: String| BackupError::Unsound { path: path.to_owned(), sentence };
    let connection =
        sqlite::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|e| unsound(e.to_string()))?;
    let facts = facts(&connection).map_err(|error| unsound(error.to_string()))?;
    let layout = sqlite::layout_of(connection).map_err(|error| unsound(error.to_string()))?;
    if layout > layouts::NEWEST {
        return Err(unsound(OpenError::Newer { found: layout, known: layouts::NEWEST }.to_string()));
    }
    let (said, accounts, rooms) = facts;
    if said == "ok" { Ok(BackupFacts { layout, accounts, rooms }) } else { Err(unsound(said)) }
}

fn facts(connection: &Connection) -> rusqlite::Result<(String, u64, u64)> {
    let said = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let count = |table: &str| {
        connection.query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| row.get::<_, i64>(0))
    };
    Ok((said, count("accounts")?.unsigned_abs(), count("rooms")?.unsigned_abs()))
}
