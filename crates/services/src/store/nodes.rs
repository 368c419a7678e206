//! The nodes that share a PostgreSQL store: their table, and the two connections by which a server is one of them.
//!
//! - A [`NodeLock`] is an advisory lock on a connection of its own, which PostgreSQL releases when the node's process
//!   ends. After taking the lock that connection never runs a statement: within one, PostgreSQL would notice the
//!   process's end only after the statement's.
//! - A [`NodeSession`] is a connection for everything else: the heartbeats and the looks at the others. It is not one
//!   of the store's, whose commits may stall.
//!
//! All times are those of the database's clock, in microseconds since 1970.

use super::error::OpenError;
use super::node::NodeName;
use super::owner;
use super::postgres::{CONNECT_TIMEOUT, Reached, connect_to, detail, within};
use super::sql::now_us;
use super::{Backend, Store};
use core::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

/// The kind of a node's lock. Its number is a hash of the schema, which identifies the store, and the node's name.
const LOCK: i32 = 7_242_697;
/// How long a starting node waits for one of its name that is ending.
const WAIT_FOR_OTHER: &str = "2s";
/// Settings of both connections. PostgreSQL notices within four seconds that a node's machine is gone.
const SESSION: &str =
    "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3;
     SET tcp_user_timeout = 3000; SET idle_session_timeout = 0; SET statement_timeout = '2s';
     SET synchronous_commit = on; SET client_min_messages = warning";
/// Time limit of a statement's answer. Beyond it the connection counts as lost.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Enters a node. Its first incarnation is the time in seconds, so that a row that was removed and made anew has a
/// higher one.
const ENTER: &str = concat!(
    "INSERT INTO nodes (id, incarnation, state, lease_until, lock_number, address, shards, line, build,
         rooms, members, load_permille)
     SELECT $1::text, ",
    now_us!(),
    " / 1000000, 'serving', ",
    now_us!(),
    " + $2::bigint, hashtext(current_schema() || '/' || $1), $3::text, $4::bigint, $5::text, $6::text, 0, 0, 0
     ON CONFLICT (id) DO UPDATE SET incarnation = nodes.incarnation + 1, state = 'serving',
         lease_until = excluded.lease_until, lock_number = excluded.lock_number, address = excluded.address,
         shards = excluded.shards, line = excluded.line, build = excluded.build,
         rooms = 0, members = 0, load_permille = 0
     RETURNING incarnation"
);
const HEARTBEAT: &str = concat!(
    "UPDATE nodes SET lease_until = ",
    now_us!(),
    " + $1::bigint, rooms = $2::bigint, members = $3::bigint, load_permille = $4::bigint
     WHERE id = $5::text AND incarnation = $6::bigint AND state <> 'gone' RETURNING ",
    now_us!(),
    ", state = 'draining', (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
         substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
);
/// The condition that `l`, of `pg_locks`, is the lock of node `n`. `$kind` is the parameter with [`LOCK`].
macro_rules! is_lock_of_node {
    ($kind:literal) => {
        concat!(
            "l.locktype = 'advisory' AND l.granted AND l.classid = ",
            $kind,
            "::int4::oid AND l.objid = ((n.lock_number + 4294967296) % 4294967296)::oid AND l.objsubid = 2
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
    };
}

/// Reads the nodes, and whether each has its lock.
const LOOK: &str = concat!(
    "SELECT ",
    now_us!(),
    ", n.id, n.incarnation, n.state, n.lease_until,
         l.pid IS NOT NULL, n.address, n.line, n.build, n.shards, n.rooms, n.members, n.load_permille
     FROM nodes n LEFT JOIN pg_locks l ON ",
    is_lock_of_node!("$1"),
    " ORDER BY n.id"
);
/// Declares a node gone, if the reason still holds.
const DECLARE_GONE: &str = concat!(
    "UPDATE nodes n SET state = 'gone', incarnation = n.incarnation + 1
     WHERE n.id = $1::text AND n.incarnation = $2::bigint AND n.state <> 'gone' AND (n.lease_until < ",
    now_us!(),
    " OR NOT EXISTS (SELECT 1 FROM pg_locks l WHERE ",
    is_lock_of_node!("$3"),
    "))"
);
const LEAVE: &str = "UPDATE nodes SET state = 'gone', incarnation = incarnation + 1
     WHERE id = $1::text AND incarnation = $2::bigint AND state <> 'gone'";
/// Removes nodes that are gone for long, so that names that are never used again do not add up.
const FORGET: &str = concat!(
    "DELETE FROM nodes n WHERE n.state = 'gone' AND n.lease_until < ",
    now_us!(),
    " - $1::bigint AND n.id <> $2::text"
);
/// How long a node that is gone is shown.
const FORGET_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    /// Where players are sent: `HOST:PORT[#FINGERPRINT]`.
    pub(crate) address: String,
    /// The number of its shards.
    pub(crate) shards: u64,
    /// Where other nodes reach it: `IP:PORT#FINGERPRINT`.
    pub(crate) line: String,
    /// Its version.
    pub(crate) build: String,
}

/// How busy a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeLoad {
    /// Live rooms.
    pub(crate) rooms: u64,
    /// Their members.
    pub(crate) members: u64,
    /// Thousandths of its cores' time.
    pub(crate) permille: u64,
}

/// What a heartbeat found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renewed {
    /// When it was.
    pub(crate) now_us: u64,
    /// Whether the node is ordered to take no more rooms.
    pub(crate) drains: bool,
    /// When the database's server started.
    pub(crate) started_us: u64,
    /// The timeline of its log, which changes when a replica takes over.
    pub(crate) timeline: String,
}

/// The nodes at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// When.
    pub(crate) now_us: u64,
    /// The nodes, ordered by name.
    pub(crate) nodes: Vec<NodeRow>,
}

/// A node, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRow {
    pub(crate) id: NodeName,
    /// Which start of it, counted further when another node declares it gone.
    pub(crate) incarnation: u64,
    pub(crate) state: NodeState,
    pub(crate) lease_until_us: u64,
    /// Whether it holds its lock.
    pub(crate) has_lock: bool,
    pub(crate) facts: NodeFacts,
    pub(crate) load: NodeLoad,
}

/// What a node's row says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeState {
    /// It serves.
    Serving,
    /// It serves, and is ordered to take no more rooms.
    Draining,
    /// It has left, or another node declared it gone.
    Gone,
}

impl NodeState {
    /// All of them.
    pub(crate) const ALL: [NodeState; 3] = [NodeState::Serving, NodeState::Draining, NodeState::Gone];

    /// The word in the store.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            NodeState::Serving => "serving",
            NodeState::Draining => "draining",
            NodeState::Gone => "gone",
        }
    }

    fn parse(word: &str) -> Result<Self, NodeFault> {
        let unknown = || NodeFault(format!("the table of nodes is damaged: {word:?} is no state"));
        NodeState::ALL.into_iter().find(|state| state.as_str() == word).ok_or_else(unknown)
    }
}

/// Why a statement of a node failed: PostgreSQL refused it or did not answer in time, or the connection is lost.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NodeFault(pub(crate) String);

/// The lock of a node. Dropping it releases the lock.
pub(crate) struct NodeLock {
    /// Its end would end the session.
    _client: Client,
    connection: JoinHandle<()>,
}

impl NodeLock {
    /// Waits until the lock is lost. Cancel-safe.
    pub(crate) async fn lost(&mut self) {
        // Any result means the end.
        let _ = (&mut self.connection).await;
    }

    /// Whether the lock is lost, as far as is known.
    pub(crate) fn is_lost(&self) -> bool {
        self.connection.is_finished()
    }
}

impl Drop for NodeLock {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// A node's connection for its statements.
pub(crate) struct NodeSession {
    client: Client,
    connection: JoinHandle<()>,
    heartbeat: Statement,
    look: Statement,
}

impl Drop for NodeSession {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Store {
    /// Connects for a node's statements. The connection lives on the current runtime.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) async fn node_session(&self) -> Result<NodeSession, OpenError> {
        let connecting = async {
            let (client, connection) = connect(&self.reached()?).await?;
            let heartbeat = client.prepare(HEARTBEAT).await.map_err(|error| failed(&error))?;
            let look = client.prepare(LOOK).await.map_err(|error| failed(&error))?;
            Ok(NodeSession { client, connection, heartbeat, look })
        };
        tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| silent())?
    }

    /// Takes the lock of the node `name`. The connection lives on the current runtime.
    ///
    /// # Errors
    /// [`OpenError::NodeRuns`] if another server has it, [`OpenError::Pooled`] if the connections are not sessions.
    pub(crate) async fn lock_node(
        &self,
        name: &NodeName,
        session: &NodeSession,
    ) -> Result<NodeLock, OpenError> {
        let reached = self.reached()?;
        let taking = async {
            let (client, connection) = connect(&reached).await?;
            let waits = format!("SET lock_timeout = '{WAIT_FOR_OTHER}'; SET statement_timeout = '5s'");
            client.batch_execute(&waits).await.map_err(|error| failed(&error))?;
            let take = "SELECT pg_advisory_lock($1, hashtext(current_schema() || '/' || $2::text))";
            match client.execute(take, &[&LOCK, &name.as_str()]).await {
                Ok(_) => {}
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    let holder = owner::session_with_lock(&client, LOCK, Some(name.as_str())).await;
                    let (holder, pid) = holder.unwrap_or_else(|| ("a session that has just ended".into(), 0));
                    return Err(OpenError::NodeRuns { node: name.clone(), holder, pid });
                }
                Err(error) => return Err(failed(&error)),
            }
            if is_pooled(&client, session).await? {
                return Err(OpenError::Pooled);
            }
            Ok(NodeLock { _client: client, connection })
        };
        tokio::time::timeout(CONNECT_TIMEOUT * 2, taking).await.map_err(|_| silent())?
    }

    fn reached(&self) -> Result<Reached, OpenError> {
        match &self.inner.backend {
            Backend::Server(server) => Ok(server.watchfully_reached()),
            Backend::File(file) => Err(OpenError::FileOfNodes { path: file.path.clone() }),
        }
    }
}

impl NodeSession {
    /// Enters the node, and returns its incarnation. Its lock must be held.
    ///
    /// # Errors
    /// [`NodeFault`].
    pub(crate) async fn enter(
        &self,
        id: &NodeName,
        facts: &NodeFacts,
        lease: Duration,
    ) -> Result<u64, NodeFault> {
        self.execute(FORGET, &[&micros(FORGET_AFTER), &id.as_str()]).await?;
        let NodeFacts { address, shards, line, build } = facts;
        let params: &[&(dyn ToSql + Sync)] =
            &[&id.as_str(), &micros(lease), address, &signed(*shards), line, build];
        let row = answered(self.client.query_one(ENTER, params)).await?;
        number(&row, 0)
    }

    /// Renews the lease. `None` if the node has another incarnation. A database that recovers is no answer.
    ///
    /// # Errors
    /// [`NodeFault`].
    pub(crate) async fn heartbeat(
        &self,
        id: &NodeName,
        incarnation: u64,
        load: NodeLoad,
        lease: Duration,
    ) -> Result<Option<Renewed>, NodeFault> {
        let NodeLoad { rooms, members, permille } = load;
        let params: &[&(dyn ToSql + Sync)] = &[
            &micros(lease),
            &signed(rooms),
            &signed(members),
            &signed(permille),
            &id.as_str(),
            &signed(incarnation),
        ];
        let row = answered(self.client.query_opt(&self.heartbeat, params)).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Renewed {
            now_us: number(&row, 0)?,
            drains: flag(&row, 1)?,
            started_us: number(&row, 2)?,
            timeline: text(&row, 3)?,
        }))
    }

    /// Reads the nodes. `None` without any.
    ///
    /// # Errors
    /// [`NodeFault`].
    pub(crate) async fn look(&self) -> Result<Option<Look>, NodeFault> {
        let rows = answered(self.client.query(&self.look, &[&LOCK])).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        Ok(Some(Look {
            now_us: number(first, 0)?,
            nodes: rows.iter().map(node_row).collect::<Result<_, _>>()?,
        }))
    }

    /// Declares a node gone whose lock or lease is lost. Returns whether this call did it.
    ///
    /// # Errors
    /// [`NodeFault`].
    pub(crate) async fn declare_gone(&self, id: &NodeName, incarnation: u64) -> Result<bool, NodeFault> {
        Ok(self.execute(DECLARE_GONE, &[&id.as_str(), &signed(incarnation), &LOCK]).await? > 0)
    }

    /// Says that the node has ended.
    ///
    /// # Errors
    /// [`NodeFault`].
    pub(crate) async fn leave(&self, id: &NodeName, incarnation: u64) -> Result<(), NodeFault> {
        self.execute(LEAVE, &[&id.as_str(), &signed(incarnation)]).await.map(|_| ())
    }

    /// Whether the connection is lost, as far as is known.
    pub(crate) fn is_lost(&self) -> bool {
        self.client.is_closed()
    }

    async fn execute(&self, statement: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, NodeFault> {
        answered(self.client.execute(statement, params)).await
    }
}

async fn connect(reached: &Reached) -> Result<(Client, JoinHandle<()>), OpenError> {
    let (client, connection) = connect_to(reached).await.map_err(|error| failed(&error))?;
    client.batch_execute(SESSION).await.map_err(|error| failed(&error))?;
    Ok((client, connection))
}

/// Whether a pooler gives these connections sessions of others between transactions. A lock would then be held by
/// nobody in particular. While the second connection is within a transaction, the first one asks who it is: with a
/// pooler, either both are the same session, or the first one's has changed.
async fn is_pooled(client: &Client, other: &NodeSession) -> Result<bool, OpenError> {
    async fn pid(client: &Client) -> Result<i32, OpenError> {
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(|error| failed(&error))?;
        row.try_get(0).map_err(|error| failed(&error))
    }
    let first = pid(client).await?;
    other.client.batch_execute("BEGIN").await.map_err(|error| failed(&error))?;
    let between = pid(&other.client).await;
    let again = pid(client).await;
    other.client.batch_execute("COMMIT").await.map_err(|error| failed(&error))?;
    Ok(between? == first || again? != first)
}

fn node_row(row: &Row) -> Result<NodeRow, NodeFault> {
    let id = text(row, 1)?;
    let id = id.parse().map_err(|error| NodeFault(format!("the table of nodes is damaged: {error}")))?;
    Ok(NodeRow {
        id,
        incarnation: number(row, 2)?,
        state: NodeState::parse(&text(row, 3)?)?,
        lease_until_us: number(row, 4)?,
        has_lock: flag(row, 5)?,
        facts: NodeFacts {
            address: text(row, 6)?,
            line: text(row, 7)?,
            build: text(row, 8)?,
            shards: number(row, 9)?,
        },
        load: NodeLoad { rooms: number(row, 10)?, members: number(row, 11)?, permille: number(row, 12)? },
    })
}

async fn answered<T>(
    statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, NodeFault> {
    within(ANSWER_TIME, statement).await.map_err(NodeFault)
}

fn number(row: &Row, column: usize) -> Result<u64, NodeFault> {
    let number: i64 = row.try_get(column).map_err(|error| NodeFault(detail(&error)))?;
    u64::try_from(number).map_err(|_| NodeFault(format!("column {column} of a node is below 0")))
}

fn flag(row: &Row, column: usize) -> Result<bool, NodeFault> {
    row.try_get(column).map_err(|error| NodeFault(detail(&error)))
}

fn text(row: &Row, column: usize) -> Result<String, NodeFault> {
    row.try_get(column).map_err(|error| NodeFault(detail(&error)))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn failed(error: &tokio_postgres::Error) -> OpenError {
    OpenError::Database(detail(error))
}

fn silent() -> OpenError {
    OpenError::Database("PostgreSQL does not answer".to_owned())
}
