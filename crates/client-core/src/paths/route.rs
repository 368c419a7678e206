//! Routes a game's messages: over paths where they exist, otherwise through the hub.
//!
//! A member's reliable ordered messages arrive in order, whatever their route. Only the hub can stamp
//! messages, and only it knows the primary and the next authority. A reliable message that needs the hub for
//! this takes all later ones back to the hub, for as long as the path lasts.

use super::link::{Out, Outcome, Path};
use super::{Around, Paths};
use crate::connection::Connection;
use crate::error::RoomError;
use crate::players::Players;
use bytes::Bytes;
use parlor_proto::OrderedSet;
use parlor_proto::session::{Outgoing, SendError};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::{ChannelId, Instant, Lane, MemberId, PathId, channel};

/// An outgoing message of a game.
pub(crate) struct Letter {
    pub(crate) channel: ChannelId,
    pub(crate) lane: Lane,
    pub(crate) to: Recipient,
    pub(crate) stamp: bool,
    pub(crate) payload: Bytes,
}

impl Paths {
    /// Sends a message on the routes to its recipients.
    ///
    /// # Errors
    /// [`RoomError::Full`] if one of the routes is full; then nothing was sent.
    pub(crate) fn post(
        &mut self,
        letter: Letter,
        players: &Players,
        around: &mut Around<'_>,
        now: Instant,
    ) -> Result<(), RoomError> {
        self.drain_queues(around.hub, now);
        let Some(welcome) = around.welcome else { return Ok(()) };
        let (me, host) = (welcome.member, welcome.authority.member());
        // The hub numbers reliable match data.
        let is_numbered = letter.stamp || letter.channel == channel::MATCH_DATA;
        let is_for_hub = is_numbered || letter.to == Recipient::Primary || self.leaves_to_hub(&letter);
        if letter.lane == Lane::UnreliableSequenced {
            if is_for_hub {
                self.kept_by_hub.insert(letter.channel);
            }
            if self.kept_by_hub.contains(&letter.channel) {
                return self.post_in_sequence(letter, (me, host), around.hub, now);
            }
        }
        if self.by_id.is_empty() || is_for_hub && letter.lane != Lane::ReliableOrdered {
            return relay(around.hub, letter);
        }
        if is_for_hub {
            // The present primary may be one of them.
            for path in self.by_id.values_mut().filter(|path| path.out == Out::Path) {
                path.go_back();
            }
            self.drain_queues(around.hub, now);
            let is_queued = self.by_id.values().any(|path| path.out == Out::Queue);
            return if is_queued { Err(RoomError::Full) } else { relay(around.hub, letter) };
        }
        self.post_apart(letter, (me, host), players, around, now)
    }

    /// Sends a message over the paths to its recipients, and through the hub to the others.
    fn post_apart(
        &mut self,
        letter: Letter,
        (me, host): (MemberId, Option<MemberId>),
        players: &Players,
        around: &mut Around<'_>,
        now: Instant,
    ) -> Result<(), RoomError> {
        let named = named(&letter.to, me, host);
        let reached = |path: &Path| named.contains(path.peer) && path.goes_apart(letter.lane);
        let mut apart: Vec<&mut Path> = self.by_id.values_mut().filter(|path| reached(path)).collect();
        if apart.iter().any(|path| path.is_full()) {
            return Err(RoomError::Full);
        }
        if letter.lane == Lane::UnreliableSequenced {
            apart.iter_mut().for_each(|path| path.carries_in_sequence(letter.channel, now));
        }
        let peers: OrderedSet<MemberId> = apart.iter().map(|path| path.peer).collect();
        let Letter { channel, lane, to, stamp, payload } = letter;
        // A newcomer that this process does not know yet must get every reliable message. Unreliable ones do
        // not need the hub for it.
        let is_known = |to: &Recipient| match to {
            Recipient::Except(members) => players.members().any(|player| !members.contains(&player.id)),
            _ => true,
        };
        match without(to, peers, me).filter(|to| lane.is_reliable() || is_known(to)) {
            Some(to) => {
                relay(around.hub, Letter { channel, lane, to, stamp, payload: payload.clone() })?;
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
            // The other recipients have it already: it goes to this one as fast as the hub takes it.
            self.end(id, Outcome::Lost, "it takes less than is sent", around, now);
            if let Some(path) = self.by_id.get_mut(&id) {
                path.push(Outgoing::new(channel, payload.clone()));
            }
        }
        self.drain_queues(around.hub, now);
        Ok(())
    }

    /// Sends a sequenced message. Once a channel has carried a message that only the hub can route, it stays
    /// with the hub: the order of messages on two routes cannot be told. Recipients that may still have an
    /// older one in flight over a path miss this one.
    fn post_in_sequence(
        &self,
        letter: Letter,
        (me, host): (MemberId, Option<MemberId>),
        hub: &mut Connection,
        now: Instant,
    ) -> Result<(), RoomError> {
        let named = named(&letter.to, me, host);
        let paths = self.by_id.values();
        let late = paths.filter(|path| named.contains(path.peer) && path.may_come_late(letter.channel, now));
        let late: OrderedSet<MemberId> = late.map(|path| path.peer).collect();
        // The present primary may be one of them.
        if letter.to == Recipient::Primary && !late.is_empty() {
            return Ok(());
        }
        match without(letter.to.clone(), late, me) {
            Some(to) => relay(hub, Letter { to, ..letter }),
            None => Ok(()),
        }
    }

    /// Whether the hub must have a message that the authority may never consume.
    fn leaves_to_hub(&self, letter: &Letter) -> bool {
        let is_owed = letter.to == Recipient::Authority && letter.lane.is_reliable();
        is_owed && self.by_id.values().any(Path::leaves_authority_to_hub)
    }

    /// Sends an input message to the host.
    pub(crate) fn post_input(
        &mut self,
        message: Outgoing,
        host: Option<MemberId>,
        hub: &mut Connection,
    ) -> Result<(), RoomError> {
        self.wants_driver = true;
        let path = self.by_id.values_mut().find(|path| Some(path.peer) == host && path.is_open());
        match path.and_then(Path::session_mut) {
            Some(session) => Ok(session.send(message)?),
            None => hub.say(message),
        }
    }
}

/// Members named by a message.
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

fn named(to: &Recipient, me: MemberId, host: Option<MemberId>) -> Named {
    match to {
        Recipient::Authority => Named::These(host.into_iter().collect()),
        Recipient::Others => Named::AllBut(vec![me]),
        Recipient::Member(member) => Named::These(vec![*member]),
        Recipient::Members(members) => Named::These(members.clone()),
        Recipient::Everyone | Recipient::Primary => Named::AllBut(Vec::new()),
        Recipient::Except(members) => Named::AllBut(members.clone()),
    }
}

impl Path {
    /// Whether a message to the other end takes a separate route.
    fn goes_apart(&self, lane: Lane) -> bool {
        if lane.is_reliable() { self.out != Out::Relay } else { self.is_open() || self.holds_up(lane) }
    }

    /// Whether it would overtake earlier messages on the path that may still be read there.
    fn holds_up(&self, lane: Lane) -> bool {
        lane == Lane::UnreliableSequenced && self.may_be_read()
    }

    /// Sends a message on that route.
    fn send_apart(&mut self, message: Outgoing, lane: Lane) -> Result<(), SendError> {
        if lane.is_reliable() && self.out == Out::Queue {
            self.push(message);
            return Ok(());
        }
        self.session_mut().map_or(Ok(()), |session| session.send(message))
    }
}

/// The recipients that remain for the hub; `None` if there are none.
fn without(to: Recipient, apart: OrderedSet<MemberId>, me: MemberId) -> Option<Recipient> {
    if apart.is_empty() {
        return Some(to);
    }
    let but = |members: Vec<MemberId>| {
        let all: OrderedSet<MemberId> = members.into_iter().chain(apart.iter().copied()).collect();
        Some(Recipient::Except(all.into_iter().collect()))
    };
    match to {
        Recipient::Authority | Recipient::Member(_) => None,
        Recipient::Members(members) => {
            let rest: Vec<MemberId> = members.into_iter().filter(|member| !apart.contains(member)).collect();
            (!rest.is_empty()).then_some(Recipient::Members(rest))
        }
        Recipient::Others => but(vec![me]),
        Recipient::Everyone => but(Vec::new()),
        Recipient::Except(members) => but(members),
        Recipient::Primary => Some(Recipient::Primary),
    }
}

fn relay(hub: &mut Connection, letter: Letter) -> Result<(), RoomError> {
    let Letter { channel, to, stamp, payload, .. } = letter;
    hub.say(Outgoing::new(channel, Upward { to, stamp, payload }.encode()))
}
