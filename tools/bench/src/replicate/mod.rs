//! Cost of sharing a thousand walkers with 16 clients: bytes for each client, and the server's processor time
//! a tick. Server and host are one process, the clients another. Between them a [network](super::network)
//! delays acknowledgements and counts the server's packets.

mod client;
mod host;
mod measured;
mod narrow;

pub(crate) use host::serve;
pub(crate) use measured::{Load, Walk, staleness_ticks};
pub(crate) use narrow::{Shares, cut, shared};

use super::args::{Library, ReplicateArgs};
use super::machine::Cores;
use super::peers;
use super::stand::{Counts, Plan, Stand};
use super::table::{Table, figure};
use super::tally::generator_too_slow;
use crate::output::{print, tell};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// What the walkers are called towards the server.
const APP: &str = "parlor-bench-walkers";
/// Of so many seconds the motion is recorded before; then it goes back.
pub(crate) const RECORDED_SECONDS: u32 = 20;
/// From one client to the next, how much later its acknowledgements arrive, where they arrive apart.
const APART: Duration = Duration::from_millis(10);
/// Less than this part of the changes that the whole recording has on average, and a library leaves some out: what is measured
/// is a part of the recording, and within 1% of its average.
const UPDATES_MIN: f64 = 0.97;

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    library: &'static str,
    hz: u16,
    moving_percent: u32,
    acknowledgements: &'static str,
    /// With headers of IP and UDP; of the engine alone the payload.
    bytes_per_second_per_client: f64,
    packets_per_second_per_client: f64,
    updates_per_entity_per_second: f64,
    server_cpu_ms_per_tick: f64,
    server_cpu_percent: Option<f64>,
    server_waited_percent: Option<f64>,
    generator_cpu_percent: Option<f64>,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) fn run(args: &ReplicateArgs) -> anyhow::Result<()> {
    let cores = Cores::take()?;
    let mut rows = Vec::new();
    let mut notes = vec![cores.note()];
    for library in &args.of {
        if let Some(how) = how_to_build(*library) {
            notes.push(how);
            continue;
        }
        for hz in &args.hz {
            for moving_percent in &args.moving {
                for (acknowledgements, apart) in [("apart", APART), ("equal", Duration::ZERO)] {
                    tell(&format!(
                        "{}, {hz} Hz, {moving_percent}% moving, acknowledgements {acknowledgements}",
                        library.as_str()
                    ));
                    let walk = Walk { hz: *hz, moving_percent: *moving_percent, apart, ..Walk::new(args) };
                    rows.push(row(cores, *library, &walk, acknowledgements)?);
                }
            }
        }
    }
    notes.push("bytes with headers of IP and UDP; of the engine alone the payload".to_owned());
    let setting = json!({
        "cores": cores, "seed": args.common.seed, "seconds": args.seconds, "entities": args.entities,
        "clients": args.clients, "apart_ms": APART.as_millis(),
    });
    print("replicate", args.common.json, &setting, &rows, &notes, &table(&rows))
}

/// What to do where a library is not built.
fn how_to_build(library: Library) -> Option<String> {
    let binary = library.binary()?;
    peers::built(&format!("target/release/{binary}")).is_none().then(|| peers::how_to_build(library.as_str()))
}

fn row(cores: Cores, library: Library, walk: &Walk, acknowledgements: &'static str) -> anyhow::Result<Row> {
    let load = match library {
        Library::Engine => return engine(walk, acknowledgements),
        Library::Parlor => measured::parlor(cores, walk)?,
        Library::BevyReplicon | Library::Lightyear => {
            peers::walkers(cores, library.binary().unwrap_or_default(), walk)?
        }
    };
    let us = |us: u64| Duration::from_micros(us).as_secs_f64();
    let took = us(load.took_us);
    let percent = |time_us: u64| us(time_us) * 100.0 / took;
    let generator_cpu_percent = percent(load.generator_cpu_us);
    let void = match generator_too_slow(generator_cpu_percent) {
        Some(why) => Some(why),
        None => walk.lacks(load.updates_per_entity_per_second)?,
    };
    Ok(Row {
        library: library.as_str(),
        hz: walk.hz,
        moving_percent: walk.moving_percent,
        acknowledgements,
        bytes_per_second_per_client: load.bytes_per_second_per_client,
        packets_per_second_per_client: load.packets_per_second_per_client,
        updates_per_entity_per_second: load.updates_per_entity_per_second,
        server_cpu_ms_per_tick: us(load.server_cpu_us) * 1e3 / took / f64::from(walk.hz),
        server_cpu_percent: Some(percent(load.server_cpu_us)),
        server_waited_percent: Some(percent(load.server_waited_us)),
        generator_cpu_percent: Some(generator_cpu_percent),
        void,
    })
}

/// The state engine alone, in this process and without sockets.
fn engine(walk: &Walk, acknowledgements: &'static str) -> anyhow::Result<Row> {
    let plan = Plan {
        entities: walk.entities as usize,
        moving_percent: walk.moving_percent,
        hz: walk.hz,
        delays: Plan::delays(walk.clients, walk.apart),
        seed: walk.seed,
    };
    let mut stand = Stand::new(plan, RECORDED_SECONDS)?;
    let hz = f64::from(walk.hz);
    stand.run(2 * u32::from(walk.hz))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes of ticks")]
    let counts = stand.run((walk.span.as_secs_f64() * hz) as u32)?;
    stand.compare()?;
    let Counts { ticks, commit, publish, packets, bytes, changes, updates } = counts;
    let seconds = f64::from(ticks) / hz;
    #[expect(clippy::cast_precision_loss, reason = "counters of seconds stay far below 2⁵³")]
    let per_client = |count: u64| count as f64 / f64::from(walk.clients) / seconds;
    let updates_per_entity_per_second = per_client(updates) / f64::from(walk.entities);
    Ok(Row {
        library: Library::Engine.as_str(),
        hz: walk.hz,
        moving_percent: walk.moving_percent,
        acknowledgements,
        bytes_per_second_per_client: per_client(bytes),
        packets_per_second_per_client: per_client(packets),
        updates_per_entity_per_second,
        server_cpu_ms_per_tick: (commit + publish).as_secs_f64() * 1e3 / f64::from(ticks),
        server_cpu_percent: None,
        server_waited_percent: None,
        generator_cpu_percent: None,
        void: (updates < changes * u64::from(walk.clients)).then(|| "not every change arrived".to_owned()),
    })
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("library", |row| row.library.to_owned()),
            ("Hz", |row| row.hz.to_string()),
            ("moving %", |row| row.moving_percent.to_string()),
            ("acks", |row| row.acknowledgements.to_owned()),
            ("B/s/client", |row| figure(row.bytes_per_second_per_client, 0)),
            ("packets/s/client", |row| figure(row.packets_per_second_per_client, 1)),
            ("updates/entity/s", |row| figure(row.updates_per_entity_per_second, 2)),
            ("server CPU ms/tick", |row| figure(row.server_cpu_ms_per_tick, 3)),
            ("server CPU %", |row| figure(row.server_cpu_percent, 1)),
            ("waited %", |row| figure(row.server_waited_percent, 1)),
            ("generator CPU %", |row| figure(row.generator_cpu_percent, 1)),
            ("void because", |row| row.void.clone().unwrap_or_default()),
        ],
    )
}
