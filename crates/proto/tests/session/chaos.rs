//! Random traffic over random links, against the model.

use crate::harness::{CLIENT, Conditions, LANES, PERFECT, Rng, SERVER, World, for_seeds};
use parlor_proto::wire::handshake::ResumeToken;
use parlor_proto::{CloseReason, LinkKind, channel, limits};

const KINDS: [LinkKind; 3] = [LinkKind::Quic, LinkKind::WebSocket, LinkKind::Memory];

fn conditions(rng: &mut Rng) -> Conditions {
    let least = rng.pick(&[0, 1_000, 20_000, 80_000]);
    Conditions {
        latency_us: (least, least + rng.pick(&[0, 5_000, 40_000])),
        lost: rng.pick(&[0, 10, 100, 300]),
        doubled: rng.pick(&[0, 50]),
    }
}

fn len(rng: &mut Rng) -> usize {
    let most = rng.pick(&[16, 16, 16, 200, 200, 1_000, 3_000, limits::PAYLOAD_BYTES_MAX as u64]);
    usize::try_from(rng.between((8, most))).expect("it is small")
}

/// Sends a few messages at random.
fn burst(world: &mut World) {
    let mut rng = world.rng.clone();
    for _ in 0..rng.pick(&[0, 1, 3, 20]) {
        let end = rng.pick(&[CLIENT, SERVER]);
        let channel = rng.pick(&LANES);
        let key = u32::try_from(rng.below(3)).expect("it is small");
        let tracked = channel != channel::MESSAGE_ORDERED && channel != channel::MESSAGE_UNORDERED;
        let len = len(&mut rng);
        world.send(end, channel, key, len, tracked);
    }
    if rng.one_in(20) {
        // More than the bits of an acknowledgement, and more than one packet.
        for _ in 0..300 {
            world.send(CLIENT, channel::MESSAGE_UNRELIABLE, 0, 400, true);
        }
    }
    world.rng = rng;
}

fn reconnects(world: &mut World) {
    let notices = [true, world.rng.one_in(2)];
    world.disconnect(notices);
    for _ in 0..world.rng.below(3) {
        burst(world);
        let pause = world.rng.below(300);
        world.run_ms(pause);
    }
    let kind = world.rng.pick(&KINDS);
    world.reconnect(kind);
}

fn play(seed: u64, with_reconnects: bool) -> World {
    let mut rng = Rng::new(seed ^ 0xc0ffee);
    let (kind, conditions) = (rng.pick(&KINDS), conditions(&mut rng));
    let mut world = World::open(seed, kind, conditions);
    world.rng = rng;
    for _ in 0..60 {
        burst(&mut world);
        let pause = world.rng.below(60);
        world.run_ms(pause);
        if with_reconnects && world.rng.one_in(15) {
            reconnects(&mut world);
        }
        world.check_safety();
    }
    world
}

/// After the link heals, everything queued arrives, and so does the newest message of each key that is sent
/// then.
fn settle(world: &mut World) {
    world.conditions = PERFECT;
    world.run_ms(6_000);
    let mut newest = Vec::new();
    for key in 0..3 {
        for _ in 0..3 {
            world.send(CLIENT, channel::MESSAGE_SEQUENCED, key, 5_000, true);
        }
        newest.extend(world.sent(CLIENT, channel::MESSAGE_SEQUENCED).last().copied());
    }
    world.run_ms(3_000);
    let got = world.got(SERVER, channel::MESSAGE_SEQUENCED);
    assert!(newest.iter().all(|id| got.contains(id)), "the newest of each key arrives");
    for id in newest {
        assert_eq!(world.ends[CLIENT].fates.get(&id), Some(&true));
    }
    assert!(world.ends.iter().all(|end| end.session.is_settled()));
    let resumed = world.ends[CLIENT].resumed.last();
    let let_go_on = world.connections;
    assert_eq!(
        resumed.copied(),
        (let_go_on > 0).then_some(ResumeToken([let_go_on; 32])),
        "it has the newest token"
    );
    world.check_settled();
}

#[test]
fn every_lane_keeps_its_promise() {
    for_seeds(|seed| settle(&mut play(seed, false)));
}

#[test]
fn nothing_reliable_is_lost_or_doubled_over_connections() {
    for_seeds(|seed| settle(&mut play(seed, true)));
}

#[test]
fn a_goodbye_comes_after_what_was_sent_before_it() {
    for_seeds(|seed| {
        let mut world = play(seed, seed % 2 == 1);
        // The Close frame has a limited time, which is too short for several windows on a bad link.
        world.run_ms(5_000);
        let conditions = world.conditions;
        world.conditions = Conditions { lost: conditions.lost.min(100), ..conditions };
        for _ in 0..world.rng.below(900) {
            let channel = world.rng.pick(&LANES[..2]);
            world.send(SERVER, channel, 0, 20, false);
        }
        if world.rng.one_in(2) {
            let pause = world.rng.below(200);
            world.run_ms(pause);
        }
        world.close(SERVER, CloseReason::HostLeft);
        world.run_ms(5_000);
        assert_eq!(world.ends[CLIENT].closed, Some(CloseReason::HostLeft));
        assert_eq!(world.ends[SERVER].closed, Some(CloseReason::HostLeft));
        assert!(world.ends.iter().all(|end| end.session.is_finished()));
        for lane in [channel::MESSAGE_ORDERED, channel::MESSAGE_UNORDERED] {
            let mut came = world.got(CLIENT, lane);
            came.sort_unstable();
            assert_eq!(came, world.sent(SERVER, lane));
        }
        world.check_safety();
        for end in &world.ends {
            let tracked = end.sent.iter().filter(|sent| sent.tracked);
            assert!(
                tracked.into_iter().all(|sent| end.fates.contains_key(&sent.id)),
                "every delivery id has its fate"
            );
        }
    });
}

#[test]
fn a_goodbye_waits_for_all_that_was_sent() {
    for kind in KINDS {
        let mut world = World::open(1, kind, PERFECT);
        // More than a packet takes, and almost as many as the queue holds.
        for id in 0..700 {
            assert!(world.send(SERVER, LANES[id % 2], 0, 20, false));
        }
        world.close(SERVER, CloseReason::HostLeft);
        world.run_ms(1_000);
        assert_eq!(world.ends[CLIENT].closed, Some(CloseReason::HostLeft));
        world.check_settled();
    }
}

#[test]
fn one_seed_gives_one_transcript() {
    for_seeds(|seed| {
        assert!(play(seed, true).transcript == play(seed, true).transcript);
    });
    assert!(play(1, true).transcript != play(2, true).transcript);
}

#[test]
fn a_good_link_loses_nothing() {
    for kind in KINDS {
        let mut world = World::open(1, kind, PERFECT);
        for size in [8, 900, 985, 1_000, 2_000, 16_000, 40_000, limits::PAYLOAD_BYTES_MAX] {
            for end in [CLIENT, SERVER] {
                assert!(world.send(end, channel::MESSAGE_UNRELIABLE, 0, size, true));
                assert!(world.send(end, channel::MESSAGE_SEQUENCED, 1, size, true));
            }
            world.run_ms(500);
        }
        for _ in 0..450 {
            assert!(world.send(CLIENT, channel::MESSAGE_UNRELIABLE, 0, 100, true));
        }
        world.run_ms(1_000);
        for end in &world.ends {
            assert!(end.fates.values().all(|delivered| *delivered), "{kind:?}: all were delivered");
            assert_eq!(end.fates.len(), end.sent.len());
        }
        world.check_settled();
    }
}
