//! Spectators over real sockets.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::{
    ApiMisuse, CloseReason, ClosedReason, Event, JoinBuilder, MemberId, Recipient, Refusal, Role, Room,
    RoomError,
};
use parlor_testing::Hall;
use support::Patience;
use until::until;

fn join(hall: &Hall, code: &str) -> JoinBuilder {
    Room::join("tanks", code).registry(hall.registry.clone()).server(&hall.address())
}

fn opened(room: &mut Room) {
    until(room, |event| match event {
        Event::Closed(why) => panic!("{why}"),
        event => matches!(event, Event::Open { .. }).then_some(()),
    });
}

fn closed(room: &mut Room) -> ClosedReason {
    until(room, |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    })
}

fn watcher_of(room: &mut Room) -> MemberId {
    until(room, |event| match event {
        Event::SpectatorJoined(player) => Some(player.id),
        Event::PlayerJoined(player) => {
            assert!(!player.is_spectator);
            None
        }
        _ => None,
    })
}

#[test]
fn m1_who_spectates_takes_no_players_seat() {
    let hall = Hall::start();
    let host = Room::host("tanks").max_players(2).spectators(1).secret("sesame").name("ada");
    let mut host = host.registry(hall.registry.clone()).server(&hall.address()).open();
    opened(&mut host);
    let code = host.code().expect("it is open").to_string();
    // A secret keeps a spectator out as it does a player.
    let why = closed(&mut join(&hall, &code).spectate().open());
    assert_eq!(why, ClosedReason::Refused(Refusal::NoSuchRoom));
    let mut watcher = join(&hall, &code).secret("sesame").name("wil").spectate().open();
    opened(&mut watcher);
    let id = watcher_of(&mut host);
    let mut guest = join(&hall, &code).secret("sesame").name("bob").open();
    opened(&mut guest);
    assert_eq!(watcher_of(&mut guest), id);
    until(&mut host, |event| matches!(event, Event::PlayerJoined(player) if !player.is_me).then_some(()));
    let why = closed(&mut join(&hall, &code).secret("sesame").open());
    assert_eq!(why, ClosedReason::Refused(Refusal::RoomFull { max: 2 }));
    let why = closed(&mut join(&hall, &code).secret("sesame").spectate().open());
    assert_eq!(why, ClosedReason::Refused(Refusal::SpectatorsFull { max: 1 }));
    // It is listed apart.
    assert_eq!((host.player_count(), host.spectators().len()), (2, 1));
    assert!(host.player(id).is_none() && host.spectators()[0].name == "wil");
    assert!(watcher.is_spectator() && !guest.is_spectator());
    assert_eq!((watcher.info().role, guest.info().role), (Role::Spectator, Role::Client));
    // It sees, and says nothing.
    host.as_host().expect("it hosts").set("score", &7).expect("the host writes");
    guest.broadcast("hello", &1).expect("a player may");
    let mut is_told = false;
    while !is_told || watcher.state().get::<i32>("score").expect("it is a number") != Some(7) {
        host.poll();
        host.step();
        is_told |= until(&mut watcher, |event| Some(matches!(event, Event::Message(_))));
    }
    let refused = |result: Result<(), RoomError>| {
        assert!(matches!(result, Err(RoomError::Misuse(ApiMisuse::Spectator { .. }))), "{result:?}");
    };
    refused(watcher.broadcast("hello", &1));
    refused(watcher.set_player_data(id, "team", &"red"));
    let patience = Patience::new();
    let error = loop {
        watcher.poll();
        if let Some(mut step) = watcher.step() {
            break step.send_input(&1).expect_err("it watches");
        }
        patience.look_again(|| "no step is due".to_owned());
    };
    let text = "a spectator watches only and may not send inputs: join without spectate() to play";
    assert_eq!(error.to_string(), text);
    // Another process of it has its ticket, and watches too.
    let ticket = watcher.resume_ticket().expect("the server keeps seats");
    let mut watcher = Room::resume("tanks", &ticket).registry(hall.registry.clone()).open();
    opened(&mut watcher);
    assert_eq!((watcher.local_id(), watcher.is_spectator()), (Some(id), true));
    host.as_host().expect("it hosts").kick(id, "rude").expect("it may");
    let kicked = CloseReason::Kicked { reason: "rude".into() };
    assert_eq!(closed(&mut watcher), ClosedReason::Session(kicked));
    until(&mut host, |event| {
        matches!(event, Event::SpectatorLeft { id: left, .. } if left == id).then_some(())
    });
    assert!(host.spectators().is_empty());
}

#[test]
fn m1_a_match_takes_spectators_and_ends_with_its_players() {
    let hall = Hall::start();
    let open = Room::create_match("tanks").max_players(2);
    let mut ada = open.registry(hall.registry.clone()).server(&hall.address()).open();
    opened(&mut ada);
    let code = ada.code().expect("it is open").to_string();
    let mut watcher = join(&hall, &code).spectate().open();
    opened(&mut watcher);
    watcher_of(&mut ada);
    ada.send_data(3, Recipient::Everyone, b"move".as_slice()).expect("a player may");
    let (op, data) = until(&mut watcher, |event| match event {
        Event::Data { op, data, .. } => Some((op, data)),
        _ => None,
    });
    assert_eq!((op, data.as_ref()), (3, b"move".as_slice()));
    let refused = watcher.send_data(3, Recipient::Everyone, b"move".as_slice());
    assert!(matches!(refused, Err(RoomError::Misuse(ApiMisuse::Spectator { .. }))), "{refused:?}");
    ada.leave();
    let over = CloseReason::RoomEnded { reason: "its last player left".into() };
    assert_eq!(closed(&mut watcher), ClosedReason::Session(over));
}
