//! What whoever runs the server asks of a hub: which rooms live, who is in one, that one ends, that somebody goes.

use super::news::{RoomSummary, summary};
use super::{Happening, Hub, Output, Seated};
use crate::room;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, PeerMisbehaved, RoomCode, RoomId,
};
use std::ops::Bound;

/// Rooms that are looked at in one call of [`Hub::rooms`], at most: whoever asks must not keep packets waiting.
pub const ROOMS_LOOKED_AT_MAX: usize = 256;

/// Which rooms are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomQuery {
    /// Those of this game alone.
    pub app: Option<String>,
    /// Those of these environments alone; of any if there are none.
    pub environments: Vec<String>,
    /// Matches that are so alone.
    pub matches: Option<MatchFilter>,
    /// Those whose codes come after this one.
    pub after: Option<RoomCode>,
    /// How many at most.
    pub limit: usize,
}

/// Which matches somebody may look for who was not given their ids: never those with a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFilter {
    /// Under which label; `None` for any.
    pub label: Option<String>,
    /// With so many members at least.
    pub members_min: usize,
    /// And so many at most; `None` for any number.
    pub members_max: Option<usize>,
    /// Only those that have a seat left.
    pub has_seat: bool,
}

/// Some rooms, in the order of their codes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomPage {
    /// The rooms that were found. There may be none although more follow: those that were looked at were of other games.
    pub rooms: Vec<RoomSummary>,
    /// Where to go on ([`RoomQuery::after`]), unless that was all.
    pub next: Option<RoomCode>,
}

/// A room and who is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomDetails {
    /// The room.
    pub room: RoomSummary,
    /// Its members, in the order in which they came.
    pub members: Vec<MemberSummary>,
}

/// A member as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSummary {
    /// Its id.
    pub id: MemberId,
    /// What it calls itself.
    pub name: String,
    /// The user that its token vouched for, if it had one: an account where the server gave out the token.
    pub user: Option<String>,
    /// How it is connected, or was last.
    pub link: LinkKind,
    /// Whether it has a connection; otherwise its seat is kept for a while.
    pub connected: bool,
    /// How long a packet takes to it and back, in milliseconds, if that was measured.
    pub rtt_ms: Option<u32>,
    /// Whether it is the room's host.
    pub is_host: bool,
}

/// There is nothing that could be done: no such room, or no such member in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotThere {
    /// No room has the code.
    Room,
    /// The room has no such member.
    Member,
}

impl Hub {
    /// Rooms that live, a part at a time. At most [`ROOMS_LOOKED_AT_MAX`] are looked at.
    #[must_use]
    pub fn rooms(&self, query: &RoomQuery) -> RoomPage {
        let after = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = self.directory.after(after).peekable();
        let (mut page, mut last) = (RoomPage::default(), None);
        for (code, id) in left.by_ref().take(ROOMS_LOOKED_AT_MAX) {
            last = Some(code);
            let room = self.rooms.get(&id).map(|seated| &seated.room).filter(|room| query.wants(room));
            page.rooms.extend(room.map(summary));
            if page.rooms.len() >= query.limit {
                break;
            }
        }
        page.next = last.filter(|_| left.peek().is_some());
        page
    }

    /// A room and who is in it.
    #[must_use]
    pub fn room_details(&self, code: RoomCode) -> Option<RoomDetails> {
        let room = &self.seated(code)?.1.room;
        Some(RoomDetails { room: summary(room), members: room.member_summaries() })
    }

    /// Ends a room. Its members are told the reason, which is cut to
    /// [`REASON_BYTES_MAX`](parlor_proto::limits::REASON_BYTES_MAX).
    ///
    /// # Errors
    /// [`NotThere::Room`].
    pub fn end_room(&mut self, code: RoomCode, reason: String, now: Instant) -> Result<(), NotThere> {
        let (id, _) = self.seated(code).ok_or(NotThere::Room)?;
        self.tell(id, room::Input::End { reason: CloseReason::RoomEnded { reason } }, now);
        Ok(())
    }

    /// Takes a member's seat. It is told the reason, and so are the others. If it is the host, another member becomes the host
    /// where the room can have one, and otherwise the room ends.
    ///
    /// # Errors
    /// [`NotThere`].
    pub fn remove_member(
        &mut self,
        code: RoomCode,
        member: MemberId,
        reason: String,
        now: Instant,
    ) -> Result<(), NotThere> {
        let (id, seated) = self.seated(code).ok_or(NotThere::Room)?;
        let connection = *seated.connections.get(&member).ok_or(NotThere::Member)?;
        let (close, leave) = (CloseReason::Kicked { reason: reason.clone() }, LeaveReason::Kicked { reason });
        self.turn_out(id, member, connection, close, leave, now);
        Ok(())
    }

    /// Ends the session of a member that did what it must not.
    pub(super) fn expel(&mut self, room: RoomId, member: MemberId, how: PeerMisbehaved, now: Instant) {
        let connection = self.rooms.get(&room).and_then(|seated| seated.connections.get(&member)).copied();
        let Some(connection) = connection else { return };
        let close = CloseReason::Misbehaved { detail: how.to_string() };
        self.outputs.push_back(Output::Happened(Happening::Misbehaved { connection, how }));
        self.turn_out(room, member, connection, close, LeaveReason::Misbehaved, now);
    }

    /// Ends a member's session and takes its seat at once: what else came with it must not be heard.
    fn turn_out(
        &mut self,
        room: RoomId,
        member: MemberId,
        connection: ConnectionId,
        close: CloseReason,
        leave: LeaveReason,
        now: Instant,
    ) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.seat = None;
            state.session.close(close, now);
            self.touch(connection, now);
        }
        self.save_undelivered(room, member, connection);
        self.vacate(room, member, leave, now);
    }

    pub(super) fn seated(&self, code: RoomCode) -> Option<(RoomId, &Seated)> {
        let id = self.directory.find(code)?;
        self.rooms.get(&id).map(|seated| (id, seated))
    }
}

impl RoomQuery {
    fn wants(&self, room: &room::Room) -> bool {
        let room::Setup { app, environment, .. } = room.setup();
        let is_of_environment = self.environments.is_empty() || self.environments.contains(environment);
        is_of_environment
            && self.app.as_ref().is_none_or(|wanted| wanted == app)
            && self.matches.as_ref().is_none_or(|matches| matches.admits(room))
    }
}

impl MatchFilter {
    fn admits(&self, room: &room::Room) -> bool {
        let settings = &room.setup().settings;
        settings.kind == RoomKind::Match
            && settings.secret.is_none()
            && self.label.as_ref().is_none_or(|label| *label == settings.label)
            && (self.members_min..=self.members_max.unwrap_or(usize::MAX)).contains(&room.len())
            && (!self.has_seat || room.has_seat())
    }
}
