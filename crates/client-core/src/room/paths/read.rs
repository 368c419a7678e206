//! The game's poll reads what came over paths, and the state.

use super::Outcome;
use crate::room::RoomCore;
use crate::room::reading::tell_news;
use crate::state::{News, SharedState};
use parlor_proto::session;
use parlor_proto::wire::control::ToHub;
use parlor_proto::wire::envelope::{Downward, Sender};
use parlor_proto::{CloseReason, Instant, MemberId, PathId, Tick, channel};

impl RoomCore {
    /// Handles a switch of the state's source.
    fn stream_switched(&mut self) {
        if let Some(id) = self.joined.as_ref().and_then(|joined| joined.shared.source()) {
            self.tell_hub(&ToHub::PathUp { id });
        }
    }

    pub(crate) fn took_state(
        &mut self,
        before: Option<Tick>,
        news: Option<News>,
        at: Instant,
    ) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        joined.heard_state(before, at);
        joined.settle_overlay();
        let Some(news) = news else { return Ok(()) };
        if news.is_of_successor {
            joined.host_heard(&mut self.inbox)?;
        }
        let is_switch = news.is_switch;
        tell_news(joined, news, &mut self.inbox)?;
        if is_switch {
            self.stream_switched();
        }
        Ok(())
    }

    /// Takes in a message from a path. A malformed one ends the path, but not the session with the hub.
    pub(crate) fn read_path(
        &mut self,
        from: MemberId,
        id: PathId,
        message: session::Message,
        at: Instant,
    ) -> Result<(), CloseReason> {
        let is_reliable =
            self.options.channels.get(message.channel).is_some_and(|row| row.lane.is_reliable());
        let message = if is_reliable { self.hold_of_path(from, id, message, at)? } else { Some(message) };
        let (Some(message), Some(joined)) = (message, &mut self.joined) else { return Ok(()) };
        if message.epoch < joined.welcome.epoch && !is_reliable {
            // It may be for a previous authority.
            return Ok(());
        }
        match message.channel {
            channel::STATE => {
                let before = joined.shared.world().tick();
                let SharedState::Member(member) = &mut joined.shared else { return Ok(()) };
                match member.take_packet(Some(id), message.payload, at) {
                    Ok(news) => self.took_state(before, news, at),
                    Err(error) => {
                        self.path_over(
                            id,
                            Outcome::Lost,
                            &format!("its state could not be read: {error}"),
                            at,
                        );
                        Ok(())
                    }
                }
            }
            channel::INPUT => {
                self.read_input(from, message.payload, at);
                Ok(())
            }
            channel => {
                let Some(row) = self.options.channels.get(channel).copied() else { return Ok(()) };
                let bytes = message.payload.len();
                let (from, payload) = (Sender::Member(from), message.payload);
                let downward = Downward { from, order: None, authority_of: None, payload };
                self.read_letter((row.codec, row.lane, channel), downward, bytes)
            }
        }
    }
}
