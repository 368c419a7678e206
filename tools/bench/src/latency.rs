//! Latency of a message through the relay at half a core of load, beside the plainest QUIC relay. Both run
//! throughout and are measured in turns, so other load on the machine affects both.

use super::args::{LatencyArgs, Transport};
use super::load::{self, Measured, Plan, Target};
use super::machine::Cores;
use super::member::{MEMBERS, RATE_HZ};
use super::pace::Pace;
use super::peers::{self, PlainRelay};
use super::server::{Server, Settings};
use super::stamp::MESSAGE_BYTES;
use super::table::{Table, figure};
use super::tally::DELIVERED_PERCENT_MIN;
use crate::output::{print, tell};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// The load that is looked for: half a core.
const LOAD_PERCENT: f64 = 50.0;
/// Where looking begins.
const ROOMS_AT_FIRST: u32 = 4;
/// How often the load is measured and scaled. A message costs less under load, so once is not enough.
const SEARCHES: u32 = 3;
const SEARCH_TIME: Duration = Duration::from_secs(1);
const ROOMS_MAX: u32 = 1_000;

/// One row: a turn of one relay.
#[derive(Debug, Serialize)]
struct Row {
    relay: &'static str,
    turn: u32,
    #[serde(flatten)]
    measured: Measured,
}

const OURS: &str = "parlor";

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &LatencyArgs) -> anyhow::Result<()> {
    let server = Server::start(cores, &Settings::default())?;
    let plain = PlainRelay::start(cores)?;
    let mut relays = vec![(OURS, Target::server(&server, Transport::Quic).await?)];
    relays.extend(plain.as_ref().map(|plain| (peers::PLAIN, plain.target())));
    let plan = |rooms, span| Plan { rooms, pace: Pace::Drifting, seed: args.common.seed, span };
    let rooms = match args.rooms {
        Some(rooms) => rooms,
        None => find_load(&relays, &plan).await?,
    };
    let span = Duration::from_secs_f64(args.seconds);
    let mut rows = Vec::new();
    for turn in 1..=args.turns {
        for (relay, target) in &relays {
            tell(&format!("{relay}, {rooms} rooms, turn {turn}"));
            let (measured, _) =
                load::measure(core::slice::from_ref(target), &plan(rooms, span), async || Ok(())).await?;
            rows.push(Row { relay, turn, measured });
        }
    }
    let ratios =
        [|row: &Row| row.measured.delivery.latency_us_p50, |row: &Row| row.measured.delivery.latency_us_p99]
            .map(|of| ratio(&rows, of));
    let setting = json!({
        "cores": cores, "seed": args.common.seed, "seconds": args.seconds, "flush_quantum_ms": 0, "rooms": rooms,
        "members_per_room": MEMBERS, "rate_hz": RATE_HZ, "message_bytes": MESSAGE_BYTES,
        "latency_p50_ratio_to_plain": ratios[0], "latency_p99_ratio_to_plain": ratios[1],
    });
    let mut notes = vec![format!("{rooms} rooms; {}", cores.note())];
    match plain {
        Some(_) => notes.push(format!(
            "medians of the turns, {OURS} to {}: p50 {}, p99 {}",
            peers::PLAIN,
            figure(ratios[0], 2),
            figure(ratios[1], 2)
        )),
        None => notes.push(peers::how_to_build_plain()),
    }
    print("latency", args.common.json, &setting, &rows, &notes, &table(&rows))
}

/// Rooms under which the busiest of the relays takes half a core, so that none is measured near its end.
async fn find_load(relays: &[(&str, Target)], plan: &impl Fn(u32, Duration) -> Plan) -> anyhow::Result<u32> {
    let mut rooms = ROOMS_AT_FIRST;
    for _ in 0..SEARCHES {
        tell(&format!("the load of {rooms} rooms"));
        let mut loads = Vec::new();
        for (_, target) in relays {
            let (measured, _) =
                load::measure(core::slice::from_ref(target), &plan(rooms, SEARCH_TIME), async || Ok(()))
                    .await?;
            loads.push(measured);
        }
        rooms = next_rooms(rooms, &loads);
    }
    Ok(rooms)
}

/// With how many rooms to go on. A relay that does not carry its load takes no more of its core, whatever it is given.
fn next_rooms(rooms: u32, loads: &[Measured]) -> u32 {
    if loads
        .iter()
        .any(|load| load.delivery.delivered_percent.is_none_or(|delivered| delivered < DELIVERED_PERCENT_MIN))
    {
        return (rooms / 2).max(1);
    }
    let busiest = loads.iter().map(|load| load.usage.server_cpu_percent).fold(0.0, f64::max);
    scaled(rooms, busiest)
}

/// As many rooms as make the load that is looked for, if so many made `percent`.
fn scaled(rooms: u32, percent: f64) -> u32 {
    let wanted = f64::from(rooms) * LOAD_PERCENT / percent;
    // A load of nothing scales to infinity, which the bound takes in.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    let rooms = wanted.round().clamp(1.0, f64::from(ROOMS_MAX)) as u32;
    rooms
}

/// The median of a figure of our rows to that of the plain relay's.
fn ratio(rows: &[Row], of: fn(&Row) -> Option<u32>) -> Option<f64> {
    let median = |relay: &str| {
        let mut values: Vec<u32> = rows.iter().filter(|row| row.relay == relay).filter_map(of).collect();
        super::tally::percentile(&mut values, 50)
    };
    Some(f64::from(median(OURS)?) / f64::from(median(peers::PLAIN)?))
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("turn", |row| row.turn.to_string()),
            ("relay", |row| row.relay.to_owned()),
            ("p50 µs", |row| figure(row.measured.delivery.latency_us_p50.map(f64::from), 0)),
            ("p99 µs", |row| figure(row.measured.delivery.latency_us_p99.map(f64::from), 0)),
            ("server CPU %", |row| figure(row.measured.usage.server_cpu_percent, 1)),
            ("waited %", |row| figure(row.measured.usage.server_waited_percent, 1)),
            ("delivered %", |row| figure(row.measured.delivery.delivered_percent, 3)),
            ("generator CPU %", |row| figure(row.measured.usage.generator_cpu_percent, 1)),
            ("void because", |row| row.measured.void.clone().unwrap_or_default()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::account::CpuTime;
    use super::super::load::Spent;
    use super::super::tally::Tally;
    use super::*;

    #[test]
    fn rooms_are_scaled_to_half_a_core() {
        assert_eq!(scaled(4, 10.0), 20);
        assert_eq!(scaled(40, 80.0), 25);
        assert_eq!(scaled(4, 0.0), ROOMS_MAX);
        assert_eq!(scaled(1, 400.0), 1);
    }

    #[test]
    fn the_busiest_relay_decides_and_one_that_is_overloaded_gets_less() {
        let load = |arrivals: u32, ran_ms: u64| {
            let mut tally = Tally::for_arrivals(7);
            tally.sent(7);
            (0..arrivals).for_each(|_| tally.arrived(1));
            let server = CpuTime { ran: Duration::from_millis(ran_ms), waited: Duration::ZERO };
            let generator = CpuTime::default();
            load::evaluate(
                tally.into_delivery(),
                &[],
                Spent { server, generator, took: Duration::from_secs(1) },
            )
        };
        assert_eq!(next_rooms(4, &[load(7, 100), load(7, 250)]), 8);
        assert_eq!(next_rooms(40, &[load(7, 100), load(6, 250)]), 20);
        assert_eq!(next_rooms(1, &[load(0, 250)]), 1);
    }
}
