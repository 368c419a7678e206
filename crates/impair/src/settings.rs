//! What is wrong with a network.

use crate::text::{ImpairmentError, Setting};
use core::time::Duration;

/// How much waits at a bottleneck if nothing else is said, in bytes.
pub const QUEUE_BYTES_DEFAULT: u64 = 64_000;

const DELAY_MAX: Duration = Duration::from_secs(10);
const PERIOD_MAX: Duration = Duration::from_secs(3_600);
const MILLION: u32 = 1_000_000;
const RATE_BITS: core::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;
const QUEUE_BYTES: core::ops::RangeInclusive<u64> = 1_500..=64_000_000;

/// What is wrong with a network, the same in both directions. Nothing is, to begin with.
///
/// As text it is a list such as `latency=100ms,jitter=30ms,loss=5%,duplicate=1%,reorder=2%,rate=2mbit,queue=64kB,`
/// `outage=500ms/10s,seed=7`, of which every part may be absent, or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    pub(crate) latency: Duration,
    pub(crate) jitter: Duration,
    pub(crate) loss_ppm: u32,
    pub(crate) duplicate_ppm: u32,
    pub(crate) reorder_ppm: u32,
    pub(crate) rate_bits_per_s: Option<u64>,
    pub(crate) queue_bytes: Option<u64>,
    pub(crate) outage: Option<Outage>,
    pub(crate) seed: u64,
}

/// A time in which nothing gets through, again and again. It is the end of each period, so that a connection can be
/// made before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// How long it takes, at least 1 ms.
    pub length: Duration,
    /// From the end of one to the end of the next: longer than `length`, at most an hour.
    pub every: Duration,
}

impl Impairment {
    /// Nothing is wrong.
    pub const fn none() -> Self {
        Impairment {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            rate_bits_per_s: None,
            queue_bytes: None,
            outage: None,
            seed: 0,
        }
    }

    /// How long a packet takes one way, at least: up to 10 s, in whole microseconds.
    #[must_use]
    pub const fn latency(self, latency: Duration) -> Self {
        Impairment { latency: whole_us(latency), ..self }
    }

    /// How much longer a packet may take, evenly: up to 10 s, in whole microseconds. Datagrams overtake each other by it.
    #[must_use]
    pub const fn jitter(self, jitter: Duration) -> Self {
        Impairment { jitter: whole_us(jitter), ..self }
    }

    /// How many of 1,000,000 packets are lost. A stream stalls instead.
    #[must_use]
    pub const fn loss_ppm(self, ppm: u32) -> Self {
        Impairment { loss_ppm: ppm, ..self }
    }

    /// How many of 1,000,000 datagrams come twice.
    #[must_use]
    pub const fn duplicate_ppm(self, ppm: u32) -> Self {
        Impairment { duplicate_ppm: ppm, ..self }
    }

    /// How many of 1,000,000 packets take 10 to 60 ms longer, so that later ones overtake them.
    #[must_use]
    pub const fn reorder_ppm(self, ppm: u32) -> Self {
        Impairment { reorder_ppm: ppm, ..self }
    }

    /// How much passes: 1 kbit to 10 Gbit per second. Without it, as much as comes.
    #[must_use]
    pub const fn rate_bits_per_s(self, rate: u64) -> Self {
        Impairment { rate_bits_per_s: Some(rate), ..self }
    }

    /// How much waits before the [rate](Self::rate_bits_per_s): 1.5 kB to 64 MB, [`QUEUE_BYTES_DEFAULT`] if not said. A
    /// datagram that finds no room is lost.
    #[must_use]
    pub const fn queue_bytes(self, bytes: u64) -> Self {
        Impairment { queue_bytes: Some(bytes), ..self }
    }

    /// When nothing gets through, in whole microseconds.
    #[must_use]
    pub const fn outage(self, outage: Outage) -> Self {
        let outage = Outage { length: whole_us(outage.length), every: whole_us(outage.every) };
        Impairment { outage: Some(outage), ..self }
    }

    /// What all chance is drawn from. Zero if not said.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Impairment { seed, ..self }
    }

    /// The same with another chance, for the `number`th of several that shall not have their bad luck together.
    #[must_use]
    pub const fn apart(self, number: u64) -> Self {
        Impairment { seed: self.seed.wrapping_add(number), ..self }
    }

    /// Whether nothing is wrong, so that packets need not pass through a [`Path`](crate::Path) at all.
    pub fn is_none(&self) -> bool {
        *self == Impairment::none().seed(self.seed)
    }

    /// How long a packet takes one way if nothing else is wrong.
    pub const fn one_way(&self) -> Duration {
        self.latency
    }

    /// Whether every setting is within its bounds. Text is checked when it is read; beyond its bounds a setting does what
    /// it says as far as that goes, and never panics.
    ///
    /// # Errors
    /// The first that is not, and what it may be.
    pub fn check(&self) -> Result<(), ImpairmentError> {
        let is_ppm = |ppm: u32| ppm <= MILLION;
        let is_outage = |outage: Outage| {
            outage.length >= Duration::from_millis(1)
                && outage.length < outage.every
                && outage.every <= PERIOD_MAX
        };
        for (setting, holds) in [
            (Setting::Latency, self.latency <= DELAY_MAX),
            (Setting::Jitter, self.jitter <= DELAY_MAX),
            (Setting::Loss, is_ppm(self.loss_ppm)),
            (Setting::Duplicate, is_ppm(self.duplicate_ppm)),
            (Setting::Reorder, is_ppm(self.reorder_ppm)),
            (Setting::Rate, self.rate_bits_per_s.is_none_or(|rate| RATE_BITS.contains(&rate))),
            (Setting::Queue, self.queue_bytes.is_none_or(|bytes| QUEUE_BYTES.contains(&bytes))),
            (Setting::Outage, self.outage.is_none_or(is_outage)),
        ] {
            if !holds {
                let value = setting.value(self).expect("what is unset is within its bounds");
                return Err(ImpairmentError::refused(setting, value));
            }
        }
        if self.queue_bytes.is_some() && self.rate_bits_per_s.is_none() {
            return Err(ImpairmentError::QueueWithoutRate);
        }
        Ok(())
    }
}

impl Outage {
    /// When the outage that holds at `now` is over.
    pub(crate) fn end(self, now: Duration) -> Option<Duration> {
        let every = self.every.as_nanos().max(1);
        let into = now.as_nanos() % every;
        (into.saturating_add(self.length.as_nanos()) >= every).then(|| {
            let left = u64::try_from(every - into).unwrap_or(u64::MAX);
            now.saturating_add(Duration::from_nanos(left))
        })
    }
}

const fn whole_us(duration: Duration) -> Duration {
    Duration::new(duration.as_secs(), duration.subsec_micros() * 1_000)
}
