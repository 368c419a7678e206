//! The durable store: data that outlives a server. Acknowledged means durable.
//!
//! A [`Store`] is a cheap handle to clone. Its methods are futures: accounts, credentials, sign-ins, turn
//! rooms, kept matches, inboxes, outgoing webhooks, bans, secrets. Data of one
//! [`Realm`](parlor_server::realm::Realm) is invisible in another.
//!
//! Writes wait in a bounded queue. One thread takes all waiting writes, runs them in one transaction,
//! commits, and only then answers them. Other threads read. If the disk is full, the database away or a
//! commit slow, a method returns [`StoreError::Unavailable`] within a bounded time, and nothing else in the
//! server waits for it. A write whose caller has given up is not begun.
//!
//! The statements are beside their methods and the same for SQLite and PostgreSQL (`sql.rs` has the rules).
//! Only `sqlite.rs` and `postgres.rs` know the database.

mod accounts;
mod address;
mod backup;
mod bans;
mod board_log;
mod boards;
mod claims;
mod cluster;
mod definitions;
mod due;
mod entries;
mod error;
mod events;
mod friends;
mod holdings;
mod ids;
mod inbox;
mod inspect;
mod layouts;
mod limits;
mod line;
mod lives;
mod locks;
mod matches;
mod matching;
mod messages;
mod moves;
mod node;
mod nodes;
mod notify;
mod objects;
mod once;
mod orders;
mod owner;
mod postgres;
mod presence;
mod progress;
mod ratings;
mod restore;
mod rooms;
mod saves;
mod secrets;
mod seen;
mod sign_ins;
mod sql;
mod sqlite;
mod types;
mod webhooks;
mod worker;

pub use backup::{BackupFacts, check_backup};
pub use board_log::LoggedChanges;
pub use boards::{BOARD_BYTES_MAX, BOARDS_MAX, BoardNumber, EndedSeason, StoredBoard, StoredSeason};
pub(crate) use claims::{ClaimedRow, RoomClaim, TakenRoom};
pub(crate) use cluster::{
    Counts, EnteredRow, FoundRoom, ListedRoom, LiveListing, LivePage, LiveQuery, MatchQuery, NewLiveRoom,
    OwnedRow, Owner, RoomKey, StoredRoster,
};
pub use definitions::{DEFINITION_BYTES_MAX, DEFINITIONS_MAX, DefinitionKind, StoredDefinition};
pub use entries::{
    EntryChange, EntryDetails, EntryWatch, LOADED_MAX, NewScore, OwnEntry, Receipt, SCORES_MAX, ScoreRefusal,
    Scored,
};
pub use error::{BackupError, OpenError, RestoreError, StoreError};
pub use friends::{Friend, FriendChange};
pub use holdings::Holding;
pub use ids::{AccountId, RoomId, SignInId};
pub use inspect::{StoreFacts, StoreState, inspect};
pub use limits::{
    DATA_MAX, DATA_MIN, GUEST_BYTES, LOG_BYTES, Limits, OBJECT_BYTES, OPEN_ROOMS, ROOM_BYTES, SAVE_BYTES,
};
pub use lives::{RoomLife, Swept, Unseen};
pub use matches::{
    Appended, CUT_FULL, CUT_QUOTA, ENTRY_BYTES_MAX, GROUP_ENTRIES_MAX, KeptMatch, LOG_PAGE_BYTES,
    MATCH_BYTES_MAX, MatchEnding, MatchEntry, NewMatch,
};
pub use messages::{NewMessage, StoredMessage};
pub use node::{InvalidNodeName, NodeName};
pub(crate) use nodes::{
    Look, NodeFacts, NodeFault, NodeLoad, NodeLock, NodeRow, NodeSession, NodeState, Renewed,
};
pub(crate) use notify::{Listener, ListenerAddress};
pub use objects::{Expects, NewObject, Object, ObjectKey, ObjectRefused, ObjectsWritten};
pub(crate) use orders::{OVERLAP as ORDERS_OVERLAP, Order, OrderKind};
pub(crate) use presence::{PresenceRow, Saying};
pub use progress::{
    NewStatistic, OwnStatistic, STATISTICS_MAX, TOTAL_DAYS, Total, Written, WrittenStatistics,
};
pub use ratings::{RatedPlayer, ResultOutcome, ResultTeam};
pub use restore::{Restored, restore};
pub use saves::{NewSave, SaveInfo, SaveOutcome};
pub use types::{
    Account, AccountKind, BODY_BYTES_MAX, Ban, CREDENTIALS_MAX, CommitKind, Credential, CredentialKind,
    CredentialOwner, DOCUMENT_BYTES_MAX, DueRoom, EFFECTS_MAX, Effects, EndedSignIn, GATHERING_ROOMS_MAX,
    INBOX_MAX, Inbox, NOTICE_BYTES_MAX, NewNotice, NewRoom, NewWebhook, Notice, OUTBOX_BYTES_MAX, OUTBOX_MAX,
    Outbox, PAGE_BYTES_MAX, PAGE_MAX, Page, ROOM_PLAYERS_MAX, Role, Room, RoomListing, RoomNow, RoomState,
    Rotated, Rotation, SIGN_INS_MAX, SignIn, Stage, TEXT_BYTES_MAX, Webhook,
};

use address::Address;
pub(crate) use address::Protection;
use core::sync::atomic::Ordering;
use core::time::Duration;
use limits::{Gauge, Growth};
use line::{Line, PendingJob, Then};
use owner::Sharing;
use sql::{Done, Sql};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use worker::{Connect, Connection, Pulse, unavailable};

/// Reading threads. A read takes about ten microseconds, and a slow one must not delay all others.
const READERS: usize = 2;
/// Maximum bytes of documents and bodies that wait for a write.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Time in which a failed write is taken as a sign that the next one may fail too.
const FAILURE_COUNTS_FOR: Duration = Duration::from_secs(30);

/// Options of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether an acknowledged write is on the disk.
    pub durability: Durability,
    /// Maximum number of waiting writes, and as many reads. Beyond that callers must retry.
    pub waiting_max: usize,
    /// Time limit of a method's wait for its answer.
    pub answer_limit: Duration,
    /// Time to retry for a rejected caller.
    pub retry_after: Duration,
    /// Its limits.
    pub limits: Limits,
    /// The name of this node of a cluster; `None` for a server that has the store alone. Nodes share a PostgreSQL
    /// store.
    pub node: Option<NodeName>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::Full,
            waiting_max: 4096,
            answer_limit: Duration::from_secs(3),
            retry_after: Duration::from_secs(1),
            limits: Limits::default(),
            node: None,
        }
    }
}

/// Whether an acknowledged write is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Yes.
    #[default]
    Full,
    /// No: a power cut loses acknowledged writes, and may leave a damaged file. For measuring the cost of
    /// durability.
    None,
}

/// Counters of a store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Committed transactions.
    pub groups: u64,
    /// Writes in them, including those refused as stale or taken.
    pub writes: u64,
    /// Writes that failed at the database.
    pub failed: u64,
    /// Calls rejected because too many waited or the database stalled.
    pub turned_away: u64,
    /// Waiting writes.
    pub waiting: u64,
    /// Total time of transactions, in microseconds.
    pub busy_us: u64,
    /// Bytes of the store in use when last measured; 0 before the first write.
    pub bytes: u64,
    /// The limit of bytes.
    pub bytes_max: u64,
    /// Writes refused because the store was full.
    pub refused_full: u64,
    /// Writes refused by a quota.
    pub refused_quota: u64,
}

/// A handle on a store. Dropping the last one closes the store, after the waiting writes.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    options: Options,
    writes: Arc<Line>,
    reads: Arc<Line>,
    pulse: Arc<Pulse>,
    watch: OnceLock<Arc<dyn EntryWatch>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The kind of database.
#[derive(Clone, Debug)]
enum Backend {
    File(Arc<sqlite::Owned>),
    Server(Arc<postgres::Server>),
}

impl Store {
    /// Opens the store at a path, `sqlite://PATH` or `postgres://USER@HOST/DATABASE`. Creates it if it does
    /// not exist.
    ///
    /// # Errors
    ///
    /// [`OpenError`] describes what to do.
    pub async fn open(address: &str) -> Result<Store, OpenError> {
        Self::open_with(address, Options::default()).await
    }

    /// As [`Store::open`], with other options.
    ///
    /// # Errors
    ///
    /// [`OpenError`] describes what to do.
    pub async fn open_with(address: &str, options: Options) -> Result<Store, OpenError> {
        let address = Address::parse(address)?;
        let opened = tokio::task::spawn_blocking(move || Inner::open(&address, options)).await;
        let inner = opened.map_err(|error| OpenError::Database(format!("opening it failed: {error}")))??;
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Closes the store after the waiting writes, for all handles: methods are unavailable from here on. A
    /// file is then complete without its log. Waits for the disk, so do not call it on a thread on which
    /// others depend.
    pub fn close(&self) {
        self.inner.close();
    }

    /// The counters since the store was opened.
    pub fn counters(&self) -> Counters {
        let pulse = &self.inner.pulse;
        Counters {
            groups: pulse.groups.load(Ordering::Relaxed),
            writes: pulse.writes.load(Ordering::Relaxed),
            failed: pulse.failed.load(Ordering::Relaxed),
            turned_away: pulse.refused.load(Ordering::Relaxed),
            waiting: self.inner.writes.len() as u64,
            busy_us: pulse.busy_us.load(Ordering::Relaxed),
            bytes: pulse.size.bytes.load(Ordering::Relaxed),
            bytes_max: self.inner.options.limits.data_max.max(DATA_MIN),
            refused_full: pulse.size.refused_full.load(Ordering::Relaxed),
            refused_quota: pulse.size.refused_quota.load(Ordering::Relaxed),
        }
    }

    /// Whether writes are accepted, as far as known without a test.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] while a commit stalls, or shortly after one failed.
    pub fn state(&self) -> Result<(), StoreError> {
        let reason = match () {
            () if !self.inner.backend.is_ours() => "its connection that keeps others out is lost",
            () if self.inner.pulse.is_stalled(self.inner.options.answer_limit) => "the database stands still",
            () if self.inner.pulse.has_failed_within(FAILURE_COUNTS_FOR) => "the last write failed",
            () => return Ok(()),
        };
        Err(unavailable(reason, self.inner.options.retry_after))
    }

    /// Checks that the database answers, and [accepts writes](Self::state).
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn answers(&self) -> Result<(), StoreError> {
        self.state()?;
        self.read(|sql| sql.rows("SELECT number FROM parlor_layout", &[]).map(|_| ())).await
    }

    /// A write that adds data.
    async fn write<T, F>(&self, bytes: usize, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<T> + Send + 'static,
    {
        self.write_as(Growth::Adds, bytes, work).await
    }

    /// A write that deletes, acknowledges or administers: a full store accepts it too.
    async fn write_sparing<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<T> + Send + 'static,
    {
        self.write_as(Growth::Spares, 0, work).await
    }

    async fn write_as<T, F>(&self, growth: Growth, bytes: usize, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<T> + Send + 'static,
    {
        self.write_then((growth, bytes), work, None).await
    }

    /// A write that changes entries of boards. The [`EntryWatch`] hears of them after the commit.
    async fn write_told<T, F>(&self, growth: Growth, bytes: usize, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<(T, Vec<EntryChange>)> + Send + 'static,
    {
        let watch = self.inner.watch.get().cloned();
        let then = watch.map(|watch| -> Then<(T, Vec<EntryChange>)> {
            Box::new(move |(_, changes), is_sure| match (changes.is_empty(), is_sure) {
                (true, _) => {}
                (false, true) => watch.committed(changes),
                (false, false) => watch.unsure(changes),
            })
        });
        self.write_then((growth, bytes), work, then).await.map(|(made, _)| made)
    }

    async fn write_then<T, F>(
        &self,
        weight: (Growth, usize),
        work: F,
        then: Option<Then<T>>,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<T> + Send + 'static,
    {
        // While a commit stalls, new calls would wait in vain.
        if self.inner.pulse.is_stalled(self.inner.options.answer_limit) {
            return Err(self.turned_away("the database stands still"));
        }
        let done = self.ask(&self.inner.writes, weight, work, then).await;
        if matches!(done, Err(StoreError::Quota { .. })) {
            self.inner.pulse.size.refused_quota.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<T> + Send + 'static,
    {
        self.ask(&self.inner.reads, (Growth::Spares, 0), work, None).await
    }

    async fn ask<T, F>(
        &self,
        line: &Line,
        weight: (Growth, usize),
        work: F,
        then: Option<Then<T>>,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Sql) -> Done<T> + Send + 'static,
    {
        let (task, answer) = PendingJob::new(weight, work);
        if !line.put(Box::new(task.then(then)), weight.1) {
            return Err(self.turned_away("too many wait for it"));
        }
        match tokio::time::timeout(self.inner.options.answer_limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(self.turned_away("its thread ended before the answer")),
            Err(_) => Err(self.turned_away("it did not answer in time")),
        }
    }

    /// The name of this node of a cluster; `None` for a server that has the store alone.
    pub fn node(&self) -> Option<&NodeName> {
        self.inner.options.node.as_ref()
    }

    /// Whether other nodes of a cluster write to the store too.
    pub fn is_shared(&self) -> bool {
        self.node().is_some()
    }

    fn limits(&self) -> Limits {
        self.inner.options.limits
    }

    fn turned_away(&self, reason: &str) -> StoreError {
        self.inner.pulse.refused.fetch_add(1, Ordering::Relaxed);
        unavailable(reason, self.inner.options.retry_after)
    }
}

impl Inner {
    fn open(address: &Address, options: Options) -> Result<Inner, OpenError> {
        let sharing = if options.node.is_some() { Sharing::Nodes } else { Sharing::Alone };
        let backend = match address {
            Address::Sqlite(path) if options.node.is_none() => Backend::File(Arc::new(sqlite::own(path)?)),
            Address::Sqlite(path) => return Err(OpenError::FileOfNodes { path: path.clone() }),
            Address::Postgres(server) => Backend::Server(Arc::new(postgres::own(server, sharing)?)),
        };
        backend.migrate()?;
        let inner = Inner {
            writes: Arc::new(Line::new(options.waiting_max, WAITING_BYTES_MAX)),
            reads: Arc::new(Line::new(options.waiting_max, WAITING_BYTES_MAX)),
            pulse: Arc::new(Pulse::new()),
            watch: OnceLock::new(),
            threads: Mutex::default(),
            backend,
            options,
        };
        inner.start()?;
        Ok(inner)
    }

    fn start(&self) -> Result<(), OpenError> {
        let retry_after = self.options.retry_after;
        let (line, pulse) = (Arc::clone(&self.writes), Arc::clone(&self.pulse));
        let mut connection = Connection::new(self.backend.writer(self.options.durability));
        let gauge = Gauge::new(self.options.limits);
        self.spawn("store-commit", move || {
            worker::commit_all(&line, &pulse, &mut connection, gauge, retry_after);
        })?;
        for _ in 0..READERS {
            let line = Arc::clone(&self.reads);
            let mut connection = Connection::new(self.backend.reader());
            self.spawn("store-read", move || worker::read_all(&line, &mut connection, retry_after))?;
        }
        Ok(())
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work).map_err(OpenError::Thread)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }
}

impl Inner {
    fn close(&self) {
        self.writes.close();
        self.reads.close();
        // A thread that the disk blocks cannot be joined; it keeps its file locked until it ends.
        if self.pulse.is_stalled(self.options.answer_limit) {
            return;
        }
        let threads = core::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if threads.is_empty() {
            return;
        }
        for thread in threads {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
        self.backend.close();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl core::fmt::Debug for Inner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Store")
            .field("backend", &self.backend)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Backend {
    fn migrate(&self) -> Result<(), OpenError> {
        match self {
            Backend::File(file) => {
                let mut sql = sqlite::writer(&file.path, Durability::Full).map_err(layouts::failed)?;
                layouts::migrate(sql.as_mut(), layouts::SQLITE)?;
                drop(sql);
                sqlite::mark_open(&file.path).map_err(layouts::failed)
            }
            Backend::Server(server) => {
                let mut sql = postgres::connect(server, Durability::Full, None).map_err(layouts::failed)?;
                layouts::migrate(sql.as_mut(), layouts::POSTGRES)
            }
        }
    }

    /// Leaves a file that is complete without its log, and releases a database for another server.
    fn close(&self) {
        match self {
            Backend::File(file) => {
                if let Err(fault) = sqlite::close(&file.path) {
                    let error = layouts::failed(fault);
                    tracing::warn!(path = %file.path.display(), %error, "the store's log stays beside it: copy both files or none");
                }
            }
            Backend::Server(server) => server.let_go(),
        }
    }

    fn writer(&self, durability: Durability) -> Connect {
        match self {
            Backend::File(file) => {
                let file = Arc::clone(file);
                Box::new(move || sqlite::writer(&file.path, durability))
            }
            Backend::Server(server) => {
                let server = Arc::clone(server);
                Box::new(move || postgres::connect(&server, durability, Some(server.owner())))
            }
        }
    }

    fn reader(&self) -> Connect {
        match self {
            Backend::File(file) => {
                let file = Arc::clone(file);
                Box::new(move || sqlite::reader(&file.path))
            }
            Backend::Server(server) => {
                let server = Arc::clone(server);
                Box::new(move || postgres::connect(&server, Durability::Full, None))
            }
        }
    }

    /// Whether the store is surely this server's. It is not while the connection with the lock is lost.
    fn is_ours(&self) -> bool {
        match self {
            Backend::File(_) => true,
            Backend::Server(server) => server.owner().is_held(),
        }
    }

    /// The file of an SQLite store.
    fn file(&self) -> Option<PathBuf> {
        match self {
            Backend::File(file) => Some(file.path.clone()),
            Backend::Server(_) => None,
        }
    }
}
