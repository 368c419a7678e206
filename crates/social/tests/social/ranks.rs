//! Ranks against a sorted list.

use parlor_social::{Full, Key, Loading, Ranks, Standing};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The same in plain lines: all entries, sorted anew for each question.
#[derive(Default)]
struct Model(BTreeMap<String, Key>);

/// An owner with its key, rank and position.
type Row = (String, Key, u64, u64);

impl Model {
    fn rows(&self) -> Vec<Row> {
        let mut all: Vec<(&String, &Key)> = self.0.iter().collect();
        all.sort_by_key(|(owner, key)| (Reverse(key.score), Reverse(key.sub), key.at_ms, (*owner).clone()));
        let better = |key: &Key| {
            all.iter().filter(|(_, other)| (other.score, other.sub) > (key.score, key.sub)).count() as u64
        };
        let row = |(at, (owner, key)): (usize, &(&String, &Key))| {
            ((*owner).clone(), **key, better(key) + 1, at as u64 + 1)
        };
        all.iter().enumerate().map(row).collect()
    }
}

fn row(standing: &Standing<'_>) -> Row {
    (standing.owner.to_owned(), standing.key, standing.rank, standing.position)
}

/// All answers of the ranks are those of the model.
fn compare(ranks: &Ranks, model: &Model) {
    let rows = model.rows();
    assert_eq!(ranks.len(), rows.len());
    let page = |from: u64, count| ranks.page(from, count).iter().map(row).collect::<Vec<_>>();
    assert_eq!(page(1, rows.len() + 1), rows);
    for (at, expected) in rows.iter().enumerate() {
        let owner = expected.0.as_str();
        assert_eq!(ranks.key(owner), Some(expected.1));
        assert_eq!(row(&ranks.standing(owner).unwrap()), *expected);
        assert_eq!(page(at as u64 + 1, 3), rows[at..rows.len().min(at + 3)]);
        for count in [1, 2, 5] {
            let from = at.saturating_sub(count / 2).min(rows.len().saturating_sub(count));
            let around = ranks.around(owner, count).unwrap();
            let around: Vec<Row> = around.iter().map(row).collect();
            assert_eq!(around, rows[from..rows.len().min(from + count)], "around {at}, {count}");
            assert!(around.contains(expected));
        }
    }
    assert_eq!(page(rows.len() as u64 + 1, 3), []);
    let every_second: Vec<Row> = rows.iter().step_by(2).cloned().collect();
    let owners = every_second.iter().rev().map(|row| row.0.as_str());
    let of: Vec<Row> = ranks.of(owners.chain(["nobody"])).iter().map(row).collect();
    assert_eq!(of, every_second);
    for nobody in ["nobody", ""] {
        assert!(ranks.standing(nobody).is_none() && ranks.around(nobody, 3).is_none());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Key),
    Remove(u8),
}

/// Few owners and fewer scores, so that there are many ties.
fn step() -> impl Strategy<Value = Step> {
    let key = (-3_i64..4, 0_i64..2, 0_u64..3).prop_map(|(score, sub, at_ms)| Key { score, sub, at_ms });
    prop_oneof![4 => (any::<u8>(), key).prop_map(|(owner, key)| Step::Put(owner, key)),
        1 => any::<u8>().prop_map(Step::Remove)]
}

/// Ids of several lengths, so that places of removed ones are used by others.
fn owner(number: u8) -> String {
    format!("p{}{number}", "x".repeat(usize::from(number % 3)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn t3_ranks_are_those_of_a_sorted_list(steps in prop::collection::vec(step(), 0..120)) {
        let (mut ranks, mut model) = (Ranks::new(), Model::default());
        for step in steps {
            match step {
                Step::Put(number, key) => {
                    let before = model.0.insert(owner(number), key);
                    prop_assert_eq!(ranks.put(&owner(number), key), Ok(before));
                }
                Step::Remove(number) => {
                    prop_assert_eq!(ranks.remove(&owner(number)), model.0.remove(&owner(number)));
                }
            }
        }
        compare(&ranks, &model);
        let mut loading = Loading::default();
        for (owner, key) in model.0.iter().rev() {
            // What comes twice counts as it came last.
            loading.add(owner, Key::default()).unwrap();
            loading.add(owner, *key).unwrap();
        }
        compare(&loading.finish(), &model);
    }
}

/// Ranks of many entries: a board that is parted into many tables, chunks and groups. Its questions are samples.
#[test]
fn t3_ranks_of_many_entries_are_those_of_a_sorted_list() {
    const ENTRIES: usize = 30_000;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut loading, mut all) = (Loading::default(), BTreeMap::new());
    for number in 0..ENTRIES {
        let key = Key { score: i64::try_from(draw(5_000)).unwrap(), sub: 0, at_ms: draw(10) };
        all.insert(format!("player-{number}"), key);
        loading.add(&format!("player-{number}"), key).unwrap();
    }
    let mut ranks = loading.finish();
    for _ in 0..60_000 {
        let owner = format!("player-{}", draw(ENTRIES as u64 + 10_000));
        if draw(4) == 0 {
            assert_eq!(ranks.remove(&owner), all.remove(&owner));
        } else {
            let key = Key { score: i64::try_from(draw(5_000)).unwrap(), sub: 0, at_ms: draw(10) };
            assert_eq!(ranks.put(&owner, key), Ok(all.insert(owner, key)));
        }
    }
    let mut sorted: Vec<(&String, &Key)> = all.iter().collect();
    sorted.sort_by_key(|(owner, key)| (Reverse(key.score), key.at_ms, (*owner).clone()));
    let mut rank = 1;
    for (at, (owner, key)) in sorted.iter().enumerate() {
        if at > 0 && sorted[at - 1].1.score != key.score {
            rank = at as u64 + 1;
        }
        let standing = ranks.standing(owner).unwrap();
        assert_eq!(row(&standing), ((*owner).clone(), **key, rank, at as u64 + 1));
    }
    let page = ranks.page(20_000, 100);
    assert!(page.iter().zip(&sorted[19_999..]).all(|(standing, (owner, _))| standing.owner == *owner));
    assert_eq!(page.len(), 100);
}

#[test]
fn an_id_that_is_too_long_for_a_board_is_refused_and_changes_nothing() {
    let mut ranks = Ranks::new();
    assert_eq!(ranks.put(&"x".repeat(256), Key::default()), Err(Full));
    assert_eq!(ranks.put(&"x".repeat(255), Key::default()), Ok(None));
    assert_eq!((ranks.len(), ranks.page(1, 9).len()), (1, 1));
}
