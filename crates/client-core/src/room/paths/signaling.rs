//! Signaling of paths through the hub, and messages from paths on their way from the driver to the game's
//! inbox.

use super::link::Out;
use super::{Outcome, Path};
use crate::inbox::Came;
use crate::room::RoomCore;
use parlor_proto::channel;
use parlor_proto::session::{Answer, Event, Message, SendError, Session};
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::envelope::{Downward, Sender};
use parlor_proto::wire::handshake::{Hello, Intent, Limits, Welcome};
use parlor_proto::wire::path::{PathRole, PathSignal};
use parlor_proto::{ChannelId, Instant, MemberId, PathId, SessionId, limits};

impl RoomCore {
    /// Handles the hub's and other members' signals of paths. Returns a message that is for the game.
    pub(crate) fn hear_of_paths(&mut self, message: Message, now: Instant) -> Option<Message> {
        match message.channel {
            channel::CONTROL => match ToMember::decode(message.payload.clone()) {
                Ok(Some(ToMember::Path(offer))) => {
                    self.read_offer(offer, now);
                    None
                }
                _ => Some(message),
            },
            channel::PATH => {
                if let Ok(Downward { from: Sender::Member(from), payload, .. }) =
                    Downward::decode(message.payload)
                    && let Ok(Some(signal)) = PathSignal::decode(payload)
                {
                    self.hear_signal(from, signal, now);
                }
                None
            }
            channel => {
                let is_sequenced = self.is_sequenced(channel) && self.is_overtaken(&message, now);
                (!is_sequenced).then_some(message)
            }
        }
    }

    fn is_sequenced(&self, channel: ChannelId) -> bool {
        let is_of_game = channel == channel::MESSAGE_SEQUENCED || channel.0 >= limits::APP_CHANNEL_FIRST;
        let row = self.options.channels.get(channel).filter(|_| is_of_game);
        row.is_some_and(|row| row.lane == parlor_proto::Lane::UnreliableSequenced)
    }

    /// Whether a sequenced message that came through the hub may be older than one that came over a path.
    fn is_overtaken(&self, message: &Message, now: Instant) -> bool {
        let from = Downward::decode(message.payload.clone());
        let Ok(Downward { from: Sender::Member(from), order: None, .. }) = from else { return false };
        self.paths.by_id.values().any(|path| path.peer == from && path.may_be_older(now))
    }

    /// Handles another member's signal of a path.
    fn hear_signal(&mut self, from: MemberId, signal: PathSignal, now: Instant) {
        let (PathSignal::Over { id } | PathSignal::Back { id, .. } | PathSignal::Rest { id, .. }) = signal;
        let is_known = self.paths.by_id.get(&id).is_some_and(|path| path.peer == from);
        match signal {
            PathSignal::Over { .. } if is_known => {
                let came = self.paths.by_id.get_mut(&id).map(|path| path.over(now)).unwrap_or_default();
                came.into_iter().for_each(|came| self.arrive(now, came));
            }
            PathSignal::Back { ends: true, rests, .. } if is_known => {
                self.path_over(id, Outcome::Lost, "the other end went back to the hub", now);
                if let Some(path) = self.paths.by_id.get_mut(&id) {
                    path.ended_there(rests);
                }
            }
            PathSignal::Back { ends: false, .. } if is_known => {
                self.paths.by_id.get_mut(&id).into_iter().for_each(Path::stop_reliable);
            }
            PathSignal::Rest { number, channel, payload, .. } => {
                // Nothing came over a path that is unknown to this process.
                let path = self.paths.by_id.get_mut(&id).filter(|_| is_known);
                if path.is_none_or(|path| path.rest(number)) && self.is_for_game(channel) {
                    let epoch = self.joined.as_ref().map(|joined| joined.welcome.epoch).unwrap_or_default();
                    let message = Message { channel, key: 0, payload, number: None, tick: None, epoch };
                    self.arrive(now, Came::Path(from, id, message));
                }
            }
            PathSignal::Over { .. } | PathSignal::Back { .. } => {}
        }
        self.paths.by_id.retain(|_, path| !path.is_done(now));
    }

    /// Whether a channel carries messages of games.
    fn is_for_game(&self, channel: ChannelId) -> bool {
        let is_typed = (channel::MESSAGE_ORDERED..=channel::MESSAGE_SEQUENCED).contains(&channel);
        is_typed || channel.0 >= limits::APP_CHANNEL_FIRST
    }

    /// Processes the arrivals of a path, up to the game's inbox.
    pub(crate) fn drain_path(&mut self, id: PathId, now: Instant) {
        while let Some(path) = self.paths.by_id.get_mut(&id)
            && let Some(event) = path.session_mut().and_then(Session::poll_event)
        {
            let (peer, role) = (path.peer, path.role);
            match event {
                Event::Hello(hello) if role == PathRole::Accept => self.greeted(id, &hello, now),
                Event::Welcome(welcome) if role == PathRole::Dial => {
                    let me = self.joined.as_ref().map(|joined| joined.welcome.member);
                    if Some(welcome.member) == me && welcome.session == session_of(id) {
                        self.path_open(id, now);
                    } else {
                        self.path_over(id, Outcome::Refused, "its welcome is another's", now);
                    }
                }
                Event::Message(message) => self.hear_path(id, message, now),
                Event::Delivered(delivery_id) => self.fate_of_path(peer, delivery_id, true),
                Event::Lost(delivery_id) => self.fate_of_path(peer, delivery_id, false),
                Event::Silent => self.path_over(id, Outcome::Lost, "nothing was heard on it", now),
                Event::Closed(reason) => {
                    let outcome = if path.is_open() { Outcome::Lost } else { Outcome::Refused };
                    self.path_over(id, outcome, &reason.to_string(), now);
                }
                Event::Rejected(_)
                | Event::Hello(_)
                | Event::Welcome(_)
                | Event::Resume(_)
                | Event::Resumed(_) => {
                    self.path_over(id, Outcome::Refused, "it is refused", now);
                }
            }
        }
    }

    /// Handles a member's hello on a path.
    fn greeted(&mut self, id: PathId, hello: &Hello, now: Instant) {
        let Some(path) = self.paths.by_id.get_mut(&id) else { return };
        let member = path.peer;
        let (Some(joined), Some(session)) = (&self.joined, path.session_mut()) else { return };
        let is_known = hello.intent == Intent::Path(id)
            && hello.channels == self.options.channels
            && (hello.version_min..=hello.version_max).contains(&joined.welcome.version);
        if !is_known {
            return self.path_over(id, Outcome::Refused, "its hello is another's", now);
        }
        let ms = |duration: std::time::Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let limits = Limits {
            keep_alive_ms: ms(limits::PATH_KEEP_ALIVE),
            silence_ms: ms(limits::PATH_SILENCE),
            ..joined.welcome.limits
        };
        let welcome = Welcome {
            session: session_of(id),
            member,
            limits,
            resume: None,
            grace_ms: 0,
            schema: bytes::Bytes::new(),
            now,
            ..joined.welcome.clone()
        };
        session.answer(Answer::Welcome(Box::new(welcome)), now);
        self.path_open(id, now);
    }

    /// Opens a path after both ends have greeted each other: reliable messages go over it from here on, and
    /// the host sends the state.
    fn path_open(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.paths.by_id.get_mut(&id) else { return };
        path.open(now);
        let over = path.through_hub(channel::PATH, PathSignal::Over { id }.encode());
        let is_said = self.session.as_mut().is_some_and(|session| session.send(over).is_ok());
        if is_said {
            path.out = Out::Path;
        }
        (self.paths.outcome, self.wants_driver) = (None, true);
        if let Some(joined) = &mut self.joined {
            joined.shared.path_opened(id, path.peer, path.role);
        }
    }

    /// Handles a message from a path.
    fn hear_path(&mut self, id: PathId, message: Message, now: Instant) {
        let channel = message.channel;
        let Some(lane) = self.options.channels.get(channel).map(|row| row.lane) else { return };
        let is_for_game = self.is_for_game(channel);
        let Some(path) = self.paths.by_id.get_mut(&id) else { return };
        let peer = path.peer;
        match (path.role, channel) {
            // The authority may send anything: its members have to trust it.
            (PathRole::Dial, channel::STATE) => self.arrive(now, Came::Path(peer, id, message)),
            (PathRole::Accept, channel::INPUT) => {
                if let Ok(Some(came)) = path.take(message, false, now) {
                    self.arrive(now, came);
                }
            }
            _ if is_for_game => match path.take(message, lane.is_reliable(), now) {
                Ok(came) => came.into_iter().for_each(|came| self.arrive(now, came)),
                Err(()) => self.path_over(id, Outcome::Lost, "more came over it than it may carry", now),
            },
            _ => self.path_over(id, Outcome::Refused, "a channel that is not for paths", now),
        }
    }

    /// Ends a path, open or not. Unacknowledged messages go through the hub.
    pub(crate) fn path_over(&mut self, id: PathId, outcome: Outcome, why: &str, now: Instant) {
        let Some(path) = self.paths.by_id.get_mut(&id).filter(|path| !path.is_over()) else { return };
        let (peer, role) = (path.peer, path.role);
        let was_open = path.end(now);
        if was_open {
            path.go_back();
        } else {
            self.paths.by_id.remove(&id);
        }
        self.paths.close(id);
        let was_source = match &mut self.joined {
            Some(joined) => joined.shared.path_closed(id, peer),
            None => false,
        };
        if role == PathRole::Dial {
            self.tell_hub(&ToHub::PathDown { id, was_up: was_source });
            let outcome = if was_open { Outcome::Lost } else { outcome };
            self.note_outcome(outcome, now);
        }
        self.paths.ended = Some(why.to_owned());
        self.drain_queues();
        self.wants_driver = true;
    }

    /// Moves queued messages to the hub's session as it has room.
    pub(crate) fn drain_queues(&mut self) {
        let Some(session) = &mut self.session else { return };
        for path in self.paths.by_id.values_mut() {
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
        let now = self.paths.now;
        self.paths.by_id.retain(|_, path| !path.is_done(now));
    }

    /// Drops messages queued to a member that left. Messages that it sent before still arrive.
    pub(crate) fn left_path(&mut self, member: MemberId) {
        self.paths.by_id.retain(|_, path| path.peer != member || !path.is_over());
    }
}

/// The session id used on a path.
fn session_of(id: PathId) -> SessionId {
    SessionId(id.0.into())
}
