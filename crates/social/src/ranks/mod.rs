//! The order of all entries of a season, in memory.
//!
//! [`Ranks`] finds the rank of any entry, and the page at any place, among tens of millions. Owners are in arrays by
//! number (`owners.rs`); their order is a counted tree of three levels whose inner nodes are arrays (`order.rs`). An SQL
//! index by score would double what each submission writes and still give no rank.

mod order;
mod owners;

use order::Tree;
use owners::{Owner, Owners};
use std::collections::BTreeSet;
use thiserror::Error;

/// What entries are ordered by: more `score`, then more `sub`, then whoever was first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// More is better.
    pub score: i64,
    /// Decides between equal scores; more is better.
    pub sub: i64,
    /// When both were reached, in milliseconds since 1970. It decides the position, and not the rank.
    pub at_ms: u64,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    /// Whose it is.
    pub owner: &'a str,
    /// Its score.
    pub key: Key,
    /// 1 and the number of entries with a better score or sub-score. Entries that are equal in both share it.
    pub rank: u64,
    /// Its place in the whole order, from 1; no two share one.
    pub position: u64,
}

/// No more entries fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no more entries fit into the ranks of this board")]
pub struct Full;

/// The order of all entries of a season.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    owners: Owners,
    tree: Tree,
}

/// Ranks that are being loaded: entries in any order, which are sorted at the end.
#[derive(Debug, Default)]
pub struct Loading {
    owners: Owners,
}

impl Loading {
    /// Adds an entry. A second one of its owner replaces it.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub fn add(&mut self, owner: &str, key: Key) -> Result<(), Full> {
        self.owners.put(owner, key)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranks of all that was added.
    pub fn finish(self) -> Ranks {
        let tree = Tree::sorted(&self.owners);
        Ranks { owners: self.owners, tree }
    }
}

impl Ranks {
    /// Ranks without entries.
    pub fn new() -> Self {
        Ranks::default()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how much memory they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.owners.bytes() + self.tree.bytes()
    }

    /// Sets the entry of an owner. Returns its key before.
    ///
    /// # Errors
    ///
    /// [`Full`] for a new owner.
    pub fn put(&mut self, owner: &str, key: Key) -> Result<Option<Key>, Full> {
        let (number, before) = match self.owners.find(owner) {
            Some(number) => {
                let before = self.owners.key(number);
                if before == key {
                    return Ok(Some(before));
                }
                self.tree.remove(&self.owners, number);
                self.owners.set(number, key);
                (number, Some(before))
            }
            None => (self.owners.add(owner, key)?, None),
        };
        self.tree.insert(&self.owners, number);
        Ok(before)
    }

    /// Removes the entry of an owner. Returns its key.
    pub fn remove(&mut self, owner: &str) -> Option<Key> {
        let number = self.owners.find(owner)?;
        let key = self.owners.key(number);
        self.tree.remove(&self.owners, number);
        self.owners.remove(number);
        Some(key)
    }

    /// The key of an owner's entry.
    pub fn key(&self, owner: &str) -> Option<Key> {
        self.owners.find(owner).map(|number| self.owners.key(number))
    }

    /// Where an owner stands.
    pub fn standing(&self, owner: &str) -> Option<Standing<'_>> {
        let number = self.owners.find(owner)?;
        let place = self.tree.place_of(&self.owners, number);
        let rank = match self.tree.before(place) {
            // Another score needs no look at its owner.
            Some((score, before)) if score == self.owners.score(number) && self.is_equal(before, number) => {
                self.rank_of(number)
            }
            _ => place.position + 1,
        };
        Some(self.at(number, rank, place.position + 1))
    }

    /// Up to `count` entries from a position on; positions begin with 1.
    pub fn page(&self, from: u64, count: usize) -> Vec<Standing<'_>> {
        let mut page: Vec<Standing<'_>> = Vec::new();
        let mut last = None;
        for (number, position) in self.tree.walk(from.max(1) - 1).take(count).zip(from.max(1)..) {
            let rank = match (last, page.last()) {
                (Some(last), Some(before)) if self.is_equal(last, number) => before.rank,
                (Some(_), Some(_)) => position,
                _ => self.rank_of(number),
            };
            page.push(self.at(number, rank, position));
            last = Some(number);
        }
        page
    }

    /// Up to `count` entries with that of an owner in their middle. Near an end there are as many, and the owner's is
    /// not in the middle.
    pub fn around(&self, owner: &str, count: usize) -> Option<Vec<Standing<'_>>> {
        let number = self.owners.find(owner)?;
        let position = self.tree.place_of(&self.owners, number).position + 1;
        let (count_wide, len) = (count as u64, self.len() as u64);
        let latest = (len + 1).saturating_sub(count_wide).max(1);
        let from = position.saturating_sub(count_wide / 2).clamp(1, latest);
        Some(self.page(from, count))
    }

    /// Where these owners stand, the best first. Those without an entry are left out.
    pub fn of<'o>(&self, owners: impl IntoIterator<Item = &'o str>) -> Vec<Standing<'_>> {
        let owners: BTreeSet<&str> = owners.into_iter().collect();
        let mut found: Vec<_> = owners.into_iter().filter_map(|owner| self.standing(owner)).collect();
        found.sort_unstable_by_key(|standing| standing.position);
        found
    }

    /// Whether two entries share a rank.
    fn is_equal(&self, one: Owner, other: Owner) -> bool {
        let (one, other) = (self.owners.key(one), self.owners.key(other));
        (one.score, one.sub) == (other.score, other.sub)
    }

    fn rank_of(&self, number: Owner) -> u64 {
        self.tree.better_than(&self.owners, self.owners.key(number)) + 1
    }

    fn at(&self, number: Owner, rank: u64, position: u64) -> Standing<'_> {
        Standing { owner: self.owners.id(number), key: self.owners.key(number), rank, position }
    }
}
