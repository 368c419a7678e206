//! Slow and stalled members: queues are bounded, and the members recover or are removed without harm to
//! others.

use parlor_client_core::{ClosedReason, Event, Options};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{CloseReason, Lane, MemberId};
use parlor_sim::{Link, PeerId, SEEDS, Sim, for_seeds};
use parlor_sync::keyed::Audience;

fn room(sim: &mut Sim, guests: usize, link: Link) -> (PeerId, Vec<PeerId>) {
    let host = sim.host(Options::host("tanks"), link);
    let code = sim.code(host);
    let guests = (0..guests).map(|_| sim.join(code, link)).collect();
    sim.play(host, |room, _| {
        let tick = room.tick_number().expect("steps have numbers").0;
        room.set(&format!("key/{}", tick % 7), &tick, Audience::All).expect("the host may");
        // A key that is set and removed under ever different names.
        room.set(&format!("bullet/{tick}"), &tick, Audience::All).expect("the host may");
        room.remove(&format!("bullet/{}", tick.wrapping_sub(3))).expect("the host may");
    });
    sim.run_for(1_000);
    (host, guests)
}

fn state_events(sim: &mut Sim, peer: PeerId) -> usize {
    sim.take_events(peer).iter().filter(|event| matches!(event, Event::State(_))).count()
}

#[test]
fn a_game_that_does_not_poll_for_a_minute_catches_up() {
    for link in [Link::quic().jitter_ms(20).loss(20), Link::websocket().jitter_ms(20).loss(20)] {
        for_seeds(SEEDS / 25, |seed| {
            let mut sim = Sim::new(seed);
            let (host, guests) = room(&mut sim, 2, link);
            sim.stall(guests[0], true);
            state_events(&mut sim, guests[0]);
            state_events(&mut sim, guests[1]);
            sim.run_for(60_000);
            sim.stall(guests[0], false);
            sim.run_for(20);
            let told = state_events(&mut sim, guests[0]);
            assert!(told <= 66, "{told} events of the state");
            assert!(state_events(&mut sim, guests[1]) > 1_500);
            sim.play(host, |_, _| ());
            sim.run_for(3_000);
            let hashes = [host, guests[0], guests[1]].map(|peer| sim.room(peer).state_hash());
            assert!(hashes[0].is_some() && hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
            let diagnostics = sim.room(guests[0]).diagnostics();
            assert!(diagnostics.ticks_dropped > 1_700, "{diagnostics:?}");
            assert_eq!(diagnostics.updates_gapped, 0);
        });
    }
}

#[test]
fn a_game_that_does_not_poll_loses_unreliable_messages_and_counts_them() {
    let mut sim = Sim::new(1);
    let (host, guests) = room(&mut sim, 1, Link::quic());
    sim.stall(guests[0], true);
    let text = "x".repeat(20_000);
    for _ in 0..400 {
        sim.act(host, |room, now| {
            room.send(Lane::Unreliable, Recipient::Others, "n", &text, false, now).unwrap()
        });
        // As fast as a room passes them on.
        sim.run_for(160);
    }
    sim.stall(guests[0], false);
    sim.run_for(100);
    let dropped = sim.room(guests[0]).diagnostics().events_dropped;
    assert!((100..400).contains(&dropped), "{dropped} dropped");
    assert!(sim.room(guests[0]).is_connected());
    let messages = sim.events(guests[0]).iter().filter(|event| matches!(event, Event::Message(_))).count();
    assert_eq!(messages as u64 + dropped, 400);
}

#[test]
fn a_game_that_does_not_poll_what_must_not_be_missed_is_closed_and_no_other() {
    let mut sim = Sim::new(2);
    let (host, guests) = room(&mut sim, 2, Link::quic());
    sim.stall(guests[0], true);
    let text = "x".repeat(20_000);
    for _ in 0..400 {
        sim.act(host, |room, now| {
            room.send(Lane::ReliableOrdered, Recipient::Others, "n", &text, false, now).unwrap()
        });
        // As fast as a room passes them on.
        sim.run_for(100);
    }
    sim.stall(guests[0], false);
    sim.run_for(1_000);
    assert_eq!(sim.closed(guests[0]), Some(ClosedReason::Session(CloseReason::NotPolled)));
    assert!(sim.room(host).is_connected() && sim.room(guests[1]).is_connected());
    let left = sim.events(host).iter().find_map(|event| match event {
        Event::PlayerLeft { id, reason, .. } => Some((*id, reason.clone())),
        _ => None,
    });
    assert_eq!(left, Some((MemberId(1), LeaveReason::TooSlow)));
}

#[test]
fn x6_a_link_that_takes_nothing_is_given_the_newest_state_when_it_does() {
    for link in [Link::quic(), Link::websocket()] {
        let mut sim = Sim::new(3);
        let (host, guests) = room(&mut sim, 2, link);
        sim.run_for(1_000);
        sim.block(guests[0], true);
        sim.run_for(100);
        let before = sim.traffic(guests[0]);
        sim.run_for(5_000);
        assert_eq!(sim.traffic(guests[0]).down, before.down);
        sim.block(guests[0], false);
        let burst = sim.traffic(guests[0]).down - before.down;
        assert!(burst <= 4, "{burst} packets at once");
        sim.play(host, |_, _| ());
        sim.run_for(1_000);
        assert_eq!(sim.room(guests[0]).state_hash(), sim.room(host).state_hash());
        assert!(sim.room(guests[1]).is_connected());
    }
}

#[test]
fn threat_20_a_link_that_takes_nothing_reliable_is_closed_alone() {
    for link in [Link::quic(), Link::websocket()] {
        let mut sim = Sim::new(4);
        let (host, guests) = room(&mut sim, 3, link);
        sim.block(guests[0], true);
        let text = "x".repeat(60_000);
        for _ in 0..3 {
            sim.act(host, |room, now| {
                room.send(Lane::ReliableOrdered, Recipient::Others, "n", &text, false, now).unwrap()
            });
            sim.run_for(300);
        }
        // It takes packets again before its connection is closed, so that it gets the reason.
        sim.block(guests[0], false);
        sim.run_for(1_000);
        assert_eq!(sim.closed(guests[0]), Some(ClosedReason::Session(CloseReason::TooSlow)), "{link:?}");
        for peer in [host, guests[1], guests[2]] {
            assert!(sim.room(peer).is_connected());
            let left: Vec<_> =
                sim.events(peer).iter().filter(|it| matches!(it, Event::PlayerLeft { .. })).collect();
            assert!(
                matches!(left[..], [Event::PlayerLeft { id: MemberId(1), reason: LeaveReason::TooSlow, .. }]),
                "{left:?}"
            );
        }
        let messages =
            sim.events(guests[1]).iter().filter(|event| matches!(event, Event::Message(_))).count();
        assert_eq!(messages, 3);
    }
}

#[test]
fn a_link_that_never_takes_anything_again_is_closed_all_the_same() {
    let mut sim = Sim::new(5);
    let (host, guests) = room(&mut sim, 1, Link::quic());
    sim.block(guests[0], true);
    let text = "x".repeat(60_000);
    for _ in 0..3 {
        sim.act(host, |room, now| {
            room.send(Lane::ReliableOrdered, Recipient::Others, "n", &text, false, now).unwrap()
        });
        sim.run_for(300);
    }
    sim.run_for(2_000);
    assert_eq!(sim.hub().connection_count(), 1);
    let Some(ClosedReason::Session(CloseReason::ConnectionLost { detail })) = sim.closed(guests[0]) else {
        panic!("{:?}", sim.closed(guests[0]));
    };
    assert!(detail.contains("too_slow"), "{detail}");
}
