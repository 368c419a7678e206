//! A host that finds no server brings its own.

mod support;
#[path = "support/until.rs"]
mod until;
#[path = "support/wait.rs"]
mod wait;

use parlor::lan::{Discovery, LanEvent, Listing, Network};
use parlor::{
    ClosedReason, ConnectFailureKind, Event, HostBuilder, JoinPath, LinkKind, Mode, Registry, Room, Scope,
};
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
    let server = |room: &Room| room.info().connectivity.relay.expect("it is known");
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

/// The address of a room's server.
fn address(room: &Room) -> (String, u16) {
    let server = room.info().connectivity.relay.expect("it is known");
    let (host, port) = server.rsplit_once(':').expect("it has a port");
    (host.to_owned(), port.parse().expect("a number"))
}

#[track_caller]
fn failure(mut room: Room) -> ConnectFailureKind {
    until(&mut room, |event| match event {
        Event::Closed(ClosedReason::Connect(failure)) => Some(failure.kind),
        Event::Closed(why) => panic!("{why}"),
        _ => None,
    })
}

#[test]
fn a6_a_room_is_joined_at_the_address_of_its_hosts_server_without_a_code() {
    let machine = Machine::new();
    let host = open(machine.host().open());
    let (ip, port) = address(&host);
    let join = |app: &str| Room::join_at(app, &ip, port).registry(machine.registry.clone());
    let looking = join("tanks").open();
    let code = looking.info().code;
    assert!(code.is_none() || code == host.code(), "before it is known there is none: {code:?}");
    let guest = open(looking);
    assert_eq!((guest.code(), guest.info().host_id), (host.code(), host.local_id()));
    let info = guest.info();
    assert_eq!((info.join_path, info.scope), (Some(JoinPath::Direct), Scope::Local));
    assert_eq!(info.join_path.map(JoinPath::as_str), Some("direct"));
    let _named = open(Room::join_at("tanks", "localhost", port).registry(machine.registry.clone()).open());

    // The server has a second room: no code says which one is meant.
    let second = open(machine.host().open());
    assert_eq!(address(&second), (ip.clone(), port));
    assert_eq!(failure(join("tanks").open()), ConnectFailureKind::SeveralRooms);
    host.leave();
    drop(guest);
    let patience = support::Patience::new();
    while machine.registry.rooms().len() > 1 {
        patience.look_again(|| "the first room is still known".to_owned());
    }
    assert_eq!(open(join("tanks").open()).code(), second.code());
    assert_eq!(failure(Room::join_at("tanks", "", port).open()), ConnectFailureKind::BadAddress);
}

#[test]
fn a6_a_room_announced_on_the_local_network_is_joined_at_its_address() {
    let network = match Network::within_this_machine() {
        Ok(network) => network,
        Err(error) => return eprintln!("skipped: the loopback interface passes no multicast: {error}"),
    };
    let (machine, elsewhere) = (Machine::new(), Machine::new());
    let host = open(machine.host().lan(network).open());
    let (ip, port) = address(&host);
    let join = |app: &str| Room::join_at(app, &ip, port).lan(network).registry(elsewhere.registry.clone());
    let guest = open(join("tanks").open());
    assert_eq!((guest.code(), guest.info().join_path), (host.code(), Some(JoinPath::Direct)));
    assert_eq!(failure(join("chess").open()), ConnectFailureKind::NoRoom);
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

#[test]
fn a8_a_room_advertises_itself_with_a_name_and_data_and_hides_again() {
    let network = match Network::within_this_machine() {
        Ok(network) => network,
        Err(error) => return eprintln!("skipped: the loopback interface passes no multicast: {error}"),
    };
    let machine = Machine::new();
    let listing = Listing::named("Ada's game").data("map=dunes");
    let hidden = open(machine.host().lan(network).advertise(None).open());
    let room = open(machine.host().lan(network).advertise(listing.clone()).open());
    let mut nearby = Discovery::start(network, Some("tanks")).expect("the network is there");
    let mut hear = |what: &Listing, is_lost: bool| {
        wait(|| match nearby.poll() {
            Some(LanEvent::Found(found)) if !is_lost && found.listing == *what => Some(found.code),
            Some(LanEvent::Lost(lost)) if is_lost && lost.listing == *what => Some(lost.code),
            Some(LanEvent::Found(found)) => panic!("{found:?}"),
            _ => None,
        })
    };
    assert_eq!(Some(hear(&listing, false)), room.code(), "the other one is hidden");
    let next = Listing::named("Ada's game").data("round=2");
    room.advertise(next.clone()).expect("its server is in this process");
    assert_eq!(Some(hear(&next, false)), room.code());
    room.advertise(None).expect("its server is in this process");
    assert_eq!(Some(hear(&next, true)), room.code());
    let shown = Listing::named("Bob's game");
    hidden.advertise(shown.clone()).expect("its server is in this process");
    assert_eq!(Some(hear(&shown, false)), hidden.code());

    let too_long = Listing::named(&"x".repeat(65));
    assert!(room.advertise(too_long.clone()).is_err());
    assert!(machine.host().lan(network).advertise(too_long).check().is_err());
    let quiet = open(machine.host().open());
    assert!(quiet.advertise(shown).is_err(), "it was opened for this machine alone");
}
