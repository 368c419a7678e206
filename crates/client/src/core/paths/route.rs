//! Which way a game's messages go: over paths to those that have one, through the hub to all others.
//!
//! What a member has sent reliably and in order arrives so, whichever way it went. Only the hub can number messages for all, and it
//! alone knows who is primary, or will be the authority when this one is gone: a reliable message that needs it takes all that
//! follow it back to the hub, for as long as the path stands.

use super::super::comeback::say;
use super::super::error::RoomError;
use super::super::room::RoomCore;
use super::link::Out;
use super::{Outcome, Path};
use bytes::Bytes;
use parlor_proto::session::{Outgoing, SendError, Session};
use parlor_proto::wire::envelope::{To, Upward};
use parlor_proto::{ChannelId, Lane, MemberId, PathId};
use std::collections::BTreeSet;

/// A message of a game on its way out.
pub(in crate::core) struct Letter {
    pub(in crate::core) channel: ChannelId,
    pub(in crate::core) lane: Lane,
    pub(in crate::core) to: To,
    pub(in crate::core) stamp: bool,
    pub(in crate::core) payload: Bytes,
}

impl RoomCore {
    /// Sends a message on the ways that it takes.
    ///
    /// # Errors
    /// [`RoomError::Full`] if one of them takes no more; nothing was sent then.
    pub(in crate::core) fn post(&mut self, letter: Letter) -> Result<(), RoomError> {
        self.drain_queues();
        let is_away = self.reconnect.is_away();
        let is_for_hub = letter.stamp || letter.to == To::Primary || self.leaves_to_hub(&letter);
        if letter.lane == Lane::UnreliableSequenced {
            if is_for_hub {
                self.paths.kept_by_hub.insert(letter.channel);
            }
            if self.paths.kept_by_hub.contains(&letter.channel) {
                return self.post_in_sequence(letter);
            }
        }
        let now = self.paths.now;
        let (Some(session), Some(joined)) = (&mut self.session, &self.joined) else { return Ok(()) };
        let me = joined.welcome.member;
        if self.paths.by_id.is_empty() || is_for_hub && letter.lane != Lane::ReliableOrdered {
            return relay(session, is_away, letter);
        }
        let host = joined.welcome.authority.member();
        let named = named(&letter.to, me, host);
        let reached = |path: &Path| named.contains(path.peer);
        if is_for_hub {
            // Whoever is primary by now may be one of them.
            for path in self.paths.by_id.values_mut().filter(|path| path.out == Out::Path) {
                path.go_back();
            }
            self.drain_queues();
            let is_queued = self.paths.by_id.values().any(|path| path.out == Out::Queue);
            return match &mut self.session {
                Some(session) if !is_queued => relay(session, is_away, letter),
                _ => Err(RoomError::Full),
            };
        }
        let paths = self.paths.by_id.values_mut();
        let mut apart: Vec<&mut Path> =
            paths.filter(|path| reached(path)).filter(|path| path.goes_apart(letter.lane)).collect();
        if apart.iter().any(|path| path.is_full()) {
            return Err(RoomError::Full);
        }
        if letter.lane == Lane::UnreliableSequenced {
            apart.iter_mut().for_each(|path| path.carries_in_sequence(letter.channel, now));
        }
        let peers: BTreeSet<MemberId> = apart.iter().map(|path| path.peer).collect();
        let Letter { channel, lane, to, stamp, payload } = letter;
        // Who has just come, and is not known here, hears all that is reliable from its first on. What may be lost needs no hub then.
        let is_known = |to: &To| match to {
            To::Except(members) => joined.players.iter().any(|player| !members.contains(&player.id)),
            _ => true,
        };
        match without(to, peers, me).filter(|to| lane.is_reliable() || is_known(to)) {
            Some(to) => {
                relay(session, is_away, Letter { channel, lane, to, stamp, payload: payload.clone() })?
            }
            None if apart.len() == 1 && apart[0].out == Out::Path => {
                let message = Outgoing::new(channel, payload);
                return Ok(apart[0].session_mut().map_or(Ok(()), |session| session.send(message))?);
            }
            None => {}
        }
        let slow: Vec<PathId> = apart
            .iter_mut()
            .filter_map(|path| {
                path.send_apart(Outgoing::new(channel, payload.clone()), lane).err().map(|_| path.id)
            })
            .collect();
        for id in slow {
            // The others have it already: it goes to this one as fast as the hub takes it.
            self.path_over(id, Outcome::Lost, "it takes less than is sent", self.paths.now);
            if let Some(path) = self.paths.by_id.get_mut(&id) {
                path.push(Outgoing::new(channel, payload.clone()));
            }
        }
        self.drain_queues();
        Ok(())
    }

    /// Sends a sequenced message on a channel of which the hub has had one that it alone can pass on: such a channel stays with it,
    /// because nothing tells which of two messages is newer that come by two ways. Whoever may still have one under way over a
    /// path misses this one.
    fn post_in_sequence(&mut self, letter: Letter) -> Result<(), RoomError> {
        let is_away = self.reconnect.is_away();
        let (Some(session), Some(joined)) = (&mut self.session, &self.joined) else { return Ok(()) };
        let (me, host) = (joined.welcome.member, joined.welcome.authority.member());
        let (named, now) = (named(&letter.to, me, host), self.paths.now);
        let paths = self.paths.by_id.values();
        let late = paths.filter(|path| named.contains(path.peer) && path.may_come_late(letter.channel, now));
        let late: BTreeSet<MemberId> = late.map(|path| path.peer).collect();
        // Whoever is primary by now may be one of them.
        if letter.to == To::Primary && !late.is_empty() {
            return Ok(());
        }
        match without(letter.to.clone(), late, me) {
            Some(to) => relay(session, is_away, Letter { to, ..letter }),
            None => Ok(()),
        }
    }

    /// Whether the hub is to know a message that the authority may never make anything of.
    fn leaves_to_hub(&self, letter: &Letter) -> bool {
        let is_owed = letter.to == To::Authority && letter.lane.is_reliable();
        is_owed && self.paths.by_id.values().any(Path::leaves_authority_to_hub)
    }

    /// Sends a message of inputs to the host.
    pub(in crate::core) fn post_input(&mut self, message: Outgoing) -> Result<(), RoomError> {
        let host = self.joined.as_ref().and_then(|joined| joined.welcome.authority.member());
        let path = self.paths.by_id.values_mut().find(|path| Some(path.peer) == host && path.is_open());
        self.wants_driver = true;
        if let Some(session) = path.and_then(Path::session_mut) {
            return Ok(session.send(message)?);
        }
        let is_away = self.reconnect.is_away();
        self.session.as_mut().map_or(Ok(()), |session| Ok(say(session, is_away, message)?))
    }
}

/// Members that a message names.
enum Named {
    These(Vec<MemberId>),
    AllBut(Vec<MemberId>),
}

impl Named {
    fn contains(&self, member: MemberId) -> bool {
        match self {
            Named::These(members) => members.contains(&member),
            Named::AllBut(members) => !members.contains(&member),
        }
    }
}

fn named(to: &To, me: MemberId, host: Option<MemberId>) -> Named {
    match to {
        To::Authority => Named::These(host.into_iter().collect()),
        To::Others => Named::AllBut(vec![me]),
        To::Member(member) => Named::These(vec![*member]),
        To::Members(members) => Named::These(members.clone()),
        To::Everyone | To::Primary => Named::AllBut(Vec::new()),
        To::Except(members) => Named::AllBut(members.clone()),
    }
}

impl Path {
    /// Whether a message to its other end takes a way of its own.
    fn goes_apart(&self, lane: Lane) -> bool {
        if lane.is_reliable() { self.out != Out::Relay } else { self.is_open() || self.holds_up(lane) }
    }

    /// Whether it would overtake what may still be read there of what was sent before over the path.
    fn holds_up(&self, lane: Lane) -> bool {
        lane == Lane::UnreliableSequenced && self.may_be_read()
    }

    /// Sends a message on that way.
    fn send_apart(&mut self, message: Outgoing, lane: Lane) -> Result<(), SendError> {
        if lane.is_reliable() && self.out == Out::Queue {
            self.push(message);
            return Ok(());
        }
        self.session_mut().map_or(Ok(()), |session| session.send(message))
    }
}

/// Whom a message still reaches through the hub; `None` if nobody.
fn without(to: To, apart: BTreeSet<MemberId>, me: MemberId) -> Option<To> {
    if apart.is_empty() {
        return Some(to);
    }
    let but = |members: Vec<MemberId>| {
        let all: BTreeSet<MemberId> = members.into_iter().chain(apart.iter().copied()).collect();
        Some(To::Except(all.into_iter().collect()))
    };
    match to {
        To::Authority | To::Member(_) => None,
        To::Members(members) => {
            let rest: Vec<MemberId> = members.into_iter().filter(|member| !apart.contains(member)).collect();
            (!rest.is_empty()).then_some(To::Members(rest))
        }
        To::Others => but(vec![me]),
        To::Everyone => but(Vec::new()),
        To::Except(members) => but(members),
        To::Primary => Some(To::Primary),
    }
}

fn relay(session: &mut Session, is_away: bool, letter: Letter) -> Result<(), RoomError> {
    let Letter { channel, to, stamp, payload, .. } = letter;
    Ok(say(session, is_away, Outgoing::new(channel, Upward { to, stamp, payload }.encode()))?)
}
