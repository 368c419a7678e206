//! The host dies, falls silent or leaves. Exactly one other player takes the host role, and the game
//! continues where it was.

use crate::counting::{Room, room, room_that_pauses};
use parlor_client_core::{ClosedReason, Event};
use parlor_impair::Rng;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{Lane, MemberId};
use parlor_sim::{Link, PeerId, Sim, for_seeds};
use std::time::Duration;

#[test]
fn threat_25_a_killed_host_is_followed_by_the_lowest() {
    for (latency, most_ms) in [(0, 330), (25, 380), (75, 620)] {
        let mut gaps = Vec::new();
        for_seeds(10, |seed| {
            let link = Link::quic().latency_ms(latency).jitter_ms(latency / 5).loss(20);
            let Room { mut sim, peers, deeds } = room(seed, 8, link, Duration::ZERO);
            let before = sim.room(peers[3]).get::<u64>("count").expect("a number").expect("it counts");
            sim.crash(peers[0]);
            let died = sim.now();
            let goes_on = |_: &Sim| deeds.borrow().steps.iter().any(|(peer, ..)| *peer == peers[1]);
            sim.run_until(2_000, "the next one goes on", goes_on);
            gaps.push(sim.now().saturating_since(died).as_millis());
            sim.run_for(3_000);
            assert!(sim.room(peers[1]).is_host(), "seed {seed} at {latency} ms");
            let room = Room { sim, peers, deeds };
            room.expect_no_split_brain();
            let after = room.count(room.peers[5], "count");
            assert!(after > before + 60, "{before} and then {after} steps at a third player");
            let events = room.sim.events(room.peers[1]);
            let named = |event: &Event| {
                matches!(
                    event,
                    Event::HostMigration { previous: Some(MemberId(0)), new: MemberId(1), is_me: true }
                )
            };
            assert!(events.iter().any(named));
            assert!(events.iter().any(|event| matches!(
                event,
                Event::HostChanged { host: MemberId(1), previous: Some(MemberId(0)) }
            )));
            for peer in &room.peers[2..] {
                let events = room.sim.events(*peer);
                assert!(events.iter().any(|event| matches!(
                    event,
                    Event::HostChanged { host: MemberId(1), previous: Some(MemberId(0)) }
                )));
                let info = room.sim.room(*peer).info();
                assert!(!info.migrating && info.migration_completed);
                assert_eq!((info.previous_host, info.new_host), (Some(MemberId(0)), Some(MemberId(1))));
            }
        });
        gaps.sort_unstable();
        println!("{latency} ms one way: {gaps:?} ms");
        assert!(gaps[gaps.len() / 2] <= most_ms, "{latency} ms one way: {gaps:?}");
    }
}

#[test]
fn what_only_another_player_saw_is_there_afterwards() {
    for_seeds(5, |seed| {
        let mut room = room(seed, 4, Link::quic().loss(20), Duration::ZERO);
        let before = room.count(room.peers[2], "secret");
        assert!(before > 0 && room.count(room.peers[1], "secret") == 0);
        room.sim.crash(room.peers[0]);
        room.sim.run_for(2_000);
        let host = room.peers[1];
        assert!(room.is_host(host));
        assert!(
            room.count(host, "secret") > before,
            "the new host has what it never saw, and goes on with it"
        );
        room.expect_one_world(host);
    });
}

#[test]
fn steps_that_nobody_ran_are_caught_up_and_none_is_run_twice() {
    for_seeds(5, |seed| {
        let room = &mut room_that_pauses(Some(false), (seed, 3), Link::quic(), Duration::ZERO);
        room.sim.crash(room.peers[0]);
        room.sim.run_for(2_000);
        // The old host's last steps may not have reached the hub; the new host runs them again from its own
        // state.
        let deeds = room.deeds.borrow();
        let of = |peer| deeds.steps.iter().filter(move |(by, _)| *by == peer).map(|(_, tick)| *tick);
        let (last, first) = (of(room.peers[0]).next_back().unwrap(), of(room.peers[1]).next().unwrap());
        assert!(first <= last + 1 && first + 5 > last, "the last one was {last}, then came {first}");
        let ticks: Vec<u32> = of(room.peers[1]).collect();
        assert!(ticks.windows(2).all(|pair| pair[1] == pair[0] + 1), "no step is left out: {ticks:?}");
        let count = room.count(room.peers[1], "count");
        let steps = u64::from(ticks.last().unwrap() - deeds.steps[0].1) + 1;
        assert_eq!(count, steps, "each step counted once");
    });
}

#[test]
fn a_host_that_is_cut_off_comes_back_as_a_player_like_any_other() {
    for_seeds(10, |seed| {
        let mut room = room(seed, 4, Link::quic().loss(20), Duration::from_secs(30));
        let old = room.peers[0];
        room.sim.silence(old, true);
        room.sim.run_for(1_500);
        assert!(room.is_host(old) && room.is_host(room.peers[1]), "it cannot know");
        room.sim.silence(old, false);
        room.sim.run_for(2_000);
        assert!(!room.is_host(old) && room.is_host(room.peers[1]), "seed {seed}");
        room.expect_no_split_brain();
        let events = room.sim.take_events(old);
        let named =
            |event: &Event| matches!(event, Event::HostMigration { new: MemberId(1), is_me: false, .. });
        assert!(events.iter().any(named));
        assert!(events.iter().any(|event| matches!(
            event,
            Event::HostChanged { host: MemberId(1), previous: Some(MemberId(0)) }
        )));
        room.expect_one_world(room.peers[1]);
    });
}

#[test]
fn m9_a_host_whose_seat_is_not_kept_any_more_comes_back_as_the_player_that_it_was() {
    for_seeds(5, |seed| {
        let mut room = room(seed, 3, Link::quic().loss(20), Duration::from_secs(5));
        let old = room.peers[0];
        room.sim.unplug(old, true);
        room.sim.cut(old);
        room.sim.run_for(9_000);
        assert!(room.is_host(room.peers[1]), "seed {seed}");
        assert_eq!(room.sim.room(room.peers[2]).player_count(), 2, "its seat was given up");
        room.sim.unplug(old, false);
        room.sim.run_for(8_000);
        let events = room.sim.take_events(old);
        assert!(events.contains(&Event::Reconnected { state_resynced: true }), "seed {seed}: {events:?}");
        assert_eq!(room.sim.room(old).local_id(), Some(MemberId(0)));
        assert!(!room.is_host(old) && room.is_host(room.peers[1]));
        room.expect_no_split_brain();
        room.expect_one_world(room.peers[1]);
    });
}

#[test]
fn a_host_that_nobody_could_follow_finds_its_room_over() {
    let mut room = room(2, 1, Link::quic(), Duration::from_secs(5));
    let host = room.peers[0];
    room.sim.unplug(host, true);
    room.sim.cut(host);
    room.sim.run_for(9_000);
    room.sim.unplug(host, false);
    room.sim.run_for(8_000);
    assert_eq!(room.sim.closed(host), Some(ClosedReason::Refused(Refusal::NoSuchRoom)));
}

#[test]
fn the_next_one_dies_before_it_has_everything() {
    for_seeds(10, |seed| {
        let mut room = room(seed, 5, Link::quic().latency_ms(50).loss(20), Duration::ZERO);
        room.sim.crash(room.peers[0]);
        // It is named after the silence, and has the checkpoint a round trip later.
        room.sim.run_for(240 + seed % 100);
        room.sim.crash(room.peers[1]);
        room.sim.run_for(3_000);
        assert!(room.is_host(room.peers[2]), "seed {seed}");
        room.expect_no_split_brain();
        room.expect_one_world(room.peers[2]);
    });
}

#[test]
fn a_game_loop_that_stands_still_for_two_seconds_hands_nothing_over() {
    let mut room = room(1, 4, Link::quic().latency_ms(50).loss(20), Duration::ZERO);
    room.sim.stall(room.peers[0], true);
    room.sim.run_for(2_000);
    room.sim.stall(room.peers[0], false);
    room.sim.run_for(1_000);
    assert!(room.is_host(room.peers[0]));
    assert_eq!(room.sim.room(room.peers[1]).info().epoch.0, 0);
}

#[test]
fn a_host_that_leaves_hands_over_and_one_that_stops_ends_the_room() {
    let mut left = room(1, 3, Link::quic(), Duration::from_secs(30));
    left.sim.act(left.peers[0], |room, now| room.leave(now));
    left.sim.run_for(1_000);
    assert_eq!(left.host(), Some(left.peers[1]));
    assert_eq!(left.sim.room(left.peers[2]).player_count(), 2);
    let mut stopped = room(1, 3, Link::quic(), Duration::from_secs(30));
    stopped.sim.act(stopped.peers[0], |room, now| room.stop(now));
    stopped.sim.run_for(1_000);
    assert_eq!(stopped.host(), None);
    assert!(stopped.sim.closed(stopped.peers[2]).is_some());
}

#[test]
fn a_bad_network_hands_nothing_over_for_minutes() {
    for_seeds(2, |seed| {
        let link = Link::quic().latency_ms(80).jitter_ms(40).loss(50);
        let mut room = room(seed, 3, link, Duration::from_secs(30));
        room.sim.run_for(120_000);
        assert_eq!(room.sim.room(room.peers[1]).info().epoch.0, 0, "seed {seed}");
    });
}

/// Hosts die, are cut off and return, begin anew and hand over, in any order: no epoch has two writers, and the
/// remaining members agree.
#[test]
fn threat_25_there_is_never_more_than_one() {
    for_seeds(40, |seed| {
        let mut rng = Rng::new(seed);
        let link =
            Link::quic().latency_ms(5 + rng.below(70)).jitter_ms(rng.below(10)).loss(rng.pick(&[0, 20, 50]));
        let mut room = room(seed, 6, link, Duration::from_secs(30));
        for _ in 0..6 {
            let alive: Vec<PeerId> =
                room.peers.iter().copied().filter(|peer| !room.sim.is_crashed(*peer)).collect();
            let host = room.host();
            let victim = host.filter(|_| rng.below(3) > 0).unwrap_or_else(|| rng.pick(&alive));
            match rng.below(6) {
                0 if alive.len() > 3 => room.sim.crash(victim),
                1 => room.sim.cut(victim),
                2 => drop(room.begin_anew(victim)),
                3 => {
                    let to = rng.pick(&[None, Some(MemberId(1)), Some(MemberId(4))]);
                    // It may be refused: to one that is gone, or too soon.
                    host.map(|host| room.sim.act(host, |room, now| room.hand_over(to, now)));
                }
                _ => {
                    room.sim.silence(victim, true);
                    room.sim.run_for(100 + rng.below(1_500));
                    room.sim.silence(victim, false);
                }
            }
            room.sim.run_for(rng.below(1_200));
            room.expect_no_split_brain();
        }
        room.sim.run_for(20_000);
        room.expect_no_split_brain();
        let hosts: Vec<PeerId> = room.peers.iter().copied().filter(|peer| room.is_host(*peer)).collect();
        assert_eq!(hosts.len(), 1, "seed {seed}");
        room.expect_one_world(hosts[0]);
    });
}

#[test]
fn messages_between_players_pass_while_the_host_changes() {
    let mut room = room(3, 4, Link::quic().loss(20), Duration::ZERO);
    room.sim.crash(room.peers[0]);
    for number in 0..40u32 {
        let to = Recipient::Member(MemberId(3));
        room.sim
            .act(room.peers[2], |room, now| room.send(Lane::ReliableOrdered, to, "n", &number, false, now))
            .unwrap();
        room.sim.run_for(25);
    }
    room.sim.run_for(1_000);
    let events = room.sim.events(room.peers[3]);
    let numbers = events.iter().filter_map(|event| match event {
        Event::Message(message) => Some(message.read::<u32>().expect("it is a number")),
        _ => None,
    });
    assert!(numbers.eq(0..40));
}
