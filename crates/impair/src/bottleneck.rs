//! The bottleneck of a path, and its queue.

use crate::settings::{Impairment, QUEUE_BYTES_DEFAULT};
use core::time::Duration;

const BITS_PER_BYTE: u128 = 8;
const NANOS_PER_S: u128 = 1_000_000_000;

/// Sends packets one after the other, at no more than its rate.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    rate_bits_per_s: Option<u128>,
    queue_bytes: u128,
    /// When all accepted packets are sent.
    free_at: Duration,
}

impl Bottleneck {
    pub(crate) fn new(impairment: &Impairment) -> Self {
        Bottleneck {
            rate_bits_per_s: impairment.rate_bits_per_s.map(|rate| u128::from(rate.max(1))),
            queue_bytes: impairment.queue_bytes.unwrap_or(QUEUE_BYTES_DEFAULT).into(),
            free_at: Duration::ZERO,
        }
    }

    /// Returns when a packet that arrives now is sent; `None` if the queue is full. A packet that finds
    /// nothing before it needs no room in the queue.
    pub(crate) fn admit(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        let waiting = self.waiting_bytes(now);
        (waiting == 0 || waiting + bytes as u128 <= self.queue_bytes).then(|| self.pass(now, bytes))
    }

    /// Whether the queue has room.
    pub(crate) fn has_room(&self, now: Duration) -> bool {
        self.waiting_bytes(now) < self.queue_bytes
    }

    /// Returns when bytes that arrive now are sent, whatever the queue.
    pub(crate) fn pass(&mut self, now: Duration, bytes: usize) -> Duration {
        let Some(rate) = self.rate_bits_per_s else { return now };
        // Rounded up: the rate is never exceeded.
        let nanos = (bytes as u128 * BITS_PER_BYTE * NANOS_PER_S).div_ceil(rate);
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.free_at = self.free_at.max(now).saturating_add(takes);
        self.free_at
    }

    fn waiting_bytes(&self, now: Duration) -> u128 {
        let Some(rate) = self.rate_bits_per_s else { return 0 };
        let nanos = self.free_at.saturating_sub(now).as_nanos();
        nanos.saturating_mul(rate) / (BITS_PER_BYTE * NANOS_PER_S)
    }
}
