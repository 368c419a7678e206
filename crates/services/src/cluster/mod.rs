//! Nodes of a cluster: servers that share one PostgreSQL store.
//!
//! - [`lease`]: the lease of this node, on a thread of its own; [`standing`]: what it may decide, for all threads
//! - [`nodes`]: the nodes, as the store told at the last look
//! - [`line`]: questions to other nodes
//! - [`bus`]: hints of other nodes, which may all be lost
//! - [`directory`]: every node finds a room by its code
//! - [`clock`]: the store's clock; [`duties`]: what one node at a time does
//!
//! A server alone has no [`Cluster`] and runs nothing of this.

pub(crate) mod bus;
mod clock;
pub(crate) mod directory;
mod duties;
mod lease;
pub(crate) mod line;
pub(crate) mod nodes;
pub(crate) mod standing;
mod uptime;

pub use bus::{BusAddress, BusError, InvalidBusAddress};
pub(crate) use duties::Duty;
pub use line::LineError;

use crate::store::{NodeFacts, NodeName, OpenError, Store, StoreError};
use clock::StoreClock;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::Ordering;
use core::time::Duration;
use directory::Directory;
use duties::Holder;
use futures_util::FutureExt;
use lease::{Lease, Load, Reconcile, Shared};
use line::{Handlers, Line, OpenLine};
use nodes::{Nodes, NodesView};
use parlor_hub::cluster::pass::PassKey;
use parlor_server::Time;
use parlor_server::embed::{Shards, lock};
use parlor_transport::discovery::ServerAddress;
use standing::StandingView;
use std::sync::{Arc, Mutex};
use thiserror::Error;
use tokio::runtime::Handle;

/// The store's name for the key of passes.
const PASS_KEY: &str = "pass-key";

/// Interval at which the rooms and connections of this node are counted.
const COUNT: Duration = Duration::from_millis(500);

/// Time limit for the last rows of rooms.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Configuration of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The node's name: no other node of the store has it.
    pub node: NodeName,
    /// Where the other nodes reach this one, an address of this machine; port 0 for any free one. Default: an address
    /// that only nodes of the same machine reach.
    pub line: SocketAddr,
    /// The NATS server that carries hints between the nodes. Default: the store's PostgreSQL carries them.
    pub bus: Option<BusAddress>,
}

impl ClusterConfig {
    /// The defaults for a node of this name.
    pub fn new(node: NodeName) -> Self {
        ClusterConfig { node, line: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), bus: None }
    }
}

/// Why a server could not become a node.
#[derive(Debug, Error)]
pub(crate) enum ClusterError {
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Clock(#[from] StoreError),
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// This server as a node of a cluster.
pub(crate) struct Cluster {
    node: NodeName,
    nodes: NodesView,
    line: Line,
    shared: Arc<Shared>,
    directory: Directory,
    lease: Lease,
    clock: Arc<StoreClock>,
    holder: Holder,
    /// Until it is [served](Cluster::serve).
    open: Mutex<Option<OpenLine>>,
}

impl Cluster {
    /// Enters the node, whose shards are at `addresses`, and sets the services' time. `process` is the name of no
    /// other process. The line's connections live on the current runtime.
    pub(crate) async fn start(
        config: &ClusterConfig,
        store: &Store,
        addresses: Vec<ServerAddress>,
        (time, process): (Time, &str),
    ) -> Result<Arc<Self>, ClusterError> {
        let clock = Arc::new(StoreClock::start(store, time).await?);
        let hears = Arc::clone(&clock);
        let (nodes, view) = NodesView::new();
        let open = OpenLine::open(config.line, view.clone()).await?;
        let shared = Arc::new(Shared {
            standing: StandingView::new(),
            load: Load::default(),
            reconcile: Mutex::default(),
            heard: Mutex::new(Some(Box::new(move |heard| hears.hear(heard)))),
        });
        let facts = NodeFacts {
            address: addresses.first().map(ToString::to_string).unwrap_or_default(),
            shards: addresses.len() as u64,
            line: open.line().address().to_text(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let proposed: [u8; 32] = parlor_server::embed::random().map_err(ClusterError::Random)?;
        let kept = store.keep_secret(PASS_KEY, &proposed).await?;
        let pass_key = PassKey::of(&kept);
        let (build, standing) = (facts.build.clone(), shared.standing.clone());
        let directory = Directory::new(
            store.clone(),
            config.node.clone(),
            &build,
            standing,
            view.clone(),
            (addresses, pass_key),
        );
        let lease =
            Lease::start(store.clone(), config.node.clone(), facts, Arc::clone(&shared), nodes).await?;
        let (node, line) = (config.node.clone(), open.line().clone());
        let (open, holder) = (Mutex::new(Some(open)), Holder::new(format!("{node}/{process}")));
        Ok(Arc::new(Cluster { node, nodes: view, line, shared, directory, lease, clock, holder, open }))
    }

    /// Answers other nodes, and counts what this one has, on the services' runtime.
    pub(crate) fn serve(&self, mut handlers: Handlers, shards: Shards, runtime: &Handle) {
        self.directory.answer_line(&mut handlers);
        if let Some(open) = lock(&self.open).take() {
            runtime.spawn(open.serve(handlers));
        }
        let (directory, of) = (self.directory.clone(), shards.clone());
        let reconcile: Reconcile = Box::new(move |incarnation| {
            let (directory, shards) = (directory.clone(), of.clone());
            async move { directory.reconcile(incarnation, &shards).await }.boxed()
        });
        *lock(&self.shared.reconcile) = Some(Arc::new(reconcile));
        self.directory.serve(shards.clone(), self.line.clone(), runtime);
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            loop {
                let stats = shards.stats().await;
                shared.load.rooms.store(stats.rooms as u64, Ordering::Relaxed);
                shared.load.members.store(stats.connections as u64, Ordering::Relaxed);
                tokio::time::sleep(COUNT).await;
            }
        });
    }

    /// This node's name.
    pub(crate) fn node(&self) -> &NodeName {
        &self.node
    }

    /// The nodes, as of at most about a quarter of a second ago.
    pub(crate) fn nodes(&self) -> Arc<Nodes> {
        self.nodes.get()
    }

    /// How far the machine's time of day is ahead of the store's clock, in seconds.
    pub(crate) fn clock_offset_s(&self) -> f64 {
        self.clock.offset_s()
    }

    /// Takes a duty or keeps it. Returns whether this node has it.
    pub(crate) async fn has(&self, store: &Store, duty: Duty) -> Result<bool, StoreError> {
        let nodes = self.nodes.get();
        // A draining node leaves duties to the others, if there are any.
        if nodes.serving_as(self.node.as_str()).is_some() && !nodes.working().any(|node| node.id == self.node)
        {
            return Ok(false);
        }
        self.holder.has(store, duty).await
    }

    /// The name under which one task of this node holds a lock of the store.
    pub(crate) fn holder(&self) -> String {
        self.holder.of_task()
    }

    /// What this node may decide.
    pub(crate) fn standing(&self) -> &StandingView {
        &self.shared.standing
    }

    /// The line to other nodes.
    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    /// The directory of live rooms.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Deletes the rows of rooms that have ended, within a bounded time.
    pub(crate) async fn flush(&self) {
        if tokio::time::timeout(FLUSH_TIME, self.directory.flush()).await.is_err() {
            tracing::warn!(
                "rooms of this node that have ended are found for half a minute more: the store is away"
            );
        }
    }

    /// Says that the node has ended. Blocks for a bounded time.
    pub(crate) fn leave(&self) {
        self.lease.stop();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("node", &self.node).field("line", &self.line).finish_non_exhaustive()
    }
}
