//! The store in a file of this machine.

use super::error::{OpenError, StoreError};
use super::sql::{Done, Fault, Param, Row, Sql, Value};
use super::{Durability, schema};
use core::time::Duration;
use rusqlite::ffi::ErrorCode;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// For as long SQLite waits for somebody else's lock, such as that of an operator's own tool.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Prepared statements that a connection keeps. There are fewer in the store.
const STATEMENTS_MAX: usize = 128;

/// A file that is this process's alone.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) path: PathBuf,
    /// Locked for as long as it is open. The operating system lets go of it when the process dies.
    _lock: File,
}

/// Makes the file if there is none, and takes it for this process.
pub(super) fn own(path: &Path) -> Result<Owned, OpenError> {
    let lock = lock(path)?;
    // It holds keys and hashes: it is its owner's alone, and so is what SQLite puts beside it.
    private_file(path).map_err(|error| OpenError::File { path: path.to_owned(), error })?;
    Ok(Owned { path: path.to_owned(), _lock: lock })
}

/// Takes a store's file for this process, whether there is one or not. The folder is made.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let file_error = |error| OpenError::File { path: path.to_owned(), error };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(file_error)?;
    }
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push("-owner");
    let lock = private_file(Path::new(&lock_path)).map_err(file_error)?;
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

/// A connection that writes.
pub(super) fn writer(path: &Path, durability: Durability) -> Done<Box<dyn Sql>> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fault)?;
    if mode != "wal" {
        return Err(Fault::Storage(format!(
            "SQLite's journal is `{mode}` and cannot be `wal`: is the file on a network's disk?"
        )));
    }
    // FULL syncs the log with each commit; without `fullfsync` macOS would leave it in the disk's own memory.
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
    Ok(Box::new(Sqlite { connection }))
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Done<Box<dyn Sql>> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fault)?;
    Ok(Box::new(Sqlite { connection }))
}

pub(super) fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

/// The number of the layout in a file, without changing it.
pub(super) fn layout_of(connection: Connection) -> Result<u64, OpenError> {
    schema::found(&mut Sqlite { connection })
}

struct Sqlite {
    connection: Connection,
}

impl Sql for Sqlite {
    fn change(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<u64> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(fault)?;
        let changed = prepared.execute(rusqlite::params_from_iter(params)).map_err(fault)?;
        Ok(changed as u64)
    }

    fn rows(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<Vec<Row>> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(fault)?;
        let columns = prepared.column_count();
        let mut found = prepared.query(rusqlite::params_from_iter(params)).map_err(fault)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(fault)? {
            let values: rusqlite::Result<Vec<Value>> =
                (0..columns).map(|column| row.get_ref(column).map(value)).collect();
            rows.push(Row(values.map_err(fault)?));
        }
        Ok(rows)
    }

    fn control(&mut self, statements: &str) -> Done<()> {
        self.connection.execute_batch(statements).map_err(fault)
    }

    /// There are three for each write, so they are prepared once.
    fn step(&mut self, statement: &'static str) -> Done<()> {
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

/// A fault of the disk or of the file concerns every write; what is left is the fault of one statement.
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
