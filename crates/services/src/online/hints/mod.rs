//! A node of a cluster beside its others: what it tells them, what it does when they tell it, and the sweeps that find
//! what no hint told. A server alone has nothing of this.

mod notices;
mod orders;
mod presence;
mod watched;

pub(super) use notices::tell_others;
pub(super) use orders::Reader as OrderReader;

use super::Services;
use crate::cluster::bus::{Bus, Hint, RoomChanged};
use crate::store::NodeName;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use notices::Behind;
use parlor_server::embed::Figures;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

/// Maximum number of changes of rooms that wait to be told.
const CHANGES_MAX: usize = 1_024;

/// What this node keeps for that.
pub(super) struct Hints {
    /// This node's name.
    node: String,
    pub(super) bus: Bus,
    friends: presence::Friends,
    behind: Behind,
    /// Notified when there may be a new order.
    ordered: Notify,
    changes: mpsc::Sender<RoomChanged>,
    found: Found,
}

/// What the tasks take.
pub(super) struct Inputs {
    pub(super) hints: mpsc::Receiver<Hint>,
    changes: mpsc::Receiver<RoomChanged>,
    pub(super) orders: OrderReader,
}

/// What sweeps found, and no hint had told.
#[derive(Debug, Default)]
struct Found {
    notices: AtomicU64,
    orders: AtomicU64,
    presence: AtomicU64,
    rooms: AtomicU64,
}

impl Hints {
    pub(super) fn new(
        node: &NodeName,
        (bus, hints): (Bus, mpsc::Receiver<Hint>),
        orders: OrderReader,
    ) -> (Self, Inputs) {
        let (changes, changed) = mpsc::channel(CHANGES_MAX);
        let (behind, ordered, found) = (Behind::default(), Notify::new(), Found::default());
        let (node, friends) = (node.to_string(), presence::Friends::default());
        (
            Hints { node, bus, friends, behind, ordered, changes, found },
            Inputs { hints, changes: changed, orders },
        )
    }

    /// Writes the figures.
    pub(super) fn write_figures(&self, to: &mut Figures) {
        let counts = self.bus.counts();
        to.gauge("parlor_bus_up", "1 if hints of other nodes arrive", counts.is_up.into());
        let ways = [("told", counts.told), ("heard", counts.heard), ("ignored", counts.ignored)];
        to.counters("parlor_hints", "Hints between nodes", ways.map(|(way, count)| ([("way", way)], count)));
        let lost = [("told", counts.untold), ("heard", counts.unheard)];
        let lost = lost.map(|(way, count)| ([("way", way)], count));
        to.counters("parlor_hints_lost", "Hints between nodes that were lost", lost);
        let Found { notices, orders, presence, rooms } = &self.found;
        let found = [("notices", notices), ("orders", orders), ("presence", presence), ("rooms", rooms)];
        let found = found.map(|(what, count)| ([("what", what)], count.load(Ordering::Relaxed)));
        to.counters("parlor_sweep_found", "What sweeps found and no hint had told", found);
    }
}

impl Services {
    /// This node beside the others of its cluster; `None` for a server alone.
    pub(super) fn hints(&self) -> Option<&Hints> {
        self.0.hints.as_ref()
    }

    /// Tells the other nodes of the cluster that the store has an order for them.
    pub(super) fn has_ordered(&self) {
        if let Some(hints) = self.hints() {
            hints.bus.tell(Hint::Order);
        }
    }
}

/// Starts the tasks.
pub(super) fn start(services: &Services, inputs: Inputs) {
    let Inputs { hints, changes, orders } = inputs;
    let handle = services.handle();
    handle.spawn(follow(services.clone(), hints));
    handle.spawn(notices::sweep(services.clone()));
    handle.spawn(notices::catch_up(services.clone()));
    handle.spawn(orders.follow(services.clone()));
    handle.spawn(presence::write(services.clone()));
    handle.spawn(presence::sweep(services.clone()));
    handle.spawn(watched::follow(services.clone(), changes));
    handle.spawn(watched::sweep(services.clone()));
}

/// Hands on hints. Nothing here waits.
async fn follow(services: Services, mut hints: mpsc::Receiver<Hint>) {
    while let Some(hint) = hints.recv().await {
        let Some(to) = services.hints() else { return };
        match hint {
            Hint::Order => to.ordered.notify_one(),
            Hint::Friends(told) => presence::heard_friends(&services, to, &told),
            Hint::Presence(told) => presence::heard(&services, to, &told),
            Hint::Notices(told) => notices::heard(&services, to, &told),
            // Without a place the sweep finds it.
            Hint::Room(changed) => drop(to.changes.try_send(changed)),
        }
    }
}

/// Waits for the next sweep: for its time, or until hints may have been lost. Returns whether they may have been.
async fn until_due(every: Duration, missed: &mut watch::Receiver<u64>) -> bool {
    tokio::select! {
        () = sleep(every) => false,
        changed = missed.changed() => {
            if changed.is_err() {
                // The bus is gone, and with it the runtime.
                core::future::pending::<()>().await;
            }
            true
        },
    }
}
