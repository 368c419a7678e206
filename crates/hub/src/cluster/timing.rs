//! The times of a cluster.

use core::time::Duration;

/// The times of a cluster. All its nodes have the same, since the safety of one node's decisions depends on when
/// another one takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Interval of a node's heartbeats: two small commits a second.
    pub heartbeat: Duration,
    /// How long a heartbeat lets a node decide, on the store's clock.
    pub lease: Duration,
    /// By how much a node's own end of its lease comes before the store's. It counts from before the request was sent,
    /// so this covers the difference of the clocks' rates.
    pub margin: Duration,
    /// A node that stood still for longer decides nothing until it has asked the store.
    pub stall: Duration,
    /// How long another node's lock is missing before the node counts as dead. Longer than `stall`: meanwhile a node
    /// that runs has noticed that its connection is cut, and one that stands still has stalled.
    pub death: Duration,
    /// Interval at which a node compares its rooms with the store's.
    pub reconcile: Duration,
    /// Interval of attempts to get a lock, and to join.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Timing {
            heartbeat: ms(500),
            lease: ms(3_000),
            margin: ms(500),
            stall: ms(200),
            death: ms(250),
            reconcile: ms(1_000),
            retry: ms(250),
        }
    }
}

impl Timing {
    /// How long after a heartbeat was sent a node may decide, on its own clock.
    pub(super) fn own_lease(&self) -> Duration {
        self.lease.saturating_sub(self.margin)
    }

    /// Two looks at another node's lock say together that it is missing if they are less than this apart.
    pub(super) fn looks_apart(&self) -> Duration {
        self.death.saturating_mul(2)
    }
}
