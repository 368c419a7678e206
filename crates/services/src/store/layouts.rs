//! The layouts of the store, each migrated from its predecessor, forward only.

use super::error::OpenError;
use super::sql::{Done, Fault, Sql, params};

/// The terms by which the two databases differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    text: &'static str,
    int: &'static str,
    bytes: &'static str,
    /// A key that the database assigns and never reuses.
    serial: &'static str,
    /// The end of a table definition.
    strict: &'static str,
    /// The end of the definition of a table with small rows that are found by their key.
    small: &'static str,
    /// Before the name of a table whose rows need not survive a crash.
    unlogged: &'static str,
    /// Locks out a second server while the layout changes.
    lock: &'static str,
    /// Lists the existing tables.
    tables: &'static str,
}

pub(super) const SQLITE: Dialect = Dialect {
    text: "TEXT",
    int: "INTEGER",
    bytes: "BLOB",
    serial: "INTEGER PRIMARY KEY AUTOINCREMENT",
    strict: ") STRICT",
    small: ") STRICT, WITHOUT ROWID",
    unlogged: "",
    lock: "",
    tables: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
};

pub(super) const POSTGRES: Dialect = Dialect {
    // Ids are ordered by their bytes, whatever the database's locale.
    text: "TEXT COLLATE \"C\"",
    int: "BIGINT",
    bytes: "BYTEA",
    serial: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    strict: ")",
    small: ")",
    unlogged: "UNLOGGED",
    lock: "SELECT pg_advisory_xact_lock(7242695)",
    tables: "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()",
};

/// In order. A released layout never changes; a difference needs the next layout.
const LAYOUTS: &[&str] = &[
    include_str!("layout_1.sql"),
    include_str!("layout_2.sql"),
    include_str!("layout_3.sql"),
    include_str!("layout_4.sql"),
    include_str!("layout_5.sql"),
    include_str!("layout_6.sql"),
    include_str!("layout_7.sql"),
    include_str!("layout_8.sql"),
    include_str!("layout_9.sql"),
    include_str!("layout_10.sql"),
    include_str!("layout_11.sql"),
];

/// The newest layout that this server knows.
pub(super) const NEWEST: u64 = LAYOUTS.len() as u64;

/// Migrates the database to the newest layout, completely or not at all.
pub(super) fn migrate(sql: &mut dyn Sql, dialect: Dialect) -> Result<(), OpenError> {
    sql.control("BEGIN").map_err(failed)?;
    let moved = move_on(sql, dialect);
    match &moved {
        Ok(()) => sql.control("COMMIT").map_err(failed)?,
        Err(_) => sql.control("ROLLBACK").map_err(failed)?,
    }
    moved
}

fn move_on(sql: &mut dyn Sql, dialect: Dialect) -> Result<(), OpenError> {
    sql.control(dialect.lock).map_err(failed)?;
    let tables = sql.rows(dialect.tables, &[]).map_err(failed)?;
    let names: Done<Vec<String>> = tables.into_iter().map(|mut row| row.text(0)).collect();
    let names = names.map_err(failed)?;
    if !names.iter().any(|name| name == "parlor_layout") {
        if let Some(name) = names.first() {
            return Err(OpenError::Database(format!(
                "it has a table `{name}` and is no store of Parlor's. Name another file or database"
            )));
        }
        let table = translated("CREATE TABLE parlor_layout (number {int} NOT NULL {strict};", dialect);
        sql.control(&table).map_err(failed)?;
        sql.change("INSERT INTO parlor_layout (number) VALUES ($1)", params![0_u64]).map_err(failed)?;
    }
    let found = found(sql)?;
    if found > NEWEST {
        return Err(OpenError::Newer { found, known: NEWEST });
    }
    for (number, layout) in (1_u64..).zip(LAYOUTS.iter().copied()).filter(|(number, _)| *number > found) {
        sql.control(&translated(layout, dialect)).map_err(failed)?;
        sql.change("UPDATE parlor_layout SET number = $1", params![number]).map_err(failed)?;
    }
    match found {
        NEWEST => {}
        0 => tracing::info!(layout = NEWEST, "the store was created"),
        _ => tracing::info!(from = found, layout = NEWEST, "the store has the newest layout from here on"),
    }
    Ok(())
}

/// The number of the database's layout.
pub(super) fn found(sql: &mut dyn Sql) -> Result<u64, OpenError> {
    let mut rows = sql.rows("SELECT number FROM parlor_layout", &[]).map_err(failed)?;
    match rows.as_mut_slice() {
        [row] => row.number(0).map_err(failed),
        _ => Err(OpenError::Database("it says nothing of its layout: restore a backup".to_owned())),
    }
}

fn translated(layout: &str, dialect: Dialect) -> String {
    layout
        .replace("{text}", dialect.text)
        .replace("{int}", dialect.int)
        .replace("{bytes}", dialect.bytes)
        .replace("{serial}", dialect.serial)
        .replace("{strict}", dialect.strict)
        .replace("{small}", dialect.small)
        .replace("{unlogged}", dialect.unlogged)
}

pub(super) fn failed(fault: Fault) -> OpenError {
    OpenError::Database(match fault {
        Fault::Refused(error) => error.to_string(),
        Fault::Storage(detail) | Fault::Again(detail) | Fault::Unsure(detail) => detail,
    })
}
