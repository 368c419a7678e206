//! Seats, why they were given up, and the news that each member must receive.

use super::shared::{Inputs, PlayerDatas, Ships, State};
use super::{Divergence, Model, RoomIndex, Verdict, ensure};
use crate::peer::PeerId;
use crate::sim::peer_of;
use parlor_client_core::{ClosedReason, Event, Options, PathMode, Wish};
use parlor_hub::{HubEvent, RoomSummary};
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{CloseReason, MemberId, RoomCode, RoomId, limits};
use std::collections::{BTreeMap, VecDeque};

/// Trouble of a client that explains an end that no game asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Its connection is silent, breaks, or is bad enough to time out.
    Network,
    /// Its game or its link is slow or stalled.
    Slow,
}

/// A room, from its opening to its end and beyond.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) id: RoomId,
    code: RoomCode,
    max_players: u16,
    secret: Option<String>,
    members: BTreeMap<MemberId, PeerId>,
    /// All clients that ever had a seat.
    pub(super) seated: Vec<PeerId>,
    kicks: Vec<(MemberId, String)>,
    end: Option<CloseReason>,
    /// Its hub died.
    pub(super) is_lost: bool,
    pub(super) state: State,
    pub(super) inputs: Inputs,
    pub(super) datas: PlayerDatas,
    pub(super) ships: Ships,
}

/// News that a member must receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Joined(MemberId, String),
    Left(MemberId, String, LeaveReason),
}

/// A client, from its first request on.
#[derive(Debug)]
pub(super) struct Peer {
    options: Options,
    pub(super) seat: Option<(RoomIndex, MemberId)>,
    /// Why its seat was given up.
    pub(super) left: Option<LeaveReason>,
    answer: Option<Rejection>,
    owed: VecDeque<News>,
    pub(super) told: Vec<News>,
    is_open: bool,
    closed: Option<ClosedReason>,
    wants_out: bool,
    is_troubled: bool,
    is_slow: bool,
    pub(super) newest_state: u64,
    pub(super) newest_mark: u64,
}

/// Actions of games.
impl Model {
    /// Records that a game asks to enter.
    pub fn entered(&mut self, who: PeerId, options: &Options) {
        let peer = Peer {
            options: options.clone(),
            seat: None,
            left: None,
            answer: None,
            owed: VecDeque::new(),
            told: Vec::new(),
            is_open: false,
            closed: None,
            wants_out: false,
            is_troubled: false,
            is_slow: false,
            newest_state: 0,
            newest_mark: 0,
        };
        self.peers.insert(who, peer);
    }

    /// Records that a game leaves.
    ///
    /// # Errors
    /// [`Divergence`] if the game never entered.
    pub fn leaves(&mut self, who: PeerId) -> Verdict {
        self.peer_mut(who)?.wants_out = true;
        Ok(())
    }

    /// Records that a host asks for a kick.
    ///
    /// # Errors
    /// [`Divergence`] if the caller is not a host.
    pub fn kicks(&mut self, who: PeerId, member: MemberId, reason: &str) -> Verdict {
        let host = self.seat(who).filter(|(_, member)| *member == MemberId(0));
        let (room, _) = host.ok_or_else(|| Divergence::new(format!("{who} is no host and may kick")))?;
        self.room_mut(room).kicks.push((member, reason.to_owned()));
        Ok(())
    }

    /// Records trouble of a client.
    ///
    /// # Errors
    /// [`Divergence`] if there is no such client.
    pub fn befalls(&mut self, who: PeerId, trouble: Trouble) -> Verdict {
        let peer = self.peer_mut(who)?;
        match trouble {
            Trouble::Network => peer.is_troubled = true,
            Trouble::Slow => peer.is_slow = true,
        }
        Ok(())
    }

    /// Records that the hub begins to shut down.
    pub fn shuts_down(&mut self) {
        self.is_shutting_down = true;
    }

    /// Records that the hub's process dies and is replaced.
    pub fn hub_dies(&mut self) {
        for index in std::mem::take(&mut self.open).into_values() {
            let room = self.room_mut(index);
            (room.is_lost, room.members) = (true, BTreeMap::new());
        }
        self.peers.values_mut().for_each(|peer| peer.is_troubled = true);
        self.is_shutting_down = false;
    }
}

/// Actions of the hub.
impl Model {
    /// Checks an event of the hub.
    ///
    /// # Errors
    /// [`Divergence`] if the event is wrong.
    pub fn happened(&mut self, hub_event: &HubEvent) -> Verdict {
        match hub_event {
            HubEvent::RoomOpened(summary) => self.opened(summary),
            HubEvent::Joined { code, member, name, connection, .. } => {
                self.joined(*code, *member, name, peer_of(*connection))
            }
            HubEvent::Left { code, member, reason } => self.left(*code, *member, reason),
            HubEvent::RoomEnded { code, reason } => self.ended(*code, reason),
            HubEvent::Rejected { connection, answer } => self.rejected(peer_of(*connection), answer),
            // A kept seat is still a seat: no member leaves the room.
            HubEvent::Away { .. } => Ok(()),
            HubEvent::Resumed { .. } => {
                self.counts.resumed += 1;
                Ok(())
            }
            HubEvent::TokenReused { member, .. } => {
                Err(Divergence::new(format!("{member} is honest, and its token was used twice")))
            }
            HubEvent::Misbehaved { connection, how } => Err(Divergence::new(format!(
                "{} is honest and was found misbehaving: {how}",
                peer_of(*connection)
            ))),
        }
    }

    fn opened(&mut self, summary: &RoomSummary) -> Verdict {
        ensure(!self.is_shutting_down, || format!("room {} opens in a hub that goes down", summary.code))?;
        let index = RoomIndex(self.rooms.len());
        let older = self.open.insert(summary.code, index);
        ensure(older.is_none(), || format!("two rooms have the code {}", summary.code))?;
        self.counts.rooms += 1;
        self.rooms.push(Room {
            id: summary.id,
            code: summary.code,
            max_players: summary.max_players,
            secret: None,
            members: BTreeMap::new(),
            seated: Vec::new(),
            kicks: Vec::new(),
            end: None,
            is_lost: false,
            state: State::default(),
            inputs: Inputs::default(),
            datas: PlayerDatas::default(),
            ships: Ships::default(),
        });
        Ok(())
    }

    fn open_room(&self, code: RoomCode) -> Result<RoomIndex, Divergence> {
        self.open
            .get(&code)
            .copied()
            .ok_or_else(|| Divergence::new(format!("no open room has the code {code}")))
    }

    fn joined(&mut self, code: RoomCode, member: MemberId, name: &str, who: PeerId) -> Verdict {
        let index = self.open_room(code)?;
        let options = self.peer_mut(who)?.options.clone();
        let others: Vec<(MemberId, PeerId)> = self.room(index).members.clone().into_iter().collect();
        let room = self.room_mut(index);
        ensure(member.0 as usize == room.seated.len(), || {
            format!("{who} is {member} of {index}, the {}th to come", room.seated.len())
        })?;
        let seats = if options.spectate { limits::SPECTATORS_DEFAULT } else { room.max_players };
        let spectate = options.spectate;
        let alike = others.iter().filter(|(_, other)| self.peers[other].options.spectate == spectate).count();
        ensure(alike < usize::from(seats), || format!("{who} joins {index}, which is full"))?;
        let room = self.room_mut(index);
        match &options.intent {
            Wish::Host { .. } => room.secret = options.secret.clone(),
            Wish::Join { code: wanted } => ensure(*wanted == code && room.lets_in(&options), || {
                format!("{who} asked for {wanted} and was let into {code}")
            })?,
            Wish::Resume { .. } => {
                return Err(Divergence::new(format!("{who} has a seat and is given another")));
            }
            Wish::Match { .. } => {
                return Err(Divergence::new(format!("{who} is in a match: this model has none")));
            }
        }
        ensure(matches!(options.intent, Wish::Host { .. }) == (member == MemberId(0)), || {
            format!("{who} is {member} and asked for {:?}", options.intent)
        })?;
        room.seated.push(who);
        room.members.insert(member, who);
        let came = |member, peer: &Peer| News::Joined(member, peer.options.name.clone());
        let mut owed = vec![News::Joined(member, name.to_owned())];
        owed.extend(others.iter().map(|(other, peer)| came(*other, &self.peers[peer])));
        for (_, other) in others {
            self.peer_mut(other)?.owed.push_back(News::Joined(member, name.to_owned()));
        }
        let peer = self.peer_mut(who)?;
        ensure(peer.seat.is_none() && peer.options.name == name, || format!("{who} has a seat as {name:?}"))?;
        (peer.seat, peer.owed) = (Some((index, member)), owed.into());
        self.counts.seats += 1;
        self.counts.spectators += u64::from(options.spectate);
        Ok(())
    }

    fn left(&mut self, code: RoomCode, member: MemberId, reason: &LeaveReason) -> Verdict {
        let index = self.open_room(code)?;
        let room = self.room_mut(index);
        let is_ending = !room.members.contains_key(&MemberId(0));
        let who = room.members.remove(&member);
        let who = who.ok_or_else(|| Divergence::new(format!("{member} left {index} and was not there")))?;
        let was_kicked = |of: &str| room.kicks.iter().any(|(whom, reason)| *whom == member && reason == of);
        let is_meant = match reason {
            LeaveReason::Kicked { reason } => was_kicked(reason),
            LeaveReason::Left => is_ending || self.is_shutting_down || self.peers[&who].wants_out,
            LeaveReason::TimedOut | LeaveReason::ConnectionLost => self.peers[&who].is_troubled,
            LeaveReason::TooSlow => self.peers[&who].is_slow,
            LeaveReason::Misbehaved | LeaveReason::Unknown { .. } => false,
        };
        ensure(is_meant, || format!("{who} left {index} for no reason that it had: {reason:?}"))?;
        self.counts.leaves += 1;
        self.counts.kicks += u64::from(matches!(reason, LeaveReason::Kicked { .. }));
        self.counts.silences += u64::from(*reason == LeaveReason::TimedOut);
        let peer = self.peer_mut(who)?;
        peer.left = Some(reason.clone());
        let news = News::Left(member, peer.options.name.clone(), reason.clone());
        if member != MemberId(0) && !is_ending {
            let stay: Vec<PeerId> = self.room(index).members.values().copied().collect();
            stay.into_iter().try_for_each(|other| {
                self.peer_mut(other)?.owed.push_back(news.clone());
                Ok(())
            })?;
        }
        Ok(())
    }

    fn ended(&mut self, code: RoomCode, reason: &CloseReason) -> Verdict {
        let index = self.open_room(code)?;
        self.open.remove(&code);
        let is_shutting_down = self.is_shutting_down;
        let host = self.room(index).seated.first().map(|host| &self.peers[host]);
        let is_meant = match reason {
            CloseReason::ServerShutdown => is_shutting_down,
            CloseReason::HostLeft => host.is_some_and(|host| host.left == Some(LeaveReason::Left)),
            CloseReason::HostGone => {
                host.is_some_and(|host| host.left.as_ref().is_some_and(|left| *left != LeaveReason::Left))
            }
            // Its host left together with its hello.
            CloseReason::Left => host.is_none(),
            _ => false,
        };
        ensure(is_meant, || format!("{index} ended for no reason that there was: {reason}"))?;
        let room = self.room_mut(index);
        ensure(room.members.is_empty(), || format!("{index} ended and {:?} sit in it", room.members))?;
        room.end = Some(reason.clone());
        Ok(())
    }

    fn rejected(&mut self, who: PeerId, answer: &Rejection) -> Verdict {
        let is_shutting_down = self.is_shutting_down;
        let options = self.peer_mut(who)?.options.clone();
        let found = match &options.intent {
            Wish::Host { code, .. } => code.and_then(|code| self.open.get(&code)),
            Wish::Join { code } => self.open.get(code),
            Wish::Match { .. } | Wish::Resume { .. } => None,
        };
        let room = found.map(|index| self.room(*index));
        let is_meant = match (answer, &options.intent) {
            (Rejection::RetryAfter(_), _) => is_shutting_down,
            (Rejection::Refused(Refusal::NoSuchRoom), Wish::Join { .. }) => {
                room.is_none_or(|room| !room.lets_in(&options))
            }
            (Rejection::Refused(Refusal::RoomFull { max }), Wish::Join { .. }) if !options.spectate => {
                room.is_some_and(|room| self.seated(room, false) == *max && *max == room.max_players)
            }
            (Rejection::Refused(Refusal::SpectatorsFull { max }), Wish::Join { .. }) if options.spectate => {
                let is_full = |room| self.seated(room, true) == limits::SPECTATORS_DEFAULT;
                *max == limits::SPECTATORS_DEFAULT && room.is_some_and(is_full)
            }
            (Rejection::Refused(Refusal::CodeTaken), Wish::Host { .. }) => room.is_some(),
            _ => false,
        };
        ensure(is_meant, || format!("{who} wants {:?} and is told {answer:?}", options.intent))?;
        self.peer_mut(who)?.answer = Some(answer.clone());
        self.counts.rejected += 1;
        Ok(())
    }
}

/// Events of games.
impl Model {
    /// The members of a room that play, or those that watch.
    fn seated(&self, room: &Room, spectate: bool) -> u16 {
        let alike = room.members.values().filter(|who| self.peers[who].options.spectate == spectate);
        u16::try_from(alike.count()).expect("a room is small")
    }

    /// Checks that a game is told of a spectator as of one, and of a player as of one.
    fn told_of(&self, who: PeerId, event: &Event) -> Verdict {
        let (member, is_of_spectator, says_so) = match event {
            Event::PlayerJoined(player) => (player.id, false, player.is_spectator),
            Event::SpectatorJoined(player) => (player.id, true, player.is_spectator),
            Event::PlayerLeft { id, .. } => (*id, false, false),
            Event::SpectatorLeft { id, .. } => (*id, true, true),
            _ => return Ok(()),
        };
        let room = self.seat(who).map(|(index, _)| self.room(index));
        let seated = room.and_then(|room| room.seated.get(member.0 as usize));
        let is_one = seated.is_some_and(|other| self.peers[other].options.spectate);
        ensure(is_one == is_of_spectator && says_so == is_one, || {
            format!("{who} is told wrongly of {member}: {event:?}")
        })
    }

    pub(super) fn told_in_order(&mut self, who: PeerId, event: &Event) -> Verdict {
        self.told_of(who, event)?;
        let code = self.seat(who).map(|(room, _)| self.room(room).code);
        let peer = self.peer_mut(who)?;
        ensure(peer.closed.is_none(), || format!("{who} is told after the end: {event:?}"))?;
        if let Event::Open { code: told } = event {
            ensure(!peer.is_open && code == Some(*told), || format!("{who} is told that {told} opens"))?;
            peer.is_open = true;
        }
        let may_come_first = matches!(event, Event::Closed(_));
        ensure(peer.is_open || may_come_first, || format!("{who} is told before its room opens: {event:?}"))?;
        match event {
            Event::PlayerJoined(player) | Event::SpectatorJoined(player) => {
                let is_me = peer.seat.is_some_and(|(_, me)| me == player.id);
                ensure(player.is_me == is_me && player.is_host == (player.id == MemberId(0)), || {
                    format!("{who} is told wrongly who {} is: {player:?}", player.id)
                })?;
                peer.hear(who, News::Joined(player.id, player.name.clone()))
            }
            Event::PlayerLeft { id, name, reason } | Event::SpectatorLeft { id, name, reason } => {
                peer.hear(who, News::Left(*id, name.clone(), reason.clone()))
            }
            Event::Closed(reason) => {
                peer.closed = Some(reason.clone());
                self.closed(who, reason)
            }
            _ => Ok(()),
        }
    }

    fn closed(&self, who: PeerId, reason: &ClosedReason) -> Verdict {
        let peer = &self.peers[&who];
        let room = peer.seat.map(|(room, _)| self.room(room));
        let is_meant = match reason {
            ClosedReason::Refused(refusal) => peer.answer == Some(Rejection::Refused(refusal.clone())),
            ClosedReason::RetryAfter(retry) => peer.answer == Some(Rejection::RetryAfter(retry.clone())),
            ClosedReason::Connect(_) => false,
            ClosedReason::Session(reason) => match reason {
                CloseReason::Left => peer.wants_out,
                CloseReason::Kicked { reason } => {
                    peer.left == Some(LeaveReason::Kicked { reason: reason.clone() })
                }
                CloseReason::HostLeft | CloseReason::HostGone | CloseReason::ServerShutdown => {
                    room.is_some_and(|room| room.end.as_ref() == Some(reason))
                }
                CloseReason::TimedOut => peer.is_troubled,
                // The hub's goodbye may be lost while the end of the connection arrives.
                CloseReason::ConnectionLost { .. } => {
                    peer.is_troubled || peer.left.is_some() || peer.answer.is_some()
                }
                CloseReason::TooSlow | CloseReason::NotPolled => peer.is_slow,
                CloseReason::Misbehaved { .. }
                | CloseReason::TokenReused
                | CloseReason::Moved { .. }
                | CloseReason::RoomEnded { .. }
                | CloseReason::Unknown { .. } => false,
            },
            _ => false,
        };
        ensure(is_meant, || format!("{who} is closed for no reason that there was: {reason:?}"))
    }

    /// Whether a game is in its room, according to itself and the hub.
    pub(super) fn stays(&self, who: PeerId) -> bool {
        let peer = &self.peers[&who];
        let room = peer.seat.map(|(room, _)| self.room(room));
        let is_seated = room.is_some_and(|room| room.members.values().any(|member| *member == who));
        is_seated && peer.closed.is_none()
    }

    /// All clients still in a room.
    pub fn staying(&self) -> Vec<PeerId> {
        self.peers.keys().copied().filter(|who| self.stays(*who)).collect()
    }

    /// Clients without a seat whose games did not get the end.
    pub(super) fn untold(&self) -> impl Iterator<Item = PeerId> + '_ {
        let is_over = |peer: &Peer| peer.left.is_some() || peer.answer.is_some();
        self.peers.iter().filter(move |(_, peer)| is_over(peer) && peer.closed.is_none()).map(|(who, _)| *who)
    }

    /// Checks a member's claim that its state comes from its host over a path.
    ///
    /// # Errors
    /// [`Divergence`] if it has no host that would do so, or one of them wants no paths.
    pub fn reads_apart(&mut self, who: PeerId) -> Verdict {
        let host = self.seat(who).and_then(|(index, _)| self.room(index).seated.first().copied());
        ensure(
            host.is_some_and(|host| host != who && self.wants_paths(host) && self.wants_paths(who)),
            || format!("{who} has a path to {host:?}, and not both want one"),
        )?;
        self.counts.apart += 1;
        Ok(())
    }

    /// Whether a client wants direct paths to the host or, as host, to its members.
    pub(super) fn wants_paths(&self, who: PeerId) -> bool {
        let options = &self.peers[&who].options;
        options.paths != PathMode::Relay && !options.spectate
    }

    /// Whether a client wants direct paths to all others that want the same.
    pub(super) fn wants_mesh(&self, who: PeerId) -> bool {
        self.wants_paths(who) && self.peers[&who].options.paths == PathMode::Mesh
    }

    pub(super) fn owes(&self, who: PeerId) -> Option<&News> {
        self.peers[&who].owed.front()
    }

    pub(super) fn members_of(&self, who: PeerId) -> Vec<MemberId> {
        let room = self.seat(who).map(|(room, _)| self.room(room));
        room.map(Room::member_ids).unwrap_or_default()
    }
}

impl Room {
    /// Whether the client knows the secret, if there is one.
    fn lets_in(&self, options: &Options) -> bool {
        self.secret.is_none() || self.secret == options.secret
    }

    pub(super) fn member_ids(&self) -> Vec<MemberId> {
        self.members.keys().copied().collect()
    }
}

impl Peer {
    fn hear(&mut self, who: PeerId, news: News) -> Verdict {
        let owed = self.owed.pop_front();
        ensure(owed.as_ref() == Some(&news), || format!("{who} is told {news:?} and was owed {owed:?}"))?;
        self.told.push(news);
        Ok(())
    }
}
