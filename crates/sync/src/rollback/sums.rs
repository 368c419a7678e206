//! Checksums of states: compares this end's with the others', tick by tick.

use super::report::Event;
use crate::limits::{ROLLBACK_AHEAD_TICKS, ROLLBACK_RING_TICKS};
use parlor_proto::Tick;

/// Ticks after which a difference is reported although earlier checksums are missing: well within a second.
const PATIENCE_TICKS: i32 = 24;
/// Ticks of checksums that are sent after a desync, so that the first different tick is found.
pub(super) const TRACE_TICKS: u32 = 48;
/// Ticks of checksums that are sent otherwise: three consecutive messages may be lost.
const RECENT_TICKS: u32 = 4;

/// Checksums by tick.
#[derive(Debug)]
struct Ring(Vec<Option<(Tick, u32)>>);

impl Ring {
    fn new() -> Self {
        Ring(vec![None; ROLLBACK_RING_TICKS])
    }

    fn slot(&mut self, tick: Tick) -> &mut Option<(Tick, u32)> {
        &mut self.0[tick.0 as usize % ROLLBACK_RING_TICKS]
    }

    fn get(&self, tick: Tick) -> Option<u32> {
        self.0[tick.0 as usize % ROLLBACK_RING_TICKS].filter(|(at, _)| *at == tick).map(|(_, sum)| sum)
    }
}

/// The checksums of another end, and where they first differed.
#[derive(Debug)]
struct Theirs {
    ring: Ring,
    differs: Option<Tick>,
    is_told: bool,
}

/// All checksums.
#[derive(Debug)]
pub(super) struct Sums {
    begin: Tick,
    own: Ring,
    theirs: Vec<Theirs>,
    /// Own checksums before this tick were compared.
    compared: Tick,
}

impl Sums {
    pub(super) fn new(players: usize, begin: Tick) -> Self {
        let theirs = || Theirs { ring: Ring::new(), differs: None, is_told: false };
        Sums {
            begin,
            own: Ring::new(),
            theirs: std::iter::repeat_with(theirs).take(players).collect(),
            compared: begin,
        }
    }

    /// Records the checksum of a saved state. Returns the one that it replaces.
    pub(super) fn saved(&mut self, tick: Tick, sum: u64) -> Option<u32> {
        // Half of a hash is enough; 0 stands for none.
        let sum = ((sum >> 32) ^ (sum & 0xffff_ffff)).max(1);
        let sum = u32::try_from(sum).expect("its upper half is empty");
        let before = self.own.get(tick).filter(|before| *before != sum);
        *self.own.slot(tick) = Some((tick, sum));
        before
    }

    /// Drops the checksums of states after `tick` and before `end`, which are recomputed.
    pub(super) fn forget(&mut self, tick: Tick, end: Tick) {
        let mut at = tick.next();
        while end.is_newer_than(at) {
            *self.own.slot(at) = None;
            at = at.next();
        }
    }

    /// Records another end's checksum for a tick near those that are final here.
    pub(super) fn said(&mut self, player: usize, tick: Tick, sum: u32, finals: Tick) {
        let is_near = tick.since(finals).unsigned_abs() < ROLLBACK_AHEAD_TICKS;
        if let Some(theirs) = self.theirs.get_mut(player)
            && is_near
            && sum != 0
        {
            *theirs.ring.slot(tick) = Some((tick, sum));
            if finals.since(tick) >= 0 {
                self.compare(player, tick);
            }
        }
    }

    fn compare(&mut self, player: usize, tick: Tick) {
        let theirs = &mut self.theirs[player];
        let Some((own, their)) = self.own.get(tick).zip(theirs.ring.get(tick)) else { return };
        if own != their && theirs.differs.is_none_or(|differs| differs.is_newer_than(tick)) {
            theirs.differs = Some(tick);
        }
    }

    /// Compares final checksums: the states before all ticks up to `finals` do not change any more.
    pub(super) fn compare_until(&mut self, finals: Tick) {
        while finals.since(self.compared) >= 0 {
            let tick = self.compared;
            (0..self.theirs.len()).for_each(|player| self.compare(player, tick));
            self.compared = tick.next();
        }
    }

    /// Returns a difference that can be reported.
    pub(super) fn poll_event(&mut self, finals: Tick) -> Option<Event> {
        let (begin, own) = (self.begin, &self.own);
        self.theirs.iter_mut().zip(0u8..).find_map(|(theirs, player)| {
            let tick = theirs.differs.filter(|_| !theirs.is_told)?;
            let before = tick.offset(-1);
            let was_equal = own.get(before).zip(theirs.ring.get(before)).is_some_and(|(a, b)| a == b);
            let is_exact = was_equal || tick == begin;
            if !is_exact && finals.since(tick) < PATIENCE_TICKS {
                return None;
            }
            theirs.is_told = true;
            Some(Event::Desync { player: Some(player), tick, is_exact })
        })
    }

    /// Returns the checksums to send: the first tick, and the checksums from there on, 0 for none.
    pub(super) fn recent(&self, finals: Tick) -> (Tick, impl Iterator<Item = u32> + '_) {
        let is_traced = |theirs: &Theirs| {
            theirs.differs.is_some_and(|differs| finals.since(differs) < PATIENCE_TICKS * 2)
        };
        let count = if self.theirs.iter().any(is_traced) { TRACE_TICKS } else { RECENT_TICKS };
        let first = finals.offset(1 - i32::try_from(count).expect("they are few"));
        let sums = (0..count).map(move |at| self.own.get(Tick(first.0.wrapping_add(at))).unwrap_or(0));
        (first, sums)
    }
}
