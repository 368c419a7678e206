//! Properties of the map and the set, against those of the standard library.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

impl<K: Ord, V> OrderedMap<K, V> {
    fn check(&self) {
        assert!(self.chunks.iter().all(|chunk| (1..=CHUNK_MAX).contains(&chunk.len())));
        assert!(self.keys().is_sorted_by(|a, b| a < b));
        for pair in self.chunks.windows(2) {
            assert!(pair[0].len() + pair[1].len() > JOINED_MAX, "two neighbours are small");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u8),
    Remove(u16),
    GetOrInsert(u16, u8),
    Ascend(u16),
    RemoveFrom(u16, u16),
    Retain(u8),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0u16..700;
    prop_oneof![
        8 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        4 => key().prop_map(Step::Remove),
        2 => (key(), any::<u8>()).prop_map(|(key, value)| Step::GetOrInsert(key, value)),
        2 => (1u16..200).prop_map(Step::Ascend),
        2 => (key(), 1u16..200).prop_map(|(from, count)| Step::RemoveFrom(from, count)),
        1 => (1u8..8).prop_map(Step::Retain),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn it_does_what_a_btreemap_does(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut map, mut model) = (OrderedMap::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Insert(key, value) => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                Step::Remove(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                Step::GetOrInsert(key, value) => {
                    let found = map.get_or_insert_with(key, || value);
                    *found = found.wrapping_add(1);
                    let expected = model.entry(key).or_insert(value);
                    *expected = expected.wrapping_add(1);
                }
                Step::Ascend(count) => {
                    let from = model.last_key_value().map_or(0, |(last, _)| last + 1);
                    for key in from..from.saturating_add(count) {
                        prop_assert_eq!(map.insert(key, 7), model.insert(key, 7));
                    }
                }
                Step::RemoveFrom(from, count) => {
                    for key in from..from + count {
                        prop_assert_eq!(map.remove(&key), model.remove(&key));
                    }
                }
                Step::Retain(nth) => {
                    let keep = |key: &u16, value: &mut u8| {
                        *value ^= 1;
                        key.is_multiple_of(u16::from(nth))
                    };
                    map.retain(keep);
                    model.retain(keep);
                }
                Step::Clear => {
                    map.clear();
                    model.clear();
                }
            }
            map.check();
            prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
            prop_assert!(map.iter().eq(&model) && map.keys().eq(model.keys()) && map.values().eq(model.values()));
            prop_assert_eq!(map.last(), model.last_key_value());
            for key in (0..720).step_by(13) {
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.contains_key(&key), model.contains_key(&key));
                prop_assert_eq!(map.get_key_value(&key), model.get_key_value(&key));
                prop_assert_eq!(map.get_mut(&key), model.get_mut(&key));
            }
            prop_assert_eq!(&map, &model.iter().map(|(key, value)| (*key, *value)).collect());
        }
        prop_assert!(map.iter_mut().eq(model.iter_mut()) && map.values_mut().eq(model.values_mut()));
        prop_assert!(map.clone().into_keys().eq(model.clone().into_keys()));
        prop_assert!(map.clone().into_values().eq(model.clone().into_values()));
        prop_assert!(map.into_iter().eq(model));
    }

    #[test]
    fn a_set_does_what_a_btreeset_does(keys in proptest::collection::vec((any::<bool>(), 0u8..200), 0..400)) {
        let (mut set, mut model) = (OrderedSet::new(), BTreeSet::new());
        for (insert, key) in keys {
            if insert {
                prop_assert_eq!(set.insert(key), model.insert(key));
            } else {
                prop_assert_eq!(set.remove(&key), model.remove(&key));
            }
            set.0.check();
            prop_assert!(set.iter().eq(&model));
            prop_assert_eq!((set.first(), set.last()), (model.first(), model.last()));
            prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!(set.contains(&key), model.contains(&key));
        }
        prop_assert_eq!(&set, &model.iter().copied().collect());
        prop_assert!(set.into_iter().eq(model));
    }
}

/// Whatever the order of the keys, few chunks hold them, so that what moves at an insertion is small.
#[test]
fn a_large_map_has_few_chunks() {
    const LEN: u32 = 65_536;
    // An odd factor makes each number occur once.
    let orders: [&dyn Fn(u32) -> u32; 3] =
        [&|at| at, &|at| LEN - 1 - at, &|at| at.wrapping_mul(40_503) % LEN];
    for (order, most) in orders.into_iter().zip([1, 2, 2]) {
        let mut map: OrderedMap<_, _> = (0..LEN).map(|at| (order(at), at)).collect();
        map.check();
        assert_eq!(map.len(), 65_536);
        assert!(map.chunks.len() <= most * 65_536 / CHUNK_MAX);
        // Of each chunk one entry is left: they come together.
        map.retain(|key, _| key % 64 == 0);
        map.check();
        (0..LEN).filter(|key| key % 128 == 0).for_each(|key| assert!(map.remove(&key).is_some()));
        map.check();
        assert_eq!(map.len(), 512);
    }
}

#[test]
fn text_is_found_by_a_slice_of_it() {
    let mut map: OrderedMap<String, u8> = [("b".to_owned(), 1), ("a".to_owned(), 2)].into_iter().collect();
    assert_eq!((map.get("a"), map.get("c")), (Some(&2), None));
    assert_eq!(map.remove("b"), Some(1));
    assert_eq!(format!("{map:?}"), "{\"a\": 2}");
}
