//! A member that was lost and may return: see `returns.rs`.

use super::tokens::Family;
use crate::admission_policy::Origin;
use parlor_proto::{Instant, MemberId, RoomId};

/// How many of one user are remembered in the rooms of a game.
pub(super) const OF_USER_MAX: usize = 32;

/// A member of a room, or one that was.
pub(super) type Place = (RoomId, MemberId);

/// A member that was lost.
#[derive(Debug)]
pub(super) struct Gone {
    /// The user of its admission token.
    pub(super) user: Option<Box<str>>,
    pub(super) tokens: Option<Tokens>,
    pub(super) origin: Origin,
    /// When it is forgotten.
    pub(super) until: Instant,
}

/// The resume tokens of a lost session.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) family: Family,
    /// Whether its member has proved that it has the newest.
    pub(super) is_shown: bool,
    /// Whether its client understands [`GraceOver`](parlor_proto::wire::handshake::ResumeRefusal::GraceOver).
    pub(super) returns: bool,
}

/// How a session ended that was not ended on purpose.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) origin: Origin,
    pub(super) tokens: Option<Tokens>,
}
