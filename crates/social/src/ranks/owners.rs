//! Owners of entries by number, in arrays: their ids in one piece of memory, and a table that finds a number by its id.

use super::{Full, Key};
use crate::limits::ENTRIES_MAX;
use core::cmp::Ordering;
use core::hash::Hasher;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::collections::BTreeMap;

/// Parts of the table. A table that is full moves all that it has; in parts, no such pause is long.
const PARTS: usize = 256;
/// Owners below which one part is enough.
const PARTED_FROM: usize = 4096;

/// The number of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(pub(super) u32);

impl Owner {
    fn at(self) -> usize {
        self.0 as usize
    }
}

/// What most questions about an owner ask for: side by side, because each place in memory costs a cache miss.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    score: i64,
    at_ms: u64,
    /// Where its id begins in `ids`.
    start: u32,
    len: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Owners {
    records: Vec<Record>,
    ids: Vec<u8>,
    /// Empty as long as all are 0.
    subs: Vec<i64>,
    by_id: Vec<HashTable<u32>>,
    /// Numbers without an owner, by the length of the id that they have room for.
    free: BTreeMap<u8, Vec<u32>>,
    len: usize,
}

impl Default for Owners {
    fn default() -> Self {
        Owners {
            records: Vec::new(),
            ids: Vec::new(),
            subs: Vec::new(),
            by_id: vec![HashTable::new()],
            free: BTreeMap::new(),
            len: 0,
        }
    }
}

impl Owners {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        let tables: usize = self.by_id.iter().map(|part| part.capacity() * 8 * 5 / 7 + 32).sum();
        self.ids.len()
            + self.records.len() * size_of::<Record>()
            + self.subs.len() * size_of::<i64>()
            + tables
            + self.free.values().map(|free| free.len() * size_of::<u32>()).sum::<usize>()
    }

    pub(super) fn find(&self, id: &str) -> Option<Owner> {
        let hash = hash_of(id.as_bytes());
        let is_it = |number: &u32| self.id_bytes(Owner(*number)) == id.as_bytes();
        self.by_id[self.part_of(hash)].find(hash, is_it).copied().map(Owner)
    }

    /// Sets the key of an owner, which is added if it is not there.
    pub(super) fn put(&mut self, id: &str, key: Key) -> Result<(), Full> {
        match self.find(id) {
            Some(owner) => self.set(owner, key),
            None => {
                self.add(id, key)?;
            }
        }
        Ok(())
    }

    /// Adds an owner, which must not be there.
    pub(super) fn add(&mut self, id: &str, key: Key) -> Result<Owner, Full> {
        let len = u8::try_from(id.len()).map_err(|_| Full)?;
        if self.len >= ENTRIES_MAX {
            return Err(Full);
        }
        let number = match self.free.get_mut(&len).and_then(Vec::pop) {
            Some(number) => {
                let start = self.records[number as usize].start as usize;
                self.ids[start..start + id.len()].copy_from_slice(id.as_bytes());
                number
            }
            None => self.append(len, id)?,
        };
        self.len += 1;
        let owner = Owner(number);
        self.set(owner, key);
        if self.len == PARTED_FROM && self.by_id.len() == 1 {
            self.part();
        }
        self.enter(number, hash_of(id.as_bytes()));
        Ok(owner)
    }

    fn append(&mut self, len: u8, id: &str) -> Result<u32, Full> {
        let number = u32::try_from(self.records.len()).map_err(|_| Full)?;
        let start = u32::try_from(self.ids.len()).map_err(|_| Full)?;
        self.ids.extend_from_slice(id.as_bytes());
        self.records.push(Record { start, len, ..Record::default() });
        if !self.subs.is_empty() {
            self.subs.push(0);
        }
        Ok(number)
    }

    fn enter(&mut self, number: u32, hash: u64) {
        let part = self.part_of(hash);
        let (ids, records) = (&self.ids, &self.records);
        let hash_again = |number: &u32| hash_of(records[*number as usize].id(ids));
        self.by_id[part].insert_unique(hash, number, hash_again);
    }

    /// Distributes the table over many parts.
    fn part(&mut self) {
        let all: Vec<u32> = self.by_id.iter().flat_map(|part| part.iter().copied()).collect();
        self.by_id = vec![HashTable::new(); PARTS];
        for number in all {
            self.enter(number, hash_of(self.id_bytes(Owner(number))));
        }
    }

    /// The table takes its place from the lowest and its tag from the highest bits; a part is from between.
    fn part_of(&self, hash: u64) -> usize {
        if self.by_id.len() == 1 { 0 } else { (hash >> 40) as usize % PARTS }
    }

    pub(super) fn remove(&mut self, owner: Owner) {
        let id = self.id_bytes(owner);
        let (hash, len) = (hash_of(id), u8::try_from(id.len()).unwrap_or(u8::MAX));
        let part = self.part_of(hash);
        if let Ok(entry) = self.by_id[part].find_entry(hash, |number| *number == owner.0) {
            entry.remove();
            self.free.entry(len).or_default().push(owner.0);
            self.len -= 1;
        }
    }

    pub(super) fn key(&self, owner: Owner) -> Key {
        let Record { score, at_ms, .. } = self.records[owner.at()];
        Key { score, sub: self.subs.get(owner.at()).copied().unwrap_or_default(), at_ms }
    }

    pub(super) fn score(&self, owner: Owner) -> i64 {
        self.records[owner.at()].score
    }

    pub(super) fn set(&mut self, owner: Owner, key: Key) {
        if key.sub != 0 && self.subs.is_empty() {
            self.subs = vec![0; self.records.len()];
        }
        if let Some(sub) = self.subs.get_mut(owner.at()) {
            *sub = key.sub;
        }
        let record = &mut self.records[owner.at()];
        (record.score, record.at_ms) = (key.score, key.at_ms);
    }

    pub(super) fn id(&self, owner: Owner) -> &str {
        core::str::from_utf8(self.id_bytes(owner)).unwrap_or_default()
    }

    fn id_bytes(&self, owner: Owner) -> &[u8] {
        self.records[owner.at()].id(&self.ids)
    }

    /// Which of two owners with equal scores stands before the other.
    pub(super) fn compare_ties(&self, one: Owner, other: Owner) -> Ordering {
        let (first, second) = (self.key(one), self.key(other));
        let by_sub = second.sub.cmp(&first.sub);
        by_sub.then(first.at_ms.cmp(&second.at_ms)).then_with(|| self.id_bytes(one).cmp(self.id_bytes(other)))
    }

    /// All numbers that have an owner.
    pub(super) fn all(&self) -> impl Iterator<Item = Owner> {
        self.by_id.iter().flat_map(|part| part.iter().copied().map(Owner))
    }
}

impl Record {
    fn id<'i>(&self, ids: &'i [u8]) -> &'i [u8] {
        let start = self.start as usize;
        &ids[start..start + usize::from(self.len)]
    }
}

fn hash_of(id: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(id);
    hasher.finish()
}
