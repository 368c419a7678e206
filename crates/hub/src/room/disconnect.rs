//! Disconnected members whose seat is kept.
//!
//! They stay members, but get no messages that would be outdated later. The others see them as disconnected.

use super::Room;
use parlor_proto::wire::control::{LeaveReason, Presence, ToMember};
use parlor_proto::{Instant, LinkKind, MemberId};

impl Room {
    /// Marks a member as disconnected, and tells the others why.
    pub(super) fn away(&mut self, member: MemberId, reason: LeaveReason, now: Instant) {
        let told = self.seers_of(member);
        self.control(told, &ToMember::Away { member, reason });
        self.connected(member, false);
        // At once: it may be back before the next flush, and that is news only after this.
        self.flush_presence(now);
        self.state.away(member);
        self.forget_path(member);
        self.replicas.writable(member, false);
        self.without(member);
    }

    /// Marks a member as connected again.
    pub(super) fn back(&mut self, member: MemberId, link: LinkKind) {
        self.members.relink(member, link);
        self.connected(member, true);
        self.forget_path(member);
        self.state.writable(member, true);
        self.replicas.writable(member, true);
    }

    /// Resets a member whose process restarted: it is greeted like a newcomer, and its streams start anew. An
    /// authority becomes its own heir.
    pub(super) fn restarted(&mut self, member: MemberId, link: LinkKind, now: Instant) {
        if self.members.get(member).is_none() {
            return;
        }
        self.members.relink(member, link);
        self.connected(member, true);
        self.state.remove(member);
        let is_own_heir = self.is_own_heir(member);
        if !self.is_match() && !is_own_heir && self.sends_to(member) {
            self.state.add(member);
        }
        self.paths.remove(member);
        self.budgets.set_path(member, None);
        self.replicas.restarted(member, self.sends_to(member));
        self.greet(member, now);
        if self.primary.primary().is_some() {
            self.tell_primary(vec![member]);
        }
        if is_own_heir {
            self.name(member);
        }
    }

    /// Forgets the path capacity: the next link may take another path.
    fn forget_path(&mut self, member: MemberId) {
        self.state.path(member, None);
        self.budgets.set_path(member, None);
    }

    pub(super) fn connected(&mut self, member: MemberId, connected: bool) {
        let presence = self.members.get(member).map(|member| member.info.presence);
        if let Some(presence) = presence {
            self.members.measured(Presence { connected, slow: false, ..presence });
        }
    }

    /// Sends a newcomer the member list, itself first.
    pub(super) fn greet(&mut self, newcomer: MemberId, now: Instant) {
        let others = self.view(newcomer).members().filter(|id| *id != newcomer);
        let all: Vec<MemberId> = std::iter::once(newcomer).chain(others).collect();
        let joined = |id| ToMember::Joined(self.members.get(id).expect("listed members exist").info.clone());
        let spectators = self.told_spectators(&all);
        let greeting: Vec<ToMember> =
            spectators.into_iter().chain(all.iter().map(|id| joined(*id))).collect();
        for message in &greeting {
            let bytes = self.control(vec![newcomer], message);
            self.budgets.charge_reliable(newcomer, bytes, now);
        }
        self.greet_with_paths(newcomer);
    }
}
