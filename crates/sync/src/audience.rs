//! Audiences: which members may see a key or an entity.

use parlor_proto::MemberId;
use parlor_proto::OrderedSet;

/// Which members may see a key or an entity. Members outside the audience are never sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// Every member.
    #[default]
    All,
    /// These members, at most [`AUDIENCE_MEMBERS_MAX`](crate::limits::AUDIENCE_MEMBERS_MAX). If empty, only
    /// the authority has it, and after a migration the next authority.
    Members(OrderedSet<MemberId>),
}

/// The receiver whose view is checked against an audience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The hub or the next authority: sees everything, audiences included.
    Everything,
    /// A member: sees only what its audiences admit.
    Member(MemberId),
}

impl Audience {
    /// Returns an audience of these members.
    pub fn members(members: impl IntoIterator<Item = MemberId>) -> Self {
        Audience::Members(members.into_iter().collect())
    }

    /// Whether `viewer` may see state with this audience.
    pub fn admits(&self, viewer: Viewer) -> bool {
        match (self, viewer) {
            (Audience::All, _) | (_, Viewer::Everything) => true,
            (Audience::Members(members), Viewer::Member(member)) => members.contains(&member),
        }
    }

    /// Returns the number of members named; 0 for [`All`](Self::All).
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
