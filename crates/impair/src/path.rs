//! One direction of a network that carries datagrams.

use crate::bottleneck::Bottleneck;
use crate::rng::Rng;
use crate::settings::Impairment;
use core::array;
use core::iter::Flatten;
use core::ops::AddAssign;
use core::time::Duration;

/// How much longer a packet takes that others shall overtake, in microseconds: evenly from the first to the last.
const REORDER_US: core::ops::RangeInclusive<u64> = 10_000..=60_000;

/// Which of the two ways between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From whoever has the impairment.
    There,
    /// To whoever has it.
    Back,
}

/// One direction of a network that carries datagrams: they are lost, repeated, delayed, overtake each other, and find
/// no room, each as the settings say.
#[derive(Clone, Debug)]
pub struct Path {
    impairment: Impairment,
    rng: Rng,
    bottleneck: Bottleneck,
    counts: Counts,
}

/// When a packet arrives: not at all, once, or twice. The earlier comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals([Option<Duration>; 2]);

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that were sent.
    pub offered: u64,
    /// Packets lost by chance. On a stream: segments that had to be sent again.
    pub lost: u64,
    /// Packets lost in an outage. On a stream: writes that had to wait for its end.
    pub in_outage: u64,
    /// Packets that came twice. On a stream none do.
    pub duplicated: u64,
    /// Packets, second copies included, that found no room at the bottleneck. On a stream all do.
    pub overflowed: u64,
}

impl Counts {
    /// How many packets arrive, second copies included.
    pub fn arriving(&self) -> u64 {
        (self.offered + self.duplicated).saturating_sub(self.lost + self.in_outage + self.overflowed)
    }

    /// What came to these counts since they were `earlier`.
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

/// What chance has in store for a packet.
struct Fate {
    is_lost: bool,
    is_twice: bool,
    delays: [Duration; 2],
}

impl Path {
    /// A direction as `impairment` has it. `flow` tells streams of numbers apart that come from one seed, such as those of
    /// several clients.
    pub fn new(impairment: &Impairment, flow: u64, direction: Direction) -> Self {
        Path {
            impairment: *impairment,
            rng: impairment.numbers(flow, direction),
            bottleneck: Bottleneck::new(impairment),
            counts: Counts::default(),
        }
    }

    /// When a packet of `bytes` arrives that is sent at `now`, which is since the path's start and never earlier than
    /// before.
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

    /// What became of packets so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Each packet draws as many numbers, whatever becomes of it: chance depends on the seed and on how many went before,
    /// and never on time.
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
        // Drawn once more, because generators whose seeds are near each other would give the same numbers, shifted.
        Rng::new(Rng::new(self.seed ^ apart).draw())
    }

    /// How long a packet takes, without the bottleneck.
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

    /// How often the packet arrives: 0 to 2.
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
