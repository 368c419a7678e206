//! Waiting tickets by skill, and the walk from one of them outwards.
//!
//! Tickets of one partition that say and want the same are of one kind, and have a list of their own. A try decides
//! once for each kind whether the filters fit, and walks only the lists that do. Tickets that nobody fits cost others
//! nothing.

use super::No;
use super::ticket::{Ticket, filters_fit};
use crate::properties::{Filter, Properties};
use core::cmp::Reverse;
use core::ops::Bound;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Maximum number of kinds of a partition that have a list. Tickets of further ones share the list of the rest.
const KINDS_MAX: usize = 64;

/// Where a ticket stands: its skill, and its number.
pub(super) type Place = (i64, No);
/// The lowest and the highest place that a walk has passed.
pub(super) type Looked = (Place, Place);

/// The waiting tickets of a partition.
#[derive(Debug, Default)]
pub(super) struct Near {
    kinds: Vec<Kind>,
    rest: BTreeSet<Place>,
}

#[derive(Debug)]
struct Kind {
    properties: Arc<Properties>,
    filter: Arc<Filter>,
    places: BTreeSet<Place>,
}

impl Kind {
    fn is_of(&self, ticket: &Ticket) -> bool {
        self.properties == ticket.properties && self.filter == ticket.filter
    }
}

impl Near {
    pub(super) fn insert(&mut self, ticket: &Ticket, no: No) {
        let place = (ticket.skill(), no);
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.is_of(ticket)) {
            kind.places.insert(place);
        } else if self.kinds.len() < KINDS_MAX {
            let (properties, filter) = (Arc::clone(&ticket.properties), Arc::clone(&ticket.filter));
            self.kinds.push(Kind { properties, filter, places: BTreeSet::from([place]) });
        } else {
            self.rest.insert(place);
        }
    }

    pub(super) fn remove(&mut self, ticket: &Ticket, no: No) {
        let place = (ticket.skill(), no);
        if self.rest.remove(&place) {
            return;
        }
        if let Some(at) = self.kinds.iter().position(|kind| kind.is_of(ticket))
            && let Some(kind) = self.kinds.get_mut(at)
        {
            kind.places.remove(&place);
            if kind.places.is_empty() {
                self.kinds.swap_remove(at);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.rest.is_empty()
    }

    /// The tickets' numbers, in no order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = No> {
        self.kinds.iter().flat_map(|kind| &kind.places).chain(&self.rest).map(|(_, no)| *no)
    }

    /// Number of kinds, which a walk decides on before it begins.
    pub(super) fn kinds(&self) -> u32 {
        u32::try_from(self.kinds.len()).unwrap_or(u32::MAX)
    }

    /// Walks from a ticket outwards, the nearest place first, and past all that was `looked` at. Kinds whose filters do
    /// not fit are left out; of the rest each ticket comes.
    pub(super) fn walk(&self, ticket: &Ticket, no: No, looked: Option<Looked>) -> Walk<'_> {
        let own = ticket.skill();
        let (low, high) = looked.unwrap_or(((own, no), (own, no)));
        let fits = |kind: &&Kind| {
            filters_fit((&ticket.filter, &ticket.properties), (&kind.filter, &kind.properties))
        };
        let lists =
            || self.kinds.iter().filter(fits).map(|kind| &kind.places).chain(core::iter::once(&self.rest));
        let below = lists().map(|places| Box::new(places.range(..low).rev().copied()) as Places<'_, Place>);
        let above = lists().map(|places| {
            let above = places.range((Bound::Excluded(high), Bound::Unbounded));
            Box::new(above.copied().map(Reverse)) as Places<'_, Reverse<Place>>
        });
        Walk { own, low, high, below: Merged::of(below), above: Merged::of(above) }
    }
}

type Places<'a, P> = Box<dyn Iterator<Item = P> + 'a>;

/// A walk outwards.
pub(super) struct Walk<'a> {
    own: i64,
    low: Place,
    high: Place,
    below: Merged<Places<'a, Place>>,
    above: Merged<Places<'a, Reverse<Place>>>,
}

impl Walk<'_> {
    /// How far it has come.
    pub(super) fn looked(&self) -> Looked {
        (self.low, self.high)
    }

    /// How far the next place is from the ticket in skill.
    pub(super) fn apart(&self) -> Option<u64> {
        let (below, above) = self.ahead();
        [below, above].into_iter().flatten().min()
    }

    fn ahead(&self) -> (Option<u64>, Option<u64>) {
        let below = self.below.peek().map(|(skill, _)| skill.abs_diff(self.own));
        (below, self.above.peek().map(|Reverse((skill, _))| skill.abs_diff(self.own)))
    }
}

impl Iterator for Walk<'_> {
    type Item = No;

    fn next(&mut self) -> Option<No> {
        let is_below = match self.ahead() {
            (Some(below), Some(above)) => below <= above,
            (below, _) => below.is_some(),
        };
        if is_below {
            self.low = self.below.next()?;
            Some(self.low.1)
        } else {
            let Reverse(place) = self.above.next()?;
            self.high = place;
            Some(place.1)
        }
    }
}

/// Merges iterators whose items fall into one whose items fall.
struct Merged<I: Iterator> {
    /// The next item of each that has one.
    heads: BinaryHeap<(I::Item, usize)>,
    lists: Vec<I>,
}

impl<I: Iterator> Merged<I>
where
    I::Item: Ord,
{
    fn of(lists: impl Iterator<Item = I>) -> Self {
        let mut lists: Vec<I> = lists.collect();
        let heads = lists.iter_mut().enumerate().filter_map(|(at, list)| Some((list.next()?, at))).collect();
        Merged { heads, lists }
    }

    fn peek(&self) -> Option<&I::Item> {
        self.heads.peek().map(|(item, _)| item)
    }
}

impl<I: Iterator> Iterator for Merged<I>
where
    I::Item: Ord,
{
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let (item, at) = self.heads.pop()?;
        if let Some(next) = self.lists.get_mut(at).and_then(Iterator::next) {
            self.heads.push((next, at));
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Players, Seeker};
    use core::time::Duration;
    use proptest::prelude::*;

    fn ticket(skill: i64, kind: i64) -> Ticket {
        let seeker = Seeker { player: "ada".into(), name: String::new(), skill, doubt: 0, rtt_ms: None };
        Ticket {
            id: "t".into(),
            members: vec![seeker],
            party: None,
            players: Players::default(),
            properties: Properties::from([("kind".to_owned(), kind.into())]).into(),
            filter: Arc::default(),
            avoid: Arc::default(),
            since: Duration::ZERO,
        }
    }

    proptest! {
        #[test]
        fn n5_a_walk_passes_every_ticket_once_and_the_nearest_first(
            tickets in proptest::collection::vec((-50_i64..50, 0_i64..100), 1..300),
            gone in proptest::collection::vec(any::<proptest::sample::Index>(), 0..100),
            rests in 0_usize..40,
        ) {
            let mut all: Vec<(No, Ticket)> =
                (0..).zip(tickets).map(|(no, (skill, kind))| (no, ticket(skill, kind))).collect();
            let mut near = Near::default();
            for (no, ticket) in &all {
                near.insert(ticket, *no);
            }
            for gone in gone.iter().take(all.len() - 1) {
                let (no, ticket) = all.remove(gone.index(all.len()));
                near.remove(&ticket, no);
            }
            prop_assert!(near.kinds.len() <= KINDS_MAX);
            prop_assert!(near.kinds.iter().all(|kind| !kind.places.is_empty()));
            let (no, own) = &all[0];
            // In two walks, the second of which goes on where the first has stopped.
            let mut first = near.walk(own, *no, None);
            let mut passed: Vec<No> = first.by_ref().take(rests).collect();
            passed.extend(near.walk(own, *no, Some(first.looked())));
            let apart = |no: &No| {
                all.iter().find(|(other, _)| other == no).map(|(_, other)| other.skill().abs_diff(own.skill()))
            };
            let distances: Vec<_> = passed.iter().map(apart).collect();
            prop_assert!(distances.is_sorted() && distances.iter().all(Option::is_some));
            passed.sort_unstable();
            let mut others: Vec<No> = all.iter().skip(1).map(|(no, _)| *no).collect();
            others.sort_unstable();
            prop_assert_eq!(passed, others);
        }
    }

    #[test]
    fn n5_kinds_that_do_not_fit_are_not_walked() {
        let wants =
            |kind: i64| Arc::new(Filter::from([("kind".to_owned(), crate::Condition::Is(kind.into()))]));
        let mut near = Near::default();
        for no in 0..1_000 {
            near.insert(&Ticket { filter: wants(7), ..ticket(0, 1) }, no);
        }
        near.insert(&ticket(40, 1), 1_000);
        let own = ticket(0, 1);
        assert_eq!(near.walk(&own, 2_000, None).collect::<Vec<_>>(), [1_000]);
        let picky = Ticket { filter: wants(2), ..ticket(0, 7) };
        assert_eq!(near.walk(&picky, 2_000, None).count(), 0);
    }
}
