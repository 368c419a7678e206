//! Reopening a room at another node: how it begins again from its [roster](super::roster), and how members take
//! their seats in it.

use super::Room;
use super::pasts::Past;
use super::roster::{Claimed, ClaimedSeat, KeptSeat, Reopening, Roster, RosterMember};
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::handshake::Authority;
use parlor_proto::{Instant, MemberId};

impl Room {
    /// Returns who is in it, with the generation of each seat.
    pub fn roster(&self, generation: impl Fn(MemberId) -> u32) -> Roster {
        let members = self.member_ids().filter_map(|id| {
            let member = self.members.get(id)?;
            let seat = RosterMember {
                generation: generation(id),
                spectates: member.spectates,
                link: member.info.link,
                name: member.info.name.clone(),
                user: member.info.user.clone(),
            };
            Some((id, seat))
        });
        Roster {
            epoch: self.epoch,
            host: self.authority.member(),
            next_member: self.next_member().0,
            members: members.collect(),
        }
    }

    /// Returns the name of a member.
    pub fn name_of(&self, member: MemberId) -> Option<&str> {
        self.members.get(member).map(|member| member.info.name.as_str())
    }

    /// Returns what the room keeps of a member when it moves.
    pub fn kept_seat(&self, member: MemberId) -> Option<KeptSeat> {
        let info = &self.members.get(member)?.info;
        Some(KeptSeat { is_connected: info.presence.connected, data: info.data.clone() })
    }

    /// Returns the number of the next ordered message.
    pub fn next_order(&self) -> u64 {
        self.stamped
    }

    /// Returns the recipient of messages to the primary.
    pub fn primary(&self) -> Option<MemberId> {
        self.primary.primary()
    }

    /// Begins again. All members are away but those that moved with it, whose connections are on their way. The first
    /// input of such a room.
    pub(super) fn reopen(&mut self, Reopening { roster, order, mut kept, primary }: Reopening) {
        self.epoch = roster.epoch;
        self.authority = roster.host.map_or(Authority::Hub, Authority::Member);
        self.state.begin(self.epoch);
        self.stamped = order;
        self.members.number_from(roster.next_member);
        for (id, RosterMember { spectates, link, name, user, .. }) in roster.members {
            let KeptSeat { is_connected, data } = kept.remove(&id).unwrap_or_default();
            self.members.reseat(id, name, user, link, Past { data, spectates });
            self.receives(id);
            self.connected(id, is_connected);
            self.state.away(id);
            self.replicas.writable(id, false);
        }
        let players: Vec<MemberId> = self.members.ids().filter(|id| self.is_player(*id)).collect();
        if let Some(primary) = primary.filter(|primary| players.contains(primary)) {
            // The first one to join is it.
            self.primary.joined(primary);
            for id in players {
                self.primary.joined(id);
            }
        }
    }

    /// Whether a claim may begin a new session in a member's seat. Not of a host whose world is here: its stream goes
    /// on in its session.
    pub fn may_claim(&self, member: MemberId) -> bool {
        self.authority != Authority::Member(member) || self.state.world().tick().is_none()
    }

    /// Seats a member that claimed its seat in a new session. Its streams begin anew. It is greeted like a newcomer, unless
    /// the messages of its session go on.
    pub(super) fn claimed(&mut self, seat: ClaimedSeat, how: Claimed, now: Instant) {
        let ClaimedSeat { member, name, user, link, spectates } = seat;
        let is_known = self.members.get(member).is_some();
        if !is_known && !self.has_free_seat(spectates) {
            return;
        }
        if is_known {
            self.members.relink(member, link);
            self.connected(member, true);
            self.state.remove(member);
            self.paths.remove(member);
            self.budgets.set_path(member, None);
            self.replicas.restarted(member, self.sends_to(member));
            if self.sends_to(member) && self.authority.member().is_some_and(|host| host != member) {
                self.state.add(member);
            }
        } else {
            self.members.reseat(member, name, user, link, Past { data: Vec::new(), spectates });
            self.receives(member);
        }
        let gap = match how {
            Claimed::Continues => {
                self.greet_with_paths(member);
                false
            }
            Claimed::Anew { gap } => {
                self.greet(member, now);
                gap
            }
        };
        self.control(vec![member], &ToMember::Reopened { gap, epoch: self.epoch });
        if !is_known {
            self.announce(member);
        }
        if how != Claimed::Continues {
            self.greet_with_primary(member);
        }
    }
}
