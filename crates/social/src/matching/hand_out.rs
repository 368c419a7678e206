//! What becomes of a group: its members confirm, one of them opens the room, and all learn where it is.

use super::ticket::{Ended, Match, Seeker, TicketState};
use super::{No, Pool, WAITS, queue};
use crate::lobby::{Entrance, PlayerKey};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// Time in which a member opens the room, before another is asked.
const OPEN_TIME: Duration = Duration::from_secs(15);
/// Members who are asked to open it.
const OPENERS: usize = 3;

/// A group without a room.
#[derive(Debug)]
pub(super) struct Proposal {
    tickets: Vec<No>,
    teams: Vec<usize>,
    /// Members in the order in which they are asked to open the room.
    openers: Vec<PlayerKey>,
    confirmed: BTreeSet<PlayerKey>,
    /// When its present step is over.
    until: Duration,
    /// How many members were asked to open it; 0 while members confirm.
    asked: usize,
}

/// Why a member's word is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandOutRefused {
    /// There is no such ticket of this player.
    #[error("there is no such search")]
    NoSuchTicket,
    /// Nobody asks this player for it now.
    #[error("you are not asked for this now: read the search again")]
    NotAsked,
}

impl Pool {
    pub(super) fn hand_out(&mut self, tickets: Vec<No>, teams: Vec<usize>, now: Duration) {
        self.numbers += 1;
        let id = self.numbers;
        let confirm_s = self.queue.confirm_s;
        let asked = usize::from(confirm_s == 0);
        let until = now + if asked == 0 { Duration::from_secs(confirm_s.into()) } else { OPEN_TIME };
        let mut proposal =
            Proposal { openers: Vec::new(), confirmed: BTreeSet::new(), tickets, teams, until, asked };
        proposal.openers = self.openers(&proposal.tickets);
        for no in &proposal.tickets {
            if let Some(held) = self.held.get_mut(no) {
                held.proposal = Some(id);
            }
        }
        self.proposal_ends.insert((until, id));
        self.proposals.insert(id, proposal);
        self.tell_step(id);
    }

    /// Members of tickets by their round trips; of equal ones who has waited longest.
    fn openers(&self, tickets: &[No]) -> Vec<PlayerKey> {
        let members = tickets.iter().filter_map(|no| self.held.get(no)).flat_map(|held| {
            let since = held.ticket.since;
            held.ticket
                .members
                .iter()
                .map(move |member| (member.rtt_ms.unwrap_or(u32::MAX), since, &member.player))
        });
        let mut members: Vec<_> = members.collect();
        members.sort();
        members.into_iter().map(|(.., player)| Arc::clone(player)).collect()
    }

    /// Tells all members of a proposal what is asked now.
    fn tell_step(&mut self, id: u64) {
        let Some(proposal) = self.proposals.get(&id) else { return };
        let until = proposal.until;
        for no in proposal.tickets.clone() {
            let Some(proposal) = self.proposals.get(&id) else { return };
            let Some(held) = self.held.get_mut(&no) else { continue };
            held.state = match proposal.openers.get(proposal.asked.wrapping_sub(1)) {
                Some(opener) => TicketState::Opening { opener: Arc::clone(opener), until },
                None => {
                    let own = held.ticket.members.iter().map(|member| &member.player);
                    let confirmed =
                        own.filter(|player| proposal.confirmed.contains(*player)).cloned().collect();
                    TicketState::Confirm { until, confirmed }
                }
            };
            self.changed.push_back(Arc::clone(&held.ticket.id));
        }
    }

    /// A member confirms, or declines: then its ticket ends, and the others go on waiting.
    ///
    /// # Errors
    /// [`HandOutRefused`].
    pub fn confirm(
        &mut self,
        ticket: &str,
        player: &str,
        accepts: bool,
        now: Duration,
    ) -> Result<(), HandOutRefused> {
        let (no, key, proposal) = self.asked(ticket, player)?;
        let is_asked =
            matches!(self.held.get(&no).map(|held| &held.state), Some(TicketState::Confirm { .. }));
        if !is_asked {
            return Err(HandOutRefused::NotAsked);
        }
        if !accepts {
            self.end(no, Ended::Declined, now);
            self.drop_proposal(proposal, now);
            return Ok(());
        }
        let Some(held) = self.proposals.get_mut(&proposal) else { return Err(HandOutRefused::NotAsked) };
        held.confirmed.insert(key);
        if held.openers.iter().all(|player| held.confirmed.contains(player)) {
            self.next_opener(proposal, now);
        } else {
            self.tell_step(proposal);
        }
        Ok(())
    }

    /// The member who was asked has opened the room, and all learn where it is.
    ///
    /// # Errors
    /// [`HandOutRefused`].
    pub fn opened(
        &mut self,
        ticket: &str,
        player: &str,
        room: Entrance,
        now: Duration,
    ) -> Result<(), HandOutRefused> {
        self.must_be_opener(ticket, player)?;
        let (_, _, id) = self.asked(ticket, player)?;
        let Some(proposal) = self.proposals.remove(&id) else { return Err(HandOutRefused::NotAsked) };
        self.proposal_ends.remove(&(proposal.until, id));
        let mut teams: BTreeMap<usize, Vec<Seeker>> = BTreeMap::new();
        for (no, team) in proposal.tickets.iter().zip(&proposal.teams) {
            let members = self.held.get(no).into_iter().flat_map(|held| held.ticket.members.iter().cloned());
            teams.entry(*team).or_default().extend(members);
        }
        let found = Arc::new(Match { room, teams: teams.into_values().collect(), is_backfill: false });
        for no in proposal.tickets {
            self.has_found(no, &found, now);
        }
        Ok(())
    }

    /// Whether this player is asked to open the room.
    ///
    /// # Errors
    /// [`HandOutRefused`].
    pub fn must_be_opener(&self, ticket: &str, player: &str) -> Result<(), HandOutRefused> {
        let (no, ..) = self.asked(ticket, player)?;
        match self.held.get(&no).map(|held| &held.state) {
            Some(TicketState::Opening { opener, .. }) if &**opener == player => Ok(()),
            _ => Err(HandOutRefused::NotAsked),
        }
    }

    /// A match was found, and this player could not get in: its ticket waits again, with its age.
    ///
    /// # Errors
    /// [`HandOutRefused`].
    pub fn again(&mut self, ticket: &str, player: &str, now: Duration) -> Result<(), HandOutRefused> {
        let no = self.by_id.get(ticket).copied().ok_or(HandOutRefused::NoSuchTicket)?;
        let held = self.held.get(&no).ok_or(HandOutRefused::NoSuchTicket)?;
        let mut members = held.ticket.members.iter().map(|member| &*member.player);
        if !members.clone().any(|member| member == player) {
            return Err(HandOutRefused::NoSuchTicket);
        }
        let is_free = members.all(|member| !self.of.contains_key(member));
        if !matches!(held.state, TicketState::Found(_)) || !is_free {
            return Err(HandOutRefused::NotAsked);
        }
        self.claim_members(no);
        self.put_back(no, now);
        Ok(())
    }

    pub(super) fn has_found(&mut self, no: No, found: &Arc<Match>, now: Duration) {
        let Some(held) = self.held.get(&no) else { return };
        let wait = queue::millis(held.ticket.age(now));
        self.found += held.ticket.members.len() as u64;
        if self.waits.len() >= WAITS {
            self.waits.pop_front();
        }
        self.waits.push_back(wait);
        self.close(no, TicketState::Found(Arc::clone(found)), now);
    }

    fn asked(&self, ticket: &str, player: &str) -> Result<(No, PlayerKey, u64), HandOutRefused> {
        let no = self.by_id.get(ticket).copied().ok_or(HandOutRefused::NoSuchTicket)?;
        let held = self.held.get(&no).ok_or(HandOutRefused::NoSuchTicket)?;
        let member = held.ticket.members.iter().find(|member| &*member.player == player);
        let member = member.ok_or(HandOutRefused::NoSuchTicket)?;
        let proposal = held.proposal.ok_or(HandOutRefused::NotAsked)?;
        Ok((no, Arc::clone(&member.player), proposal))
    }

    fn next_opener(&mut self, id: u64, now: Duration) {
        let Some(proposal) = self.proposals.get_mut(&id) else { return };
        self.proposal_ends.remove(&(proposal.until, id));
        proposal.asked += 1;
        if proposal.asked > OPENERS.min(proposal.openers.len()) {
            return self.drop_proposal(id, now);
        }
        proposal.until = now + OPEN_TIME;
        self.proposal_ends.insert((proposal.until, id));
        self.tell_step(id);
    }

    /// Nothing comes of a proposal: those of its tickets that are not over wait again, with their age.
    pub(super) fn drop_proposal(&mut self, id: u64, now: Duration) {
        let Some(proposal) = self.proposals.remove(&id) else { return };
        self.proposal_ends.remove(&(proposal.until, id));
        for no in proposal.tickets {
            if self.held.get(&no).is_some_and(|held| held.proposal == Some(id)) {
                self.put_back(no, now);
            }
        }
    }

    fn put_back(&mut self, no: No, now: Duration) {
        let Some(held) = self.held.get_mut(&no) else { return };
        held.state = TicketState::Waiting;
        held.proposal = None;
        held.looked = None;
        self.ends.remove(&(held.ends, no));
        let life = Duration::from_secs(self.queue.life_s.into());
        held.ends = (held.ticket.since + life).max(now + Duration::from_secs(1));
        self.ends.insert((held.ends, no));
        self.changed.push_back(Arc::clone(&held.ticket.id));
        self.list(no, now);
    }

    /// The first proposal whose time is over goes on, or ends. Returns how many tickets it has.
    pub(super) fn handle_proposal(&mut self, now: Duration) -> u32 {
        let Some((_, id)) = self.proposal_ends.pop_first() else { return 0 };
        let Some(proposal) = self.proposals.get(&id) else { return 0 };
        let tickets = proposal.tickets.clone();
        let count = u32::try_from(tickets.len()).unwrap_or(u32::MAX);
        if proposal.asked > 0 {
            self.next_opener(id, now);
            return count;
        }
        // Who was silent is out.
        let confirmed = proposal.confirmed.clone();
        for no in tickets {
            let is_silent = self.held.get(&no).is_some_and(|held| {
                held.ticket.members.iter().any(|member| !confirmed.contains(&member.player))
            });
            if is_silent {
                self.end(no, Ended::Declined, now);
            }
        }
        self.drop_proposal(id, now);
        count
    }
}
