//! One direction of a network that carries a stream.

use crate::bottleneck::Bottleneck;
use crate::path::{Counts, Direction};
use crate::rng::Rng;
use crate::settings::Impairment;
use core::time::Duration;

/// Time that the sender of a stream takes to notice that something was lost, beside a round trip.
pub const RETRANSMISSION: Duration = Duration::from_millis(30);
/// Losses in a row after which a segment arrives all the same.
const LOSSES_MAX: u32 = 8;
/// How much of a stream is lost together.
const SEGMENT_BYTES: usize = 1_400;

/// One direction of a network that carries a stream, as TCP makes it of packets: nothing is lost, everything arrives in
/// order, and what would have been lost holds up everything behind it until it was sent again.
#[derive(Clone, Debug)]
pub struct Stalls {
    impairment: Impairment,
    rng: Rng,
    bottleneck: Bottleneck,
    /// When the last of it arrives: nothing later arrives earlier.
    until: Duration,
    counts: Counts,
}

impl Stalls {
    /// A direction as `impairment` has it. `flow` tells streams of numbers apart that come from one seed, such as those of
    /// several connections.
    pub fn new(impairment: &Impairment, flow: u64, direction: Direction) -> Self {
        Stalls {
            impairment: *impairment,
            rng: impairment.numbers(flow, direction),
            bottleneck: Bottleneck::new(impairment),
            until: Duration::ZERO,
            counts: Counts::default(),
        }
    }

    /// When `bytes` arrive that are written at `now`, which is since the stream's start and never earlier than before.
    /// The queue before the bottleneck has no end here: whoever writes waits until it [has room](Self::has_room).
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

    /// Whether the queue before the bottleneck has room for more at `now`. A path would lose what comes on top of it; a sender
    /// that goes by that, as TCP does, has no more under way than the path and its queue hold.
    pub fn has_room(&self, now: Duration) -> bool {
        self.bottleneck.has_room(now)
    }

    /// What became of writes so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How often the unluckiest of the segments was lost. They are sent again together.
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
