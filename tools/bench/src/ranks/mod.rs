//! Ranks in memory, without a store: how long a rank, a change and a page take, and the memory of an entry, beside
//! indexset's sorted set with a map of owners.

mod scene;

use super::args::RanksArgs;
use super::peers::{built, how_to_build};
use super::spread::Spread;
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::{Context, ensure};
use parlor_social::{Key, Loading, Ranks};
use scene::{Measured, Order, PAGE, QUESTIONS, Score, measure};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Debug, Serialize)]
struct Row {
    order: &'static str,
    entries: u32,
    loaded_per_second: f64,
    bytes_per_entry: Option<f64>,
    rank_ns: Spread,
    change_ns: Spread,
    page_ns: Spread,
}

/// Runs the bench.
///
/// # Errors
/// The entries do not fit, or the peer failed.
pub(crate) fn run(args: &RanksArgs) -> anyhow::Result<()> {
    let peer = built("target/release/indexset-ranks");
    let (mut rows, mut notes) =
        (Vec::new(), vec!["times are p50 / p99 / longest; ids have 25 bytes".to_owned()]);
    if peer.is_none() {
        notes.push(how_to_build("indexset"));
    }
    for entries in &args.entries {
        tell(&format!("ranks of {entries} entries"));
        let ours = measure::<Ours>((*entries).into());
        let theirs = peer.as_ref().map(|program| indexset(program, *entries)).transpose()?;
        for (order, measured) in [("parlor", Some(ours)), ("indexset", theirs)] {
            let Some(measured) = measured else { continue };
            // Each rank is found, and almost each page is whole.
            let asked = QUESTIONS.min((*entries).into());
            ensure!(measured.found > asked, "{order} finds {} of {asked}", measured.found);
            rows.push(row(order, *entries, &measured));
        }
    }
    let setting = json!({ "questions": QUESTIONS, "page": PAGE });
    print("ranks", args.json, &setting, &rows, &notes, &table(&rows))
}

fn row(order: &'static str, entries: u32, measured: &Measured) -> Row {
    let Measured { loaded_per_second, bytes_per_entry, rank_ns, change_ns, page_ns, .. } = *measured;
    Row { order, entries, loaded_per_second, bytes_per_entry, rank_ns, change_ns, page_ns }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("order", |row| row.order.to_owned()),
            ("entries", |row| row.entries.to_string()),
            ("loaded/s", |row| figure(row.loaded_per_second, 0)),
            ("B/entry", |row| figure(row.bytes_per_entry, 1)),
            ("rank µs", |row| row.rank_ns.shown()),
            ("change µs", |row| row.change_ns.shown()),
            ("page of 100 µs", |row| row.page_ns.shown()),
        ],
    )
}

/// Measures the peer, in a process of its own.
fn indexset(program: &Path, entries: u32) -> anyhow::Result<Measured> {
    let mut command = Command::new(program);
    command.arg(entries.to_string()).stderr(Stdio::inherit());
    let output = command.output().context("indexset-ranks cannot be started")?;
    ensure!(output.status.success(), "indexset-ranks failed: its words stand above");
    serde_json::from_slice(&output.stdout).context("indexset-ranks says nothing")
}

/// The order that the server keeps.
struct Ours(Ranks);

fn key(score: Score) -> Key {
    Key { score: score.score, sub: 0, at_ms: score.at_ms }
}

impl Order for Ours {
    type Loading = Loading;

    fn load(loading: &mut Loading, owner: &str, score: Score) {
        // Without place for all, `run` finds too few.
        let _ = loading.add(owner, key(score));
    }

    fn loaded(loading: Loading) -> Self {
        Ours(loading.finish())
    }

    fn rank(&self, owner: &str) -> Option<u64> {
        self.0.standing(owner).map(|standing| standing.rank)
    }

    fn put(&mut self, owner: &str, score: Score) {
        let _ = self.0.put(owner, key(score));
    }

    fn page(&self, from: u64, count: usize) -> usize {
        self.0.page(from, count).len()
    }
}
