//! Offers: free seats of matches that run, and of dedicated hosts without players.

use super::ticket::{Match, Seeker};
use super::{Held, No, Partition, Pool, partition};
use crate::limits::{LOOKED_MAX, OFFERS_MAX};
use crate::lobby::{Entrance, PlayerKey};
use crate::properties::{Properties, admits};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// Time for which an offer holds without being renewed.
const OFFER_LIFE: Duration = Duration::from_secs(60);
/// Time for which seats are kept for players who were sent.
const RESERVED: Duration = Duration::from_secs(30);

/// Free seats of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its id: whoever offers again with it renews the offer.
    pub id: String,
    /// Who offers: a player's account, or `None` for the game's own service.
    pub by: Option<PlayerKey>,
    /// The room.
    pub room: Entrance,
    /// Free seats.
    pub seats: u16,
    /// The mean skill of its players, if there are some.
    pub skill: Option<i64>,
    /// What it says of itself: as tickets do.
    pub properties: Properties,
}

/// Why an offer is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OfferRefused {
    /// Another has it.
    #[error("another one made this offer")]
    NotYours,
    /// There are too many.
    #[error("too many offers wait in this queue")]
    Full,
}

#[derive(Debug)]
struct HeldOffer {
    offer: Offer,
    partition: Partition,
    /// Seats that are kept for players who were sent, and until when.
    reserved: BTreeMap<PlayerKey, Duration>,
    until: Duration,
}

/// The offers of a pool.
#[derive(Debug, Default)]
pub(super) struct Offers {
    held: BTreeMap<String, HeldOffer>,
    ends: BTreeSet<(Duration, String)>,
}

impl HeldOffer {
    fn free(&self) -> usize {
        usize::from(self.offer.seats).saturating_sub(self.reserved.len())
    }
}

impl Offers {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Looks at the first offer whose time is over, or was said to be.
    pub(super) fn handle_end(&mut self, now: Duration) {
        let Some((_, id)) = self.ends.pop_first() else { return };
        let Some(held) = self.held.get_mut(&id) else { return };
        held.reserved.retain(|_, until| *until > now);
        if held.until <= now {
            self.held.remove(&id);
        }
    }
}

impl Pool {
    /// Takes an offer, or renews it: seats that were kept for players who were sent are free again, because the offer
    /// counts those who came. It holds for a minute.
    ///
    /// # Errors
    /// [`OfferRefused`].
    pub fn offer(&mut self, offer: Offer, now: Duration) -> Result<(), OfferRefused> {
        let partition = partition(&self.queue, &offer.properties);
        let offers = &mut self.offers;
        match offers.held.get(&offer.id) {
            Some(held) if held.offer.by != offer.by => return Err(OfferRefused::NotYours),
            None if offers.held.len() >= OFFERS_MAX => return Err(OfferRefused::Full),
            Some(_) | None => {}
        }
        let until = now + OFFER_LIFE;
        offers.ends.insert((until, offer.id.clone()));
        let held = HeldOffer { partition, reserved: BTreeMap::new(), until, offer };
        offers.held.insert(held.offer.id.clone(), held);
        // Who waits longest looks at it first.
        let waits = |(no, held): (&No, &Held)| held.due.map(|_| *no);
        let oldest = self.held.iter().take(LOOKED_MAX as usize).find_map(waits);
        if let Some(no) = oldest {
            self.plan(no, now);
        }
        Ok(())
    }

    /// The room of an offer.
    pub fn offered_room(&self, id: &str) -> Option<&Offer> {
        self.offers.held.get(id).map(|held| &held.offer)
    }

    /// Takes an offer back. One that there is not is taken back already.
    ///
    /// # Errors
    /// [`OfferRefused::NotYours`].
    pub fn withdraw(&mut self, id: &str, by: Option<&str>) -> Result<(), OfferRefused> {
        match self.offers.held.get(id) {
            Some(held) if by.is_some() && held.offer.by.as_deref() != by => Err(OfferRefused::NotYours),
            Some(_) | None => {
                self.offers.held.remove(id);
                Ok(())
            }
        }
    }

    /// Sends a ticket to a match that has seats for it: the one with fewest free seats. Returns whether there was one.
    /// Each offer that it looks at is a step.
    pub(super) fn fill_offer(&mut self, no: No, now: Duration, steps: &mut u32) -> bool {
        *steps = steps.saturating_add(u32::try_from(self.offers.len()).unwrap_or(u32::MAX));
        let Some(held) = self.held.get(&no) else { return false };
        let ticket = &held.ticket;
        let window = self.queue.window(ticket.age(now), ticket.doubt());
        let fits = |(_, offer): &(&String, &HeldOffer)| {
            let is_near = match (offer.offer.skill, window) {
                (Some(skill), Some(window)) => skill.abs_diff(ticket.skill()) <= window.unsigned_abs(),
                _ => true,
            };
            offer.free() >= ticket.members.len()
                && offer.partition == held.partition
                && admits(&ticket.filter, &offer.offer.properties)
                && is_near
        };
        let found = self.offers.held.iter().filter(fits).min_by_key(|(_, offer)| offer.free());
        let Some(id) = found.map(|(id, _)| id.clone()) else { return false };
        let members: Vec<Seeker> = ticket.members.clone();
        let Some(offer) = self.offers.held.get_mut(&id) else { return false };
        let until = now + RESERVED;
        for member in &members {
            offer.reserved.insert(Arc::clone(&member.player), until);
        }
        self.offers.ends.insert((until, id));
        let room = offer.offer.room.clone();
        let found = Arc::new(Match { room, teams: vec![members], is_backfill: true });
        self.unlist(no);
        self.has_found(no, &found, now);
        true
    }
}
