//! Rooms that are announced and found over this machine's multicast, on ports of their own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_proto::RoomCode;
use parlor_transport::Fingerprint;
use parlor_transport::lan::{Advertiser, Discovery, LanEvent, LanRoom, Listing, Network};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Timeout: only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
const PRINT: Fingerprint = Fingerprint([3; 32]);

/// An isolated network for a test; `None`, with the reason, on a machine without multicast.
fn network() -> Option<Network> {
    let world = Network::within_this_machine();
    world.inspect_err(|error| eprintln!("skipped: the loopback interface passes no multicast: {error}")).ok()
}

fn code(text: &str) -> RoomCode {
    text.parse().unwrap()
}

fn advertiser(network: Network) -> Advertiser {
    Advertiser::start(network, PRINT, IpAddr::from(Ipv4Addr::UNSPECIFIED)).unwrap()
}

/// Polls until the wanted event.
#[track_caller]
fn until<T>(discovery: &mut Discovery, wanted: impl Fn(&LanEvent) -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        while let Some(event) = discovery.poll() {
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
        assert!(began.elapsed() < PATIENCE, "it does not come; what is known is {discovery:?}");
        std::thread::yield_now();
    }
}

#[track_caller]
fn found(discovery: &mut Discovery, wanted: RoomCode) -> LanRoom {
    until(discovery, |event| match event {
        LanEvent::Found(room) if room.code == wanted => Some(room.clone()),
        _ => None,
    })
}

#[test]
fn a_room_is_found_with_all_that_joining_takes_and_lost_with_its_end() {
    let Some(network) = network() else { return };
    let advertiser = advertiser(network);
    let early =
        advertiser.announce(code("EARLY"), "tanks", "test", 8, 9_000, &Listing::default()).unwrap().unwrap();
    let mut discovery = Discovery::start(network, Some("tanks")).unwrap();
    let room = found(&mut discovery, code("EARLY"));
    assert_eq!((room.app.as_str(), room.environment.as_str(), room.players_max), ("tanks", "test", 8));
    let server = room.invite().server.unwrap();
    assert_eq!((server.host.as_str(), server.port, server.fingerprint), ("127.0.0.1", 9_000, Some(PRINT)));
    // A room that opens during discovery is found too; one of another game is not.
    let _other =
        advertiser.announce(code("OTHER"), "ships", "", 2, 9_001, &Listing::default()).unwrap().unwrap();
    let listing = Listing::named("Ada's game").data("map=dunes");
    let _late = advertiser.announce(code("LATE"), "tanks", "", 2, 9_002, &listing).unwrap().unwrap();
    assert_eq!(found(&mut discovery, code("LATE")).listing, listing);
    let mut all = Discovery::start(network, None).unwrap();
    assert_eq!(found(&mut all, code("OTHER")).app, "ships");
    assert!(discovery.rooms().all(|room| room.app == "tanks"));
    drop(early);
    let lost =
        |event: &LanEvent| matches!(event, LanEvent::Lost(room) if room.code == code("EARLY")).then_some(());
    until(&mut discovery, lost);
    assert!(discovery.rooms().all(|room| room.code != code("EARLY")));
}

#[test]
fn a_server_that_stops_takes_its_rooms_back() {
    let Some(network) = network() else { return };
    let advertiser = advertiser(network);
    let _room =
        advertiser.announce(code("K7QM"), "tanks", "", 8, 9_000, &Listing::default()).unwrap().unwrap();
    let mut discovery = Discovery::start(network, None).unwrap();
    found(&mut discovery, code("K7QM"));
    advertiser.stop();
    until(&mut discovery, |event| matches!(event, LanEvent::Lost(_)).then_some(()));
    assert_eq!(discovery.rooms().count(), 0);
    assert!(
        advertiser.announce(code("LATE"), "tanks", "", 8, 9_000, &Listing::default()).is_err(),
        "it has stopped"
    );
}

#[test]
fn no_more_rooms_are_announced_than_anybody_needs_and_their_places_are_free_again() {
    let Some(network) = network() else { return };
    let advertiser = advertiser(network);
    let announce = |number: usize| {
        advertiser
            .announce(code(&format!("ROOM{number}")), "tanks", "", 8, 9_000, &Listing::default())
            .unwrap()
    };
    let mut rooms: Vec<_> = (0..40).filter_map(announce).collect();
    assert_eq!(rooms.len(), 32);
    rooms.truncate(31);
    assert!(announce(50).is_some());
}

#[test]
fn two_servers_may_have_rooms_of_one_code() {
    let Some(network) = network() else { return };
    let prints = [PRINT, Fingerprint([4; 32])];
    let advertisers =
        prints.map(|print| Advertiser::start(network, print, Ipv4Addr::LOCALHOST.into()).unwrap());
    let _rooms = advertisers
        .each_ref()
        .map(|of| of.announce(code("SAME"), "tanks", "", 8, 9_000, &Listing::default()).unwrap().unwrap());
    let mut discovery = Discovery::start(network, None).unwrap();
    let first = found(&mut discovery, code("SAME")).servers[0].fingerprint.unwrap();
    let second = found(&mut discovery, code("SAME")).servers[0].fingerprint.unwrap();
    assert!(first != second && prints.contains(&first) && prints.contains(&second));
}
