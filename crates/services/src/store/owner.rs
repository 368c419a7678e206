//! Ownership of a PostgreSQL store: one server has it alone, or the nodes of a cluster share it.
//!
//! A thread holds a separate connection with an advisory lock, which PostgreSQL releases when the connection's
//! session ends. A server alone holds it exclusively: it caches rooms, bans and timers without asking whether another
//! server changed them. A node holds it in common with other nodes, so a server alone and a node keep each other out.
//! When the connection is lost, the owner is unknown: nothing is written until the lock is held again. A room changed
//! by another server meanwhile is noticed by its version.

use super::error::OpenError;
use super::postgres::{CONNECT_TIMEOUT, Reached, connect_to, detail};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use parlor_server::embed::lock;
use std::sync::{Arc, Mutex};
use std::thread;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// The kind of the lock; the schema identifies the store.
const LOCK: i32 = 7_242_696;
/// Interval of checks of the connection, and of attempts to reconnect.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a starting server waits for one that is ending.
const WAIT_FOR_OTHER: &str = "2s";
/// Keep-alive settings: PostgreSQL notices within half a minute that the session's machine is gone.
const SESSION: &str =
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
     SET idle_session_timeout = 0; SET statement_timeout = '5s'";

/// Who may have the store at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// This server alone.
    Alone,
    /// All nodes of a cluster.
    Nodes,
}

impl Sharing {
    /// The statement that waits for the lock. Its parameter is [`LOCK`].
    const fn statement(self) -> &'static str {
        match self {
            Sharing::Alone => "SELECT pg_advisory_lock($1, hashtext(current_schema()))",
            Sharing::Nodes => "SELECT pg_advisory_lock_shared($1, hashtext(current_schema()))",
        }
    }
}

/// A connection, and its task.
type LockSession = (Client, JoinHandle<()>);

/// Whether the lock is held.
#[derive(Debug)]
pub(super) struct LockState(AtomicBool);

impl LockState {
    pub(super) fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, is_held: bool) {
        self.0.store(is_held, Ordering::Release);
    }
}

/// Holds the lock until it is released.
pub(super) struct StoreLock {
    held: Arc<LockState>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl StoreLock {
    /// Takes the lock, and holds it in a thread.
    pub(super) fn take(reached: Reached, sharing: Sharing) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(OpenError::Thread)?;
        let session = runtime.block_on(take(&reached, sharing))?;
        let held = Arc::new(LockState(AtomicBool::new(true)));
        let (stop, stopped) = watch::channel(false);
        let seen = Arc::clone(&held);
        let thread = thread::Builder::new()
            .name("store-owner".to_owned())
            .spawn(move || hold(&runtime, (&reached, sharing), session, &seen, stopped))
            .map_err(OpenError::Thread)?;
        Ok(StoreLock { held, stop, thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn held(&self) -> Arc<LockState> {
        Arc::clone(&self.held)
    }

    /// Ends the session and so releases the lock.
    pub(super) fn let_go(&self) {
        self.held.set(false);
        self.stop.send_replace(true);
        if let Some(thread) = lock(&self.thread).take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Keeps the lock until it is stopped.
fn hold(
    runtime: &Runtime,
    (reached, sharing): (&Reached, Sharing),
    session: LockSession,
    held: &LockState,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let mut session = Some(session);
        loop {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = lost(session.as_mut()) => {}
            }
            if let Some((client, _)) = &session
                && !answers(client).await
            {
                held.set(false);
                session = None;
                tracing::error!("the connection is lost that keeps other servers from this store: nothing is written until there is another one");
            }
            if session.is_none() {
                match take(reached, sharing).await {
                    Ok(taken) => {
                        session = Some(taken);
                        held.set(true);
                        tracing::info!("the store is this server's again");
                    }
                    Err(error) => tracing::warn!(%error, "nothing is written"),
                }
            }
        }
    });
}

/// Waits until the connection is closed. Without a connection it waits forever.
async fn lost(session: Option<&mut LockSession>) {
    match session {
        // Any result means the end.
        Some((_, connection)) => drop(connection.await),
        None => core::future::pending().await,
    }
}

async fn answers(client: &Client) -> bool {
    !client.is_closed()
        && matches!(tokio::time::timeout(CONNECT_TIMEOUT, client.simple_query("SELECT 1")).await, Ok(Ok(_)))
}

/// Connects and takes the lock.
async fn take(reached: &Reached, sharing: Sharing) -> Result<LockSession, OpenError> {
    let away = || OpenError::Database("PostgreSQL does not answer".to_owned());
    let failed = |error: tokio_postgres::Error| OpenError::Database(detail(&error));
    let taking = async {
        let (client, connection) = connect_to(reached).await.map_err(failed)?;
        client.batch_execute(SESSION).await.map_err(failed)?;
        client.batch_execute(&format!("SET lock_timeout = '{WAIT_FOR_OTHER}'")).await.map_err(failed)?;
        match client.execute(sharing.statement(), &[&LOCK]).await {
            Ok(_) => Ok((client, connection)),
            Err(error) if error.code().is_some_and(|code| code.code() == "55P03") => {
                Err(holder(&client).await.unwrap_or_else(|| failed(error)))
            }
            Err(error) => Err(failed(error)),
        }
    };
    tokio::time::timeout(CONNECT_TIMEOUT * 2, taking).await.map_err(|_| away())?
}

/// The session that holds the lock, as an error.
pub(super) async fn holder(client: &Client) -> Option<OpenError> {
    let (holder, pid) = session_with_lock(client, LOCK, None).await?;
    Some(OpenError::InUseBy { holder, pid })
}

/// A session that holds the store's lock of this kind, for a person, and its number. `of` is whose lock it is, if the
/// store has several of this kind.
pub(super) async fn session_with_lock(client: &Client, kind: i32, of: Option<&str>) -> Option<(String, u64)> {
    let statement = "SELECT a.pid, concat_ws(' ', nullif(a.application_name, ''), 'from', coalesce(host(a.client_addr), 'this machine'), 'since',
             to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
         FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
         WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1::int4::oid
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND l.objid = ((hashtext(concat_ws('/', current_schema(), $2::text))::bigint + 4294967296) % 4294967296)::oid";
    let rows = client.query(statement, &[&kind, &of]).await.ok()?;
    let row = rows.first()?;
    let pid = u64::try_from(row.try_get::<_, i32>(0).ok()?).ok()?;
    Some((row.try_get(1).ok()?, pid))
}
