//! The order of a board by indexset's sorted set and a map of owners, asked as `parlor-bench ranks` asks ours:
//! `indexset-ranks ENTRIES`.

#[path = "../../../../tools/bench/src/ranks/scene.rs"]
mod scene;
#[path = "../../../../tools/bench/src/spread.rs"]
mod spread;

use indexset::BTreeSet;
use scene::{Order, Score};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

/// The best is the smallest.
type Place = (Reverse<i64>, u64, Arc<str>);

#[derive(Default)]
struct Board {
    places: BTreeSet<Place>,
    of: HashMap<Arc<str>, Score>,
}

fn place(owner: &Arc<str>, score: Score) -> Place {
    (Reverse(score.score), score.at_ms, Arc::clone(owner))
}

impl Order for Board {
    type Loading = Board;

    fn load(loading: &mut Board, owner: &str, score: Score) {
        loading.put(owner, score);
    }

    fn loaded(loading: Board) -> Board {
        loading
    }

    /// Of equal scores all have the rank of the first.
    fn rank(&self, owner: &str) -> Option<u64> {
        let score = self.of.get(owner)?;
        let first = (Reverse(score.score), 0, Arc::from(""));
        u64::try_from(self.places.rank(&first)).ok().map(|before| before + 1)
    }

    fn put(&mut self, owner: &str, score: Score) {
        let owner = match self.of.get_key_value(owner) {
            Some((owner, before)) => {
                let owner = Arc::clone(owner);
                self.places.remove(&place(&owner, *before));
                owner
            }
            None => Arc::from(owner),
        };
        self.places.insert(place(&owner, score));
        self.of.insert(owner, score);
    }

    fn page(&self, from: u64, count: usize) -> usize {
        let from = usize::try_from(from - 1).unwrap_or(usize::MAX);
        let to = self.places.len().min(from + count);
        let entries: Vec<(Arc<str>, i64)> =
            self.places.range_idx(from..to).map(|(score, _, owner)| (Arc::clone(owner), score.0)).collect();
        entries.len()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let entries = std::env::args().nth(1).ok_or("say ENTRIES")?.parse()?;
    println!("{}", serde_json::to_string(&scene::measure::<Board>(entries))?);
    Ok(())
}
