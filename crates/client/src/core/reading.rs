//! What each message that came does.

use super::event::{Event, Message};
use super::inbox::Inbox;
use super::matches::is_match_data;
use super::message::decode_typed;
use super::room::{Joined, RoomCore};
use super::shared::{News, Shared};
use parlor_proto::channel::{self, Codec};
use parlor_proto::session;
use parlor_proto::wire::action::AskedBy;
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
                if let Shared::Member(member) = &mut joined.shared {
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

    /// Takes in a message of a game, which is of so many bytes.
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

pub(super) fn misbehaved(what: &str, error: &dyn std::error::Error) -> CloseReason {
    CloseReason::Misbehaved { detail: format!("{what} could not be read: {error}") }
}

/// Tells the game what a packet of the world brought.
pub(super) fn tell_news(joined: &mut Joined, news: News, inbox: &mut Inbox) -> Result<(), CloseReason> {
    joined.marks.note(&joined.shared);
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
