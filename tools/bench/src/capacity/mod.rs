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
/// Of the steps that a room should make, it must make so many of 100: one that skips steps would look cheap.
const STEPS_PERCENT_MIN: f64 = 95.0;
/// Of 100 states and lines of chat that members should get, so many must come.
const DELIVERED_PERCENT_MIN: f64 = 99.9;
/// How long rooms play before anything counts: clocks and paths settle.
const WARM_UP: Duration = Duration::from_secs(2);
/// How long a peer runs before its first row: what it compiles while it runs is compiled then.
const PEER_WARM_UP: Duration = Duration::from_secs(2);
/// How long after the last that counts its arrival is waited for.
const DRAIN: Duration = Duration::from_millis(500);

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
    /// Steps of a room.
    steps_per_second: f64,
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
    /// Members of a room who should get each state.
    receivers: u16,
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
    machine::allow_sessions(most * u32::from(MEMBERS))?;
    let cores = cores.with_server_cores(args.cores)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut notes = vec![cores.note()];
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
    if args.peers {
        notes.extend(peer(cores, args, &mut rows)?);
    }
    notes.extend(rows.iter().filter_map(parts_of));
    let setting = json!({
        "cores": cores, "shards": args.cores, "seconds": args.seconds, "members_per_room": MEMBERS, "rate_hz": RATE_HZ,
        "entities_per_room": WALKERS, "flush_quantum_ms": args.quantum, "state_age_ms_max": AGE_MS_MAX,
        "delivered_percent_min": DELIVERED_PERCENT_MIN, "steps_percent_min": STEPS_PERCENT_MIN,
    });
    print("capacity", args.json, &setting, &rows, &notes, &table(&rows))
}

/// Measures the same game on Colyseus, if it is installed, and gives what is to be said of it.
fn peer(cores: Cores, args: &CapacityArgs, rows: &mut Vec<Row>) -> anyhow::Result<Vec<String>> {
    let Some(colyseus) = Colyseus::start(cores)? else {
        return Ok(vec![peers::how_to_build_colyseus()]);
    };
    let first = rows.len();
    if let Some(rooms) = args.rooms.first() {
        colyseus.play(*rooms, PEER_WARM_UP)?;
    }
    for rooms in &args.rooms {
        tell(&format!("{}, {rooms} rooms", peers::COLYSEUS));
        let played = colyseus.play(*rooms, Duration::from_secs_f64(args.seconds))?;
        rows.push(evaluate((peers::COLYSEUS, Transport::Ws.as_str()), *rooms, of_peer(&played)));
        if is_last(rows) {
            break;
        }
    }
    let mut notes = vec![conclusion(&rows[first..])];
    if args.cores > 1 {
        notes.push(format!("{}: one process, whose rooms share one thread", peers::COLYSEUS));
    }
    notes.extend(ratios(rows));
    Ok(notes)
}

/// Whether no more rooms need be tried.
fn is_last(rows: &[Row]) -> bool {
    rows.last().is_some_and(|row| row.fails.is_some() || row.void.is_some())
}

async fn seen(cores: Cores, transport: Transport, rooms: u32, args: &CapacityArgs) -> anyhow::Result<Seen> {
    let players = rooms * u32::from(MEMBERS);
    let connections_max = usize::try_from(players)? + 16;
    let connections_max = Some(connections_max);
    let shards = ["--shards".to_owned(), args.cores.to_string()];
    let settings =
        Settings { connections_max, flush_quantum_ms: args.quantum, more: &shards, ..Settings::default() };
    let server = Server::start(cores, &settings)?;
    let target = Target::server(&server, transport).await?;
    let count = Rc::new(Count::new(Clock::start()));
    let members = Members::fill(&count, &target.way, rooms, MEMBERS).await?;
    let sampling = args.parts.then(|| Sampling::start(server.pid(), WARM_UP)).transpose()?;
    sleep(WARM_UP).await;
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
    // The host has the state.
    let receivers = MEMBERS - 1;
    Ok(Seen { spent, receivers, states, chat, age_ms_p50, age_ms_p99, lost: members.lost(), parts })
}

impl Seen {
    #[expect(clippy::cast_precision_loss, reason = "counters of seconds stay far below 2⁵³")]
    fn steps_per_second(&self, rooms: u32) -> f64 {
        let each_step = f64::from(rooms) * f64::from(self.receivers);
        self.states.1 as f64 / each_step / self.spent.took.as_secs_f64()
    }
}

fn of_peer(played: &Played) -> Seen {
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1e3);
    Seen {
        spent: played.spent(),
        // The server has the state, and all members receive it.
        receivers: MEMBERS,
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
    let steps_per_second = seen.steps_per_second(rooms);
    let fails = if seen.lost > 0 {
        Some(format!("{} members were lost", seen.lost))
    } else if steps_per_second * 100.0 < STEPS_PERCENT_MIN * f64::from(RATE_HZ) {
        Some(format!("rooms make {steps_per_second:.1} steps a second instead of {RATE_HZ}"))
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
        steps_per_second,
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

/// Our players a core to the peer's, over each transport, for each number of rooms that both hold.
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
            ("steps/s", |row| figure(row.steps_per_second, 1)),
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

    /// A second of rooms that made 30 steps in it.
    fn seen(rooms: u32, age_ms: f64, generator_ms: u64, lost: usize) -> Seen {
        let time = |ms| CpuTime { ran: Duration::from_millis(ms), waited: Duration::ZERO };
        let spent = Spent { server: time(500), generator: time(generator_ms), took: Duration::from_secs(1) };
        let states = u64::from(rooms) * 7 * 30;
        let age = Some(age_ms);
        Seen {
            spent,
            receivers: 7,
            states: (states, states),
            chat: (7, 7),
            age_ms_p50: age,
            age_ms_p99: age,
            lost,
            parts: Vec::new(),
        }
    }

    fn row(rooms: u32, age_ms: f64, generator_ms: u64, lost: usize) -> Row {
        evaluate((PARLOR, "quic"), rooms, seen(rooms, age_ms, generator_ms, lost))
    }

    #[test]
    fn a_row_holds_or_says_why_it_does_not() {
        let good = row(10, 1.0, 700, 0);
        assert_eq!((good.fails.as_deref(), good.void.as_deref()), (None, None));
        assert!((good.players_per_core - 160.0).abs() < 0.1, "{}", good.players_per_core);
        assert_eq!(good.state_delivered_percent, Some(100.0));
        let slow = row(10, 61.0, 700, 0);
        assert!(slow.fails.is_some_and(|why| why.contains("older than 53 ms")));
        assert!((good.steps_per_second - 30.0).abs() < 1e-9, "{}", good.steps_per_second);
        assert!(row(10, 1.0, 700, 1).fails.is_some_and(|why| why.contains("lost")));
        assert!(row(10, 1.0, 900, 0).void.is_some());
    }

    #[test]
    fn rooms_that_skip_steps_or_lose_states_or_chat_do_not_hold() {
        let fails = |seen: Seen| evaluate((PARLOR, "quic"), 10, seen).fails;
        let skipping = Seen { states: (1_900, 1_900), ..seen(10, 1.0, 100, 0) };
        assert_eq!(fails(skipping).as_deref(), Some("rooms make 27.1 steps a second instead of 30"));
        // The same count stands for fewer steps where one more receives each.
        assert!(fails(Seen { states: (2_100, 2_100), receivers: 8, ..seen(10, 1.0, 100, 0) }).is_some());
        for seen in [
            Seen { states: (2_097, 2_100), ..seen(10, 1.0, 100, 0) },
            Seen { chat: (998, 1_000), ..seen(10, 1.0, 100, 0) },
        ] {
            assert!(fails(seen).is_some_and(|why| why.contains("less than 99.9% arrived")));
        }
        assert_eq!(fails(Seen { states: (2_099, 2_100), ..seen(10, 1.0, 100, 0) }), None);
    }

    #[test]
    fn the_largest_row_that_held_is_what_counts() {
        let rows = [row(10, 1.0, 100, 0), row(20, 1.0, 100, 0), row(40, 1.0, 100, 2)];
        let said = conclusion(&rows);
        assert!(said.contains("160 players held, at 50% of a core: 320 players a core"), "{said}");
        assert!(said.contains("at 40 rooms 2 members were lost"), "{said}");
        assert!(conclusion(&rows[2..]).contains("no row held"));
    }

    #[test]
    fn a_peer_is_compared_where_both_held() {
        let peer = |rooms, lost| Row { server: "other", transport: "ws", ..row(rooms, 1.0, 100, lost) };
        let mut rows = vec![row(10, 1.0, 100, 0), row(20, 1.0, 100, 0), peer(10, 0), peer(20, 1)];
        rows[2].players_per_core = 40.0;
        assert_eq!(ratios(&rows), ["10 rooms: parlor over quic has 4.0 times the players a core of other"]);
    }

    #[test]
    fn parts_share_the_time_of_a_player() {
        let parts = vec![Part { name: "kernel", percent: 60.0 }, Part { name: "hub", percent: 20.0 }];
        let said = parts_of(&Row { parts, ..row(10, 1.0, 100, 0) }).expect("there are parts");
        // 500 ms of 80 players in a second.
        assert!(said.contains("kernel 60% (4688 µs), hub 20% (1562 µs)"), "{said}");
        assert_eq!(parts_of(&row(10, 1.0, 100, 0)), None);
    }
}
