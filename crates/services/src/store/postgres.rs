//! The store in a PostgreSQL server. One Parlor server has it, or the nodes of a cluster (`owner.rs`).
//!
//! A connection is on its own thread, with a small runtime. It waits for a statement's answer only if a
//! caller needs it: a deferrable statement ([`Sql::later`]) is sent at once, and its answer is checked when
//! the transaction ends.
//!
//! Without `sslmode` there is no TLS: use a local socket or a private network then. With it, there is TLS
//! with a server that has proven its name, or no connection.

use super::Durability;
use super::address::{Protection, without_password};
use super::error::{OpenError, StoreError};
use super::owner::{self, LockState, Sharing, StoreLock};
use super::sql::{BatchResult, BatchStatement, Done, Fault, Param, RowPage, Sql, TableRow, Value, now_us};
use super::webhooks::Outboxes;
use bytes::BytesMut;
use core::error::Error;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use futures_util::future::try_join_all;
use futures_util::{FutureExt, TryStreamExt};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time limit of a connection attempt.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a statement. Beyond it the connection counts as dead.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of each connection.
const SESSION: &str = "SET statement_timeout = '10s'; SET lock_timeout = '5s'; \
     SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = warning";

/// A node's transaction waits until no other node has one under way: writes read before they change, as if a store had
/// one writer. So they count quotas right, and cannot deadlock. The lock ends with the transaction; the schema
/// identifies the store.
const BEGIN_IN_TURN: &str = "BEGIN; SELECT pg_advisory_xact_lock(7242698, hashtext(current_schema()))";
/// Ends the transaction of a node that stands still, because all others wait for it.
const SESSION_IN_TURN: &str = "SET idle_in_transaction_session_timeout = '2s'";

/// Maximum number of statements with a pending answer.
const PENDING_MAX: usize = 256;

/// A server, and how it is reached.
pub(super) struct Server {
    reached: Reached,
    owner: StoreLock,
    sharing: Sharing,
}

/// The address and protection of a server.
#[derive(Clone)]
pub(super) struct Reached {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Server {
    /// The owner's lock.
    pub(super) fn owner(&self) -> Arc<LockState> {
        self.owner.held()
    }

    /// How it is reached by a connection whose loss must show within seconds.
    pub(super) fn watchfully_reached(&self) -> Reached {
        let mut reached = self.reached.clone();
        let second = Duration::from_secs(1);
        reached.config.keepalives_idle(second).keepalives_interval(second).keepalives_retries(3);
        reached.config.tcp_user_timeout(second * 3);
        reached
    }

    /// Releases the store for another server.
    pub(super) fn let_go(&self) {
        self.owner.let_go();
    }
}

/// Takes the database at an address for this process.
pub(super) fn own(address: &str, sharing: Sharing) -> Result<Server, OpenError> {
    let reached = parse(address)?;
    let owner = StoreLock::take(reached.clone(), sharing)?;
    Ok(Server { reached, owner, sharing })
}

/// The layout of the store in a database, if there is one, and the server that has it. Nothing is taken or changed.
pub(super) fn inspect(address: &str) -> Result<(Option<u64>, Option<String>), OpenError> {
    let reached = parse(address)?;
    let failed = |error: &tokio_postgres::Error| OpenError::Database(detail(error));
    let looking = async {
        let (client, _connection) = connect_to(&reached).await.map_err(|error| failed(&error))?;
        let layout = match client.query("SELECT number FROM parlor_layout", &[]).await {
            Ok(rows) => rows.first().and_then(|row| u64::try_from(row.try_get::<_, i64>(0).ok()?).ok()),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
            Err(error) => return Err(failed(&error)),
        };
        let holder = match owner::holder(&client).await {
            Some(OpenError::InUseBy { holder, pid }) => Some(format!("{holder}, session {pid}")),
            _ => None,
        };
        Ok((layout, holder))
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(OpenError::Thread)?;
    runtime
        .block_on(async { tokio::time::timeout(CONNECT_TIMEOUT * 2, looking).await })
        .unwrap_or_else(|_| Err(OpenError::Database("PostgreSQL does not answer".to_owned())))
}

/// Parses the address of a server.
pub(super) fn parse(address: &str) -> Result<Reached, OpenError> {
    let refused = |sentence| OpenError::Address { address: without_password(address), sentence };
    let (protection, plain) = Protection::take(address).map_err(refused)?;
    let mut config: Config = plain
        .parse()
        .map_err(|_| refused("a PostgreSQL store is postgres://USER:PASSWORD@HOST:PORT/DATABASE"))?;
    config.connect_timeout(CONNECT_TIMEOUT).keepalives_idle(Duration::from_secs(30));
    if config.get_application_name().is_none() {
        config.application_name("parlor");
    }
    let trust = protection.trust().map_err(|(path, error)| OpenError::File { path, error })?;
    config.ssl_mode(if trust.is_some() { SslMode::Require } else { SslMode::Disable });
    let tls = trust.map(|trust| trust.foreign_tls()).transpose();
    let tls = tls.map_err(|error| OpenError::Database(error.to_string()))?;
    Ok(Reached { config, tls: tls.map(MakeRustlsConnect::new) })
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Reached { config, tls } = &self.reached;
        f.debug_struct("Server").field("config", config).field("tls", &tls.is_some()).finish_non_exhaustive()
    }
}

/// Connects. With `held` its transactions begin only while the store is this server's.
pub(super) fn connect(
    server: &Server,
    durability: Durability,
    held: Option<Arc<LockState>>,
) -> Done<Box<dyn Sql>> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::Storage(format!("no runtime for PostgreSQL: {error}")))?;
    let connected =
        runtime.block_on(async { tokio::time::timeout(CONNECT_TIMEOUT, connect_to(&server.reached)).await });
    let client = match connected {
        Ok(connected) => connected.map_err(|error| Fault::Storage(detail(&error)))?.0,
        Err(_) => return Err(Fault::Storage("PostgreSQL does not answer".to_owned())),
    };
    let (client, prepared, pending) = (Arc::new(client), HashMap::new(), Vec::new());
    let takes_turns = held.is_some() && server.sharing == Sharing::Nodes;
    let mut postgres = Postgres {
        runtime,
        client,
        prepared,
        pending,
        held,
        takes_turns,
        has_turn: false,
        outboxes: Outboxes::default(),
    };
    postgres.control(SESSION)?;
    if takes_turns {
        postgres.control(SESSION_IN_TURN)?;
    }
    // The server's configuration may disable it.
    postgres.control(match durability {
        Durability::Full => "SET synchronous_commit = on",
        Durability::None => "SET synchronous_commit = off",
    })?;
    Ok(Box::new(postgres))
}

/// Connects. The connection runs as a task on the current runtime and ends with it. The statement in progress
/// reports its error too.
pub(super) async fn connect_to(
    server: &Reached,
) -> Result<(Client, tokio::task::JoinHandle<()>), tokio_postgres::Error> {
    match &server.tls {
        None => {
            let (client, connection) = server.config.connect(NoTls).await?;
            Ok((client, tokio::spawn(connection.map(|_| ()))))
        }
        Some(tls) => {
            let (client, connection) = server.config.connect(tls.clone()).await?;
            Ok((client, tokio::spawn(connection.map(|_| ()))))
        }
    }
}

/// Connects, and hands on what the server notifies this connection of. When too much waits, `missed` is set instead.
pub(super) async fn listen_to(
    server: &Reached,
    heard: mpsc::Sender<String>,
    missed: Arc<AtomicBool>,
) -> Result<Client, tokio_postgres::Error> {
    match &server.tls {
        None => {
            let (client, connection) = server.config.connect(NoTls).await?;
            tokio::spawn(hand_on(connection, heard, missed));
            Ok(client)
        }
        Some(tls) => {
            let (client, connection) = server.config.connect(tls.clone()).await?;
            tokio::spawn(hand_on(connection, heard, missed));
            Ok(client)
        }
    }
}

/// Runs a connection. `heard` closes with it.
async fn hand_on<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    heard: mpsc::Sender<String>,
    missed: Arc<AtomicBool>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = core::future::poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(said) = message
            && heard.try_send(said.payload().to_owned()).is_err()
        {
            missed.store(true, Ordering::Relaxed);
        }
    }
}

/// A sent statement with a pending answer.
type PendingStatement = Pin<Box<dyn Future<Output = Result<u64, tokio_postgres::Error>> + Send>>;

struct Postgres {
    runtime: Runtime,
    client: Arc<Client>,
    /// Prepared statements by their text. Their number is that of the statements in the store's code.
    prepared: HashMap<&'static str, Statement>,
    /// In the order of sending.
    pending: Vec<PendingStatement>,
    /// Whether transactions may begin; `None` for always.
    held: Option<Arc<LockState>>,
    /// Whether transactions of several nodes run one after another.
    takes_turns: bool,
    /// Whether this connection's turn has come, and its transaction has not begun.
    has_turn: bool,
    outboxes: Outboxes,
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

    /// A fault of the server concerns every write, and so does a transaction that another server interrupted.
    /// Any other fault is that of one statement.
    fn fault(&self, error: &tokio_postgres::Error) -> Fault {
        let detail = detail(error);
        let Some(code) = error.code().map(|code| code.code()) else {
            // A local error: the connection is gone, or a parameter has the wrong type.
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
            // A lock timeout.
            _ if code == "55P03" => Fault::Storage(detail),
            // Errors of connections, resources, an operator, the system, and the server itself; or a server
            // that became read-only.
            Some("08" | "53" | "57" | "58" | "XX" | "F0") => Fault::Storage(detail),
            _ if code == "25006" => Fault::Storage(detail),
            _ => Fault::Refused(StoreError::Damaged(detail)),
        }
    }
}

/// Waits for an answer of the server no longer than this. Errors are for a person.
pub(super) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answered) => answered.map_err(|error| detail(&error)),
        Err(_) => Err("PostgreSQL does not answer".to_owned()),
    }
}

pub(super) fn detail(error: &tokio_postgres::Error) -> String {
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

    /// The rest of a cut answer is read from the connection and dropped before the next answer.
    fn rows_within(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
        bytes_max: usize,
    ) -> Done<RowPage> {
        let prepared = self.prepare(statement)?;
        let params = borrowed(params);
        let (found, is_cut) = self.wait(async {
            let mut answer = pin!(self.client.query_raw(&prepared, params).await?);
            let (mut found, mut bytes) = (Vec::new(), 0_usize);
            while let Some(row) = answer.try_next().await? {
                if bytes >= bytes_max {
                    return Ok((found, true));
                }
                bytes = bytes.saturating_add(row.raw_size_bytes());
                found.push(row);
            }
            Ok((found, false))
        })?;
        Ok(RowPage { rows: read(&found)?, is_cut })
    }

    fn batch(&mut self, asked: &[BatchStatement<'_>]) -> Done<Vec<BatchResult>> {
        let prepared = asked.iter().map(|asked| self.prepare(asked.statement)).collect::<Done<Vec<_>>>()?;
        let params: Vec<_> = asked.iter().map(|asked| borrowed(&asked.params)).collect();
        let client = &self.client;
        let sent = asked.iter().zip(&prepared).zip(&params).map(|((asked, prepared), params)| async move {
            if asked.is_change {
                client.execute(prepared, params).await.map(|changed| (changed, Vec::new()))
            } else {
                client.query(prepared, params).await.map(|found| (0, found))
            }
        });
        let answers = self.wait(try_join_all(sent))?;
        answers.into_iter().map(|(changed, found)| Ok(BatchResult { changed, rows: read(&found)? })).collect()
    }

    fn later(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<()> {
        let prepared = self.prepare(statement)?;
        let client = Arc::clone(&self.client);
        let values: Vec<Value> = params.iter().map(|param| Value::from(*param)).collect();
        let mut sent: PendingStatement = Box::pin(async move {
            let params: Vec<Param<'_>> = values.iter().map(Param::from).collect();
            client.execute(&prepared, &borrowed(&params)).await
        });
        // The first poll sends it, behind all earlier statements.
        match (&mut sent).now_or_never() {
            Some(answered) => answered.map(|_| ()).map_err(|error| self.fault(&error)),
            None => {
                self.pending.push(sent);
                if self.pending.len() < PENDING_MAX { Ok(()) } else { self.settle() }
            }
        }
    }

    fn settle(&mut self) -> Done<()> {
        let pending = core::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        self.wait(async {
            let mut settled = Ok(());
            // All are awaited. The first fault causes those after it.
            for sent in pending {
                let answered = sent.await.map(|_| ());
                settled = settled.and(answered);
            }
            settled
        })
    }

    fn control(&mut self, statements: &str) -> Done<()> {
        self.wait(self.client.batch_execute(statements))
    }

    fn outboxes(&mut self) -> &mut Outboxes {
        &mut self.outboxes
    }

    fn clock_us(&mut self) -> Done<u64> {
        let mut rows = self.rows(concat!("SELECT ", now_us!()), &[])?;
        rows.first_mut().map_or(Ok(0), |row| row.number(0))
    }

    /// Bytes of the store's tables, including indexes and long values. The database may have tables of
    /// others.
    fn used_bytes(&mut self) -> Done<u64> {
        let mut rows = self.rows(
            "SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = current_schema() AND c.relkind = 'r'",
            &[],
        )?;
        rows.first_mut().map_or(Ok(0), |row| row.number(0))
    }

    fn is_shared(&self) -> bool {
        self.takes_turns
    }

    /// PostgreSQL grants the lock after the other writing transactions have ended, and releases it with this one.
    fn await_others(&mut self) -> Done<()> {
        self.control("LOCK TABLE boards, board_seasons, board_entries IN SHARE MODE")
    }

    /// A failed transaction answers its end without an error, so nothing may be pending before it.
    fn step(&mut self, statement: &'static str) -> Done<()> {
        if statement == "BEGIN" && self.held.as_ref().is_some_and(|held| !held.is_held()) {
            return Err(Fault::Storage("another server may have this store: its lock is lost".to_owned()));
        }
        if statement.starts_with("ROLLBACK") {
            self.pending.clear();
            self.outboxes.forget();
        } else {
            self.settle()?;
        }
        if statement == "BEGIN" && core::mem::take(&mut self.has_turn) {
            return Ok(());
        }
        if statement == "BEGIN" && self.takes_turns {
            return self.control(BEGIN_IN_TURN);
        }
        self.control(statement)
    }

    fn take_turn(&mut self) -> Done<()> {
        if self.takes_turns && !self.has_turn {
            self.step("BEGIN")?;
            self.has_turn = true;
        }
        Ok(())
    }

    fn give_up_turn(&mut self) -> Done<()> {
        if core::mem::take(&mut self.has_turn) { self.step("ROLLBACK") } else { Ok(()) }
    }
}

fn read(found: &[tokio_postgres::Row]) -> Done<Vec<TableRow>> {
    let values =
        |row: &tokio_postgres::Row| (0..row.len()).map(|column| value(row, column)).collect::<Done<_>>();
    found.iter().map(|row| values(row).map(TableRow)).collect()
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

    /// The types of the store's columns. The server infers all of them from the statements.
    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}
