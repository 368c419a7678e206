//! Over real sockets: what a game sets and reads of its room's ways and lanes, and of a change of its host.

#[path = "support/opened.rs"]
mod opened;
mod support;
#[path = "support/until.rs"]
mod until;

use opened::opened;
use parlor::{
    ClosedReason, Event, JoinPath, Lane, MemberId, Mode, PathMode, Protocol, ReasonCode, Recipient, Room,
    RoomError, Scope, TransportPath, TransportStatus, Value,
};
use parlor_testing::Hall;
use std::num::NonZeroU16;
use support::Patience;
use until::until;

fn code(room: &Room) -> String {
    room.code().expect("it is open").to_string()
}

/// Frames of all rooms until something is so.
#[track_caller]
fn play_until(rooms: &mut [Room], is_so: impl Fn(&mut [Room]) -> bool) {
    let patience = Patience::new();
    while !is_so(rooms) {
        for room in rooms.iter_mut() {
            while let Some(event) = room.poll() {
                assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            }
            while room.step().is_some() {}
        }
        patience.look_again(|| format!("{:?}", rooms.iter().map(Room::info).collect::<Vec<_>>()));
    }
}

#[test]
fn a3_a_guest_that_wants_a_direct_path_or_nothing_is_told_that_there_is_none() {
    let hall = Hall::start();
    // This host allows no path.
    let host = opened(&hall, Room::host("tanks"));
    let mut guest = opened(&hall, Room::join("tanks", &code(&host)).mode(Mode::P2p));
    assert_eq!((guest.info().requested_mode, guest.info().requested_paths), (Mode::P2p, PathMode::P2p));
    let why = until(&mut guest, |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    });
    let ClosedReason::NoDirectPath(missing) = &why else { panic!("{why}") };
    assert_eq!((missing.reason, why.as_str()), (ReasonCode::DirectUdpTimeout, "no_direct_path"));
    assert_eq!(guest.info().last_reason_code, Some(ReasonCode::DirectUdpTimeout));
}

#[test]
fn a3_p2p_on_one_machine_has_its_path_and_is_local() {
    let hall = Hall::start();
    let host = opened(&hall, Room::host("tanks").paths(PathMode::Auto));
    let guest = opened(&hall, Room::join("tanks", &code(&host)).mode(Mode::P2p));
    let mut rooms = [host, guest];
    play_until(&mut rooms, |rooms| rooms[1].info().transport_status == Some(TransportStatus::DirectUdpReady));
    let info = rooms[1].info();
    assert_eq!((info.scope, info.transport_path), (Scope::Local, TransportPath::LocalRoom));
    assert!(info.peer_candidate.is_some());
    play_until(&mut rooms, |rooms| rooms[1].host_ping().is_some() && rooms[1].ping().is_some());
}

#[test]
fn a3_the_mode_and_the_paths_do_not_contradict_each_other() {
    let wrong = Room::join("tanks", "K7QM").mode(Mode::P2p).paths(PathMode::Relay).check();
    let Err(RoomError::Misuse(misuse)) = wrong else { panic!("{wrong:?}") };
    assert!(misuse.to_string().contains("p2p"), "{misuse}");
    Room::join("tanks", "K7QM").paths(PathMode::P2p).check().expect("it is the same as the mode");
}

#[test]
fn a7_the_protocol_of_a_room_is_the_lane_of_what_is_sent_without_one() {
    const SENT: usize = 120;
    let hall = Hall::start();
    // By default, and by both words that say so, everything arrives; otherwise what is lost is lost.
    for (protocol, all_arrive) in
        [(None, true), (Some(Protocol::Reliable), true), (Some(Protocol::Unreliable), false)]
    {
        let mut host = opened(&hall, Room::host("tanks").tick_hz(120));
        let bad = "loss=30%,seed=7".parse().expect("it is as documented");
        let mut guest = Room::join("tanks", &code(&host)).impairment(bad);
        if let Some(protocol) = protocol {
            guest = guest.protocol(protocol);
        }
        let mut guest = opened(&hall, guest);
        let (mut sent, mut came) = (0, 0);
        let patience = Patience::new();
        'playing: loop {
            while let Some(event) = guest.poll() {
                assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            }
            while let Some(step) = guest.step() {
                if sent < SENT {
                    step.send(Recipient::Authority, "number", &sent).expect("it is open");
                } else if sent == SENT {
                    let lane = Lane::ReliableOrdered;
                    step.send_with(lane, Recipient::Authority, "end", &()).expect("it is open");
                }
                sent += 1;
            }
            while let Some(event) = host.poll() {
                let Event::Message(message) = event else { continue };
                match message.kind.as_str() {
                    "end" => break 'playing,
                    _ => came += 1,
                }
            }
            patience.look_again(|| format!("{came} of {sent}"));
        }
        assert_eq!(came == SENT, all_arrive, "{protocol:?}: {came} of {SENT}");
        assert!(came > SENT / 4, "{protocol:?}: {came} of {SENT}");
    }
}

#[test]
fn a8_the_round_trip_to_the_host_is_longer_than_that_to_the_server() {
    let hall = Hall::start();
    let slow = || "latency=40ms".parse().expect("it is as documented");
    let host = opened(&hall, Room::host("tanks").impairment(slow()));
    let guest = opened(&hall, Room::join("tanks", &code(&host)));
    assert_eq!(host.host_ping(), Some(std::time::Duration::ZERO));
    let mut rooms = [host, guest];
    play_until(&mut rooms, |rooms| rooms[1].host_ping().is_some());
    let (server, host) = (rooms[1].ping().expect("it is measured"), rooms[1].host_ping().expect("it is"));
    assert!(host >= server + std::time::Duration::from_millis(60), "{server:?} and {host:?}");
}

#[test]
fn a9_all_state_is_read_at_once() {
    let hall = Hall::start();
    let host = opened(&hall, Room::host("tanks"));
    let rooms =
        [opened(&hall, Room::join("tanks", &code(&host))), opened(&hall, Room::join("tanks", &code(&host)))];
    let [one, two] = rooms;
    let mut rooms = [host, one, two];
    play_until(&mut rooms, |rooms| rooms.iter().all(|room| room.player_count() == 3));
    let mut host = rooms[0].as_host().expect("it hosts");
    host.set("round", &3).expect("it is small");
    host.set("map", "dunes").expect("it is small");
    host.set_for([MemberId(1)], "secret", &true).expect("it is small");
    let all = |secret: bool| {
        let mut all = vec![("map".to_owned(), Value::from("dunes")), ("round".to_owned(), Value::from(3i64))];
        all.extend(secret.then(|| ("secret".to_owned(), Value::from(true))));
        all
    };
    play_until(&mut rooms, |rooms| rooms[1].state().all().len() == 3 && rooms[2].state().all().len() == 2);
    for (room, secret) in rooms.iter().zip([true, true, false]) {
        assert_eq!(room.state().all(), all(secret), "in the order of the keys, and what it may see");
    }
    play_until(&mut rooms, |rooms| rooms[1].state().all_interpolated() == all(true));
    assert_eq!(rooms[0].state().all_interpolated(), all(true));
}

#[test]
fn a18_room_info_has_mode_coordinator_and_relay() {
    let hall = Hall::start_with(|config| config.shards = NonZeroU16::new(3).expect("it is not 0"));
    let asked = format!("127.0.0.1:{}", hall.server().local_port());
    let mut relays = std::collections::BTreeSet::new();
    let patience = Patience::new();
    // Which shard has a room is drawn.
    while relays.len() < 2 {
        let host = opened(&hall, Room::host("tanks").mode(Mode::Local));
        let guest = Room::join("tanks", &code(&host)).server(&hall.address()).paths(PathMode::Auto);
        let guest = opened(&hall, guest);
        let of_host = host.info().connectivity;
        assert_eq!((of_host.mode, of_host.mode.as_str()), (Mode::Local, "local"));
        let info = guest.info();
        assert_eq!(info.connectivity.mode, Mode::Auto);
        assert_eq!(info.connectivity.coordinator.as_ref(), Some(&asked), "whom it asked");
        assert_eq!(info.connectivity.relay, of_host.relay, "all members have one relay");
        assert_eq!(info.join_path, Some(JoinPath::InternetExplicit));
        relays.insert(info.connectivity.relay);
        patience.look_again(|| format!("{relays:?}"));
    }
    assert!(relays.iter().any(|relay| relay.as_ref() != Some(&asked)), "one is another server than that one");
}

/// What a room told and ran, in order.
#[derive(Debug, PartialEq)]
enum Seen {
    Named { is_me: bool },
    Changed { host: MemberId, previous: Option<MemberId> },
    Step,
}

#[test]
fn a20_no_player_steps_between_the_news_of_a_migration_and_the_next_host() {
    let hall = Hall::start();
    let host = opened(&hall, Room::host("tanks").host_migration());
    let join = || Room::join("tanks", &code(&host));
    let mut rooms = [opened(&hall, join()), opened(&hall, join()), opened(&hall, join())];
    play_until(&mut rooms, |rooms| rooms.iter().all(|room| room.player_count() == 4));
    host.leave();
    let mut seen: [Vec<Seen>; 3] = Default::default();
    let patience = Patience::new();
    let is_over = |seen: &Vec<Seen>| {
        let changed = seen.iter().position(|seen| matches!(seen, Seen::Changed { .. }));
        changed.is_some_and(|at| seen.len() > at + 10)
    };
    while !seen.iter().all(is_over) {
        for (room, seen) in rooms.iter_mut().zip(&mut seen) {
            while let Some(event) = room.poll() {
                match event {
                    Event::HostMigration { is_me, .. } => seen.push(Seen::Named { is_me }),
                    Event::HostChanged { host, previous } => seen.push(Seen::Changed { host, previous }),
                    Event::Closed(why) => panic!("{why}"),
                    _ => {}
                }
            }
            let is_migrating = room.is_migrating();
            while room.step().is_some() {
                assert!(!is_migrating);
                seen.push(Seen::Step);
            }
        }
        patience.look_again(|| format!("{seen:?}"));
    }
    for (index, seen) in seen.iter().enumerate() {
        let named = seen.iter().position(|seen| *seen == Seen::Named { is_me: index == 0 });
        let at = named.expect("another host is named");
        let changed = Seen::Changed { host: MemberId(1), previous: Some(MemberId(0)) };
        assert_eq!(seen[at + 1], changed, "nothing is between: {seen:?}");
        assert_eq!(seen[at + 2], Seen::Step, "it goes on");
    }
}
