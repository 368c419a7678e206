//! The matchmaker: tickets of one queue become groups.
//!
//! A [`Pool`] is one queue of one realm. Time is an argument, and what decides are whole numbers: the same inputs
//! give the same matches on every machine. A ticket is tried some time after it came, and again each time its limits
//! have grown; due tries are done oldest ticket first, each with bounded work.

mod group;
mod hand_out;
mod near;
mod offers;
mod queue;
mod teams;
mod ticket;

pub use hand_out::HandOutRefused;
pub use offers::{Offer, OfferRefused};
pub use queue::{Backfill, OfferedBy, Players, Queue, RttRule, SkillRule, WidenBy};
pub use ticket::{Ended, Match, Seeker, Ticket, TicketId, TicketState, go_together};

use crate::limits::{CANDIDATES_MAX, LOOKED_MAX, TICKETS_MAX};
use crate::lobby::PlayerKey;
use crate::properties::{Properties, Property};
use core::time::Duration;
use group::{Group, Trial};
use hand_out::Proposal;
use near::{Looked, Near};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use thiserror::Error;

/// Time after which a ticket is tried again, in seconds of its age; then once in the last step.
const STEPS_S: [u64; 10] = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
/// Time for which a ticket that is over can be read.
const KEPT: Duration = Duration::from_secs(60);
/// Time for which a ticket waits for a member without a connection.
const GONE_AFTER: Duration = Duration::from_secs(30);
/// Finished searches whose times are remembered.
const WAITS: usize = 64;

/// A ticket's number: an older one has a smaller one.
type No = u64;
/// Values of the properties that a queue wants alike.
type Partition = Vec<Option<Property>>;

/// Why a ticket is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EnterRefused {
    /// A member looks in this queue already.
    #[error("a player looks in this queue once")]
    AlreadyInQueue,
    /// The party has more members than a match has players, or than a team has.
    #[error("the party is too large for this queue")]
    PartyTooLarge,
    /// No number of players that the ticket wants is one of the queue.
    #[error("this queue has no match of so many players")]
    Players,
    /// The queue has as many tickets as it may.
    #[error("too many search in this queue: try again later")]
    Full,
}

/// A ticket of the pool.
#[derive(Debug)]
struct Held {
    ticket: Ticket,
    partition: Partition,
    state: TicketState,
    /// The proposal that it is part of.
    proposal: Option<u64>,
    /// When it is tried next; `None` while it does not wait.
    due: Option<Duration>,
    /// How far the last try has looked without coming to the end.
    looked: Option<Looked>,
    /// Members without a connection, and until when it waits for them.
    away: BTreeMap<PlayerKey, Duration>,
    /// When it ends, or when it is forgotten.
    ends: Duration,
}

/// One queue of one realm.
#[derive(Debug)]
pub struct Pool {
    queue: Queue,
    held: BTreeMap<No, Held>,
    by_id: BTreeMap<TicketId, No>,
    /// Tickets that are not over, by member.
    of: BTreeMap<PlayerKey, No>,
    /// Tickets that are not over, by party.
    of_party: BTreeMap<Arc<str>, No>,
    near: BTreeMap<Partition, Near>,
    /// Players who wait.
    waiting: usize,
    due: BTreeSet<(Duration, No)>,
    /// Tickets that were due: they are tried next, the oldest first.
    ready: BTreeSet<No>,
    ends: BTreeSet<(Duration, No)>,
    proposals: BTreeMap<u64, Proposal>,
    proposal_ends: BTreeSet<(Duration, u64)>,
    offers: offers::Offers,
    /// Tickets whose state has changed.
    changed: VecDeque<TicketId>,
    numbers: u64,
    /// How long the newest matches have waited, in milliseconds.
    waits: VecDeque<u64>,
    found: u64,
}

/// Figures of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// Players who wait.
    pub waiting: usize,
    /// Players who have found a match.
    pub found: u64,
    /// The median of the last waits, in milliseconds; `None` for too few.
    pub wait_ms: Option<u64>,
    /// Matches with free seats.
    pub offers: usize,
}

impl Pool {
    /// A pool without tickets.
    pub fn new(queue: Queue) -> Self {
        Pool {
            queue,
            held: BTreeMap::new(),
            by_id: BTreeMap::new(),
            of: BTreeMap::new(),
            of_party: BTreeMap::new(),
            near: BTreeMap::new(),
            waiting: 0,
            due: BTreeSet::new(),
            ready: BTreeSet::new(),
            ends: BTreeSet::new(),
            proposals: BTreeMap::new(),
            proposal_ends: BTreeSet::new(),
            offers: offers::Offers::default(),
            changed: VecDeque::new(),
            numbers: 0,
            waits: VecDeque::new(),
            found: 0,
        }
    }

    /// The definition.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Changes the definition. Tickets go on under the new one.
    pub fn redefine(&mut self, queue: Queue, now: Duration) {
        self.queue = queue;
        let waiting: Vec<No> = self.near.values().flat_map(Near::numbers).collect();
        for no in waiting {
            self.unlist(no);
            if let Some(held) = self.held.get_mut(&no) {
                held.partition = partition(&self.queue, &held.ticket.properties);
            }
            self.list(no, now);
        }
    }

    /// Takes a ticket.
    ///
    /// # Errors
    /// [`EnterRefused`].
    pub fn enter(&mut self, ticket: Ticket, now: Duration) -> Result<(), EnterRefused> {
        if ticket.members.iter().any(|member| self.of.contains_key(&member.player)) {
            return Err(EnterRefused::AlreadyInQueue);
        }
        let Players { max, .. } = self.queue.players;
        let team = if self.queue.teams > 1 { max / self.queue.teams } else { max };
        if ticket.members.is_empty() || ticket.members.len() > usize::from(team) {
            return Err(EnterRefused::PartyTooLarge);
        }
        let fits =
            |count: u16| self.queue.players.admits(count.into()) && ticket.players.admits(count.into());
        if !(self.queue.players.min..=max).any(fits) {
            return Err(EnterRefused::Players);
        }
        if self.held.len() >= TICKETS_MAX {
            return Err(EnterRefused::Full);
        }
        self.numbers += 1;
        let no = self.numbers;
        let ends = ticket.since + Duration::from_secs(self.queue.life_s.into());
        self.by_id.insert(Arc::clone(&ticket.id), no);
        self.ends.insert((ends, no));
        self.held.insert(
            no,
            Held {
                partition: partition(&self.queue, &ticket.properties),
                ticket,
                state: TicketState::Waiting,
                proposal: None,
                due: None,
                looked: None,
                away: BTreeMap::new(),
                ends,
            },
        );
        self.claim_members(no);
        self.list(no, now);
        Ok(())
    }

    /// A ticket with its state.
    pub fn ticket(&self, id: &str) -> Option<(&Ticket, &TicketState)> {
        let held = self.held.get(self.by_id.get(id)?)?;
        Some((&held.ticket, &held.state))
    }

    /// The ticket of a player that is not over.
    pub fn ticket_of(&self, player: &str) -> Option<&TicketId> {
        self.held.get(self.of.get(player)?).map(|held| &held.ticket.id)
    }

    /// The players whose tickets are not over.
    pub fn players(&self) -> impl Iterator<Item = &PlayerKey> {
        self.of.keys()
    }

    /// The ticket of a party that is not over.
    pub fn ticket_of_party(&self, party: &str) -> Option<&TicketId> {
        self.held.get(self.of_party.get(party)?).map(|held| &held.ticket.id)
    }

    /// Ends a ticket that still waits or is being handed out. One that is over, or has found a match, stays as it is.
    pub fn leave(&mut self, id: &str, why: Ended, now: Duration) {
        let Some(no) = self.by_id.get(id).copied() else { return };
        let Some(held) = self.held.get(&no) else { return };
        if matches!(held.state, TicketState::Found(_) | TicketState::Ended(_)) {
            return;
        }
        let proposal = held.proposal;
        self.end(no, why, now);
        if let Some(proposal) = proposal {
            self.drop_proposal(proposal, now);
        }
    }

    /// Ends all tickets that are not over, and all offers.
    pub fn end_all(&mut self, why: Ended, now: Duration) {
        let ids: Vec<TicketId> = self.by_id.keys().cloned().collect();
        for id in ids {
            self.leave(&id, why, now);
        }
        self.offers = offers::Offers::default();
    }

    /// A player has a connection, or none. A ticket without one of its members ends after a short time.
    pub fn set_here(&mut self, player: &str, is_here: bool, now: Duration) {
        let Some(no) = self.of.get(player).copied() else { return };
        let Some(held) = self.held.get_mut(&no) else { return };
        if is_here {
            held.away.remove(player);
        } else if !held.away.contains_key(player) {
            held.away.insert(player.into(), now + GONE_AFTER);
            // The end comes earlier than it would; it is looked at then.
            self.ends.insert((now + GONE_AFTER, no));
        }
    }

    /// The next ticket whose state has changed.
    pub fn poll_changed(&mut self) -> Option<TicketId> {
        self.changed.pop_front()
    }

    /// When [`work`](Self::work) has something to do.
    pub fn next_timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let first = |set: &BTreeSet<(Duration, u64)>| set.first().map(|(at, _)| *at);
        [first(&self.due), first(&self.ends), first(&self.proposal_ends), self.offers.next_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether there are neither tickets nor offers.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.offers.is_empty()
    }

    /// Does what is due, in at most `budget` steps and those of one try more. Most steps are tickets that are looked
    /// at. Returns what is left of the budget, or `None` if there is more to do.
    pub fn work(&mut self, budget: u32, now: Duration) -> Option<u32> {
        let mut left = budget;
        while self.next_timeout().is_some_and(|at| at <= now) {
            if left == 0 {
                return None;
            }
            left = left.saturating_sub(self.work_once(now).max(1));
        }
        Some(left)
    }

    /// Does the first of what is due. Returns how many steps that took.
    fn work_once(&mut self, now: Duration) -> u32 {
        let is_due = |set: &BTreeSet<(Duration, u64)>| set.first().is_some_and(|(at, _)| *at <= now);
        if is_due(&self.ends) {
            self.handle_end(now);
        } else if is_due(&self.proposal_ends) {
            return self.handle_proposal(now);
        } else if self.offers.next_timeout().is_some_and(|at| at <= now) {
            self.offers.handle_end(now);
        } else if is_due(&self.due) {
            self.ready.extend(self.due.pop_first().map(|(_, no)| no));
        } else if let Some(no) = self.ready.pop_first() {
            return self.attempt(no, now);
        }
        1
    }

    /// Figures.
    pub fn stats(&self) -> PoolStats {
        let mut waits: Vec<u64> = self.waits.iter().copied().collect();
        waits.sort_unstable();
        PoolStats {
            waiting: self.waiting,
            found: self.found,
            wait_ms: (waits.len() >= 20).then(|| waits.get(waits.len() / 2).copied()).flatten(),
            offers: self.offers.len(),
        }
    }

    /// The members of a ticket look for no other match.
    fn claim_members(&mut self, no: No) {
        let Some(Held { ticket, .. }) = self.held.get(&no) else { return };
        for member in &ticket.members {
            self.of.insert(Arc::clone(&member.player), no);
        }
        self.of_party.extend(ticket.party.clone().map(|party| (party, no)));
    }

    /// Puts a waiting ticket where others find it.
    fn list(&mut self, no: No, now: Duration) {
        let Some(held) = self.held.get_mut(&no) else { return };
        self.near.entry(held.partition.clone()).or_default().insert(&held.ticket, no);
        self.waiting += held.ticket.members.len();
        let due = now.max(held.ticket.since + Duration::from_millis(self.queue.gather_ms.into()));
        self.plan(no, due);
    }

    /// Takes a ticket away from where others find it.
    fn unlist(&mut self, no: No) {
        self.unplan(no);
        let Some(held) = self.held.get_mut(&no) else { return };
        if held.due.take().is_none() {
            return;
        }
        self.waiting -= held.ticket.members.len();
        if let Some(near) = self.near.get_mut(&held.partition) {
            near.remove(&held.ticket, no);
            if near.is_empty() {
                self.near.remove(&held.partition);
            }
        }
    }

    /// Plans the next try of a ticket that waits.
    fn plan(&mut self, no: No, due: Duration) {
        self.unplan(no);
        if let Some(held) = self.held.get_mut(&no) {
            held.due = Some(due);
            self.due.insert((due, no));
        }
    }

    fn unplan(&mut self, no: No) {
        if let Some(due) = self.held.get(&no).and_then(|held| held.due)
            && !self.due.remove(&(due, no))
        {
            self.ready.remove(&no);
        }
    }

    /// Tries a ticket. Returns how many steps that took.
    fn attempt(&mut self, no: No, now: Duration) -> u32 {
        let Some(held) = self.held.get(&no) else { return 0 };
        let accepts = held.ticket.accepts_rtt(&self.queue, now);
        let (mut steps, mut looked) = (0, None);
        if accepts && self.queue.backfill == Backfill::First && self.fill_offer(no, now, &mut steps) {
            return steps;
        }
        if accepts {
            let (near, seen, rest) = self.candidates(no, now);
            steps = steps.saturating_add(seen);
            looked = rest;
            let trial = self.held.get(&no).map(|held| Trial::new(&self.queue, (no, &held.ticket), near, now));
            let (group, nodes) = trial.map_or((None, 0), Trial::find);
            steps = steps.saturating_add(nodes);
            if let Some(group) = group {
                self.propose(group, now);
                return steps;
            }
            if self.queue.backfill == Backfill::Last && self.fill_offer(no, now, &mut steps) {
                return steps;
            }
        }
        self.try_again(no, looked, now);
        steps
    }

    /// Others that go with a ticket, by their skill outwards from its own, or from where the last try has stopped.
    /// Also how many were looked at, and how far, if there are more.
    fn candidates(&self, no: No, now: Duration) -> (Vec<(No, &Ticket)>, u32, Option<Looked>) {
        let none = (Vec::new(), 0, None);
        let Some(held) = self.held.get(&no) else { return none };
        let Some(near) = self.near.get(&held.partition) else { return none };
        let (ticket, kinds) = (&held.ticket, near.kinds());
        let farthest = self.queue.farthest(self.queue.window(ticket.age(now), ticket.doubt()));
        let mut walk = near.walk(ticket, no, held.looked);
        let (mut found, mut seen) = (Vec::new(), 0);
        while let Some(apart) = walk.apart() {
            if farthest.is_some_and(|farthest| apart > farthest.unsigned_abs()) {
                break;
            }
            if seen >= LOOKED_MAX || found.len() >= CANDIDATES_MAX {
                return (found, kinds + seen, Some(walk.looked()));
            }
            seen += 1;
            let other = walk.next().and_then(|other| Some((other, &self.held.get(&other)?.ticket)));
            found.extend(other.filter(|(_, other)| {
                other.accepts_rtt(&self.queue, now) && go_together(&self.queue, ticket, other, now)
            }));
        }
        (found, kinds + seen, None)
    }

    /// Plans the next try: when its limits have grown. It goes on where this one has stopped.
    fn try_again(&mut self, no: No, looked: Option<Looked>, now: Duration) {
        let Some(held) = self.held.get_mut(&no) else { return };
        held.looked = looked;
        let age = held.ticket.age(now);
        let fill = Duration::from_millis(self.queue.fill_ms.into());
        let any = [
            self.queue.skill.as_ref().and_then(|skill| skill.any_after_s),
            self.queue.rtt.as_ref().and_then(|rtt| rtt.any_after_s),
        ];
        let steps = STEPS_S.into_iter().map(Duration::from_secs).chain([fill]);
        let steps = steps.chain(any.into_iter().flatten().map(|after| Duration::from_secs(after.into())));
        let next = steps.filter(|step| *step > age).min();
        let due = held.ticket.since + next.unwrap_or(age + Duration::from_secs(30));
        self.plan(no, due);
    }

    fn propose(&mut self, Group { tickets, teams }: Group<No>, now: Duration) {
        for no in &tickets {
            self.unlist(*no);
        }
        self.hand_out(tickets, teams, now);
    }

    /// A ticket is over. It can be read for a while.
    fn end(&mut self, no: No, why: Ended, now: Duration) {
        self.unlist(no);
        self.close(no, TicketState::Ended(why), now);
    }

    fn close(&mut self, no: No, state: TicketState, now: Duration) {
        let Some(held) = self.held.get_mut(&no) else { return };
        held.state = state;
        held.proposal = None;
        held.away.clear();
        self.ends.remove(&(held.ends, no));
        held.ends = now + KEPT;
        self.ends.insert((held.ends, no));
        for member in &held.ticket.members {
            self.of.remove(&member.player);
        }
        if let Some(party) = &held.ticket.party {
            self.of_party.remove(party);
        }
        self.changed.push_back(Arc::clone(&held.ticket.id));
    }

    /// Looks at the first ticket whose time is over, or was said to be.
    fn handle_end(&mut self, now: Duration) {
        let Some((at, no)) = self.ends.pop_first() else { return };
        let Some(held) = self.held.get(&no) else { return };
        match held.state {
            TicketState::Found(_) | TicketState::Ended(_) if held.ends <= now => {
                if let Some(held) = self.held.remove(&no) {
                    self.by_id.remove(&held.ticket.id);
                }
            }
            TicketState::Found(_) | TicketState::Ended(_) => {}
            _ if held.away.values().any(|until| *until <= now) => {
                let id = Arc::clone(&held.ticket.id);
                self.leave(&id, Ended::Gone, now);
            }
            TicketState::Waiting if held.ends <= now => self.end(no, Ended::Expired, now),
            // It is being handed out, and ends right after that if nothing comes of it.
            _ if held.ends <= now => {
                self.ends.insert((at + Duration::from_secs(1), no));
            }
            _ => {}
        }
    }
}

fn partition(queue: &Queue, properties: &Properties) -> Partition {
    queue.same.iter().map(|name| properties.get(name).cloned()).collect()
}
