//! How many members a core lets in: each connects anew, says hello, takes a seat by a room's code, and leaves.

use super::args::{JoinArgs, Transport};
use super::generator::Crowd;
use super::load::{Spent, Target, Usage, Way, fill};
use super::machine::Cores;
use super::member::Wish;
use super::server::{Server, Settings};
use super::table::{Table, figure};
use super::tally::{generator_too_slow, percentile};
use super::{note_of_cores, print, tell};
use anyhow::Context;
use parlor_proto::RoomCode;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// How long one joins after the other, to find the rate, and to warm up.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// Members of each room while nobody joins it: the host.
const HOSTS: u16 = 1;

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    transport: Transport,
    joins_asked_per_second: u32,
    joins: u32,
    joins_failed: u32,
    server_cpu_us_per_join: Option<f64>,
    joins_per_second_and_core: Option<f64>,
    join_us_p50: Option<u32>,
    join_us_p99: Option<u32>,
    #[serde(flatten)]
    usage: Usage,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &JoinArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for transport in args.via.transports() {
        rows.push(row(cores, *transport, args).await?);
    }
    let setting = json!({ "cores": cores, "rooms": args.rooms, "seconds": args.seconds, "kind": "cold" });
    print("join", args.common.json, &setting, &rows, &[note_of_cores(cores)], &table(&rows))
}

async fn row(cores: Cores, transport: Transport, args: &JoinArgs) -> anyhow::Result<Row> {
    tell(&format!("joins over {transport}"));
    let server = Server::start(cores, &Settings::default())?;
    let target = Target::server(&server, transport)?;
    let crowd = Crowd::new()?;
    let codes = fill(&crowd, &target.way, target.manner, args.rooms, HOSTS).await?;
    let door = Door { crowd: crowd.clone(), way: target.way.clone(), codes };
    let found = door.join_in_turn(SEARCH_TIME).await?;
    let rate = args.rate.unwrap_or(found);
    let (began, earlier) = (Instant::now(), Spent::so_far(server.pid())?);
    let mut joined = door.join_at_rate(rate, Duration::from_secs_f64(args.seconds)).await?;
    let spent = Spent::so_far(server.pid())?.since(earlier, began.elapsed());
    crowd.leave_all();
    Ok(evaluate(transport, rate, &mut joined, spent))
}

/// Rooms that can be joined.
#[derive(Clone)]
struct Door {
    crowd: Crowd,
    way: Way,
    codes: Vec<RoomCode>,
}

/// What came of many joins.
#[derive(Debug, Default)]
struct Joined {
    took_us: Vec<u32>,
    failures: Vec<String>,
}

impl Door {
    /// Joins a room and leaves it, and gives how long the joining took, in µs.
    async fn join(&self, number: usize) -> anyhow::Result<u32> {
        let code = self.codes[number % self.codes.len()];
        let began = Instant::now();
        let link = self.way.connect().await?;
        let seated = self.crowd.seat(link, Wish::join(0, HOSTS + 1, code)).await?;
        let took = began.elapsed();
        self.crowd.leave(seated.who);
        Ok(u32::try_from(took.as_micros()).unwrap_or(u32::MAX))
    }

    /// Joins one after the other, and gives how many did in a second.
    async fn join_in_turn(&self, span: Duration) -> anyhow::Result<u32> {
        let began = Instant::now();
        let mut joins = 0_u32;
        while began.elapsed() < span {
            self.join(usize::try_from(joins)?).await?;
            joins += 1;
        }
        let each = began.elapsed() / joins.max(1);
        let rate = Duration::from_secs(1).as_nanos() / each.as_nanos().max(1);
        Ok(u32::try_from(rate)?.max(1))
    }

    /// Lets so many join each second, whatever came of those before, and waits for all of them.
    async fn join_at_rate(&self, rate: u32, span: Duration) -> anyhow::Result<Joined> {
        let mut joining: JoinSet<anyhow::Result<u32>> = JoinSet::new();
        let began = Instant::now();
        let mut joined = Joined::default();
        for number in 0.. {
            let due = Duration::from_secs(1) * number / rate;
            if due >= span {
                break;
            }
            sleep_until(began + due).await;
            let door = self.clone();
            let number = usize::try_from(number)?;
            joining.spawn_local(async move { door.join(number).await });
            while let Some(done) = joining.try_join_next() {
                joined.note(done.context("a join failed")?);
            }
        }
        while let Some(done) = joining.join_next().await {
            joined.note(done.context("a join failed")?);
        }
        Ok(joined)
    }
}

impl Joined {
    fn note(&mut self, join: anyhow::Result<u32>) {
        match join {
            Ok(took_us) => self.took_us.push(took_us),
            Err(why) => self.failures.push(format!("{why:#}")),
        }
    }
}

fn evaluate(transport: Transport, rate: u32, joined: &mut Joined, spent: Spent) -> Row {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let joins = count(joined.took_us.len());
    let each = (joins > 0).then(|| spent.server.ran.as_secs_f64() / f64::from(joins));
    let usage = spent.usage();
    let void = match joined.failures.first() {
        Some(why) => Some(format!("{} joins failed, the first because {why}", joined.failures.len())),
        None => generator_too_slow(usage.generator_cpu_percent),
    };
    Row {
        transport,
        joins_asked_per_second: rate,
        joins,
        joins_failed: count(joined.failures.len()),
        server_cpu_us_per_join: each.map(|seconds| seconds * 1e6),
        joins_per_second_and_core: each.map(|seconds| 1.0 / seconds),
        join_us_p50: percentile(&mut joined.took_us, 50),
        join_us_p99: percentile(&mut joined.took_us, 99),
        usage,
        void,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "transport",
        "joins/s asked",
        "joins",
        "CPU µs/join",
        "joins/s and core",
        "p50 µs",
        "p99 µs",
        "server CPU %",
        "waited %",
        "generator CPU %",
        "void because",
    ]);
    for row in rows {
        table.row(vec![
            row.transport.to_string(),
            row.joins_asked_per_second.to_string(),
            row.joins.to_string(),
            figure(row.server_cpu_us_per_join, 0),
            figure(row.joins_per_second_and_core, 0),
            figure(row.join_us_p50.map(f64::from), 0),
            figure(row.join_us_p99.map(f64::from), 0),
            figure(Some(row.usage.server_cpu_percent), 1),
            figure(Some(row.usage.server_waited_percent), 1),
            figure(Some(row.usage.generator_cpu_percent), 1),
            row.void.clone().unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::account::CpuTime;
    use super::*;

    #[test]
    fn what_a_core_could_do_follows_from_what_a_join_costs() {
        let mut joined = Joined { took_us: vec![900, 1_000, 1_100, 5_000], failures: Vec::new() };
        let [server, generator, took] = [2, 8, 10].map(Duration::from_millis);
        let [server, generator] = [server, generator].map(|ran| CpuTime { ran, ..CpuTime::default() });
        let row = evaluate(Transport::Quic, 400, &mut joined, Spent { server, generator, took });
        assert_eq!((row.server_cpu_us_per_join, row.joins_per_second_and_core), (Some(500.0), Some(2_000.0)));
        assert_eq!((row.join_us_p50, row.join_us_p99, row.void.as_deref()), (Some(1_000), Some(5_000), None));
        joined.note(Err(anyhow::anyhow!("the door is shut")));
        let row = evaluate(Transport::Quic, 400, &mut joined, Spent { server, generator, took });
        assert!(row.void.is_some_and(|why| why.contains("1 joins failed") && why.contains("shut")));
    }
}
