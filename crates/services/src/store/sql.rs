//! The database interface of the store's methods: the small common part of SQLite and PostgreSQL.
//!
//! Both read the same statements. Parameters are `$1`, `$2` and so on, and must first appear in that order,
//! because SQLite treats them as names and numbers them by appearance.

use super::error::StoreError;
use super::ids::{AccountId, RoomId, SignInId};
use super::webhooks::Outboxes;
use parlor_server::realm::{InvalidId, Realm};

/// The result of a method inside its transaction.
pub(super) type Done<T> = Result<T, Fault>;

/// Why a statement or a method failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// This method failed, and the others of its group continue.
    Refused(StoreError),
    /// The database cannot store anything at present. The whole group failed.
    Storage(String),
    /// Two servers were in each other's way. A repetition may succeed.
    Again(String),
    /// The commit failed, and nobody knows whether the group was stored.
    Unsure(String),
}

impl From<InvalidId> for Fault {
    fn from(error: InvalidId) -> Self {
        Fault::Refused(error.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Refused(error)
    }
}

/// A connection to a database.
pub(super) trait Sql: Send {
    /// Changes rows, and returns their number.
    fn change(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<u64>;

    /// Changes rows, without returning their number. A database over a network may answer after this returns;
    /// a later call reports an error, at the latest [`settle`](Sql::settle).
    fn later(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<()> {
        self.change(statement, params).map(|_| ())
    }

    /// Waits until the deferred statements of [`later`](Sql::later) are done.
    fn settle(&mut self) -> Done<()> {
        Ok(())
    }

    /// Queries rows.
    fn rows(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<Vec<TableRow>> {
        self.rows_within(statement, params, usize::MAX).map(|part| part.rows)
    }

    /// Queries rows, and stops reading once they hold `bytes_max` bytes. Returns at least one row if there
    /// are any.
    fn rows_within(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
        bytes_max: usize,
    ) -> Done<RowPage>;

    /// Executes these statements, in this order and in one round trip.
    fn batch(&mut self, asked: &[BatchStatement<'_>]) -> Done<Vec<BatchResult>> {
        let mut execute = |asked: &BatchStatement<'_>| {
            Ok(if asked.is_change {
                BatchResult { changed: self.change(asked.statement, &asked.params)?, rows: Vec::new() }
            } else {
                BatchResult { changed: 0, rows: self.rows(asked.statement, &asked.params)? }
            })
        };
        asked.iter().map(&mut execute).collect()
    }

    /// Runs statements without parameters or rows, rarely: layouts and settings of a connection.
    fn control(&mut self, statements: &str) -> Done<()>;

    /// Whether other nodes of a cluster write to the same database, each in turn.
    fn is_shared(&self) -> bool {
        false
    }

    /// Waits until no other node has a transaction under way, if nodes share the database. The next `BEGIN` has that
    /// turn.
    fn take_turn(&mut self) -> Done<()> {
        Ok(())
    }

    /// Gives up a turn that no `BEGIN` had.
    fn give_up_turn(&mut self) -> Done<()> {
        Ok(())
    }

    /// Waits until no transaction of another connection has changes of boards that are not yet committed: a
    /// connection that was lost may still commit.
    fn await_others(&mut self) -> Done<()> {
        Ok(())
    }

    /// The database's clock, in microseconds since 1970.
    fn clock_us(&mut self) -> Done<u64>;

    /// Bytes in use of the store on its disk.
    fn used_bytes(&mut self) -> Done<u64>;

    /// What the outboxes hold, as this connection knows it. After a step that takes back changes nothing is known.
    fn outboxes(&mut self) -> &mut Outboxes;

    /// Runs a step of a transaction.
    fn step(&mut self, statement: &'static str) -> Done<()>;
}

/// A statement of a [batch](Sql::batch).
#[derive(Debug)]
pub(super) struct BatchStatement<'p> {
    pub(super) statement: &'static str,
    pub(super) params: Vec<Param<'p>>,
    /// Whether it changes rows, and returns none.
    pub(super) is_change: bool,
}

impl<'p> BatchStatement<'p> {
    /// A statement that changes rows. For SQLite, a `RETURNING` costs more than another statement that reads
    /// the row.
    pub(super) fn change(statement: &'static str, params: &[Param<'p>]) -> Self {
        BatchStatement { statement, params: params.to_vec(), is_change: true }
    }

    /// A statement that returns rows.
    pub(super) fn rows(statement: &'static str, params: &[Param<'p>]) -> Self {
        BatchStatement { statement, params: params.to_vec(), is_change: false }
    }
}

/// The answer to a statement of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchResult {
    /// Number of changed rows.
    pub(super) changed: u64,
    pub(super) rows: Vec<TableRow>,
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A value of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row of a query's result. Each value is taken once.
#[derive(Debug)]
pub(super) struct TableRow(pub(super) Vec<Value>);

/// The first rows of a query's result.
#[derive(Debug, Default)]
pub(super) struct RowPage {
    pub(super) rows: Vec<TableRow>,
    /// Whether further rows were not read because these hold enough bytes.
    pub(super) is_cut: bool,
}

impl TableRow {
    /// Bytes of its values.
    pub(super) fn len(&self) -> usize {
        let len = |value: &Value| match value {
            Value::Null => 0,
            Value::Int(_) => size_of::<i64>(),
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        };
        self.0.iter().map(len).sum()
    }

    fn take(&mut self, column: usize) -> Value {
        self.0.get_mut(column).map(core::mem::take).unwrap_or_default()
    }

    pub(super) fn text(&mut self, column: usize) -> Done<String> {
        self.optional_text(column)?.ok_or_else(|| unexpected(column, "no text"))
    }

    pub(super) fn optional_text(&mut self, column: usize) -> Done<Option<String>> {
        match self.take(column) {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => Err(unexpected(column, "no text")),
        }
    }

    pub(super) fn number(&mut self, column: usize) -> Done<u64> {
        self.optional_number(column)?.ok_or_else(|| unexpected(column, "no number"))
    }

    pub(super) fn optional_number(&mut self, column: usize) -> Done<Option<u64>> {
        match self.take(column) {
            Value::Int(number) => {
                u64::try_from(number).map(Some).map_err(|_| unexpected(column, "a number below 0"))
            }
            Value::Null => Ok(None),
            _ => Err(unexpected(column, "no number")),
        }
    }

    /// A number that may be below 0.
    pub(super) fn signed(&mut self, column: usize) -> Done<i64> {
        match self.take(column) {
            Value::Int(number) => Ok(number),
            _ => Err(unexpected(column, "no number")),
        }
    }

    pub(super) fn bytes(&mut self, column: usize) -> Done<Vec<u8>> {
        self.optional_bytes(column)?.ok_or_else(|| unexpected(column, "no bytes"))
    }

    pub(super) fn optional_bytes(&mut self, column: usize) -> Done<Option<Vec<u8>>> {
        match self.take(column) {
            Value::Bytes(bytes) => Ok(Some(bytes)),
            Value::Null => Ok(None),
            _ => Err(unexpected(column, "no bytes")),
        }
    }
}

/// The fault for a column whose value no server writes.
pub(super) fn unexpected(column: usize, what: &str) -> Fault {
    Fault::Refused(StoreError::Damaged(format!("column {column} of a row has {what}")))
}

/// The fault for a stored word that no server writes.
pub(super) fn unknown_word(what: &str, word: &str) -> Fault {
    Fault::Refused(StoreError::Damaged(format!("`{word}` is no {what}")))
}

impl From<Param<'_>> for Value {
    fn from(param: Param<'_>) -> Self {
        match param {
            Param::Null => Value::Null,
            Param::Int(number) => Value::Int(number),
            Param::Text(text) => Value::Text(text.to_owned()),
            Param::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        }
    }
}

impl<'a> From<&'a Value> for Param<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Param::Null,
            Value::Int(number) => Param::Int(*number),
            Value::Text(text) => Param::Text(text),
            Value::Bytes(bytes) => Param::Bytes(bytes),
        }
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Param::Text(text)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        Param::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Param::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Param<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Param::Bytes(bytes)
    }
}

impl<'a> From<&'a [u8; 32]> for Param<'a> {
    fn from(bytes: &'a [u8; 32]) -> Self {
        Param::Bytes(bytes)
    }
}

impl From<u64> for Param<'_> {
    /// Both databases end at `i64::MAX`, about a hundred million years after 1970.
    fn from(number: u64) -> Self {
        Param::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Param<'_> {
    fn from(number: i64) -> Self {
        Param::Int(number)
    }
}

impl From<usize> for Param<'_> {
    fn from(number: usize) -> Self {
        Param::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Param<'_> {
    fn from(yes: bool) -> Self {
        Param::Int(yes.into())
    }
}

impl<'a> From<&'a Realm> for Param<'a> {
    fn from(realm: &'a Realm) -> Self {
        Param::Text(realm.path())
    }
}

impl<'a> From<&'a AccountId> for Param<'a> {
    fn from(id: &'a AccountId) -> Self {
        Param::Text(id.as_str())
    }
}

impl<'a> From<&'a RoomId> for Param<'a> {
    fn from(id: &'a RoomId) -> Self {
        Param::Text(id.as_str())
    }
}

impl<'a> From<&'a SignInId> for Param<'a> {
    fn from(id: &'a SignInId) -> Self {
        Param::Text(id.as_str())
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::store::sql::Param::from($value)),*] };
}
pub(super) use params;

/// PostgreSQL's clock, in microseconds since 1970, as a part of a statement. It goes on within a transaction.
macro_rules! now_us {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}
pub(super) use now_us;

/// The condition that `n` is the node which wrote a row, still in that incarnation, and serves. `$row` is the row's
/// name in the statement.
macro_rules! is_of_serving {
    ($row:literal) => {
        concat!("n.id = ", $row, ".node AND n.incarnation = ", $row, ".incarnation AND n.state <> 'gone'")
    };
}
pub(super) use is_of_serving;
