//! Host migration: another member becomes the authority.
//!
//! A room with a host timeout does not end with its host. When the host is silent, away or gone, the
//! connected member with the lowest id becomes the authority: one per epoch, so there are never two. It
//! receives the whole state ([`State::hand_over`](super::state::State::hand_over)). Messages of an older
//! epoch's authority are ignored.

use super::{Output, Room, Succession};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::AskedBy;
use parlor_proto::wire::control::{Handover, ToMember};
use parlor_proto::wire::envelope::Downward;
use parlor_proto::wire::handshake::Authority;
use parlor_proto::{Epoch, MemberId, PeerMisbehaved, channel};
use std::time::Duration;

/// Returns a message that waits for the authority of `epoch`, readdressed to that of `next`; `None` if it is
/// for the member itself, or for the authority of another epoch.
pub fn for_authority(message: &Outgoing, epoch: Epoch, next: Epoch) -> Option<Outgoing> {
    let payload = match message.channel {
        channel::CONTROL => None,
        channel::ACTIONS => {
            let asked = AskedBy::decode(message.payload.clone()).ok()?;
            (asked.epoch == epoch).then(|| AskedBy { epoch: next, ..asked }.encode())
        }
        _ => {
            let downward = Downward::decode(message.payload.clone()).ok()?;
            let is_for_it = downward.authority_of == Some(epoch);
            is_for_it.then(|| Downward { authority_of: Some(next), ..downward }.encode())
        }
    };
    payload.map(|payload| Outgoing { payload, ..message.clone() })
}

impl Room {
    /// Returns the member whose silence is watched and the timeout; `None` if the host role cannot migrate.
    pub fn host_timeout(&self) -> Option<(MemberId, Duration)> {
        let silence = Duration::from_millis(self.setup.settings.host_timeout_ms?.into());
        Some((self.authority.member()?, silence))
    }

    /// Replaces a host that timed out by one of the members that were heard.
    pub(super) fn host_silent(&mut self, heard: &[MemberId]) {
        self.succeed(|member| heard.contains(&member));
    }

    /// Replaces a member that is away or gone, if it is the host. Returns whether it was replaced.
    pub(super) fn without(&mut self, member: MemberId) -> bool {
        self.authority == Authority::Member(member) && self.succeed(|_| true)
    }

    /// Names the lowest connected member that `is_fit`, except the authority. Returns whether there is one.
    fn succeed(&mut self, is_fit: impl Fn(MemberId) -> bool) -> bool {
        if self.host_timeout().is_none() || self.ended {
            return false;
        }
        let old = self.authority.member();
        let is_connected =
            |member| self.members.get(member).is_some_and(|member| member.info.presence.connected);
        let is_candidate =
            |member: &MemberId| Some(*member) != old && is_connected(*member) && is_fit(*member);
        let is_candidate = |member: &MemberId| is_candidate(member) && !self.spectates(*member);
        let found = self.members.ids().find(is_candidate);
        let Some(heir) = found else { return false };
        let epoch = self.epoch;
        self.epoch = Epoch(epoch.0 + 1);
        self.authority = Authority::Member(heir);
        self.former.extend(old.map(|old| (old, self.epoch)));
        self.end_paths();
        let legacy = self.state.hand_over(heir, self.epoch, self.untaken.take());
        self.counters.migrations += 1;
        self.counters.retreats += u64::from(legacy.went_back);
        // Must come first: messages after it belong to the new epoch.
        self.outputs.push_back(Output::Epoch { epoch: self.epoch });
        let handover = Handover {
            epoch: self.epoch,
            member: heir,
            tick: self.state.world().tick(),
            slots: legacy.used.slots,
            generation: legacy.used.generation,
        };
        let all = self.members.ids().collect();
        self.control(all, &ToMember::Authority(handover));
        let succession = Succession { from: old, to: heir, epoch, taken: legacy.taken };
        self.outputs.push_back(Output::Succession(succession));
        true
    }

    /// Handles the first state packet of a new authority: it has the whole state and continues.
    pub(super) fn goes_on(&mut self) {
        let all = self.members.ids().collect();
        self.control(all, &ToMember::GoesOn { epoch: self.epoch });
        self.offer_paths();
    }

    /// Handles a former authority's report that it dropped its state: it gets its view. A member that was
    /// named again since will ask again.
    pub(super) fn follow(&mut self, from: MemberId, epoch: Epoch) -> Result<(), PeerMisbehaved> {
        let Some(since) = self.former.get(&from) else {
            return Err(PeerMisbehaved::NotAuthority { what: "that it is the authority no more" });
        };
        if epoch >= *since && self.authority != Authority::Member(from) && !self.state.has(from) {
            self.state.add(from);
        }
        Ok(())
    }
}
