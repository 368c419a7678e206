//! Cost of relaying a message: rooms of 8 members, each of which sends 64 bytes to the 7 others 30 times a
//! second.

use super::args::{RelayArgs, Transport};
use super::generator::Crowd;
use super::load::{self, Measured, Plan, Target};
use super::machine::{self, Cores};
use super::member::{MEMBERS, RATE_HZ};
use super::peers::{self, Colyseus, PlainRelay};
use super::server::{Server, Settings};
use super::stamp::MESSAGE_BYTES;
use super::table::{Table, figure};
use super::tally::median;
use crate::output::{print, tell};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// Connections beside those of the members and idle sessions: those that ask for the counters.
const OTHER_CONNECTIONS: usize = 16;

/// One row.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    relay: &'static str,
    transport: &'static str,
    rooms: u32,
    flush_quantum_ms: Option<u16>,
    /// Sessions that are connected and send nothing.
    idle_sessions: u32,
    #[serde(flatten)]
    measured: Measured,
    flush_wait_us_mean: Option<f64>,
    messages_per_packet: Option<f64>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &RelayArgs) -> anyhow::Result<()> {
    let span = Duration::from_secs_f64(args.seconds);
    let most = args.rooms.iter().max().copied().unwrap_or(0);
    machine::allow_sessions(args.idle + most * u32::from(MEMBERS))?;
    let plan = |rooms| Plan { rooms, pace: args.pace, seed: args.common.seed, span };
    let mut rows = Vec::new();
    let mut notes = vec![cores.note()];
    for transport in args.via.transports() {
        for quantum_ms in &args.quantum {
            for rooms in &args.rooms {
                let first = rows.len();
                for idle in turns(args) {
                    rows.push(row(cores, *transport, (*quantum_ms, idle), &plan(*rooms), args).await?);
                }
                notes.extend(beside_idle(&rows[first..]));
            }
        }
    }
    if args.peers {
        notes.extend(peers(cores, args, &plan, &mut rows).await?);
    }
    let setting = json!({
        "cores": cores, "pace": args.pace, "seed": args.common.seed, "seconds": args.seconds,
        "members_per_room": MEMBERS, "rate_hz": RATE_HZ, "message_bytes": MESSAGE_BYTES,
    });
    print("relay", args.common.json, &setting, &rows, &notes, &table(&rows))
}

/// The idle sessions of the rows that are otherwise the same.
fn turns(args: &RelayArgs) -> Vec<u32> {
    if args.idle == 0 { vec![0] } else { [0, args.idle].repeat(args.turns.into()) }
}

async fn row(
    cores: Cores,
    transport: Transport,
    (quantum_ms, idle): (u16, u32),
    plan: &Plan,
    args: &RelayArgs,
) -> anyhow::Result<Row> {
    tell(&format!("{transport}, quantum {quantum_ms} ms, {} rooms, {idle} idle sessions", plan.rooms));
    let sessions = usize::try_from(idle)? + usize::try_from(plan.rooms)? * usize::from(MEMBERS);
    let connections_max = (idle > 0).then_some(sessions + OTHER_CONNECTIONS);
    let settings = Settings { flush_quantum_ms: quantum_ms, connections_max, ..Settings::default() };
    let server = Server::start(cores, &settings)?;
    let target = Target::server(&server, transport).await?;
    let idle_ones = Crowd::new()?;
    load::fill(&idle_ones, &target.way, target.manner, 0..idle / u32::from(MEMBERS), MEMBERS).await?;
    if idle > 0 {
        sleep(Duration::from_secs_f64(args.settle)).await;
    }
    let (mut measured, [before, after]) =
        load::measure(&[target], plan, async || server.stats().await).await?;
    let (_, lost) = idle_ones.take_tally();
    if let Some(why) = lost.first() {
        let lost = lost.len();
        measured.void.get_or_insert(format!("{lost} idle sessions were lost, the first because {why}"));
    }
    let waits = after.flush_waits.saturating_sub(before.flush_waits);
    let wait_us = after.flush_wait_us.saturating_sub(before.flush_wait_us);
    let messages = after.messages_relayed.saturating_sub(before.messages_relayed);
    let packets = after.packets_sent.saturating_sub(before.packets_sent);
    Ok(Row {
        relay: "parlor",
        transport: transport.as_str(),
        rooms: plan.rooms,
        flush_quantum_ms: Some(quantum_ms),
        idle_sessions: idle,
        measured,
        flush_wait_us_mean: ratio(wait_us, waits),
        messages_per_packet: ratio(messages, packets),
    })
}

/// What idle sessions add to the server's time: the medians of rows that are the same but for them.
fn beside_idle(rows: &[Row]) -> Option<String> {
    let idle = rows.iter().map(|row| row.idle_sessions).find(|idle| *idle > 0)?;
    let Row { transport, rooms: count, .. } = rows.first()?;
    let percents = |idle: u32| -> Vec<f64> {
        let counts = |row: &&Row| row.idle_sessions == idle && row.measured.void.is_none();
        rows.iter().filter(counts).map(|row| row.measured.usage.server_cpu_percent).collect()
    };
    let (alone, beside) = (percents(0), percents(idle));
    let name = format!("{transport}, {count} rooms beside {idle} idle sessions");
    let turns = alone.len().min(beside.len());
    let (Some(alone_percent), Some(beside_percent)) = (median(alone), median(beside)) else {
        return Some(format!("{name}: no rows to compare, the others are void"));
    };
    let times = beside_percent / alone_percent;
    let each_us = (beside_percent - alone_percent) * 1e4 / f64::from(idle);
    Some(format!(
        "{name}: {times:.2} times the CPU, {beside_percent:.1}% to {alone_percent:.1}% (medians of {turns} turns), \
         {each_us:.0} µs for each idle session and second"
    ))
}

/// Measures the peers that are built, and says how to build the others.
async fn peers(
    cores: Cores,
    args: &RelayArgs,
    plan: &impl Fn(u32) -> Plan,
    rows: &mut Vec<Row>,
) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    match PlainRelay::start(cores)? {
        Some(plain) => {
            for rooms in &args.rooms {
                tell(&format!("{}, {rooms} rooms", peers::PLAIN));
                let (measured, _) = load::measure(&[plain.target()], &plan(*rooms), async || Ok(())).await?;
                rows.push(Row::of_peer(peers::PLAIN, "quic", *rooms, measured));
            }
        }
        None => missing.push(peers::how_to_build_plain()),
    }
    match Colyseus::start(cores)? {
        Some(colyseus) => {
            for rooms in &args.rooms {
                tell(&format!("{}, {rooms} rooms", peers::COLYSEUS));
                rows.push(Row::of_peer(peers::COLYSEUS, "ws", *rooms, colyseus.measure(&plan(*rooms))?));
            }
        }
        None => missing.push(peers::how_to_build_colyseus()),
    }
    Ok(missing)
}

impl Row {
    /// A peer has no quantum, and does not say what it counts.
    fn of_peer(relay: &'static str, transport: &'static str, rooms: u32, measured: Measured) -> Self {
        Row {
            relay,
            transport,
            rooms,
            flush_quantum_ms: None,
            idle_sessions: 0,
            measured,
            flush_wait_us_mean: None,
            messages_per_packet: None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters of seconds stay far below 2⁵³")]
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("relay", |row| row.relay.to_owned()),
            ("transport", |row| row.transport.to_owned()),
            ("rooms", |row| row.rooms.to_string()),
            ("idle", |row| row.idle_sessions.to_string()),
            ("quantum ms", |row| figure(row.flush_quantum_ms.map(f64::from), 0)),
            ("CPU µs/message", |row| figure(row.measured.server_cpu_us_per_delivered_message, 2)),
            ("server CPU %", |row| figure(row.measured.usage.server_cpu_percent, 1)),
            ("waited %", |row| figure(row.measured.usage.server_waited_percent, 1)),
            ("delivered %", |row| figure(row.measured.delivery.delivered_percent, 3)),
            ("flush wait µs", |row| figure(row.flush_wait_us_mean, 0)),
            ("messages/packet", |row| figure(row.messages_per_packet, 2)),
            ("p50 µs", |row| figure(row.measured.delivery.latency_us_p50.map(f64::from), 0)),
            ("p99 µs", |row| figure(row.measured.delivery.latency_us_p99.map(f64::from), 0)),
            ("generator CPU %", |row| figure(row.measured.usage.generator_cpu_percent, 1)),
            ("void because", |row| row.measured.void.clone().unwrap_or_default()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::CpuTime;
    use crate::load::{Spent, evaluate};
    use crate::tally::Tally;

    fn row(idle: u32, server_ms: u64, void: Option<&str>) -> Row {
        let mut tally = Tally::for_arrivals(7);
        tally.sent(7);
        (0..7).for_each(|_| tally.arrived(100));
        let time = |ms| CpuTime { ran: Duration::from_millis(ms), waited: Duration::ZERO };
        let spent = Spent { server: time(server_ms), generator: time(100), took: Duration::from_secs(1) };
        let mut measured = evaluate(tally.into_delivery(), &[], spent);
        measured.void = void.map(str::to_owned);
        Row { idle_sessions: idle, ..Row::of_peer("parlor", "quic", 20, measured) }
    }

    #[test]
    fn idle_sessions_cost_the_ratio_of_the_medians() {
        let turns = [
            (row(0, 200, None), row(5_000, 250, None)),
            (row(0, 900, None), row(5_000, 240, None)),
            (row(0, 100, None), row(5_000, 990, None)),
        ];
        let mut rows: Vec<Row> = turns.into_iter().flat_map(|(alone, beside)| [alone, beside]).collect();
        let said = beside_idle(&rows).expect("there are idle sessions");
        assert!(said.contains("beside 5000 idle sessions: 1.25 times the CPU, 25.0% to 20.0%"), "{said}");
        assert!(said.ends_with("10 µs for each idle session and second"), "{said}");
        // A row that is void counts for nothing.
        rows[5].measured.void = Some("5 idle sessions were lost".to_owned());
        rows.push(row(0, 200, None));
        let said = beside_idle(&rows).expect("there are idle sessions");
        assert!(said.contains("24.5% to 20.0%") && said.contains("medians of 2 turns"), "{said}");
    }

    #[test]
    fn without_idle_sessions_or_rows_that_count_nothing_is_compared() {
        assert_eq!(beside_idle(&[row(0, 200, None)]), None);
        let said = beside_idle(&[row(0, 200, None), row(5_000, 250, Some("too slow"))]);
        assert!(said.as_ref().is_some_and(|said| said.contains("no rows to compare")), "{said:?}");
    }
}
