//! Connects sessions and rooms: passes session messages to rooms and executes rooms' outputs.

use super::gone::Place;
use super::{Hub, HubEvent, Output};
use crate::room::{self, Setup};
use parlor_proto::session::{Message, Outgoing, SendError};
use parlor_proto::wire::control::{HandOverRefusal, LeaveReason, ToHub, ToMember};
use parlor_proto::{CloseReason, ConnectionId, Instant, MemberId, PeerMisbehaved, RoomId, channel};

/// What a member reads that cannot claim its seat where its room is.
const ELSEWHERE: &str = "this room goes on at another server";

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
        if channel == channel::CONTROL && ToHub::is_hand_over(&payload) {
            if self.heir_waits((room, from)) {
                let refusal = ToMember::NotHandedOver(HandOverRefusal::TooSoon).encode();
                return self.send(connection, Outgoing::new(channel::CONTROL, refusal), now);
            }
            self.tell_untaken(room, from, now);
        }
        self.tell(room, room::Input::Message { from, channel, key, payload, epoch }, now);
    }

    pub(super) fn fate(
        &mut self,
        seat: Option<(RoomId, MemberId)>,
        delivery_id: u64,
        delivered: bool,
        now: Instant,
    ) {
        if let Some((room, member)) = seat {
            self.tell(room, room::Input::Fate { member, delivery_id, delivered }, now);
        }
    }

    /// Frees a seat. The room forgets its member, unless it `is_remembered` because it may return.
    pub(super) fn vacate(
        &mut self,
        (room, member): Place,
        reason: LeaveReason,
        is_remembered: bool,
        now: Instant,
    ) {
        let has_no_heir = self.heir_waits((room, member));
        if let Some(seated) = self.rooms.get_mut(&room) {
            let code = seated.room.setup().code;
            if self.index.left(seated, member).is_some() {
                let left = HubEvent::Left { code, member, reason: reason.clone() };
                self.outputs.push_back(Output::Event(left));
            }
        }
        if has_no_heir {
            // A node may end a room at any time. Its host is gone for good, and nobody may take its place.
            let reason =
                if reason == LeaveReason::Left { CloseReason::HostLeft } else { CloseReason::HostGone };
            return self.tell(room, room::Input::End { reason }, now);
        }
        self.tell_untaken(room, member, now);
        let left = match is_remembered {
            true => room::Input::Lost { member, reason },
            false => room::Input::Leave { member, reason },
        };
        self.tell(room, left, now);
    }

    /// Passes an input to a room and executes its outputs. A misbehaving member is removed after that: a room
    /// gets no input while its outputs are half executed.
    pub(super) fn tell(&mut self, id: RoomId, input: room::Input, now: Instant) {
        let grows = growth(&input);
        let fault = self.pass_in(id, input, now);
        self.obey(id, now);
        if let Some((member, how)) = fault {
            self.expel(id, member, how, now);
        }
        if let Some(from) = grows {
            self.weigh(id, from, now);
        }
        while let Some(copy) = self.grown_copies.pop() {
            self.weigh(copy, None, now);
        }
    }

    /// Lets a room handle an input. Returns the member at fault, if any.
    fn pass_in(
        &mut self,
        id: RoomId,
        input: room::Input,
        now: Instant,
    ) -> Option<(MemberId, PeerMisbehaved)> {
        let seated = self.rooms.get_mut(&id)?;
        if self.config.record && !seated.is_copy() {
            let bytes = room::log::entry(now, &input);
            self.outputs.push_back(Output::Recorded { room: id, bytes });
        }
        seated.is_told = true;
        let copied = seated.copy().and_then(|copy| Some((copy, input.copied()?)));
        let is_lost = matches!(input, room::Input::Fate { delivered: false, .. });
        let before = seated.room.counters();
        let handled = seated.room.handle(input, now);
        if !seated.is_copy() {
            self.stats.add_room(&before, &seated.room.counters());
        }
        if is_lost {
            // Not in this turn: an update that finds its queue full is lost at once, as would be the next.
            self.schedule_release(id, now);
        } else {
            self.schedule_flush(id, now);
        }
        if let Some((copy, input)) = copied {
            self.delay(copy, input, now);
        }
        handled.err()
    }

    /// Executes a room's outputs.
    fn obey(&mut self, id: RoomId, now: Instant) {
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
                    seated.host_since = Some(now);
                    for connection in seated.connections.values() {
                        if let Some(state) = self.connections.get_mut(connection) {
                            state.session.set_epoch(epoch);
                        }
                    }
                    self.tell_seats(Some(id), now);
                }
                room::Output::Succession(succession) => self.pass_on(id, &succession, now),
                room::Output::Kept { number, entry } => {
                    let Setup { code, app, environment, .. } = seated.room.setup();
                    let (app, environment) = (app.clone(), environment.clone());
                    let kept = Output::Kept { room: id, code: *code, app, environment, number, entry };
                    self.outputs.push_back(kept);
                }
                room::Output::Remove { member, reason } => {
                    if let Some(connection) = self.index.left(seated, member) {
                        self.remove(connection, reason, now);
                    }
                }
                room::Output::Forgotten { member } => drop(self.take_gone((id, member))),
                room::Output::Terms { by } => {
                    let (presence, connection) = (seated.room.presence(), seated.connections.get(&by));
                    let keep_alive = super::host_timeout::keep_alive_ms(&seated.room);
                    if let Some(state) = connection.and_then(|it| self.connections.get_mut(it)) {
                        let limits = super::admission::limits(&self.config, presence, keep_alive);
                        state.session.set_terms(limits.keep_alive_ms, limits.silence_ms);
                    }
                }
                room::Output::Ended { reason } => self.end(id, reason, now),
            }
        }
        if self.rooms.get(&id).is_some_and(|seated| seated.is_abandoned()) {
            self.end(id, CloseReason::Left, now);
        }
    }

    pub(super) fn send(&mut self, connection: ConnectionId, message: Outgoing, now: Instant) {
        self.touch(connection, now);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let is_kept = state.away.is_some();
        match state.session.send(message) {
            Ok(()) => {}
            Err(SendError::Full) => state.session.close(CloseReason::TooSlow, now),
            // The session is over, and its pending events say so. No other error is possible: a room refuses
            // what would not fit with its envelope, and every member's table has the channels that the
            // sender's session accepted.
            Err(SendError::Misuse(_)) => {
                debug_assert!(!state.session.is_open(), "a room sends what its members' sessions take");
            }
        }
        if is_kept {
            self.weigh_kept(connection);
        }
    }

    /// Ends the session of a member that its room has already forgotten.
    fn remove(&mut self, connection: ConnectionId, reason: CloseReason, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let seat = state.seat.take();
        let reason = match reason {
            CloseReason::Moved { .. } if !state.moves => CloseReason::RoomEnded { reason: ELSEWHERE.into() },
            reason => reason,
        };
        state.session.close(reason.clone(), now);
        self.touch(connection, now);
        if let Some((room, member)) = seat
            && let Some(seated) = self.rooms.get(&room)
        {
            let (code, reason) = (seated.room.setup().code, leave_reason(&reason));
            self.outputs.push_back(Output::Event(HubEvent::Left { code, member, reason }));
        }
    }

    pub(super) fn end(&mut self, id: RoomId, reason: CloseReason, now: Instant) {
        let Some(mut seated) = self.rooms.remove(&id) else { return };
        self.index.ended(&mut seated);
        self.end_gone(id, &mut seated);
        self.uncount(&seated);
        if let Some(copy) = seated.copy() {
            self.end_later(copy, reason.clone(), now);
        }
        let is_copy = seated.is_copy();
        self.touched.extend(seated.touched);
        if is_copy {
            return;
        }
        let setup = seated.room.setup();
        let code = setup.code;
        self.directory.remove(code);
        if let Some(user) = &seated.keeper {
            self.policy.keep_ended(&setup.app, &setup.environment, user);
        }
        self.outputs.extend(seated.uid.map(|uid| Output::Left { code, uid }));
        self.outputs.push_back(Output::Event(HubEvent::RoomEnded { code, reason }));
    }
}

/// Whether an input may grow a room's memory, and which member sent it, if one did.
fn growth(input: &room::Input) -> Option<Option<MemberId>> {
    match input {
        room::Input::Message { from, channel: channel::STATE | channel::REPLICAS, .. } => Some(Some(*from)),
        room::Input::Join { .. } | room::Input::Claimed { .. } | room::Input::Flush => Some(None),
        _ => None,
    }
}

/// Returns the reason that the others receive when a session ends by its member's goodbye or by itself. A
/// goodbye can claim any reason, but only the authority kicks members.
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
        CloseReason::ConnectionLost { .. }
        | CloseReason::TokenReused
        | CloseReason::Moved { .. }
        | CloseReason::Unknown { .. } => LeaveReason::ConnectionLost,
    }
}
