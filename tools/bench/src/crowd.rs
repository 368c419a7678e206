//! 100 players who all see each other: the engine's cost a tick, in this process and on one core.

use super::args::CrowdArgs;
use super::machine::Cores;
use super::stand::{Counts, Plan, Stand};
use super::table::{Table, figure};
use crate::output::{print, tell};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

const HZ: u16 = 30;
/// Warm-up, in seconds: every member gets all state.
const WARM_UP_SECONDS: u16 = 2;

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    acknowledgements: &'static str,
    players: u32,
    cpu_ms_per_tick: f64,
    commit_cpu_ms_per_tick: f64,
    payload_bytes_per_second_per_player: f64,
    updates_per_entity_per_second: f64,
    bodies_coded_per_tick: f64,
}

/// Runs the bench.
///
/// # Errors
/// A player decodes something else than the world holds.
pub(crate) fn run(args: &CrowdArgs) -> anyhow::Result<()> {
    // Its core is one that nothing else of the bench uses.
    Cores::take()?;
    let mut rows = Vec::new();
    // 100 players within 150 ms, or all at once.
    for (acknowledgements, apart) in [("apart", 150_000 / args.players), ("equal", 0)] {
        tell(&format!("{} players, acknowledgements {acknowledgements}", args.players));
        rows.push(row(args, acknowledgements, Duration::from_micros(apart.into()))?);
    }
    let table = Table::of(
        &rows,
        &[
            ("CPU ms/tick", |row| figure(row.cpu_ms_per_tick, 3)),
            ("of it commit", |row| figure(row.commit_cpu_ms_per_tick, 3)),
            ("payload B/s/player", |row| figure(row.payload_bytes_per_second_per_player, 0)),
            ("updates/s", |row| figure(row.updates_per_entity_per_second, 2)),
            ("bodies/tick", |row| figure(row.bodies_coded_per_tick, 1)),
            ("acknowledgements", |row| row.acknowledgements.to_owned()),
        ],
    );
    let setting = json!({ "hz": HZ, "seconds": args.seconds, "seed": args.common.seed });
    print("crowd", args.common.json, &setting, &rows, &[], &table)
}

fn row(args: &CrowdArgs, acknowledgements: &'static str, apart: Duration) -> anyhow::Result<Row> {
    let plan = Plan {
        entities: args.players as usize,
        moving_percent: 100,
        hz: HZ,
        delays: Plan::delays(args.players, apart),
        seed: args.common.seed,
    };
    let mut stand = Stand::new(plan, args.seconds + u32::from(WARM_UP_SECONDS))?;
    stand.run(u32::from(WARM_UP_SECONDS * HZ))?;
    let before = stand.encodings().0;
    let counts = stand.run(args.seconds * u32::from(HZ))?;
    stand.compare()?;
    let bodies = stand.encodings().0 - before;
    let players = f64::from(args.players);
    let Counts { ticks, commit, publish, bytes, updates, .. } = counts;
    let seconds = f64::from(args.seconds);
    let ms_per_tick = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(ticks);
    #[expect(clippy::cast_precision_loss, reason = "counters of seconds stay far below 2⁵³")]
    let float = |count: u64| count as f64;
    Ok(Row {
        acknowledgements,
        players: args.players,
        cpu_ms_per_tick: ms_per_tick(commit + publish),
        commit_cpu_ms_per_tick: ms_per_tick(commit),
        payload_bytes_per_second_per_player: float(bytes) / players / seconds,
        updates_per_entity_per_second: float(updates) / players / players / seconds,
        bodies_coded_per_tick: float(bodies) / f64::from(ticks),
    })
}
