//! The store in a PostgreSQL server, which several servers of Parlor's may share.
//!
//! A connection lives on a thread of the store's own, with a small runtime of its own, and has one statement under way at a
//! time, as one of SQLite's has. There is no TLS: the server is reached by a socket of this machine or over a private network.

use super::Durability;
use super::error::{OpenError, StoreError};
use super::sql::{Done, Fault, Param, Row, Sql, Value};
use bytes::BytesMut;
use core::error::Error;
use core::time::Duration;
use std::collections::HashMap;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, Statement};

/// For as long a connection is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For as long a statement may take. Beyond that the connection is taken for dead.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// What each connection is told.
const SESSION: &str = "SET statement_timeout = '10s'; SET lock_timeout = '5s'; \
     SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = warning";

/// The server that an address names.
pub(super) fn parse(address: &str) -> Result<Config, OpenError> {
    let mut config: Config = address.parse().map_err(|_| OpenError::Address {
        address: super::address::without_password(address),
        sentence: "a PostgreSQL store is postgres://USER:PASSWORD@HOST:PORT/DATABASE",
    })?;
    if !matches!(config.get_ssl_mode(), SslMode::Disable | SslMode::Prefer) {
        return Err(OpenError::Address {
            address: super::address::without_password(address),
            sentence: "the store speaks no TLS to PostgreSQL: reach it by a local socket or a private network, \
                       without sslmode",
        });
    }
    config.connect_timeout(CONNECT_TIMEOUT).keepalives_idle(Duration::from_secs(30));
    if config.get_application_name().is_none() {
        config.application_name("parlor");
    }
    Ok(config)
}

/// Makes a connection.
pub(super) fn connect(config: &Config, durability: Durability) -> Done<Box<dyn Sql>> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::Storage(format!("no runtime for PostgreSQL: {error}")))?;
    let connected =
        runtime.block_on(async { tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await });
    let (client, connection) = match connected {
        Ok(connected) => connected.map_err(|error| Fault::Storage(detail(&error)))?,
        Err(_) => return Err(Fault::Storage("PostgreSQL does not answer".to_owned())),
    };
    runtime.spawn(async move {
        // What it ends by, the statement under way reports too.
        let _ = connection.await;
    });
    let mut postgres = Postgres { runtime, client, prepared: HashMap::new() };
    postgres.control(SESSION)?;
    // It could be switched off for the whole server.
    postgres.control(match durability {
        Durability::Full => "SET synchronous_commit = on",
        Durability::None => "SET synchronous_commit = off",
    })?;
    Ok(Box::new(postgres))
}

struct Postgres {
    runtime: Runtime,
    client: Client,
    /// By the text of the statement. There are as many as the store's code has.
    prepared: HashMap<&'static str, Statement>,
}

impl Postgres {
    fn wait<T>(&self, statement: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Done<T> {
        let answered =
            self.runtime.block_on(async { tokio::time::timeout(STATEMENT_TIMEOUT, statement).await });
        match answered {
            Ok(answered) => answered.map_err(|error| self.fault(&error)),
            Err(_) => Err(Fault::Storage("PostgreSQL does not answer".to_owned())),
        }
    }

    fn prepare(&mut self, statement: &'static str) -> Done<Statement> {
        if let Some(prepared) = self.prepared.get(statement) {
            return Ok(prepared.clone());
        }
        let prepared = self.wait(self.client.prepare(statement))?;
        self.prepared.insert(statement, prepared.clone());
        Ok(prepared)
    }

    /// What is wrong with the server concerns every write, and so does a transaction that another server broke off; what is left
    /// is the fault of one statement.
    fn fault(&self, error: &tokio_postgres::Error) -> Fault {
        let detail = detail(error);
        let Some(code) = error.code().map(|code| code.code()) else {
            // An error of this end: the connection is gone, or a parameter does not fit.
            let is_gone = self.client.is_closed() || error.is_closed();
            return if is_gone {
                Fault::Storage(detail)
            } else {
                Fault::Refused(StoreError::Damaged(detail))
            };
        };
        match code.get(..2) {
            // Serialization failures and deadlocks.
            Some("40") => Fault::Again(detail),
            // A lock that did not come in time.
            _ if code == "55P03" => Fault::Storage(detail),
            // Connections, resources, an operator, the system, and the server itself; a server that became read-only.
            Some("08" | "53" | "57" | "58" | "XX" | "F0") => Fault::Storage(detail),
            _ if code == "25006" => Fault::Storage(detail),
            _ => Fault::Refused(StoreError::Damaged(detail)),
        }
    }
}

fn detail(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("PostgreSQL: {} ({})", said.message(), said.code().code()),
        None => match error.source() {
            Some(source) => format!("PostgreSQL: {error}: {source}"),
            None => format!("PostgreSQL: {error}"),
        },
    }
}

impl Sql for Postgres {
    fn change(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<u64> {
        let prepared = self.prepare(statement)?;
        self.wait(self.client.execute(&prepared, &borrowed(params)))
    }

    fn rows(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<Vec<Row>> {
        let prepared = self.prepare(statement)?;
        let found = self.wait(self.client.query(&prepared, &borrowed(params)))?;
        found
            .iter()
            .map(|row| (0..row.len()).map(|column| value(row, column)).collect::<Done<_>>().map(Row))
            .collect()
    }

    fn control(&mut self, statements: &str) -> Done<()> {
        self.wait(self.client.batch_execute(statements))
    }
}

fn borrowed<'a>(params: &'a [Param<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

fn value(row: &tokio_postgres::Row, column: usize) -> Done<Value> {
    let kind = row.columns().get(column).map(|column| column.type_().clone());
    let value = match kind {
        Some(Type::INT8) => row.try_get::<_, Option<i64>>(column).map(|found| found.map(Value::Int)),
        Some(Type::TEXT) => row.try_get::<_, Option<String>>(column).map(|found| found.map(Value::Text)),
        Some(Type::BYTEA) => row.try_get::<_, Option<Vec<u8>>>(column).map(|found| found.map(Value::Bytes)),
        kind => return Err(StoreError::Damaged(format!("column {column} is a {kind:?}")).into()),
    };
    match value {
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(error) => Err(StoreError::Damaged(detail(&error)).into()),
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Param::Null => Ok(IsNull::Yes),
            Param::Int(number) => number.to_sql(kind, out),
            Param::Text(text) => text.to_sql(kind, out),
            Param::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    /// What the store's tables are made of, all of which the server infers from the statements.
    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}
