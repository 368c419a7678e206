//! A room of a hub, and what the hub keeps beside it.

use super::expected::Expected;
use super::gone::Gone;
use super::part::Part;
use crate::admission_policy::Origin;
use crate::cluster::ownership::{RoomUid, Term};
use crate::room::Room;
use parlor_proto::session::Outgoing;
use parlor_proto::{ConnectionId, Instant, MemberId, RoomId};
use std::collections::BTreeMap;

/// A room with its members' connections, its flush and its share of the memory.
#[derive(Debug)]
pub(super) struct Seated {
    pub(super) room: Room,
    /// Its part in a pair of a room and its delayed copy.
    pub(super) part: Part,
    pub(super) connections: BTreeMap<MemberId, ConnectionId>,
    /// The users of members whose token named one.
    pub(super) users: BTreeMap<MemberId, Box<str>>,
    /// Members that were lost and may return.
    pub(super) gone: BTreeMap<MemberId, Gone>,
    /// Unacknowledged messages for the authority from ended sessions, with their numbers there.
    pub(super) undelivered: Vec<(u64, Outgoing)>,
    /// Its members' connections that may have packets to send; they are packed with the room's next flush.
    pub(super) touched: Vec<ConnectionId>,
    /// When it flushes next, once there is something to flush.
    pub(super) flush_at: Option<Instant>,
    /// Whether it got an input since its last flush.
    pub(super) is_told: bool,
    /// The user whose quota a kept match counts against.
    pub(super) keeper: Option<String>,
    /// Its name in the store of a cluster.
    pub(super) uid: Option<RoomUid>,
    /// Its term there, when it was opened here.
    pub(super) term: u64,
    /// The seats that wait for their members, if it was reopened lately.
    pub(super) expected: Option<Expected>,
    /// Whether it moved here lately, and its members are on their way.
    pub(super) arrives: bool,
    /// The move that is under way.
    pub(super) moving: Option<Move>,
    /// When its authority last changed; `None` if it never did.
    pub(super) host_since: Option<Instant>,
    /// The latest time of its next flush, even without input.
    pub(super) release_at: Option<Instant>,
    pub(super) held: Held,
    /// The origin that opened it, and its share of the state memory.
    pub(super) opener: Origin,
    pub(super) bytes: usize,
}

impl Seated {
    pub(super) fn new(room: Room, opener: Origin) -> Self {
        Seated {
            room,
            part: Part::default(),
            connections: BTreeMap::new(),
            users: BTreeMap::new(),
            gone: BTreeMap::new(),
            undelivered: Vec::new(),
            touched: Vec::new(),
            flush_at: None,
            is_told: false,
            keeper: None,
            uid: None,
            term: Term::FIRST.0,
            expected: None,
            arrives: false,
            moving: None,
            host_since: None,
            release_at: None,
            held: Held::default(),
            opener,
            bytes: 0,
        }
    }

    pub(super) fn is_copy(&self) -> bool {
        matches!(self.part, Part::Copy(_))
    }

    /// Whether players may have paths to each other. Not if it has a copy: what goes over them does not come here.
    pub(super) fn may_have_paths(&self) -> bool {
        matches!(self.part, Part::Alone)
    }

    /// Whether it ends because nobody is in it. Without a room a copy is found by nobody, so it ends with its last
    /// spectator.
    pub(super) fn is_abandoned(&self) -> bool {
        match &self.part {
            Part::Copy(waiting) => waiting.is_over && self.room.spectators() == 0,
            Part::Alone | Part::Watched(_) => self.room.is_empty(),
        }
    }

    /// Returns its copy.
    pub(super) fn copy(&self) -> Option<RoomId> {
        if let Part::Watched(copy) = self.part { Some(copy) } else { None }
    }
}

/// A room of which a move is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Its members open connections there.
    Announced(String),
    /// It serves nobody.
    Sealed,
}

/// The total time that messages waited for a flush.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) messages: u64,
    /// The sum of their arrival times.
    pub(super) came_us: u64,
}
