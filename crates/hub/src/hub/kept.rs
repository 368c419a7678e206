//! Limits the seats that are kept for lost connections: in number and in bytes, per address and in total
//! (threat 45).
//!
//! A client that hangs up frees its connection, but its session stays for the grace period with up to
//! [`RELIABLE_QUEUE_BYTES_MAX`](parlor_proto::limits::RELIABLE_QUEUE_BYTES_MAX) for each direction. No limit of
//! connections counts it. Beyond a limit the oldest kept seat goes: of the address at its limit, or of the
//! address with the most if the total is.

use super::{Away, Hub};
use crate::admission_policy::Origin;
use parlor_proto::{ConnectionId, Instant};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Limits for the seats that are kept for lost connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSeats {
    /// Limit of one address. Does not apply to this machine itself.
    pub origin: usize,
    /// Limit in total.
    pub all: usize,
}

impl KeptSeats {
    /// Returns the share of one of `count` hubs: at least one seat.
    #[must_use]
    pub fn shared_by(self, count: usize) -> Self {
        let share = |seats: usize| seats.div_ceil(count.max(1)).max(1);
        KeptSeats { origin: share(self.origin), all: share(self.all) }
    }
}

impl Default for KeptSeats {
    /// 512 per address, 4,096 in total.
    fn default() -> Self {
        KeptSeats { origin: 512, all: 4_096 }
    }
}

/// Kept sessions may take this fraction (1/n) of the limits for room state: per address, and in total.
const MEMORY_SHARE: usize = 4;

/// The memory of a session without its messages, in bytes: its queues' empty blocks, its tokens and its entries in the
/// hub's tables.
const SESSION_BYTES: usize = 8 * 1024;

/// What is kept of members without a connection, by a key of each: sessions with their seats, or
/// members that may return.
#[derive(Debug)]
pub(super) struct Kept<K> {
    /// Only origins with kept ones have an entry.
    of: BTreeMap<Origin, OfOrigin<K>>,
    seats: usize,
    bytes: usize,
    /// Those freed before their time.
    freed: u64,
    /// Whether there may be too many.
    has_grown: bool,
}

#[derive(Debug)]
struct OfOrigin<K> {
    /// Their bytes, oldest first: by the end of their time.
    seats: BTreeMap<(Instant, K), usize>,
    bytes: usize,
}

impl<K> Default for OfOrigin<K> {
    fn default() -> Self {
        OfOrigin { seats: BTreeMap::new(), bytes: 0 }
    }
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Kept { of: BTreeMap::new(), seats: 0, bytes: 0, freed: 0, has_grown: false }
    }
}

impl<K: Copy + Ord> Kept<K> {
    /// Sets the bytes of a kept seat, which may be new.
    pub(super) fn set(&mut self, origin: Origin, seat: (Instant, K), bytes: usize) {
        self.has_grown = true;
        let of = self.of.entry(origin).or_default();
        let before = of.seats.insert(seat, bytes);
        self.seats += usize::from(before.is_none());
        let before = before.unwrap_or(0);
        of.bytes = of.bytes + bytes - before;
        self.bytes = self.bytes + bytes - before;
    }

    pub(super) fn remove(&mut self, origin: Origin, seat: (Instant, K)) {
        let Some(of) = self.of.get_mut(&origin) else { return };
        if let Some(bytes) = of.seats.remove(&seat) {
            of.bytes -= bytes;
            self.bytes -= bytes;
            self.seats -= 1;
        }
        if of.seats.is_empty() {
            self.of.remove(&origin);
        }
    }

    /// Returns the number of kept seats.
    pub(super) fn seats(&self) -> usize {
        self.seats
    }

    /// Returns the bytes of all kept sessions.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes of one origin's kept sessions.
    pub(super) fn bytes_of(&self, origin: Origin) -> usize {
        self.of.get(&origin).map_or(0, |of| of.bytes)
    }

    /// Counts one that was freed before its time.
    pub(super) fn free(&mut self) {
        self.freed += 1;
    }

    /// Whether there may be more than before the last call.
    pub(super) fn take_has_grown(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    /// Returns how many kept seats were freed because there were too many.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }

    /// Returns the oldest seat of an origin that is over a limit, or of the largest one if the total is.
    pub(super) fn surplus(&self, seats: KeptSeats, bytes: KeptSeats) -> Option<K> {
        let is_over = |origin: &Origin, of: &OfOrigin<K>| {
            *origin != Origin::LOCAL && (of.seats.len() > seats.origin || of.bytes > bytes.origin)
        };
        let greedy = self.of.iter().find(|(origin, of)| is_over(origin, of)).map(|(_, of)| of);
        let greedy = greedy.or_else(|| {
            let most_seats = || self.of.iter().max_by_key(|(origin, of)| (of.seats.len(), Reverse(**origin)));
            let most_bytes = || self.of.iter().max_by_key(|(origin, of)| (of.bytes, Reverse(**origin)));
            let most = if self.seats > seats.all {
                most_seats()
            } else if self.bytes > bytes.all {
                most_bytes()
            } else {
                None
            };
            most.map(|(_, of)| of)
        })?;
        greedy.seats.keys().next().map(|(_, key)| *key)
    }
}

impl Hub {
    /// Counts the session of a lost connection, which may be counted already.
    pub(super) fn weigh_kept(&mut self, connection: ConnectionId) {
        let Some(state) = self.connections.get(&connection) else { return };
        if let Some(Away { until, .. }) = &state.away {
            let bytes = SESSION_BYTES + state.session.held_bytes();
            self.kept.set(state.origin, (*until, connection), bytes);
        }
    }

    /// Uncounts a session that ended or was resumed.
    pub(super) fn uncount_kept(&mut self, connection: ConnectionId, origin: Origin, away: Option<&Away>) {
        if let Some(Away { until, .. }) = away {
            self.kept.remove(origin, (*until, connection));
        }
    }

    /// Frees kept seats until all limits hold. Must not be called while a room's outputs are being executed.
    /// Returns whether there was one too many.
    pub(super) fn trim_kept(&mut self, now: Instant) -> bool {
        if !self.kept.take_has_grown() {
            return false;
        }
        let memory = self.config.memory;
        let bytes = KeptSeats { origin: memory.origin / MEMORY_SHARE, all: memory.all / MEMORY_SHARE };
        let mut was_over = false;
        while let Some(oldest) = self.kept.surplus(self.config.kept, bytes) {
            let away = self.connections.get(&oldest).and_then(|state| state.away.as_ref());
            let Some(reason) = away.map(|away| away.reason.clone()) else {
                debug_assert!(false, "a seat that is counted as kept is kept");
                return was_over;
            };
            self.kept.free();
            self.forget(oldest, reason, now);
            was_over = true;
        }
        was_over
    }
}
