//! An ordered map and set whose code is small.
//!
//! WebAssembly carries the code of each kind of map that a program has. `BTreeMap` takes about 9 kB for a kind, and
//! these maps take 2 kB. They keep entries in sorted vectors of at most 64 entries: a small map is one sorted
//! vector. An insertion or a removal moves at most one such vector and the list of them, so a large map is not slow
//! either, whatever the order in which a peer names its keys.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::ops::Index;

/// Maximum entries of a vector.
const CHUNK_MAX: usize = 64;
/// Two neighbours become one if they have no more entries than this. It is what half a full vector has, so that a split
/// never leaves two to be joined, and an entry that comes and goes does not split and join them each time.
const JOINED_MAX: usize = CHUNK_MAX / 2;

/// Entries in ascending order of their keys.
#[derive(Clone)]
pub struct OrderedMap<K, V> {
    /// Each holds 1 to [`CHUNK_MAX`] entries, and all its keys are below those of the next.
    chunks: Vec<Vec<(K, V)>>,
}

/// Where a key is, or would be.
struct Place {
    chunk: usize,
    at: usize,
    is_here: bool,
}

/// The entries of a map, and a key that is sought among them. It is a trait, because the table of a `dyn Fn`
/// has two functions for each kind of map.
trait Sought {
    /// The length of a chunk.
    fn len(&self, chunk: usize) -> usize;
    /// How a key of the map compares with the one that is sought.
    fn compare(&self, chunk: usize, at: usize) -> Ordering;
}

struct KeyIn<'a, K, V, Q: ?Sized> {
    chunks: &'a [Vec<(K, V)>],
    key: &'a Q,
}

impl<K: Borrow<Q>, V, Q: Ord + ?Sized> Sought for KeyIn<'_, K, V, Q> {
    fn len(&self, chunk: usize) -> usize {
        self.chunks[chunk].len()
    }

    fn compare(&self, chunk: usize, at: usize) -> Ordering {
        self.chunks[chunk][at].0.borrow().cmp(self.key)
    }
}

/// Finds a key's place in a map of so many chunks. It is not generic, so that all maps share it.
fn find(chunks: usize, sought: &dyn Sought) -> Place {
    if chunks == 0 {
        return Place { chunk: 0, at: 0, is_here: false };
    }
    // The chunk whose last key is the first that is not below it; beyond the end, the last chunk.
    let last = |chunk| sought.compare(chunk, sought.len(chunk) - 1);
    let chunk = if chunks == 1 { 0 } else { search(chunks, last).unwrap_or_else(|at| at.min(chunks - 1)) };
    match search(sought.len(chunk), |at| sought.compare(chunk, at)) {
        Ok(at) => Place { chunk, at, is_here: true },
        Err(at) => Place { chunk, at, is_here: false },
    }
}

/// Returns the place in a sorted list whose item at an index compares so with the item sought.
fn search(len: usize, compare: impl Fn(usize) -> Ordering) -> Result<usize, usize> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        match compare(middle) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => high = middle,
        }
    }
    Err(low)
}

impl<K, V> OrderedMap<K, V> {
    /// Creates an empty map. It allocates nothing.
    pub const fn new() -> Self {
        OrderedMap { chunks: Vec::new() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.chunks.clear();
    }

    /// Iterates over the entries in ascending order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { chunks: self.chunks.iter(), entries: [].iter() }
    }

    /// Iterates over the entries in ascending order of their keys; the values can be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        IterMut { chunks: self.chunks.iter_mut(), entries: [].iter_mut() }
    }

    /// Iterates over the keys in ascending order.
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// Iterates over the values in ascending order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Iterates over the values in ascending order of their keys; they can be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Returns the keys in ascending order.
    pub fn into_keys(self) -> impl Iterator<Item = K> {
        self.into_iter().map(|(key, _)| key)
    }

    /// Returns the values in ascending order of their keys.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    /// Returns the entry with the highest key.
    pub fn last(&self) -> Option<(&K, &V)> {
        self.chunks.last()?.last().map(|(key, value)| (key, value))
    }

    /// Keeps only the entries for which `keep` is true. It is asked once for each, in ascending order.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain_mut(|(key, value)| keep(key, value));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        let mut at = 0;
        while at < self.chunks.len() {
            if !self.join(at) {
                at += 1;
            }
        }
    }

    /// Joins a chunk with the next if they are small. Returns whether it did.
    fn join(&mut self, at: usize) -> bool {
        let [chunk, next, ..] = &mut self.chunks[at..] else { return false };
        if chunk.len() + next.len() > JOINED_MAX {
            return false;
        }
        chunk.append(next);
        self.chunks.remove(at + 1);
        true
    }
}

impl<K: Ord, V> OrderedMap<K, V> {
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Place
    where
        K: Borrow<Q>,
    {
        find(self.chunks.len(), &KeyIn { chunks: &self.chunks, key })
    }

    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns a key as the map holds it, and its value.
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key);
        place.is_here.then(|| {
            let (key, value) = &self.chunks[place.chunk][place.at];
            (key, value)
        })
    }

    /// Returns the value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key);
        place.is_here.then(|| &mut self.chunks[place.chunk][place.at].1)
    }

    /// Whether a key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_here
    }

    /// Sets the value of a key, and returns the former one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let place = self.place(&key);
        if place.is_here {
            return Some(core::mem::replace(&mut self.chunks[place.chunk][place.at].1, value));
        }
        self.put(place, key, value);
        None
    }

    /// Returns the value of a key, to be changed. If it has none, it gets what `make` returns.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let mut place = self.place(&key);
        if !place.is_here {
            place = self.put(place, key, make());
        }
        &mut self.chunks[place.chunk][place.at].1
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let Place { chunk, at, is_here } = self.place(key);
        if !is_here {
            return None;
        }
        let (_, value) = self.chunks[chunk].remove(at);
        if self.chunks[chunk].is_empty() {
            self.chunks.remove(chunk);
        } else if !self.join(chunk) && chunk > 0 {
            self.join(chunk - 1);
        }
        Some(value)
    }

    /// Puts an entry at its place, and returns where it is then.
    fn put(&mut self, mut place: Place, key: K, value: V) -> Place {
        let chunks = self.chunks.len();
        if chunks == 0 {
            // Most maps have one.
            self.chunks.reserve_exact(1);
            self.chunks.push(Vec::new());
        }
        let full = &mut self.chunks[place.chunk];
        if full.len() == CHUNK_MAX {
            // Keys that come in ascending order leave full chunks behind.
            let is_end = place.at == CHUNK_MAX && place.chunk + 1 == chunks;
            let middle = if is_end { CHUNK_MAX } else { CHUNK_MAX / 2 };
            let upper = full.split_off(middle);
            self.chunks.insert(place.chunk + 1, upper);
            if place.at > middle || is_end {
                (place.chunk, place.at) = (place.chunk + 1, place.at - middle);
            }
        }
        self.chunks[place.chunk].insert(place.at, (key, value));
        place
    }
}

/// The value of a key that is known to have one.
///
/// # Panics
/// If it has none.
impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for OrderedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the map has this key")
    }
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        OrderedMap::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Two maps with the same entries are equal, whatever their chunks are.
impl<K: PartialEq, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for OrderedMap<K, V> {}

impl<K: Ord, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = OrderedMap::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V> Extend<(K, V)> for OrderedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter { chunks: self.chunks.into_iter(), entries: Vec::new().into_iter() }
    }
}

impl<'a, K, V> IntoIterator for &'a OrderedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An iterator over the entries of an [`OrderedMap`].
pub struct Iter<'a, K, V> {
    chunks: core::slice::Iter<'a, Vec<(K, V)>>,
    entries: core::slice::Iter<'a, (K, V)>,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { chunks: self.chunks.clone(), entries: self.entries.clone() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                return Some((key, value));
            }
            self.entries = self.chunks.next()?.iter();
        }
    }
}

/// It has less code than a `Flatten`, which can also go backwards.
struct IterMut<'a, K, V> {
    chunks: core::slice::IterMut<'a, Vec<(K, V)>>,
    entries: core::slice::IterMut<'a, (K, V)>,
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                return Some((key, value));
            }
            self.entries = self.chunks.next()?.iter_mut();
        }
    }
}

/// An iterator over the entries of an [`OrderedMap`] that takes them out of it.
#[derive(Debug)]
pub struct IntoIter<K, V> {
    chunks: std::vec::IntoIter<Vec<(K, V)>>,
    entries: std::vec::IntoIter<(K, V)>,
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(entry);
            }
            self.entries = self.chunks.next()?.into_iter();
        }
    }
}

/// An iterator over the keys of an [`OrderedMap`] or [`OrderedSet`].
#[derive(Debug)]
pub struct Keys<'a, K, V>(Iter<'a, K, V>);

impl<K, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Keys(self.0.clone())
    }
}

impl<'a, K, V> Iterator for Keys<'a, K, V> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        self.0.next().map(|(key, _)| key)
    }
}

/// Keys in ascending order.
#[derive(Clone, PartialEq, Eq)]
pub struct OrderedSet<K>(OrderedMap<K, ()>);

impl<K> OrderedSet<K> {
    /// Creates an empty set. It allocates nothing.
    pub const fn new() -> Self {
        OrderedSet(OrderedMap::new())
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Iterates over the keys in ascending order.
    pub fn iter(&self) -> Keys<'_, K, ()> {
        self.0.keys()
    }

    /// Returns the lowest key.
    pub fn first(&self) -> Option<&K> {
        self.iter().next()
    }

    /// Returns the highest key.
    pub fn last(&self) -> Option<&K> {
        self.0.last().map(|(key, ())| key)
    }
}

impl<K: Ord> OrderedSet<K> {
    /// Whether it has a key.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Adds a key. Returns whether it is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Removes a key. Returns whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).is_some()
    }
}

impl<K> Default for OrderedSet<K> {
    fn default() -> Self {
        OrderedSet::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for OrderedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<K: Ord> FromIterator<K> for OrderedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = OrderedSet::new();
        set.extend(keys);
        set
    }
}

impl<K: Ord> Extend<K> for OrderedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<K> IntoIterator for OrderedSet<K> {
    type Item = K;
    type IntoIter = core::iter::Map<<OrderedMap<K, ()> as IntoIterator>::IntoIter, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(key, ())| key)
    }
}

impl<'a, K> IntoIterator for &'a OrderedSet<K> {
    type Item = &'a K;
    type IntoIter = Keys<'a, K, ()>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
