//! The load of `parlor-bench ranks`. Its peers include this file, so all are measured in one way.

use crate::spread::Spread;
use parlor_proto::random::SplitMix64;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Questions of each kind, at most one for each entry.
pub(crate) const QUESTIONS: u64 = 1_000_000;
/// Pages of this many entries.
pub(crate) const PAGE: usize = 100;
/// Pages that are asked for.
const PAGES: u64 = 100_000;
/// Scores are below this.
const SCORES: u64 = 1_000_000_000;

/// A score. The larger is better; of equal ones the earlier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score {
    /// The number.
    pub score: i64,
    /// When it was reached.
    pub at_ms: u64,
}

/// Keeps scores in their order.
pub(crate) trait Order: Sized {
    /// What takes entries before the order is needed.
    type Loading: Default;

    /// Takes an entry.
    fn load(loading: &mut Self::Loading, owner: &str, score: Score);
    /// All are there.
    fn loaded(loading: Self::Loading) -> Self;
    /// The rank of an entry, from 1.
    fn rank(&self, owner: &str) -> Option<u64>;
    /// Changes an entry.
    fn put(&mut self, owner: &str, score: Score);
    /// The owners and scores from a rank on. Returns how many there were.
    fn page(&self, from: u64, count: usize) -> usize;
}

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Entries loaded in a second.
    pub loaded_per_second: f64,
    /// Memory for an entry, where the system says so.
    pub bytes_per_entry: Option<f64>,
    /// Nanoseconds of a rank.
    pub rank_ns: Spread,
    /// Nanoseconds of a change.
    pub change_ns: Spread,
    /// Nanoseconds of a page.
    pub page_ns: Spread,
    /// Entries that pages and ranks have found.
    pub found: u64,
}

/// The id of an account, as long as the server's own.
fn id(number: u64) -> String {
    format!("p{:024x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Loads so many entries and asks about them. Each question is about another entry, so no cache has it.
pub(crate) fn measure<O: Order>(entries: u64) -> Measured {
    let mut random = SplitMix64::new(entries);
    let before = resident_bytes();
    let (mut loading, mut loaded) = (O::Loading::default(), Duration::ZERO);
    for number in 0..entries {
        let (owner, score) = (id(number), score(&mut random, number));
        let began = Instant::now();
        O::load(&mut loading, &owner, score);
        loaded += began.elapsed();
    }
    let began = Instant::now();
    let mut order = O::loaded(loading);
    loaded += began.elapsed();
    let bytes = before.zip(resident_bytes()).map(|(before, after)| after.saturating_sub(before));
    let mut found = 0;
    let rank_ns = ask(&mut order, entries, &mut random, |order, owner, _| {
        found += u64::from(black_box(order.rank(owner)).is_some());
    });
    let change_ns = ask(&mut order, entries, &mut random, O::put);
    let pages = (0..PAGES.min(entries)).map(|_| {
        let from = random.draw() % entries + 1;
        let began = Instant::now();
        found += black_box(order.page(from, PAGE)) as u64;
        nanos(began)
    });
    let page_ns = Spread::of(pages.collect());
    Measured {
        loaded_per_second: entries as f64 / loaded.as_secs_f64(),
        bytes_per_entry: bytes.map(|bytes| bytes as f64 / entries as f64),
        rank_ns,
        change_ns,
        page_ns,
        found,
    }
}

fn score(random: &mut SplitMix64, at_ms: u64) -> Score {
    Score { score: i64::try_from(random.draw() % SCORES).unwrap_or_default(), at_ms }
}

/// Asks about entries in random order.
fn ask<O>(
    order: &mut O,
    entries: u64,
    random: &mut SplitMix64,
    mut question: impl FnMut(&mut O, &str, Score),
) -> Spread {
    let took = (0..QUESTIONS.min(entries)).map(|at| {
        let (owner, score) = (id(random.draw() % entries), score(random, at));
        let began = Instant::now();
        question(order, &owner, score);
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
