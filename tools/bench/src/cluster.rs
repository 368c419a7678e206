//! Cost of a second node: the same load at one server, at two servers, and at two nodes that share a PostgreSQL store, in
//! turns.
//!
//! All servers run on one core, so two nodes have no more processor than one server. The figures say what a node adds,
//! not what two machines carry.

use super::account::{CpuTime, cpu_time};
use super::args::{ClusterArgs, ClusterPart as Part, Transport};
use super::load::{self, Plan, Spent, Target};
use super::machine::Cores;
use super::notices;
use super::pace::Pace;
use super::server::{Server, Settings};
use super::table::{Table, figure, ms};
use super::tally::{generator_too_slow, median, percentile};
use super::turns::Moves;
use crate::output::{print, tell};
use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long nodes settle before their idleness is measured.
const SETTLE: Duration = Duration::from_secs(3);

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Part::Idle => "idle",
            Part::Relay => "relay",
            Part::Turns => "turns",
            Part::Notices => "notices",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Part::Idle => "% of a core for each server",
            Part::Relay => "CPU µs/message",
            Part::Turns => "moves/s",
            Part::Notices => "ms",
        }
    }
}

/// Which servers share the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Setup {
    /// One with two shards.
    Server,
    /// Two that know nothing of each other, with one shard each.
    Servers,
    /// The same as nodes of a cluster.
    Nodes,
}

impl Setup {
    fn as_str(self) -> &'static str {
        match self {
            Setup::Server => "one server",
            Setup::Servers => "two servers",
            Setup::Nodes => "two nodes",
        }
    }

    /// Those of a part: a turn room's players are at two servers only if these are nodes.
    fn of(part: Part) -> &'static [Setup] {
        match part {
            Part::Idle | Part::Relay => &[Setup::Server, Setup::Servers, Setup::Nodes],
            Part::Turns | Part::Notices => &[Setup::Server, Setup::Nodes],
        }
    }

    fn start(self, cores: Cores, args: &ClusterArgs) -> anyhow::Result<Vec<Server>> {
        let shards = |number: u8| ["--shards".to_owned(), number.to_string()];
        let store = ["--store".to_owned(), args.store.clone()];
        let bus: Vec<String> = args.bus.iter().flat_map(|bus| ["--bus".to_owned(), bus.clone()]).collect();
        let node = |number: u8| ["--node".to_owned(), format!("bench-{number}")];
        let servers = match self {
            Setup::Server => vec![[shards(2), store].concat()],
            Setup::Servers => vec![shards(1).to_vec(), shards(1).to_vec()],
            Setup::Nodes => {
                [0, 1].map(|number| [&shards(1)[..], &store, &node(number), &bus].concat()).to_vec()
            }
        };
        let start = |more: &Vec<String>| Server::start(cores, &Settings { more, ..Settings::default() });
        servers.iter().map(start).collect()
    }
}

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    part: Part,
    servers: Setup,
    figure: Option<f64>,
    unit: &'static str,
    us_p50: Option<u32>,
    us_p99: Option<u32>,
    server_cpu_percent: f64,
    /// The database's processes, in percent of a core.
    store_cpu_percent: f64,
    generator_cpu_percent: f64,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &ClusterArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for part in args.parts.iter().copied() {
        for _ in 0..args.turns {
            for setup in Setup::of(part) {
                tell(&format!("{}, {}", part.as_str(), setup.as_str()));
                rows.push(row(cores, part, *setup, args).await?);
            }
        }
    }
    let setting = json!({
        "cores": cores, "seconds": args.seconds, "relay_rooms": args.relay_rooms, "turn_rooms": args.turn_rooms,
        "connections": args.connections, "bus": args.bus,
    });
    let mut notes = vec![cores.note()];
    notes.extend(args.parts.iter().map(|part| conclusion(*part, &rows)));
    print("cluster", args.common.json, &setting, &rows, &notes, &table(&rows))
}

async fn row(cores: Cores, part: Part, setup: Setup, args: &ClusterArgs) -> anyhow::Result<Row> {
    let servers = setup.start(cores, args)?;
    let store = store_time()?;
    let seconds = Duration::from_secs_f64(args.seconds);
    let (figure, spent, [us_p50, us_p99], void) = match part {
        Part::Idle => {
            sleep(SETTLE).await;
            let pids: Vec<u32> = servers.iter().map(Server::pid).collect();
            let (began, earlier) = (Instant::now(), Spent::so_far_of(&pids)?);
            sleep(seconds).await;
            let spent = Spent::so_far_of(&pids)?.since(earlier, began.elapsed());
            #[expect(clippy::cast_precision_loss, reason = "there are two at most")]
            let each = spent.usage().server_cpu_percent / servers.len() as f64;
            (Some(each), spent, [None; 2], None)
        }
        Part::Relay => {
            let mut targets = Vec::new();
            for server in &servers {
                targets.push(Target::server(server, Transport::Quic).await?);
            }
            let plan =
                Plan { rooms: args.relay_rooms, pace: Pace::Drifting, seed: args.common.seed, span: seconds };
            let (measured, _) = load::measure(&targets, &plan, async || Ok(())).await?;
            let latency = [measured.delivery.latency_us_p50, measured.delivery.latency_us_p99];
            (measured.server_cpu_us_per_delivered_message, measured.spent, latency, measured.void)
        }
        Part::Turns => {
            let servers: Vec<&Server> = servers.iter().collect();
            let (rooms, connections) = (args.turn_rooms as usize, args.connections as usize);
            let Moves { mut took_us, spent } = Moves::measured(&servers, rooms, connections, seconds).await?;
            let moves = u32::try_from(took_us.len())?;
            let each_second = f64::from(moves) / spent.took.as_secs_f64();
            let times = [50, 99].map(|percent| percentile(&mut took_us, percent));
            let void = generator_too_slow(spent.usage().generator_cpu_percent);
            (Some(each_second), spent, times, void)
        }
        Part::Notices => {
            let pids: Vec<u32> = servers.iter().map(Server::pid).collect();
            let servers: Vec<&Server> = servers.iter().collect();
            sleep(SETTLE).await;
            let (began, earlier) = (Instant::now(), Spent::so_far_of(&pids)?);
            let mut took_us = notices::measured(&servers, seconds).await?;
            let spent = Spent::so_far_of(&pids)?.since(earlier, began.elapsed());
            let times = [50, 99].map(|percent| percentile(&mut took_us, percent));
            (times[0].map(|us| f64::from(us) / 1_000.0), spent, times, None)
        }
    };
    let store = store_time()?.since(store);
    let usage = spent.usage();
    Ok(Row {
        part,
        servers: setup,
        figure,
        unit: part.unit(),
        us_p50,
        us_p99,
        server_cpu_percent: usage.server_cpu_percent,
        store_cpu_percent: store.ran.as_secs_f64() * 100.0 / spent.took.as_secs_f64(),
        generator_cpu_percent: usage.generator_cpu_percent,
        void,
    })
}

/// Processor time of all processes of PostgreSQL on this machine. A session that has ended is not in it.
fn store_time() -> anyhow::Result<CpuTime> {
    let mut total = CpuTime::default();
    for process in std::fs::read_dir("/proc").context("/proc cannot be read")? {
        let process = process?;
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        // A process may end while it is read.
        if name.trim_end() == "postgres"
            && let Ok(time) = cpu_time(pid)
        {
            total.add(time);
        }
    }
    Ok(total)
}

/// Compares the medians of a part.
fn conclusion(part: Part, rows: &[Row]) -> String {
    let of = |setup: Setup| {
        let counts = |row: &&Row| row.part == part && row.servers == setup && row.void.is_none();
        let median = median(rows.iter().filter(counts).filter_map(|row| row.figure).collect())?;
        Some((setup, median))
    };
    let all: Vec<(Setup, f64)> = Setup::of(part).iter().filter_map(|setup| of(*setup)).collect();
    let nodes = all.iter().find(|(setup, _)| *setup == Setup::Nodes).map(|(_, figure)| *figure);
    let to = |(setup, figure): &(Setup, f64)| {
        let nodes = nodes.filter(|_| *setup != Setup::Nodes);
        let times = nodes.map(|nodes| format!(" ({:.2} times)", nodes / figure));
        format!("{} {figure:.2}{}", setup.as_str(), times.unwrap_or_default())
    };
    match all.len() {
        0 | 1 => format!("{}: no rows to compare, the others are void", part.as_str()),
        _ => format!(
            "{}, {}: {}",
            part.as_str(),
            part.unit(),
            all.iter().map(to).collect::<Vec<_>>().join(", ")
        ),
    }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("part", |row| row.part.as_str().to_owned()),
            ("servers", |row| row.servers.as_str().to_owned()),
            ("figure", |row| figure(row.figure, 2)),
            ("unit", |row| row.unit.to_owned()),
            ("p50 ms", |row| ms(row.us_p50)),
            ("p99 ms", |row| ms(row.us_p99)),
            ("server CPU %", |row| figure(row.server_cpu_percent, 1)),
            ("store CPU %", |row| figure(row.store_cpu_percent, 1)),
            ("generator CPU %", |row| figure(row.generator_cpu_percent, 0)),
            ("void because", |row| row.void.clone().unwrap_or_default()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(servers: Setup, figure: f64, void: Option<&str>) -> Row {
        Row {
            part: Part::Turns,
            servers,
            figure: Some(figure),
            unit: Part::Turns.unit(),
            us_p50: None,
            us_p99: None,
            server_cpu_percent: 0.0,
            store_cpu_percent: 0.0,
            generator_cpu_percent: 0.0,
            void: void.map(str::to_owned),
        }
    }

    #[test]
    fn medians_of_rows_that_count_are_compared() {
        let rows = [
            row(Setup::Server, 100.0, None),
            row(Setup::Nodes, 80.0, None),
            row(Setup::Server, 120.0, None),
            row(Setup::Nodes, 9.0, Some("slow")),
            row(Setup::Server, 90.0, None),
        ];
        let said = conclusion(Part::Turns, &rows);
        assert_eq!(said, "turns, moves/s: one server 100.00 (0.80 times), two nodes 80.00");
        assert!(conclusion(Part::Idle, &rows).contains("no rows to compare"));
    }
}
