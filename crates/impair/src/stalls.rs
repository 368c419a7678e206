//! One direction of a network with a stream.

use crate::bottleneck::Bottleneck;
use crate::path::{Counts, Direction};
use crate::rng::Rng;
use crate::settings::Impairment;
use core::time::Duration;

/// Time in which a stream's sender detects a loss, in addition to a round trip.
pub const RETRANSMISSION: Duration = Duration::from_millis(30);
/// Maximum consecutive losses of a segment.
const LOSSES_MAX: u32 = 8;
/// Bytes of a stream that are lost together.
const SEGMENT_BYTES: usize = 1_400;

/// One direction of a network with a stream, as TCP provides it: nothing is lost, everything arrives in
/// order. A loss delays everything behind it until it is sent again.
#[derive(Clone, Debug)]
pub struct Stalls {
    impairment: Impairment,
    rng: Rng,
    bottleneck: Bottleneck,
    /// When the last data arrives: nothing written later arrives earlier.
    until: Duration,
    counts: Counts,
}

impl Stalls {
    /// Creates a direction with these settings. `flow` selects one of several random sequences from the same
    /// seed, such as those of several connections.
    pub fn new(impairment: &Impairment, flow: u64, direction: Direction) -> Self {
        Stalls {
            impairment: *impairment,
            rng: impairment.numbers(flow, direction),
            bottleneck: Bottleneck::new(impairment),
            until: Duration::ZERO,
            counts: Counts::default(),
        }
    }

    /// Returns when `bytes` written at `now` arrive. `now` counts from the stream's start and must not
    /// decrease. The bottleneck's queue is unlimited here: the writer must wait until it [has
    /// room](Self::has_room).
    pub fn offer(&mut self, now: Duration, bytes: usize) -> Duration {
        self.counts.offered += 1;
        let outage = self.impairment.outage.and_then(|outage| outage.end(now));
        self.counts.in_outage += u64::from(outage.is_some());
        let leaves = outage.map_or(now, |end| end.saturating_add(RETRANSMISSION));
        let sent = self.bottleneck.pass(leaves, bytes);
        let again = self.impairment.latency.saturating_mul(2).saturating_add(RETRANSMISSION);
        let late = again.saturating_mul(self.losses_in_a_row(bytes));
        let arrives = sent.saturating_add(self.impairment.delay(&mut self.rng)).saturating_add(late);
        self.until = self.until.max(arrives);
        self.until
    }

    /// Whether the bottleneck's queue has room at `now`. A path would drop what exceeds it. A sender that
    /// respects it, as TCP does, has no more in flight than the path and its queue hold.
    pub fn has_room(&self, now: Duration) -> bool {
        self.bottleneck.has_room(now)
    }

    /// Returns the counts of writes so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The consecutive losses of the unluckiest segment. Lost segments are sent again together.
    fn losses_in_a_row(&mut self, bytes: usize) -> u32 {
        let mut most = 0;
        for _ in 0..bytes.div_ceil(SEGMENT_BYTES).max(1) {
            let mut losses = 0;
            while losses < LOSSES_MAX && self.rng.per_million(self.impairment.loss_ppm) {
                losses += 1;
            }
            self.counts.lost += u64::from(losses);
            most = most.max(losses);
        }
        most
    }
}
