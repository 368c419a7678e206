//! Effects of each received message.

use super::{Joined, RoomCore};
use crate::error::misbehaved;
use crate::event::{Event, Message};
use crate::inbox::Inbox;
use crate::message::{decode_typed, is_match_data};
use crate::state::{News, SharedState};
use bytes::Bytes;
use parlor_proto::channel::{self, Codec};
use parlor_proto::session;
use parlor_proto::wire::action::AskedBy;
use parlor_proto::wire::control::{RefusedAction, ToMember};
use parlor_proto::wire::envelope::Downward;
use parlor_proto::wire::replica::StateOf;
use parlor_proto::{ChannelId, CloseReason, Instant, Lane, MemberId};

impl RoomCore {
    pub(super) fn read_message(&mut self, message: session::Message, at: Instant) -> Result<(), CloseReason> {
        if message.channel == channel::CONTROL {
            return self.read_control(message, at);
        }
        let Some(message) = self.hold(message, at)? else { return Ok(()) };
        let Some(joined) = &mut self.joined else { return Ok(()) };
        match message.channel {
            channel::STATE => {
                let before = joined.shared.world().tick();
                if joined.migration.is_old(message.epoch) {
                    return Ok(());
                }
                if let SharedState::Member(member) = &mut joined.shared {
                    let news = member.take_packet(None, message.payload, at);
                    let news = news.map_err(|error| misbehaved("state", &error))?;
                    return self.took_state(before, news, at);
                }
            }
            channel::REPLICAS => {
                let state = StateOf::decode(message.payload);
                let state = state.map_err(|error| misbehaved("a player's state", &error))?;
                let (arrived, players) = (joined.room_time(at), &joined.players);
                let taken = joined.replicas.take(state, arrived, |member| players.get(member).is_some());
                taken.map_err(|error| misbehaved("a player's state", &error))?;
            }
            channel::ACTIONS => {
                let asked =
                    AskedBy::decode(message.payload).map_err(|error| misbehaved("an action", &error))?;
                return self.read_action(asked);
            }
            channel::CHECKPOINT => return self.read_checkpoint(message.payload, at),
            channel::ROLLBACK => return self.read_rollback(message.payload),
            channel if is_match_data(channel) => return self.read_data(message),
            channel::INPUT => self.read_input(MemberId(message.key), message.payload, at),
            channel => {
                let row =
                    *self.options.channels.get(channel).expect("a session takes messages of its table only");
                return self.read_relayed(row.codec, row.lane, message);
            }
        }
        Ok(())
    }

    fn read_relayed(
        &mut self,
        codec: Codec,
        lane: Lane,
        message: session::Message,
    ) -> Result<(), CloseReason> {
        let bytes = message.payload.len();
        let downward = Downward::decode(message.payload).map_err(|error| misbehaved("a message", &error))?;
        self.read_letter((codec, lane, message.channel), downward, bytes)
    }

    /// Takes in a game's message of `bytes`.
    pub(super) fn read_letter(
        &mut self,
        (codec, lane, channel): (Codec, Lane, ChannelId),
        downward: Downward,
        bytes: usize,
    ) -> Result<(), CloseReason> {
        let Downward { from, order, authority_of, payload } = downward;
        if !self.is_meant(authority_of) {
            return Ok(());
        }
        let event = match codec {
            Codec::Typed => match decode_typed(payload) {
                Some((kind, value)) => Event::Message(Message { from, kind, order, value }),
                None => {
                    self.messages_unreadable += 1;
                    return Ok(());
                }
            },
            Codec::Raw | Codec::Parlor => Event::Raw { from, channel, order, payload },
        };
        self.inbox.tell_message(event, bytes, !lane.is_reliable())
    }
}

/// Raises the events of a packet of the world.
pub(super) fn tell_news(joined: &mut Joined, news: News, inbox: &mut Inbox) -> Result<(), CloseReason> {
    joined.checksums.note(&joined.shared);
    for entity in news.despawned {
        inbox.tell_bounded(Event::Despawned { entity }, 0)?;
    }
    for entity in news.spawned {
        inbox.tell_bounded(Event::Spawned { entity }, 0)?;
    }
    if let Some(update) = news.update {
        inbox.tell_state(update, |key| joined.shared.has(key));
    }
    Ok(())
}

/// The members of the room and their presence.
impl RoomCore {
    /// Handles a control message of the hub.
    pub(super) fn read_control(&mut self, message: session::Message, at: Instant) -> Result<(), CloseReason> {
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
                read_news(joined, control, &mut self.inbox)?;
                left.into_iter().for_each(|member| self.left_path(member));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn read_news(joined: &mut Joined, control: ToMember, inbox: &mut Inbox) -> Result<(), CloseReason> {
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
        // These change more than the players: see `read_control`.
        ToMember::Authority(_) | ToMember::GoesOn { .. } | ToMember::Path(_) => {}
    }
    Ok(())
}
