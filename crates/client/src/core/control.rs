//! What the hub tells a member of its room: who is there, and how they are.

use super::event::Event;
use super::inbox::Inbox;
use super::reading::misbehaved;
use super::room::{Joined, RoomCore};
use bytes::Bytes;
use parlor_proto::session::Message;
use parlor_proto::wire::control::{RefusedAction, ToMember};
use parlor_proto::{CloseReason, Instant};

impl RoomCore {
    /// Takes in what the hub tells.
    pub(super) fn read_control(&mut self, message: Message, at: Instant) -> Result<(), CloseReason> {
        let decoded =
            ToMember::decode(message.payload).map_err(|error| misbehaved("room control", &error))?;
        if let Some(control) = &decoded {
            self.record_control(control);
        }
        match (decoded, &mut self.joined) {
            (Some(ToMember::Authority(handover)), Some(_)) => self.read_handover(handover, at),
            (Some(ToMember::GoesOn { epoch }), Some(_)) => self.read_goes_on(epoch),
            (Some(control), Some(joined)) => {
                let left = match &control {
                    ToMember::Left { member, .. } => Some(*member),
                    _ => None,
                };
                read(joined, control, &mut self.inbox)?;
                left.into_iter().for_each(|member| self.left_path(member));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn read(joined: &mut Joined, control: ToMember, inbox: &mut Inbox) -> Result<(), CloseReason> {
    match control {
        ToMember::Joined(info) => {
            joined.greeting_left = joined.greeting_left.saturating_sub(1);
            let host = joined.welcome.authority.member();
            let bytes = info.data.iter().map(|(key, value)| key.len() + value.len()).sum();
            let player = joined.players.joined(info, joined.welcome.member, host);
            inbox.tell_bounded(Event::PlayerJoined(player), bytes)?;
        }
        ToMember::Direct { member, direct } => joined.players.set_direct(member, direct),
        ToMember::Left { member, reason } => {
            joined.inputs.left(member);
            joined.left_rollback(member);
            joined.replicas.left(member);
            if let Some(player) = joined.players.left(member) {
                inbox.tell_bounded(Event::PlayerLeft { id: member, name: player.name, reason }, 0)?;
            }
        }
        ToMember::Data(data) => {
            if let Some(value) = joined.players.data_changed(&data) {
                let bytes = data.value.as_ref().map_or(0, Bytes::len);
                inbox.tell_bounded(Event::PlayerData { id: data.member, key: data.key, value }, bytes)?;
            }
        }
        ToMember::Presence(list) => {
            for presence in list {
                let (id, news) = (presence.member, joined.players.measured(presence));
                if let Some(slow) = news.slow {
                    inbox.tell_bounded(Event::Slow { id, slow }, 0)?;
                }
                match news.connected {
                    Some(true) => inbox.tell_bounded(Event::PlayerBack { id }, 0)?,
                    Some(false) => inbox.tell_bounded(Event::PlayerLost { id }, 0)?,
                    None => {}
                }
            }
        }
        ToMember::Throttled => inbox.tell_bounded(Event::Throttled, 0)?,
        ToMember::Primary(member) => {
            joined.primary = member;
            inbox.tell_bounded(Event::Primary { member }, 0)?;
        }
        ToMember::ActionRefused(RefusedAction { entity, name, why }) => {
            let bytes = name.len();
            inbox.tell_bounded(Event::ActionRefused { entity, name, why }, bytes)?;
        }
        // These change more than what is known of players: see `read_control`.
        ToMember::Authority(_) | ToMember::GoesOn { .. } | ToMember::Path(_) => {}
    }
    Ok(())
}
