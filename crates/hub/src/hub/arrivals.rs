//! A room that moved here: its members' sessions wait for their connections.
//!
//! Each member has a session without a link, like one whose connection was lost, so what the others say to it meanwhile is
//! not lost. Its room hears that it is away only if it does not come soon.

use super::cycle::Timer;
use super::resume::{Away, welcome_to};
use super::tokens::Family;
use super::{Connection, Hub};
use crate::admission_policy::Origin;
use crate::cluster::pass::Pass;
use crate::room;
use crate::room::roster::{Claimed, ClaimedSeat};
use crate::room::snapshot::{MovedSeat, Snapshot};
use bytes::Bytes;
use parlor_proto::session::{Answer, Carried, Session};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::{ResumeToken, Welcome, capability};
use parlor_proto::{ConnectionId, Instant, LinkKind, MemberId, RoomId};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a member may take until the others hear that it is away.
const ARRIVES: Duration = Duration::from_secs(2);
/// How long a room may have been under way.
const UNDER_WAY_MAX: Duration = Duration::from_secs(60);

/// The snapshot of a room that moved here.
pub(super) struct Moved {
    snapshot: Snapshot,
    sessions: BTreeMap<MemberId, Carried>,
}

impl Moved {
    /// Reads it whole. `None` for no snapshot, and for one that is malformed.
    pub(super) fn read(bytes: Bytes) -> Option<Self> {
        let snapshot = Snapshot::decode(bytes).ok()?;
        let read = |(member, seat): (&MemberId, &MovedSeat)| {
            Some((*member, Carried::decode(seat.session.clone()).ok()?))
        };
        let sessions = snapshot.seats.iter().map(read).collect::<Option<_>>()?;
        Some(Moved { snapshot, sessions })
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// How long the room has been open by now. A member's time has what passed meanwhile, and is taken within bounds.
    pub(super) fn room_time(&self, told: Duration) -> Duration {
        let sealed = Duration::from_micros(self.snapshot.room_time_us);
        told.clamp(sealed, sealed + UNDER_WAY_MAX)
    }
}

impl Hub {
    /// Makes the sessions of a room that moved here.
    pub(super) fn expect_sessions(&mut self, id: RoomId, moved: Moved, now: Instant) {
        let Some(seated) = self.rooms.get(&id) else { return };
        let (channels, grace) = (seated.room.setup().channels.clone(), seated.room.grace(self.config.grace));
        let until = now + grace;
        let Moved { snapshot, sessions } = moved;
        for (member, carried) in sessions {
            let found = snapshot.roster.members.get(&member).zip(snapshot.seats.get(&member));
            let Some((known, seat)) = found else { continue };
            let connection = ConnectionId(self.next_nameless);
            self.next_nameless -= 1;
            let MovedSeat { token, before, kept, .. } = seat;
            let state = Connection {
                seat: Some((id, member)),
                family: Some(Family::moved(*token, *before, known.generation)),
                away: Some(Away { until, reason: LeaveReason::ConnectionLost, is_told: !kept.is_connected }),
                continues: true,
                moves: true,
                ..Connection::new(
                    Session::waiting(channels.clone(), carried, now),
                    (LinkKind::Memory, Origin::LOCAL),
                    now,
                )
            };
            self.connections.insert(connection, Box::new(state));
            self.timers.push(Reverse((until, Timer::Grace(connection))));
            let Some(seated) = self.rooms.get_mut(&id) else { return };
            seated.connections.insert(member, connection);
            if let Some(user) = &known.user {
                self.index.joined(seated, member, user);
            }
            self.weigh_kept(connection);
        }
        if let Some(seated) = self.rooms.get_mut(&id) {
            seated.arrives = true;
            self.timers.push(Reverse((now + ARRIVES, Timer::Arrivals(id))));
        }
    }

    /// Tells a room that moved here which of its members have not come.
    pub(super) fn arrivals_over(&mut self, id: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        seated.arrives = false;
        let waiting: Vec<ConnectionId> = seated.connections.values().copied().collect();
        for connection in waiting {
            let seat = self.connections.get(&connection).and_then(|state| state.seat);
            if seat.is_some_and(|seat| !self.heir_waits(seat)) {
                self.tell_away(connection, now);
            }
        }
    }

    /// Whether the messages of a member's session go on in the session that claims its seat.
    pub(super) fn continues(&self, connection: ConnectionId) -> bool {
        self.connections
            .get(&connection)
            .is_some_and(|state| state.continues && !state.session.has_heard_peer())
    }

    /// Lets a member go on whose session waits here.
    pub(super) fn go_on_claimed(
        &mut self,
        connection: ConnectionId,
        older: ConnectionId,
        pass: &Pass,
        (used, next): (&ResumeToken, ResumeToken),
        welcome: Welcome,
        now: Instant,
    ) {
        let Some((room, member, mut session)) = self.take_over(connection, older, Some(used), &next) else {
            return;
        };
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let forgotten = state.family.as_mut().and_then(|family| {
            family.follows(pass.generation);
            family.renamed(welcome.session)
        });
        if let Some(forgotten) = forgotten {
            self.sessions.remove(&forgotten);
        }
        self.sessions.insert(welcome.session, connection);
        let link = state.link;
        (state.continues, state.lagged) = (true, 0);
        state.session.set_resumable(true);
        state.session.go_on_with(session.take_carried());
        let capabilities = welcome.capabilities | capability::CONTINUES;
        let welcome = welcome_to(member, Welcome { capabilities, ..welcome }, next);
        state.session.answer(Answer::Welcome(Box::new(welcome)), now);
        self.stats.resumed += 1;
        let spectates = self.rooms.get(&room).is_some_and(|seated| seated.room.spectates(member));
        let seat = ClaimedSeat { member, name: pass.name.clone(), user: pass.user.clone(), link, spectates };
        self.tell(room, room::Input::Claimed { seat, how: Claimed::Continues }, now);
        self.tell_of_link(room, member, connection, now);
        self.told_back(room, member, connection, false);
    }
}
