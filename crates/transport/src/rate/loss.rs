//! Packet loss: light, as on every radio, or heavy, as with a full queue.

/// Loss from here on is heavy. One packet in ten is still normal.
pub(super) const HEAVY_PERCENT: u64 = 18;
/// Acknowledged packets needed for an estimate. At 10% random loss, two consecutive estimates reach
/// [`HEAVY_PERCENT`] less than once in ten thousand.
const PACKETS_MIN: u64 = 100;

/// Measures in epochs, each with enough packets for an estimate.
#[derive(Clone, Debug, Default)]
pub(super) struct LossMeter {
    acked_packets: u64,
    acked_bytes: u64,
    lost_bytes: u64,
    was_heavy: bool,
}

impl LossMeter {
    pub(super) fn handle_acked(&mut self, bytes: u64) {
        self.acked_packets += 1;
        self.acked_bytes += bytes;
    }

    pub(super) fn handle_lost(&mut self, bytes: u64) {
        self.lost_bytes += bytes;
    }

    /// Returns the loss in percent if it was heavy in the epoch that just ended and in the one before.
    pub(super) fn poll_heavy(&mut self, packet_bytes: u64) -> Option<u64> {
        let bytes = self.acked_bytes + self.lost_bytes;
        if self.acked_packets < PACKETS_MIN && bytes < PACKETS_MIN * packet_bytes {
            return None;
        }
        let percent = self.lost_bytes * 100 / bytes.max(1);
        let is_heavy = percent >= HEAVY_PERCENT;
        let was_heavy = self.was_heavy;
        *self = LossMeter { was_heavy: is_heavy, ..LossMeter::default() };
        (is_heavy && was_heavy).then_some(percent)
    }
}
