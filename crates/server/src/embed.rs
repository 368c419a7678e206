//! What a server and the services beside its rooms give to each other. The services are accounts and rooms over a store, a library
//! of their own: `parlor-services`.
//!
//! A server without services is whole: it relays rooms, and stores nothing. One with services is started by
//! [`Server::start_with`](crate::Server::start_with): it opens its ports, gives them [`Parts`] of itself, and asks them what [`Services`] has.
//!
//! No promises are made of this module: it changes with `parlor-services`, the one crate that it is for.

pub use crate::access::{Access, OpenGuess};
pub use crate::admission::crypto::install as install_crypto;
pub use crate::admission::issue::read_public;
pub use crate::admission::ticket::{TicketKey, Tickets};
pub use crate::clock::Clock;
pub use crate::http::{AskedFrom, bearer};
pub use crate::kept::KeptQuota;
pub use crate::match_log_queue::{Kept, Mark, MatchKey, Said};
pub use crate::metrics::{Figures, Label, Metrics, OPERATIONS_MAX};
pub use crate::mutex::lock;
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
use std::sync::Arc;

/// What a server asks of its services. They have threads of their own: none of this holds up a packet of a room.
pub trait Services: Send + Sync {
    /// What answers to HTTP below `/v1`. A request has its [`AskedFrom`] among its extensions.
    fn routes(&self) -> Router;

    /// Serves a WebSocket of `/v1/socket` until it is over. `token` is what the request for it brought.
    fn serve_socket(&self, io: TokioIo<Upgraded>, origin: Origin, token: Option<String>)
    -> BoxFuture<'_, ()>;

    /// Whether a token is an operator's: whoever has one is answered when all places are taken.
    fn is_of_operator(&self, token: String) -> BoxFuture<'_, bool>;

    /// Whether the store takes writes, as far as is known without trying; why not, for a person.
    fn store_state(&self) -> Result<(), String>;

    /// Whether the store answers; why not, for a person.
    fn store_answers(&self) -> BoxFuture<'_, Result<(), String>>;

    /// What peers make them hold.
    fn held(&self) -> Held;

    /// Writes their figures down, for monitoring.
    fn write_figures<'a>(&'a self, to: &'a mut Figures) -> BoxFuture<'a, ()>;

    /// Tells whoever is connected to them that the server is going down.
    fn say_goodbye(&self) -> BoxFuture<'_, ()>;

    /// Stores what is under way, and ends. The rooms have ended before.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// Memory that peers make the services hold, as it is counted against its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of inputs that are being read, and of answers and notices that were not taken yet.
    pub unread_bytes: usize,
    /// The most that they ever were.
    pub unread_bytes_most: usize,
    /// Requests that were refused because they were too many bytes.
    pub unread_refused: u64,
    /// Bytes of rooms that are kept at hand.
    pub room_bytes: usize,
}

/// What services are given of their server.
pub struct Parts {
    /// Who may come in, and who has guessed too much.
    pub access: Access,
    /// The rooms in memory.
    pub shards: Shards,
    /// The clock that budgets are counted by.
    pub clock: Clock,
    /// The clock that the services live by.
    pub time: Time,
    /// What is counted as it happens.
    pub metrics: Arc<Metrics>,
    /// What happens in matches that are kept.
    pub kept: Kept,
    /// The games that the server serves; `None` for any.
    pub apps: Option<Vec<String>>,
    /// Whether the server has a certificate that it made itself.
    pub is_development: bool,
}
