//! Ranks in memory, without a store: how long a rank, a change and a page take, and what an entry takes of
//! memory. Each question is about another entry, so that the caches have none of them.

use super::args::RanksArgs;
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::Context;
use parlor_proto::random::SplitMix64;
use parlor_social::{Key, Loading, Ranks};
use serde::Serialize;
use serde_json::json;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Questions of each kind, at most one for each entry.
const QUESTIONS: u64 = 1_000_000;
/// Pages of this many entries.
const PAGE: usize = 100;
/// Pages that are asked for.
const PAGES: u64 = 100_000;
/// Scores are below this.
const SCORES: u64 = 1_000_000_000;

#[derive(Debug, Serialize)]
struct Row {
    entries: u64,
    loaded_per_second: f64,
    bytes_per_entry: Option<f64>,
    rank_ns: Spread,
    change_ns: Spread,
    page_ns: Spread,
}

/// Times of one kind, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    p50: u64,
    p99: u64,
    longest: u64,
}

impl Spread {
    fn of(mut took: Vec<u64>) -> Self {
        took.sort_unstable();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        Spread { p50: at(50), p99: at(99), longest: took.last().copied().unwrap_or_default() }
    }

    fn shown(self) -> String {
        let us = |ns: u64| figure(Some(ns as f64 / 1_000.0), 2);
        format!("{} / {} / {}", us(self.p50), us(self.p99), us(self.longest))
    }
}

/// Runs the bench.
///
/// # Errors
/// The entries do not fit.
pub(crate) fn run(args: &RanksArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for entries in &args.entries {
        tell(&format!("ranks of {entries} entries"));
        rows.push(measure(u64::from(*entries))?);
    }
    let setting = json!({ "questions": QUESTIONS, "page": PAGE });
    let notes = ["times are p50 / p99 / longest; ids have 25 bytes".to_owned()];
    print("ranks", args.json, &setting, &rows, &notes, &table(&rows))
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("entries", |row| row.entries.to_string()),
            ("loaded/s", |row| figure(row.loaded_per_second, 0)),
            ("B/entry", |row| figure(row.bytes_per_entry, 1)),
            ("rank µs", |row| row.rank_ns.shown()),
            ("change µs", |row| row.change_ns.shown()),
            ("page of 100 µs", |row| row.page_ns.shown()),
        ],
    )
}

/// The id of an account, as long as the server's own.
fn id(number: u64) -> String {
    format!("p{:024x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn measure(entries: u64) -> anyhow::Result<Row> {
    let mut random = SplitMix64::new(entries);
    let before = resident_bytes();
    let (mut loading, mut loaded) = (Loading::default(), Duration::ZERO);
    for number in 0..entries {
        let (owner, key) = (id(number), key(&mut random, number));
        let began = Instant::now();
        loading.add(&owner, key).context("the ranks are full")?;
        loaded += began.elapsed();
    }
    let began = Instant::now();
    let mut ranks = loading.finish();
    loaded += began.elapsed();
    let bytes = before.zip(resident_bytes()).map(|(before, after)| after.saturating_sub(before));
    let rank_ns = ask(&mut ranks, entries, &mut random, |ranks, owner, _| {
        black_box(ranks.standing(owner).map(|standing| standing.rank));
    });
    let change_ns = ask(&mut ranks, entries, &mut random, |ranks, owner, key| {
        black_box(ranks.put(owner, key).is_ok());
    });
    let pages = (0..PAGES.min(entries)).map(|_| {
        let from = random.draw() % entries + 1;
        let began = Instant::now();
        black_box(ranks.page(from, PAGE).len());
        nanos(began)
    });
    Ok(Row {
        entries,
        loaded_per_second: entries as f64 / loaded.as_secs_f64(),
        bytes_per_entry: bytes.map(|bytes| bytes as f64 / entries as f64),
        rank_ns,
        change_ns,
        page_ns: Spread::of(pages.collect()),
    })
}

fn key(random: &mut SplitMix64, at_ms: u64) -> Key {
    Key { score: i64::try_from(random.draw() % SCORES).unwrap_or_default(), sub: 0, at_ms }
}

/// Asks about entries in random order.
fn ask(
    ranks: &mut Ranks,
    entries: u64,
    random: &mut SplitMix64,
    question: impl Fn(&mut Ranks, &str, Key),
) -> Spread {
    let took = (0..QUESTIONS.min(entries)).map(|at| {
        let (owner, key) = (id(random.draw() % entries), key(random, at));
        let began = Instant::now();
        question(ranks, &owner, key);
        nanos(began)
    });
    Spread::of(took.collect())
}

fn nanos(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// What the process has in memory, where the system says so.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
