//! Where things are in a cluster: which node answers for a key, and where a room opens.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// How much busier than another node a node is before it redirects a new room, in thousandths of a core's time. The
/// loads that two nodes know of each other are of different moments: without a margin each redirects to the other.
pub const REDIRECT_MARGIN_PERMILLE: u16 = 150;

/// Returns the node that answers for `key`; `None` without nodes. Every node that knows the same serving nodes gets
/// the same answer, in whatever order it names them.
///
/// This is rendezvous hashing: the node whose hash with the key is highest. When a node comes, keys move to it alone;
/// when a node goes, its keys alone move. A key begins with the name of what it is for, so that equal names of
/// different things are not all at one node.
pub fn home<'a>(key: &[u8], serving: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let seed = xxh3_64(key);
    serving.into_iter().max_by_key(|node| (xxh3_64_with_seed(node.as_bytes(), seed), *node))
}

/// Another node that takes new rooms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenNode {
    /// Where its players are sent.
    pub address: String,
    /// How busy it was lately: thousandths of its cores' time.
    pub load_permille: u16,
}

/// Returns the node that a new room goes to; `None` for the node that is asked. `own_load_permille` is how busy that
/// one is, `None` if it takes no new rooms. `others` are the nodes that serve and whose build can have the room.
/// `draw` returns numbers uniform over 32 bits.
///
/// The less busy of two drawn nodes is nearly as good as the least busy of all, and nodes that all know the same load
/// do not all choose the same node.
pub fn opens_at(
    own_load_permille: Option<u16>,
    others: &[OpenNode],
    mut draw: impl FnMut() -> u32,
) -> Option<&OpenNode> {
    let first = drawn(others.len(), &mut draw)?;
    let second = drawn(others.len() - 1, &mut draw).map(|at| if at < first { at } else { at + 1 });
    let two = [Some(first), second].into_iter().flatten().map(|at| &others[at]);
    let other = two.min_by_key(|node| node.load_permille)?;
    let is_busier =
        |own: u16| u32::from(own) > u32::from(other.load_permille) + u32::from(REDIRECT_MARGIN_PERMILLE);
    own_load_permille.is_none_or(is_busier).then_some(other)
}

/// Draws a number below `count`; `None` if there is none.
fn drawn(count: usize, draw: &mut impl FnMut() -> u32) -> Option<usize> {
    // Nodes are few: the bias of the product is far below what the loads' age makes of the choice.
    let at = (u64::from(draw()) * count as u64) >> 32;
    (count > 0).then(|| usize::try_from(at).expect("it is below a usize"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const KEYS: u32 = 4_096;

    fn keys() -> impl Iterator<Item = Vec<u8>> {
        (0..KEYS).map(|key| format!("bucket {key}").into_bytes())
    }

    /// Names as pods, machines and people have them.
    fn names() -> impl Strategy<Value = BTreeSet<String>> {
        let pods = (0..20_u8).prop_map(|number| format!("parlor-{number}"));
        proptest::collection::btree_set(prop_oneof![pods, "[a-z0-9-]{1,63}"], 1..12)
    }

    fn homes(nodes: &BTreeSet<String>) -> Vec<String> {
        let home = |key: Vec<u8>| home(&key, nodes.iter().map(String::as_str)).map(str::to_owned);
        keys().map(|key| home(key).expect("there is a node")).collect()
    }

    proptest! {
        #[test]
        fn each_node_has_its_share_of_the_keys(nodes in names()) {
            let mut counts: BTreeMap<String, f64> = nodes.iter().map(|node| (node.clone(), 0.0)).collect();
            for home in homes(&nodes) {
                *counts.get_mut(&home).expect("a home is one of the nodes") += 1.0;
            }
            let share = f64::from(KEYS) / nodes.len() as f64;
            // Six standard deviations of a fair draw.
            let limit = 6.0 * share.sqrt();
            prop_assert!(counts.values().all(|count| (count - share).abs() < limit), "{counts:?}");
        }

        #[test]
        fn only_the_keys_of_a_node_that_comes_or_goes_move(nodes in names(), which in any::<prop::sample::Index>()) {
            let gone = nodes.iter().nth(which.index(nodes.len())).expect("an index is within").clone();
            let rest: BTreeSet<String> = nodes.iter().filter(|node| **node != gone).cloned().collect();
            prop_assume!(!rest.is_empty());
            for (with, without) in homes(&nodes).into_iter().zip(homes(&rest)) {
                prop_assert!(with == without || with == gone, "from {with} to {without} without {gone}");
            }
        }

        #[test]
        fn the_order_of_the_nodes_does_not_matter(nodes in names()) {
            let backwards: Vec<&str> = nodes.iter().rev().map(String::as_str).collect();
            for (key, there) in keys().zip(homes(&nodes)).take(64) {
                prop_assert_eq!(home(&key, backwards.iter().copied()), Some(there.as_str()));
            }
        }

        /// Two nodes whose views are at most half of the margin apart agree which of them is the busier one.
        #[test]
        fn two_nodes_never_redirect_a_room_to_each_other(
            a in 0..1_000_u16, b in 0..1_000_u16, late in 0..REDIRECT_MARGIN_PERMILLE / 2, draw in any::<u32>(),
        ) {
            let other = |load_permille| [OpenNode { address: String::new(), load_permille }];
            let at_a = opens_at(Some(a), &other(b.saturating_sub(late)), || draw).is_some();
            let at_b = opens_at(Some(b), &other(a.saturating_sub(late)), || draw).is_some();
            prop_assert!(!(at_a && at_b));
        }
    }

    #[test]
    fn no_node_answers_where_there_is_none() {
        assert_eq!(home(b"bucket 1", []), None);
        assert_eq!(opens_at(None, &[], || 7), None);
    }

    fn node(address: &str, load_permille: u16) -> OpenNode {
        OpenNode { address: address.to_owned(), load_permille }
    }

    #[test]
    fn a_room_goes_to_the_less_busy_of_two_that_are_drawn() {
        let others = [node("a", 900), node("b", 300), node("c", 0)];
        let mut draws = [0, 0].into_iter();
        let at = opens_at(Some(1_000), &others, || draws.next().expect("it draws twice"));
        assert_eq!(at.map(|node| node.address.as_str()), Some("b"));
    }

    #[test]
    fn a_room_stays_unless_another_node_is_clearly_less_busy() {
        let others = [node("a", 300)];
        assert_eq!(opens_at(Some(300 + REDIRECT_MARGIN_PERMILLE), &others, || 0), None);
        assert_eq!(opens_at(Some(301 + REDIRECT_MARGIN_PERMILLE), &others, || 0), Some(&others[0]));
        assert_eq!(opens_at(None, &[node("a", 1_000)], || 0), Some(&node("a", 1_000)));
    }

    #[test]
    fn rooms_spread_over_nodes_that_were_equally_busy() {
        let mut loads = [0_u16; 5];
        let mut state = 1_u64;
        for _ in 0..500 {
            let others: Vec<OpenNode> =
                loads.iter().enumerate().map(|(at, load)| node(&at.to_string(), *load)).collect();
            let chosen = opens_at(None, &others, || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                u32::try_from(state >> 32).expect("it is half of a u64")
            });
            loads[chosen.expect("the asked node takes none").address.parse::<usize>().expect("a number")] +=
                1;
        }
        assert!(loads.iter().all(|load| (90..=110).contains(load)), "{loads:?}");
    }
}
