//! State that exceeds its link's capacity: the queue at the bottleneck, the throughput, the age of entities,
//! and how two such links share one bottleneck.

use super::super::args::LossArgs;
use super::super::machine::Cores;
use super::super::network::Passed;
use super::super::replicate::{Shares, Walk, shared};
use super::super::table::{Table, figure};
use super::super::tally::{percent, percentile};
use parlor::Impairment;
use serde::Serialize;
use std::time::{Duration, Instant};

/// What passes the narrow place, in bits per second.
const RATE_BITS: u64 = 2_000_000;
/// Bytes that wait before it at most: half a second, as home routers have it.
const QUEUE_BYTES: u64 = 128_000;
/// Walkers that want 3 Mbit/s.
const WALKERS: u32 = 4_000;
const HZ: u16 = super::TICK_HZ;
/// How much later the second flow comes.
const APART: Duration = Duration::from_secs(10);
/// The queue stands for as much as is left of it at its lowest in so long.
const STANDING: Duration = Duration::from_millis(100);

/// One row.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    flows: u32,
    wants_kbit_per_second: f64,
    /// What passed, of each flow, with headers of IP and UDP.
    passed_kbit_per_second: Vec<f64>,
    /// The largest of these by the smallest.
    share: f64,
    overflowed_percent: Option<f64>,
    standing_ms_p50: Option<f64>,
    standing_ms_p95: Option<f64>,
    /// How long packets waited.
    wait_ms_p50: Option<f64>,
    wait_ms_p95: Option<f64>,
    staleness_ms_p50: Option<f64>,
    staleness_ms_p99: Option<f64>,
}

/// Measures one flow, and two of which the second comes later.
///
/// # Errors
/// What kept it from measuring.
pub(super) fn run(cores: Cores, args: &LossArgs) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for flows in [1, 2] {
        crate::output::tell(&format!("a narrow place, flows: {flows}"));
        let walk = Walk {
            hz: HZ,
            entities: WALKERS,
            moving_percent: 100,
            clients: flows,
            apart: Duration::ZERO,
            span: Duration::from_secs_f64(args.seconds),
            seed: args.common.seed,
        };
        let narrow =
            Impairment::none().rate_bits_per_s(RATE_BITS).queue_bytes(QUEUE_BYTES).seed(args.common.seed);
        let latency = Duration::from_millis(args.latency);
        rows.push(row(flows, shared(cores, &walk, (latency, &narrow), APART)?));
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "bytes of minutes stay far below 2⁵³")]
fn row(flows: u32, shares: Shares) -> Row {
    let Shares { span, passed, staleness_ticks, wants_bytes_per_second } = shares;
    let mut standing = standing_us(&passed, span);
    let within: Vec<&Passed> =
        passed.iter().filter(|passed| span.0 <= passed.at && passed.at < span.1).collect();
    let mut waits: Vec<u32> =
        within.iter().filter_map(|passed| Some(us(passed.until? - passed.at))).collect();
    let passed_kbit_per_second: Vec<f64> = (0..flows as usize)
        .map(|flow| {
            let through = within.iter().filter(|passed| passed.way == flow && passed.until.is_some());
            let bytes: u64 = through.map(|passed| passed.bytes).sum();
            bytes as f64 * 8.0 / 1e3 / (span.1 - span.0).as_secs_f64()
        })
        .collect();
    let (least, most) = passed_kbit_per_second
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), kbit| (least.min(*kbit), most.max(*kbit)));
    let mut ticks: Vec<u32> = staleness_ticks.into_iter().flatten().collect();
    let mut behind =
        |percent| percentile(&mut ticks, percent).map(|ticks| f64::from(ticks) * 1e3 / f64::from(HZ));
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1e3);
    Row {
        flows,
        wants_kbit_per_second: wants_bytes_per_second * 8.0 / 1e3,
        share: most / least,
        passed_kbit_per_second,
        overflowed_percent: percent((within.len() - waits.len()) as u64, within.len() as u64),
        standing_ms_p50: ms(percentile(&mut standing, 50)),
        standing_ms_p95: ms(percentile(&mut standing, 95)),
        wait_ms_p50: ms(percentile(&mut waits, 50)),
        wait_ms_p95: ms(percentile(&mut waits, 95)),
        staleness_ms_p50: behind(50),
        staleness_ms_p99: behind(99),
    }
}

/// The queue at its lowest in each [`STANDING`] of a span: how long a packet would have waited, in microseconds. It is lowest
/// just before a packet comes, or at the end.
fn standing_us(passed: &[Passed], (began, over): (Instant, Instant)) -> Vec<u32> {
    let mut standing = Vec::new();
    let mut passed = passed.iter().peekable();
    let mut free_at = began;
    while let Some(before) = passed.next_if(|passed| passed.at < began) {
        free_at = before.until.unwrap_or(free_at);
    }
    let mut end = began + STANDING;
    while end <= over {
        let mut lowest = Duration::MAX;
        while let Some(next) = passed.next_if(|passed| passed.at < end) {
            lowest = lowest.min(free_at.saturating_duration_since(next.at));
            free_at = next.until.unwrap_or(free_at);
        }
        standing.push(us(lowest.min(free_at.saturating_duration_since(end))));
        end += STANDING;
    }
    standing
}

fn us(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// What passed of each flow.
fn each(kbit_per_second: &[f64]) -> String {
    kbit_per_second.iter().map(|kbit| format!("{kbit:.0}")).collect::<Vec<_>>().join(" + ")
}

pub(super) fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("flows", |row| row.flows.to_string()),
            ("wants kbit/s", |row| figure(row.wants_kbit_per_second, 0)),
            ("passed kbit/s each", |row| each(&row.passed_kbit_per_second)),
            ("share", |row| figure(row.share, 2)),
            ("overflowed %", |row| figure(row.overflowed_percent, 2)),
            ("standing p50 ms", |row| figure(row.standing_ms_p50, 1)),
            ("p95 ms", |row| figure(row.standing_ms_p95, 1)),
            ("wait p50 ms", |row| figure(row.wait_ms_p50, 1)),
            ("p95 ms", |row| figure(row.wait_ms_p95, 1)),
            ("staleness p50 ms", |row| figure(row.staleness_ms_p50, 0)),
            ("p99 ms", |row| figure(row.staleness_ms_p99, 0)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_drains_between_bursts_does_not_stand() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let packet =
            |came: u64, until: u64| Passed { at: at(came), until: Some(at(until)), way: 0, bytes: 1_000 };
        let bursts = [packet(0, 40), packet(1, 80), packet(90, 130), packet(95, 190)];
        assert_eq!(standing_us(&bursts, (began, at(200))), [0, 0], "it is empty at 0 and at 190 ms");
        let stands = [packet(0, 140), packet(50, 180), packet(120, 240), packet(199, 300)];
        assert_eq!(standing_us(&stands, (at(10), at(210))), [70_000, 41_000]);
        let full = [packet(0, 140), Passed { until: None, ..packet(50, 0) }];
        assert_eq!(standing_us(&full, (began, at(100))), [0], "what found no room changes nothing");
    }
}
