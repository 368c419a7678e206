//! Host migration: another member becomes the authority.
//!
//! A room with a host timeout does not end with its host. When the host is silent, away or gone, the
//! connected member with the lowest id becomes the authority: one per epoch, so there are never two. It
//! receives the whole state ([`State::hand_over`](super::state::State::hand_over)). Messages of an older
//! epoch's authority are ignored.
//!
//! An authority whose process began anew, before another one was named, becomes its own heir. And an authority may
//! hand its part over.

use super::{Output, Room, Succession};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::AskedBy;
use parlor_proto::wire::control::{HandOver, HandOverRefusal, Handover, ToMember};
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::wire::envelope::Downward;
use parlor_proto::wire::handshake::Authority;
use parlor_proto::{Epoch, Instant, MemberId, PeerMisbehaved, channel, limits};
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

    /// Whether a member that restarts becomes its own heir.
    pub(super) fn is_own_heir(&self, member: MemberId) -> bool {
        self.host_timeout().is_some_and(|(host, _)| host == member)
    }

    /// Whether a new process may take the seat of a member. The world of an authority is lost with its process,
    /// unless its part can migrate: then it is handed the hub's copy.
    pub fn may_restart(&self, member: MemberId) -> bool {
        self.authority != Authority::Member(member) || self.is_own_heir(member)
    }

    /// Handles an authority's request to hand its part over.
    pub(super) fn hand_over_from(
        &mut self,
        from: MemberId,
        asked: HandOver,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        if !self.is_word_of_authority(from, "a hand-over")? {
            return Ok(());
        }
        if asked.epoch != self.epoch {
            self.counters.stale_epoch += 1;
            return Ok(());
        }
        if asked.to == Some(from) {
            let error = ReadError::OutOfRange { field: "member" };
            return Err(PeerMisbehaved::Malformed { what: "a hand-over to oneself", error });
        }
        match self.chosen(asked.to, now) {
            Ok(heir) => {
                self.handed_over_at = Some(now);
                self.name(heir);
            }
            Err(why) => drop(self.control(vec![from], &ToMember::NotHandedOver(why))),
        }
        Ok(())
    }

    /// Returns the member to which the authority hands its part over.
    fn chosen(&self, to: Option<MemberId>, now: Instant) -> Result<MemberId, HandOverRefusal> {
        if self.host_timeout().is_none() {
            return Err(HandOverRefusal::NoMigration);
        }
        if self.state.is_handed_over() {
            return Err(HandOverRefusal::UnderWay);
        }
        if self.handed_over_at.is_some_and(|at| now < at + limits::HAND_OVER_INTERVAL) {
            return Err(HandOverRefusal::TooSoon);
        }
        match to {
            Some(member) => self.unfit(member).map_or(Ok(member), Err),
            None => self.next_authority(|_| true).ok_or(HandOverRefusal::Nobody),
        }
    }

    /// Returns why a member cannot become the authority; `None` if it can.
    fn unfit(&self, member: MemberId) -> Option<HandOverRefusal> {
        match self.members.get(member) {
            None => Some(HandOverRefusal::NoSuchPlayer),
            Some(member) if member.spectates => Some(HandOverRefusal::Spectator),
            Some(member) if !member.info.presence.connected => Some(HandOverRefusal::NotReady),
            Some(_) => None,
        }
    }

    /// Returns the lowest member that can become the authority and `is_fit`, except the present one.
    fn next_authority(&self, is_fit: impl Fn(MemberId) -> bool) -> Option<MemberId> {
        let old = self.authority.member();
        let is_candidate =
            |member: &MemberId| Some(*member) != old && self.unfit(*member).is_none() && is_fit(*member);
        self.members.ids().find(is_candidate)
    }

    /// Names the [next authority](Self::next_authority). Returns whether there is one.
    fn succeed(&mut self, is_fit: impl Fn(MemberId) -> bool) -> bool {
        if self.host_timeout().is_none() || self.ended {
            return false;
        }
        let heir = self.next_authority(is_fit);
        heir.into_iter().for_each(|heir| self.name(heir));
        heir.is_some()
    }

    /// Names an heir: another member, or the authority itself, which has lost its state.
    pub(super) fn name(&mut self, heir: MemberId) {
        let old = self.authority.member();
        let epoch = self.epoch;
        self.epoch = Epoch(epoch.0 + 1);
        self.authority = Authority::Member(heir);
        self.former.extend(old.filter(|old| *old != heir).map(|old| (old, self.epoch)));
        self.end_paths();
        let legacy = self.state.hand_over(heir, self.epoch, self.untaken.take());
        if !self.sends_to(heir) {
            self.state.away(heir);
        }
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
        let follows = epoch >= *since && self.authority != Authority::Member(from);
        if follows && !self.state.has(from) && self.sends_to(from) {
            self.state.add(from);
        }
        Ok(())
    }
}
