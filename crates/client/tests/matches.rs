//! Relayed matches over real sockets.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::{CloseReason, ClosedReason, Event, Registry, Room, RoomBuilder, To, Via};
use parlor_server::{Config, Server};
use tokio::runtime::Runtime;
use until::until;

/// What a game was told of data: its op code, what was sent, and whether it has a place in the order.
fn data(event: Event) -> Option<(i64, String, Option<u64>)> {
    match event {
        Event::Data { op, data, order, .. } => Some((op, String::from_utf8_lossy(&data).into_owned(), order)),
        _ => None,
    }
}

fn open(builder: RoomBuilder) -> Room {
    let mut room = builder.open();
    until(&mut room, |event| matches!(event, Event::Open { .. }).then_some(()));
    room
}

#[test]
fn a_match_is_played_over_real_sockets_and_ends_with_its_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let registry = Registry::at(folder.path().join("registry"));
    let runtime = Runtime::new().expect("a runtime");
    let config = Config { port: 0, registry: Some(registry.clone()), ..Config::default() };
    let server = runtime.block_on(Server::start(config)).expect("a port is free");
    let here = |builder: RoomBuilder| builder.registry(registry.clone());
    let mut ada = open(here(Room::create_match("duels").name("ada").label("casual").max_players(3)));
    let id = ada.code().expect("it is open").to_string();
    assert_eq!(id.len(), 16);
    let mut bob = open(here(Room::guest("duels", &id.to_lowercase()).name("bob").via(Via::WebSocket)));
    let names = |room: &Room| room.players().into_iter().map(|player| player.name).collect::<Vec<_>>();
    assert_eq!(names(&bob), ["ada", "bob"], "who is there is known when it is open");
    assert!(!ada.is_host() && !bob.is_host() && bob.info().host_id.is_none());
    until(&mut ada, |event| {
        matches!(event, Event::PlayerJoined(player) if player.name == "bob").then_some(())
    });
    ada.broadcast_data(7, "hello".as_bytes()).expect("it may");
    assert_eq!(until(&mut bob, data), (7, "hello".into(), Some(0)));
    let one = To::Member(ada.local_id().expect("it is in"));
    bob.send_data(-1, one, vec![b'x'; 60_000]).expect("it may");
    let (op, text, order) = until(&mut ada, data);
    assert_eq!((op, text.len(), order), (-1, 60_000, Some(1)));
    // What may be lost goes until some of it arrives.
    loop {
        bob.send_data_unreliable(3, To::Others, "here".as_bytes()).expect("it may");
        while bob.poll().is_some() {}
        let came = std::iter::from_fn(|| ada.poll()).find_map(data);
        if let Some(came) = came {
            assert_eq!(came, (3, "here".into(), None));
            break;
        }
    }
    assert!(ada.set("key", &1).expect_err("it has no state").to_string().contains("no host"));
    // Whoever opened it goes; the other plays on, and is joined.
    ada.leave();
    until(&mut bob, |event| matches!(event, Event::PlayerLeft { .. }).then_some(()));
    let cy = open(here(Room::guest("duels", &id).name("cy")));
    assert_eq!(names(&cy), ["bob", "cy"]);
    runtime.block_on(server.shutdown());
    for mut room in [bob, cy] {
        let reason = until(&mut room, |event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        });
        assert_eq!(reason, ClosedReason::Session(CloseReason::ServerShutdown));
    }
}

#[test]
fn what_a_match_cannot_be_is_said_before_it_opens() {
    let wrong = |builder: RoomBuilder| builder.check().expect_err("it cannot be").to_string();
    assert!(wrong(Room::create_match("duels").code("MYROOM")).contains("drawn"));
    assert!(wrong(Room::create_match("duels").dedicated()).contains("no host"));
    assert!(wrong(Room::create_match("duels").host_migration()).contains("no host"));
    assert!(wrong(Room::create_match("duels").max_players(257)).contains("2 to 256"));
    assert!(wrong(Room::create_match("duels").label(&"x".repeat(65))).contains("label has 65 bytes"));
    assert!(wrong(Room::host("duels").label("casual")).contains("create_match"));
    assert!(wrong(Room::host("duels").keep()).contains("create_match"));
    assert!(wrong(Room::guest("duels", "K7QM").keep()).contains("whoever opens"));
    assert!(Room::create_match("duels").max_players(256).tick_hz(60).label("casual").keep().check().is_ok());
}
