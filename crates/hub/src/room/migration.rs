//! The part of the authority passes to another member.
//!
//! A room whose settings have a host silence does not end with its host. When the host is silent, away or gone, the connected member with the
//! lowest id is named in its place: once for each epoch, so there are never two. It is given all of the state
//! ([`State::hand_over`](super::state::State::hand_over)), and what an authority of an older epoch says is ignored.

use super::{Output, Room, Succession};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::AskedBy;
use parlor_proto::wire::control::{Handover, ToMember};
use parlor_proto::wire::envelope::Downward;
use parlor_proto::wire::handshake::Authority;
use parlor_proto::{Epoch, MemberId, PeerMisbehaved, channel};
use std::time::Duration;

/// A message that waits for the authority of `epoch`, as it goes to that of `next`; `None` if it is for the member itself, or for
/// the authority of another epoch.
#[must_use]
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
    /// Whose silence matters, and how long it may be; `None` if no other member takes the host's part.
    #[must_use]
    pub fn lease(&self) -> Option<(MemberId, Duration)> {
        let silence = Duration::from_millis(self.setup.settings.host_silence_ms?.into());
        Some((self.authority.member()?, silence))
    }

    /// Nothing was heard of the host for too long, and something of these.
    pub(super) fn host_silent(&mut self, heard: &[MemberId]) {
        self.succeed(|member| heard.contains(&member));
    }

    /// A member is away or gone: if it is the host, another one takes its part. Says whether one did.
    pub(super) fn without(&mut self, member: MemberId) -> bool {
        self.authority == Authority::Member(member) && self.succeed(|_| true)
    }

    /// Names the connected member with the lowest id that `is_fit`, other than the authority; says whether there is one.
    fn succeed(&mut self, is_fit: impl Fn(MemberId) -> bool) -> bool {
        if self.lease().is_none() || self.ended {
            return false;
        }
        let old = self.authority.member();
        let is_connected =
            |member| self.members.get(member).is_some_and(|member| member.info.presence.connected);
        let is_candidate =
            |member: &MemberId| Some(*member) != old && is_connected(*member) && is_fit(*member);
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
        // First of all: what is sent from here on is of the new epoch.
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

    /// The first word of a new authority came: it has all of the state and goes on with it.
    pub(super) fn goes_on(&mut self) {
        let all = self.members.ids().collect();
        self.control(all, &ToMember::GoesOn { epoch: self.epoch });
        self.offer_paths();
    }

    /// A member that was the authority, or was to be, knows that it is not and has nothing of the state: it is sent its view. One that
    /// was named again since will ask again.
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
