//! Resuming sessions, against a model: resume tokens used in any order, by any number of clients at once.

use parlor_hub::{Config, Hub, HubEvent, Origin, Output};
use parlor_impair::Rng;
use parlor_proto::session::{Event, Outgoing, Session};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::{
    Hello, Intent, Refusal, Resume, ResumeRefusal, ResumeToken, RoomKind, RoomSettings, Welcome,
};
use parlor_proto::wire::header::Header;
use parlor_proto::{
    Carrier, CloseReason, ConnectionId, Instant, LinkKind, Packet, RoomCode, SessionId, channel, limits,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(30);
const HOST: ConnectionId = ConnectionId(0);

/// A hub, a host that stays, and connections that carry frames.
struct World {
    hub: Hub,
    now: Instant,
    host: Session,
    connections: u64,
    /// The packets received on each, and which the hub closed.
    came: BTreeMap<ConnectionId, Vec<Packet>>,
    closed: BTreeSet<ConnectionId>,
    hub_events: Vec<HubEvent>,
}

fn settings() -> RoomSettings {
    RoomSettings::new(RoomKind::PlayerHosted, 4)
}

impl World {
    fn new(seed: u64) -> (Self, RoomCode) {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        let now = Instant::from_millis(1_000);
        let hello = Hello::new("tanks", Intent::Create(settings()));
        let mut world = World {
            hub: Hub::new(Config { grace: GRACE, ..Config::new(drawn) }),
            now,
            host: Session::client(hello, LinkKind::WebSocket, now),
            connections: 0,
            came: BTreeMap::new(),
            closed: BTreeSet::new(),
            hub_events: Vec::new(),
        };
        assert_eq!(world.connect(), HOST);
        let mut code = None;
        while code.is_none() {
            world.turn();
            while let Some(event) = world.host.poll_event() {
                if let Event::Welcome(welcome) = event {
                    code = Some(welcome.code);
                }
            }
        }
        (world, code.expect("the host is in"))
    }

    fn connect(&mut self) -> ConnectionId {
        let connection = ConnectionId(self.connections);
        self.connections += 1;
        let origin = Origin(connection.0 << 16 | 1 << 40);
        self.hub.handle_connected(connection, LinkKind::WebSocket, origin, self.now);
        connection
    }

    /// Delivers all packets in transit.
    fn turn(&mut self) {
        while let Some(packet) = self.host.poll_packet(self.now) {
            self.hub.handle_packet(HOST, packet, self.now);
        }
        self.hub.handle_timeout(self.now);
        self.hub.flush(self.now);
        while let Some(output) = self.hub.poll_output() {
            match output {
                Output::Packet { connection: HOST, packet } => {
                    self.host.handle_packet(packet, self.now).expect("the hub is honest");
                }
                Output::Packet { connection, packet } => {
                    self.came.entry(connection).or_default().push(packet)
                }
                Output::Close { connection, .. } => {
                    self.closed.insert(connection);
                }
                Output::Event(hub_event) => self.hub_events.push(hub_event),
                Output::Recorded { .. } | Output::Kept { .. } => {}
                Output::Locate { .. } | Output::Enter { .. } | Output::Claim { .. } | Output::Left { .. } => {
                    unreachable!("this hub is of no cluster")
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = (self.now + Duration::from_millis(500)).min(until);
            self.host.handle_timeout(self.now);
            self.turn();
            while self.host.poll_event().is_some() {}
        }
    }

    /// Sends a frame first on a new connection; returns the answers.
    fn ask(&mut self, frame: &Frame) -> (ConnectionId, Vec<Frame>) {
        let connection = self.connect();
        self.say(connection, Some(frame));
        (connection, self.take(connection))
    }

    /// Sends a frame, or only an empty header.
    fn say(&mut self, connection: ConnectionId, frame: Option<&Frame>) {
        let mut bytes = Vec::new();
        Header::default().write(&mut bytes);
        frame.into_iter().for_each(|frame| frame.write(&mut bytes));
        let packet = Packet { carrier: Carrier::Stream, bytes: bytes.into() };
        self.hub.handle_packet(connection, packet, self.now);
        self.turn();
    }

    fn take(&mut self, connection: ConnectionId) -> Vec<Frame> {
        let packets = self.came.remove(&connection).unwrap_or_default();
        packets.into_iter().flat_map(frames).collect()
    }

    fn join(&mut self, code: RoomCode) -> (ConnectionId, Welcome) {
        let hello = Hello::new("tanks", Intent::Join { code, secret: None });
        let (connection, frames) = self.ask(&Frame::Hello(Box::new(hello)));
        let welcome = frames.into_iter().find_map(|frame| match frame {
            Frame::Welcome(welcome) => Some(*welcome),
            _ => None,
        });
        (connection, welcome.expect("the room lets in"))
    }

    fn resume(
        &mut self,
        session: SessionId,
        token: ResumeToken,
    ) -> (ConnectionId, Result<ResumeToken, Frame>) {
        let (connection, frames) = self.ask(&Frame::Resume(Resume { session, token }));
        let answer = match frames.into_iter().next() {
            Some(Frame::Resumed(resumed)) => Ok(resumed.token),
            Some(other) => Err(other),
            None => panic!("it is answered"),
        };
        (connection, answer)
    }

    /// The connections that a message of the host to all members reaches.
    fn reached(&mut self) -> Vec<ConnectionId> {
        self.came.clear();
        let upward = parlor_proto::wire::envelope::Upward {
            to: parlor_proto::wire::envelope::Recipient::Others,
            stamp: false,
            payload: bytes::Bytes::from_static(b"hi"),
        };
        // On a lane that stores nothing for later.
        let message = Outgoing::new(channel::MESSAGE_UNRELIABLE, upward.encode());
        self.host.send(message).expect("the host is in");
        self.turn();
        let has_message = |packets: &Vec<Packet>| {
            packets.iter().cloned().flat_map(frames).any(|frame| matches!(frame, Frame::Unreliable { .. }))
        };
        self.came.iter().filter(|(_, packets)| has_message(packets)).map(|(id, _)| *id).collect()
    }
}

fn frames(packet: Packet) -> Vec<Frame> {
    let mut reader = Reader::new(packet.bytes);
    Header::read(&mut reader).expect("it has a header");
    let mut frames = Vec::new();
    while !reader.is_empty() {
        frames.extend(Frame::read(&mut reader).expect("it is well-formed"));
    }
    frames
}

fn refused(why: ResumeRefusal) -> Frame {
    Frame::Refused(Refusal::Resume { why })
}

/// The invariants, as a model in ten plain lines: tokens by number.
struct Model {
    newest: usize,
    before: Option<usize>,
    /// Used tokens that the hub remembers: the last eight.
    spent: Vec<usize>,
    /// Whether the peer has proved that it has the newest.
    is_shown: bool,
    attached: Option<ConnectionId>,
    is_over: bool,
}

impl Model {
    fn is_good(&self, token: usize) -> bool {
        !self.is_over && (token == self.newest || self.before == Some(token) && !self.is_shown)
    }

    fn resume(&mut self, token: usize, next: usize, connection: ConnectionId) {
        let spent = if token == self.newest { self.before.replace(token) } else { Some(self.newest) };
        self.spent.extend(spent);
        self.spent.drain(..self.spent.len().saturating_sub(8));
        (self.newest, self.is_shown, self.attached) = (next, false, Some(connection));
    }
}

/// Number of runs of the model. Override: `PARLOR_SEEDS`.
fn seeds() -> u64 {
    std::env::var("PARLOR_SEEDS").map_or(100, |text| text.parse().expect("PARLOR_SEEDS is a number"))
}

#[test]
fn threat_09_of_any_number_of_live_resumes_exactly_one_has_the_session() {
    for seed in 0..seeds() {
        let (mut world, code) = World::new(seed);
        let mut rng = Rng::new(seed);
        let (connection, welcome) = world.join(code);
        let mut tokens = vec![welcome.resume.expect("the hub keeps seats")];
        let mut model = Model {
            newest: 0,
            before: None,
            spent: Vec::new(),
            is_shown: false,
            attached: Some(connection),
            is_over: false,
        };
        let mut live = vec![connection];
        for step in 0..40 {
            let what = format!("seed {seed}, step {step}");
            match rng.below(8) {
                0 | 1 if live.len() > 1 => {
                    let gone = live.swap_remove(rng.index(live.len()));
                    world.hub.handle_disconnected(gone, world.now);
                    world.turn();
                    model.attached = model.attached.filter(|attached| *attached != gone);
                }
                2 | 3 if !live.is_empty() => {
                    let speaker = rng.pick(&live);
                    world.say(speaker, None);
                    model.is_shown |= model.attached == Some(speaker);
                }
                4 => {
                    let wrong = ResumeToken([u8::try_from(step).expect("it is small"); 32]);
                    let (_, answer) = world.resume(welcome.session, wrong);
                    let why = if model.is_over { ResumeRefusal::Gone } else { ResumeRefusal::Token };
                    assert_eq!(answer, Err(refused(why)), "{what}: a token that never was");
                }
                _ => {
                    // Mostly tokens that may be valid: each other one ends the session.
                    let oldest = if rng.per_mille(30) { 0 } else { tokens.len().saturating_sub(2) };
                    let number = oldest + rng.index(tokens.len() - oldest);
                    let was_over = model.is_over;
                    let (connection, answer) = world.resume(welcome.session, tokens[number]);
                    match answer {
                        Ok(next) => {
                            assert!(model.is_good(number), "{what}: token {number} is not good");
                            assert!(!tokens.contains(&next), "{what}: no token is given twice");
                            tokens.push(next);
                            let older = model.attached;
                            model.resume(number, tokens.len() - 1, connection);
                            live.push(connection);
                            assert!(older.is_none_or(|older| world.closed.contains(&older)), "{what}");
                            live.retain(|live| Some(*live) != older);
                        }
                        Err(frame) => {
                            assert!(!model.is_good(number), "{what}: token {number} is good, and {frame:?}");
                            let why = if was_over { ResumeRefusal::Gone } else { ResumeRefusal::Token };
                            assert_eq!(frame, refused(why), "{what}");
                            if model.before == Some(number) || model.spent.contains(&number) {
                                (model.is_over, model.attached) = (true, None);
                            }
                        }
                    }
                }
            }
            live.retain(|connection| !world.closed.contains(connection));
            let reached: Vec<ConnectionId> = model.attached.into_iter().collect();
            assert_eq!(world.reached(), reached, "{what}: one connection has the session, or none");
        }
        let reused = world.hub_events.iter().filter(|it| matches!(it, HubEvent::TokenReused { .. })).count();
        assert_eq!(reused, usize::from(model.is_over), "seed {seed}");
        assert_eq!(world.hub.stats().tokens_reused, reused as u64);
    }
}

/// Two clients have the same token and use it at once, in ten races per seed. The last one admitted has the
/// session alone. If the other one had proved a newer token by then, the session ends for both.
#[test]
fn threat_09_of_two_that_race_one_wins_or_none() {
    const RACES: usize = 10;
    let (mut won, mut revoked) = (0, 0);
    for seed in 0..seeds() {
        let (mut world, code) = World::new(seed);
        let mut rng = Rng::new(seed);
        for race in 0..RACES {
            let what = format!("seed {seed}, race {race}");
            let (first, welcome) = world.join(code);
            let token = welcome.resume.expect("the hub keeps seats");
            if rng.per_mille(500) {
                world.hub.handle_disconnected(first, world.now);
            }
            // Both are sent before either is answered, except in a few races.
            let is_shown = rng.per_mille(200);
            let ask = Frame::Resume(Resume { session: welcome.session, token });
            let (one, other) = (world.connect(), world.connect());
            world.say(one, Some(&ask));
            if is_shown {
                world.say(one, None);
            }
            world.say(other, Some(&ask));
            let is_in = |frames: Vec<Frame>| frames.iter().any(|frame| matches!(frame, Frame::Resumed(_)));
            let [one_in, other_in] = [one, other].map(|end| is_in(world.take(end)));
            assert!(one_in && other_in != is_shown, "{what}: {one_in}, {other_in}");
            let winner: Vec<ConnectionId> = [other].into_iter().filter(|_| other_in).collect();
            assert_eq!(world.reached(), winner, "{what}");
            assert!(world.closed.contains(&one), "{what}");
            won += usize::from(other_in);
            revoked += usize::from(!other_in);
            // The seat is free for the next race.
            winner.into_iter().for_each(|winner| world.say(winner, Some(&Frame::Close(CloseReason::Left))));
            world.pass(limits::CLOSE_LINGER);
        }
        assert_eq!(world.hub.room_count(), 1);
    }
    assert!(won > revoked && revoked > 0, "{won} won, {revoked} revoked");
}

#[test]
fn threat_08_a_token_that_was_stolen_and_used_first_is_of_no_use_to_either_in_the_end() {
    let (mut world, code) = World::new(1);
    let (owner, welcome) = world.join(code);
    let (session, first) = (welcome.session, welcome.resume.expect("the hub keeps seats"));
    world.hub.handle_disconnected(owner, world.now);
    let (thief, stolen) = world.resume(session, first);
    let stolen = stolen.expect("the token is good, whoever has it");
    world.say(thief, None);
    // The owner uses its old token.
    let (_, answer) = world.resume(session, first);
    assert_eq!(answer, Err(refused(ResumeRefusal::Token)));
    assert!(world.take(thief).contains(&Frame::Close(CloseReason::TokenReused)));
    assert!(world.closed.contains(&thief));
    assert_eq!(world.resume(session, stolen).1, Err(refused(ResumeRefusal::Gone)));
    assert_eq!(world.hub.room(code).map(|room| room.players), Some(1));
}

#[test]
fn threat_08_a_thief_cannot_begin_anew_with_a_token_that_was_used() {
    let (mut world, code) = World::new(2);
    let (_, welcome) = world.join(code);
    let token = welcome.resume.expect("the hub keeps seats");
    let (connection, _) = world.resume(welcome.session, token);
    world.say(connection, None);
    let resume = Resume { session: welcome.session, token };
    let hello = Hello::new("tanks", Intent::Resume(resume));
    let (_, frames) = world.ask(&Frame::Hello(Box::new(hello)));
    assert_eq!(frames, [refused(ResumeRefusal::Token)]);
}

#[test]
fn threat_08_a_wrong_token_is_a_wrong_guess_and_changes_nothing() {
    let (mut world, code) = World::new(3);
    let (connection, welcome) = world.join(code);
    for number in 0..5 {
        let (_, answer) = world.resume(welcome.session, ResumeToken([number; 32]));
        assert_eq!(answer, Err(refused(ResumeRefusal::Token)));
    }
    assert_eq!(world.reached(), [connection]);
    assert!(world.resume(welcome.session, welcome.resume.expect("the hub keeps seats")).1.is_ok());
    // From one place they are counted: then that place gets no more code lookups.
    let place = Origin(77 << 16);
    let ask = |world: &mut World, frame: Frame| {
        let connection = ConnectionId(world.connections);
        world.connections += 1;
        world.hub.handle_connected(connection, LinkKind::WebSocket, place, world.now);
        world.say(connection, Some(&frame));
        world.take(connection)
    };
    for _ in 0..40 {
        ask(&mut world, Frame::Resume(Resume { session: welcome.session, token: ResumeToken([9; 32]) }));
    }
    let hello = Hello::new("tanks", Intent::Join { code, secret: None });
    let frames = ask(&mut world, Frame::Hello(Box::new(hello)));
    assert!(matches!(frames[..], [Frame::RetryAfter(_)]), "{frames:?}");
    // A restarted hub has none of its sessions: that is no violation.
    let gone = Frame::Resume(Resume { session: SessionId(5), token: ResumeToken([9; 32]) });
    assert_eq!(ask(&mut world, gone), [refused(ResumeRefusal::Gone)]);
}

#[test]
fn a_seat_is_kept_for_the_grace_and_no_longer() {
    for is_in_time in [true, false] {
        let (mut world, code) = World::new(4);
        let (connection, welcome) = world.join(code);
        world.hub.handle_disconnected(connection, world.now);
        let late = Duration::from_secs(if is_in_time { 0 } else { 2 });
        world.pass(GRACE - Duration::from_secs(1) + late);
        let players = world.hub.room(code).map(|room| room.players);
        assert_eq!(players, Some(if is_in_time { 2 } else { 1 }));
        let (_, answer) = world.resume(welcome.session, welcome.resume.expect("the hub keeps seats"));
        if is_in_time {
            assert!(answer.is_ok());
        } else {
            assert_eq!(answer, Err(refused(ResumeRefusal::Gone)));
        }
    }
}

#[test]
fn who_was_removed_while_away_is_told_so_when_it_comes_back() {
    let (mut world, code) = World::new(5);
    let (connection, welcome) = world.join(code);
    world.hub.handle_disconnected(connection, world.now);
    let kick = parlor_proto::wire::control::ToHub::Kick { member: welcome.member, reason: "rude".into() };
    world.host.send(Outgoing::new(channel::CONTROL, kick.encode())).expect("the host is in");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.hub.room(code).map(|room| room.players), Some(1));
    let token = welcome.resume.expect("the hub keeps seats");
    let reason = CloseReason::Kicked { reason: "rude".into() };
    assert_eq!(world.resume(welcome.session, token).1, Err(Frame::Close(reason)));
    // Other clients do not learn of it.
    assert_eq!(world.resume(welcome.session, ResumeToken([1; 32])).1, Err(refused(ResumeRefusal::Token)));
    world.pass(GRACE + limits::SILENCE_TIMEOUT);
    assert_eq!(world.resume(welcome.session, token).1, Err(refused(ResumeRefusal::Gone)));
}

#[test]
fn reliable_messages_for_one_that_is_away_have_their_bound() {
    let (mut world, code) = World::new(6);
    let (connection, welcome) = world.join(code);
    world.hub.handle_disconnected(connection, world.now);
    let upward = parlor_proto::wire::envelope::Upward {
        to: parlor_proto::wire::envelope::Recipient::Others,
        stamp: false,
        payload: vec![0; 8 * 1024].into(),
    };
    let mut sent_bytes = 0;
    while world.hub.room(code).is_some_and(|room| room.players == 2) {
        world.host.send(Outgoing::new(channel::MESSAGE_ORDERED, upward.encode())).expect("it leaves");
        sent_bytes += 8 * 1024;
        world.pass(Duration::from_millis(500));
        assert!(sent_bytes <= 2 * limits::RELIABLE_QUEUE_BYTES_MAX, "it would wait without a bound");
    }
    assert!(sent_bytes > limits::RELIABLE_QUEUE_BYTES_MAX / 2, "{sent_bytes} bytes");
    let token = welcome.resume.expect("the hub keeps seats");
    assert_eq!(world.resume(welcome.session, token).1, Err(Frame::Close(CloseReason::TooSlow)));
}

#[test]
fn a_hub_that_keeps_no_seats_gives_no_tokens() {
    let hub = Hub::new(Config { grace: Duration::ZERO, ..Config::new([7; 32]) });
    let (mut world, _) = World::new(7);
    (world.hub, world.connections) = (hub, 0);
    let hello = Hello::new("tanks", Intent::Create(settings()));
    world.connect();
    let (connection, frames) = world.ask(&Frame::Hello(Box::new(hello)));
    let welcome = frames.iter().find_map(|frame| match frame {
        Frame::Welcome(welcome) => Some(welcome),
        _ => None,
    });
    assert!(welcome.is_some_and(|welcome| welcome.resume.is_none() && welcome.grace_ms == 0));
    world.hub.handle_disconnected(connection, world.now);
    world.turn();
    assert_eq!(world.hub.room_count(), 0);
}
