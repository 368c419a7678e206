//! Paths between members of whom none is the authority: each two that want all paths are introduced.

use parlor_proto::{MemberId, PathId};
use std::collections::{BTreeMap, BTreeSet};

/// The pairs of members that were introduced.
#[derive(Debug, Default)]
pub(super) struct Mesh {
    /// By both members, the lower one first.
    pairs: BTreeMap<(MemberId, MemberId), Pair>,
    /// Members that named their addresses since they were last introduced.
    fresh: BTreeSet<MemberId>,
}

/// Two members with a path, or an attempt at one.
#[derive(Debug)]
struct Pair {
    /// The latest path that was offered.
    path: PathId,
    /// The ends that said it is open.
    up: BTreeSet<MemberId>,
}

impl Mesh {
    /// Notes that a member named its addresses.
    pub(super) fn named(&mut self, member: MemberId) {
        self.fresh.insert(member);
    }

    /// Forgets a member.
    pub(super) fn remove(&mut self, member: MemberId) {
        self.fresh.remove(&member);
        self.pairs.retain(|(low, high), _| *low != member && *high != member);
    }

    /// Forgets all pairs: each member names its addresses as before.
    pub(super) fn restart(&mut self) {
        let members = self.pairs.keys().flat_map(|(low, high)| [*low, *high]);
        self.fresh.extend(members);
        self.pairs.clear();
    }

    /// Whether two members, the lower one first, are to be introduced.
    pub(super) fn is_due(&self, pair: (MemberId, MemberId)) -> bool {
        let is_up = self.pairs.get(&pair).is_some_and(|pair| !pair.up.is_empty());
        !is_up && (self.fresh.contains(&pair.0) || self.fresh.contains(&pair.1))
    }

    /// Notes a path that was offered to two members.
    pub(super) fn offered(&mut self, pair: (MemberId, MemberId), path: PathId) {
        self.pairs.insert(pair, Pair { path, up: BTreeSet::new() });
    }

    /// Notes that a member was introduced to all others.
    pub(super) fn introduced(&mut self, member: MemberId) {
        self.fresh.remove(&member);
    }

    /// Notes what a member says of a path. Returns the other end if that is news.
    pub(super) fn set_up(&mut self, from: MemberId, id: PathId, is_up: bool) -> Option<MemberId> {
        let is_of = |(low, high): &(MemberId, MemberId)| *low == from || *high == from;
        let (&(low, high), pair) =
            self.pairs.iter_mut().find(|(ends, pair)| is_of(ends) && pair.path == id)?;
        let is_news = if is_up { pair.up.insert(from) } else { pair.up.remove(&from) };
        is_news.then_some(if from == low { high } else { low })
    }
}
