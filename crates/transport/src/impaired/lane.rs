//! One direction of datagrams, with those in flight.

use super::conditions::{Conditions, Watch};
use core::cmp::Ordering;
use parlor_impair::{Counts, Direction, Path};
use std::collections::BinaryHeap;
use tokio::time::Instant;

/// Maximum datagrams in flight in one direction. Further ones are lost, and counted as an overflow at a
/// bottleneck.
pub(super) const UNDER_WAY_MAX: usize = 16 * 1024;

/// One direction: the fate of datagrams, and those in flight.
#[derive(Debug)]
pub(super) struct Lane<T> {
    watch: Watch,
    flow: u64,
    direction: Direction,
    path: Path,
    /// When the conditions last changed: the path's start.
    start: Instant,
    under_way: BinaryHeap<UnderWay<T>>,
    /// Number of datagrams so far, which keeps those of one instant in order.
    number: u64,
    /// Counts since the last call, without the path's own.
    news: Counts,
    /// The path's counts at the last call.
    told: Counts,
}

#[derive(Debug)]
struct UnderWay<T> {
    at: Instant,
    number: u64,
    datagram: T,
}

impl<T: Clone> Lane<T> {
    pub(super) fn new(conditions: &Conditions, flow: u64, direction: Direction) -> Self {
        let watch = Watch::new(conditions);
        Lane {
            path: Path::new(&watch.get(), flow, direction),
            watch,
            flow,
            direction,
            start: Instant::now(),
            under_way: BinaryHeap::new(),
            number: 0,
            news: Counts::default(),
            told: Counts::default(),
        }
    }

    /// Sends a datagram of `bytes` bytes.
    pub(super) fn offer(&mut self, now: Instant, bytes: usize, datagram: &T) {
        if let Some(impairment) = self.watch.news() {
            self.news += self.path.counts().since(&self.told);
            self.told = Counts::default();
            self.path = Path::new(&impairment, self.flow, self.direction);
            self.start = now;
        }
        for after in self.path.offer(now.saturating_duration_since(self.start), bytes) {
            // A time beyond the clock's range never comes.
            let Some(at) = self.start.checked_add(after) else { continue };
            if self.under_way.len() >= UNDER_WAY_MAX {
                self.news.overflowed += 1;
                continue;
            }
            self.under_way.push(UnderWay { at, number: self.number, datagram: datagram.clone() });
            self.number += 1;
        }
    }

    /// When the next one arrives.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.under_way.peek().map(|first| first.at)
    }

    /// Takes the next one that has arrived by `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<T> {
        self.next_at().filter(|at| *at <= now)?;
        self.under_way.pop().map(|first| first.datagram)
    }

    /// Returns the counts since the last call.
    pub(super) fn news(&mut self) -> Counts {
        let counts = self.path.counts();
        let mut news = core::mem::take(&mut self.news);
        news += counts.since(&self.told);
        self.told = counts;
        news
    }
}

// The earliest is the greatest, because a `BinaryHeap` returns the greatest first.
impl<T> Ord for UnderWay<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for UnderWay<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for UnderWay<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for UnderWay<T> {}
