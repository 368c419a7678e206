//! What the levels of the tree say of one another. Answers are tested from outside: `tests/social/ranks.rs`.

use super::super::{Key, Ranks};
use super::*;

/// Each level counts what is below it, and no node is outside its bounds.
fn check(ranks: &Ranks) {
    let Ranks { owners, tree } = ranks;
    let mut all = 0;
    for (at, group) in tree.groups.iter().enumerate() {
        assert!(group.chunks.len() < GROUP_MAX, "a group has {} chunks", group.chunks.len());
        assert!(tree.groups.len() == 1 || group.chunks.len() >= GROUP_LOW / 2);
        for (at, chunk) in group.chunks.iter().enumerate() {
            assert!((1..CHUNK_MAX).contains(&chunk.len()), "a chunk has {}", chunk.len());
            assert!(chunk.scores.capacity() <= CHUNK_MAX);
            assert_eq!((usize::from(group.lens[at]), group.firsts[at].owner), (chunk.len(), chunk.owners[0]));
            assert_eq!(group.firsts[at].score, chunk.scores[0]);
            all += chunk.len();
        }
        assert_eq!(tree.lens[at] as usize, group.len());
        assert_eq!(tree.firsts[at].owner, group.firsts[0].owner);
    }
    assert_eq!((all, tree.walk(0).count()), (owners.len(), owners.len()));
    let order: Vec<Owner> = tree.walk(0).collect();
    for pair in order.windows(2) {
        let by_score = owners.score(pair[1]).cmp(&owners.score(pair[0]));
        assert_eq!(by_score.then_with(|| owners.compare_ties(pair[0], pair[1])), Ordering::Less);
    }
}

fn key(score: i64) -> Key {
    Key { score, sub: 0, at_ms: 1 }
}

#[test]
fn levels_count_what_is_below_them_while_entries_come_move_and_go() {
    const ENTRIES: i64 = 120_000;
    let mut ranks = Ranks::new();
    for number in 0..ENTRIES {
        ranks.put(&format!("p{number}"), key(number.wrapping_mul(7_919) % 50_021)).unwrap();
    }
    check(&ranks);
    assert!(ranks.tree.groups.len() > 1, "one group has all: nothing is tested");
    let bytes = ranks.bytes();
    // All move to one end, and back.
    for round in [1_000_000, 0] {
        for number in 0..ENTRIES {
            ranks.put(&format!("p{number}"), key(round + number)).unwrap();
        }
        check(&ranks);
    }
    assert!(ranks.bytes() < bytes + bytes / 4, "{} bytes were {bytes}", ranks.bytes());
    for number in 0..ENTRIES - 1_000 {
        assert!(ranks.remove(&format!("p{number}")).is_some());
    }
    check(&ranks);
    assert_eq!((ranks.len(), ranks.tree.groups.len()), (1_000, 1));
    for number in 0..ENTRIES {
        ranks.remove(&format!("p{number}"));
    }
    check(&ranks);
    assert!(ranks.is_empty() && ranks.tree.groups.is_empty());
}

#[test]
fn a_merge_that_fills_a_chunk_splits_it() {
    let mut ranks = Ranks::new();
    // Equal scores in the order of their ids: 256 entries in the first chunk, then more in the second.
    for number in 0..767 {
        ranks.put(&format!("p{number:04}"), key(-number)).unwrap();
    }
    for number in 0..256 {
        ranks.remove(&format!("p{number:04}"));
        check(&ranks);
    }
}
