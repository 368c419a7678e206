//! What a host was told reliably and has not made anything of.
//!
//! Where another member can take its part, a host acknowledges messages when what came of them is in the state that it
//! publishes: who goes on with the state is told the others again, so each counts once. What a message came to is what the game
//! has written by the time at which it polls or steps again.

use super::migration::is_of_game;
use super::room::RoomCore;
use parlor_proto::Epoch;
use parlor_proto::session::{Message, Session};

/// Bytes that may be unacknowledged because of it. Beyond that a host whose game stands still keeps its connection rather than
/// its promise.
const UNHANDLED_BYTES_MAX: usize = 64 * 1024;

/// What each counts beside its own bytes.
const MESSAGE_BYTES: usize = 64;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unhandled {
    /// Of messages that the game may not have been given.
    bytes: usize,
    /// What waits for the game, or was given to it: every message below a number, and how many bytes of the above they are.
    read: Option<(u64, usize)>,
}

impl RoomCore {
    /// Whether this process is the host, or will be, and another one can take its part.
    fn may_pass_on(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| {
            let passes_on = self.options.host_silence.is_some() || joined.welcome.epoch > Epoch(0);
            passes_on && (joined.is_host() || joined.migration.is_heir())
        })
    }

    /// A message came that the game was not given yet.
    pub(super) fn note_unhandled(&mut self, message: &Message) {
        let row = self.options.channels.get(message.channel);
        if !row.is_some_and(|row| row.lane.is_reliable()) {
            return;
        }
        let may_pass_on = self.may_pass_on();
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        // Word of a change is under way, and it may be that this process is named.
        let is_news = message.epoch > joined.welcome.epoch;
        if !is_news && !may_pass_on {
            return;
        }
        let unhandled = &mut joined.migration.unhandled;
        unhandled.bytes += message.payload.len() + MESSAGE_BYTES;
        if unhandled.bytes > UNHANDLED_BYTES_MAX {
            session.hold_acks_from(None);
        } else {
            session.hold_acks(true);
        }
    }

    /// Whether a message comes before one that was sent earlier: acknowledging it would acknowledge that one, too, so a host whose
    /// part can pass on reads it later.
    pub(super) fn is_early(&self, message: &Message) -> bool {
        let received = self.session.as_ref().map_or(0, Session::received_reliable);
        message.number.is_some_and(|number| number >= received) && is_of_game(message) && self.may_pass_on()
    }

    /// All that came waits as events.
    pub(super) fn has_read(&mut self) {
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        let unhandled = &mut joined.migration.unhandled;
        unhandled.read = (unhandled.bytes > 0).then(|| (session.received_reliable(), unhandled.bytes));
    }

    /// The host's game comes back, and if it `is_committed` all that it wrote is.
    pub(super) fn has_handled(&mut self, is_committed: bool) {
        if !is_committed || !self.inbox.is_given() || !self.may_pass_on() {
            return;
        }
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        let unhandled = &mut joined.migration.unhandled;
        let Some((number, bytes)) = unhandled.read.take() else { return };
        unhandled.bytes -= bytes;
        session.hold_acks_from(Some(number).filter(|_| unhandled.bytes <= UNHANDLED_BYTES_MAX));
        self.wants_driver = true;
    }
}
