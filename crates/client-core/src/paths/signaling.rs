//! Signaling of paths through the hub, and messages from paths on their way from the driver to the game's
//! inbox.

use super::host::fate;
use super::link::{Out, Outcome, Path};
use super::{Around, Paths};
use crate::connection::Connection;
use crate::inbox::Came;
use parlor_proto::session::{Answer, Event, Message, SendError, Session};
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::envelope::{Downward, Sender};
use parlor_proto::wire::handshake::{Hello, Intent, Limits, Welcome};
use parlor_proto::wire::path::{PathRole, PathSignal};
use parlor_proto::{ChannelId, Instant, Lane, MemberId, PathId, SessionId, channel, limits};

/// What a message of the hub is.
pub(crate) enum Heard {
    /// It is for the game.
    Game(Message),
    /// It was about paths. These messages of paths are for the game.
    Paths(Vec<Came>),
}

impl Paths {
    /// Handles the hub's and other members' signals of paths.
    pub(crate) fn hear(&mut self, message: Message, around: &mut Around<'_>, now: Instant) -> Heard {
        match message.channel {
            channel::CONTROL => match ToMember::decode(message.payload.clone()) {
                Ok(Some(ToMember::Path(offer))) => {
                    self.offered(offer, around, now);
                    Heard::Paths(Vec::new())
                }
                _ => Heard::Game(message),
            },
            channel::PATH => {
                if let Ok(Downward { from: Sender::Member(from), payload, .. }) =
                    Downward::decode(message.payload)
                    && let Ok(Some(signal)) = PathSignal::decode(payload)
                {
                    return Heard::Paths(self.hear_signal(from, signal, around, now));
                }
                Heard::Paths(Vec::new())
            }
            channel if is_sequenced(channel, around) && self.is_overtaken(&message, now) => {
                Heard::Paths(Vec::new())
            }
            _ => Heard::Game(message),
        }
    }

    /// Whether a sequenced message that came through the hub may be older than one that came over a path.
    fn is_overtaken(&self, message: &Message, now: Instant) -> bool {
        let from = Downward::decode(message.payload.clone());
        let Ok(Downward { from: Sender::Member(from), order: None, .. }) = from else { return false };
        self.by_id.values().any(|path| path.peer == from && path.may_be_older(now))
    }

    /// Handles another member's signal of a path. Returns the messages that it releases.
    fn hear_signal(
        &mut self,
        from: MemberId,
        signal: PathSignal,
        around: &mut Around<'_>,
        now: Instant,
    ) -> Vec<Came> {
        let (PathSignal::Over { id } | PathSignal::Back { id, .. } | PathSignal::Rest { id, .. }) = signal;
        let is_known = self.by_id.get(&id).is_some_and(|path| path.peer == from);
        let mut came = Vec::new();
        match signal {
            PathSignal::Over { .. } if is_known => {
                came = self.by_id.get_mut(&id).map(|path| path.over(now)).unwrap_or_default();
            }
            PathSignal::Back { ends: true, rests, .. } if is_known => {
                self.end(id, Outcome::Lost, "the other end went back to the hub", around, now);
                if let Some(path) = self.by_id.get_mut(&id) {
                    path.ended_there(rests);
                }
            }
            PathSignal::Back { ends: false, .. } if is_known => {
                self.by_id.get_mut(&id).into_iter().for_each(Path::stop_reliable);
            }
            PathSignal::Rest { number, channel, payload, .. } => {
                // Nothing came over a path that is unknown to this process.
                let path = self.by_id.get_mut(&id).filter(|_| is_known);
                if path.is_none_or(|path| path.rest(number)) && is_for_game(channel) {
                    let epoch = around.welcome.map(|welcome| welcome.epoch).unwrap_or_default();
                    let message = Message { channel, key: 0, payload, number: None, tick: None, epoch };
                    came.push(Came::Path(from, id, message));
                }
            }
            PathSignal::Over { .. } | PathSignal::Back { .. } => {}
        }
        self.by_id.retain(|_, path| !path.is_done(now));
        came
    }

    /// Processes the arrivals of a path up to the next message for the game's inbox, and returns that.
    pub(crate) fn next_arrived(&mut self, id: PathId, around: &mut Around<'_>, now: Instant) -> Option<Came> {
        loop {
            let path = self.by_id.get_mut(&id)?;
            let event = path.session_mut().and_then(Session::poll_event)?;
            let (peer, role) = (path.peer, path.role);
            match event {
                Event::Hello(hello) if role == PathRole::Accept => self.greeted(id, &hello, around, now),
                Event::Welcome(welcome) if role == PathRole::Dial => {
                    let me = around.welcome.map(|welcome| welcome.member);
                    if Some(welcome.member) == me && welcome.session == session_of(id) {
                        self.open(id, around, now);
                    } else {
                        self.end(id, Outcome::Refused, "its welcome is another's", around, now);
                    }
                }
                Event::Message(message) => {
                    if let Some(came) = self.hear_path(id, message, around, now) {
                        return Some(came);
                    }
                }
                Event::Delivered(delivery_id) => fate(around, peer, delivery_id, true),
                Event::Lost(delivery_id) => fate(around, peer, delivery_id, false),
                Event::Silent => self.end(id, Outcome::Lost, "nothing was heard on it", around, now),
                Event::Closed(reason) => {
                    let outcome = if path.is_open() { Outcome::Lost } else { Outcome::Refused };
                    self.end(id, outcome, &reason.to_string(), around, now);
                }
                Event::Rejected(_)
                | Event::Hello(_)
                | Event::Welcome(_)
                | Event::Resume(_)
                | Event::Resumed(_)
                | Event::Seat(_)
                | Event::Moved(_) => self.end(id, Outcome::Refused, "it is refused", around, now),
            }
        }
    }

    /// Handles a member's hello on a path.
    fn greeted(&mut self, id: PathId, hello: &Hello, around: &mut Around<'_>, now: Instant) {
        let Some(path) = self.by_id.get_mut(&id) else { return };
        let member = path.peer;
        let (Some(of_room), Some(session)) = (around.welcome, path.session_mut()) else { return };
        let is_known = hello.intent == Intent::Path(id)
            && hello.channels == around.options.channels
            && (hello.version_min..=hello.version_max).contains(&of_room.version);
        if !is_known {
            return self.end(id, Outcome::Refused, "its hello is another's", around, now);
        }
        let ms = |duration: std::time::Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let limits = Limits {
            keep_alive_ms: ms(limits::PATH_KEEP_ALIVE),
            silence_ms: ms(limits::PATH_SILENCE),
            ..of_room.limits
        };
        let welcome = Welcome {
            session: session_of(id),
            member,
            limits,
            resume: None,
            grace_ms: 0,
            schema: bytes::Bytes::new(),
            now,
            ..of_room.clone()
        };
        session.answer(Answer::Welcome(Box::new(welcome)), now);
        self.open(id, around, now);
    }

    /// Opens a path after both ends have greeted each other: reliable messages go over it from here on, and
    /// the host sends the state.
    fn open(&mut self, id: PathId, around: &mut Around<'_>, now: Instant) {
        let Some(path) = self.by_id.get_mut(&id) else { return };
        path.open(now);
        let over = path.through_hub(channel::PATH, PathSignal::Over { id }.encode());
        if around.hub.session_mut().is_some_and(|session| session.send(over).is_ok()) {
            path.out = Out::Path;
        }
        self.wants_driver = true;
        let (peer, role, has_authority) = (path.peer, path.role, path.is_to_host() || path.is_of_host());
        if let Some(replicas) = around.replicas.as_deref_mut() {
            replicas.path_opened(peer);
        }
        if !has_authority {
            return self.tell_hub(around.hub, &ToHub::PathUp { id });
        }
        self.outcome = None;
        if let Some(shared) = around.shared.as_deref_mut() {
            shared.path_opened(id, peer, role);
        }
    }

    /// Handles a message from a path. Returns it if it is for the game's inbox.
    fn hear_path(
        &mut self,
        id: PathId,
        message: Message,
        around: &mut Around<'_>,
        now: Instant,
    ) -> Option<Came> {
        let channel = message.channel;
        let lane = around.options.channels.get(channel).map(|row| row.lane)?;
        let path = self.by_id.get_mut(&id)?;
        match channel {
            // The authority may send anything: its members have to trust it.
            channel::STATE if path.is_to_host() => Some(Came::Path(path.peer, id, message)),
            channel::INPUT if path.is_of_host() => path.take(message, false, now).ok().flatten(),
            channel::REPLICAS => path.take(message, false, now).ok().flatten(),
            _ if is_for_game(channel) => match path.take(message, lane.is_reliable(), now) {
                Ok(came) => came,
                Err(()) => {
                    self.end(id, Outcome::Lost, "more came over it than it may carry", around, now);
                    None
                }
            },
            _ => {
                self.end(id, Outcome::Refused, "a channel that is not for paths", around, now);
                None
            }
        }
    }

    /// Moves queued messages to the hub's session as it has room.
    pub(crate) fn drain_queues(&mut self, hub: &mut Connection, now: Instant) {
        let Some(session) = hub.session_mut() else { return };
        for path in self.by_id.values_mut() {
            while let Some(next) = path.next_queued() {
                match session.send(next.clone()) {
                    Ok(()) => path.pop_queued(),
                    Err(SendError::Full) => break,
                    // The session is over, and nothing is owed.
                    Err(SendError::Misuse(_)) => return,
                }
                self.wants_driver = true;
            }
        }
        self.by_id.retain(|_, path| !path.is_done(now));
    }
}

/// Whether a channel carries sequenced messages of games.
fn is_sequenced(channel: ChannelId, around: &Around<'_>) -> bool {
    let is_of_game = channel == channel::MESSAGE_SEQUENCED || channel.0 >= limits::APP_CHANNEL_FIRST;
    let row = around.options.channels.get(channel).filter(|_| is_of_game);
    row.is_some_and(|row| row.lane == Lane::UnreliableSequenced)
}

/// Whether a channel carries messages of games.
fn is_for_game(channel: ChannelId) -> bool {
    let is_typed = (channel::MESSAGE_ORDERED..=channel::MESSAGE_SEQUENCED).contains(&channel);
    is_typed || channel == channel::MATCH_DATA_UNRELIABLE || channel.0 >= limits::APP_CHANNEL_FIRST
}

/// The session id used on a path.
fn session_of(id: PathId) -> SessionId {
    SessionId(id.0.into())
}
