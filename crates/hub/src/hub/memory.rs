//! Limits the memory that room state takes: per room, per opening address, and in total (threat 45).
//!
//! The size of a room ([`Room::memory_bytes`](crate::room::Room::memory_bytes)) is counted again whenever it
//! may have grown. Sessions whose seats are kept, and members that may return, count for the address of
//! their member, and have limits of their own (`kept.rs`). A room over its limit loses the member that made it grow, and ends if that does not help.
//! If an address or the total is over its limit, the largest room of the largest address ends, so that small
//! users do not pay for it. New rooms are refused before that point.

use super::part::Part;
use super::{Hub, Seated};
use crate::admission_policy::Origin;
use crate::room;
use parlor_proto::session::Rejection;
use parlor_proto::wire::handshake::{Refusal, RetryAfter};
use parlor_proto::{CloseReason, Instant, MemberId, PeerMisbehaved, RoomId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::time::Duration;

/// Limits for the memory of room state, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateMemory {
    /// Limit of one room.
    pub room: usize,
    /// Limit of all rooms that one address opened. Does not apply to this machine itself.
    pub origin: usize,
    /// Limit of all rooms.
    pub all: usize,
}

impl StateMemory {
    /// Returns limits with this total: a quarter of it per address, and half of that per room.
    pub const fn of(all: usize) -> Self {
        StateMemory { room: all / 8, origin: all / 4, all }
    }

    /// Returns the share of one of `count` hubs. A room's limit never exceeds its hub's limit per address.
    #[must_use]
    pub fn shared_by(self, count: usize) -> Self {
        let origin = self.origin / count.max(1);
        StateMemory { room: self.room.min(origin), origin, all: self.all / count.max(1) }
    }
}

impl Default for StateMemory {
    /// 1 GiB for all rooms.
    fn default() -> Self {
        Self::of(1 << 30)
    }
}

/// The memory that rooms use.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    all: usize,
    /// By the origin that opened them; only origins with rooms have an entry.
    of: FxHashMap<Origin, usize>,
    /// Rooms ended for lack of memory.
    ended: u64,
}

impl Ledger {
    fn change(&mut self, origin: Origin, before: usize, after: usize) {
        self.all = self.all + after - before;
        let of = self.of.entry(origin).or_default();
        *of = *of + after - before;
        if *of == 0 {
            self.of.remove(&origin);
        }
    }

    fn of(&self, origin: Origin) -> usize {
        self.of.get(&origin).copied().unwrap_or(0)
    }

    /// Returns the bytes of all rooms.
    pub(super) fn bytes(&self) -> usize {
        self.all
    }

    /// Returns how many rooms were ended for lack of memory.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }
}

/// Own states may take this fraction (1/n) of a room's limit, to leave the rest to the host.
const OWN_STATES_SHARE: usize = 4;
/// New rooms need this fraction (1/n) of the memory free, so that existing rooms can grow.
const LEFT_SHARE: usize = 4;
/// The retry time for an address whose rooms have used their memory.
const RETRY_AFTER: Duration = Duration::from_secs(30);

const OF_ROOM: &str = "the state of this room takes more memory than one room may";
const OF_MEMBERS: &str =
    "what the members of this room say of themselves takes more memory than it may, and yours most of it";
const OF_ORIGIN: &str = "the rooms that were opened from your network take all the memory that they may";
const OF_ALL: &str = "the rooms of this server take all the memory that it has for them";

impl Hub {
    /// Checks whether there is memory for one more room of an address.
    pub(super) fn has_memory(&self, origin: Origin) -> Result<(), Rejection> {
        let (limits, ledger) = (&self.config.memory, &self.ledger);
        if ledger.all + self.kept_bytes() > limits.all - limits.all / LEFT_SHARE {
            return Err(Rejection::Refused(Refusal::ServerFull));
        }
        let of_origin = ledger.of(origin) + self.kept_bytes_of(origin);
        if origin != Origin::LOCAL && of_origin > limits.origin - limits.origin / LEFT_SHARE {
            return Err(Rejection::RetryAfter(RetryAfter { after: RETRY_AFTER, detail: OF_ORIGIN.into() }));
        }
        Ok(())
    }

    /// Returns the memory of what is kept of members without a connection, in bytes.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.bytes() + self.gone.bytes()
    }

    fn kept_bytes_of(&self, origin: Origin) -> usize {
        self.kept.bytes_of(origin) + self.gone.bytes_of(origin)
    }

    /// Recounts a room that may have grown by a message of `from`, or else by what it stores for its members.
    pub(super) fn weigh(&mut self, id: RoomId, from: Option<MemberId>, now: Instant) {
        let Some((bytes, host)) = self.count(id) else { return };
        let of_room = self.config.memory.room;
        let greediest = self.rooms.get(&id).and_then(|seated| seated.room.most_own_state());
        if let Some((member, of_members)) = greediest
            && of_members > of_room / OWN_STATES_SHARE
        {
            self.expel(id, member, PeerMisbehaved::BadState { detail: OF_MEMBERS.into() }, now);
        } else if bytes > of_room {
            if let Some(member) = from.or(host) {
                self.expel(id, member, PeerMisbehaved::BadState { detail: OF_ROOM.into() }, now);
            }
            if self.count(id).is_some_and(|(bytes, _)| bytes > self.config.memory.room) {
                self.end_for_memory(id, OF_ROOM, now);
            }
        }
        while let Some((id, reason)) = self.surplus(id) {
            self.end_for_memory(id, reason, now);
        }
    }

    /// Recounts a room; returns its size and its host.
    pub(super) fn count(&mut self, id: RoomId) -> Option<(usize, Option<MemberId>)> {
        let Seated { room, part, bytes, opener, .. } = &mut **self.rooms.get_mut(&id)?;
        let (before, host) = (*bytes, room.authority().member());
        let waiting = if let Part::Copy(waiting) = part { waiting.count() } else { 0 };
        *bytes = room.memory_bytes() + waiting;
        let after = *bytes;
        self.ledger.change(*opener, before, after);
        Some((after, host))
    }

    /// Uncounts a room that ended.
    pub(super) fn uncount(&mut self, seated: &Seated) {
        self.ledger.change(seated.opener, seated.bytes, 0);
    }

    /// Returns the room that must end, if an address or the total is over its limit after this room grew.
    fn surplus(&self, grown: RoomId) -> Option<(RoomId, &'static str)> {
        let (limits, ledger) = (&self.config.memory, &self.ledger);
        let opener = self.rooms.get(&grown).map(|seated| seated.opener).filter(|it| *it != Origin::LOCAL);
        let bytes_of = |origin| ledger.of(origin) + self.kept_bytes_of(origin);
        let greedy = opener.filter(|opener| bytes_of(*opener) > limits.origin);
        let (origin, reason) = match greedy {
            Some(origin) => (origin, OF_ORIGIN),
            None if ledger.all + self.kept_bytes() > limits.all => {
                let most = ledger.of.iter().max_by_key(|(origin, bytes)| (**bytes, Reverse(**origin)));
                (*most?.0, OF_ALL)
            }
            None => return None,
        };
        let of_origin = self.rooms.iter().filter(|(_, seated)| seated.opener == origin);
        let largest = of_origin.max_by_key(|(id, seated)| (seated.bytes, Reverse(**id)));
        largest.map(|(id, _)| (*id, reason))
    }

    fn end_for_memory(&mut self, id: RoomId, reason: &str, now: Instant) {
        self.ledger.ended += 1;
        self.tell(id, room::Input::End { reason: CloseReason::RoomEnded { reason: reason.into() } }, now);
        // The room must be gone here; otherwise it would be chosen again and again.
        debug_assert!(!self.rooms.contains_key(&id), "a room that is told to end is gone");
    }
}
