//! Who may see a key, and who is looking.

use super::gaps::Gaps;
use crate::limits::AUDIENCE_MEMBERS_MAX;
use parlor_proto::MemberId;
use parlor_proto::wire::cursor::{ReadError, Reader, Write, varint_width};
use std::collections::BTreeSet;

/// Who may see a key. What a member may not see is never sent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// Every member.
    #[default]
    All,
    /// These members, at most [`AUDIENCE_MEMBERS_MAX`]. With none the authority alone has the key, and whoever
    /// becomes the authority after it.
    Members(BTreeSet<MemberId>),
}

/// Who is looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The hub, or whoever becomes the authority: sees all keys, and who may see them.
    Everything,
    /// A member: sees the keys whose audience it belongs to.
    Member(MemberId),
}

impl Audience {
    /// These members.
    #[must_use]
    pub fn members(members: impl IntoIterator<Item = MemberId>) -> Self {
        Audience::Members(members.into_iter().collect())
    }

    /// Whether `viewer` sees a key that has this audience.
    #[must_use]
    pub fn admits(&self, viewer: Viewer) -> bool {
        match (self, viewer) {
            (Audience::All, _) | (_, Viewer::Everything) => true,
            (Audience::Members(members), Viewer::Member(member)) => members.contains(&member),
        }
    }

    /// A count, 0 for all and one more than the members otherwise; then the members, as gaps.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.each_number(|number| out.put_varint(number));
    }

    /// Bytes that [`write`](Self::write) takes.
    pub(super) fn wire_len(&self) -> usize {
        let mut len = 0;
        self.each_number(|number| len += varint_width(number));
        len
    }

    fn each_number(&self, mut then: impl FnMut(u64)) {
        let Audience::Members(members) = self else { return then(0) };
        then(members.len() as u64 + 1);
        let mut gaps = Gaps::default();
        members.iter().for_each(|member| then(gaps.gap(member.0)));
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let count = reader.varint_max("the size of an audience", AUDIENCE_MEMBERS_MAX as u64 + 1)?;
        let Some(count) = count.checked_sub(1) else { return Ok(Audience::All) };
        let (mut gaps, mut members) = (Gaps::default(), BTreeSet::new());
        for _ in 0..count {
            let gap = reader.varint()?;
            members.insert(MemberId(gaps.number("a member of an audience", gap, u32::MAX)?));
        }
        Ok(Audience::Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn audiences_come_back(ids in proptest::collection::btree_set(any::<u32>(), 0..AUDIENCE_MEMBERS_MAX)) {
            for audience in [Audience::All, Audience::members(ids.into_iter().map(MemberId))] {
                let mut out = Vec::new();
                audience.write(&mut out);
                prop_assert_eq!(out.len(), audience.wire_len());
                let mut reader = Reader::new(out.into());
                prop_assert_eq!(Audience::read(&mut reader).unwrap(), audience);
                prop_assert!(reader.finish().is_ok());
            }
        }
    }

    #[test]
    fn an_audience_without_members_admits_the_authority_only() {
        let nobody = Audience::members([]);
        assert!(nobody.admits(Viewer::Everything));
        assert!(!nobody.admits(Viewer::Member(MemberId(0))));
    }
}
