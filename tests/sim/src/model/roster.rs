//! Whose each id of a room is, who may return as whom, and why somebody is refused: the model of a room whose members
//! are lost and come back, and whose host may change.
//!
//! Events of the hub come in their order, but only at the end of each slice of time. So a time is known as the slice
//! that it is in, and what depends on it may be unsure.

use super::verdict::{Divergence, Verdict, ensure};
use crate::peer::PeerId;
use crate::sim::peer_of;
use parlor_client_core::{ClosedReason, Event, Player};
use parlor_hub::HubEvent;
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::{Refusal, ResumeRefusal};
use parlor_proto::{CloseReason, Instant, MemberId};
use parlor_sync::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The part of the world's time in which something happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// The model. See the [module](self).
#[derive(Debug)]
pub(crate) struct Roster {
    remember: Duration,
    max_players: usize,
    seats: BTreeMap<MemberId, Seat>,
    clients: BTreeMap<PeerId, Client>,
    end: Option<CloseReason>,
    /// Members that a host wanted to be removed.
    kicked: BTreeSet<MemberId>,
    /// Members that had the role of the host at some time.
    hosts: BTreeSet<MemberId>,
    /// Members that came back after their grace.
    pub(crate) returned: u64,
    /// Clients that were refused although they were members once.
    pub(crate) refused: u64,
}

/// An id of the room, which is one client's for good.
#[derive(Debug)]
struct Seat {
    who: PeerId,
    state: State,
    /// The newest value of each key of its player data that another member has seen.
    shown: BTreeMap<String, i64>,
    /// The same when its seat was freed: so much the hub had.
    kept: BTreeMap<String, i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    In,
    /// It was lost and may return, until some time in between. If unsure, the room may have forgotten it.
    Lost {
        from: Instant,
        until: Instant,
        is_sure: bool,
    },
    Out,
}

#[derive(Debug, Default)]
struct Client {
    name: String,
    /// Its newest id.
    member: Option<MemberId>,
    answer: Option<Rejection>,
    wants_out: bool,
    is_troubled: bool,
    closed: Option<ClosedReason>,
}

/// Actions of games and the trouble of clients.
impl Roster {
    pub(crate) fn new(max_players: usize, remember: Duration) -> Self {
        Roster {
            remember,
            max_players,
            seats: BTreeMap::new(),
            clients: BTreeMap::new(),
            end: None,
            kicked: BTreeSet::new(),
            hosts: BTreeSet::from([MemberId(0)]),
            returned: 0,
            refused: 0,
        }
    }

    /// Records that a client asks to enter, or that another process of it asks for its seat.
    pub(crate) fn asks(&mut self, who: PeerId, name: &str) {
        let client = self.clients.entry(who).or_default();
        client.name = name.to_owned();
        (client.answer, client.closed) = (None, None);
    }

    pub(crate) fn leaves(&mut self, who: PeerId) {
        self.clients.entry(who).or_default().wants_out = true;
    }

    pub(crate) fn is_troubled(&mut self, who: PeerId) {
        self.clients.entry(who).or_default().is_troubled = true;
    }

    /// Records that a host asks for a kick. Its room forgets the member, if it is lost by then.
    pub(crate) fn kicks(&mut self, member: MemberId) {
        self.kicked.insert(member);
        self.seats.get_mut(&member).into_iter().for_each(|seat| seat.state.is_doubted());
    }

    /// Records that a member has the role of the host.
    pub(crate) fn hosts(&mut self, member: MemberId) {
        self.hosts.insert(member);
    }
}

impl State {
    fn is_doubted(&mut self) {
        if let State::Lost { is_sure, .. } = self {
            *is_sure = false;
        }
    }

    /// Whether the room surely knows it.
    fn is_known(self, now: Slice) -> bool {
        match self {
            State::In => true,
            State::Lost { from, is_sure, .. } => is_sure && now.to < from,
            State::Out => false,
        }
    }

    /// Whether it may return.
    fn may_return(self, now: Slice) -> bool {
        matches!(self, State::Lost { until, .. } if now.from <= until)
    }
}

/// Actions of the hub.
impl Roster {
    /// Checks an event of the hub.
    ///
    /// # Errors
    /// Divergence if it is wrong.
    pub(crate) fn happened(&mut self, event: &HubEvent, now: Slice) -> Verdict {
        match event {
            HubEvent::RoomOpened(_) | HubEvent::Away { .. } => Ok(()),
            HubEvent::Joined { member, name, connection, .. } => {
                self.joined(*member, name, peer_of(*connection), now)
            }
            HubEvent::Left { member, reason, .. } => self.left(*member, reason, now),
            HubEvent::Resumed { member, connection, .. } => {
                let (who, seat) = (peer_of(*connection), self.seat(*member)?);
                ensure(seat.who == who && seat.state == State::In, || {
                    format!("{who} resumes as {member}, who is {seat:?}")
                })
            }
            HubEvent::RoomEnded { reason, .. } => {
                let is_meant = matches!(reason, CloseReason::HostLeft | CloseReason::HostGone);
                self.end = Some(reason.clone());
                ensure(is_meant, || format!("the room ended with {reason}"))
            }
            HubEvent::Rejected { connection, answer } => self.rejected(peer_of(*connection), answer, now),
            HubEvent::TokenReused { .. } | HubEvent::Misbehaved { .. } => {
                Err(Divergence::new(format!("all clients are honest: {event:?}")))
            }
        }
    }

    fn seat(&self, member: MemberId) -> Result<&Seat, Divergence> {
        self.seats.get(&member).ok_or_else(|| Divergence::new(format!("{member} is nobody's id")))
    }

    fn joined(&mut self, member: MemberId, name: &str, who: PeerId, now: Slice) -> Verdict {
        let next = self.seats.len();
        let is_full = self.members().count() >= self.max_players;
        ensure(!is_full && self.end.is_none(), || format!("{who} takes a seat where none is free"))?;
        let client = self.clients.entry(who).or_default();
        ensure(client.name == name, || format!("{who} joins as {name}"))?;
        let before = client.member.replace(member);
        if let Some(seat) = self.seats.get_mut(&member) {
            ensure(seat.who == who, || format!("{who} joins as {member}, who is {}", seat.who))?;
            ensure(seat.state.may_return(now), || format!("{who} returns, and was {:?}", seat.state))?;
            seat.state = State::In;
            self.returned += 1;
            return Ok(());
        }
        let state = before.and_then(|before| self.seats.get(&before)).map(|seat| seat.state);
        ensure(state.is_none_or(|state| !state.is_known(now)), || {
            format!("{who} is a newcomer as {member}, and the room knows it as {before:?}")
        })?;
        ensure(member.0 as usize == next, || format!("{who} is {member}, the {next}th to come"))?;
        let (shown, kept) = (BTreeMap::new(), BTreeMap::new());
        self.seats.insert(member, Seat { who, state: State::In, shown, kept });
        Ok(())
    }

    fn left(&mut self, member: MemberId, reason: &LeaveReason, now: Slice) -> Verdict {
        let remember = self.remember;
        let seat = self.seat(member)?;
        let client = &self.clients[&seat.who];
        let is_meant = match reason {
            // Who gives up waiting for a host says goodbye, too.
            LeaveReason::Left => client.wants_out || client.is_troubled,
            LeaveReason::Kicked { .. } => self.kicked.contains(&member),
            LeaveReason::ConnectionLost | LeaveReason::TimedOut | LeaveReason::TooSlow => client.is_troubled,
            LeaveReason::Misbehaved | LeaveReason::Unknown { .. } => false,
        };
        ensure(is_meant && seat.state == State::In, || format!("{member} left with {reason:?}: {seat:?}"))?;
        // A kick may be under way to it.
        let is_sure = !self.kicked.contains(&member);
        let seat = self.seats.get_mut(&member).expect("it was just found");
        seat.kept.clone_from(&seat.shown);
        let is_lost = matches!(reason, LeaveReason::ConnectionLost | LeaveReason::TimedOut);
        seat.state = match reason {
            _ if is_lost && !remember.is_zero() => {
                State::Lost { from: now.from + remember, until: now.to + remember, is_sure }
            }
            LeaveReason::TooSlow => State::Lost { from: now.from, until: now.to + remember, is_sure: false },
            _ => State::Out,
        };
        self.forget_surplus();
        Ok(())
    }

    /// A room remembers as many as it has seats: it forgets the oldest.
    fn forget_surplus(&mut self) {
        let lost = |(member, seat): (&MemberId, &Seat)| match seat.state {
            State::Lost { from, .. } => Some((from, *member)),
            State::In | State::Out => None,
        };
        let mut lost: Vec<(Instant, MemberId)> = self.seats.iter().filter_map(lost).collect();
        lost.sort_unstable();
        let surplus = lost.len().saturating_sub(self.max_players);
        for (_, member) in lost.iter().take(surplus) {
            // Whether a doubtful one counts is unknown, and so is the order within a slice.
            self.seats.get_mut(member).into_iter().for_each(|seat| seat.state.is_doubted());
        }
    }

    fn rejected(&mut self, who: PeerId, answer: &Rejection, now: Slice) -> Verdict {
        let client = self.clients.entry(who).or_default();
        client.answer = Some(answer.clone());
        let seat = client.member.and_then(|member| Some((member, self.seats.get(&member)?)));
        let is_over = self.end.is_some();
        let is_meant = match answer {
            Rejection::Refused(Refusal::RoomFull { max }) => {
                usize::from(*max) == self.max_players && self.members().count() == self.max_players
            }
            Rejection::Refused(Refusal::NoSuchRoom) | Rejection::RetryAfter(_) => is_over,
            Rejection::Refused(Refusal::Resume { why: ResumeRefusal::GraceOver }) => {
                seat.is_some_and(|(_, seat)| seat.state.may_return(now))
            }
            // A host whose process began anew has no world to go on with.
            Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Gone }) => {
                is_over
                    || seat.is_some_and(|(member, seat)| {
                        // The role may have passed several members within the slice.
                        let may_host = self.hosts.len() > 1 || self.hosts.contains(&member);
                        let has_host_role = seat.state == State::In && may_host;
                        !seat.state.is_known(now) || has_host_role
                    })
            }
            _ => false,
        };
        ensure(is_meant, || format!("{who}, with {seat:?}, is told {answer:?}"))?;
        self.refused += u64::from(seat.is_some());
        Ok(())
    }

    /// All members, by their id.
    pub(crate) fn members(&self) -> impl Iterator<Item = (MemberId, PeerId)> + '_ {
        let is_in = |(_, seat): &(&MemberId, &Seat)| seat.state == State::In;
        self.seats.iter().filter(is_in).map(|(member, seat)| (*member, seat.who))
    }

    /// The id under which a client is in the room.
    pub(crate) fn member(&self, who: PeerId) -> Option<MemberId> {
        self.members().find(|(_, it)| *it == who).map(|(member, _)| member)
    }
}

/// Events of games.
impl Roster {
    /// Checks an event of a game.
    ///
    /// # Errors
    /// Divergence if it is wrong.
    pub(crate) fn told(&mut self, who: PeerId, event: &Event) -> Verdict {
        match event {
            Event::PlayerJoined(player) => self.met(who, player),
            Event::PlayerData { id, key, value: Some(value) } => self.saw(who, *id, key, value),
            Event::Closed(reason) => {
                let client = self.clients.entry(who).or_default();
                client.closed = Some(reason.clone());
                self.closed(who, reason)
            }
            _ => Ok(()),
        }
    }

    /// Checks a player that a game is told of: it is whose id it is, with the data that it had.
    fn met(&mut self, who: PeerId, player: &Player) -> Verdict {
        let seat = self.seat(player.id)?;
        let name = &self.clients[&seat.who].name;
        ensure(player.name == *name && player.is_me == (seat.who == who), || {
            format!("{who} is told that {name} is {player:?}")
        })?;
        // What others are told may be older: it was sent before.
        if player.is_me {
            has_at_least(player, &seat.kept)?;
        }
        player.all_data().try_for_each(|(key, value)| self.saw(who, player.id, key, value))
    }

    /// Checks that a player's data in the end is what others have seen.
    ///
    /// # Errors
    /// Divergence if something of it is lost.
    pub(crate) fn keeps_its_data(&self, player: &Player) -> Verdict {
        has_at_least(player, &self.seat(player.id)?.shown)
    }

    fn saw(&mut self, who: PeerId, member: MemberId, key: &str, value: &Value) -> Verdict {
        let seat = self.seats.get_mut(&member).ok_or_else(|| Divergence::new(format!("no {member}")))?;
        let Value::Int(value) = value else {
            return Err(Divergence::new(format!("{who} sees {key:?} as {value:?}, which nobody set")));
        };
        if seat.who != who {
            let newest = seat.shown.entry(key.to_owned()).or_insert(*value);
            *newest = (*newest).max(*value);
        }
        Ok(())
    }

    fn closed(&self, who: PeerId, reason: &ClosedReason) -> Verdict {
        let client = &self.clients[&who];
        let was_kicked = || self.seats.iter().any(|(id, seat)| seat.who == who && self.kicked.contains(id));
        let is_meant = match reason {
            ClosedReason::Refused(refusal) => client.answer == Some(Rejection::Refused(refusal.clone())),
            ClosedReason::RetryAfter(retry) => client.answer == Some(Rejection::RetryAfter(retry.clone())),
            ClosedReason::Session(reason) => match reason {
                CloseReason::Left => client.wants_out,
                CloseReason::Kicked { .. } => was_kicked(),
                CloseReason::HostLeft | CloseReason::HostGone => {
                    self.end.is_some() || self.clients.values().any(|client| client.is_troubled)
                }
                CloseReason::TimedOut
                | CloseReason::ConnectionLost { .. }
                | CloseReason::TooSlow
                | CloseReason::NotPolled => client.is_troubled || client.answer.is_some(),
                _ => false,
            },
            _ => false,
        };
        ensure(is_meant, || format!("{who} is closed for no reason that there was: {reason:?}"))
    }

    /// Whether a game knows that its room is over for it.
    pub(crate) fn knows_the_end(&self, who: PeerId) -> bool {
        self.clients.get(&who).is_some_and(|client| client.closed.is_some())
    }
}

fn has_at_least(player: &Player, least: &BTreeMap<String, i64>) -> Verdict {
    for (key, least) in least {
        let value = player.all_data().find(|(name, _)| name == key).map(|(_, value)| value);
        ensure(matches!(value, Some(Value::Int(value)) if value >= least), || {
            format!("{key:?} of {} is {value:?}, and was {least} before", player.id)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_proto::{ConnectionId, RoomCode};

    const REMEMBER: Duration = Duration::from_secs(10);
    const GUEST: u64 = 1;
    const OTHER: u64 = 2;

    fn code() -> RoomCode {
        "MYROOM".parse().unwrap()
    }

    fn at(ms: u64) -> Slice {
        Slice { from: Instant::from_millis(ms), to: Instant::from_millis(ms + 10) }
    }

    fn joined(client: u64, member: u32) -> HubEvent {
        let (name, connection) = (client.to_string(), ConnectionId(client));
        HubEvent::Joined { code: code(), member: MemberId(member), name, connection, user: None }
    }

    fn refused(refusal: Refusal) -> HubEvent {
        HubEvent::Rejected { connection: ConnectionId(GUEST), answer: Rejection::Refused(refusal) }
    }

    /// A room of three seats whose guest was lost.
    fn story() -> Roster {
        let mut roster = Roster::new(3, REMEMBER);
        for client in 0..3 {
            let who = PeerId(usize::try_from(client).unwrap());
            roster.asks(who, &client.to_string());
            roster.is_troubled(who);
        }
        let lost = HubEvent::Left { code: code(), member: MemberId(1), reason: LeaveReason::TimedOut };
        for event in [joined(0, 0), joined(GUEST, 1), lost] {
            roster.happened(&event, at(1_000)).unwrap();
        }
        roster
    }

    fn then(ms: u64, events: &[HubEvent]) -> Verdict {
        let mut roster = story();
        events.iter().try_for_each(|event| roster.happened(event, at(ms)))
    }

    #[test]
    fn m9_the_model_objects_to_a_return_as_somebody_else_or_too_late() {
        assert_eq!(then(2_000, &[joined(GUEST, 1)]), Ok(()));
        assert_eq!(then(2_000, &[joined(OTHER, 2)]), Ok(()));
        assert!(then(2_000, &[joined(OTHER, 1)]).is_err(), "the id is the guest's");
        assert!(then(2_000, &[joined(GUEST, 2)]).is_err(), "the room knows who it is");
        assert!(then(2_000, &[joined(GUEST, 1), joined(GUEST, 1)]).is_err(), "twice");
        assert!(then(2_000, &[joined(OTHER, 3)]).is_err(), "an id is left out");
        assert!(then(12_000, &[joined(GUEST, 1)]).is_err(), "the room has forgotten it");
        assert_eq!(then(12_000, &[joined(GUEST, 2)]), Ok(()));
    }

    #[test]
    fn m9_the_model_objects_to_a_refusal_by_the_wrong_name() {
        let resume = |why| refused(Refusal::Resume { why });
        assert_eq!(then(2_000, &[resume(ResumeRefusal::GraceOver)]), Ok(()));
        assert_eq!(then(12_000, &[resume(ResumeRefusal::Gone)]), Ok(()));
        assert!(then(2_000, &[resume(ResumeRefusal::Gone)]).is_err(), "the room knows it");
        assert!(then(12_000, &[resume(ResumeRefusal::GraceOver)]).is_err(), "the room knows it no more");
        assert!(then(2_000, &[resume(ResumeRefusal::Token)]).is_err(), "it is honest");
        assert!(then(2_000, &[refused(Refusal::RoomFull { max: 3 })]).is_err(), "a seat is free");
        assert!(then(2_000, &[refused(Refusal::NoSuchRoom)]).is_err(), "the room is open");
    }
}
