//! One cycle of the hub: runs due timers, flushes rooms, and packs what waits for each connection.

use super::{Hub, Output};
use crate::room;
use parlor_proto::wire::control::{LeaveReason, Presence};
use parlor_proto::{CloseReason, ConnectionId, Instant, RoomId, SessionId, limits};
use std::cmp::Reverse;
use std::time::Duration;

/// How often a room receives measurements of its members.
pub(super) const MEASURE_INTERVAL: Duration = Duration::from_secs(1);
/// Distant connection timers are rounded down to multiples of this.
const SHARED_MOMENTS: Duration = Duration::from_secs(4);
/// What members read when their room ends because its node was cut off for too long.
const CUT_OFF: &str = "this server was cut off from its store for too long";
/// Maximum delay before budget queues and lost updates are checked again.
const RELEASE_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Connection(ConnectionId),
    /// It may have more packets than the cap per turn allowed.
    More(ConnectionId),
    /// A kept seat may have expired.
    Grace(ConnectionId),
    /// Members of a reopened room may not have come.
    Expected(RoomId),
    /// Members of a room that moved here may not have come.
    Arrivals(RoomId),
    /// The close reason of an ended session may be forgotten.
    Ended(SessionId),
    /// Time to check whether the host is heard.
    HostTimeout(RoomId),
    /// Time to pass on measurements.
    Measure(RoomId),
    /// The next input of a delayed copy is due.
    Delayed(RoomId),
    /// A held-back flush is due.
    Flush(RoomId),
    /// Budgets may allow queued messages, and lost updates can be sent again.
    Release(RoomId),
}

impl Hub {
    /// Runs due timers. Call it when [`poll_timeout`](Self::poll_timeout) is due, after passing in all
    /// pending arrivals: the delay of the call measures how late the hub itself runs.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.lateness.ran(self.poll_timeout().unwrap_or(now), now);
        if let Some(cluster) = &mut self.cluster {
            cluster.turn(now);
        }
        while let Some(&Reverse((due, timer))) = self.timers.peek()
            && due <= now
        {
            self.timers.pop();
            match timer {
                Timer::Connection(connection) => self.connection_due(connection, due, now),
                Timer::More(connection) => self.touch(connection, now),
                Timer::Grace(connection) => self.grace_over(connection, now),
                Timer::Expected(room) => self.expected_over(room, now),
                Timer::Arrivals(room) => self.arrivals_over(room, now),
                Timer::Ended(session) => drop(self.ended.remove(&session)),
                Timer::HostTimeout(room) => self.look_at_host(room, now),
                Timer::Measure(room) => self.measure(room, now),
                Timer::Delayed(copy) => self.run_copy(copy, now),
                Timer::Flush(room) => self.due_rooms.push(room),
                Timer::Release(room) => self.release(room, now),
            }
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due. There may be nothing to do then.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((due, _))| *due)
    }

    /// Flushes rooms and packs waiting data: at most one packet of each kind per receiver.
    pub fn flush(&mut self, now: Instant) {
        // Packing may end a session or give up an update, which can make its room produce more output. So does
        // freeing a kept seat.
        while !self.due_rooms.is_empty()
            || !self.touched.is_empty()
            || self.trim_kept(now)
            || self.trim_gone(now)
        {
            while let Some(room) = self.due_rooms.pop() {
                self.flush_room(room, now);
            }
            while let Some(connection) = self.touched.pop() {
                self.pack(connection, now);
            }
        }
    }

    fn flush_room(&mut self, room: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get(&room) else { return };
        let (is_told, had_waiting) = (seated.is_told, seated.room.has_waiting());
        if is_told {
            self.tell(room, room::Input::Flush, now);
        }
        if had_waiting {
            self.hold_back(room, now);
        }
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        (seated.flush_at, seated.is_told) = (None, false);
        let has_waiting = seated.room.has_waiting();
        let held = std::mem::take(&mut seated.held);
        self.stats.flush_waits += held.messages;
        self.stats.flush_wait_us += held.messages * now.as_micros() - held.came_us;
        let mut touched = std::mem::take(&mut seated.touched);
        touched.iter().for_each(|connection| self.pack(*connection, now));
        touched.clear();
        if has_waiting {
            self.schedule_release(room, now);
        }
        // Reuses the list's allocation, unless packing has started another list.
        if let Some(seated) = self.rooms.get_mut(&room)
            && seated.touched.is_empty()
        {
            seated.touched = touched;
        }
    }

    /// Pauses senders whose queue is full; resumes drained ones.
    fn hold_back(&mut self, room: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get(&room) else { return };
        let holds: Vec<(ConnectionId, bool)> = seated
            .connections
            .iter()
            .map(|(member, connection)| (*connection, seated.room.holds_back(*member)))
            .collect();
        for (connection, hold) in holds {
            if let Some(state) = self.connections.get_mut(&connection) {
                state.session.hold_acks(hold);
            }
            self.touch(connection, now);
        }
    }

    /// Schedules a flush of a room soon, even without input.
    pub(super) fn schedule_release(&mut self, room: RoomId, now: Instant) {
        if let Some(seated) = self.rooms.get_mut(&room).filter(|seated| seated.release_at.is_none()) {
            let at = now + RELEASE_INTERVAL;
            seated.release_at = Some(at);
            self.timers.push(Reverse((at, Timer::Release(room))));
        }
    }

    fn release(&mut self, room: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        (seated.release_at, seated.is_told) = (None, true);
        self.schedule_flush(room, now);
    }

    /// Marks a connection as possibly having packets to send.
    pub(super) fn touch(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if std::mem::replace(&mut state.is_touched, true) {
            return;
        }
        match state.seat.and_then(|(room, _)| Some((room, self.rooms.get_mut(&room)?))) {
            Some((room, seated)) => {
                seated.touched.push(connection);
                self.schedule_flush(room, now);
            }
            None => self.touched.push(connection),
        }
    }

    /// Schedules a flush of a room: at the end of this turn, or when its quantum is over.
    pub(super) fn schedule_flush(&mut self, room: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&room).filter(|seated| seated.flush_at.is_none()) else {
            return;
        };
        let at = now + self.config.flush_quantum;
        seated.flush_at = Some(at);
        if at == now {
            self.due_rooms.push(room);
        } else {
            self.timers.push(Reverse((at, Timer::Flush(room))));
        }
    }

    fn pack(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.is_touched = false;
        if state.is_sealed {
            return;
        }
        if let Some((room, _)) = state.seat
            && let Some(seated) = self.rooms.get(&room)
        {
            state.session.set_tick(seated.room.tick_at(now));
        }
        let mut handed_bytes = 0;
        while state.writable
            && handed_bytes < limits::HAND_OUT_BYTES
            && let Some(packet) = state.session.poll_packet(now)
        {
            handed_bytes += packet.bytes.len();
            self.stats.packets_sent += 1;
            self.stats.bytes_sent += packet.bytes.len() as u64;
            self.outputs.push_back(Output::Packet { connection, packet });
        }
        if handed_bytes >= limits::HAND_OUT_BYTES {
            self.timers.push(Reverse((now, Timer::More(connection))));
        }
        self.drain_events(connection, now);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if state.session.is_finished() {
            let (reason, has_link) = (state.over, state.away.is_none());
            self.forget(connection, LeaveReason::Left, now);
            if has_link {
                self.outputs.push_back(Output::Close { connection, reason });
            }
            return;
        }
        self.schedule(connection, now);
    }

    /// Schedules the connection's next timeout, unless an earlier entry exists. A distant timeout usually
    /// moves before it is due, so it is checked earlier, at a moment shared with all connections: an idle hub
    /// then wakes once for all.
    fn schedule(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let Some(due) = state.session.poll_timeout() else { return };
        let period_us = u64::try_from(SHARED_MOMENTS.as_micros()).unwrap_or(u64::MAX);
        let shared = Instant::from_micros(due.as_micros() / period_us * period_us);
        let at = if shared > now { shared } else { due };
        if state.timer.is_none_or(|timer| at < timer) {
            state.timer = Some(at);
            self.timers.push(Reverse((at, Timer::Connection(connection))));
        }
    }

    fn connection_due(&mut self, connection: ConnectionId, due: Instant, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if state.timer != Some(due) {
            return;
        }
        state.timer = None;
        if state.is_sealed {
            return;
        }
        if state.session.poll_timeout().is_some_and(|due| due <= now) {
            state.session.handle_timeout(now);
            self.drain_events(connection, now);
            self.touch(connection, now);
        }
        self.schedule(connection, now);
    }

    fn measure(&mut self, room: RoomId, now: Instant) {
        if self.cluster.as_ref().is_some_and(|cluster| cluster.is_over(now)) {
            let reason = CloseReason::RoomEnded { reason: CUT_OFF.to_owned() };
            return self.tell(room, room::Input::End { reason }, now);
        }
        self.expire_gone(room, now);
        let Some(seated) = self.rooms.get(&room) else { return };
        self.timers.push(Reverse((now + MEASURE_INTERVAL, Timer::Measure(room))));
        let measured: Vec<Presence> = seated
            .connections
            .iter()
            .filter_map(|(member, connection)| Some(self.connections.get_mut(connection)?.measure(*member)))
            .collect();
        for presence in measured {
            self.tell(room, room::Input::Measured(presence), now);
        }
    }
}
