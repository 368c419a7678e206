//! What a host was told reliably, and the hub does not have what came of it.
//!
//! Where another member can take its part, the state of a host says which messages it has made something of, and it acknowledges
//! them when the hub has all of that state: who goes on with the state is told the others again, so each counts once, whatever was
//! lost. What a message came to is what the game has written by the time at which it polls or steps again.

use super::migration::is_of_game;
use super::room::RoomCore;
use parlor_proto::session::{Message, Session};
use parlor_proto::{Epoch, Tick};
use parlor_sync::keyed::Taken;
use std::collections::VecDeque;

/// Bytes that may be unacknowledged because of it. Beyond that a host whose game stands still keeps its connection rather than
/// its promise.
const UNHANDLED_BYTES_MAX: usize = 64 * 1024;

/// What each counts beside its own bytes.
const MESSAGE_BYTES: usize = 64;

/// Ticks that may wait to be confirmed one by one.
const RECORDED_MAX: usize = 64;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Unhandled {
    /// Of messages that are not acknowledged because of it.
    bytes: usize,
    /// Of those that the state says were taken.
    recorded_bytes: usize,
    /// What waits for the game, or was given to it: every message below a number, and how many bytes of the above they are.
    read: Option<(u64, usize)>,
    /// What the state says was taken: from which tick on, and every message below a number, and how many bytes they are beside those
    /// before.
    recorded: VecDeque<(Tick, u64, usize)>,
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
        let waiting = unhandled.bytes - unhandled.recorded_bytes;
        unhandled.read = (waiting > 0).then(|| (session.received_reliable(), waiting));
    }

    /// What a host's game has made something of, as the next commit is to say it: it comes back, and was given all that was read.
    pub(super) fn handled(&self) -> Option<Taken> {
        let joined = self.joined.as_ref().filter(|_| self.inbox.is_given() && self.may_pass_on())?;
        let (number, _) = joined.migration.unhandled.read?;
        Some(Taken { epoch: joined.welcome.epoch, number })
    }

    /// The host's state says which messages were taken.
    pub(super) fn note_recorded(&mut self) {
        let Some(joined) = &mut self.joined else { return };
        let host = joined.shared.host();
        let Some((taken, tick)) = host.and_then(|host| host.taken().zip(host.world().tick())) else { return };
        let unhandled = &mut joined.migration.unhandled;
        let is_recorded = |(number, _): &mut (u64, usize)| *number <= taken.number;
        if let Some((number, bytes)) = unhandled.read.take_if(is_recorded) {
            unhandled.recorded_bytes += bytes;
            // Of too many the newest are confirmed together.
            let is_full = unhandled.recorded.len() == RECORDED_MAX;
            let last = unhandled.recorded.pop_back_if(|_| is_full);
            let bytes = bytes + last.map_or(0, |(.., bytes)| bytes);
            unhandled.recorded.push_back((tick, number, bytes));
        }
    }

    /// Acknowledges what was taken in ticks of which the hub has everything.
    pub(super) fn acknowledge_handled(&mut self) {
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return };
        let confirmed = joined.shared.host().and_then(|host| host.upstream().confirmed());
        let (Some(confirmed), unhandled) = (confirmed, &mut joined.migration.unhandled) else { return };
        let mut below = None;
        while let Some((_, number, bytes)) =
            unhandled.recorded.pop_front_if(|(tick, ..)| !tick.is_newer_than(confirmed))
        {
            unhandled.bytes -= bytes;
            unhandled.recorded_bytes -= bytes;
            below = Some(number);
        }
        if below.is_some() {
            session.hold_acks_from(below.filter(|_| unhandled.bytes <= UNHANDLED_BYTES_MAX));
            self.wants_driver = true;
        }
    }
}
