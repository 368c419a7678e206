//! A room whose server dies, against scripted servers: when another one is asked, and what the game sees.

mod moving;

use crate::hub::{self, NOW, admit, control, joined, tell, welcome};
use bytes::Bytes;
use parlor_client_core::{Event, LinkState, Mode, Options, ReconnectPolicy, RoomCore};
use parlor_proto::session::{self, Answer, Rejection, Session};
use parlor_proto::wire::control::{PlayerData, ToHub, ToMember};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::{
    Claim, Intent, Redirect, Refusal, Resume, ResumeRefusal, ResumeToken, RetryAfter, Seat, Welcome,
    capability,
};
use parlor_proto::{Epoch, Instant, Lane, LinkKind, MemberId, SessionId, channel};
use parlor_sync::keyed::{Audience, Keys};
use parlor_sync::value::Value;
use parlor_sync::world::{IdsUsed, Replica};
use std::sync::Arc;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(10);
const LOST: &str = "the node died";

fn token(of: u8) -> ResumeToken {
    ResumeToken([of; 32])
}

fn seat(term: u64, elsewhere: &[&str]) -> Seat {
    let elsewhere = elsewhere.iter().map(|address| (*address).to_owned()).collect();
    Seat { term, uid: [7; 16], pass: Bytes::from_static(b"pass"), hedge_ms: 0, elsewhere, moves_to: None }
}

/// A room, its server, and the server that it claims its seat at.
struct World {
    room: RoomCore,
    now: Instant,
    hub: Session,
    claim: Option<Session>,
    events: Vec<Event>,
    /// How often the game writes state, and the server relays a message, while it is heard.
    pace: Duration,
    /// The dialled addresses, and when.
    dialled: Vec<(String, Duration)>,
    /// When the server fell silent.
    silent: Option<Instant>,
}

impl World {
    /// The first member hosts, the second one has joined.
    fn new(member: u32, pace_ms: u64, seat: Option<Seat>) -> Self {
        let mut options =
            if member == 0 { Options::host("tanks") } else { Options::join("tanks", welcome(0).code) };
        options.reconnect_policy = ReconnectPolicy { jitter: 0.0, ..ReconnectPolicy::default() };
        let mut world = World {
            room: RoomCore::new(options, Mode::Auto),
            now: NOW,
            hub: Session::server(LinkKind::Quic, NOW),
            claim: None,
            events: Vec::new(),
            pace: Duration::from_millis(pace_ms),
            dialled: Vec::new(),
            silent: None,
        };
        world.room.connected(LinkKind::Quic, NOW);
        hub::exchange(&mut world.room, &mut world.hub, NOW);
        let welcome = world.welcome(member, 1, 0);
        admit(&mut world.hub, welcome, &[0, 1], NOW);
        if let Some(seat) = seat {
            world.hub.tell_seat(seat);
        }
        world.run(100);
        assert!(world.room.is_connected() && world.room.player_count() == 2, "{:?}", world.events);
        world
    }

    /// The welcome of session `of` in the room at this epoch.
    fn welcome(&self, member: u32, of: u8, epoch: u32) -> Welcome {
        Welcome {
            session: SessionId(of.into()),
            member: MemberId(member),
            resume: Some(token(of)),
            grace_ms: 30_000,
            epoch: Epoch(epoch),
            now: self.now,
            opened: NOW,
            ..welcome(capability::MOVES)
        }
    }

    /// Lets time pass, with a game that polls and steps.
    fn run(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while self.now < until {
            self.now += STEP;
            let since = self.now.saturating_since(NOW).as_micros();
            let is_heard = self.silent.is_none() && self.room.link_state() == LinkState::Connected;
            if is_heard && since.is_multiple_of(self.pace.as_micros()) && self.hub.is_attached() {
                tell(&mut self.hub, &ToMember::Throttled);
            }
            self.play();
            self.carry();
        }
    }

    fn play(&mut self) {
        while self.room.tick(self.now) {}
        self.events.extend(
            std::iter::from_fn(|| self.room.poll(self.now)).filter(|event| *event != Event::Throttled),
        );
    }

    /// Lets packets and time pass.
    fn carry(&mut self) {
        let now = self.now;
        self.room.handle_timeout(now);
        self.hub.handle_timeout(now);
        while let Some(packet) = self.room.poll_packet(now) {
            if self.silent.is_none() {
                self.hub.handle_packet(packet, now).expect("the room keeps to the protocol");
            }
        }
        while let Some(packet) = self.hub.poll_packet(now) {
            if self.silent.is_none() {
                self.room.handle_packet(packet, now);
            }
        }
        let Some(claim) = &mut self.claim else { return };
        let line = self.room.line();
        while let Some(packet) = self.room.poll_claim_packet(now) {
            claim.handle_packet(packet, now).expect("the claim keeps to the protocol");
        }
        while let Some(packet) = claim.poll_packet(now) {
            match self.room.line() == line {
                true => self.room.handle_claim_packet(packet, now),
                false => self.room.handle_packet(packet, now),
            }
        }
        if self.room.line() != line {
            (self.hub, self.silent) = (self.claim.take().expect("it is there"), None);
        } else if !self.room.is_claiming() {
            self.claim = None;
        }
    }

    /// Silences the server.
    fn silence(&mut self) {
        self.silent = Some(self.now);
    }

    /// Runs until the next claim is dialled, at most so long. Returns the address.
    fn dialled(&mut self, within_ms: u64) -> Option<String> {
        let until = self.now + Duration::from_millis(within_ms);
        while self.now < until {
            self.run(10);
            if self.room.next_claim().is_some_and(|at| at <= self.now) {
                let address = self.room.claim_begins()?;
                let since = self.now.saturating_since(self.silent.unwrap_or(NOW));
                self.dialled.push((address.clone(), since));
                return Some(address);
            }
        }
        None
    }

    /// The claim that reaches another server. `None` if it is no claim.
    fn claimed(&mut self) -> Option<Claim> {
        self.claim = Some(Session::server(LinkKind::Quic, self.now));
        self.room.claim_connected(LinkKind::Quic, self.now);
        self.carry();
        match self.claim.as_mut()?.poll_event()? {
            session::Event::Hello(hello) => match hello.intent {
                Intent::Claim(claim) => Some(*claim),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Answers the claim with a rejection.
    fn reject(&mut self, away: Rejection) {
        let now = self.now;
        self.claim.as_mut().expect("it asks").answer(Answer::Rejected(away), now);
        self.carry();
    }

    /// Lets the claim in, with a seat of this term.
    fn admit(&mut self, member: u32, term: u64, members: &[u32]) {
        let welcome = self.welcome(member, 2, 1);
        let now = self.now;
        let hub = self.claim.as_mut().expect("it asks");
        let count = u16::try_from(members.len()).expect("they are few");
        hub.answer(Answer::Welcome(Box::new(Welcome { members: count, ..welcome })), now);
        hub.tell_seat(seat(term, &["c:1"]));
        members.iter().for_each(|id| tell(hub, &joined(*id, true)));
        tell(hub, &ToMember::Reopened { gap: true, epoch: Epoch(1) });
        self.carry();
    }

    fn is_reopened(&self) -> bool {
        self.events.contains(&Event::Reopened { gap: true })
    }
}

fn retry() -> Rejection {
    Rejection::RetryAfter(RetryAfter {
        after: Duration::from_millis(250),
        detail: "its owner may live".into(),
    })
}

fn gone() -> Rejection {
    Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Gone })
}

fn to(address: &str) -> Rejection {
    Rejection::Redirect(Redirect { address: address.to_owned() })
}

#[test]
fn an_active_room_that_falls_silent_is_claimed_beside_its_link() {
    let mut world = World::new(0, 200, Some(seat(3, &["b:1", "c:1"])));
    world.run(12_000);
    assert_eq!(world.room.next_claim(), None, "it is heard");
    world.events.clear();
    world.silence();
    assert_eq!(world.dialled(3_000).as_deref(), Some("b:1"));
    let (_, since) = &world.dialled[0];
    assert!((500..1_000).contains(&since.as_millis()), "{since:?}");
    assert_eq!(
        (world.room.link_state(), &*world.events),
        (LinkState::Connected, &[][..]),
        "silence is no death"
    );
    let claim = world.claimed().expect("it claims");
    assert_eq!((&*claim.pass, claim.token, claim.term), (&b"pass"[..], token(1), 3));
    let room_time = world.now.saturating_since(NOW).as_micros();
    assert!(claim.room_time_us.is_some_and(|us| u128::from(us).abs_diff(room_time) < 50_000), "{claim:?}");
    // The owner was merely slow.
    world.silent = None;
    world.run(500);
    assert!(!world.room.is_claiming() && world.room.next_claim().is_none() && world.room.line() == 0);
    assert_eq!(world.events, []);
}

#[test]
fn an_idle_room_is_claimed_once_its_link_is_lost_and_another_never() {
    let mut world = World::new(1, 60_000, Some(seat(1, &["b:1"])));
    world.run(12_000);
    world.silence();
    assert_eq!(world.dialled(4_000), None, "its pauses are long");
    world.room.disconnected(LOST, world.now);
    assert_eq!(world.dialled(500).as_deref(), Some("b:1"));
    let mut alone = World::new(1, 100, None);
    alone.run(9_000);
    alone.silence();
    assert_eq!(alone.dialled(3_000), None);
    alone.room.disconnected(LOST, alone.now);
    assert_eq!(alone.dialled(5_000), None, "a server alone gives no seat");
}

#[test]
fn a_host_goes_on_at_another_server_with_its_world() {
    let mut world = World::new(0, 100, Some(seat(1, &["b:1"])));
    world.run(9_000);
    let red = Value::from("red");
    world.room.set_player_data(MemberId(0), "color", Some(&red)).expect("it is its own");
    let data =
        PlayerData { member: MemberId(0), key: "color".into(), value: Some(red.encode(100).expect("short")) };
    tell(&mut world.hub, &ToMember::Data(data.clone()));
    for score in 0..50 {
        world.room.set("score", &score, Audience::All).expect("it hosts");
        world.run(20);
    }
    let known = world.room.player(MemberId(1)).cloned();
    world.events.clear();
    world.silence();
    world
        .room
        .send(Lane::ReliableOrdered, Recipient::Others, "lost", &1, false, world.now)
        .expect("it is open");
    world.dialled(2_000).expect("it asks");
    world.claimed().expect("it claims");
    world.admit(0, 2, &[1, 0]);
    assert_eq!(world.room.line(), 1);
    world.run(20);
    let (tick, hash) = world.room.state_hash().expect("it has the world");
    world
        .room
        .send(Lane::ReliableOrdered, Recipient::Others, "new", &2, false, world.now)
        .expect("it is open");
    let mut heard = Vec::new();
    for _ in 0..50 {
        world.run(10);
        heard.extend(hub::messages(&mut world.hub));
    }
    assert_eq!(world.events, [Event::Reopened { gap: true }], "the game is told nothing else");
    assert!(world.room.is_host() && world.room.info().epoch == Epoch(1));
    assert_eq!(world.room.player(MemberId(1)), known.as_ref());
    assert!(control(heard.clone()).contains(&ToHub::SetData(data)), "the server knows no player data");
    let texts: Vec<bool> = heard
        .iter()
        .filter(|message| message.channel == channel::MESSAGE_ORDERED)
        .map(|message| message.payload.windows(3).any(|bytes| bytes == b"new"))
        .collect();
    assert_eq!(texts, [true], "what was under way is dropped, and what follows arrives once");
    let mut replica = Replica::of_everything(Arc::default(), welcome(0).tick_rate);
    for message in heard.into_iter().filter(|message| message.channel == channel::STATE) {
        assert_eq!(message.epoch, Epoch(1));
        replica.apply(message.payload).expect("the stream begins from nothing");
    }
    assert!(replica.settled().is_some());
    let mut copy = replica.into_successor(IdsUsed { slots: 0, generation: 0 });
    let (keys, _) = Keys::of_world(&mut copy).expect("it is a world");
    assert_eq!(keys.get("score"), Some(Value::from(49)));
    assert!(tick > 0 && world.room.state_hash().is_some_and(|(_, now)| now == hash));
}

#[test]
fn a_member_keeps_its_players_and_its_view_until_the_new_stream_is_whole() {
    let mut world = World::new(1, 100, Some(seat(1, &["b:1"])));
    world.run(9_000);
    world.events.clear();
    world.room.disconnected(LOST, world.now);
    world.dialled(2_000).expect("it asks");
    world.claimed().expect("it claims");
    world.admit(1, 2, &[1, 2]);
    world.run(100);
    let told: Vec<&str> = world.events.iter().map(kind).collect();
    assert_eq!(told, ["lost", "back", "joined 2", "left 0", "reopened"]);
    assert_eq!(world.room.link_state(), LinkState::Connected);
    assert_eq!(world.room.resume_proof(), Some(Resume { session: SessionId(2), token: token(2) }));
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::ConnectionLost { .. } => "lost",
        Event::Reconnecting { .. } => "attempt",
        Event::Reconnected { state_resynced: false } => "back",
        Event::PlayerJoined(player) if player.id == MemberId(2) => "joined 2",
        Event::PlayerLeft { id: MemberId(0), .. } => "left 0",
        Event::Reopened { .. } => "reopened",
        Event::Closed(_) => "closed",
        _ => "another",
    }
}

#[test]
fn nobody_goes_to_a_lower_term_or_another_room() {
    let mut world = World::new(1, 100, Some(seat(5, &["b:1", "c:1"])));
    world.run(9_000);
    world.silence();
    for (address, uid, term) in [("b:1", [7; 16], 4), ("c:1", [8; 16], 9)] {
        assert_eq!(world.dialled(4_000).as_deref(), Some(address));
        world.claimed().expect("it claims");
        let (welcome, now) = (world.welcome(1, 2, 1), world.now);
        let hub = world.claim.as_mut().expect("it asks");
        hub.answer(Answer::Welcome(Box::new(welcome)), now);
        hub.tell_seat(Seat { uid, ..seat(term, &[]) });
        world.carry();
        assert_eq!((world.room.line(), world.room.is_claiming()), (0, false));
    }
    world.dialled(4_000).expect("it asks again");
    assert_eq!(world.claimed().expect("it claims").term, 5, "what was refused changes nothing");
    world.admit(1, 5, &[0, 1]);
    world.run(50);
    assert!(world.room.line() == 1 && world.is_reopened());
    // A server that is not the owner any more is left.
    world.hub.tell_seat(seat(4, &["d:1"]));
    world.run(20);
    assert_eq!(world.room.link_state(), LinkState::Reconnecting);
    assert_eq!(world.dialled(2_000).as_deref(), Some("c:1"));
}

#[test]
fn answers_that_send_elsewhere_or_put_off_are_followed_within_bounds() {
    let mut world = World::new(1, 100, Some(seat(1, &["b:1", "c:1"])));
    world.run(9_000);
    world.silence();
    let mut addresses = Vec::new();
    for _ in 0..5 {
        let asked = world.now;
        addresses.push(world.dialled(3_000).expect("it asks"));
        let waited = world.now.saturating_since(asked);
        assert!(
            addresses.len() == 1 || addresses.len() == 5 || waited <= STEP * 2,
            "{addresses:?}: {waited:?}"
        );
        world.claimed().expect("it claims");
        world.reject(to("d:1"));
    }
    assert_eq!(addresses, ["b:1", "d:1", "d:1", "d:1", "b:1"], "circles are left");
    let mut world = World::new(1, 100, Some(seat(1, &["b:1", "c:1"])));
    world.run(9_000);
    world.silence();
    let mut at = Vec::new();
    for _ in 0..5 {
        world.dialled(3_000).expect("it asks");
        world.claimed().expect("it claims");
        world.reject(retry());
        at.push(world.now);
    }
    let waits: Vec<u64> =
        at.windows(2).map(|at| at[1].saturating_since(at[0]).as_millis()).map(round).collect();
    assert_eq!(waits, [400, 800, 1_000, 1_000], "twice as long each time, up to a second");
    let asked: Vec<&str> = world.dialled.iter().map(|(address, _)| &**address).collect();
    assert_eq!(asked, ["b:1", "c:1", "b:1", "c:1", "b:1"]);
}

fn round(ms: u128) -> u64 {
    u64::try_from(ms / 100 * 100).expect("it is short")
}

#[test]
fn a_claim_without_an_answer_is_followed_by_one_at_another_server() {
    let mut world = World::new(1, 100, Some(seat(1, &["b:1", "c:1"])));
    world.run(9_000);
    world.silence();
    assert_eq!(world.dialled(3_000).as_deref(), Some("b:1"));
    world.claimed().expect("it claims");
    // It stands still.
    world.claim = None;
    let asked = world.now;
    assert_eq!(world.dialled(5_000).as_deref(), Some("c:1"));
    let waited = world.now.saturating_since(asked);
    assert!((2_000..3_100).contains(&waited.as_millis()), "{waited:?}");
    world.claimed().expect("it claims");
    world.admit(1, 2, &[0, 1]);
    world.run(50);
    assert!(world.is_reopened());
}

#[test]
fn a_refused_claim_is_the_last_one() {
    let mut world = World::new(1, 100, Some(seat(1, &["b:1"])));
    world.run(9_000);
    world.silence();
    world.dialled(3_000).expect("it asks");
    world.claimed().expect("it claims");
    world.reject(gone());
    assert_eq!(world.dialled(4_000), None);
    assert_eq!(world.room.link_state(), LinkState::Connected, "the server may still be heard");
    world.silent = None;
    world.run(500);
    world.hub.tell_seat(seat(2, &["c:1"]));
    world.run(10_000);
    world.silence();
    assert_eq!(world.dialled(3_000).as_deref(), Some("c:1"), "another seat can be claimed");
}

/// Resumes at the same address, where the answer is that the session is gone.
fn resume_in_vain(world: &mut World) {
    let now = world.now;
    world.room.disconnected(LOST, now);
    while world.room.next_attempt().is_none_or(|at| at > world.now) {
        world.now += STEP;
    }
    let now = world.now;
    world.room.attempt_begins(now);
    world.hub = Session::server(LinkKind::Quic, now);
    world.room.connected(LinkKind::Quic, now);
    world.carry();
    world.hub.answer(Answer::Rejected(gone()), now);
    world.carry();
}

#[test]
fn a_server_that_began_anew_is_asked_to_reopen_the_room() {
    for (member, is_refused) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut world = World::new(member, 100, Some(seat(1, &[])));
        world.run(9_000);
        resume_in_vain(&mut world);
        assert!(
            world.room.closed().is_none()
                && world.room.next_attempt().is_none()
                && world.room.is_coming_back()
        );
        assert_eq!(world.dialled(2_000).as_deref(), Some(""), "where the room was");
        world.claimed().expect("it claims");
        if is_refused {
            world.reject(gone());
            world.run(20);
            let is_over = world.room.closed().is_some();
            assert_eq!(is_over, member == 0, "a host alone cannot join its room by the code");
            assert_eq!(world.room.next_attempt().is_some(), member == 1);
        } else {
            world.admit(member, 2, &[0, 1]);
            world.run(50);
            assert!(world.is_reopened() && world.room.is_host() == (member == 0), "{:?}", world.events);
        }
    }
}

#[test]
fn claims_of_a_lost_room_end_with_the_time_to_reconnect() {
    let mut world = World::new(1, 100, Some(seat(1, &["b:1"])));
    world.run(9_000);
    resume_in_vain(&mut world);
    let began = world.now;
    while world.room.closed().is_none() {
        assert!(world.now < began + Duration::from_secs(70), "it goes on for ever");
        if world.dialled(2_000).is_some() {
            world.room.claim_failed("unreachable", world.now);
        }
    }
    assert!(world.now > began + Duration::from_secs(55) && world.room.next_claim().is_none());
}

#[test]
fn other_servers_are_asked_for_longer_than_the_attempts_would_last() {
    for until_s in [40, 70] {
        let mut world = World::new(1, 100, Some(seat(1, &["b:1"])));
        world.run(9_000);
        world.room.disconnected(LOST, world.now);
        let lost = world.now;
        let mut attempts = 0;
        while world.now < lost + Duration::from_secs(until_s) && world.room.closed().is_none() {
            if world.room.next_attempt().is_some_and(|at| at <= world.now) {
                attempts += 1;
                world.room.attempt_begins(world.now);
                world.room.attempt_failed("refused", world.now);
            }
            if world.dialled(10).is_some() {
                world.room.claim_failed("unreachable", world.now);
            }
        }
        assert!(attempts > ReconnectPolicy::default().attempts, "{attempts}");
        if until_s > 60 {
            assert!(world.room.closed().is_some() && world.now > lost + Duration::from_secs(54));
            continue;
        }
        assert!(world.room.is_coming_back());
        world.dialled(2_000).expect("another claim");
        world.claimed().expect("it claims");
        world.admit(1, 2, &[0, 1]);
        world.run(50);
        assert!(world.is_reopened(), "{:?}", world.events);
    }
}
