//! Spectator delay: a room whose spectators see it later has a delayed copy, which runs its inputs again.
//!
//! Spectators join the copy, so nothing of the present reaches them: neither state nor messages, members or times. The
//! copy is a room of this hub like others. It has no code of its own, and ends as late as everything in it happens, or
//! when its room has ended and nobody watches. What waits for it counts as its memory.

use super::cycle::Timer;
use super::events::{RoomSummary, summary};
use super::part::{Part, Waiting};
use super::{Hub, Seated};
use crate::admission_policy::Origin;
use crate::room::{self, MemberSummary, Room, Setup, SetupError};
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{CloseReason, Instant, RoomId};
use std::cmp::Reverse;
use std::time::Duration;

impl Hub {
    /// Opens the delayed copy of a room that is about to open with this setup. Returns the room's part in the pair. A
    /// setup that it takes is one of a room, too.
    pub(super) fn open_copy(
        &mut self,
        setup: &Setup,
        id: RoomId,
        opener: Origin,
    ) -> Result<Part, SetupError> {
        let delay = Duration::from_millis(setup.settings.spectator_delay_ms.into());
        if delay.is_zero() {
            return Ok(Part::Alone);
        }
        let opened = setup.opened + delay;
        let room = Room::delayed_copy(Setup { id, opened, ..setup.clone() })?;
        let part = Part::Copy(Box::new(Waiting::new(delay)));
        self.rooms.insert(id, Box::new(Seated { part, ..Seated::new(room, opener) }));
        self.count(id);
        Ok(Part::Watched(id))
    }

    /// Returns the room that a client joins who asked for this one.
    pub(super) fn joined_room(&self, id: RoomId, spectates: bool) -> Result<RoomId, Refusal> {
        match self.rooms.get(&id).and_then(|seated| seated.copy()).filter(|_| spectates) {
            None => Ok(id),
            Some(copy) if self.rooms.contains_key(&copy) => Ok(copy),
            // It took more memory than it may.
            Some(_) => Err(Refusal::SpectatorsFull { max: 0 }),
        }
    }

    /// Keeps an input of a room for its copy.
    pub(super) fn delay(&mut self, copy: RoomId, input: room::Input, now: Instant) {
        let Some(Part::Copy(waiting)) = self.rooms.get_mut(&copy).map(|seated| &mut seated.part) else {
            return;
        };
        if waiting.due().is_none() {
            self.timers.push(Reverse((now + waiting.delay(), Timer::Delayed(copy))));
        }
        waiting.push(now, input);
        if waiting.has_grown() {
            self.grown_copies.push(copy);
        }
    }

    /// Lets a copy end with the room that has just ended: as much later, or now if nobody watches.
    pub(super) fn end_later(&mut self, copy: RoomId, reason: CloseReason, now: Instant) {
        self.delay(copy, room::Input::End { reason: reason.clone() }, now);
        let Some(seated) = self.rooms.get_mut(&copy) else { return };
        if let Part::Copy(waiting) = &mut seated.part {
            waiting.is_over = true;
        }
        if seated.is_abandoned() {
            self.end(copy, reason, now);
        }
    }

    /// Passes the due inputs to a copy.
    pub(super) fn run_copy(&mut self, copy: RoomId, now: Instant) {
        while let Some(Part::Copy(waiting)) = self.rooms.get_mut(&copy).map(|seated| &mut seated.part) {
            match waiting.take(now) {
                Some(input) => self.tell(copy, input, now),
                None => {
                    let due = waiting.due();
                    self.timers.extend(due.map(|due| Reverse((due, Timer::Delayed(copy)))));
                    return;
                }
            }
        }
    }

    /// Returns the copy of a room.
    pub(super) fn copy_of(&self, seated: &Seated) -> Option<(RoomId, &Seated)> {
        let copy = seated.copy()?;
        self.rooms.get(&copy).map(|seated| (copy, &**seated))
    }

    /// Returns the summary of a room, with the spectators of its copy.
    pub(super) fn summary(&self, seated: &Seated) -> RoomSummary {
        summary_with(&seated.room, &self.spectators_of_copy(seated))
    }

    /// Returns the spectators of a room's copy.
    pub(super) fn spectators_of_copy(&self, seated: &Seated) -> Vec<MemberSummary> {
        let members = self.copy_of(seated).map(|(_, copy)| copy.room.member_summaries());
        members.unwrap_or_default().into_iter().filter(|member| member.spectates).collect()
    }
}

/// Returns the summary of a room whose copy has these spectators.
pub(super) fn summary_with(room: &Room, spectators: &[MemberSummary]) -> RoomSummary {
    let mut of_room = summary(room);
    of_room.spectators += spectators.len();
    of_room.members += spectators.len();
    of_room.away += spectators.iter().filter(|spectator| !spectator.connected).count();
    for (kind, count) in &mut of_room.links {
        *count +=
            spectators.iter().filter(|spectator| spectator.connected && spectator.link == *kind).count();
    }
    of_room
}
