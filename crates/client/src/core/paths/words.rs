//! What comes over paths, and what two ends say of them through the hub: from the driver to the game's inbox.

use super::super::inbox::Came;
use super::super::room::RoomCore;
use super::link::Out;
use super::{Outcome, Path};
use parlor_proto::channel;
use parlor_proto::session::{Answer, Event, Message, SendError, Session};
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::envelope::{Downward, From};
use parlor_proto::wire::handshake::{Hello, Intent, Limits, Welcome};
use parlor_proto::wire::path::{PathRole, PathWord};
use parlor_proto::{ChannelId, Instant, MemberId, PathId, SessionId, limits};

impl RoomCore {
    /// Takes what the hub tells of paths, and what another member says of one; gives back what is for the game.
    pub(in crate::core) fn hear_of_paths(&mut self, message: Message, now: Instant) -> Option<Message> {
        match message.channel {
            channel::CONTROL => match ToMember::decode(message.payload.clone()) {
                Ok(Some(ToMember::Path(offer))) => {
                    self.read_offer(offer, now);
                    None
                }
                _ => Some(message),
            },
            channel::PATH => {
                if let Ok(Downward { from: From::Member(from), payload, .. }) =
                    Downward::decode(message.payload)
                    && let Ok(Some(word)) = PathWord::decode(payload)
                {
                    self.hear_word(from, word, now);
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
        let Ok(Downward { from: From::Member(from), order: None, .. }) = from else { return false };
        self.paths.by_id.values().any(|path| path.peer == from && path.may_be_older(now))
    }

    /// Another member says something of a path.
    fn hear_word(&mut self, from: MemberId, word: PathWord, now: Instant) {
        let (PathWord::Over { id } | PathWord::Back { id, .. } | PathWord::Rest { id, .. }) = word;
        let is_known = self.paths.by_id.get(&id).is_some_and(|path| path.peer == from);
        match word {
            PathWord::Over { .. } if is_known => {
                let came = self.paths.by_id.get_mut(&id).map(|path| path.over(now)).unwrap_or_default();
                came.into_iter().for_each(|came| self.arrive(now, came));
            }
            PathWord::Back { ends: true, rests, .. } if is_known => {
                self.path_over(id, Outcome::Lost, "the other end went back to the hub", now);
                if let Some(path) = self.paths.by_id.get_mut(&id) {
                    path.ended_there(rests);
                }
            }
            PathWord::Back { ends: false, .. } if is_known => {
                self.paths.by_id.get_mut(&id).into_iter().for_each(Path::stop_reliable);
            }
            PathWord::Rest { number, channel, payload, .. } => {
                // Of a path that this process knows nothing of, nothing came.
                let path = self.paths.by_id.get_mut(&id).filter(|_| is_known);
                if path.is_none_or(|path| path.rest(number)) && self.is_for_game(channel) {
                    let epoch = self.joined.as_ref().map(|joined| joined.welcome.epoch).unwrap_or_default();
                    let message = Message { channel, key: 0, payload, number: None, tick: None, epoch };
                    self.arrive(now, Came::Path(from, id, message));
                }
            }
            PathWord::Over { .. } | PathWord::Back { .. } => {}
        }
        self.paths.by_id.retain(|_, path| !path.is_done(now));
    }

    /// Whether a channel carries messages of games.
    fn is_for_game(&self, channel: ChannelId) -> bool {
        let is_typed = (channel::MESSAGE_ORDERED..=channel::MESSAGE_SEQUENCED).contains(&channel);
        is_typed || channel.0 >= limits::APP_CHANNEL_FIRST
    }

    /// Does what came over a path, up to the game's inbox.
    pub(in crate::core) fn drain_path(&mut self, id: PathId, now: Instant) {
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
                Event::Delivered(tag) => self.fate_of_path(peer, tag, true),
                Event::Lost(tag) => self.fate_of_path(peer, tag, false),
                Event::Silent => self.path_over(id, Outcome::Lost, "nothing was heard on it", now),
                Event::Closed(reason) => {
                    let outcome = if path.is_open() { Outcome::Lost } else { Outcome::Refused };
                    self.path_over(id, outcome, &reason.to_string(), now);
                }
                Event::TurnedAway(_)
                | Event::Hello(_)
                | Event::Welcome(_)
                | Event::Resume(_)
                | Event::Resumed(_) => {
                    self.path_over(id, Outcome::Refused, "it is refused", now);
                }
            }
        }
    }

    /// A member says hello on a path.
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

    /// Both ends have greeted each other: reliable messages go over the path from here on, and the host sends the state.
    fn path_open(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.paths.by_id.get_mut(&id) else { return };
        path.open(now);
        let over = path.through_hub(channel::PATH, PathWord::Over { id }.encode());
        let is_said = self.session.as_mut().is_some_and(|session| session.send(over).is_ok());
        if is_said {
            path.out = Out::Path;
        }
        (self.paths.outcome, self.wants_driver) = (None, true);
        if let Some(joined) = &mut self.joined {
            joined.shared.path_opened(id, path.peer, path.role);
        }
    }

    /// A message came over a path.
    fn hear_path(&mut self, id: PathId, message: Message, now: Instant) {
        let channel = message.channel;
        let Some(lane) = self.options.channels.get(channel).map(|row| row.lane) else { return };
        let is_for_game = self.is_for_game(channel);
        let Some(path) = self.paths.by_id.get_mut(&id) else { return };
        let peer = path.peer;
        match (path.role, channel) {
            // The authority may send what it wants: whoever plays with it is in its hands.
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

    /// A path is over, or does not come about: what was sent over it and is not known to have come goes through the hub.
    pub(in crate::core) fn path_over(&mut self, id: PathId, outcome: Outcome, why: &str, now: Instant) {
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

    /// Gives the hub's session what waits for room in it.
    pub(in crate::core) fn drain_queues(&mut self) {
        let Some(session) = &mut self.session else { return };
        for path in self.paths.by_id.values_mut() {
            while let Some(next) = path.next_queued() {
                match session.send(next.clone()) {
                    Ok(()) => path.pop_queued(),
                    Err(SendError::Full) => break,
                    // The session is over, and nothing is owed to anybody.
                    Err(SendError::Misuse(_)) => return,
                }
                self.wants_driver = true;
            }
        }
        let now = self.paths.now;
        self.paths.by_id.retain(|_, path| !path.is_done(now));
    }

    /// A member is gone: what was to go to it is nobody's. What it sent before it went still comes.
    pub(in crate::core) fn left_path(&mut self, member: MemberId) {
        self.paths.by_id.retain(|_, path| path.peer != member || !path.is_over());
    }
}

/// What the session of a path is called.
fn session_of(id: PathId) -> SessionId {
    SessionId(id.0.into())
}
