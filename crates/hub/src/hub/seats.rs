//! Between sessions and rooms: what a member's session heard goes to its room, and what the room wants is done.

use super::{Happening, Hub, Output};
use crate::room::{self, Setup};
use parlor_proto::session::{Message, Outgoing, SendError};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::{CloseReason, ConnectionId, Instant, MemberId, RoomId};

impl Hub {
    pub(super) fn heard(&mut self, connection: ConnectionId, message: Message, now: Instant) {
        let Some((room, from)) = self.connections.get(&connection).and_then(|state| state.seat) else {
            return;
        };
        if let Some(seated) = self.rooms.get_mut(&room) {
            seated.held.messages += 1;
            seated.held.came_us += now.as_micros();
        }
        let Message { channel, key, payload, epoch, .. } = message;
        self.tell(room, room::Input::Message { from, channel, key, payload, epoch }, now);
    }

    pub(super) fn fate(&mut self, seat: Option<(RoomId, MemberId)>, tag: u64, delivered: bool, now: Instant) {
        if let Some((room, member)) = seat {
            self.tell(room, room::Input::Fate { member, tag, delivered }, now);
        }
    }

    pub(super) fn vacate(&mut self, room: RoomId, member: MemberId, reason: LeaveReason, now: Instant) {
        if let Some(seated) = self.rooms.get_mut(&room) {
            let code = seated.room.setup().code;
            if seated.connections.remove(&member).is_some() {
                let left = Happening::Left { code, member, reason: reason.clone() };
                self.outputs.push_back(Output::Happened(left));
            }
        }
        self.tell_untaken(room, member, now);
        self.tell(room, room::Input::Leave { member, reason }, now);
    }

    /// Tells a room something and does what it wants done.
    pub(super) fn tell(&mut self, id: RoomId, input: room::Input, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        if self.config.record {
            let bytes = room::log::entry(now, &input);
            self.outputs.push_back(Output::Recorded { room: id, bytes });
        }
        seated.is_told = true;
        let is_lost = matches!(input, room::Input::Fate { delivered: false, .. });
        let before = seated.room.counters();
        let handled = seated.room.handle(input, now);
        self.stats.add_room(&before, &seated.room.counters());
        if is_lost {
            // Not in this turn: an update that finds no place in a queue is lost at once, and so would be the next.
            self.schedule_release(id, now);
        } else {
            self.schedule_flush(id, now);
        }
        if let Err((member, how)) = handled {
            return self.expel(id, member, how, now);
        }
        while let Some(seated) = self.rooms.get_mut(&id)
            && let Some(output) = seated.room.poll_output()
        {
            match output {
                room::Output::Send { to, message } => {
                    let to: Vec<ConnectionId> =
                        to.iter().filter_map(|member| seated.connections.get(member).copied()).collect();
                    to.into_iter().for_each(|connection| self.send(connection, message.clone(), now));
                }
                room::Output::Epoch { epoch } => {
                    for connection in seated.connections.values() {
                        if let Some(state) = self.connections.get_mut(connection) {
                            state.session.set_epoch(epoch);
                        }
                    }
                }
                room::Output::Succession(succession) => self.pass_on(id, &succession, now),
                room::Output::Kept { number, entry } => {
                    let Setup { code, app, environment, .. } = seated.room.setup();
                    let (app, environment) = (app.clone(), environment.clone());
                    let kept = Output::Kept { room: id, code: *code, app, environment, number, entry };
                    self.outputs.push_back(kept);
                }
                room::Output::Remove { member, reason } => {
                    if let Some(connection) = seated.connections.remove(&member) {
                        self.remove(connection, reason, now);
                    }
                }
                room::Output::Ended { reason } => self.end(id, reason),
            }
        }
        if self.rooms.get(&id).is_some_and(|seated| seated.room.is_empty()) {
            self.end(id, CloseReason::Left);
        }
    }

    pub(super) fn send(&mut self, connection: ConnectionId, message: Outgoing, now: Instant) {
        self.touch(connection, now);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        match state.session.send(message) {
            Ok(()) => {}
            Err(SendError::Full) => state.session.close(CloseReason::TooSlow, now),
            // The session is over and its events, which wait to be read, say so. Nothing else can be wrong: a room
            // refuses what would not fit with its envelope around it, and what the sender's session took on a channel
            // is in the table of every member.
            Err(SendError::Misuse(_)) => {
                debug_assert!(!state.session.is_open(), "a room sends what its members' sessions take");
            }
        }
    }

    /// Ends a session whose member its room has forgotten already.
    fn remove(&mut self, connection: ConnectionId, reason: CloseReason, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let seat = state.seat.take();
        state.session.close(reason.clone(), now);
        self.touch(connection, now);
        if let Some((room, member)) = seat
            && let Some(seated) = self.rooms.get(&room)
        {
            let (code, reason) = (seated.room.setup().code, leave_reason(&reason));
            self.outputs.push_back(Output::Happened(Happening::Left { code, member, reason }));
        }
    }

    pub(super) fn end(&mut self, id: RoomId, reason: CloseReason) {
        let Some(seated) = self.rooms.remove(&id) else { return };
        self.touched.extend(seated.touched);
        let code = seated.room.setup().code;
        self.directory.remove(code);
        self.outputs.push_back(Output::Happened(Happening::RoomEnded { code, reason }));
    }
}

/// What the others are told when a session ends that the room did not end: by its member's goodbye, or by itself. A goodbye
/// can say anything, but only the authority removes members.
pub(super) fn leave_reason_of_member(reason: &CloseReason) -> LeaveReason {
    match leave_reason(reason) {
        LeaveReason::Kicked { .. } => LeaveReason::Left,
        reason => reason,
    }
}

fn leave_reason(reason: &CloseReason) -> LeaveReason {
    match reason {
        CloseReason::Left => LeaveReason::Left,
        CloseReason::Kicked { reason } => LeaveReason::Kicked { reason: reason.clone() },
        CloseReason::TimedOut => LeaveReason::TimedOut,
        CloseReason::Misbehaved { .. } => LeaveReason::Misbehaved,
        CloseReason::TooSlow | CloseReason::NotPolled => LeaveReason::TooSlow,
        CloseReason::HostLeft
        | CloseReason::HostGone
        | CloseReason::RoomEnded { .. }
        | CloseReason::ServerShutdown => LeaveReason::Left,
        CloseReason::ConnectionLost { .. } | CloseReason::TokenReused | CloseReason::Unknown { .. } => {
            LeaveReason::ConnectionLost
        }
    }
}
