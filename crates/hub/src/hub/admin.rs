//! Operator API: list, inspect and close rooms; remove members.

use super::delayed::summary_with;
use super::events::RoomSummary;
use super::index::is_public_match;
use super::{Hub, HubEvent, Output, Seated};
use crate::room::roster::Roster;
use crate::room::{self, MemberSummary};
use bytes::Bytes;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::{CloseReason, ConnectionId, Epoch, Instant, MemberId, PeerMisbehaved, RoomCode, RoomId};
use std::ops::Bound;

/// Maximum number of rooms examined per call of [`Hub::rooms`], so that a query does not delay packets.
pub const ROOMS_LOOKED_AT_MAX: usize = 256;

/// A query for rooms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomQuery {
    /// Only rooms of this game.
    pub app: Option<String>,
    /// Only rooms of these environments; of any if empty.
    pub environments: Vec<String>,
    /// Only matches that pass this filter.
    pub matches: Option<MatchFilter>,
    /// Only rooms whose codes come after this one.
    pub after: Option<RoomCode>,
    /// Maximum number of results.
    pub limit: usize,
    /// Whether the rosters of rooms are wanted, too.
    pub rosters: bool,
}

/// Seats that one call of [`Hub::remove_user`] frees at most, so that it does not delay packets.
pub const USER_SEATS_MAX: usize = 32;

/// The seats of a user in the rooms of a game.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSeats {
    /// The game.
    pub app: String,
    /// Its environments; any if empty.
    pub environments: Vec<String>,
    /// The user that a token vouched for.
    pub user: String,
}

/// Filters publicly listed matches. A match with a secret is never listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFilter {
    /// The label; `None` for any.
    pub label: Option<String>,
    /// The minimum number of players.
    pub members_min: usize,
    /// The maximum number of players; `None` for any.
    pub members_max: Option<usize>,
    /// Only matches with a free seat.
    pub has_seat: bool,
}

/// A page of rooms, in code order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomPage {
    /// Who is in each of them, as its [roster](crate::room::roster::Roster), if the query wants that and the room can
    /// be reopened.
    pub rosters: Vec<Option<RoomRoster>>,
    /// The rooms found. May be empty although more follow, if the examined rooms did not match.
    pub rooms: Vec<RoomSummary>,
    /// Where to continue ([`RoomQuery::after`]); `None` on the last page.
    pub next: Option<RoomCode>,
    /// How many rooms were examined.
    pub looked_at: usize,
    /// The last of them, even if no more follow.
    pub last: Option<RoomCode>,
}

/// Who is in a room, for its row in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRoster {
    /// The host; `None` in a match.
    pub host: Option<MemberId>,
    /// The room's epoch.
    pub epoch: Epoch,
    /// The encoded [roster](crate::room::roster::Roster).
    pub bytes: Bytes,
}

impl RoomRoster {
    fn new(roster: Roster) -> Self {
        RoomRoster { host: roster.host, epoch: roster.epoch, bytes: roster.encode() }
    }
}

/// A room and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomDetails {
    /// The room.
    pub room: RoomSummary,
    /// Its members, in order of joining.
    pub members: Vec<MemberSummary>,
}

/// The target does not exist: no such room, or no such member in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotThere {
    /// No room has the code.
    Room,
    /// The room has no such member.
    Member,
}

impl Hub {
    /// Lists live rooms, one page at a time. Examines at most [`ROOMS_LOOKED_AT_MAX`]. A query for matches of
    /// one game with one label examines no others.
    pub fn rooms(&self, query: &RoomQuery) -> RoomPage {
        let after = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        match query.listed_under() {
            Some((app, label)) => self.page(query, self.index.labelled(app, label, after)),
            None => self.page(query, self.directory.after(after)),
        }
    }

    fn page(&self, query: &RoomQuery, rooms: impl Iterator<Item = (RoomCode, RoomId)>) -> RoomPage {
        let (mut left, mut page) = (rooms.peekable(), RoomPage::default());
        for (code, id) in left.by_ref().take(ROOMS_LOOKED_AT_MAX) {
            (page.last, page.looked_at) = (Some(code), page.looked_at + 1);
            let seated = self.rooms.get(&id).filter(|seated| query.wants(&seated.room));
            page.rooms.extend(seated.map(|seated| self.summary(seated)));
            if let Some(seated) = seated.filter(|_| query.rosters) {
                page.rosters.push(self.roster(seated).map(RoomRoster::new));
            }
            if page.rooms.len() >= query.limit {
                break;
            }
        }
        page.next = page.last.filter(|_| left.peek().is_some());
        page
    }

    /// Returns a room and its members.
    pub fn room_details(&self, code: RoomCode) -> Option<RoomDetails> {
        let (_, seated) = self.seated(code)?;
        let spectators = self.spectators_of_copy(seated);
        let room = summary_with(&seated.room, &spectators);
        let members = seated.room.member_summaries().into_iter().chain(spectators).collect();
        Some(RoomDetails { room, members })
    }

    /// Ends a room and sends its members the reason, cut to
    /// [`REASON_BYTES_MAX`](parlor_proto::limits::REASON_BYTES_MAX).
    ///
    /// # Errors
    /// [`NotThere::Room`].
    pub fn end_room(&mut self, code: RoomCode, reason: String, now: Instant) -> Result<(), NotThere> {
        let (id, _) = self.seated(code).ok_or(NotThere::Room)?;
        self.tell(id, room::Input::End { reason: CloseReason::RoomEnded { reason } }, now);
        Ok(())
    }

    /// Removes a member and sends the reason to it and to the others. If it is the host, another member
    /// becomes the host where the room allows that; otherwise the room ends.
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
        let found = self.seated(code).ok_or(NotThere::Room)?;
        let parts = [Some(found), self.copy_of(found.1)].into_iter().flatten();
        let mut seats = parts.filter_map(|(id, seated)| Some((id, *seated.connections.get(&member)?)));
        let (id, connection) = seats.next().ok_or(NotThere::Member)?;
        drop(seats);
        let (close, leave) = (CloseReason::Kicked { reason: reason.clone() }, LeaveReason::Kicked { reason });
        self.turn_out(id, member, connection, close, leave, now);
        Ok(())
    }

    /// Removes a user from rooms, with a reason as for [`remove_member`](Self::remove_member), and lets it return to
    /// none that it was lost from. Frees at most
    /// [`USER_SEATS_MAX`] seats; returns how many it found. Fewer means that there are no more. Costs as much as
    /// the user has seats, however many rooms there are.
    pub fn remove_user(&mut self, seats: &UserSeats, reason: &str, now: Instant) -> usize {
        let is_meant = |(room, _): &(RoomId, MemberId)| {
            let environment = self.rooms.get(room).map(|seated| &seated.room.setup().environment);
            environment.is_some_and(|it| seats.environments.is_empty() || seats.environments.contains(it))
        };
        let found = self.index.seats_of(&seats.app, &seats.user).filter(is_meant).take(USER_SEATS_MAX);
        let found: Vec<(RoomId, MemberId)> = found.collect();
        let gone: Vec<_> = self.index.gone_of(&seats.app, &seats.user).filter(is_meant).collect();
        gone.into_iter().for_each(|place| self.forget_gone(place, now));
        for (room, member) in &found {
            // A seat may be gone with the one before it.
            let seated = self.rooms.get(room);
            if let Some(connection) = seated.and_then(|seated| seated.connections.get(member)).copied() {
                let reason = reason.to_owned();
                let (close, leave) =
                    (CloseReason::Kicked { reason: reason.clone() }, LeaveReason::Kicked { reason });
                self.turn_out(*room, *member, connection, close, leave, now);
            }
        }
        found.len()
    }

    /// Ends the session of a member that violated the protocol.
    pub(super) fn expel(&mut self, room: RoomId, member: MemberId, how: PeerMisbehaved, now: Instant) {
        let connection = self.rooms.get(&room).and_then(|seated| seated.connections.get(&member)).copied();
        let Some(connection) = connection else { return };
        let close = CloseReason::Misbehaved { detail: how.to_string() };
        self.outputs.push_back(Output::Event(HubEvent::Misbehaved { connection, how }));
        self.turn_out(room, member, connection, close, LeaveReason::Misbehaved, now);
    }

    /// Ends a member's session and frees its seat at once: pending messages of it must not be handled.
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
        self.vacate((room, member), leave, false, now);
    }

    pub(super) fn seated(&self, code: RoomCode) -> Option<(RoomId, &Seated)> {
        let id = self.directory.find(code)?;
        self.rooms.get(&id).map(|seated| (id, &**seated))
    }
}

impl RoomQuery {
    /// Returns the game and label of the only matches that it can want, if it names both.
    fn listed_under(&self) -> Option<(&str, &str)> {
        let label = self.matches.as_ref()?.label.as_ref()?;
        self.app.as_deref().zip(Some(label.as_str()))
    }

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
        is_public_match(room.setup())
            && self.label.as_ref().is_none_or(|label| *label == settings.label)
            && (self.members_min..=self.members_max.unwrap_or(usize::MAX)).contains(&room.players())
            && (!self.has_seat || room.has_seat(false))
    }
}
