//! Who may see something of a room, and who is looking.

use parlor_proto::MemberId;
use std::collections::BTreeSet;

/// Who may see a key or an entity. What a member may not see is never sent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// Every member.
    #[default]
    All,
    /// These members, at most [`AUDIENCE_MEMBERS_MAX`](crate::limits::AUDIENCE_MEMBERS_MAX). With none the authority alone has it, and whoever becomes the
    /// authority after it.
    Members(BTreeSet<MemberId>),
}

/// Who is looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The hub, or whoever becomes the authority: sees everything, and who may see it.
    Everything,
    /// A member: sees that whose audience it belongs to.
    Member(MemberId),
}

impl Audience {
    /// These members.
    #[must_use]
    pub fn members(members: impl IntoIterator<Item = MemberId>) -> Self {
        Audience::Members(members.into_iter().collect())
    }

    /// Whether `viewer` sees what has this audience.
    #[must_use]
    pub fn admits(&self, viewer: Viewer) -> bool {
        match (self, viewer) {
            (Audience::All, _) | (_, Viewer::Everything) => true,
            (Audience::Members(members), Viewer::Member(member)) => members.contains(&member),
        }
    }

    /// How many members it names; none if it is all.
    #[must_use]
    pub fn named(&self) -> usize {
        match self {
            Audience::All => 0,
            Audience::Members(members) => members.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_without_members_admits_the_authority_only() {
        let nobody = Audience::members([]);
        assert!(nobody.admits(Viewer::Everything));
        assert!(!nobody.admits(Viewer::Member(MemberId(0))));
    }
}
