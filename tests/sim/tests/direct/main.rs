//! Direct paths between members and their host open and close under traffic. No message is lost or
//! duplicated, and no member sees more than before.

mod harness;
mod mesh;

use bytes::Bytes;
use harness::{LANES, Room, options, room, room_with};
use parlor_client_core::{
    ClosedReason, Event, Mode, Options, PathMode, ReasonCode, Scope, Transport, TransportPath,
    TransportStatus,
};
use parlor_impair::Rng;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::Intent;
use parlor_proto::wire::path::PathSignal;
use parlor_proto::{Lane, MemberId, channel};
use parlor_sim::{APP, Link, Sim, for_seeds, hello};
use parlor_sync::keyed::Audience;
use std::time::Duration;

#[test]
fn a15_a16_a_path_comes_up_and_state_inputs_and_messages_move_over() {
    let mut room = room(1, &[PathMode::Auto, PathMode::Auto], Link::quic(), Some(Link::quic().latency_ms(5)));
    room.connect(&[1, 2]);
    assert_eq!(room.sim.paths_made(), 2);
    for index in [1, 2] {
        let info = room.sim.room(room.peers[index]).info();
        assert_eq!(
            (info.scope, info.transport_status),
            (Scope::Direct, Some(TransportStatus::DirectUdpReady))
        );
        assert_eq!((info.requested_paths, info.last_reason_code), (PathMode::Auto, None));
        assert!(info.peer_candidate.is_some());
    }
    assert_eq!(room.path(0), TransportPath::DirectUdp);
    room.sim.run_for(200);
    let host = room.sim.room(room.peers[0]).players();
    assert!(host.iter().filter(|player| !player.is_me).all(|player| player.transport == Transport::Direct));
    let seen = room.sim.room(room.peers[1]).players();
    let told = |id: u32| seen.iter().find(|player| player.id == MemberId(id)).unwrap();
    assert_eq!((told(0).transport, told(2).transport.as_str()), (Transport::Direct, "relay_quic"));
    assert!(told(1).direct && told(2).direct && !told(0).direct);
    // The hub sends no state and forwards no inputs any more.
    let before = room.sim.traffic(room.peers[1]);
    room.sim.run_for(2_000);
    let after = room.sim.traffic(room.peers[1]);
    let figures = (after.down_bytes - before.down_bytes, after.up - before.up);
    assert!(figures.0 < 1_000 && figures.1 < 20, "signs of life, and no more: {figures:?}");
    // The host's state arrives without delay, and so do its reports on inputs.
    let late = |room: &Room, index| room.tick(0) - room.tick(index);
    assert!(late(&room, 1) <= 2 && late(&room, 2) <= 2, "{} {}", late(&room, 1), late(&room, 2));
    room.talk(2_000);
    room.settle();
}

#[test]
fn in_a_room_without_state_a_path_is_reported_for_its_messages() {
    let mut sim = Sim::new(11);
    sim.direct(Some(Link::quic().latency_ms(5)));
    let host = sim.host(options(PathMode::Auto), Link::quic());
    let mut guest = Options::join(APP, sim.code(host));
    guest.paths = PathMode::Auto;
    let guest = sim.enter(guest, Link::quic());
    let is_direct =
        |sim: &Sim| sim.room(guest).info().transport_status == Some(TransportStatus::DirectUdpReady);
    sim.run_until(10_000, "the path is up", is_direct);
    // The host's next write arrives over the path soon, and the path is reported.
    sim.act(host, |room, _| room.set("tick", &1, Audience::All).expect("the host writes"));
    sim.run_for(500);
    assert!(is_direct(&sim));
    assert_eq!(sim.room(guest).get::<u32>("tick").expect("it is a number"), Some(1));
}

#[test]
fn what_may_be_lost_troubles_the_hub_only_for_those_without_a_path() {
    let (alone, beside) = (&[PathMode::Auto][..], &[PathMode::Auto, PathMode::Relay][..]);
    for (modes, lane, is_spared) in [(alone, 2, true), (beside, 2, false), (alone, 0, false)] {
        let mut room = room(10, modes, Link::quic(), Some(Link::quic().latency_ms(5)));
        room.connect(&[1]);
        room.sim.run_for(1_000);
        let (guest, before) = (room.peers[1], room.sim.traffic(room.peers[1]));
        for number in 0..100u64 {
            room.sim.act(guest, |room, now| {
                room.send(LANES[lane], Recipient::Others, "say", &(lane, number, ""), false, now).unwrap();
            });
            room.sim.run_for(20);
        }
        let up = room.sim.traffic(guest).up - before.up;
        assert_eq!(up < 20, is_spared, "{up} packets in two seconds");
        room.sim.run_for(500);
        room.listen();
        let all: Vec<u64> = (0..100).collect();
        assert!(
            (0..room.peers.len()).filter(|it| *it != 1).all(|to| room.came.get(&(lane, 1, to)) == Some(&all))
        );
    }
}

#[test]
fn everything_comes_once_and_in_order_while_paths_come_up() {
    for_seeds(3, |seed| {
        let lossy = Link::quic().loss(20).jitter_ms(15);
        let mut room =
            room(seed, &[PathMode::Auto, PathMode::P2p, PathMode::Relay], lossy, Some(lossy.latency_ms(8)));
        room.talk(4_000);
        room.connect(&[1, 2]);
        room.talk(2_000);
        room.settle();
        assert_eq!(room.path(3), TransportPath::RelayRoom);
    });
}

#[test]
fn a_path_that_dies_in_play_is_left_in_time_and_nothing_is_lost() {
    for_seeds(3, |seed| {
        let lossy = Link::quic().loss(20).jitter_ms(15);
        let mut room = room(seed, &[PathMode::Auto, PathMode::Auto], lossy, Some(lossy.latency_ms(8)));
        room.connect(&[1, 2]);
        room.talk(1_000);
        // Neither end is notified.
        room.sim.silence_paths(true);
        room.talk(1_500);
        for index in [1, 2] {
            assert_eq!(room.path(index), TransportPath::RelayRoom, "{}", room.sim.excerpt(40));
            let info = room.sim.room(room.peers[index]).info();
            assert_eq!(info.transport_status, Some(TransportStatus::RelayFallback));
            assert!(room.tick(0) - room.tick(index) < 20, "its state goes on");
        }
        room.talk(1_000);
        room.settle();
        // Once more, with both ends notified.
        room.sim.silence_paths(false);
        room.connect_again();
        room.talk(500);
        room.sim.break_paths();
        room.talk(1_000);
        room.settle();
    });
}

#[test]
fn paths_come_and_go_and_nothing_is_lost() {
    for_seeds(2, |seed| {
        let lossy = Link::quic().loss(20).jitter_ms(15);
        let mut room = room(seed, &[PathMode::Auto, PathMode::Auto], lossy, Some(lossy.latency_ms(8)));
        room.connect(&[1, 2]);
        for turn in 0..2 {
            room.talk(400);
            room.sim.silence_paths(turn != 1);
            if turn == 1 {
                room.sim.break_paths();
            }
            room.talk(1_500);
            room.sim.silence_paths(false);
            room.connect_again();
        }
        room.talk(400);
        room.settle();
        assert!(room.sim.paths_made() >= 6, "{}", room.sim.paths_made());
    });
}

#[test]
fn who_insists_on_the_hub_is_told_to_nobody() {
    let host = room(3, &[PathMode::Relay, PathMode::Auto], Link::quic(), Some(Link::quic()));
    let mut both =
        [host, room_with(4, &[PathMode::Auto], options(PathMode::Relay), Link::quic(), Some(Link::quic()))];
    for room in &mut both {
        room.talk(3_000);
        room.settle();
    }
    assert_eq!(both[0].sim.paths_made(), 1, "of the member that wants one");
    assert_eq!(both[1].sim.paths_made(), 0);
    // Addresses are sent in plain bytes, so a test can search for them.
    let names = |room: &Room, to: usize, whose: usize| {
        let number = u8::try_from(whose + 1).unwrap();
        let addresses = [vec![10, 0, 0, number], vec![203, 0, 113, number]];
        let packets = room.sim.received(room.peers[to]);
        packets
            .iter()
            .any(|packet| addresses.iter().any(|it| packet.bytes.windows(4).any(|bytes| bytes == &it[..])))
    };
    for room in &both {
        for to in 0..room.peers.len() {
            let insists =
                |whose: usize| std::ptr::eq(room, &both[0]) && whose == 1 || std::ptr::eq(room, &both[1]);
            let told = (0..room.peers.len()).filter(|whose| *whose != to && insists(*whose));
            for whose in told {
                assert!(!names(room, to, whose), "{to} was told where {whose} is");
            }
        }
    }
    assert!(names(&both[0], 0, 2) && names(&both[0], 2, 0), "the test would see it");
    assert!(!names(&both[0], 1, 0) && !names(&both[0], 1, 2), "who is no end of a path is told nothing");
}

#[test]
fn a19_auto_tries_a_direct_path_first_and_falls_back_to_the_relay() {
    let mut room = room(5, &[PathMode::Auto], Link::quic(), None);
    room.sim.run_for(1_000);
    assert_eq!(room.path(1), TransportPath::DirectUdpPending);
    room.talk(4_000);
    let info = room.sim.room(room.peers[1]).info();
    assert_eq!(info.transport_path, TransportPath::RelayRoom);
    assert_eq!(info.transport_status, Some(TransportStatus::DirectUdpTimeout));
    assert_eq!(info.last_reason_code, Some(ReasonCode::DirectUdpTimeout));
    assert_eq!((info.requested_mode, info.requested_paths), (Mode::Auto, PathMode::Auto));
    room.settle();
}

/// Why a guest's room is over, and how long after it opened.
fn ended(room: &mut Room, within_ms: u64) -> (ClosedReason, u64) {
    for ms in 0..within_ms {
        if let Some(why) = room.sim.closed(room.peers[1]) {
            return (why, ms);
        }
        room.sim.run_for(1);
    }
    panic!("it goes on without a path: {:?}", room.sim.room(room.peers[1]).info());
}

#[test]
fn a3_p2p_is_a_direct_path_or_a_named_error() {
    let link = Some(Link::quic().latency_ms(5));
    // Their networks let none through, or the host allows none.
    let mut no_way = room(5, &[PathMode::P2p, PathMode::Auto], Link::quic(), None);
    let mut not_allowed = room_with(5, &[PathMode::P2p], options(PathMode::Relay), Link::quic(), link);
    for (room, most_ms) in [(&mut no_way, 5_000), (&mut not_allowed, 6_000)] {
        assert_eq!(room.sim.room(room.peers[1]).info().requested_mode, Mode::P2p);
        let (why, ms) = ended(room, 10_000);
        let ClosedReason::NoDirectPath(missing) = &why else { panic!("{why}") };
        assert_eq!(missing.reason, ReasonCode::DirectUdpTimeout, "{why}");
        assert!(ms <= most_ms && why.to_string().contains("PathMode::Auto"), "{ms} ms: {why}");
        let info = room.sim.room(room.peers[1]).info();
        assert_eq!(info.last_reason_code, Some(ReasonCode::DirectUdpTimeout));
    }
    no_way.sim.run_for(500);
    assert_eq!(no_way.sim.closed(no_way.peers[2]), None, "who wants a relay as well has one");
    assert_eq!(no_way.sim.room(no_way.peers[0]).player_count(), 2, "the other one left");
}

#[test]
fn a3_p2p_goes_on_as_long_as_there_is_a_path_or_another_comes_soon() {
    let mut room = room(8, &[PathMode::P2p], Link::quic(), Some(Link::quic().latency_ms(5)));
    room.connect(&[1]);
    room.talk(20_000);
    room.settle();
    room.sim.break_paths();
    room.talk(20_000);
    assert_eq!(room.path(1), TransportPath::DirectUdp, "it was lost, and there is another");
    // A guest without its server looks for a path when it is back.
    room.sim.unplug(room.peers[1], true);
    room.sim.cut(room.peers[1]);
    room.sim.run_for(8_000);
    room.sim.unplug(room.peers[1], false);
    room.sim.run_for(10_000);
    assert_eq!(room.sim.closed(room.peers[1]), None);
    room.connect_again();
    room.sim.direct(None);
    room.sim.break_paths();
    let (why, ms) = ended(&mut room, 20_000);
    assert!(matches!(why, ClosedReason::NoDirectPath(_)) && ms > 10_000, "{ms} ms: {why}");
}

#[test]
fn a3_a_direct_path_within_the_local_network_is_local() {
    let mut room = room(9, &[PathMode::Auto], Link::quic(), Some(Link::quic().latency_ms(5)));
    room.sim.near();
    room.sim.run_for(1_000);
    for index in [0, 1] {
        let info = room.sim.room(room.peers[index]).info();
        assert_eq!((info.scope, info.transport_path), (Scope::Local, TransportPath::LocalRoom), "{index}");
    }
    let guest = room.sim.room(room.peers[1]);
    assert_eq!(guest.info().transport_status, Some(TransportStatus::DirectUdpReady));
    assert_eq!(guest.player(MemberId(0)).map(|host| host.transport), Some(Transport::Direct));
}

#[test]
fn a8_the_round_trip_to_the_host_is_told_beside_that_to_the_server() {
    let modes = [PathMode::Auto, PathMode::Relay];
    let mut room = room(10, &modes, Link::quic().latency_ms(40), Some(Link::quic().latency_ms(10)));
    room.sim.run_for(8_000);
    let ms = |index: usize| {
        let core = room.sim.room(room.peers[index]);
        (core.ping().unwrap().as_millis(), core.host_ping().unwrap().as_millis())
    };
    assert_eq!(ms(0), (0, 0), "it is the host");
    let (direct, relayed) = (ms(1), ms(2));
    assert!((75..110).contains(&direct.0) && (15..40).contains(&direct.1), "{direct:?}");
    assert!((75..110).contains(&relayed.0) && (150..220).contains(&relayed.1), "{relayed:?}");
}

#[test]
fn threat_13_what_one_member_may_see_goes_to_no_other() {
    let mut room = room(6, &[PathMode::Auto, PathMode::Auto], Link::quic(), Some(Link::quic().latency_ms(5)));
    room.connect(&[1, 2]);
    let mut noise = Rng::new(6);
    room.sim.play(room.peers[0], move |room, _| {
        // The value is random, so it can only arrive as its bytes.
        let secret: Vec<u64> = (0..25).map(|_| noise.draw() >> 1).collect();
        room.set("secret", &secret, Audience::members([MemberId(2)])).expect("the host writes");
    });
    room.sim.run_for(200);
    let bytes = |room: &Room, to: usize| -> usize {
        let of_host = room.sim.path_received().iter().filter(|(from, ..)| *from == room.peers[0]);
        of_host.filter(|(_, it, _)| *it == room.peers[to]).map(|(.., packet)| packet.bytes.len()).sum()
    };
    let before = [bytes(&room, 1), bytes(&room, 2)];
    room.sim.run_for(1_000);
    let figures = [bytes(&room, 1) - before[0], bytes(&room, 2) - before[1]];
    assert!(figures[1] > 25 * 200 && figures[0] < 2_000, "{figures:?} bytes in a second");
    let has_secret = |index: usize| room.sim.room(room.peers[index]).keys().contains(&"secret".to_owned());
    assert!(has_secret(2) && !has_secret(1));
}

#[test]
fn entities_and_keys_stand_while_the_way_changes() {
    let mut room = room(7, &[PathMode::Auto], Link::quic().jitter_ms(10), Some(Link::quic().latency_ms(5)));
    let mut ticks = Vec::new();
    let mut turn = |room: &mut Room, ms: u64| {
        for _ in 0..ms / 5 {
            room.sim.run_for(5);
            let core = room.sim.room(room.peers[1]);
            if core.keys().len() >= 3 {
                ticks.push(room.tick(1));
                assert_eq!(core.get::<i32>("still").unwrap(), Some(7), "{}", room.sim.excerpt(30));
            }
        }
    };
    turn(&mut room, 4_000);
    assert_eq!(room.path(1), TransportPath::DirectUdp);
    room.sim.silence_paths(true);
    turn(&mut room, 3_000);
    assert_eq!(room.path(1), TransportPath::RelayRoom);
    assert!(ticks.len() > 1_000 && ticks.is_sorted(), "what is shown never goes back");
    let resets = room.sim.events(room.peers[1]).iter().filter(|event| match event {
        Event::State(update) => update.source != parlor_client_core::StateSource::Delta,
        _ => false,
    });
    assert!(resets.count() <= 3, "only what came when it joined was told as a whole");
}

#[test]
fn a_message_that_the_hub_numbers_keeps_its_place() {
    for_seeds(3, |seed| {
        let lossy = Link::quic().loss(20).jitter_ms(15);
        let mut room = room(seed, &[PathMode::Auto, PathMode::Auto], lossy, Some(lossy.latency_ms(60)));
        room.connect(&[1, 2]);
        let mut said = Vec::new();
        for number in 0..60u64 {
            // Some go to all through the hub, some directly to the host.
            let stamp = number >= 20 && number % 7 == 3;
            let to = if stamp { Recipient::Others } else { Recipient::Authority };
            room.sim.act(room.peers[1], |room, now| {
                room.send(Lane::ReliableOrdered, to, "say", &(0usize, number, ""), stamp, now).unwrap();
            });
            said.push(number);
            room.sim.run_for(7);
        }
        room.sim.run_for(3_000);
        room.listen();
        assert_eq!(room.came.get(&(0, 1, 0)), Some(&said), "{}", room.sim.excerpt(60));
        assert_eq!(room.path(1), TransportPath::DirectUdp, "the state stays where it is");
    });
}

#[test]
fn of_sequenced_messages_no_older_one_comes_later_whoever_numbers_some() {
    for_seeds(5, |seed| {
        let lossy = Link::quic().loss(20).jitter_ms(15);
        // Either route may be the shorter one.
        let direct = lossy.latency_ms(5 + seed % 2 * 60);
        let mut room = room(seed, &[PathMode::Auto, PathMode::Auto], lossy, Some(direct));
        room.connect(&[1, 2]);
        for number in 0..600u64 {
            let stamp = number >= 200 && number % 50 == 7;
            let to = if stamp { Recipient::Everyone } else { Recipient::Others };
            let from = room.peers[usize::try_from(number % 2).unwrap()];
            room.sim.act(from, |room, now| {
                room.send(LANES[3], to, "say", &(3usize, number, ""), stamp, now).unwrap();
            });
            room.sim.run_for(7);
        }
        room.sim.run_for(1_000);
        room.listen();
        for ((_, from, to), came) in room.came.iter().filter(|((_, from, to), _)| from != to) {
            assert!(came.is_sorted(), "{from} to {to}: {came:?}");
            assert!(came.len() > 100 && came.last() > Some(&590), "{from} to {to}: {came:?}");
        }
        assert!(room.came.len() >= 4);
    });
}

#[test]
fn what_a_path_overtook_does_not_come_after_it_though_the_path_is_over() {
    let slow = Link::quic().latency_ms(30);
    let mut room = room(13, &[PathMode::Auto], Link::quic(), Some(slow));
    let [host, guest] = [room.peers[0], room.peers[1]];
    room.sim.run_until(10_000, "both try", |sim| sim.paths().count() == 1);
    let say = |sim: &mut Sim, number: u64| {
        sim.act(guest, |room, now| {
            room.send(Lane::UnreliableSequenced, Recipient::Authority, "say", &number, false, now)
                .expect("it is taken");
        });
    };
    let heard = |sim: &Sim| -> Vec<u64> {
        let messages = sim.events(host).iter().filter_map(|event| match event {
            Event::Message(message) => Some(message.read().expect("it is what was said")),
            _ => None,
        });
        messages.collect()
    };
    // Messages through the hub wait there for the host to take packets.
    room.sim.block(host, true);
    say(&mut room.sim, 1);
    room.connect(&[1]);
    say(&mut room.sim, 2);
    room.sim.run_for(300);
    assert_eq!(heard(&room.sim), [2], "over the path");
    room.sim.break_paths();
    room.sim.run_for(100);
    room.sim.block(host, false);
    room.sim.run_for(3_000);
    say(&mut room.sim, 3);
    room.sim.run_for(500);
    assert_eq!(heard(&room.sim), [2, 3]);
}

#[test]
fn a_host_that_dies_is_followed_by_another_whoever_had_a_path() {
    for_seeds(2, |seed| {
        let mut host = options(PathMode::Auto);
        host.host_timeout = Some(Duration::from_millis(250));
        let direct = Some(Link::quic().latency_ms(5));
        let mut room =
            room_with(seed, &[PathMode::Auto, PathMode::Auto, PathMode::Relay], host, Link::quic(), direct);
        room.connect(&[1, 2]);
        room.talk(500);
        room.sim.crash(room.peers[0]);
        let heir = room.peers[1];
        room.sim.run_until(2_000, "another is host", |sim| sim.room(heir).is_host());
        let before = room.tick(1);
        room.sim.run_for(1_000);
        for index in 1..4 {
            assert!(room.tick(index) > before, "member {index} goes on: {}", room.sim.excerpt(40));
        }
        // The new host is reached by its own paths.
        room.connect(&[2]);
        room.sim.run_for(500);
        assert!(room.tick(1) - room.tick(2) <= 2);
        let of = |index: usize| room.sim.room(room.peers[index]).get::<u32>("of/2").unwrap();
        assert!(of(3).is_some_and(|wanted| room.tick(1) - wanted < 10), "inputs reach the new host");
    });
}

#[test]
fn threat_25_a_host_that_is_cut_off_from_the_hub_serves_nobody() {
    let mut host = options(PathMode::Auto);
    host.host_timeout = Some(Duration::from_millis(500));
    let direct = Some(Link::quic().latency_ms(5));
    let mut room = room_with(8, &[PathMode::Auto, PathMode::Auto], host, Link::quic(), direct);
    room.connect(&[1, 2]);
    room.sim.run_for(1_000);
    // The host's other guest does not hear of a new host either, and would keep reading.
    room.sim.silence(room.peers[0], true);
    room.sim.silence(room.peers[2], true);
    room.sim.run_for(600);
    let served = |room: &Room| {
        let of_host = room.sim.path_received().iter().filter(|(from, ..)| *from == room.peers[0]);
        of_host.count()
    };
    let before = served(&room);
    assert!(before > 100, "it served them");
    room.sim.run_for(1_000);
    assert_eq!(served(&room), before);
    assert!(room.sim.room(room.peers[1]).is_host());
    room.sim.silence(room.peers[0], false);
    room.sim.silence(room.peers[2], false);
    room.sim.run_for(3_000);
    assert!(!room.sim.room(room.peers[0]).is_host(), "there is one host");
}

#[test]
fn threat_13_words_of_a_third_member_change_no_path() {
    let mut room = room(12, &[PathMode::Auto], Link::quic(), Some(Link::quic().latency_ms(5)));
    room.connect(&[1]);
    let code = room.sim.code(room.peers[0]);
    let mallory = room.sim.intrude(hello(Intent::Join { code, secret: None }), Link::quic());
    room.sim.run_for(1_000);
    // The worst case: no other member knows the path's id.
    let id = room.sim.paths().next().expect("it stands");
    let words = [
        PathSignal::Back { id, ends: false, rests: 3 },
        PathSignal::Rest { id, number: 0, channel: channel::MESSAGE_ORDERED, payload: Bytes::new() },
        PathSignal::Back { id, ends: true, rests: 1 },
    ];
    for (word, to) in
        words.iter().flat_map(|word| [0, 1].map(|to| (word, room.member(to)))).collect::<Vec<_>>()
    {
        let upward = Upward { to: Recipient::Member(to), stamp: false, payload: word.encode() };
        let said = Outgoing::new(channel::PATH, upward.encode());
        room.sim.say(mallory, |session, _| session.send(said).expect("it is taken"));
    }
    room.talk(2_000);
    assert_eq!((room.path(1), room.sim.paths_made()), (TransportPath::DirectUdp, 1));
    assert_eq!(room.sim.room(room.peers[1]).path_ended(), None);
    room.settle();
}

#[test]
fn threat_12_who_sends_more_than_a_path_may_carry_has_none() {
    let mut room = room(9, &[PathMode::Auto], Link::quic(), Some(Link::quic().latency_ms(5)));
    room.connect(&[1]);
    let (guest, text) = (room.peers[1], "x".repeat(900));
    let mut refused = 0;
    for _ in 0..3_000 {
        room.sim.act(guest, |room, now| {
            for lane in LANES {
                refused +=
                    u32::from(room.send(lane, Recipient::Authority, "flood", &text, false, now).is_err());
            }
        });
        room.sim.run_for(1);
    }
    assert_eq!(room.sim.room(guest).path_ended(), None, "it is held up, and keeps to that");
    // Held messages wait at their sender; of the rest the host takes what the path's limit allows.
    let came =
        room.sim.events(room.peers[0]).iter().filter(|event| matches!(event, Event::Message(_))).count();
    assert!(refused > 1_000, "it is told: {refused}");
    assert!(came * 1_092 < 5 * 512 * 1_024, "{came} messages");
    assert!(room.sim.closed(room.peers[0]).is_none());
}
