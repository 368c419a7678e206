//! Moves of rooms to other nodes, with their sessions.
//!
//! ```text
//!            announce                seal                    the store has another owner
//!  live ───────────────▶ announced ─────────▶ sealed ───────────────────────────────────▶ over here
//!   ▲    members open      │                    │
//!   │    a connection      │ call off           │ the store has this owner still: unseal
//!   └──────────────────────┴────────────────────┘ members resume their sessions
//! ```
//!
//! A sealed room takes nothing from its members and sends them nothing, so its snapshot has all that they have said and
//! were told. The store changes the owner and keeps the snapshot in one statement. Whoever cannot know what came of that
//! statement must not unseal.

use super::seated::Move;
use super::waiting::Cluster;
use super::{Hub, NotThere, Output};
use crate::admission_policy::Origin;
use crate::room;
use crate::room::roster::Roster;
use crate::room::snapshot::{MovedSeat, SNAPSHOT_BYTES_MAX, Snapshot};
use bytes::Bytes;
use parlor_proto::{CloseReason, ConnectionId, Instant, RoomCode, RoomId};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// Why a room is not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unmovable {
    /// The hub has no such room.
    #[error("there is no such room")]
    NoRoom,
    /// Its log or its delayed copy cannot move, or it keeps no seats.
    #[error("a kept match, a room with a spectator delay, and one without a grace stay at their node")]
    Stays,
    /// Clients of members are older than moves, or do not reconnect.
    #[error("a member's client cannot follow the room: it is older than moves, or does not reconnect")]
    CannotFollow,
    /// Its host is away or has just changed, or another move is under way. Try again.
    #[error("the room's host is away or has just changed")]
    Busy,
    /// Its snapshot is too large.
    #[error("more than {SNAPSHOT_BYTES_MAX} bytes of messages wait for the room's members")]
    TooLarge,
}

/// How long a room must have had its host before it is moved: what the one before said has been delivered then.
const SETTLED: Duration = Duration::from_secs(2);

impl Hub {
    /// Tells the members of a room where it is about to move.
    ///
    /// # Errors
    /// [`Unmovable`].
    pub fn announce_move(&mut self, code: RoomCode, address: &str, now: Instant) -> Result<(), Unmovable> {
        let id = self.movable(code, now)?;
        let seated = self.rooms.get_mut(&id).ok_or(Unmovable::NoRoom)?;
        seated.moving = Some(Move::Announced(address.to_owned()));
        self.tell_seats(Some(id), now);
        Ok(())
    }

    /// Takes the announcement back.
    pub fn call_move_off(&mut self, code: RoomCode, now: Instant) {
        let Some(id) = self.directory.find(code) else { return };
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        if matches!(seated.moving, Some(Move::Announced(_))) {
            seated.moving = None;
            self.tell_seats(Some(id), now);
        }
    }

    /// Seals an announced room and returns its [`Snapshot`], encoded.
    ///
    /// # Errors
    /// [`Unmovable`]: the move is called off then.
    pub fn seal(&mut self, code: RoomCode, now: Instant) -> Result<Bytes, Unmovable> {
        let sealed = self.try_seal(code, now);
        if sealed.is_err() {
            self.call_move_off(code, now);
        }
        sealed
    }

    fn try_seal(&mut self, code: RoomCode, now: Instant) -> Result<Bytes, Unmovable> {
        let id = self.directory.find(code).ok_or(Unmovable::NoRoom)?;
        let is_announced =
            self.rooms.get(&id).is_some_and(|seated| matches!(seated.moving, Some(Move::Announced(_))));
        if !is_announced {
            return Err(Unmovable::Busy);
        }
        self.can_go(id, now)?;
        self.tell(id, room::Input::Sealed, now);
        let snapshot = self.snapshot(id, now).ok_or(Unmovable::NoRoom)?.encode();
        if snapshot.len() > SNAPSHOT_BYTES_MAX {
            return Err(Unmovable::TooLarge);
        }
        for connection in self.members_of(id) {
            if let Some(state) = self.connections.get_mut(&connection) {
                state.is_sealed = true;
                // What the room says from here on has the numbers of what it says at the other node.
                state.session.set_sealed(true);
            }
        }
        if let Some(seated) = self.rooms.get_mut(&id) {
            seated.moving = Some(Move::Sealed);
        }
        Ok(snapshot)
    }

    /// Goes on with a sealed room: the store says that it is this node's, under this term. Its members resume their
    /// sessions over new connections, since nothing was taken from their present ones.
    pub fn unseal(&mut self, code: RoomCode, term: u64, now: Instant) {
        let Some(id) = self.sealed(code) else { return };
        if let Some(seated) = self.rooms.get_mut(&id) {
            (seated.moving, seated.term) = (None, term);
        }
        for connection in self.members_of(id) {
            let Some(state) = self.connections.get_mut(&connection) else { continue };
            state.is_sealed = false;
            state.session.set_sealed(false);
            if state.away.is_none() {
                self.handle_disconnected(connection, now);
                self.outputs.push_back(Output::Close { connection, reason: "move_called_off" });
            }
        }
        self.tell_seats(Some(id), now);
    }

    /// Ends a room here that another node has, at `address`: its members claim their seats there.
    ///
    /// # Errors
    /// [`NotThere`].
    pub fn move_room(&mut self, code: RoomCode, address: String, now: Instant) -> Result<(), NotThere> {
        let id = self.directory.find(code).ok_or(NotThere::Room)?;
        for connection in self.members_of(id) {
            if let Some(state) = self.connections.get_mut(&connection) {
                state.is_sealed = false;
            }
        }
        self.tell(id, room::Input::End { reason: CloseReason::Moved { address } }, now);
        Ok(())
    }

    /// Returns how many more rooms it takes.
    pub(super) fn rooms_free(&self) -> usize {
        let entering = self.cluster.as_ref().map_or(0, Cluster::entering);
        match self.has_memory(Origin::LOCAL) {
            Ok(()) => self.config.rooms_max.saturating_sub(self.rooms.len() + entering),
            Err(_) => 0,
        }
    }

    /// Returns where a room is about to move.
    pub(super) fn announced_address(&self, id: RoomId) -> Option<String> {
        match &self.rooms.get(&id)?.moving {
            Some(Move::Announced(address)) => Some(address.clone()),
            Some(Move::Sealed) | None => None,
        }
    }

    /// Returns the room with a code if it is sealed.
    fn sealed(&self, code: RoomCode) -> Option<RoomId> {
        let id = self.directory.find(code)?;
        self.rooms.get(&id).filter(|seated| seated.moving == Some(Move::Sealed)).map(|_| id)
    }

    fn movable(&self, code: RoomCode, now: Instant) -> Result<RoomId, Unmovable> {
        let id = self.directory.find(code).ok_or(Unmovable::NoRoom)?;
        let seated = self.rooms.get(&id).ok_or(Unmovable::NoRoom)?;
        if !self.is_claimable(seated) {
            return Err(Unmovable::Stays);
        }
        if seated.moving.is_some() {
            return Err(Unmovable::Busy);
        }
        self.can_go(id, now)?;
        Ok(id)
    }

    /// Whether all members can follow, and the room's host is there and has been for a while.
    fn can_go(&self, id: RoomId, now: Instant) -> Result<(), Unmovable> {
        let seated = self.rooms.get(&id).ok_or(Unmovable::NoRoom)?;
        let follows = |connection| self.connections.get(connection).is_some_and(|state| state.moves);
        if !seated.connections.values().all(follows) {
            return Err(Unmovable::CannotFollow);
        }
        let is_here = |member| {
            let connection = seated.connections.get(&member);
            let state = connection.and_then(|connection| self.connections.get(connection));
            state.is_some_and(|state| state.away.is_none())
        };
        let has_host = seated.room.authority().member().is_none_or(is_here);
        let is_old = seated.host_since.is_none_or(|since| since + SETTLED <= now);
        if has_host && !seated.arrives && is_old && seated.undelivered.is_empty() {
            Ok(())
        } else {
            Err(Unmovable::Busy)
        }
    }

    pub(super) fn members_of(&self, id: RoomId) -> Vec<ConnectionId> {
        self.rooms.get(&id).map(|seated| seated.connections.values().copied().collect()).unwrap_or_default()
    }

    fn snapshot(&self, id: RoomId, now: Instant) -> Option<Snapshot> {
        let seated = self.rooms.get(&id)?;
        let mut roster: Roster = self.roster(seated)?;
        let mut seats = BTreeMap::new();
        for (member, connection) in &seated.connections {
            let Some(state) = self.connections.get(connection) else { continue };
            let Some((kept, family)) = seated.room.kept_seat(*member).zip(state.family.as_ref()) else {
                continue;
            };
            let before = family.before().filter(|_| !state.session.has_heard_peer()).copied();
            let (token, session) = (*family.newest(), state.session.carried());
            seats.insert(*member, MovedSeat { kept, token, before, session });
        }
        roster.members.retain(|member, _| seats.contains_key(member));
        let room_time = seated.room.time_at(now).saturating_since(Instant::ZERO);
        Some(Snapshot {
            roster,
            order: seated.room.next_order(),
            room_time_us: u64::try_from(room_time.as_micros()).unwrap_or(u64::MAX),
            primary: seated.room.primary(),
            seats,
        })
    }
}
