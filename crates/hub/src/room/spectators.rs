//! Spectators: members without a player, with seats of their own.
//!
//! A spectator is sent what any member is. It sends nothing that a game reads, and becomes neither the authority nor
//! the primary.

use super::Room;
use parlor_proto::wire::control::ToMember;
use parlor_proto::{CloseReason, MemberId, PeerMisbehaved};

impl Room {
    /// Whether a member is a spectator, or was one when it was lost.
    pub fn spectates(&self, member: MemberId) -> bool {
        self.members.spectates(member) || self.pasts.get(member).is_some_and(|past| past.spectates)
    }

    /// Returns the number of spectators.
    pub fn spectators(&self) -> usize {
        self.members.spectators()
    }

    /// Returns the maximum number of spectators.
    pub fn spectators_max(&self) -> u16 {
        let settings = &self.setup.settings;
        settings.kind.spectators_max(settings.max_players, self.spectators)
    }

    /// Checks that a message came from a member that may say such a thing.
    pub(super) fn check_player(&self, from: MemberId, frame: &'static str) -> Result<(), PeerMisbehaved> {
        match self.members.spectates(from) {
            true => Err(PeerMisbehaved::OutOfPlace { frame, when: "from a spectator" }),
            false => Ok(()),
        }
    }

    /// Returns the message that names the spectators among `joined`. `None` without spectators.
    pub(super) fn told_spectators(&self, joined: &[MemberId]) -> Option<ToMember> {
        let spectators: Vec<MemberId> =
            joined.iter().copied().filter(|member| self.members.spectates(*member)).collect();
        (!spectators.is_empty()).then_some(ToMember::Spectators(spectators))
    }

    /// Returns why a match without players ends: its spectators learn it.
    pub(super) fn reason_without_players(&self) -> CloseReason {
        match self.is_empty() {
            true => CloseReason::Left,
            false => CloseReason::RoomEnded { reason: "its last player left".into() },
        }
    }
}
