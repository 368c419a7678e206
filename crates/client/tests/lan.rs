//! A room that is found on the local network and joined, with a server that nobody was told of. Over the loopback interface, on a
//! port of its own.

mod support;
#[path = "support/wait.rs"]
mod wait;

use parlor::lan::{Discovery, LanEvent, LanRoom, Network};
use parlor::{Event, Registry, Room};
use parlor_server::{Config, Server};
use tokio::runtime::Runtime;
use wait::wait;

/// A world of its own for a test; `None`, and why it tells nothing, on a machine without multicast.
fn network() -> Option<Network> {
    let world = Network::within_this_machine();
    world.inspect_err(|error| eprintln!("skipped: the loopback interface passes no multicast: {error}")).ok()
}

/// Waits until a room is open, and gives its code.
#[track_caller]
fn open(room: &mut Room) -> parlor::RoomCode {
    wait(|| match room.poll() {
        Some(Event::Closed(reason)) => panic!("{reason}"),
        Some(Event::PlayerJoined(player)) if player.is_me => room.code(),
        _ => None,
    })
}

#[test]
fn a_room_nearby_is_joined_without_a_word_and_one_with_a_secret_is_not_seen() {
    let Some(network) = network() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nobodys = Registry::at(folder.path().join("registry"));
    let runtime = Runtime::new().expect("a runtime");
    let config = Config { port: 0, lan: Some(network), ..Config::default() };
    let server = runtime.block_on(Server::start(config)).expect("a port is free");
    let fingerprint = server.fingerprint().expect("it made its identity");
    let address = format!("127.0.0.1:{}#{fingerprint}", server.local_port());
    let host = |name: &str| Room::host("tanks").name(name).server(&address).registry(nobodys.clone());

    let mut hidden = host("eve").secret("word").open();
    let hidden_code = open(&mut hidden);
    let mut shown = host("ada").max_players(5).open();
    let code = open(&mut shown);

    let mut nearby = Discovery::start(network, Some("tanks")).expect("the network is there");
    let found: LanRoom = wait(|| match nearby.poll() {
        Some(LanEvent::Found(room)) => Some(room),
        _ => None,
    });
    assert_eq!((found.code, found.players_max), (code, 5));
    let mut guest = Room::join("tanks", &found.invite().to_string()).registry(nobodys.clone()).open();
    open(&mut guest);
    wait(|| {
        while guest.poll().is_some() {}
        (guest.player_count() == 2).then_some(())
    });

    // Had the other one been announced, it would have been before: it opened first.
    assert!(nearby.rooms().all(|room| room.code != hidden_code));
    shown.stop();
    wait(|| match nearby.poll() {
        Some(LanEvent::Lost(room)) if room.code == code => Some(()),
        Some(LanEvent::Found(room)) => panic!("{room:?}"),
        _ => None,
    });
    runtime.block_on(server.shutdown());
}
