//! Players that one core of the server carries, in typical rooms. Each has 8 members; one hosts a world of 24
//! entities that all move 30 times a second. All members send inputs at that rate, and a line of chat every
//! ten seconds. Rooms are added row by row, until one is too slow or loses too much.

mod member;

use super::args::{CapacityArgs, Transport};
use super::load::{Spent, Target, Usage};
use super::machine::{self, Cores};
use super::pacer::Clock;
use super::parts::{Part, Sampling};
use super::peers::{self, Colyseus, Played};
use super::server::{Server, Settings};
use super::table::{Table, figure};
use super::tally::{generator_too_slow, percent};
use crate::output::{print, tell};
use member::{Count, Members, RATE_HZ, WALKERS};
use serde::Serialize;
use serde_json::json;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Members of a room.
const MEMBERS: u16 = 8;
/// State may be one tick and so many ms old at a member; the link takes nothing on one machine.
const AGE_MS_MAX: f64 = 1e3 / RATE_HZ as f64 + 20.0;
/// Of 100 states and lines of chat that members should get, so many must come.
const DELIVERED_PERCENT_MIN: f64 = 99.9;
/// How long rooms play before anything counts: clocks and paths settle.
const WARM_UP: Duration = Duration::from_secs(2);
/// How long after the last that counts its arrival is waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// Sockets and files of both ends beyond one for each member.
const OTHER_FILES: u64 = 256;

/// Our name in rows.
const PARLOR: &str = "parlor";

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    server: &'static str,
    transport: &'static str,
    rooms: u32,
    players: u32,
    #[serde(flatten)]
    usage: Usage,
    /// Players, for each core that the server's processor time fills.
    players_per_core: f64,
    server_cpu_us_per_player_second: f64,
    state_age_ms_p50: Option<f64>,
    state_age_ms_p99: Option<f64>,
    state_delivered_percent: Option<f64>,
    chat_delivered_percent: Option<f64>,
    members_lost: usize,
    /// Where the server's time went, if that was asked for.
    parts: Vec<Part>,
    /// Why the rooms do not hold, if they do not.
    fails: Option<String>,
    /// Why the figures count for nothing, if they do.
    void: Option<String>,
}

/// What came of a row's rooms.
struct Seen {
    spent: Spent,
    /// How many came, of how many.
    states: (u64, u64),
    chat: (u64, u64),
    age_ms_p50: Option<f64>,
    age_ms_p99: Option<f64>,
    lost: usize,
    parts: Vec<Part>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &CapacityArgs) -> anyhow::Result<()> {
    let most = args.rooms.iter().max().copied().unwrap_or(0);
    machine::allow_open_files(u64::from(most) * u64::from(MEMBERS) + OTHER_FILES)?;
    let cores = if args.all_cores { cores.whole_for_server() } else { cores };
    let mut rows: Vec<Row> = Vec::new();
    let mut notes = vec![cores.note()];
    let mut peer = None;
    if args.peers {
        match Colyseus::start(cores)? {
            Some(colyseus) => peer = Some(colyseus),
            None => notes.push(peers::how_to_build_colyseus()),
        }
    }
    for transport in args.via.transports() {
        let first = rows.len();
        for rooms in &args.rooms {
            tell(&format!("{transport}, {rooms} rooms"));
            let seen = seen(cores, *transport, *rooms, args).await?;
            rows.push(evaluate((PARLOR, transport.as_str()), *rooms, seen));
            if is_last(&rows) {
                break;
            }
        }
        notes.push(conclusion(&rows[first..]));
    }
    if let Some(colyseus) = peer {
        let first = rows.len();
        for rooms in &args.rooms {
            tell(&format!("{}, {rooms} rooms", peers::COLYSEUS));
            let played = colyseus.play(*rooms, Duration::from_secs_f64(args.seconds))?;
            rows.push(evaluate((peers::COLYSEUS, Transport::Ws.as_str()), *rooms, of_peer(&played)));
            if is_last(&rows) {
                break;
            }
        }
        notes.push(conclusion(&rows[first..]));
        notes.extend(ratios(&rows));
    }
    notes.extend(rows.iter().filter_map(parts_of));
    let setting = json!({
        "cores": cores, "seconds": args.seconds, "members_per_room": MEMBERS, "rate_hz": RATE_HZ,
        "entities_per_room": WALKERS, "flush_quantum_ms": args.quantum, "state_age_ms_max": AGE_MS_MAX,
        "delivered_percent_min": DELIVERED_PERCENT_MIN,
    });
    print("capacity", args.json, &setting, &rows, &notes, &table(&rows))
}

/// Whether no more rooms need be tried.
fn is_last(rows: &[Row]) -> bool {
    rows.last().is_some_and(|row| row.fails.is_some() || row.void.is_some())
}

async fn seen(cores: Cores, transport: Transport, rooms: u32, args: &CapacityArgs) -> anyhow::Result<Seen> {
    let players = rooms * u32::from(MEMBERS);
    let connections_max = usize::try_from(players)? + 16;
    let connections_max = Some(connections_max);
    let settings = Settings { connections_max, flush_quantum_ms: args.quantum, ..Settings::default() };
    let server = Server::start(cores, &settings)?;
    let target = Target::server(&server, transport).await?;
    let count = Rc::new(Count::new(Clock::start()));
    let members = Members::fill(&count, &target.way, rooms, MEMBERS).await?;
    sleep(WARM_UP).await;
    let sampling = args.parts.then(|| Sampling::start(server.pid())).transpose()?;
    let began = Instant::now();
    let spent = Spent::so_far(server.pid())?;
    count.start();
    sleep(Duration::from_secs_f64(args.seconds)).await;
    count.stop();
    let spent = Spent::so_far(server.pid())?.since(spent, began.elapsed());
    sleep(DRAIN).await;
    let parts = sampling.map_or(Ok(Vec::new()), Sampling::parts)?;
    let counted = count.seen();
    let (states, chat) = (counted.states, counted.chat);
    let [age_ms_p50, age_ms_p99] = [50, 99].map(|percent| counted.ages.ms(percent));
    Ok(Seen { spent, states, chat, age_ms_p50, age_ms_p99, lost: members.lost(), parts })
}

fn of_peer(played: &Played) -> Seen {
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1e3);
    Seen {
        spent: played.spent(),
        states: (played.states.got, played.states.of),
        chat: (played.chat.got, played.chat.of),
        age_ms_p50: ms(played.state_age_us_p50),
        age_ms_p99: ms(played.state_age_us_p99),
        lost: played.members_lost,
        parts: Vec::new(),
    }
}

fn evaluate((server, transport): (&'static str, &'static str), rooms: u32, seen: Seen) -> Row {
    let players = rooms * u32::from(MEMBERS);
    let usage = seen.spent.usage();
    let delivered = |(got, of)| percent(got, of);
    let (state, chat) = (delivered(seen.states), delivered(seen.chat));
    let fails = if seen.lost > 0 {
        Some(format!("{} members were lost", seen.lost))
    } else if seen.age_ms_p99.is_none_or(|ms| ms > AGE_MS_MAX) {
        Some(format!("state is older than {AGE_MS_MAX:.0} ms"))
    } else if [state, chat].into_iter().flatten().any(|percent| percent < DELIVERED_PERCENT_MIN) {
        Some(format!("less than {DELIVERED_PERCENT_MIN}% arrived"))
    } else {
        None
    };
    Row {
        server,
        transport,
        rooms,
        players,
        usage,
        players_per_core: f64::from(players) * 100.0 / usage.server_cpu_percent,
        server_cpu_us_per_player_second: usage.server_cpu_percent * 1e4 / f64::from(players),
        state_age_ms_p50: seen.age_ms_p50,
        state_age_ms_p99: seen.age_ms_p99,
        state_delivered_percent: state,
        chat_delivered_percent: chat,
        members_lost: seen.lost,
        parts: seen.parts,
        fails,
        void: generator_too_slow(usage.generator_cpu_percent),
    }
}

/// The largest row that held, of the rows of one server over one transport.
fn best(rows: &[Row]) -> Option<&Row> {
    rows.iter().rfind(|row| row.fails.is_none() && row.void.is_none())
}

/// What the rows of one server over one transport come to.
fn conclusion(rows: &[Row]) -> String {
    let name = rows.first().map_or_else(String::new, |row| format!("{} over {}", row.server, row.transport));
    let Some(best) = best(rows) else {
        return format!("{name}: no row held");
    };
    let end = match rows.last() {
        Some(Row { void: Some(void), rooms, .. }) => format!("at {rooms} rooms {void}"),
        Some(Row { fails: Some(fails), rooms, .. }) => format!("at {rooms} rooms {fails}"),
        _ => "more rooms were not tried".to_owned(),
    };
    format!(
        "{name}: {} players held, at {:.0}% of a core: {:.0} players a core; {end}",
        best.players, best.usage.server_cpu_percent, best.players_per_core
    )
}

/// Our players a core to the peer's, over each transport: where both held the most rooms that both did.
fn ratios(rows: &[Row]) -> Vec<String> {
    let is_held = |row: &&Row| row.fails.is_none() && row.void.is_none();
    let held: Vec<&Row> = rows.iter().filter(is_held).collect();
    let mut ratios = Vec::new();
    for peer in held.iter().filter(|row| row.server != PARLOR) {
        for ours in held.iter().filter(|row| row.server == PARLOR && row.rooms == peer.rooms) {
            let ratio = ours.players_per_core / peer.players_per_core;
            let (rooms, transport) = (ours.rooms, ours.transport);
            ratios.push(format!(
                "{rooms} rooms: {PARLOR} over {transport} has {ratio:.1} times the players a core of {}",
                peer.server
            ));
        }
    }
    ratios
}

/// Where the time of a row went.
fn parts_of(row: &Row) -> Option<String> {
    let all: f64 = row.parts.iter().map(|part| part.percent).sum();
    let said = row.parts.iter().map(|part| {
        let us = row.server_cpu_us_per_player_second * part.percent / all;
        format!("{} {:.0}% ({us:.0} µs)", part.name, part.percent)
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| {
        format!("{}, {} rooms, for each player and second: {}", row.transport, row.rooms, said.join(", "))
    })
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("server", |row| row.server.to_owned()),
            ("transport", |row| row.transport.to_owned()),
            ("rooms", |row| row.rooms.to_string()),
            ("players", |row| row.players.to_string()),
            ("server CPU %", |row| figure(row.usage.server_cpu_percent, 1)),
            ("CPU µs/player·s", |row| figure(row.server_cpu_us_per_player_second, 0)),
            ("players/core", |row| figure(row.players_per_core, 0)),
            ("age p50 ms", |row| figure(row.state_age_ms_p50, 1)),
            ("age p99 ms", |row| figure(row.state_age_ms_p99, 1)),
            ("state %", |row| figure(row.state_delivered_percent, 3)),
            ("chat %", |row| figure(row.chat_delivered_percent, 2)),
            ("generator CPU %", |row| figure(row.usage.generator_cpu_percent, 1)),
            ("ended because", |row| row.void.clone().or_else(|| row.fails.clone()).unwrap_or_default()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::CpuTime;

    fn row(rooms: u32, age: Duration, generator_ms: u64, lost: usize) -> Row {
        let count = Count::new(Clock::start());
        count.start();
        count.state_written(7);
        (0..7).for_each(|_| count.state_came(Duration::from_millis(1) + age));
        let time = |ms| CpuTime { ran: Duration::from_millis(ms), waited: Duration::ZERO };
        let spent =
            Spent { server: time(500), generator: time(generator_ms), took: Duration::from_millis(1_000) };
        let counted = count.seen();
        let [age_ms_p50, age_ms_p99] = [50, 99].map(|percent| counted.ages.ms(percent));
        let (states, chat) = (counted.states, counted.chat);
        let seen = Seen { spent, states, chat, age_ms_p50, age_ms_p99, lost, parts: Vec::new() };
        evaluate((PARLOR, "quic"), rooms, seen)
    }

    #[test]
    fn a_row_holds_or_says_why_it_does_not() {
        let good = row(10, Duration::ZERO, 700, 0);
        assert_eq!((good.fails.as_deref(), good.void.as_deref()), (None, None));
        assert!((good.players_per_core - 160.0).abs() < 0.1, "{}", good.players_per_core);
        assert_eq!(good.state_delivered_percent, Some(100.0));
        let slow = row(10, Duration::from_millis(60), 700, 0);
        assert!(slow.fails.is_some_and(|why| why.contains("older than 53 ms")));
        assert!(row(10, Duration::ZERO, 700, 1).fails.is_some_and(|why| why.contains("lost")));
        assert!(row(10, Duration::ZERO, 900, 0).void.is_some());
    }

    #[test]
    fn the_largest_row_that_held_is_what_counts() {
        let rows = [
            row(10, Duration::ZERO, 100, 0),
            row(20, Duration::ZERO, 100, 0),
            row(40, Duration::ZERO, 100, 2),
        ];
        let said = conclusion(&rows);
        assert!(said.contains("160 players held, at 50% of a core: 320 players a core"), "{said}");
        assert!(said.contains("at 40 rooms 2 members were lost"), "{said}");
        assert!(conclusion(&rows[2..]).contains("no row held"));
    }

    #[test]
    fn a_peer_is_compared_where_both_held() {
        let peer =
            |rooms, lost| Row { server: "other", transport: "ws", ..row(rooms, Duration::ZERO, 100, lost) };
        let mut rows =
            vec![row(10, Duration::ZERO, 100, 0), row(20, Duration::ZERO, 100, 0), peer(10, 0), peer(20, 1)];
        rows[2].players_per_core = 40.0;
        assert_eq!(ratios(&rows), ["10 rooms: parlor over quic has 4.0 times the players a core of other"]);
    }

    #[test]
    fn parts_share_the_time_of_a_player() {
        let parts = vec![Part { name: "kernel", percent: 60.0 }, Part { name: "hub", percent: 20.0 }];
        let said = parts_of(&Row { parts, ..row(10, Duration::ZERO, 100, 0) }).expect("there are parts");
        // 500 ms of 80 players in a second.
        assert!(said.contains("kernel 60% (4688 µs), hub 20% (1562 µs)"), "{said}");
        assert_eq!(parts_of(&row(10, Duration::ZERO, 100, 0)), None);
    }
}
