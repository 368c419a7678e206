//! One direction of a network with datagrams.

use crate::bottleneck::Bottleneck;
use crate::rng::Rng;
use crate::settings::Impairment;
use core::array;
use core::iter::Flatten;
use core::ops::AddAssign;
use core::time::Duration;

/// Additional delay of a reordered packet, in microseconds: uniform in this range.
const REORDER_US: core::ops::RangeInclusive<u64> = 10_000..=60_000;

/// A direction between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the impaired end.
    There,
    /// To the impaired end.
    Back,
}

/// One direction of a network with datagrams: they are lost, duplicated, delayed, reordered or dropped at a
/// full queue, according to the settings.
#[derive(Clone, Debug)]
pub struct Path {
    impairment: Impairment,
    rng: Rng,
    bottleneck: Bottleneck,
    counts: Counts,
}

/// The arrival times of a packet: none, one, or two. The earlier comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals([Option<Duration>; 2]);

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent.
    pub offered: u64,
    /// Packets lost at random. On a stream: segments that had to be sent again.
    pub lost: u64,
    /// Packets lost in an outage. On a stream: writes that waited for its end.
    pub in_outage: u64,
    /// Duplicated packets. On a stream always 0.
    pub duplicated: u64,
    /// Packets, including duplicates, dropped at the full queue of the bottleneck. On a stream always 0.
    pub overflowed: u64,
}

impl Counts {
    /// The number of packets that arrive, including duplicates.
    pub fn arriving(&self) -> u64 {
        (self.offered + self.duplicated).saturating_sub(self.lost + self.in_outage + self.overflowed)
    }

    /// Returns the difference from these counts at an `earlier` time.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            offered: self.offered.saturating_sub(earlier.offered),
            lost: self.lost.saturating_sub(earlier.lost),
            in_outage: self.in_outage.saturating_sub(earlier.in_outage),
            duplicated: self.duplicated.saturating_sub(earlier.duplicated),
            overflowed: self.overflowed.saturating_sub(earlier.overflowed),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.offered += more.offered;
        self.lost += more.lost;
        self.in_outage += more.in_outage;
        self.duplicated += more.duplicated;
        self.overflowed += more.overflowed;
    }
}

/// The random decisions for a packet.
struct Fate {
    is_lost: bool,
    is_twice: bool,
    delays: [Duration; 2],
}

impl Path {
    /// Creates a direction with these settings. `flow` selects one of several random sequences from the same
    /// seed, such as those of several clients.
    pub fn new(impairment: &Impairment, flow: u64, direction: Direction) -> Self {
        Path {
            impairment: *impairment,
            rng: impairment.numbers(flow, direction),
            bottleneck: Bottleneck::new(impairment),
            counts: Counts::default(),
        }
    }

    /// Returns the arrivals of a packet of `bytes` sent at `now`. `now` counts from the path's start and must
    /// not decrease.
    pub fn offer(&mut self, now: Duration, bytes: usize) -> Arrivals {
        let fate = self.fate();
        self.counts.offered += 1;
        if self.impairment.outage.is_some_and(|outage| outage.end(now).is_some()) {
            self.counts.in_outage += 1;
            return Arrivals([None; 2]);
        }
        if fate.is_lost {
            self.counts.lost += 1;
            return Arrivals([None; 2]);
        }
        self.counts.duplicated += u64::from(fate.is_twice);
        let [first, second] = fate.delays;
        let first = self.copy(now, bytes, first);
        let second = if fate.is_twice { self.copy(now, bytes, second) } else { None };
        Arrivals::new(first, second)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Each packet draws the same count of numbers, whatever its fate: decisions depend on the seed and on
    /// the number of earlier packets, and never on time.
    fn fate(&mut self) -> Fate {
        let Impairment { loss_ppm, duplicate_ppm, .. } = self.impairment;
        Fate {
            is_lost: self.rng.per_million(loss_ppm),
            is_twice: self.rng.per_million(duplicate_ppm),
            delays: [self.impairment.delay(&mut self.rng), self.impairment.delay(&mut self.rng)],
        }
    }

    fn copy(&mut self, now: Duration, bytes: usize, delay: Duration) -> Option<Duration> {
        let sent = self.bottleneck.admit(now, bytes);
        self.counts.overflowed += u64::from(sent.is_none());
        sent.map(|sent| sent.saturating_add(delay))
    }
}

impl Impairment {
    pub(crate) fn numbers(&self, flow: u64, direction: Direction) -> Rng {
        let apart = match direction {
            Direction::There => Rng::new(flow).draw(),
            Direction::Back => !Rng::new(flow).draw(),
        };
        // Drawn once more, because generators with similar seeds would produce the same numbers, shifted.
        Rng::new(Rng::new(self.seed ^ apart).draw())
    }

    /// The delay of a packet, without the bottleneck.
    pub(crate) fn delay(&self, rng: &mut Rng) -> Duration {
        let jitter_us = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX - 1);
        let jitter = Duration::from_micros(rng.below(jitter_us.saturating_add(1)));
        let overtaken = rng.per_million(self.reorder_ppm);
        let longer_us = REORDER_US.start() + rng.below(REORDER_US.end() - REORDER_US.start() + 1);
        let longer = if overtaken { Duration::from_micros(longer_us) } else { Duration::ZERO };
        self.latency.saturating_add(jitter).saturating_add(longer)
    }
}

impl Arrivals {
    fn new(first: Option<Duration>, second: Option<Duration>) -> Self {
        match (first, second) {
            (Some(first), Some(second)) => Arrivals([Some(first.min(second)), Some(first.max(second))]),
            one => Arrivals([one.0.or(one.1), None]),
        }
    }

    /// The number of arrivals: 0 to 2.
    pub fn count(self) -> usize {
        self.into_iter().count()
    }
}

impl IntoIterator for Arrivals {
    type Item = Duration;
    type IntoIter = Flatten<array::IntoIter<Option<Duration>, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}
