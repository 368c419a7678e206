//! Looks whether hosts are heard, in rooms where another member takes the part of one that is not.
//!
//! What counts is when the hub heard the host's session last, whatever it said: the host's transport sends signs of life though its
//! game stands still.

use super::turn::Timer;
use super::{Hub, Seated};
use crate::room::{self, Room};
use parlor_proto::{CloseReason, Instant, MemberId, RoomId};
use std::cmp::Reverse;
use std::time::Duration;

/// Signs of life that are due within the time that a host may be silent.
const SIGNS_OF_LIFE: u32 = 5;

/// How often the members of a room show that they live, in ms; `None` if no member takes its host's part, and it does not matter.
pub(super) fn keep_alive_ms(room: &Room) -> Option<u32> {
    let (_, silence) = room.lease()?;
    u32::try_from(silence.as_millis()).ok().map(|silence_ms| silence_ms / SIGNS_OF_LIFE)
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
        let heard: Vec<(MemberId, Instant)> = self.heard_last(room);
        let is_due = |at: Instant| at + silence <= now;
        let of_host = heard.iter().find(|(member, _)| *member == host).map(|(_, at)| *at);
        if of_host.is_none_or(is_due) {
            // If nobody was heard, it may be the hub itself that stood still.
            let heard: Vec<MemberId> =
                heard.into_iter().filter(|(_, at)| !is_due(*at)).map(|(id, _)| id).collect();
            if !heard.is_empty() {
                self.tell(room, room::Input::HostSilent { heard }, now);
            }
        }
        let next = of_host.map(|at| at + silence).filter(|at| *at > now);
        let soon = now + (silence / SIGNS_OF_LIFE).max(Duration::from_millis(1));
        self.timers.push(Reverse((next.unwrap_or(soon), Timer::Lease(room))));
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

    /// A member's session is over for `reason`: whether that ends its room, because the host says so.
    pub(super) fn ends_room(&self, room: RoomId, member: MemberId, reason: &CloseReason) -> bool {
        let authority = self.rooms.get(&room).and_then(|seated| seated.room.authority().member());
        *reason == CloseReason::HostLeft && authority == Some(member)
    }
}
