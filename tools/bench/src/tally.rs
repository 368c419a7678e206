//! Results of one measurement's messages.

use serde::Serialize;

/// Counts messages that were sent while the window was open, wherever and whenever they arrive.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Messages that were sent in the window.
    pub sent: u64,
    /// Arrivals that these should have: one for each other member of the room.
    pub expected: u64,
    latencies_us: Vec<u32>,
}

/// What a tally says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Delivery {
    /// Messages that members sent.
    pub messages_sent: u64,
    /// Arrivals that these should have had.
    pub messages_expected: u64,
    /// Arrivals that they had.
    pub messages_delivered: u64,
    /// Part of the expected ones that arrived, in percent; `None` where nothing was sent.
    pub delivered_percent: Option<f64>,
    /// The time from sender to receiver that half of them did not exceed.
    pub latency_us_p50: Option<u32>,
    /// The time that 99% of them did not exceed.
    pub latency_us_p99: Option<u32>,
}

impl Tally {
    /// A tally with room for so many arrivals: growing would stop the generator for milliseconds.
    pub(crate) fn for_arrivals(count: usize) -> Self {
        Tally { latencies_us: Vec::with_capacity(count), ..Tally::default() }
    }

    /// Notes that a message was sent to so many others.
    pub(crate) fn sent(&mut self, others: u64) {
        self.sent += 1;
        self.expected += others;
    }

    /// Notes that a message arrived so long after it was sent.
    pub(crate) fn arrived(&mut self, latency_us: u32) {
        self.latencies_us.push(latency_us);
    }

    /// The time that so many percent of the arrivals did not exceed.
    pub(crate) fn latency_us(&mut self, percent: usize) -> Option<u32> {
        percentile(&mut self.latencies_us, percent)
    }

    /// What it comes to.
    pub(crate) fn into_delivery(mut self) -> Delivery {
        let delivered = self.latencies_us.len() as u64;
        Delivery {
            messages_sent: self.sent,
            messages_expected: self.expected,
            messages_delivered: delivered,
            delivered_percent: percent(delivered, self.expected),
            latency_us_p50: percentile(&mut self.latencies_us, 50),
            latency_us_p99: percentile(&mut self.latencies_us, 99),
        }
    }
}

/// `part` of `whole` in percent.
#[expect(clippy::cast_precision_loss, reason = "counts of messages stay far below 2⁵³")]
pub(crate) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// The smallest value that at least `percent` of all do not exceed (nearest rank); 1 to 100. Reorders the values.
pub(crate) fn percentile(values: &mut [u32], percent: usize) -> Option<u32> {
    assert!((1..=100).contains(&percent), "a percentile is 1 to 100");
    let rank = (values.len() * percent).div_ceil(100);
    let index = rank.checked_sub(1)?;
    Some(*values.select_nth_unstable(index).1)
}

/// The one in the middle, or the mean of the two there.
pub(crate) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    Some(f64::midpoint(figures[last / 2], figures[last.div_ceil(2)]))
}

/// Above this much of its core the generator may be what is slow.
const GENERATOR_CPU_PERCENT_MAX: f64 = 80.0;
/// Below this the server does not carry the load.
pub(crate) const DELIVERED_PERCENT_MIN: f64 = 99.9;

/// Why a row says nothing of the server, if the generator was too busy.
pub(crate) fn generator_too_slow(cpu_percent: f64) -> Option<String> {
    (cpu_percent > GENERATOR_CPU_PERCENT_MAX)
        .then(|| format!("the generator took more than {GENERATOR_CPU_PERCENT_MAX}% of its core"))
}

/// Why the figures of a row count for nothing, if they do.
pub(crate) fn void(generator_cpu_percent: f64, delivery: &Delivery) -> Option<String> {
    let Some(delivered) = delivery.delivered_percent else { return Some("nothing was sent".to_owned()) };
    let too_slow = generator_too_slow(generator_cpu_percent);
    if too_slow.is_some() {
        too_slow
    } else if delivered < DELIVERED_PERCENT_MIN {
        Some(format!("less than {DELIVERED_PERCENT_MIN}% arrived"))
    } else if delivered > 100.0 {
        Some("more arrived than was sent".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delivery(sent: u64, arrived: u32) -> Delivery {
        let mut tally = Tally::for_arrivals(8);
        (0..sent).for_each(|_| tally.sent(7));
        (0..arrived).for_each(|latency_us| tally.arrived(latency_us));
        tally.into_delivery()
    }

    #[test]
    fn what_arrives_is_compared_with_what_was_sent() {
        let all = delivery(10, 70);
        assert_eq!((all.messages_sent, all.messages_expected, all.messages_delivered), (10, 70, 70));
        assert_eq!(
            (all.delivered_percent, all.latency_us_p50, all.latency_us_p99),
            (Some(100.0), Some(34), Some(69))
        );
        assert_eq!(delivery(0, 0).latency_us_p50, None);
    }

    #[test]
    fn a_row_is_void_for_a_reason() {
        assert_eq!(void(80.0, &delivery(100, 700)), None);
        assert!(void(80.1, &delivery(100, 700)).expect("the generator").contains("generator"));
        assert!(void(10.0, &delivery(100, 699)).expect("too few").contains("99.9%"));
        assert!(void(10.0, &delivery(100, 701)).expect("too many").contains("more arrived"));
        assert!(void(10.0, &delivery(0, 0)).expect("nothing").contains("nothing"));
    }

    proptest! {
        #[test]
        fn a_percentile_is_the_one_of_the_sorted_values(
            mut values in proptest::collection::vec(any::<u32>(), 1..300), percent in 1..=100_usize,
        ) {
            let found = percentile(&mut values, percent).expect("there are values");
            let up_to = values.iter().filter(|value| **value <= found).count();
            let below = values.iter().filter(|value| **value < found).count();
            prop_assert!(up_to * 100 >= values.len() * percent, "enough do not exceed it");
            prop_assert!(below * 100 < values.len() * percent, "a smaller one would not do");
        }
    }
}
