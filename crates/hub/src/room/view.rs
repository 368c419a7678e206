//! What a member may know of its room. Everything that a room tells a member passes through its view, so that what is
//! outside of it never reaches its wire.

use super::members::Members;
use parlor_proto::MemberId;

/// What one member may know.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    member: MemberId,
    members: &'a Members,
}

impl<'a> View<'a> {
    pub(super) fn new(member: MemberId, members: &'a Members) -> Self {
        View { member, members }
    }

    /// The members that it may know of, itself included.
    pub(super) fn members(self) -> impl Iterator<Item = MemberId> + 'a {
        self.members.ids().filter(move |other| self.sees_member(*other))
    }

    /// Whether it may know of `other`, and so hear from it. Who is in the room may know of everybody in it; a room with hidden
    /// spectators would decide here.
    pub(super) fn sees_member(&self, other: MemberId) -> bool {
        self.members.get(self.member).is_some() && self.members.get(other).is_some()
    }
}
