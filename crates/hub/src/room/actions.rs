//! Members' actions on their own entities, on the way to the authority.

use super::relay::Held;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::{Action, AskedBy, RefusedAction};
use parlor_proto::wire::control::ToMember;
use parlor_proto::{Instant, MemberId, PeerMisbehaved, channel};

impl Room {
    /// Passes on an action if the entity is the sender's own; otherwise refuses it to the sender.
    pub(super) fn action_from(
        &mut self,
        from: MemberId,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        let malformed = |error| PeerMisbehaved::Malformed { what: "an action", error };
        let action = Action::decode(payload).map_err(malformed)?;
        match self.action_refusal(from, action.entity) {
            None => self.reliable_from(from, Held::Action(action), now),
            Some(why) => {
                let refused = RefusedAction { entity: action.entity, name: action.name, why };
                self.answer_action(from, &ToMember::ActionRefused(refused));
                Ok(())
            }
        }
    }

    /// Sends the authority an action, with its sender.
    pub(super) fn pass_on_action(&mut self, from: MemberId, action: Action) {
        let Some(authority) = self.authority.member() else { return };
        self.counters.actions += 1;
        let message = Outgoing::new(channel::ACTIONS, AskedBy { from, epoch: self.epoch, action }.encode());
        self.outputs.push_back(Output::Send { to: vec![authority], message });
    }

    /// Sends a member what became of its actions.
    pub(super) fn answer_action(&mut self, member: MemberId, answer: &ToMember) {
        if self.members.get(member).is_none() {
            self.counters.unreachable += 1;
            return;
        }
        self.counters.actions_refused += match answer {
            ToMember::ActionsDecided(all) => all.iter().filter(|it| it.refusal.is_some()).count() as u64,
            _ => 1,
        };
        self.control(vec![member], answer);
    }
}
