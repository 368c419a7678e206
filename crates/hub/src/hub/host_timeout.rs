//! Host failure detection, in rooms where another member takes over the host role.
//!
//! A room's settings have its host timeout. Its bounds and its default stand in `parlor_proto::limits` (`HOST_TIMEOUT_MS_…`).
//!
//! What counts is when the hub last received anything from the host's session. The host's transport sends
//! keep-alives even while its game is blocked. A host with regular packets times out sooner than one with a
//! jittery connection. Time during which the hub itself ran late does not count as silence: the timeout grows
//! by the hub's own delays.

use super::cycle::Timer;
use super::gone::Place;
use super::{Hub, Seated};
use crate::cluster::tenure::Decision;
use crate::room::{self, Room, Succession, for_authority};
use parlor_proto::session::Outgoing;
use parlor_proto::{CloseReason, ConnectionId, Epoch, Instant, MemberId, RoomId};
use std::cmp::Reverse;
use std::time::Duration;

/// Keep-alives per host timeout.
const SIGNS_OF_LIFE: u32 = 5;

/// Returns the keep-alive interval of a room's members in ms; `None` if the host role cannot migrate.
pub(super) fn keep_alive_ms(room: &Room) -> Option<u32> {
    let (_, silence) = room.host_timeout()?;
    u32::try_from(silence.as_millis()).ok().map(|silence_ms| silence_ms / SIGNS_OF_LIFE)
}

/// The regularity of a session's packets: its longest recent pauses.
///
/// An accrual detector (Hayashibara et al., The φ accrual failure detector, 2004) fits a distribution to the
/// pauses, and its tail is only as good as the fit. The longest pause plus a margin needs no distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// When the first packet arrived.
    since: Instant,
    /// When the current span began, and the longest pauses in it and in the previous one.
    span_since: Instant,
    longest: [Duration; 2],
}

/// How far back pauses count: one to two spans.
const RHYTHM_SPAN: Duration = Duration::from_secs(15);
/// How long a new session's pauses reflect the handshake, and how long it must be observed after that.
const RHYTHM_BEGINS: Duration = Duration::from_secs(1);
const RHYTHM_KNOWN: Duration = Duration::from_secs(2);

impl Rhythm {
    pub(super) fn new(now: Instant) -> Self {
        Rhythm { since: now, span_since: now, longest: [Duration::ZERO; 2] }
    }

    /// Records a packet after a pause.
    pub(super) fn heard(&mut self, pause: Duration, now: Instant) {
        if now.saturating_since(self.since) < RHYTHM_BEGINS {
            return;
        }
        if now.saturating_since(self.span_since) >= RHYTHM_SPAN {
            (self.span_since, self.longest) = (now, [Duration::ZERO, self.longest[0]]);
        }
        self.longest[0] = self.longest[0].max(pause);
    }

    /// Returns how long a pause may be: two and a half times the longest recent one, clamped to between three
    /// quarters of the timeout and the whole, so that a single unusual pause is forgiven.
    fn patience(&self, silence: Duration, now: Instant) -> Duration {
        if now.saturating_since(self.since) < RHYTHM_BEGINS + RHYTHM_KNOWN {
            return silence;
        }
        let longest = self.longest[0].max(self.longest[1]);
        (longest * 5 / 2).clamp(silence * 3 / 4, silence)
    }
}

impl Seated {
    /// Saves what an ended session has not acknowledged as the authority, if its member is the authority. Returns
    /// the rest.
    pub(super) fn save_undelivered(
        &mut self,
        member: MemberId,
        missed: impl Iterator<Item = (u64, Outgoing)>,
    ) -> Vec<(u64, Outgoing)> {
        let epoch = self.room.epoch();
        let is_host = self.room.host_timeout().is_some_and(|(host, _)| host == member);
        let (of_authority, rest): (Vec<_>, Vec<_>) =
            missed.partition(|(_, message)| is_host && for_authority(message, epoch, epoch).is_some());
        self.undelivered.extend(of_authority);
        rest
    }
}

impl Hub {
    /// Starts the host timeout of a new room.
    pub(super) fn begin_host_timeout(&mut self, room: RoomId, seated: &Seated, now: Instant) {
        if let Some((_, silence)) = seated.room.host_timeout() {
            self.timers.push(Reverse((now + silence, Timer::HostTimeout(room))));
        }
    }

    /// Checks whether the host of a room is heard.
    pub(super) fn look_at_host(&mut self, room: RoomId, now: Instant) {
        let Some((host, silence)) = self.rooms.get(&room).and_then(|seated| seated.room.host_timeout())
        else {
            return;
        };
        let patience = self.patience(room, host, silence, now);
        let heard: Vec<(MemberId, Instant)> = self.heard_last(room);
        let of_host = heard.iter().find(|(member, _)| *member == host).map(|(_, at)| *at);
        let ends_at = of_host.map(|at| self.lateness.silent_at(at, patience));
        if ends_at.is_none_or(|at| at <= now) {
            // The heir's silence is judged without allowance for the hub's lateness. If no member is heard,
            // the network before the hub may be down.
            let heard: Vec<MemberId> =
                heard.into_iter().filter(|(_, at)| *at + patience > now).map(|(id, _)| id).collect();
            if !heard.is_empty() && !self.heir_waits((room, host)) {
                let seated = self.rooms.get(&room);
                let connection = seated.and_then(|seated| seated.connections.get(&host)).copied();
                let is_news = connection.is_some_and(|it| self.tell_away(it, now));
                if !is_news {
                    self.tell_untaken(room, host, now);
                    self.tell(room, room::Input::HostSilent { heard }, now);
                }
            }
        }
        let next = ends_at.filter(|at| *at > now);
        let soon = now + (silence / SIGNS_OF_LIFE).max(Duration::from_millis(1));
        self.timers.push(Reverse((next.unwrap_or(soon), Timer::HostTimeout(room))));
    }

    /// Whether a member is the host of a room that may get another host, on a node that may name none: without a
    /// lease another node may be about to open the room, and two hosts would have the same epoch.
    pub(super) fn heir_waits(&self, (room, member): Place) -> bool {
        let may_name = self.cluster.as_ref().is_none_or(|cluster| cluster.may(Decision::NameHost));
        let room = self.rooms.get(&room).filter(|_| !may_name).map(|seated| &seated.room);
        room.and_then(Room::host_timeout).is_some_and(|(host, _)| host == member)
    }

    /// Returns the host's timeout, given how regularly it was heard.
    fn patience(&self, room: RoomId, host: MemberId, silence: Duration, now: Instant) -> Duration {
        let connection = self.rooms.get(&room).and_then(|seated| seated.connections.get(&host));
        let state = connection.and_then(|connection| self.connections.get(connection));
        // On a stream one lost packet causes a pause without earlier signs.
        let state = state.filter(|state| state.link.has_datagrams());
        state.map_or(silence, |state| state.rhythm.patience(silence, now))
    }

    /// Returns when each connected member of a room was last heard.
    fn heard_last(&self, room: RoomId) -> Vec<(MemberId, Instant)> {
        let connections = self.rooms.get(&room).into_iter().flat_map(|seated| &seated.connections);
        let linked = connections.filter_map(|(member, connection)| {
            let state = self.connections.get(connection).filter(|state| state.away.is_none())?;
            Some((*member, state.session.last_heard()))
        });
        linked.collect()
    }

    /// Saves an ended session's unacknowledged messages for the authority, for the next authority.
    pub(super) fn save_undelivered(&mut self, room: RoomId, member: MemberId, connection: ConnectionId) {
        if let Some((seated, state)) = self.rooms.get_mut(&room).zip(self.connections.get(&connection)) {
            drop(seated.save_undelivered(member, state.session.unacknowledged()));
        }
    }

    /// Before the authority may change: tells a room which messages it may have processed unacknowledged.
    pub(super) fn tell_untaken(&mut self, room: RoomId, member: MemberId, now: Instant) {
        let Some(seated) = self.rooms.get(&room) else { return };
        if seated.room.host_timeout().is_none_or(|(host, _)| host != member) {
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

    /// Sends the new authority what the old one has not acknowledged and the state does not contain.
    pub(super) fn pass_on(&mut self, room: RoomId, succession: &Succession, now: Instant) {
        let Succession { from, to, epoch, taken } = *succession;
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        let Some(connection) = seated.connections.get(&to).copied() else { return };
        let mut missed = std::mem::take(&mut seated.undelivered);
        // A new process of the same member has a new session; what the old one missed was saved.
        let older = from.filter(|from| *from != to).and_then(|from| seated.connections.get(&from));
        let older = older.and_then(|older| self.connections.get(older));
        missed.extend(older.iter().flat_map(|state| state.session.unacknowledged()));
        for (_, message) in missed.iter().filter(|(number, _)| *number >= taken) {
            if let Some(message) = for_authority(message, epoch, Epoch(epoch.0 + 1)) {
                self.send(connection, message, now);
            }
        }
    }

    /// Whether a member's goodbye ends its room: the host closed it.
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
