//! The bus between the nodes of a cluster: hints that something has changed.
//!
//! Any hint may be lost, late or doubled. What a hint is about stands in the store, and each node reads it there
//! now and then (a *sweep*). Hints only make it faster. So a bus needs neither durability nor order, and
//! nothing waits for it: [`Bus::tell`] puts a hint into a queue, and drops it when that is full.
//!
//! - `hint.rs`: what nodes tell each other
//! - `envelope.rs`: the payload of a hint, sealed with a key of the store, and the order of a sender's hints
//! - `run.rs`: the task that connects, sends and receives
//! - `notify.rs`, `nats.rs`, `memory.rs`: the three carriers; `tests.rs` has one contract for all

mod address;
mod envelope;
mod hint;
#[cfg(test)]
mod memory;
mod nats;
mod notify;
mod run;
#[cfg(test)]
mod tests;

pub use address::{BusAddress, InvalidBusAddress};
pub(crate) use hint::{
    FriendsChanged, Hint, Notices, PresenceChanged, RECEIVERS_MAX, Receiver, RoomChanged, WatchedNotice,
};

use crate::store::{NodeName, Store, StoreError};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use envelope::{Key, Sender};
use futures_util::future::BoxFuture;
use nats::Nats;
use notify::Notify;
use parlor_server::embed::{self, lock};
use std::sync::{Arc, Mutex};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

/// Maximum number of hints that wait to be sent, and of those that wait to be handled.
const WAITING_MAX: usize = 1_024;
/// Time limit of a connection attempt, and of sending.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The name of the key in the store.
const KEY: &str = "bus-key";

/// Why there is no bus.
#[derive(Debug, Error)]
pub enum BusError {
    /// The carrier does not answer, or refuses.
    #[error("the bus is away: {0}")]
    Away(String),
    /// The carrier cannot be used as it is.
    #[error("{0}")]
    Unusable(String),
    /// The store does not answer.
    #[error("the key of the bus cannot be read: {0}")]
    Store(#[from] StoreError),
    /// No randomness.
    #[error("no randomness for the bus: {0}")]
    Random(getrandom::Error),
}

/// A way to carry payloads between nodes.
trait Carrier: Send + Sync + 'static {
    /// Connects.
    fn open(&self) -> BoxFuture<'_, Result<Box<dyn Session>, BusError>>;

    /// Maximum length of a payload.
    fn payload_max(&self) -> usize;
}

/// A connection of a carrier.
trait Session: Send {
    /// Sends payloads, in their order.
    fn send<'a>(&'a mut self, payloads: &'a [String]) -> BoxFuture<'a, Result<(), BusError>>;

    /// Waits for the next payload, perhaps one of this node. Cancel-safe.
    fn receive(&mut self) -> BoxFuture<'_, Result<Received, BusError>>;

    /// Checks that the connection is alive. Called now and then.
    fn check(&mut self) -> BoxFuture<'_, Result<(), BusError>>;
}

/// What a session received.
#[derive(Debug)]
enum Received {
    Payload(Vec<u8>),
    /// Payloads came faster than they were handled, and some are gone.
    Missed,
}

/// This node's end of the bus.
#[derive(Debug)]
pub(crate) struct Bus {
    /// Under one lock with the number, so that hints are sent in the order of their numbers.
    queue: Mutex<Queue>,
    state: Arc<State>,
    missed: watch::Receiver<u64>,
}

#[derive(Debug)]
struct Queue {
    numbered: mpsc::Sender<(u64, Hint)>,
    last: u64,
}

/// What is known of the bus, for figures.
#[derive(Debug, Default)]
struct State {
    is_up: AtomicBool,
    told: AtomicU64,
    heard: AtomicU64,
    /// From strangers, or too old.
    ignored: AtomicU64,
    /// Of this node: dropped before they were sent.
    untold: AtomicU64,
    /// Of others: their numbers show that they did not arrive.
    unheard: AtomicU64,
}

/// Counters of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BusCounts {
    pub(crate) is_up: bool,
    pub(crate) told: u64,
    pub(crate) heard: u64,
    pub(crate) ignored: u64,
    pub(crate) untold: u64,
    pub(crate) unheard: u64,
}

impl Bus {
    /// Starts the bus of a node on the current runtime, over NATS at an address or over the store's database. Returns it
    /// with the hints of other nodes.
    pub(crate) async fn start(
        store: &Store,
        (node, address): (&NodeName, Option<&BusAddress>),
        now_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<(Bus, mpsc::Receiver<Hint>), BusError> {
        let proposed: [u8; 32] = embed::random().map_err(BusError::Random)?;
        let key = Key::new(&store.keep_secret(KEY, &proposed).await?);
        let sender =
            Sender::new(node.as_str(), u64::from_le_bytes(embed::random().map_err(BusError::Random)?));
        let carrier: Box<dyn Carrier> = match address {
            Some(address) => Box::new(Nats::new(address, &key)?),
            None => Box::new(Notify::checked(store).await?),
        };
        Ok(Self::over(&Handle::current(), carrier, (key, sender), Arc::new(now_ms)))
    }

    /// The bus over a carrier.
    fn over(
        handle: &Handle,
        carrier: Box<dyn Carrier>,
        (key, sender): (Key, Sender),
        now_ms: run::NowMs,
    ) -> (Bus, mpsc::Receiver<Hint>) {
        let (numbered, queue) = mpsc::channel(WAITING_MAX);
        let (hints, heard) = mpsc::channel(WAITING_MAX);
        let (missing, missed) = watch::channel(0);
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        handle.spawn(run::run(
            carrier,
            queue,
            run::End { key, sender, now_ms, hints, missing, state: shared },
        ));
        (Bus { queue: Mutex::new(Queue { numbered, last: 0 }), state, missed }, heard)
    }

    /// Tells the other nodes. Never waits: beyond the queue's length hints are dropped and counted.
    pub(crate) fn tell(&self, hint: Hint) {
        let mut queue = lock(&self.queue);
        queue.last += 1;
        let number = queue.last;
        if queue.numbered.try_send((number, hint)).is_err() {
            self.state.untold.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Changes whenever hints of other nodes may have been lost. Then sweeps are due at once.
    pub(crate) fn missed(&self) -> watch::Receiver<u64> {
        self.missed.clone()
    }

    /// The counters.
    pub(crate) fn counts(&self) -> BusCounts {
        let State { is_up, told, heard, ignored, untold, unheard } = &*self.state;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BusCounts {
            is_up: is_up.load(Ordering::Relaxed),
            told: read(told),
            heard: read(heard),
            ignored: read(ignored),
            untold: read(untold),
            unheard: read(unheard),
        }
    }
}
