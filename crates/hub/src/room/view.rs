//! A member's view of its room. All messages of a room to a member pass through the member's view, so that
//! nothing outside of it is ever sent.

use super::members::Members;
use parlor_proto::MemberId;

/// The view of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    member: MemberId,
    members: &'a Members,
}

impl<'a> View<'a> {
    pub(super) fn new(member: MemberId, members: &'a Members) -> Self {
        View { member, members }
    }

    /// Returns the visible members, itself included.
    pub(super) fn members(self) -> impl Iterator<Item = MemberId> + 'a {
        self.members.ids().filter(move |other| self.sees_member(*other))
    }

    /// Whether it may know of `other`, and so receive its messages. All members see each other, spectators too; a room with
    /// hidden members would decide here.
    pub(super) fn sees_member(&self, other: MemberId) -> bool {
        self.members.get(self.member).is_some() && self.members.get(other).is_some()
    }
}
