//! A planned hand-over: the host names another player and stays as a player.

use super::RoomCore;
use crate::error::RoomError;
use crate::event::Event;
use parlor_proto::wire::control::{HandOver, HandOverRefusal, ToHub};
use parlor_proto::wire::handshake::capability;
use parlor_proto::{ApiMisuse, CloseReason, Instant, MemberId};

impl RoomCore {
    /// Hands the host's part over to another player, or to the one that the hub names, at the end of the step that
    /// runs or comes next. This process takes no more steps then, and stays as a player. [`Event::HostMigration`]
    /// follows, or [`Event::HandOverRefused`] if the hub refuses.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, the room has no host migration, a hand-over is under way, there
    /// is no such player, or no other one, it is not connected, or the server is too old.
    pub fn hand_over(&mut self, to: Option<MemberId>, now: Instant) -> Result<(), RoomError> {
        let migrates = self.migrates();
        let (_, joined) = self.open_as_host("hand its part over")?;
        if to == Some(joined.welcome.member) {
            return Err(ApiMisuse::Bounds("this player is the host already: name another one".into()).into());
        }
        let refusal = match (migrates, joined.migration.hand_over().is_under_way()) {
            (false, _) => Some(HandOverRefusal::NoMigration),
            (true, true) => Some(HandOverRefusal::UnderWay),
            (true, false) => joined.players.unfit(to),
        };
        if let Some(why) = refusal {
            return Err(RoomError::NotHandedOver { why });
        }
        if joined.welcome.capabilities & capability::HANDS_OVER == 0 {
            let text = "this server is older and hands no host's part over: leave, or use a newer server";
            return Err(ApiMisuse::Bounds(text.into()).into());
        }
        joined.migration.hand_over_mut().begin(to, now);
        self.wants_driver = true;
        Ok(())
    }

    /// Asks the hub for the hand-over that the game wants, if it is time for it.
    pub(super) fn request_hand_over(&mut self, now: Instant) {
        let Some(joined) = &mut self.joined else { return };
        let Some(host) = joined.shared.host() else { return };
        if let Some(to) = joined.migration.hand_over_mut().take_request(host.is_at_hub(), now) {
            let epoch = joined.welcome.epoch;
            self.tell_hub(&ToHub::HandOver(HandOver { epoch, to }));
        }
    }

    /// Goes on as the host, because the hub names nobody else.
    pub(super) fn not_handed_over(&mut self, why: HandOverRefusal) -> Result<(), CloseReason> {
        let is_asked = self.joined.as_mut().is_some_and(|joined| joined.migration.hand_over_mut().end());
        if is_asked { self.inbox.tell_bounded(Event::HandOverRefused { why }, 0) } else { Ok(()) }
    }
}
