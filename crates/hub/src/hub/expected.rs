//! The seats of a reopened room that wait for their members.

use crate::room::roster::{LATE_MEMBERS, Reopening};
use parlor_proto::MemberId;
use std::collections::{BTreeMap, BTreeSet};

/// The seats of a reopened room that wait for their members.
#[derive(Debug)]
pub(super) struct Expected {
    /// The generation of each, as the roster has it.
    pub(super) seats: BTreeMap<MemberId, u32>,
    /// The first id of members that joined after the roster was written.
    pub(super) late_from: u32,
    /// Those of them that came.
    pub(super) came_late: BTreeSet<MemberId>,
}

impl Expected {
    /// All members of a room that begins again.
    pub(super) fn of(reopening: &Reopening) -> Self {
        let late_from = reopening.late_from();
        let members = &reopening.roster.members;
        let seats = members.iter().map(|(id, seat)| (*id, seat.generation)).collect();
        let came_late = members.keys().copied().filter(|member| member.0 >= late_from).collect();
        Expected { seats, late_from, came_late }
    }

    pub(super) fn is_late(&self, member: MemberId) -> bool {
        (self.late_from..self.late_from.saturating_add(LATE_MEMBERS)).contains(&member.0)
            && !self.came_late.contains(&member)
    }
}
