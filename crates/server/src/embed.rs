//! The interface between a server and the services beside its rooms. The services, accounts and rooms over a
//! store, are a library of their own: `parlor-services`.
//!
//! A server without services is complete: it relays rooms, and stores nothing.
//! [`Server::start_with`](crate::Server::start_with) starts one with services. It opens its ports, gives the
//! services [`Parts`] of itself, and calls the methods of [`Services`].
//!
//! This API may change at any time, together with `parlor-services`, its only user.

pub use crate::access::{Access, OpenGuess};
pub use crate::admission::crypto::install as install_crypto;
pub use crate::admission::issue::read_public;
pub use crate::admission::ticket::{TicketKey, Tickets};
pub use crate::clock::Clock;
pub use crate::http::{AskedFrom, bearer};
pub use crate::kept::KeptQuota;
pub use crate::match_log_queue::{Mark, MatchKey, MatchLogReceiver, QueuedEntry};
pub use crate::metrics::{Figures, Label, Metrics, OPERATIONS_MAX};
pub use crate::mutex::lock;
pub use crate::node::{ElsewhereRoom, FoundElsewhere, Node, Wanted};
pub use crate::pace::Pace;
pub use crate::quic::GOING_DOWN;
pub use crate::shard::{Shards, Stopped};
pub use crate::system::{memory_bytes, random, unix_ms, unix_s};

use crate::time::Time;
use axum::Router;
use futures_util::future::BoxFuture;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parlor_hub::Origin;
use parlor_transport::discovery::ServerAddress;
use std::sync::Arc;

/// A server's calls to its services. They have their own threads: no call delays a room's packets.
pub trait Services: Send + Sync {
    /// The handler of HTTP below `/v1`. A request has its [`AskedFrom`] among its extensions.
    fn routes(&self) -> Router;

    /// Serves a WebSocket of `/v1/socket` until it ends. `token` is that of its HTTP request.
    fn serve_socket(&self, io: TokioIo<Upgraded>, origin: Origin, token: Option<String>)
    -> BoxFuture<'_, ()>;

    /// Whether a token is an operator's. Operators' requests are answered when all places are taken.
    fn is_of_operator(&self, token: String) -> BoxFuture<'_, bool>;

    /// Whether the store accepts writes, as far as known without a test. Errors: the cause, for a person.
    fn store_state(&self) -> Result<(), String>;

    /// Checks that the store answers. Errors: the cause, for a person.
    fn store_answers(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Memory held for peers.
    fn held(&self) -> MemoryHeld;

    /// Writes their metrics.
    fn write_figures<'a>(&'a self, to: &'a mut Figures) -> BoxFuture<'a, ()>;

    /// The node that the server is; `None` for a server that is alone.
    fn node(&self) -> Option<Arc<dyn Node>> {
        None
    }

    /// Notifies their connections of the shutdown.
    fn say_goodbye(&self) -> BoxFuture<'_, ()>;

    /// Stores pending work, and ends. The rooms have already ended.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// Memory that the services hold for peers, counted against its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryHeld {
    /// Bytes of inputs being read, and of unread answers and notices.
    pub unread_bytes: usize,
    /// The maximum of `unread_bytes` so far.
    pub unread_bytes_most: usize,
    /// Requests rejected for this limit.
    pub unread_refused: u64,
    /// Bytes of cached rooms.
    pub room_bytes: usize,
    /// Bytes of the ranks of boards.
    pub board_bytes: usize,
}

/// The parts of a server that its services use.
pub struct Parts {
    /// Access control: admission and guesses.
    pub access: Access,
    /// The rooms in memory.
    pub shards: Shards,
    /// The clock of budgets.
    pub clock: Clock,
    /// The clock of the services.
    pub time: Time,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Events of kept matches.
    pub kept: MatchLogReceiver,
    /// The games that the server serves; `None` for all.
    pub apps: Option<Vec<String>>,
    /// Whether the server's certificate is self-signed.
    pub is_development: bool,
    /// The addresses of the shards in their order, each the widest reachable one.
    pub addresses: Vec<ServerAddress>,
}
