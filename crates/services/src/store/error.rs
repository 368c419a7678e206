//! Errors of the store.

use super::node::NodeName;
use parlor_server::realm::InvalidId;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a method of the [`Store`](super::Store) failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The disk is full, the database is unreachable or stalls, or the queue is full. A write in progress may
    /// still have been done: check by its version or id.
    #[error("the store is unavailable: {reason}. Try again in {retry_after_ms} ms")]
    Unavailable {
        /// Time to the next try.
        retry_after_ms: u64,
        /// The cause, for the operator's log.
        reason: String,
    },
    /// Another write came first.
    #[error("another write came first: the room is at version {current}. Load it and decide again")]
    Stale {
        /// The room's current version.
        current: u64,
    },
    /// The id, code or credential is in use.
    #[error("the {what} is taken: choose another one")]
    Taken {
        /// Which of these.
        what: &'static str,
    },
    /// The store has reached its limit of bytes.
    #[error(
        "the store is full: it may have {max_bytes} bytes. Delete rooms, matches or accounts, wait until old ones are \
         deleted, or have the operator start the server with a greater --data-max"
    )]
    Full {
        /// The limit.
        max_bytes: u64,
    },
    /// An account or an app has reached its quota.
    #[error("{what} are too many: {sentence}")]
    Quota {
        /// The kind of quota.
        what: &'static str,
        /// The quota, and what to do.
        sentence: String,
    },
    /// It does not exist in this realm.
    #[error("there is no such {what} here: check its id, and the app and environment")]
    Missing {
        /// The kind of what was not found.
        what: &'static str,
    },
    /// The last credential: without it the account could not sign in.
    #[error("this is the account's last credential: link another one before it is unlinked")]
    LastCredential,
    /// An account has reached its limit of credentials.
    #[error("this account has {max} ways to sign in, which is the most: unlink one of them first")]
    TooManyCredentials {
        /// The limit.
        max: u64,
    },
    /// An account is in too many rooms that wait for players.
    #[error(
        "this account is in {max} rooms that wait for players, which is the most: leave one of them, or wait until a game begins"
    )]
    TooManyRooms {
        /// The limit.
        max: u64,
    },
    /// The argument can never be stored.
    #[error("{what} cannot be stored: {sentence}")]
    Invalid {
        /// Which argument.
        what: &'static str,
        /// What is wrong, and what would be valid.
        sentence: String,
    },
    /// Stored data is unreadable, or the database rejects a statement of the server.
    #[error(
        "the store is damaged or was changed by something else: {0}. Check it with `integrity_check`, or restore a backup"
    )]
    Damaged(String),
}

impl From<InvalidId> for StoreError {
    fn from(InvalidId { what, sentence }: InvalidId) -> Self {
        StoreError::Invalid { what, sentence }
    }
}

/// Why the store could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address is invalid.
    #[error("`{address}` is no store: {sentence}")]
    Address {
        /// The given address, without a password.
        address: String,
        /// The expected form of an address.
        sentence: &'static str,
    },
    /// The file cannot be created or opened.
    #[error("the store in {} cannot be opened: {error}. Name a folder that this user may write to", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// Another server is using it.
    #[error("the store in {} is in use by another server: stop that one, or name another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Several nodes cannot share a file.
    #[error("the store in {} is a file, which one server has alone: nodes share a store in PostgreSQL", path.display())]
    FileOfNodes {
        /// The file.
        path: PathBuf,
    },
    /// A server runs as this node.
    #[error(
        "a node {node} of this store is running ({holder}): stop that one, or start this one with another name. If its machine is gone, end its session: \
         SELECT pg_terminate_backend({pid})"
    )]
    NodeRuns {
        /// The name.
        node: NodeName,
        /// The session that holds its lock, as PostgreSQL reports it.
        holder: String,
        /// The session's process id.
        pid: u64,
    },
    /// A pooler hands out the sessions of PostgreSQL by the transaction.
    #[error(
        "the store is reached through a pooler that shares sessions between transactions: a node holds a lock of its session. Name PostgreSQL itself, or a \
         pool of whole sessions"
    )]
    Pooled,
    /// Another server is using the database.
    #[error(
        "the store in this PostgreSQL database is in use by another server ({holder}): stop that one, or name another database. Nodes of a cluster share \
         one, each started with --node. If its machine is gone, end its session: SELECT pg_terminate_backend({pid})"
    )]
    InUseBy {
        /// The session that holds it, as PostgreSQL reports it.
        holder: String,
        /// The PostgreSQL process of that session.
        pid: u64,
    },
    /// The newest writes are in a missing log.
    #[error(
        "the store in {} lacks its log {}-wal: copy both files of a server that was not stopped, or put a backup there with `parlor admin restore`",
        path.display(),
        path.display()
    )]
    LogMissing {
        /// The file.
        path: PathBuf,
    },
    /// There is a log without its file.
    #[error(
        "the store's file {} is empty or missing, and beside it is a log of a store: put the file back that belongs to {}-wal, or a backup with \
         `parlor admin restore`",
        path.display(),
        path.display()
    )]
    FileEmpty {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("the store in {} is damaged: {sentence}. Put a backup in its place with `parlor admin restore`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error that the check found.
        sentence: String,
    },
    /// The layout is newer than this server.
    #[error(
        "the store was made by a newer Parlor (its layout is {found}, this server knows {known}): start the newer \
         server, or restore a backup of the older one"
    )]
    Newer {
        /// The layout in the store.
        found: u64,
        /// The newest layout of this server.
        known: u64,
    },
    /// The database reports an error.
    #[error("the store cannot be opened: {0}")]
    Database(String),
    /// A thread could not be started.
    #[error("a thread of the store could not be started: {0}")]
    Thread(io::Error),
}

/// Why a backup failed.
#[derive(Debug, Error)]
pub enum BackupError {
    /// PostgreSQL's own tools make backups of a PostgreSQL store.
    #[error("a PostgreSQL store is backed up with PostgreSQL's own tools: run pg_dump")]
    NotOurs,
    /// The file exists, and is not overwritten.
    #[error("{} is there already: name a file that is not", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written or read.
    #[error("the backup {} failed: {error}. Check the path and the space on its disk", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The written file is not a sound store.
    #[error("{} is no sound backup: {sentence}", path.display())]
    Unsound {
        /// The file.
        path: PathBuf,
        /// The error that the check found.
        sentence: String,
    },
}

/// Why a backup was not restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// PostgreSQL's own tools restore a PostgreSQL store.
    #[error("a PostgreSQL store is restored with PostgreSQL's own tools: run pg_restore or psql")]
    NotOurs,
    /// The store cannot be opened, because a server is running or its address is invalid.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The backup is not valid.
    #[error("nothing was restored, and the store is as it was: {0}")]
    Backup(BackupError),
    /// The backup is the store itself.
    #[error("{} is the store itself: name a backup of it", path.display())]
    Itself {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written, read or renamed.
    #[error(
        "the store {} could not be restored: {}: {error}. The store is as it was; check who may write to its folder, and the space \
         on its disk",
        store.display(),
        path.display()
    )]
    File {
        /// The store's file.
        store: PathBuf,
        /// The file of the error.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
}
