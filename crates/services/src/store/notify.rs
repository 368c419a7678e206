//! `LISTEN` and `NOTIFY` of PostgreSQL, on connections beside the store's.
//!
//! No transaction of the store notifies: PostgreSQL commits those one after another, which ends group commit.

use super::postgres::{CONNECT_TIMEOUT, Reached, connect_to, detail, listen_to, within};
use super::{Backend, Store};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::{Client, Statement};

/// Maximum number of notifications that wait to be handled.
const WAITING_MAX: usize = 4_096;
/// Settings of the connection. What is notified need not survive a crash: a commit does not wait for the disk.
const SESSION: &str =
    "SET synchronous_commit = off; SET statement_timeout = '5s'; SET idle_session_timeout = 0;
     SET client_min_messages = warning";
/// The channel of this store: a channel belongs to a database, which may have several stores in its schemas.
const CHANNEL: &str = "SELECT 'parlor_' || md5(current_schema())";
/// What a connection that tests another one sends.
const TEST: &str = "test";
/// How long the test takes at most.
const TEST_TIME: Duration = Duration::from_secs(5);

/// Where a store's database is.
#[derive(Clone)]
pub(crate) struct ListenerAddress(Reached);

/// A connection that notifies and listens.
pub(crate) struct Listener {
    client: Client,
    notify: Statement,
    channel: String,
    heard: mpsc::Receiver<String>,
    missed: Arc<AtomicBool>,
}

impl Store {
    /// Where listeners connect; `None` for a store in a file.
    pub(crate) fn listener_address(&self) -> Option<ListenerAddress> {
        match &self.inner.backend {
            Backend::File(_) => None,
            Backend::Server(server) => Some(ListenerAddress(server.watchfully_reached())),
        }
    }
}

impl ListenerAddress {
    /// Connects and listens. Errors are for a person.
    pub(crate) async fn listen(&self) -> Result<Listener, String> {
        let (sender, heard) = mpsc::channel(WAITING_MAX);
        let missed = Arc::<AtomicBool>::default();
        let listening = async {
            let client = listen_to(&self.0, sender, Arc::clone(&missed)).await?;
            client.batch_execute(SESSION).await?;
            let channel: String = client.query_one(CHANNEL, &[]).await?.try_get(0)?;
            client.batch_execute(&format!("LISTEN {channel}")).await?;
            let notify = client
                .prepare("SELECT pg_notify($1::text, payload) FROM unnest($2::text[]) AS payload")
                .await?;
            Ok::<_, tokio_postgres::Error>((client, channel, notify))
        };
        let (client, channel, notify) = within(CONNECT_TIMEOUT, listening).await?;
        Ok(Listener { client, notify, channel, heard, missed })
    }

    /// Checks that a listening connection hears another one. A pool that lends its connections for single
    /// transactions, such as PgBouncer's `transaction` mode, hands on no notifications.
    pub(crate) async fn test(&self) -> Result<(), String> {
        let mut listener = self.listen().await?;
        let (client, _connection) = within(CONNECT_TIMEOUT, connect_to(&self.0)).await?;
        let notify = format!("SELECT pg_notify('{}', '{TEST}')", listener.channel);
        within(TEST_TIME, client.batch_execute(&notify)).await?;
        let heard = async {
            while let Some(payload) = listener.heard.recv().await {
                if payload == TEST {
                    return true;
                }
            }
            false
        };
        if timeout(TEST_TIME, heard).await == Ok(true) {
            return Ok(());
        }
        let sentence = "what one connection notifies does not reach another one that listens. A pool between them, such as \
             PgBouncer in transaction mode, hands on no notifications: name PostgreSQL itself or a pool of sessions";
        Err(sentence.to_owned())
    }
}

impl Listener {
    /// Notifies all listeners, this one among them.
    pub(crate) async fn notify(&self, payloads: &[String]) -> Result<(), String> {
        let sent = self.client.execute(&self.notify, &[&self.channel, &payloads]).await;
        sent.map(|_| ()).map_err(|error| detail(&error))
    }

    /// Waits for the next notification; `None` at the connection's end. Cancel-safe.
    pub(crate) async fn heard(&mut self) -> Option<String> {
        self.heard.recv().await
    }

    /// Whether some were dropped since the last question, because too many waited.
    pub(crate) fn has_missed(&self) -> bool {
        self.missed.swap(false, Ordering::Relaxed)
    }

    /// Checks that the server answers.
    pub(crate) async fn check(&self) -> Result<(), String> {
        self.client.batch_execute("").await.map_err(|error| detail(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres;
    use parlor_testing::within;
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Child, Command, Stdio};

    /// A PgBouncer before the PostgreSQL of the tests, if both are there.
    struct Pool {
        server: Child,
        port: u16,
        _folder: tempfile::TempDir,
    }

    impl Drop for Pool {
        fn drop(&mut self) {
            let _ = self.server.kill();
            let _ = self.server.wait();
        }
    }

    fn pool(mode: &str) -> Option<Pool> {
        let server: tokio_postgres::Config = std::env::var("PARLOR_POSTGRES").ok()?.parse().unwrap();
        let [tokio_postgres::config::Host::Unix(place)] = server.get_hosts() else { return None };
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "[databases]\n* = host={} port={} user=parlor\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\n",
            place.display(),
            server.get_ports()[0]
        );
        let path = folder.path().join("settings");
        std::fs::write(&path, settings).unwrap();
        // It refuses to run as root, as PostgreSQL does.
        let program = "if [ \"$(id -u)\" = 0 ]; then exec setpriv --reuid=postgres --regid=postgres --clear-groups pgbouncer \"$0\"; else exec pgbouncer \"$0\"; fi";
        let has_it = Command::new("sh").args(["-c", "command -v pgbouncer"]).stdout(Stdio::null()).status();
        if !has_it.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut starting = Command::new("sh");
        starting.args(["-c", program]).arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        Some(Pool { server: starting.spawn().unwrap(), port, _folder: folder })
    }

    async fn tested(pool: &Pool) -> Result<(), String> {
        let address = format!("postgres://parlor@127.0.0.1:{}/postgres", pool.port);
        let address = ListenerAddress(postgres::parse(&address).unwrap());
        within(async {
            while address.listen().await.is_err() {
                tokio::task::yield_now().await;
            }
            address.test().await
        })
        .await
    }

    #[tokio::test]
    async fn a_pool_that_lends_connections_for_transactions_is_refused_by_what_to_do() {
        let (Some(sessions), Some(transactions)) = (pool("session"), pool("transaction")) else { return };
        tested(&sessions).await.unwrap();
        let error = tested(&transactions).await.unwrap_err();
        assert!(error.contains("PgBouncer in transaction mode"), "{error}");
    }
}
