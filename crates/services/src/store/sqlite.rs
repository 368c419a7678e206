//! The store in a local file.

use super::backup::beside;
use super::error::{OpenError, StoreError};
use super::inspect::StoreState;
use super::sql::{Done, Fault, Param, RowPage, Sql, TableRow, Value};
use super::webhooks::Outboxes;
use super::{Durability, layouts};
use core::time::Duration;
use parlor_server::embed::unix_ms;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// How long SQLite waits for another process's lock, such as an operator's tool.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of prepared statements of a connection. The store has fewer.
const STATEMENTS_MAX: usize = 128;

/// A file that this process owns exclusively.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) path: PathBuf,
    /// Locked while it is open. The operating system releases the lock when the process dies.
    _lock: File,
}

/// Creates the file if missing, and takes it for this process.
pub(super) fn own(path: &Path) -> Result<Owned, OpenError> {
    let lock = lock(path)?;
    let (file, log) = sizes(path)?;
    // The file holds keys and hashes, so only its owner may read it. The same holds for SQLite's files beside
    // it.
    private_file(path).map_err(|error| OpenError::File { path: path.to_owned(), error })?;
    let owned = Owned { path: path.to_owned(), _lock: lock };
    if file.unwrap_or(0) > 0 {
        let connection =
            open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| damaged(path, &error))?;
        keep_log(&connection).map_err(|error| damaged(path, &error))?;
        check(path, &connection, log.is_some())?;
    }
    Ok(owned)
}

/// Bytes of the file and of its log, if they are there.
fn sizes(path: &Path) -> Result<(Option<u64>, Option<u64>), OpenError> {
    let size = |ending| match std::fs::metadata(beside(path, ending)) {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::File { path: path.to_owned(), error }),
    };
    let (file, log) = (size("")?, size("-wal")?);
    // SQLite would take the log for that of another file, and delete it.
    if file.unwrap_or(0) == 0 && log.unwrap_or(0) > 0 {
        return Err(OpenError::FileEmpty { path: path.to_owned() });
    }
    Ok((file, log))
}

/// Looks at a store without taking it, and whether a server has taken it. No file is made or changed.
pub(super) fn inspect(path: &Path) -> Result<(StoreState, bool), OpenError> {
    let is_held = is_held(path)?;
    let (file, log) = sizes(path)?;
    let connection = match (file.unwrap_or(0), log.unwrap_or(0)) {
        (0, _) => return Ok((StoreState::Absent, is_held)),
        // The server's own log is read with it; the server has checked the file.
        _ if is_held => open(path, OpenFlags::SQLITE_OPEN_READ_ONLY),
        (_, 0) => open_unchanging(path),
        // Reading it would make another file beside it.
        _ => return Ok((StoreState::Unmerged, is_held)),
    };
    let connection = connection.map_err(|error| damaged(path, &error))?;
    if !is_held {
        check(path, &connection, log.is_some())?;
    }
    Ok((StoreState::Sound { layout: layout_of(connection)? }, is_held))
}

/// Whether a server has taken the file.
fn is_held(path: &Path) -> Result<bool, OpenError> {
    let file_error = |error| OpenError::File { path: path.to_owned(), error };
    match File::open(beside(path, OWNER)) {
        Ok(lock) => match lock.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(file_error(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error(error)),
    }
}

/// Opens a file that nobody else has open, without a file beside it.
fn open_unchanging(path: &Path) -> rusqlite::Result<Connection> {
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open(Path::new(&format!("file:{path}?immutable=1")), flags)
}

/// Files up to this size are checked when they are opened, which takes a second or two on a slow disk.
const CHECKED_BYTES_MAX: u64 = 256 << 20;

/// The `user_version` of a file whose newest pages are in its log. The log sets another number, so SQLite
/// reports that one while the log is there.
const NEEDS_LOG: i64 = 1;

/// The file that a server locks, beside a store's.
const OWNER: &str = "-owner";

fn damaged(path: &Path, error: &rusqlite::Error) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), sentence: error.to_string() }
}

/// Refuses a damaged file, and a file without its log.
fn check(path: &Path, connection: &Connection, has_log: bool) -> Result<(), OpenError> {
    let damaged = |error| damaged(path, &error);
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(damaged)?;
    if version == NEEDS_LOG && !has_log {
        return Err(OpenError::LogMissing { path: path.to_owned() });
    }
    if std::fs::metadata(path).is_ok_and(|found| found.len() > CHECKED_BYTES_MAX) {
        return Ok(());
    }
    let said: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(damaged)?;
    if said == "ok" { Ok(()) } else { Err(OpenError::Damaged { path: path.to_owned(), sentence: said }) }
}

/// Marks the file as incomplete without its log, until it is [closed](close).
pub(super) fn mark_open(path: &Path) -> Done<()> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    keep_log(&connection).map_err(fault)?;
    connection.pragma_update(None, "user_version", NEEDS_LOG).map_err(fault)?;
    checkpoint(&connection, "PASSIVE")?;
    // Only the log has this number.
    connection.pragma_update(None, "user_version", 0).map_err(fault)
}

/// Merges the log into the file, which is then complete without it. No other process has the file open.
pub(super) fn close(path: &Path) -> Done<()> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    checkpoint(&connection, "TRUNCATE")
}

fn checkpoint(connection: &Connection, how: &str) -> Done<()> {
    let is_busy: i64 = connection
        .query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |row| row.get(0))
        .map_err(fault)?;
    if is_busy == 0 {
        return Ok(());
    }
    Err(Fault::Storage("SQLite: another program reads the store, so its log stays beside it".to_owned()))
}

/// Keeps the log when the last connection closes: a lost connection that is made again still needs it.
fn keep_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(|_| ())
}

/// Locks a store's file for this process, whether it exists or not. Creates the folder.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let file_error = |error| OpenError::File { path: path.to_owned(), error };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(file_error)?;
    }
    let lock = private_file(&beside(path, OWNER)).map_err(file_error)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(file_error(error)),
    }
}

pub(super) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a connection for writing.
pub(super) fn writer(path: &Path, durability: Durability) -> Done<Box<dyn Sql>> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    keep_log(&connection).map_err(fault)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fault)?;
    if mode != "wal" {
        return Err(Fault::Storage(format!(
            "SQLite's journal is `{mode}` and cannot be `wal`: is the file on a network's disk?"
        )));
    }
    // FULL syncs the log with each commit. Without `fullfsync` macOS would leave it in the disk's cache.
    let synchronous = match durability {
        Durability::Full => {
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;"
        }
        Durability::None => "PRAGMA synchronous = OFF;",
    };
    connection.execute_batch(synchronous).map_err(fault)?;
    connection
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 10000; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -65536;",
        )
        .map_err(fault)?;
    Ok(Box::new(Sqlite { connection, outboxes: Outboxes::default() }))
}

/// Opens a connection for reading.
pub(super) fn reader(path: &Path) -> Done<Box<dyn Sql>> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fault)?;
    keep_log(&connection).map_err(fault)?;
    Ok(Box::new(Sqlite { connection, outboxes: Outboxes::default() }))
}

pub(super) fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

/// The layout of a file, which stays unchanged.
pub(super) fn layout_of(connection: Connection) -> Result<u64, OpenError> {
    layouts::found(&mut Sqlite { connection, outboxes: Outboxes::default() })
}

struct Sqlite {
    connection: Connection,
    outboxes: Outboxes,
}

impl Sql for Sqlite {
    fn change(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<u64> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(fault)?;
        let changed = prepared.execute(rusqlite::params_from_iter(params)).map_err(fault)?;
        Ok(changed as u64)
    }

    fn rows_within(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
        bytes_max: usize,
    ) -> Done<RowPage> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(fault)?;
        let columns = prepared.column_count();
        let mut found = prepared.query(rusqlite::params_from_iter(params)).map_err(fault)?;
        let (mut part, mut bytes) = (RowPage::default(), 0_usize);
        while let Some(row) = found.next().map_err(fault)? {
            if bytes >= bytes_max {
                part.is_cut = true;
                break;
            }
            let values: rusqlite::Result<Vec<Value>> =
                (0..columns).map(|column| row.get_ref(column).map(value)).collect();
            let row = TableRow(values.map_err(fault)?);
            bytes = bytes.saturating_add(row.len());
            part.rows.push(row);
        }
        Ok(part)
    }

    fn control(&mut self, statements: &str) -> Done<()> {
        self.connection.execute_batch(statements).map_err(fault)
    }

    fn outboxes(&mut self) -> &mut Outboxes {
        &mut self.outboxes
    }

    /// The file is this machine's alone.
    fn clock_us(&mut self) -> Done<u64> {
        Ok(unix_ms().saturating_mul(1_000))
    }

    fn used_bytes(&mut self) -> Done<u64> {
        let mut rows = self.rows(
            "SELECT (c.page_count - f.freelist_count) * s.page_size
             FROM pragma_page_count c, pragma_freelist_count f, pragma_page_size s",
            &[],
        )?;
        rows.first_mut().map_or(Ok(0), |row| row.number(0))
    }

    /// Each write has three steps, so they are prepared once.
    fn step(&mut self, statement: &'static str) -> Done<()> {
        if statement.starts_with("ROLLBACK") {
            self.outboxes.forget();
        }
        self.change(statement, &[]).map(|_| ())
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Param::Null => ValueRef::Null,
            Param::Int(number) => ValueRef::Integer(*number),
            Param::Text(text) => ValueRef::Text(text.as_bytes()),
            Param::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn value(found: ValueRef<'_>) -> Value {
    match found {
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        // The tables are strict and have no such column.
        ValueRef::Null | ValueRef::Real(_) => Value::Null,
    }
}

/// A fault of the disk or of the file concerns every write. Any other fault is that of one statement.
pub(super) fn fault(error: rusqlite::Error) -> Fault {
    let code = error.sqlite_error_code();
    let detail = format!("SQLite: {error}");
    match code {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::SchemaChanged
            | ErrorCode::NoLargeFileSupport,
        ) => Fault::Storage(detail),
        _ => Fault::Refused(StoreError::Damaged(detail)),
    }
}
