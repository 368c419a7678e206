//! Rejected clients, and the reasons that they get.

use bytes::Bytes;
use parlor_client_core::{ClosedReason, Options, ReasonCode, Wish};
use parlor_hub::Config;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::{Auth, Hello, Intent, Refusal, RoomKind, RoomSettings};
use parlor_proto::{ChannelId, Lane, RoomCode, TickRate};
use parlor_sim::{Link, Sim, hello};
use parlor_sync::schema::{Component, Kind, Schema};
use std::num::NonZeroU64;

fn refusal(sim: &Sim, peer: parlor_sim::PeerId) -> Refusal {
    match sim.closed(peer) {
        Some(ClosedReason::Refused(refusal)) => refusal,
        other => panic!("it was not refused: {other:?}\n{}", sim.transcript()),
    }
}

fn with_code(code: &str, max_players: u16) -> Options {
    let code = Some(code.parse().expect("it is a code"));
    Options {
        intent: Wish::Host { code, max_players, tick_rate: TickRate::DEFAULT, dedicated: false },
        ..Options::host("tanks")
    }
}

fn join(code: RoomCode) -> Options {
    Options::join("tanks", code)
}

#[test]
fn no_room_has_the_code() {
    let mut sim = Sim::new(1);
    let lost = sim.join("NONE".parse().unwrap(), Link::quic());
    assert_eq!(refusal(&sim, lost), Refusal::NoSuchRoom);
    assert_eq!(sim.room(lost).info().last_reason_code, Some(ReasonCode::RoomExpired));
    assert_eq!(sim.hub().connection_count(), 0);
}

#[test]
fn a_wrong_secret_is_answered_like_no_such_room() {
    let mut sim = Sim::new(2);
    let options = Options { secret: Some("sesame".into()), ..with_code("CAVE", 4) };
    let host = sim.host(options, Link::quic());
    let code = sim.code(host);
    for secret in [None, Some("s"), Some("sesam"), Some("sesamf"), Some("sesame ")] {
        let guest = sim.enter(Options { secret: secret.map(str::to_owned), ..join(code) }, Link::quic());
        let lost = sim.enter(join("CAVF".parse().unwrap()), Link::quic());
        sim.run_for(500);
        assert_eq!(refusal(&sim, guest), refusal(&sim, lost));
        let bytes = |peer| sim.received(peer).iter().map(|packet| packet.bytes.clone()).collect::<Vec<_>>();
        assert_eq!(bytes(guest), bytes(lost), "nothing on the wire tells them apart");
    }
    let guest = sim.enter(Options { secret: Some("sesame".into()), ..join(code) }, Link::quic());
    sim.run_for(500);
    assert!(sim.room(guest).is_connected());
    assert!(sim.hub().room(code).unwrap().needs_secret);
}

#[test]
fn a_room_is_full_and_has_a_seat_again_when_somebody_left() {
    let mut sim = Sim::new(3);
    let host = sim.host(with_code("DUEL", 2), Link::quic());
    let code = sim.code(host);
    let second = sim.join(code, Link::quic());
    let third = sim.join(code, Link::quic());
    assert_eq!(refusal(&sim, third), Refusal::RoomFull { max: 2 });
    sim.act(second, |room, now| room.leave(now));
    sim.run_for(500);
    let fourth = sim.join(code, Link::quic());
    assert!(sim.room(fourth).is_connected());
}

#[test]
fn two_who_come_at_once_do_not_share_the_last_seat() {
    let mut sim = Sim::new(4);
    let host = sim.host(with_code("DUEL", 2), Link::quic());
    let code = sim.code(host);
    let rivals = [0; 5].map(|_| sim.enter(join(code), Link::quic()));
    sim.run_for(1_000);
    assert_eq!(rivals.iter().filter(|rival| sim.room(**rival).is_connected()).count(), 1);
    assert_eq!(sim.hub().connection_count(), 2);
}

#[test]
fn a_code_that_another_room_has_is_taken() {
    let mut sim = Sim::new(5);
    sim.host(with_code("MYROOM", 4), Link::quic());
    let other = sim.host(with_code("myroom", 4), Link::quic());
    assert_eq!(refusal(&sim, other), Refusal::CodeTaken);
    assert_eq!(sim.hub().room_count(), 1);
}

#[test]
fn a_room_of_another_game_is_named_and_one_of_another_environment_is_not_there() {
    let mut sim = Sim::new(6);
    let host = sim.host(with_code("MYROOM", 4), Link::quic());
    let code = sim.code(host);
    let chess = sim.enter(Options::join("chess", code), Link::quic());
    let test = sim.enter(Options { environment: "test".into(), ..join(code) }, Link::quic());
    sim.run_for(500);
    assert_eq!(refusal(&sim, chess), Refusal::App { expected: "tanks".into() });
    assert_eq!(refusal(&sim, test), Refusal::NoSuchRoom);
}

#[test]
fn a_server_for_some_games_takes_no_others() {
    let apps = Some(vec!["chess".into(), "go".into()]);
    let config = Config { apps, ..Config::new([0; 32]) };
    let mut sim = Sim::with_hub(7, config);
    let host = sim.host(Options::host("tanks"), Link::quic());
    assert_eq!(refusal(&sim, host), Refusal::App { expected: "chess, go".into() });
    assert_eq!(sim.hub().room_count(), 0);
}

#[test]
fn a_full_server_opens_no_more_rooms() {
    let mut sim = Sim::with_hub(8, Config { rooms_max: 1, ..Config::new([0; 32]) });
    sim.host(Options::host("tanks"), Link::quic());
    let second = sim.host(Options::host("tanks"), Link::quic());
    assert_eq!(refusal(&sim, second), Refusal::ServerFull);
}

fn dedicated(max_players: u16) -> Hello {
    hello(Intent::Create(RoomSettings {
        code: Some("ARENA".parse().expect("it is a code")),
        ..RoomSettings::new(RoomKind::Dedicated, max_players)
    }))
}

/// The hub's answer to such a host, and its number of rooms then.
fn answer_to(config: Config, hello: Hello) -> (Vec<Event>, usize) {
    let mut sim = Sim::with_hub(12, config);
    let host = sim.intrude(hello, Link::quic());
    sim.run_for(300);
    (sim.session_events(host).to_vec(), sim.hub().room_count())
}

#[test]
fn a_dedicated_host_is_let_in_only_where_that_is_allowed() {
    let (events, rooms) = answer_to(Config::new([0; 32]), dedicated(100));
    let refused = Rejection::Refused(Refusal::RoomKind { kind: RoomKind::Dedicated });
    assert_eq!((events, rooms), (vec![Event::Rejected(refused.clone())], 0));
    let Rejection::Refused(refusal) = refused else { unreachable!("it is a refusal") };
    assert!(refusal.to_string().contains("--dedicated"));

    let allowing = || Config { dedicated: true, ..Config::new([0; 32]) };
    let (events, rooms) = answer_to(allowing(), dedicated(255));
    assert!(
        matches!(&events[0], Event::Welcome(welcome) if welcome.kind == RoomKind::Dedicated),
        "{events:?}"
    );
    assert_eq!(rooms, 1);

    let (events, rooms) = answer_to(allowing(), dedicated(256));
    let Event::Rejected(Rejection::Refused(Refusal::BadRequest { detail })) = &events[0] else {
        panic!("{events:?}")
    };
    assert!(detail.contains("255") && rooms == 0, "{detail}");
}

#[test]
fn a_dedicated_host_takes_no_players_seat() {
    let mut sim = Sim::with_hub(13, Config { dedicated: true, ..Config::new([0; 32]) });
    sim.intrude(dedicated(2), Link::quic());
    sim.run_for(300);
    let code = "ARENA".parse().expect("it is a code");
    for players in 1..=2 {
        sim.intrude(hello(Intent::Join { code, secret: None }), Link::quic());
        sim.run_for(300);
        assert_eq!(sim.hub().room(code).expect("it stands").players, players);
    }
    let third = sim.intrude(hello(Intent::Join { code, secret: None }), Link::quic());
    sim.run_for(300);
    let refused = Event::Rejected(Rejection::Refused(Refusal::RoomFull { max: 2 }));
    assert_eq!(sim.session_events(third), [refused]);
}

fn schema() -> Schema {
    let health = Component::builder("health").field("points", Kind::int(0, 100)).build();
    Schema::builder().component(health).build().expect("it is within bounds")
}

fn with_schema(schema: Bytes) -> Hello {
    hello(Intent::Create(RoomSettings {
        code: Some("MYROOM".parse().expect("it is a code")),
        schema,
        ..RoomSettings::new(RoomKind::PlayerHosted, 8)
    }))
}

#[test]
fn who_reads_entities_by_another_schema_is_told_the_rooms() {
    for schema in [schema(), Schema::default()] {
        let mut sim = Sim::new(14);
        sim.intrude(with_schema(schema.encode()), Link::quic());
        sim.run_for(300);
        let mut join = |hash: u64| {
            let join = hello(Intent::Join { code: "MYROOM".parse().expect("it is a code"), secret: None });
            let guest = sim.intrude(Hello { schema: NonZeroU64::new(hash), ..join }, Link::quic());
            sim.run_for(300);
            sim.session_events(guest)[0].clone()
        };
        assert!(matches!(join(schema.hash()), Event::Welcome(_)));
        assert!(matches!(join(0), Event::Welcome(_)), "it reads no entities");
        let refused = Rejection::Refused(Refusal::Schema { hash: schema.hash() });
        assert_eq!(join(schema.hash() ^ 1), Event::Rejected(refused));
    }
}

#[test]
fn a_schema_that_is_none_opens_no_room_and_keeps_no_code() {
    let bare = Schema::bare().build().expect("it may be empty");
    let cut = schema().encode().slice(1..);
    for schema in [Bytes::from_static(b"schema"), cut, bare.encode()] {
        let mut sim = Sim::new(15);
        let host = sim.intrude(with_schema(schema), Link::quic());
        sim.run_for(300);
        let events = sim.session_events(host);
        let Event::Rejected(Rejection::Refused(Refusal::BadRequest { detail })) = &events[0] else {
            panic!("{events:?}")
        };
        assert!(detail.contains("schema"), "{detail}");
        assert_eq!(sim.hub().room_count(), 0);
        let host = sim.intrude(with_schema(Bytes::new()), Link::quic());
        sim.run_for(300);
        assert!(matches!(sim.session_events(host)[0], Event::Welcome(_)), "the code is free");
    }
}

#[test]
fn the_channel_that_differs_is_named() {
    let mut sim = Sim::new(9);
    let mut options = with_code("MYROOM", 4);
    options.channel(16, Lane::Unreliable).unwrap();
    options.channel(17, Lane::ReliableOrdered).unwrap();
    let host = sim.host(options, Link::quic());
    let code = sim.code(host);
    let mut other = join(code);
    other.channel(16, Lane::Unreliable).unwrap();
    other.channel(17, Lane::Unreliable).unwrap();
    let guest = sim.enter(other, Link::quic());
    sim.run_for(500);
    assert_eq!(refusal(&sim, guest), Refusal::Channels { channel: ChannelId(17) });
    assert!(sim.closed(guest).unwrap().to_string().contains("channel 17"));
}

fn answer(change: impl FnOnce(&mut Hello)) -> Rejection {
    let mut sim = Sim::new(10);
    let host = sim.host(with_code("MYROOM", 4), Link::quic());
    let mut hello = hello(Intent::Join { code: sim.code(host), secret: None });
    change(&mut hello);
    let guest = sim.intrude(hello, Link::websocket());
    sim.run_for(1_000);
    let answers: Vec<&Rejection> = sim
        .session_events(guest)
        .iter()
        .map(|event| match event {
            Event::Rejected(away) => away,
            other => panic!("it was let in: {other:?}"),
        })
        .collect();
    assert_eq!((answers.len(), sim.hub().connection_count()), (1, 1));
    answers[0].clone()
}

#[test]
fn another_version_is_told_which_are_spoken() {
    for versions in [(2, 9), (0, 0)] {
        let away = answer(|hello| (hello.version_min, hello.version_max) = versions);
        assert_eq!(away, Rejection::Refused(Refusal::Version { min: 1, max: 1 }));
    }
}

#[test]
fn a_token_that_this_hub_did_not_issue_is_refused() {
    let away = answer(|hello| hello.auth = Auth::Token(vec![1, 2, 3].into()));
    assert_eq!(away, Rejection::Refused(Refusal::Unauthorized));
}

#[test]
fn a_hello_out_of_its_bounds_says_which() {
    let away = answer(|hello| hello.app = String::new());
    assert!(matches!(away, Rejection::Refused(Refusal::BadRequest { detail }) if detail.contains("app")));
}

#[test]
fn who_says_nothing_is_disconnected() {
    let mut sim = Sim::new(11);
    let quiet =
        sim.intrude(hello(Intent::Join { code: "NONE".parse().unwrap(), secret: None }), Link::quic());
    sim.tamper(quiet, |_, _| Vec::new());
    sim.run_for(4_900);
    assert_eq!(sim.hub().connection_count(), 1);
    sim.run_for(700);
    assert_eq!(sim.hub().connection_count(), 0);
}
