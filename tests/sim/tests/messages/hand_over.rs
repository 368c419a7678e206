//! A host hands its part over and stays as a player: no step is lost, none is run twice, and what cannot be is
//! refused by name.

use crate::counting::{Room, room, room_that_pauses};
use parlor_client_core::{Event, Options, RoomError};
use parlor_proto::wire::control::HandOverRefusal;
use parlor_proto::{ApiMisuse, MemberId};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use std::time::Duration;

/// A round trip's packets are packed once a frame of the game, and acknowledgements wait up to 25 ms.
const SLACK_MS: u64 = 150;

fn hand_over(sim: &mut Sim, host: PeerId, to: Option<u32>) -> Result<(), RoomError> {
    sim.act(host, |room, now| room.hand_over(to.map(MemberId), now))
}

fn refusals(events: &[Event]) -> Vec<HandOverRefusal> {
    let why = events.iter().filter_map(|event| match event {
        Event::HandOverRefused { why } => Some(*why),
        _ => None,
    });
    why.collect()
}

impl Room {
    /// Waits until a player is the host and steps.
    fn expect_goes_on(&mut self, peer: PeerId) {
        let (deeds, before) = (self.deeds.clone(), self.deeds.borrow().steps.len());
        self.sim.run_until(3_000, "the next one goes on", move |_| {
            deeds.borrow().steps[before..].iter().any(|(by, _)| *by == peer)
        });
    }
}

#[test]
fn a_host_hands_over_and_each_step_counts_once() {
    for (latency, pauses) in [(0, true), (25, true), (75, true), (25, false), (75, false)] {
        let mut gaps = Vec::new();
        for_seeds(6, |seed| {
            let link = Link::quic().latency_ms(latency).loss(if latency == 25 { 20 } else { 0 });
            let room = &mut room_that_pauses(Some(pauses), (seed, 4), link, Duration::from_secs(30));
            let [old, second, next] = [0, 1, 2].map(|number| room.peers[number]);
            hand_over(&mut room.sim, old, Some(2)).expect("it may");
            let deeds = room.deeds.clone();
            let steps_of = move |peer| deeds.borrow().steps.iter().filter(|(by, _)| *by == peer).count();
            let (mut steps, mut last_at) = (steps_of(old), room.sim.now());
            while steps_of(next) == 0 {
                room.sim.run_for(1);
                if steps_of(old) > steps {
                    (steps, last_at) = (steps_of(old), room.sim.now());
                }
                let waits = room.sim.now().saturating_since(last_at).as_millis();
                assert!(waits < 2_000, "seed {seed} at {latency} ms\n{}", room.sim.excerpt(60));
            }
            gaps.push(room.sim.now().saturating_since(last_at).as_millis());
            room.sim.run_for(2_000);
            assert!(room.is_host(next) && !room.is_host(old), "seed {seed}");
            room.expect_no_split_brain();
            for peer in room.peers.clone() {
                let events = room.sim.take_events(peer);
                let named = Event::HostMigration {
                    previous: Some(MemberId(0)),
                    new: MemberId(2),
                    is_me: peer == next,
                };
                let changed = Event::HostChanged { host: MemberId(2), previous: Some(MemberId(0)) };
                let at = |wanted: &Event| events.iter().position(|event| event == wanted);
                assert!(at(&named).expect("it is named") < at(&changed).expect("it goes on"), "seed {seed}");
                assert_eq!(refusals(&events), []);
            }
            room.expect_one_world(next);
            room.expect_each_step_once(next);
            // Their reports on inputs, which none but they see, may come at other ticks.
            let hashes = [old, second].map(|peer| room.sim.room(peer).state_hash().map(|(_, hash)| hash));
            assert!(hashes[0].is_some() && hashes[0] == hashes[1], "seed {seed}: {hashes:?}");
        });
        gaps.sort_unstable();
        println!("{latency} ms one way: {gaps:?} ms");
        // A round trip until the server has the last step, another until the next host has the world; a lost
        // packet costs some more.
        let most = u128::from(4 * latency + SLACK_MS);
        assert!(gaps[gaps.len() / 2] <= most, "{latency} ms one way: {gaps:?}");
    }
}

#[test]
fn what_was_written_before_is_there_and_the_last_step_is_run_whole() {
    for_seeds(4, |seed| {
        let mut room = room(seed, 3, Link::quic().latency_ms(30), Duration::ZERO);
        let (old, next) = (room.peers[0], room.peers[1]);
        // Between two steps: it counts with the step that comes next.
        room.sim.act(old, |core, now| {
            let all = parlor_sync::keyed::Audience::All;
            core.set("farewell", "mind the dragon", all).expect("the host writes");
            core.hand_over(None, now).expect("it may");
        });
        room.expect_goes_on(next);
        room.sim.run_for(1_000);
        for peer in room.peers.clone() {
            let farewell: Option<String> = room.sim.room(peer).get("farewell").expect("it is a text");
            assert_eq!(farewell.as_deref(), Some("mind the dragon"));
        }
        room.expect_each_step_once(next);
    });
}

#[test]
fn the_part_goes_round_and_comes_back() {
    for_seeds(4, |seed| {
        let mut room = room(seed, 3, Link::quic().latency_ms(20), Duration::ZERO);
        for turn in 1..=6u32 {
            let (from, to) = (room.peers[(turn as usize - 1) % 3], turn % 3);
            hand_over(&mut room.sim, from, Some(to)).expect("it may");
            room.expect_goes_on(room.peers[to as usize]);
            room.sim.run_for(1_100);
            assert_eq!(room.sim.room(from).info().epoch.0, turn);
        }
        room.expect_no_split_brain();
        room.expect_one_world(room.peers[0]);
        room.expect_each_step_once(room.peers[0]);
    });
}

#[test]
fn threat_25_a_room_does_not_flap() {
    let mut room = room(1, 2, Link::quic().latency_ms(5), Duration::ZERO);
    let [first, second] = [room.peers[0], room.peers[1]];
    hand_over(&mut room.sim, first, Some(1)).expect("it may");
    room.expect_goes_on(second);
    let steps = room.deeds.borrow().steps.len();
    hand_over(&mut room.sim, second, Some(0)).expect("the hub decides");
    room.sim.run_for(500);
    assert_eq!(refusals(&room.sim.take_events(second)), [HandOverRefusal::TooSoon]);
    assert!(room.is_host(second), "it goes on as the host");
    assert!(room.deeds.borrow().steps.len() > steps + 8, "and steps");
    room.sim.run_for(1_000);
    hand_over(&mut room.sim, second, Some(0)).expect("it may");
    room.expect_goes_on(first);
    room.sim.run_for(500);
    assert_eq!(refusals(&room.sim.take_events(second)), []);
    room.expect_one_world(first);
    room.expect_each_step_once(first);
}

#[test]
fn what_cannot_be_is_refused_at_once_and_by_name() {
    let mut room = room(1, 4, Link::quic(), Duration::from_secs(30));
    let [host, guest, away, gone] = [0, 1, 2, 3].map(|number| room.peers[number]);
    room.sim.unplug(away, true);
    room.sim.cut(away);
    room.sim.act(gone, |core, now| core.leave(now));
    room.sim.run_for(500);
    let refused = |sim: &mut Sim, to| match hand_over(sim, host, to) {
        Err(RoomError::NotHandedOver { why }) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut room.sim, Some(2)), HandOverRefusal::NotReady);
    assert_eq!(refused(&mut room.sim, Some(3)), HandOverRefusal::NoSuchPlayer);
    assert_eq!(refused(&mut room.sim, Some(99)), HandOverRefusal::NoSuchPlayer);
    let to_itself = hand_over(&mut room.sim, host, Some(0)).expect_err("it has it");
    assert!(to_itself.to_string().contains("the host already"), "{to_itself}");
    let of_guest = hand_over(&mut room.sim, guest, Some(0)).expect_err("it is a guest");
    assert!(matches!(of_guest, RoomError::Misuse(ApiMisuse::NotHost { .. })), "{of_guest}");
    hand_over(&mut room.sim, host, Some(1)).expect("it may");
    assert_eq!(refused(&mut room.sim, None), HandOverRefusal::UnderWay);
    room.sim.run_for(500);
    assert!(room.is_host(guest), "the first one counts");
    // Alone, and in a room without migration.
    room.sim.act(host, |core, now| core.leave(now));
    room.sim.run_for(500);
    let alone = hand_over(&mut room.sim, guest, None).expect_err("nobody is there");
    assert_eq!(alone, RoomError::NotHandedOver { why: HandOverRefusal::Nobody });
    let mut sim = Sim::new(2);
    let host = sim.host(Options::host(APP), Link::quic());
    sim.join(sim.code(host), Link::quic());
    let why = HandOverRefusal::NoMigration;
    assert_eq!(hand_over(&mut sim, host, Some(1)), Err(RoomError::NotHandedOver { why }));
    sim.run_for(500);
    assert!(sim.room(host).is_host());
}

#[test]
fn a_player_that_leaves_at_that_moment_gets_nothing_and_the_host_goes_on() {
    for_seeds(6, |seed| {
        let mut room = room(seed, 3, Link::quic().latency_ms(40), Duration::ZERO);
        let [host, _, leaver] = [0, 1, 2].map(|number| room.peers[number]);
        room.sim.act_quietly(leaver, |core, now| core.leave(now));
        hand_over(&mut room.sim, host, Some(2)).expect("it is there as far as the host knows");
        room.sim.run_for(1_000);
        assert_eq!(refusals(&room.sim.take_events(host)), [HandOverRefusal::NoSuchPlayer]);
        assert!(room.is_host(host));
        room.expect_goes_on(host);
        room.expect_one_world(host);
    });
}

#[test]
fn whoever_dies_in_it_is_followed_by_another() {
    for_seeds(12, |seed| {
        let mut room = room(seed, 4, Link::quic().latency_ms(30).loss(20), Duration::ZERO);
        let [old, lowest, next] = [0, 1, 2].map(|number| room.peers[number]);
        hand_over(&mut room.sim, old, Some(2)).expect("it may");
        room.sim.run_for(seed * 20);
        let victim = if seed % 2 == 0 { old } else { next };
        room.sim.crash(victim);
        room.sim.run_for(3_000);
        let heirs: Vec<PeerId> = [old, lowest, next].into_iter().filter(|peer| room.is_host(*peer)).collect();
        assert_eq!(heirs.len(), 1, "seed {seed}\n{}", room.sim.excerpt(60));
        room.expect_no_split_brain();
        room.expect_goes_on(heirs[0]);
        room.expect_one_world(heirs[0]);
    });
}

#[test]
fn a_game_loop_that_stands_still_hands_over_all_the_same() {
    let mut room = room(3, 3, Link::quic().latency_ms(20), Duration::ZERO);
    let (host, next) = (room.peers[0], room.peers[1]);
    // The page of a phone that is put away: its game asks and does nothing more.
    hand_over(&mut room.sim, host, None).expect("it may");
    room.sim.stall(host, true);
    room.expect_goes_on(next);
    room.sim.stall(host, false);
    room.sim.run_for(1_000);
    assert!(!room.is_host(host) && room.sim.room(host).is_connected());
    room.expect_one_world(next);
}
