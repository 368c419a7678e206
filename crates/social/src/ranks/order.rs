//! The order of owners: a counted tree of three levels whose inner nodes are arrays.
//!
//! A chunk has up to 512 entries, a group up to 256 chunks. A position is the sum of the groups before, of the chunks
//! before in the group, and the place in the chunk: short sums over adjacent numbers. With one Fenwick tree over all
//! chunks a split would move and count all that follow it; here it moves at most one group.

use super::Key;
use super::owners::{Owner, Owners};
use core::cmp::Ordering;

const CHUNK_MAX: usize = 512;
const CHUNK_LOW: usize = 128;
/// Entries of a chunk that is loaded: it has room for some more.
const CHUNK_LOADED: usize = 384;
const GROUP_MAX: usize = 256;
const GROUP_LOW: usize = 64;
/// Chunks of a group that is loaded.
const GROUP_LOADED: usize = 192;

/// An entry: its score beside its owner's number, so that most comparisons read nothing else.
#[derive(Clone, Copy, Debug)]
struct Slot {
    score: i64,
    owner: Owner,
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    scores: Vec<i64>,
    owners: Vec<Owner>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    chunks: Vec<Chunk>,
    /// The first entry of each chunk.
    firsts: Vec<Slot>,
    lens: Vec<u16>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    groups: Vec<Group>,
    /// The first entry of each group.
    firsts: Vec<Slot>,
    lens: Vec<u32>,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    group: usize,
    chunk: usize,
    at: usize,
    /// Number of entries before it.
    pub(super) position: u64,
}

impl Chunk {
    fn len(&self) -> usize {
        self.scores.len()
    }

    fn slot(&self, at: usize) -> Slot {
        Slot { score: self.scores[at], owner: self.owners[at] }
    }

    /// Vectors of their own accord would double beyond what a chunk may have.
    fn insert(&mut self, at: usize, slot: Slot) {
        if self.scores.len() == self.scores.capacity() {
            let room = (self.len() * 2).clamp(8, CHUNK_MAX) - self.len();
            self.scores.reserve_exact(room);
            self.owners.reserve_exact(room);
        }
        self.scores.insert(at, slot.score);
        self.owners.insert(at, slot.owner);
    }

    fn split_off(&mut self, at: usize) -> Chunk {
        Chunk { scores: self.scores.split_off(at), owners: self.owners.split_off(at) }
    }

    fn append(&mut self, mut other: Chunk) {
        self.scores.reserve_exact(other.len());
        self.owners.reserve_exact(other.len());
        self.scores.append(&mut other.scores);
        self.owners.append(&mut other.owners);
    }

    /// The first place of which `is_before` is not true.
    fn search(&self, is_before: impl Fn(Slot) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.slot(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Group {
    fn len(&self) -> usize {
        self.lens.iter().map(|len| usize::from(*len)).sum()
    }

    fn insert_chunk(&mut self, at: usize, chunk: Chunk) {
        self.firsts.insert(at, chunk.slot(0));
        self.lens.insert(at, len16(&chunk));
        self.chunks.insert(at, chunk);
    }

    fn remove_chunk(&mut self, at: usize) -> Chunk {
        self.firsts.remove(at);
        self.lens.remove(at);
        self.chunks.remove(at)
    }

    /// Takes over what a changed chunk says of itself.
    fn refresh(&mut self, at: usize) {
        self.firsts[at] = self.chunks[at].slot(0);
        self.lens[at] = len16(&self.chunks[at]);
    }

    /// Merges a chunk that has become small with a neighbour.
    fn merge_at(&mut self, at: usize) {
        let left = if at + 1 < self.chunks.len() { at } else { at.saturating_sub(1) };
        if left + 1 >= self.chunks.len() {
            return;
        }
        let right = self.remove_chunk(left + 1);
        self.chunks[left].append(right);
        if self.chunks[left].len() >= CHUNK_MAX {
            let half = self.chunks[left].len() / 2;
            let rest = self.chunks[left].split_off(half);
            self.chunks[left].scores.shrink_to(CHUNK_MAX);
            self.chunks[left].owners.shrink_to(CHUNK_MAX);
            self.insert_chunk(left + 1, rest);
        }
        self.refresh(left);
    }

    fn split_off(&mut self, at: usize) -> Group {
        Group {
            chunks: self.chunks.split_off(at),
            firsts: self.firsts.split_off(at),
            lens: self.lens.split_off(at),
        }
    }

    fn append(&mut self, mut other: Group) {
        self.chunks.append(&mut other.chunks);
        self.firsts.append(&mut other.firsts);
        self.lens.append(&mut other.lens);
    }
}

fn len16(chunk: &Chunk) -> u16 {
    u16::try_from(chunk.len()).unwrap_or(u16::MAX)
}

impl Tree {
    /// The order of all these owners.
    pub(super) fn sorted(owners: &Owners) -> Tree {
        let mut all: Vec<Slot> =
            owners.all().map(|owner| Slot { score: owners.score(owner), owner }).collect();
        all.sort_unstable_by(|one, other| {
            other.score.cmp(&one.score).then_with(|| owners.compare_ties(one.owner, other.owner))
        });
        let mut tree = Tree::default();
        for part in all.chunks(CHUNK_LOADED * GROUP_LOADED) {
            let mut group = Group::default();
            for slots in part.chunks(CHUNK_LOADED) {
                let chunk = Chunk {
                    scores: slots.iter().map(|slot| slot.score).collect(),
                    owners: slots.iter().map(|slot| slot.owner).collect(),
                };
                group.insert_chunk(group.chunks.len(), chunk);
            }
            tree.insert_group(tree.groups.len(), group);
        }
        tree
    }

    pub(super) fn bytes(&self) -> usize {
        const CHUNK: usize =
            CHUNK_MAX * (size_of::<i64>() + size_of::<Owner>()) + size_of::<Chunk>() + size_of::<Slot>() + 2;
        self.groups.iter().map(|group| group.chunks.len() * CHUNK + size_of::<Group>()).sum()
    }

    pub(super) fn insert(&mut self, owners: &Owners, owner: Owner) {
        let slot = Slot { score: owners.score(owner), owner };
        if self.groups.is_empty() {
            let mut group = Group::default();
            let mut chunk = Chunk::default();
            chunk.insert(0, slot);
            group.insert_chunk(0, chunk);
            self.insert_group(0, group);
            return;
        }
        let place = self.place_of(owners, owner);
        let group = &mut self.groups[place.group];
        group.chunks[place.chunk].insert(place.at, slot);
        if group.chunks[place.chunk].len() >= CHUNK_MAX {
            let rest = group.chunks[place.chunk].split_off(CHUNK_MAX / 2);
            group.insert_chunk(place.chunk + 1, rest);
        }
        group.refresh(place.chunk);
        if group.chunks.len() >= GROUP_MAX {
            let rest = group.split_off(GROUP_MAX / 2);
            self.insert_group(place.group + 1, rest);
            self.refresh(place.group);
        } else {
            self.firsts[place.group] = group.firsts[0];
            self.lens[place.group] += 1;
        }
    }

    /// Removes an owner, which must have the key by which it was inserted.
    pub(super) fn remove(&mut self, owners: &Owners, owner: Owner) {
        let place = self.place_of(owners, owner);
        let Some(group) = self.groups.get_mut(place.group) else { return };
        let chunk = &mut group.chunks[place.chunk];
        debug_assert_eq!(chunk.owners.get(place.at), Some(&owner), "an owner is where its key says");
        chunk.scores.remove(place.at);
        chunk.owners.remove(place.at);
        self.lens[place.group] -= 1;
        if chunk.len() == 0 {
            group.remove_chunk(place.chunk);
        } else {
            group.refresh(place.chunk);
            if group.chunks[place.chunk].len() < CHUNK_LOW {
                group.merge_at(place.chunk);
            }
        }
        match group.firsts.first() {
            Some(first) => self.firsts[place.group] = *first,
            None => {
                self.remove_group(place.group);
                return;
            }
        }
        if group.chunks.len() < GROUP_LOW && self.groups.len() > 1 {
            self.merge_at(place.group);
        }
    }

    fn insert_group(&mut self, at: usize, group: Group) {
        self.firsts.insert(at, group.firsts[0]);
        self.lens.insert(at, len32(&group));
        self.groups.insert(at, group);
    }

    fn remove_group(&mut self, at: usize) -> Group {
        self.firsts.remove(at);
        self.lens.remove(at);
        self.groups.remove(at)
    }

    fn refresh(&mut self, at: usize) {
        self.firsts[at] = self.groups[at].firsts[0];
        self.lens[at] = len32(&self.groups[at]);
    }

    /// Merges a group that has become small with a neighbour.
    fn merge_at(&mut self, at: usize) {
        let left = if at + 1 < self.groups.len() { at } else { at - 1 };
        let right = self.remove_group(left + 1);
        self.groups[left].append(right);
        if self.groups[left].chunks.len() >= GROUP_MAX {
            let half = self.groups[left].chunks.len() / 2;
            let rest = self.groups[left].split_off(half);
            self.insert_group(left + 1, rest);
        }
        self.refresh(left);
    }

    /// Where an owner is, or would be inserted.
    pub(super) fn place_of(&self, owners: &Owners, owner: Owner) -> Place {
        let score = owners.score(owner);
        let compare = |slot: Slot| {
            score.cmp(&slot.score).then_with(|| {
                if slot.owner == owner { Ordering::Equal } else { owners.compare_ties(slot.owner, owner) }
            })
        };
        self.place(|slot| compare(slot) != Ordering::Greater, |slot| compare(slot) == Ordering::Less)
    }

    /// Number of entries with a better score or sub-score.
    pub(super) fn better_than(&self, owners: &Owners, key: Key) -> u64 {
        let is_better = |slot: Slot| {
            slot.score > key.score || (slot.score == key.score && owners.key(slot.owner).sub > key.sub)
        };
        self.place(is_better, is_better).position
    }

    /// The chunk is the last one whose first entry `reaches` the target; the place in it is behind all that are before
    /// the target.
    fn place(&self, reaches: impl Fn(Slot) -> bool, is_before: impl Fn(Slot) -> bool) -> Place {
        let last = |firsts: &[Slot]| firsts.partition_point(|slot| reaches(*slot)).saturating_sub(1);
        let group = last(&self.firsts);
        let Some(found) = self.groups.get(group) else {
            return Place { group: 0, chunk: 0, at: 0, position: 0 };
        };
        let chunk = last(&found.firsts);
        let at = found.chunks[chunk].search(is_before);
        let groups: u64 = self.lens[..group].iter().map(|len| u64::from(*len)).sum();
        let chunks: u32 = found.lens[..chunk].iter().map(|len| u32::from(*len)).sum();
        Place { group, chunk, at, position: groups + u64::from(chunks) + at as u64 }
    }

    /// The entry before a place: its score and its owner.
    pub(super) fn before(&self, place: Place) -> Option<(i64, Owner)> {
        let group = self.groups.get(place.group)?;
        let (chunk, at) = match (place.at.checked_sub(1), place.chunk.checked_sub(1)) {
            (Some(at), _) => (group.chunks.get(place.chunk)?, at),
            (None, Some(chunk)) => (group.chunks.get(chunk)?, usize::from(group.lens[chunk]) - 1),
            (None, None) => {
                let chunk = self.groups.get(place.group.checked_sub(1)?)?.chunks.last()?;
                (chunk, chunk.len() - 1)
            }
        };
        Some((*chunk.scores.get(at)?, *chunk.owners.get(at)?))
    }

    /// The owners from a position on, which begins with 0.
    pub(super) fn walk(&self, from: u64) -> impl Iterator<Item = Owner> {
        let mut left = from;
        let mut group = 0;
        while let Some(len) = self.lens.get(group).filter(|len| u64::from(**len) <= left) {
            left -= u64::from(*len);
            group += 1;
        }
        let mut chunk = 0;
        if let Some(group) = self.groups.get(group) {
            while let Some(len) = group.lens.get(chunk).filter(|len| u64::from(**len) <= left) {
                left -= u64::from(*len);
                chunk += 1;
            }
        }
        let skipped = usize::try_from(left).unwrap_or(usize::MAX);
        let groups = self.groups.get(group..).unwrap_or_default();
        let rest = groups
            .iter()
            .enumerate()
            .flat_map(move |(number, group)| group.chunks.iter().skip(if number == 0 { chunk } else { 0 }));
        rest.flat_map(|chunk| chunk.owners.iter().copied()).skip(skipped)
    }
}

fn len32(group: &Group) -> u32 {
    u32::try_from(group.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
