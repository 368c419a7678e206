//! Errors of the store.

use parlor_server::realm::InvalidId;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a verb of the [`Store`](super::Store) was not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The disk is full, the database is away or stalls, or the queue is full. A write that was under way may
    /// still have been done: check by its version or id.
    #[error("the store is unavailable: {reason}. Try again in {retry_after_ms} ms")]
    Unavailable {
        /// When it is worth another try.
        retry_after_ms: u64,
        /// What is wrong, for the log of the operator.
        reason: String,
    },
    /// Another write came first.
    #[error("another write came first: the room is at version {current}. Load it and decide again")]
    Stale {
        /// The version that the room has.
        current: u64,
    },
    /// The id, code or credential belongs to something else.
    #[error("the {what} is taken: choose another one")]
    Taken {
        /// Which name it is.
        what: &'static str,
    },
    /// The store has as many bytes as it may have.
    #[error(
        "the store is full: it may have {max_bytes} bytes. Delete rooms, matches or accounts, wait until old ones are \
         deleted, or have the operator start the server with a greater --data-max"
    )]
    Full {
        /// As many as it may have.
        max_bytes: u64,
    },
    /// An account or an app has as much as it may have.
    #[error("{what} are too many: {sentence}")]
    Quota {
        /// Of what there is too much.
        what: &'static str,
        /// How much there may be, and what to do.
        sentence: String,
    },
    /// There is no such thing in this realm.
    #[error("there is no such {what} here: check its id, and the app and environment")]
    Missing {
        /// What was looked for.
        what: &'static str,
    },
    /// The last credential: without it the account could not sign in.
    #[error("this is the account's last credential: link another one before it is unlinked")]
    LastCredential,
    /// An account has as many credentials as it may have.
    #[error("this account has {max} ways to sign in, which is the most: unlink one of them first")]
    TooManyCredentials {
        /// How many it may have.
        max: u64,
    },
    /// An account is in too many rooms in which players come together.
    #[error(
        "this account is in {max} rooms that wait for players, which is the most: leave one of them, or wait until a game begins"
    )]
    TooManyRooms {
        /// How many there may be.
        max: u64,
    },
    /// What was given can never be stored.
    #[error("{what} cannot be stored: {sentence}")]
    Invalid {
        /// Which argument.
        what: &'static str,
        /// What is wrong with it, and what would be right.
        sentence: String,
    },
    /// What is stored cannot be read, or the database refuses a statement that is the server's own.
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

/// Why there is no store.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address is none.
    #[error("`{address}` is no store: {sentence}")]
    Address {
        /// As it was given, without a password.
        address: String,
        /// What a store's address looks like.
        sentence: &'static str,
    },
    /// The file cannot be made or opened.
    #[error("the store in {} cannot be opened: {error}. Name a folder that this user may write to", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// Another server has it.
    #[error("the store in {} is in use by another server: stop that one, or name another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another server has the database.
    #[error(
        "the store in this PostgreSQL database is in use by another server ({holder}): stop that one, or name another database. If its machine is gone, \
         end its session: SELECT pg_terminate_backend({pid})"
    )]
    InUseBy {
        /// Which session has it, as PostgreSQL says.
        holder: String,
        /// The process of PostgreSQL that serves that session.
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
    /// There is a log, and nothing that it could belong to.
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
    /// The file is no sound database.
    #[error("the store in {} is damaged: {sentence}. Put a backup in its place with `parlor admin restore`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        sentence: String,
    },
    /// A newer Parlor made it.
    #[error(
        "the store was made by a newer Parlor (its layout is {found}, this server knows {known}): start the newer \
         server, or restore a backup of the older one"
    )]
    Newer {
        /// The number in the store.
        found: u64,
        /// The newest number that this server knows.
        known: u64,
    },
    /// The database answers with an error.
    #[error("the store cannot be opened: {0}")]
    Database(String),
    /// A thread could not be started.
    #[error("a thread of the store could not be started: {0}")]
    Thread(io::Error),
}

/// Why there is no backup.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The backup of a PostgreSQL server is PostgreSQL's.
    #[error("a PostgreSQL store is backed up with PostgreSQL's own tools: run pg_dump")]
    NotOurs,
    /// Nothing is overwritten.
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
        /// What the operating system says.
        error: io::Error,
    },
    /// What was written is not a sound store.
    #[error("{} is no sound backup: {sentence}", path.display())]
    Unsound {
        /// The file.
        path: PathBuf,
        /// What was found.
        sentence: String,
    },
}

/// Why a backup is not in the place of a store.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The backup of a PostgreSQL server is PostgreSQL's.
    #[error("a PostgreSQL store is restored with PostgreSQL's own tools: run pg_restore or psql")]
    NotOurs,
    /// The store cannot be had, because a server runs or its address is none.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The backup is none.
    #[error("nothing was restored, and the store is as it was: {0}")]
    Backup(BackupError),
    /// The backup is the store.
    #[error("{} is the store itself: name a backup of it", path.display())]
    Itself {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written, read or given a name.
    #[error(
        "the store {} could not be restored: {}: {error}. The store is as it was; check who may write to its folder, and the space \
         on its disk",
        store.display(),
        path.display()
    )]
    File {
        /// The store's file.
        store: PathBuf,
        /// The file that it is about.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
}
