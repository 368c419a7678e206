//! Relayed matches over real sockets.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::{
    CloseReason, ClosedReason, Event, Lane, MatchBuilder, Recipient, Room, RoomBuilder, TransportPreference,
};
use parlor_testing::Hall;
use until::until;

/// What a game was told of data: its op code, what was sent, and whether it has a place in the order.
fn data(event: Event) -> Option<(i64, String, Option<u64>)> {
    match event {
        Event::Data { op, data, order, .. } => Some((op, String::from_utf8_lossy(&data).into_owned(), order)),
        _ => None,
    }
}

fn open<K>(hall: &Hall, builder: RoomBuilder<K>) -> Room {
    let mut room = builder.registry(hall.registry.clone()).open();
    until(&mut room, |event| matches!(event, Event::Open { .. }).then_some(()));
    room
}

#[test]
fn a_match_is_played_over_real_sockets_and_ends_with_its_server() {
    let mut hall = Hall::start();
    let mut ada = open(&hall, Room::create_match("duels").name("ada").label("casual").max_players(3));
    let id = ada.code().expect("it is open").to_string();
    assert_eq!(id.len(), 16);
    let mut bob = open(
        &hall,
        Room::join("duels", &id.to_lowercase()).name("bob").transport(TransportPreference::WebSocket),
    );
    let names = |room: &Room| room.players().iter().map(|player| player.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&bob), ["ada", "bob"], "who is there is known when it is open");
    assert!(!ada.is_host() && !bob.is_host() && bob.info().host_id.is_none());
    until(&mut ada, |event| {
        matches!(event, Event::PlayerJoined(player) if player.name == "bob").then_some(())
    });
    ada.send_data(7, Recipient::Others, "hello".as_bytes()).expect("it may");
    assert_eq!(until(&mut bob, data), (7, "hello".into(), Some(0)));
    let one = ada.local_id().expect("it is in");
    bob.send_data(-1, one, vec![b'x'; 60_000]).expect("it may");
    let (op, text, order) = until(&mut ada, data);
    assert_eq!((op, text.len(), order), (-1, 60_000, Some(1)));
    // What may be lost goes until some of it arrives.
    loop {
        bob.send_data_with(Lane::Unreliable, 3, Recipient::Others, "here".as_bytes()).expect("it may");
        while bob.poll().is_some() {}
        let came = std::iter::from_fn(|| ada.poll()).find_map(data);
        if let Some(came) = came {
            assert_eq!(came, (3, "here".into(), None));
            break;
        }
    }
    let error =
        ada.send_data_with(Lane::UnreliableSequenced, 3, one, "here".as_bytes()).expect_err("no such");
    assert!(error.to_string().contains("Lane::Unreliable without"), "{error}");
    assert!(ada.as_host().is_none(), "nobody hosts it");
    // Whoever opened it goes; the other plays on, and is joined.
    ada.leave();
    until(&mut bob, |event| matches!(event, Event::PlayerLeft { .. }).then_some(()));
    let cy = open(&hall, Room::join("duels", &id).name("cy"));
    assert_eq!(names(&cy), ["bob", "cy"]);
    hall.shut_down();
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
    let wrong = |builder: MatchBuilder| builder.check().expect_err("it cannot be").to_string();
    assert!(wrong(Room::create_match("duels").max_players(257)).contains("2 to 256"));
    assert!(wrong(Room::create_match("duels").label(&"x".repeat(65))).contains("label has 65 bytes"));
    assert!(Room::create_match("duels").max_players(256).tick_hz(60).label("casual").keep().check().is_ok());
}
