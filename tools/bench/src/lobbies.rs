//! Lobbies in memory: how long a search of four conditions takes among many.

use super::args::LobbiesArgs;
use super::spread::Spread;
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::Context;
use parlor_proto::random::SplitMix64;
use parlor_social::{
    Filter, Lobbies, LobbyKind, NewLobby, Person, Properties, Property, Search, SearchOrder,
};
use serde::Serialize;
use serde_json::json;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Searches of each kind.
const SEARCHES: u64 = 2_000;
const MAPS: [&str; 8] = ["mill", "dust", "lake", "fort", "pier", "mine", "dock", "moor"];

/// Draws the conditions of a search.
type Conditions<'a> = &'a dyn Fn(&mut SplitMix64) -> serde_json::Value;

#[derive(Debug, Serialize)]
struct Row {
    lobbies: u64,
    search: &'static str,
    found: f64,
    took_ns: Spread,
    per_second: f64,
}

/// Runs the bench.
///
/// # Errors
/// There is no place for so many lobbies.
pub(crate) fn run(args: &LobbiesArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for count in &args.lobbies {
        tell(&format!("searches among {count} lobbies"));
        rows.extend(measure(u64::from(*count))?);
    }
    let setting = json!({ "searches": SEARCHES, "conditions": 4 });
    let notes = ["times are p50 / p99 / longest; a search looks at 4,000 lobbies at most".to_owned()];
    print("lobbies", args.json, &setting, &rows, &notes, &table(&rows))
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("lobbies", |row| row.lobbies.to_string()),
            ("search", |row| row.search.to_owned()),
            ("found", |row| figure(row.found, 1)),
            ("µs", |row| row.took_ns.shown()),
            ("searches/s", |row| figure(row.per_second, 0)),
        ],
    )
}

fn person(player: u64) -> Person {
    let key = |player: u64| format!("p{player:024x}").into();
    Person {
        player: key(player),
        name: "somebody".to_owned(),
        is_here: true,
        friends: (1..50).map(|nth| key(player + nth)).collect(),
        blocked: (100..110).map(|nth| key(player + nth)).collect(),
    }
}

fn drawn(random: &mut SplitMix64, below: u64) -> i64 {
    i64::try_from(random.draw() % below).unwrap_or_default()
}

fn measure(count: u64) -> anyhow::Result<Vec<Row>> {
    let mut random = SplitMix64::new(count);
    let mut lobbies = Lobbies::default();
    for number in 0..count {
        let properties: Properties = [
            ("level", Property::Number(drawn(&mut random, 100))),
            ("map", MAPS[usize::try_from(random.draw() % 8)?].into()),
            ("mode", ["coop", "duel"][usize::try_from(random.draw() % 2)?].into()),
            ("ping", Property::Number(drawn(&mut random, 200))),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let new = NewLobby {
            id: format!("l{number:024x}"),
            code: format!("{number:08X}"),
            kind: LobbyKind::Lobby,
            properties,
            ..NewLobby::default()
        };
        lobbies.create(&person(number * 4), new, Duration::ZERO).context("there is no place")?;
        while lobbies.poll_news().is_some() {}
    }
    let narrow = |random: &mut SplitMix64| {
        let level = drawn(random, 95);
        json!({ "level": { "ge": level, "lt": level + 5 }, "map": ["mill", "dust"], "mode": "coop", "ping": { "lt": 150 } })
    };
    let wide = |random: &mut SplitMix64| {
        let level = drawn(random, 50);
        json!({ "level": { "ge": level }, "map": { "ne": "moor" }, "mode": "coop", "ping": { "lt": 150 } })
    };
    let kinds: [(&'static str, Conditions<'_>, SearchOrder); 3] = [
        ("many fit, newest", &wide, SearchOrder::Newest),
        ("few fit, newest", &narrow, SearchOrder::Newest),
        ("many fit, fullest", &wide, SearchOrder::Fullest),
    ];
    kinds
        .into_iter()
        .map(|(search, filter, order)| {
            let (mut took, mut found) = (Vec::new(), 0);
            for _ in 0..SEARCHES {
                let filter: Filter = serde_json::from_value(filter(&mut random))?;
                let by = person(random.draw() % (count * 4));
                let search = Search { filter, order, count: 20, ..Search::default() };
                let began = Instant::now();
                found += black_box(lobbies.find(&by, &search)).lobbies.len();
                took.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
            let all: u64 = took.iter().sum();
            Ok(Row {
                lobbies: count,
                search,
                found: found as f64 / SEARCHES as f64,
                per_second: 1e9 * SEARCHES as f64 / all.max(1) as f64,
                took_ns: Spread::of(took),
            })
        })
        .collect()
}
