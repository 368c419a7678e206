//! The settings of an impaired network.

use crate::text::{ImpairmentError, Setting};
use core::time::Duration;

/// Default queue at a bottleneck, in bytes.
pub const QUEUE_BYTES_DEFAULT: u64 = 64_000;

const DELAY_MAX: Duration = Duration::from_secs(10);
const PERIOD_MAX: Duration = Duration::from_secs(3_600);
const MILLION: u32 = 1_000_000;
const RATE_BITS: core::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;
const QUEUE_BYTES: core::ops::RangeInclusive<u64> = 1_500..=64_000_000;

/// Settings of an impaired network, the same in both directions. Default: no impairment.
///
/// As text it is a list such as
/// `latency=100ms,jitter=30ms,loss=5%,duplicate=1%,reorder=2%,rate=2mbit,queue=64kB,`
/// `outage=500ms/10s,seed=7`, in which every part is optional, or `none`.
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

/// A periodic time in which nothing gets through. It is at the end of each period, so that a connection can
/// be opened before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its length, at least 1 ms.
    pub length: Duration,
    /// The period: longer than `length`, at most an hour.
    pub every: Duration,
}

impl Impairment {
    /// Creates settings without impairment.
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

    /// Sets the minimum one-way delay: up to 10 s, in whole microseconds.
    #[must_use]
    pub const fn latency(self, latency: Duration) -> Self {
        Impairment { latency: whole_us(latency), ..self }
    }

    /// Sets the jitter, a uniformly distributed additional delay: up to 10 s, in whole microseconds. It
    /// reorders datagrams.
    #[must_use]
    pub const fn jitter(self, jitter: Duration) -> Self {
        Impairment { jitter: whole_us(jitter), ..self }
    }

    /// Sets how many of 1,000,000 packets are lost. A stream stalls instead.
    #[must_use]
    pub const fn loss_ppm(self, ppm: u32) -> Self {
        Impairment { loss_ppm: ppm, ..self }
    }

    /// Sets how many of 1,000,000 datagrams arrive twice.
    #[must_use]
    pub const fn duplicate_ppm(self, ppm: u32) -> Self {
        Impairment { duplicate_ppm: ppm, ..self }
    }

    /// Sets how many of 1,000,000 packets take 10 to 60 ms longer, so that later ones overtake them.
    #[must_use]
    pub const fn reorder_ppm(self, ppm: u32) -> Self {
        Impairment { reorder_ppm: ppm, ..self }
    }

    /// Sets the bandwidth: 1 kbit to 10 Gbit per second. Default: unlimited.
    #[must_use]
    pub const fn rate_bits_per_s(self, rate: u64) -> Self {
        Impairment { rate_bits_per_s: Some(rate), ..self }
    }

    /// Sets the queue before the [bottleneck](Self::rate_bits_per_s): 1.5 kB to 64 MB. Default:
    /// [`QUEUE_BYTES_DEFAULT`]. Datagrams beyond it are lost.
    #[must_use]
    pub const fn queue_bytes(self, bytes: u64) -> Self {
        Impairment { queue_bytes: Some(bytes), ..self }
    }

    /// Sets the outages, in whole microseconds.
    #[must_use]
    pub const fn outage(self, outage: Outage) -> Self {
        let outage = Outage { length: whole_us(outage.length), every: whole_us(outage.every) };
        Impairment { outage: Some(outage), ..self }
    }

    /// Sets the random seed. Default: 0.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Impairment { seed, ..self }
    }

    /// Returns the same settings with another random sequence, for the `number`th of several networks that
    /// must not fail together.
    #[must_use]
    pub const fn apart(self, number: u64) -> Self {
        Impairment { seed: self.seed.wrapping_add(number), ..self }
    }

    /// Whether nothing is impaired, so that packets need no [`Path`](crate::Path).
    pub fn is_none(&self) -> bool {
        *self == Impairment::none().seed(self.seed)
    }

    /// The one-way delay without jitter, queue and losses.
    pub const fn one_way(&self) -> Duration {
        self.latency
    }

    /// Checks that all settings are in range. Text is checked when it is parsed. Values out of range are
    /// applied as far as possible, and never panic.
    ///
    /// # Errors
    /// The first setting that is out of range, with its range.
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
    /// Returns the end of the outage at `now`, if there is one.
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
