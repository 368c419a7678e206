//! Members that were lost and may return: a room keeps their player data under their id, until its hub says
//! otherwise.
//!
//! They are no members: they have no seat, and the others know that they left. What they own stays theirs, because
//! ownership is an id: the authority decides whether it waits for them.

use super::pasts::Past;
use super::{Output, Room};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::{Instant, LinkKind, MemberId};

impl Room {
    /// Removes a member that was lost, and keeps what it needs to return.
    pub(super) fn lost(&mut self, member: MemberId, reason: LeaveReason) {
        let past = self.members.get(member);
        let past = past.map(|it| Past { data: it.info.data.clone(), spectates: it.spectates });
        let Some(past) = past else { return };
        let first = self.replicas.next_number(member);
        self.leave(member, reason);
        if !self.ended {
            self.replicas.number_from(member, first);
            self.pasts.keep(member, past);
        }
    }

    /// Gives a member that was lost its id and its player data back. It is greeted like a newcomer.
    pub(super) fn returned(
        &mut self,
        member: MemberId,
        name: String,
        user: Option<String>,
        link: LinkKind,
        now: Instant,
    ) {
        if !self.has_free_seat(self.spectates(member)) || self.members.get(member).is_some() {
            return;
        }
        let Some(past) = self.pasts.take(member) else { return };
        self.members.reseat(member, name, user, link, past);
        self.seated(member, now);
    }

    /// Forgets a member that was lost. Returns whether it was known.
    pub(super) fn forget(&mut self, member: MemberId) -> bool {
        let was_known = self.pasts.take(member).is_some();
        if was_known {
            self.replicas.forget(member);
        }
        was_known
    }

    /// The authority removes somebody that is gone already: it shall not return.
    pub(super) fn kick_absent(&mut self, member: MemberId) {
        if self.forget(member) {
            self.outputs.push_back(Output::Forgotten { member });
        } else {
            self.counters.unreachable += 1;
        }
    }
}
