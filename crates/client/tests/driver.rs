//! Rooms over real sockets: what a game sees of the driver.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::recording::{Ended, Playback};
use parlor::{
    CloseReason, ClosedReason, ConnectFailureKind, Event, Impairment, JoinBuilder, LeaveReason, MemberId,
    PacketLog, Recipient, Registry, RollbackConfig, RollbackRequest, Room, RoomBuilder, RoomError,
    SendOptions, TransportPreference,
};
use parlor_client_core::{PacketEntry, PacketLogReader, PacketWay};
use parlor_testing::Hall;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::Duration;
use support::Patience;
use until::until;

/// Rooms on a hall's server.
trait Rooms {
    fn here<K>(&self, builder: RoomBuilder<K>) -> RoomBuilder<K>;

    fn host(&self) -> Room {
        wait(self.here(Room::host("tanks").name("ada")).open())
    }

    fn guest(&self, invite: &str) -> JoinBuilder {
        self.here(Room::join("tanks", invite).name("bob"))
    }
}

impl Rooms for Hall {
    fn here<K>(&self, builder: RoomBuilder<K>) -> RoomBuilder<K> {
        builder.registry(self.registry.clone())
    }
}

/// Waits until the room is open.
#[track_caller]
fn wait(mut room: Room) -> Room {
    until(&mut room, |event| matches!(event, Event::PlayerJoined(player) if player.is_me).then_some(()));
    room
}

#[track_caller]
fn closed(mut room: Room) -> ClosedReason {
    until(&mut room, |event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

#[track_caller]
fn failure(room: Room) -> (ConnectFailureKind, String) {
    match closed(room) {
        ClosedReason::Connect(failure) => (failure.kind, failure.detail),
        other => panic!("{other:?}"),
    }
}

#[test]
fn leaving_is_told_at_once_however_it_is_done() {
    let hall = Hall::start();
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let ways: [fn(Room); 2] = [Room::leave, drop];
    for way in ways {
        let guest = wait(hall.guest(&code).open());
        let id = guest.local_id().expect("it is open");
        way(guest);
        let reason = until(&mut host, |event| match event {
            Event::PlayerLeft { id: gone, reason, .. } if gone == id => Some(reason),
            _ => None,
        });
        assert_eq!(reason, LeaveReason::Left);
    }
}

#[test]
fn what_was_sent_before_leaving_arrives() {
    let hall = Hall::start();
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
        let guest = wait(hall.guest(&code).transport(transport).open());
        for number in 0..100 {
            guest.broadcast("count", &number).expect("the room is open");
        }
        guest.leave();
        let numbers = std::cell::RefCell::new(Vec::new());
        until(&mut host, |event| match event {
            Event::Message(message) => {
                numbers.borrow_mut().push(message.read::<i32>().expect("it is a number"));
                None
            }
            Event::PlayerLeft { .. } => Some(()),
            _ => None,
        });
        assert_eq!(numbers.into_inner(), (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn numbered_messages_reach_all_in_one_order() {
    let hall = Hall::start();
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let mut guest = wait(hall.guest(&code).open());
    let numbered = SendOptions::default().numbered();
    for bid in 0..10 {
        host.send_with(numbered, Recipient::Everyone, "bid", &bid).expect("the room is open");
        guest.send_with(numbered, Recipient::Everyone, "bid", &(bid + 100)).expect("the room is open");
    }
    let heard = [&mut host, &mut guest].map(|room| {
        let bids = (0..20).map(|_| {
            until(room, |event| match event {
                Event::Message(message) => Some((message.order, message.read::<i32>().expect("a number"))),
                _ => None,
            })
        });
        bids.collect::<Vec<_>>()
    });
    assert!(heard[0].iter().map(|(order, _)| *order).eq((0..20).map(Some)), "{heard:?}");
    assert_eq!(heard[0], heard[1]);
}

#[test]
fn a_room_works_inside_a_runtime_and_on_another_thread() {
    let hall = Hall::start();
    let host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let builder = hall.guest(&code);
    let guest = hall.runtime.block_on(async { wait(builder.open()) });
    let guest = std::thread::spawn(move || {
        guest.broadcast("hello", "from another thread").expect("the room is open");
        guest
    });
    let guest = guest.join().expect("it does not panic");
    let mut host = host;
    let text = until(&mut host, |event| match event {
        Event::Message(message) => Some(message.read::<String>().expect("it is text")),
        _ => None,
    });
    assert_eq!(text, "from another thread");
    drop(guest);
}

#[test]
fn the_wrong_server_is_not_talked_to() {
    let hall = Hall::start();
    let port = hall.server().local_port();
    let wrong = parlor_transport::Fingerprint([7; 32]);
    for transport in [TransportPreference::Auto, TransportPreference::Quic, TransportPreference::WebSocket] {
        let room = hall
            .here(Room::host("tanks").server(&format!("127.0.0.1:{port}#{wrong}")).transport(transport))
            .open();
        let (kind, detail) = failure(room);
        assert_eq!(kind, ConnectFailureKind::Untrusted, "{detail}");
        assert!(detail.contains("another certificate"), "{detail}");
    }
    // Without a fingerprint and without the registry a certificate of its own making convinces nobody.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let room =
        Room::host("tanks").server(&format!("localhost:{port}")).registry(Registry::at(elsewhere.path()));
    let (kind, detail) = failure(room.open());
    assert_eq!(kind, ConnectFailureKind::Untrusted, "{detail}");
    assert!(detail.contains("HOST:PORT#FINGERPRINT"), "{detail}");
}

#[test]
fn websocket_takes_over_where_udp_gets_no_answer() {
    let hall = Hall::start();
    // A TCP relay in front of the server, on a port where no UDP is answered.
    let fingerprint = hall.server().fingerprint().expect("a development server");
    let target = hall.server().local_port();
    let port = hall.runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far =
                    tokio::net::TcpStream::connect(("127.0.0.1", target)).await.expect("it listens");
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
            }
        });
        port
    });
    let room = wait(hall.here(Room::host("tanks").server(&format!("127.0.0.1:{port}#{fingerprint}"))).open());
    assert_eq!(room.info().connectivity.link, Some(parlor::LinkKind::WebSocket));
}

#[test]
fn a_dead_port_and_a_bad_setting_are_named() {
    let hall = Hall::start();
    let (kind, detail) = failure(
        hall.here(Room::host("tanks").server("127.0.0.1:1").transport(TransportPreference::WebSocket)).open(),
    );
    assert_eq!(kind, ConnectFailureKind::Unreachable, "{detail}");
    let (_, detail) = failure(Room::host("tanks").max_players(40).open());
    assert!(detail.contains("max_players is 40; it may be 2 to 16"), "{detail}");
    let (_, detail) = failure(Room::join("tanks", "K7").open());
    assert!(detail.contains("4 to 12"), "{detail}");
    let (_, detail) = failure(Room::host("tanks").tick_hz(241).code("K7").open());
    assert!(detail.contains("tick_hz is 241; it may be 1 to 240"), "{detail}");
    let (_, detail) = failure(Room::host("tanks").code("K7").open());
    assert!(detail.contains("code is \"K7\"") && detail.contains("4 to 12"), "{detail}");
    let (_, detail) = failure(Room::host("tanks").host_timeout(Duration::from_millis(99)).open());
    assert!(detail.contains("host_timeout is 99 ms; it may be 100"), "{detail}");
}

#[test]
fn leaving_while_connecting_needs_no_patience() {
    let hall = Hall::start();
    // Nothing answers here, and UDP does not say so.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port();
    let print = parlor_transport::Fingerprint([7; 32]);
    let room = hall
        .here(
            Room::host("tanks")
                .server(&format!("127.0.0.1:{port}#{print}"))
                .transport(TransportPreference::Quic),
        )
        .open();
    room.leave();
}

#[test]
fn a_server_that_goes_down_says_so() {
    let mut hall = Hall::start();
    let host = hall.host();
    hall.shut_down();
    assert_eq!(closed(host), ClosedReason::Session(CloseReason::ServerShutdown));
}

#[test]
fn an_invite_link_is_enough() {
    let hall = Hall::start();
    let host = wait(hall.here(Room::host("tanks").secret("sesame").invite_scheme("tanks")).open());
    let code = host.code().expect("it is open");
    assert_eq!(host.invite_link(), Some(format!("tanks://join/{code}?secret=sesame")));
    let invite = hall.server().invite(code, Some("sesame")).link("tanks");
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let guest = wait(Room::join("tanks", &invite).registry(Registry::at(elsewhere.path())).open());
    assert_eq!(guest.info().join_path, Some(parlor::JoinPath::InternetExplicit));
}

#[test]
fn rooms_are_spread_over_shards_and_found_by_the_first_port() {
    let hall = Hall::start_with(|config| config.shards = NonZeroU16::new(3).expect("it is not 0"));
    let server =
        format!("127.0.0.1:{}#{}", hall.server().local_port(), hall.server().fingerprint().expect("its own"));
    let mut rooms: Vec<Room> = (0..6).map(|_| hall.host()).collect();
    let mut places: Vec<Option<String>> = rooms.iter().map(|room| room.info().connectivity.relay).collect();
    for host in &mut rooms {
        let code = host.code().expect("it is open");
        for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
            // No registry: the port that everybody is given must do.
            let guest = Room::join("tanks", &code.to_string()).server(&server).transport(transport);
            let guest = wait(guest.registry(Registry::at("/nowhere")).open());
            assert_eq!(guest.info().connectivity.relay, host.info().connectivity.relay);
        }
        assert_eq!(hall.runtime.block_on(hall.server().room(code)).map(|room| room.code), Some(code));
    }
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 3, "two rooms on each of three shards: {places:?}");
}

/// Polls until the round trip is as it should be.
#[track_caller]
fn round_trip(room: &mut Room, enough: impl Fn(Duration) -> bool) {
    let patience = Patience::new();
    while !room.diagnostics().rtt.is_some_and(&enough) {
        while room.poll().is_some() {}
        room.step();
        patience.look_again(|| format!("the round trip stays at {:?}", room.diagnostics().rtt));
    }
}

#[test]
fn t11_a_room_can_be_put_on_a_bad_network_and_back() {
    let hall = Hall::start();
    let host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let impaired: Impairment = "latency=50ms,loss=2%,seed=9".parse().expect("it is well formed");
    for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
        let builder = hall.guest(&code).transport(transport).impairment(impaired);
        let mut guest = wait(builder.clone().open());
        assert_eq!(guest.impairment(), Some(impaired));
        round_trip(&mut guest, |rtt| rtt >= Duration::from_millis(100));
        let other = builder.open();
        guest.set_impairment(Impairment::none()).expect("it is within its bounds");
        assert_eq!((guest.impairment(), other.impairment()), (Some(Impairment::none()), Some(impaired)));
        round_trip(&mut guest, |rtt| rtt < Duration::from_millis(100));
        other.leave();
        guest.leave();
    }
    assert_eq!(host.impairment(), None);
    let error = host.set_impairment(impaired).expect_err("its sockets are as they are");
    assert!(error.to_string().contains(".impairment(Impairment::none())"), "{error}");
    let error =
        hall.guest(&code).impairment(impaired.loss_ppm(1_000_001)).check().expect_err("it is too much");
    assert!(error.to_string().contains("loss may not be 100.0001%"), "{error}");
}

#[test]
fn only_the_host_writes_and_an_input_that_cannot_be_read_is_none() {
    let hall = Hall::start();
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let mut guest = wait(hall.guest(&code).open());
    let (ada, bob) = (host.local_id().expect("it is open"), guest.local_id().expect("it is open"));
    assert!(guest.as_host().is_none());
    assert!(host.current_step().is_none(), "none runs");
    let patience = Patience::new();
    // The guest sends a text, which the host's game does not expect.
    while host.diagnostics().messages_unreadable == 0 {
        while host.poll().is_some() || guest.poll().is_some() {}
        while let Some(mut step) = guest.step() {
            step.send_input("not a number").expect("it is short");
            assert!(step.host().is_none());
            assert_eq!(step.input::<i32>(ada), None, "another's");
        }
        while let Some(mut step) = host.step() {
            step.send_input(&7).expect("it is short");
            let number = step.number();
            let mut host = step.host().expect("it is the host");
            assert_eq!((host.number(), host.inputs::<i32>()), (number, vec![(ada, 7)]));
            assert_eq!(host.input::<i32>(bob), None);
            host.set("step", &number.0).expect("it fits");
            assert_eq!(step.state().get("step"), Ok(Some(number.0)));
        }
        patience.look_again(|| format!("{:?}", host.info()));
    }
    host.as_host().expect("it is the host").set("round", &1).expect("it fits");
    let round = until_state(&mut host, &mut guest, "round");
    assert_eq!(round, 1);
}

/// Lets both go on until the guest has a key.
#[track_caller]
fn until_state(host: &mut Room, guest: &mut Room, key: &str) -> i32 {
    let patience = Patience::new();
    loop {
        for room in [&mut *host, &mut *guest] {
            while room.poll().is_some() {}
            while room.step().is_some() {}
        }
        if let Some(value) = guest.state().get(key).expect("it is a number") {
            return value;
        }
        patience.look_again(|| format!("{:?}", guest.info()));
    }
}

#[test]
fn a_step_is_there_again_until_the_next_poll() {
    let hall = Hall::start();
    let mut host = hall.host();
    let patience = Patience::new();
    let number = loop {
        if let Some(step) = host.step() {
            break step.number();
        }
        host.poll();
        patience.look_again(|| "no step is due".to_owned());
    };
    assert_eq!(host.current_step().map(|step| step.number()), Some(number));
    host.poll();
    assert!(host.current_step().is_none());
}

#[test]
fn a_recorded_room_is_in_its_file() {
    let hall = Hall::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("room.prec");
    let mut host = hall.host();
    assert!(host.recording().status().is_none());
    host.recording().start(&path).expect("the host may");
    assert!(matches!(host.recording().start(&path), Err(RoomError::Misuse(_))), "it is being recorded");
    let patience = Patience::new();
    for round in 1..=5 {
        host.as_host().expect("it is the host").set("round", &round).expect("it fits");
        while host.step().is_none() {
            host.poll();
            patience.look_again(|| "no step is due".to_owned());
        }
    }
    host.poll();
    let recording = host.recording().status().expect("there is one");
    assert_eq!((recording.figures.ended, recording.failure), (None, None));
    host.leave();
    let file = std::fs::read(&path).expect("it is written");
    let mut playback = Playback::new();
    playback.feed(&file);
    while playback.step(parlor::recording::Instant::from_micros(u64::MAX)).expect("it is in order").is_some()
    {
    }
    assert_eq!((playback.ended(), playback.first_difference()), (Some(Ended::Closed), None));
    let round = playback.keys().and_then(|keys| keys.get("round").cloned());
    assert_eq!(round, Some(5.into()));
    assert!(playback.players().values().eq(["ada"]));
    // What is there is not written over, and a room that could not be recorded can be.
    let host = hall.host();
    assert!(matches!(host.recording().start(&path), Err(RoomError::File { .. })));
    assert_eq!(std::fs::read(&path).expect("it is there"), file);
    let other = folder.path().join("other.prec");
    host.recording().start(&other).expect("it is a new file");
    host.recording().stop();
    assert_eq!(host.recording().status().and_then(|it| it.figures.ended), Some(Ended::Stopped));
    let bytes = std::fs::metadata(&other).expect("it is written").len();
    assert_eq!(host.recording().status().map(|it| it.figures.bytes), Some(bytes));
}

/// One frame of a game on a rollback lane, with the state after each step as it was run last.
fn lane_frame(room: &mut Room, players: &[MemberId], after: &mut BTreeMap<u32, i64>) {
    while room.poll().is_some() {}
    while room.step().is_some() {}
    let me = i64::from(room.local_id().expect("it is open").0);
    let next = room.rollback().diagnostics().expect("it has a lane").next;
    // Every player presses something else now and then, and holds it meanwhile.
    while room.rollback().step(&(i64::from(next.0 / 4 % 5) + 10 * me)).expect("the room is open") {
        while let Some(request) = room.rollback().request() {
            let RollbackRequest::Advance { tick, .. } = request else { continue };
            let mut sum: i64 = room.rollback().get("sum").expect("it is a number").unwrap_or(7);
            for player in players {
                let pressed = room.rollback().input::<i64>(*player).expect("it is a number");
                sum = (sum * 31 + pressed.map_or(-1, |(pressed, _)| pressed)) % 1_000_003;
            }
            room.rollback().set("sum", &sum).expect("there is room for it");
            after.insert(tick.0, sum);
        }
    }
}

#[test]
fn players_and_one_who_watches_come_to_the_same_states_of_a_rollback_lane() {
    const STEPS: u32 = 90;
    let hall = Hall::start();
    let host = hall.host();
    let code = host.code().expect("it is open").to_string();
    // An input is longer under way than it is held back, so what the other one does is guessed, and sometimes wrongly.
    let far: Impairment = "latency=120ms,jitter=20ms,loss=2%,seed=9".parse().expect("it is well formed");
    let guest = wait(hall.guest(&code).impairment(far).open());
    let watcher = wait(hall.guest(&code).transport(TransportPreference::WebSocket).open());
    let mut rooms = [host, guest, watcher];
    let players: Vec<MemberId> = rooms[..2].iter().filter_map(Room::local_id).collect();
    for room in &mut rooms {
        while room.step().is_some() {}
    }
    let newest = rooms.iter().filter_map(Room::tick_number).map(|tick| tick.0).max().expect("they are open");
    let config = RollbackConfig::new(players.clone(), parlor::Tick(newest + 15));
    rooms.iter_mut().for_each(|room| room.rollback().begin(&config).expect("all is within bounds"));
    let mut after = [BTreeMap::new(), BTreeMap::new(), BTreeMap::new()];
    let patience = Patience::new();
    // Some more, so that whatever was guessed of those before is known and was run again.
    let end = config.begin.offset(i32::try_from(STEPS + 30).expect("it is a few seconds"));
    let is_over = |room: &Room| {
        let lane = room.rollback().diagnostics().expect("it has a lane");
        lane.settled.since(end) >= 0 && lane.next.since(end) >= 0
    };
    while !rooms.iter().all(is_over) {
        rooms.iter_mut().zip(&mut after).for_each(|(room, after)| lane_frame(room, &players, after));
        let lanes: Vec<_> = rooms.iter().map(|room| room.rollback().diagnostics()).collect();
        patience.look_again(|| format!("the lane stands like this: {lanes:?}"));
    }
    for (room, ran) in rooms.iter_mut().zip(&after) {
        assert_eq!(room.rollback().event(), None);
        for step in config.begin.0..config.begin.0 + STEPS {
            assert_eq!(ran[&step], after[0][&step], "after step {step}, of {:?}", room.local_id());
        }
    }
    let [_, guest, watcher] = rooms.map(|room| room.rollback().diagnostics().expect("it has a lane"));
    assert!(guest.rollbacks > 0, "nothing was guessed wrongly: {guest:?}");
    assert_eq!((watcher.rollbacks, watcher.replayed), (0, 0), "who watches sees what is settled");
}

/// What is in a log, as soon as the file is whole.
fn logged(file: &std::path::Path) -> Vec<PacketEntry> {
    let log = std::fs::read(file).expect("it was made");
    assert!(!log.windows(12).any(|it| it == b"a-secret-key"), "the secret is in the log");
    let entries = PacketLogReader::new(log.into()).expect("it is a log");
    entries.map(|entry| entry.expect("it is whole").1).collect()
}

#[test]
fn t11_a_room_logs_its_packets_if_it_is_told_to() {
    let hall = Hall::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (of_host, of_guest) = (folder.path().join("host.net"), folder.path().join("guest.net"));
    let host = hall.here(Room::host("tanks").secret("a-secret-key").packet_log(&of_host));
    let mut host = wait(host.open());
    let code = host.code().expect("it is open").to_string();
    // Small enough to be full soon, and a log of that name is overwritten.
    std::fs::write(&of_guest, vec![b'x'; 100_000]).expect("it can be written");
    let log = PacketLog::new(&of_guest).bytes_max(4_000);
    let guest = wait(hall.guest(&code).secret("a-secret-key").packet_log(log).open());
    for number in 0..200 {
        guest.broadcast("count", &(number, "something longer than nothing")).expect("the room is open");
    }
    until(&mut host, |event| match event {
        Event::Message(message) => (message.read::<(i32, String)>().ok()?.0 == 199).then_some(()),
        _ => None,
    });
    let (me, id) = (host.local_id(), guest.local_id());
    guest.leave();
    host.leave();
    let [host, guest] = [&of_host, &of_guest].map(|file| logged(file));
    for (log, me) in [(&host, me), (&guest, id)] {
        let opened = log.iter().find_map(|entry| match entry {
            PacketEntry::Opened { code, member, .. } => Some((code.to_string(), *member)),
            _ => None,
        });
        assert_eq!(opened, Some((code.clone(), me.expect("it was open"))));
        for way in [PacketWay::Sent, PacketWay::Received] {
            let is = |entry: &&PacketEntry| matches!(entry, PacketEntry::Packet(packet) if packet.way == way);
            assert!(log.iter().filter(is).count() > 1, "{way:?} in {log:?}");
        }
    }
    assert_eq!(guest.last(), Some(&PacketEntry::Full));
    assert!(std::fs::metadata(&of_guest).expect("it is there").len() <= 4_100);
    // The host heard all of it.
    let heard = host.iter().filter_map(|entry| match entry {
        PacketEntry::Packet(packet) if packet.way == PacketWay::Received => Some(&packet.bytes),
        _ => None,
    });
    let counts = heard.map(|bytes| bytes.windows(5).filter(|it| it == b"count").count()).sum::<usize>();
    assert!(counts >= 200, "{counts} of 200 messages");

    let nowhere = folder.path().join("nowhere").join("host.net");
    let (kind, detail) = failure(hall.here(Room::host("tanks").packet_log(&nowhere)).open());
    assert_eq!(kind, ConnectFailureKind::NoPacketLog);
    assert!(detail.contains("host.net"), "{detail}");
}
