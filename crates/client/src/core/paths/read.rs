//! What came over a path, or of the state, as the game's poll reads it.

use super::super::reading::tell_news;
use super::super::room::RoomCore;
use super::super::shared::{News, Shared};
use super::Outcome;
use parlor_proto::session;
use parlor_proto::wire::envelope::{Downward, From};
use parlor_proto::{CloseReason, Instant, MemberId, PathId, Tick, channel};

impl RoomCore {
    pub(in crate::core) fn took_state(
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

    /// Takes in what came over a path. What is wrong with it ends the path, and not the session with the hub.
    pub(in crate::core) fn read_path(
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
            // It may be for an authority that is no more.
            return Ok(());
        }
        match message.channel {
            channel::STATE => {
                let before = joined.shared.world().tick();
                let Shared::Member(member) = &mut joined.shared else { return Ok(()) };
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
                let (from, payload) = (From::Member(from), message.payload);
                let downward = Downward { from, order: None, authority_of: None, payload };
                self.read_letter((row.codec, row.lane, channel), downward, bytes)
            }
        }
    }
}
