//! Looks whether hosts are heard, in rooms where another member takes the part of one that is not.
//!
//! What counts is when the hub heard the host's session last, whatever it said: the host's transport sends signs of life though its
//! game stands still. A host that was heard regularly of late is missed sooner than one whose connection stutters.

use super::turn::Timer;
use super::{Hub, Seated};
use crate::room::{self, Room, Succession, for_authority};
use parlor_proto::session::Outgoing;
use parlor_proto::{CloseReason, ConnectionId, Epoch, Instant, MemberId, RoomId};
use std::cmp::Reverse;
use std::time::Duration;

/// Signs of life that are due within the time that a host may be silent.
const SIGNS_OF_LIFE: u32 = 5;

/// How often the members of a room show that they live, in ms; `None` if no member takes its host's part, and it does not matter.
pub(super) fn keep_alive_ms(room: &Room) -> Option<u32> {
    let (_, silence) = room.lease()?;
    u32::try_from(silence.as_millis()).ok().map(|silence_ms| silence_ms / SIGNS_OF_LIFE)
}

/// How regularly a session is heard: the longest pauses of late.
///
/// An accrual detector (Hayashibara et al., The φ accrual failure detector, 2004) would fit a distribution to the pauses and
/// be as sure of its tail as of the fit. The longest pause, with room above it, asks for no distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// When it began to be heard.
    since: Instant,
    /// When the present span began, and the longest pauses in it and the one before.
    span_since: Instant,
    longest: [Duration; 2],
}

/// How far back pauses count: one to two of these.
const RHYTHM_SPAN: Duration = Duration::from_secs(15);
/// How long a session's rhythm is that of a handshake, and how long it must have been heard after that.
const RHYTHM_BEGINS: Duration = Duration::from_secs(1);
const RHYTHM_KNOWN: Duration = Duration::from_secs(2);

impl Rhythm {
    pub(super) fn new(now: Instant) -> Self {
        Rhythm { since: now, span_since: now, longest: [Duration::ZERO; 2] }
    }

    /// It was heard again after a pause.
    pub(super) fn heard(&mut self, pause: Duration, now: Instant) {
        if now.saturating_since(self.since) < RHYTHM_BEGINS {
            return;
        }
        if now.saturating_since(self.span_since) >= RHYTHM_SPAN {
            (self.span_since, self.longest) = (now, [Duration::ZERO, self.longest[0]]);
        }
        self.longest[0] = self.longest[0].max(pause);
    }

    /// How long a pause may be: two and a half times the longest of late, at most the whole silence and at least three quarters of
    /// it, so that a single pause beyond all others is forgiven still.
    fn patience(&self, silence: Duration, now: Instant) -> Duration {
        if now.saturating_since(self.since) < RHYTHM_BEGINS + RHYTHM_KNOWN {
            return silence;
        }
        let longest = self.longest[0].max(self.longest[1]);
        (longest * 5 / 2).clamp(silence * 3 / 4, silence)
    }
}

impl Seated {
    /// Keeps what a member whose session is over has not acknowledged as the authority, if that is what it is.
    pub(super) fn save_undelivered(
        &mut self,
        member: MemberId,
        missed: impl Iterator<Item = (u64, Outgoing)>,
    ) {
        if self.room.lease().is_some_and(|(host, _)| host == member) {
            let epoch = self.room.epoch();
            let is_for_it = |(_, message): &(u64, Outgoing)| for_authority(message, epoch, epoch).is_some();
            self.undelivered.extend(missed.filter(is_for_it));
        }
    }
}

impl Hub {
    /// A room opened: its host is looked at from then on.
    pub(super) fn begin_lease(&mut self, room: RoomId, seated: &Seated, now: Instant) {
        if let Some((_, silence)) = seated.room.lease() {
            self.timers.push(Reverse((now + silence, Timer::Lease(room))));
        }
    }

    /// Looks whether the host of a room is heard.
    pub(super) fn look_at_host(&mut self, room: RoomId, now: Instant) {
        let Some((host, silence)) = self.rooms.get(&room).and_then(|seated| seated.room.lease()) else {
            return;
        };
        let patience = self.patience(room, host, silence, now);
        let heard: Vec<(MemberId, Instant)> = self.heard_last(room);
        let is_due = |at: Instant| at + patience <= now;
        let of_host = heard.iter().find(|(member, _)| *member == host).map(|(_, at)| *at);
        if of_host.is_none_or(is_due) {
            // If nobody was heard, it may be the hub itself that stood still.
            let heard: Vec<MemberId> =
                heard.into_iter().filter(|(_, at)| !is_due(*at)).map(|(id, _)| id).collect();
            if !heard.is_empty() {
                self.tell_untaken(room, host, now);
                self.tell(room, room::Input::HostSilent { heard }, now);
            }
        }
        let next = of_host.map(|at| at + patience).filter(|at| *at > now);
        let soon = now + (silence / SIGNS_OF_LIFE).max(Duration::from_millis(1));
        self.timers.push(Reverse((next.unwrap_or(soon), Timer::Lease(room))));
    }

    /// How long the host may be silent, by how regularly it was heard.
    fn patience(&self, room: RoomId, host: MemberId, silence: Duration, now: Instant) -> Duration {
        let connection = self.rooms.get(&room).and_then(|seated| seated.connections.get(&host));
        let state = connection.and_then(|connection| self.connections.get(connection));
        // On a stream one lost packet is a pause, and there was no sign of it before.
        let state = state.filter(|state| state.link.has_datagrams());
        state.map_or(silence, |state| state.rhythm.patience(silence, now))
    }

    /// When each member of a room that has a connection was heard last.
    fn heard_last(&self, room: RoomId) -> Vec<(MemberId, Instant)> {
        let connections = self.rooms.get(&room).into_iter().flat_map(|seated| &seated.connections);
        let linked = connections.filter_map(|(member, connection)| {
            let state = self.connections.get(connection).filter(|state| state.away.is_none())?;
            Some((*member, state.session.last_heard()))
        });
        linked.collect()
    }

    /// The session that a connection has is over: what waited for its member as the authority is for the next one.
    pub(super) fn save_undelivered(&mut self, room: RoomId, member: MemberId, connection: ConnectionId) {
        if let Some((seated, state)) = self.rooms.get_mut(&room).zip(self.connections.get(&connection)) {
            seated.save_undelivered(member, state.session.unacknowledged());
        }
    }

    /// Before another member may take a member's part as the authority: tells its room which messages may have been taken, for
    /// they are not acknowledged.
    pub(super) fn tell_untaken(&mut self, room: RoomId, member: MemberId, now: Instant) {
        let Some(seated) = self.rooms.get(&room) else { return };
        if seated.room.lease().is_none_or(|(host, _)| host != member) {
            return;
        }
        let epoch = seated.room.epoch();
        let state = seated.connections.get(&member).and_then(|connection| self.connections.get(connection));
        let waiting = state.iter().flat_map(|state| state.session.unacknowledged());
        let waiting = waiting.filter(|(_, message)| for_authority(message, epoch, epoch).is_some());
        let waiting = waiting.map(|(number, _)| number);
        let saved = seated.undelivered.iter().map(|(number, _)| *number);
        if let Some(number) = waiting.chain(saved).max() {
            self.tell(room, room::Input::Untaken { number }, now);
        }
    }

    /// Another member is the authority: it is sent what the one before has not acknowledged, and what is not in the state.
    pub(super) fn pass_on(&mut self, room: RoomId, succession: &Succession, now: Instant) {
        let Succession { from, to, epoch, taken } = *succession;
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        let Some(connection) = seated.connections.get(&to).copied() else { return };
        let mut missed = std::mem::take(&mut seated.undelivered);
        let older = from.and_then(|from| seated.connections.get(&from));
        let older = older.and_then(|older| self.connections.get(older));
        missed.extend(older.iter().flat_map(|state| state.session.unacknowledged()));
        for (_, message) in missed.iter().filter(|(number, _)| *number >= taken) {
            if let Some(message) = for_authority(message, epoch, Epoch(epoch.0 + 1)) {
                self.send(connection, message, now);
            }
        }
    }

    /// A member's session is over for `reason`: whether that ends its room, because the host says so.
    pub(super) fn ends_room(&self, room: RoomId, member: MemberId, reason: &CloseReason) -> bool {
        let authority = self.rooms.get(&room).and_then(|seated| seated.room.authority().member());
        *reason == CloseReason::HostLeft && authority == Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_millis(400);

    fn patience_ms(rhythm: &Rhythm, now_ms: u64) -> u128 {
        rhythm.patience(SILENCE, Instant::from_millis(now_ms)).as_millis()
    }

    #[test]
    fn who_was_heard_regularly_is_missed_sooner() {
        let mut rhythm = Rhythm::new(Instant::ZERO);
        let hear = |rhythm: &mut Rhythm, ms: u64, at_ms: u64| {
            rhythm.heard(Duration::from_millis(ms), Instant::from_millis(at_ms));
        };
        // A handshake waits for answers.
        hear(&mut rhythm, 300, 999);
        hear(&mut rhythm, 33, 2_000);
        assert_eq!(patience_ms(&rhythm, 2_999), 400, "nothing is known yet");
        assert_eq!(patience_ms(&rhythm, 3_000), 300);
        hear(&mut rhythm, 140, 3_000);
        assert_eq!(patience_ms(&rhythm, 3_000), 350);
        hear(&mut rhythm, 300, 4_000);
        assert_eq!(patience_ms(&rhythm, 4_000), 400);
        // A long pause counts in its span and in the next one.
        hear(&mut rhythm, 50, 15_000);
        hear(&mut rhythm, 50, 29_999);
        assert_eq!(patience_ms(&rhythm, 29_999), 400);
        hear(&mut rhythm, 50, 30_000);
        assert_eq!(patience_ms(&rhythm, 30_000), 300);
    }
}
