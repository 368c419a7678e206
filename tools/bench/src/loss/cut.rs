//! Recovery after a cut: from the return of a client's link to the first new change.

use super::super::args::LossArgs;
use super::super::machine::Cores;
use super::super::replicate::{Walk, cut};
use super::super::table::{Table, figure};
use super::super::tally::percentile;
use serde::Serialize;
use std::time::Duration;

/// How long the link is cut.
const CUT: Duration = Duration::from_secs(3);
/// How often.
const TIMES: u32 = 5;

/// The one row.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    cut_ms: u64,
    times: u32,
    round_trip_ms: u64,
    again_ms_p50: Option<f64>,
    again_ms_max: Option<f64>,
    /// The longest in round trips.
    again_round_trips_max: Option<f64>,
}

/// Measures it.
///
/// # Errors
/// What kept it from measuring.
pub(super) fn run(cores: Cores, args: &LossArgs) -> anyhow::Result<Vec<Row>> {
    crate::output::tell("a link that is cut");
    let walk = Walk {
        hz: super::TICK_HZ,
        entities: super::WALKERS,
        moving_percent: 100,
        clients: 1,
        apart: Duration::ZERO,
        span: Duration::ZERO,
        seed: args.common.seed,
    };
    let again = cut(cores, &walk, Duration::from_millis(args.latency), CUT, TIMES)?;
    let mut us: Vec<u32> =
        again.iter().map(|span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX)).collect();
    let mut ms = |percent| percentile(&mut us, percent).map(|us| f64::from(us) / 1e3);
    let round_trip_ms = 2 * args.latency;
    let (again_ms_p50, again_ms_max) = (ms(50), ms(100));
    #[expect(clippy::cast_precision_loss, reason = "a round trip of seconds")]
    let again_round_trips_max = again_ms_max.map(|max| max / round_trip_ms.max(1) as f64);
    let cut_ms = u64::try_from(CUT.as_millis()).unwrap_or(u64::MAX);
    Ok(vec![Row { cut_ms, times: TIMES, round_trip_ms, again_ms_p50, again_ms_max, again_round_trips_max }])
}

pub(super) fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("cut ms", |row| row.cut_ms.to_string()),
            ("times", |row| row.times.to_string()),
            ("round trip ms", |row| row.round_trip_ms.to_string()),
            ("again p50 ms", |row| figure(row.again_ms_p50, 0)),
            ("max ms", |row| figure(row.again_ms_max, 0)),
            ("max round trips", |row| figure(row.again_round_trips_max, 1)),
        ],
    )
}
