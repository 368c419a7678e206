//! The matchmaker in memory, on virtual time: what a search costs, how long a slice takes, and how long players wait.
//! One queue has tickets that nobody fits waiting, and as many searches a second come as are asked for.

use super::args::MatchmakerArgs;
use super::spread::Spread;
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::{Context, ensure};
use parlor_proto::random::SplitMix64;
use parlor_social::limits::MATCHING_SLICE;
use parlor_social::{
    Entrance, Filter, Players, Pool, Property, Queue, Seeker, SkillRule, Ticket, TicketState, WidenBy,
    go_together,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Virtual time between two looks of the driver at the pool.
const STEP: Duration = Duration::from_millis(10);
/// Players whose waits are not counted: the pool is empty at first.
const WARM_UP: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
struct Row {
    scene: &'static str,
    waiting: u64,
    rate: u64,
    matches: u64,
    core_percent: f64,
    us_per_ticket: f64,
    longest_slice_us: f64,
    wait_ms: Spread,
    apart_points: Spread,
    unserved: u64,
}

/// Who plays with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// One against one, by skill.
    Duel,
    /// Five against five, in parties of 1 to 5, in three modes.
    Squads,
}

impl Scene {
    fn name(self) -> &'static str {
        match self {
            Scene::Duel => "duel",
            Scene::Squads => "squads",
        }
    }

    fn queue(self) -> Queue {
        let skill = SkillRule {
            ladder: "bench".to_owned(),
            start: 150,
            per_s: 25,
            most: 1_000,
            any_after_s: None,
            widen_by: WidenBy::Both,
        };
        let (players, teams, same) = match self {
            Scene::Duel => (2, 0, Vec::new()),
            Scene::Squads => (10, 2, vec!["mode".to_owned()]),
        };
        let players = Players { min: players, max: players, multiple: 1 };
        Queue { players, teams, same, skill: Some(skill), ..Queue::default() }
    }

    fn party(self, random: &mut SplitMix64) -> u64 {
        match self {
            Scene::Duel => 1,
            Scene::Squads => match random.draw() % 100 {
                0..60 => 1,
                60..80 => 2,
                80..90 => 3,
                90..95 => 4,
                _ => 5,
            },
        }
    }
}

/// Runs the bench.
///
/// # Errors
/// A match that breaks a rule, or a ticket that is lost: then no figure counts.
pub(crate) fn run(args: &MatchmakerArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for scene in [Scene::Duel, Scene::Squads] {
        for (waiting, rate) in [(0, 50), (args.tickets.into(), args.rate.into())] {
            tell(&format!("{}: {waiting} tickets wait, {rate} a second come", scene.name()));
            rows.push(measure(scene, waiting, rate, args.seconds.into())?);
        }
    }
    let setting = json!({ "seconds": args.seconds, "slice": MATCHING_SLICE });
    let notes = ["times and points are p50 / p99 / longest; rooms are opened at once".to_owned()];
    print("matchmaker", args.json, &setting, &rows, &notes, &table(&rows))
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("scene", |row| row.scene.to_owned()),
            ("wait for nobody", |row| row.waiting.to_string()),
            ("come/s", |row| row.rate.to_string()),
            ("matches", |row| row.matches.to_string()),
            ("core %", |row| figure(row.core_percent, 1)),
            ("µs/ticket", |row| figure(row.us_per_ticket, 1)),
            ("longest slice µs", |row| figure(row.longest_slice_us, 0)),
            ("wait ms", |row| row.wait_ms.plain()),
            ("points apart", |row| row.apart_points.plain()),
            ("still wait", |row| row.unserved.to_string()),
        ],
    )
}

/// Skills as a sum of draws: about a normal distribution around 2,500 with a deviation of 500.
fn skill(random: &mut SplitMix64) -> i64 {
    let sum: u64 = (0..12).map(|_| random.draw() % 500).sum();
    i64::try_from(sum).unwrap_or_default() - 500
}

fn ticket(number: u64, scene: Scene, now: Duration, random: &mut SplitMix64) -> Ticket {
    let skill = skill(random);
    let seeker = |nth| Seeker {
        player: format!("p{number:020x}{nth:04x}").into(),
        name: String::new(),
        skill,
        doubt: 0,
        rtt_ms: Some(30),
    };
    let mode = i64::try_from(random.draw() % 3).unwrap_or_default();
    Ticket {
        id: format!("t{number:024x}").into(),
        members: (0..scene.party(random)).map(seeker).collect(),
        party: None,
        players: Players { min: 2, max: 64, multiple: 1 },
        properties: Arc::new([("mode".to_owned(), Property::Number(mode))].into_iter().collect()),
        filter: Arc::default(),
        avoid: Arc::default(),
        since: now,
    }
}

fn measure(scene: Scene, waiting: u64, rate: u64, seconds: u64) -> anyhow::Result<Row> {
    let mut random = SplitMix64::new(7);
    let queue = Queue { life_s: 3_600, ..scene.queue() };
    let mut pool = Pool::new(queue.clone());
    let number = wait_for_nobody(&mut pool, (scene, waiting), &mut random)?;
    // Their first tries are done, and their next ones spread over time.
    let mut now = Duration::from_secs(120);
    while pool.work(u32::MAX, now).is_none() {}
    while pool.poll_changed().is_some() {}

    let (began, mut entered) = (now, 0_u64);
    let (mut busy, mut longest) = (Duration::ZERO, Duration::ZERO);
    let (mut waits, mut apart, mut matches, mut served) = (Vec::new(), Vec::new(), 0, 0_u64);
    while now < began + Duration::from_secs(seconds) {
        now += STEP;
        let due = u64::try_from((now - began).as_millis()).unwrap_or_default() * rate / 1_000;
        let new: Vec<Ticket> =
            (entered..due).map(|nth| ticket(number + 1 + nth, scene, now, &mut random)).collect();
        entered = due;
        let clock = Instant::now();
        for ticket in new {
            pool.enter(ticket, now).context("the pool is full")?;
        }
        busy += clock.elapsed();
        loop {
            let clock = Instant::now();
            let is_done = pool.work(MATCHING_SLICE, now).is_some();
            let slice = clock.elapsed();
            (busy, longest) = (busy + slice, longest.max(slice));
            if is_done {
                break;
            }
        }
        let (groups, opening) = open_all(&mut pool, now);
        busy += opening;
        for group in groups {
            check(&queue, &group, now)?;
            matches += 1;
            served += group.len() as u64;
            let skills = || group.iter().map(Ticket::skill);
            let (low, high) = (skills().min().unwrap_or(0), skills().max().unwrap_or(0));
            apart.push(low.abs_diff(high));
            if now > began + WARM_UP {
                let wait =
                    |ticket: &Ticket| u64::try_from((now - ticket.since).as_millis()).unwrap_or(u64::MAX);
                waits.extend(group.iter().map(wait));
            }
        }
    }
    ensure!(served <= entered, "a ticket was served twice");
    Ok(Row {
        scene: scene.name(),
        waiting,
        rate,
        matches,
        core_percent: 100.0 * busy.as_secs_f64() / seconds as f64,
        us_per_ticket: 1e6 * busy.as_secs_f64() / entered.max(1) as f64,
        longest_slice_us: longest.as_secs_f64() * 1e6,
        wait_ms: Spread::of(waits),
        apart_points: Spread::of(apart),
        unserved: entered - served,
    })
}

/// Enters tickets that nobody fits. Returns their number.
fn wait_for_nobody(
    pool: &mut Pool,
    (scene, waiting): (Scene, u64),
    random: &mut SplitMix64,
) -> anyhow::Result<u64> {
    let nobody: Arc<Filter> = Arc::new(serde_json::from_value(json!({ "mod": "of nobody" }))?);
    for number in 1..=waiting {
        let ticket = Ticket { filter: Arc::clone(&nobody), ..ticket(number, scene, Duration::ZERO, random) };
        pool.enter(ticket, Duration::ZERO).context("the pool is full")?;
    }
    Ok(waiting)
}

/// Opens the room of each match that was found. Returns their tickets, and the time that the pool took.
fn open_all(pool: &mut Pool, now: Duration) -> (Vec<Vec<Ticket>>, Duration) {
    let mut busy = Duration::ZERO;
    let mut groups: BTreeMap<String, Vec<Ticket>> = BTreeMap::new();
    while let Some(id) = pool.poll_changed() {
        let Some((found, state)) = pool.ticket(&id) else { continue };
        match state.clone() {
            TicketState::Opening { opener, .. } => {
                let room = Entrance { kind: "match".to_owned(), code: opener.to_string() };
                let clock = Instant::now();
                // The tickets of the other members get the same answer without a request.
                let _ = pool.opened(&id, &opener, room, now);
                busy += clock.elapsed();
            }
            TicketState::Found(it) => {
                let group = groups.entry(it.room.code.clone()).or_default();
                if !group.iter().any(|other| other.id == found.id) {
                    group.push(found.clone());
                }
            }
            _ => {}
        }
    }
    (groups.into_values().collect(), busy)
}

/// Whether a match keeps the rules.
fn check(queue: &Queue, group: &[Ticket], now: Duration) -> anyhow::Result<()> {
    let players: usize = group.iter().map(|ticket| ticket.members.len()).sum();
    ensure!(queue.players.admits(players), "a match has {players} players");
    for (nth, one) in group.iter().enumerate() {
        for other in group.iter().skip(nth + 1) {
            let is_same =
                queue.same.iter().all(|name| one.properties.get(name) == other.properties.get(name));
            ensure!(
                is_same && go_together(queue, one, other, now),
                "{} and {} do not go together",
                one.id,
                other.id
            );
        }
    }
    Ok(())
}
