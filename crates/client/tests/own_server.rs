//! A host that finds no server brings its own.

mod support;
#[path = "support/until.rs"]
mod until;
#[path = "support/wait.rs"]
mod wait;

use parlor::lan::{Discovery, LanEvent, Network};
use parlor::{ClosedReason, ConnectFailureKind, Event, HostBuilder, LinkKind, Mode, Registry, Room};
use parlor_server::{Config, Server};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use until::until;
use wait::wait;

/// A machine of its own, as far as its rooms go.
struct Machine {
    registry: Registry,
    _folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Machine { registry: Registry::at(folder.path().join("registry")), _folder: folder }
    }

    fn host(&self) -> HostBuilder {
        Room::host("tanks").registry(self.registry.clone())
    }

    fn join(&self, host: &Room) -> Room {
        let code = host.code().expect("it is open").to_string();
        open(Room::join("tanks", &code).registry(self.registry.clone()).open())
    }
}

#[track_caller]
fn open(mut room: Room) -> Room {
    until(&mut room, |event| match event {
        Event::PlayerJoined(player) if player.is_me => Some(()),
        Event::Closed(why) => panic!("{why}"),
        _ => None,
    });
    room
}

fn link(room: &Room) -> Option<LinkKind> {
    room.info().connectivity.link
}

#[test]
fn a_room_opens_with_nothing_started_and_is_joined_on_this_machine_by_its_code() {
    let machine = Machine::new();
    let mut host = open(machine.host().open());
    assert_eq!(link(&host), Some(LinkKind::Memory), "the server is in this process");
    let mut guest = machine.join(&host);
    until(&mut host, |event| matches!(event, Event::PlayerJoined(player) if !player.is_me).then_some(()));
    // No other process may open its room on a server that ends with this one.
    assert!(machine.registry.servers().is_empty());

    host.leave();
    let why = until(&mut guest, |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    });
    assert!(matches!(why, ClosedReason::Session(_)), "{why}");
    // The next host brings the next server, with or without a player.
    assert_eq!(link(&open(machine.host().open())), Some(LinkKind::Memory));
    let mut dedicated = machine.host().dedicated().max_players(64).open();
    until(&mut dedicated, |event| matches!(event, Event::Open { .. }).then_some(()));
}

#[test]
fn the_rooms_of_a_process_share_a_server_that_ends_with_the_last_of_them() {
    let machine = Machine::new();
    let first = open(machine.host().open());
    let second = open(machine.host().open());
    let mut guest = machine.join(&second);
    let server = |room: &Room| room.info().connectivity.server.expect("it is known");
    assert_eq!(server(&first), server(&second));
    let address = server(&first);
    first.leave();

    let third = open(machine.host().open());
    assert_eq!(server(&third), address, "the server is still there");
    assert!(guest.is_connected() && guest.poll().is_none_or(|event| !matches!(event, Event::Closed(_))));
    second.leave();
    third.leave();
    wait(|| std::net::TcpStream::connect(&address).is_err().then_some(()));
}

#[test]
fn a_server_that_is_there_is_used() {
    let machine = Machine::new();
    let runtime = Runtime::new().expect("a runtime");
    let config = Config { port: 0, registry: Some(machine.registry.clone()), ..Config::default() };
    let server = runtime.block_on(Server::start(config)).expect("a port is free");
    assert_eq!(link(&open(machine.host().open())), Some(LinkKind::Quic), "found in the registry");

    let elsewhere = Machine::new();
    let fingerprint = server.fingerprint().expect("it made its identity");
    let named = format!("127.0.0.1:{}#{fingerprint}", server.local_port());
    let room = open(elsewhere.host().server(&named).open());
    assert_eq!(link(&room), Some(LinkKind::Quic), "named by the game");
    runtime.block_on(server.shutdown());
}

#[test]
fn who_wants_a_relay_or_a_room_that_is_not_there_brings_none() {
    let machine = Machine::new();
    let absent = Room::join("tanks", "K7QM").registry(machine.registry.clone()).open();
    for mut room in [machine.host().mode(Mode::Relay).open(), absent] {
        let failure = until(&mut room, |event| match event {
            Event::Closed(ClosedReason::Connect(failure)) => Some(failure),
            _ => None,
        });
        assert_eq!(failure.kind, ConnectFailureKind::NoServer);
        assert!(failure.detail.contains("feature `server`"), "{failure}");
    }
}

#[test]
fn on_the_local_network_it_is_found_if_the_game_says_so() {
    let network = match Network::within_this_machine() {
        Ok(network) => network,
        Err(error) => return eprintln!("skipped: the loopback interface passes no multicast: {error}"),
    };
    let machine = Machine::new();
    let hidden = open(machine.host().open());
    let shown = open(machine.host().lan(network).open());
    let mut nearby = Discovery::start(network, Some("tanks")).expect("the network is there");
    let found = wait(|| match nearby.poll() {
        Some(LanEvent::Found(room)) => Some(room),
        _ => None,
    });
    assert_eq!(Some(found.code), shown.code());
    let elsewhere = Machine::new();
    let invite = found.invite().to_string();
    open(Room::join("tanks", &invite).registry(elsewhere.registry.clone()).open());
    assert!(nearby.rooms().all(|room| Some(room.code) != hidden.code()));
}
