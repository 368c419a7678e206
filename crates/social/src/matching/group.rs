//! A group for a ticket: others who go with it and with each other, of a number that all accept.

use super::queue::Queue;
use super::teams::split;
use super::ticket::{Ticket, go_together, reach};
use crate::limits::{CANDIDATES_MAX, NODES_MAX};
use core::time::Duration;

/// A group that was found, in teams.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group<N> {
    /// Its tickets, the one that was tried first.
    pub(super) tickets: Vec<N>,
    /// The team of each.
    pub(super) teams: Vec<usize>,
}

/// What a search for a group looks at.
pub(super) struct Trial<'a, N> {
    queue: &'a Queue,
    now: Duration,
    /// Those that go with the tried one, the best first; the tried one is the first of all.
    near: Vec<(N, &'a Ticket)>,
    chosen: Vec<usize>,
    nodes: u32,
}

impl<'a, N: Copy> Trial<'a, N> {
    /// A trial of a ticket with others that go with it: the best [`CANDIDATES_MAX`] of them.
    pub(super) fn new(
        queue: &'a Queue,
        tried: (N, &'a Ticket),
        mut near: Vec<(N, &'a Ticket)>,
        now: Duration,
    ) -> Self {
        near.sort_by_cached_key(|(_, other)| penalty(queue, tried.1, other, now));
        near.truncate(CANDIDATES_MAX);
        near.insert(0, tried);
        Trial { queue, now, near, chosen: vec![0], nodes: NODES_MAX }
    }

    /// Searches a group: of the largest number first. A number below the queue's largest needs a ticket in the group
    /// that has waited long enough. Also returns how many steps it took.
    pub(super) fn find(mut self) -> (Option<Group<N>>, u32) {
        let all: usize = self.near.iter().map(|(_, ticket)| ticket.members.len()).sum();
        let (min, max) = (usize::from(self.queue.players.min), usize::from(self.queue.players.max));
        let has_waited = self.near.iter().any(|(_, ticket)| self.has_waited(ticket));
        for count in (min..=max.min(all)).rev() {
            if !self.queue.players.admits(count)
                || !count.is_multiple_of(usize::from(self.queue.teams.max(1)))
                || !self.tried().players.admits(count)
                || count < max && !has_waited
            {
                continue;
            }
            let size = self.tried().members.len();
            if let Some(teams) = self.fill(1, size, count) {
                let tickets =
                    self.chosen.iter().filter_map(|at| self.near.get(*at).map(|(no, _)| *no)).collect();
                return (Some(Group { tickets, teams }), NODES_MAX - self.nodes);
            }
            self.chosen.truncate(1);
        }
        (None, NODES_MAX - self.nodes)
    }

    fn tried(&self) -> &'a Ticket {
        self.near[0].1
    }

    fn has_waited(&self, ticket: &Ticket) -> bool {
        ticket.age(self.now) >= Duration::from_millis(self.queue.fill_ms.into())
    }

    /// Adds tickets from `at` on until there are `count` players. Gives the teams.
    fn fill(&mut self, at: usize, size: usize, count: usize) -> Option<Vec<usize>> {
        if size == count {
            return self.complete(count);
        }
        for next in at..self.near.len() {
            if self.nodes == 0 {
                return None;
            }
            self.nodes -= 1;
            let ticket = self.near[next].1;
            let fits = size + ticket.members.len() <= count
                && ticket.players.admits(count)
                && self
                    .chosen
                    .iter()
                    .skip(1)
                    .all(|chosen| go_together(self.queue, self.near[*chosen].1, ticket, self.now));
            if !fits {
                continue;
            }
            self.chosen.push(next);
            if let Some(teams) = self.fill(next + 1, size + ticket.members.len(), count) {
                return Some(teams);
            }
            self.chosen.pop();
        }
        None
    }

    fn complete(&self, count: usize) -> Option<Vec<usize>> {
        let mut chosen = self.chosen.iter().map(|at| self.near[*at].1);
        if count < usize::from(self.queue.players.max)
            && !chosen.clone().any(|ticket| self.has_waited(ticket))
        {
            return None;
        }
        let teams = usize::from(self.queue.teams);
        if teams < 2 {
            return Some(vec![0; self.chosen.len()]);
        }
        let party = |ticket: &Ticket| {
            let skill = ticket.members.iter().map(|member| member.skill).fold(0, i64::saturating_add);
            (ticket.members.len(), skill)
        };
        let parties: Vec<(usize, i64)> = chosen.by_ref().map(party).collect();
        split(&parties, teams, count / teams)
    }
}

/// How bad another ticket is for the tried one: far in skill, or with long round trips; waiting makes it better.
fn penalty(queue: &Queue, tried: &Ticket, other: &Ticket, now: Duration) -> (i64, Duration) {
    let apart = i64::try_from(tried.skill().abs_diff(other.skill())).unwrap_or(i64::MAX / 4_000);
    let reach = reach(queue, tried, other, now).unwrap_or(1_000).max(1);
    let fill = i64::from(queue.fill_ms.max(1));
    let age = i64::try_from(other.age(now).as_millis()).unwrap_or(i64::MAX).min(fill);
    let far = apart.saturating_mul(1_000) / reach;
    let penalty = far - 250 * age / fill + 2 * i64::from(other.worst_rtt(queue));
    (penalty, other.since)
}
