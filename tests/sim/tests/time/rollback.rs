//! Rollback sessions of whole rooms, through a hub and over bad links.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Options, RollbackConfig, RollbackRequest, RoomCore, Wish};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::Intent;
use parlor_proto::{Instant, MemberId, Tick, TickRate, channel};
use parlor_sim::{Link, PeerId, Rng, Sim, for_seeds, hello};
use parlor_sync::rollback::Event;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// The run of one process: the state after the last run of each step, and its events.
#[derive(Default)]
struct Ran {
    after: BTreeMap<u32, i64>,
    /// The settled state before each step, as it was read.
    settled: BTreeMap<u32, i64>,
    pressed: i64,
    events: Vec<Event>,
    /// The step after which its state is corrupted, to cause a desync.
    spoil_at: Option<u32>,
}

type Shared = Rc<RefCell<Ran>>;

/// One frame of a game on a rollback lane.
fn frame(room: &mut RoomCore, players: &[MemberId], ran: &Shared, now: Instant) {
    let ran = &mut *ran.borrow_mut();
    while room.is_connected() && room.rollback_step(&ran.pressed, now).unwrap() {
        while let Some(request) = room.lane_mut().next_request() {
            let RollbackRequest::Advance { tick, .. } = request else { continue };
            let mut sum: i64 = room.rollback_state("sum").unwrap().unwrap_or(7);
            for player in players {
                let pressed = room.lane().input::<i64>(*player).unwrap().map_or(-1, |(pressed, _)| pressed);
                sum = (sum * 31 + pressed) % 1_000_003;
            }
            if ran.spoil_at == Some(tick.0) {
                sum += 1;
            }
            room.lane_mut().set("sum", &sum).unwrap();
            ran.after.insert(tick.0, sum);
        }
    }
    if let Some((tick, sum)) = room.lane().settled::<i64>("sum").unwrap() {
        let known = *ran.settled.entry(tick.0).or_insert(sum);
        assert_eq!(known, sum, "what is settled does not change");
    }
    ran.events.extend(std::iter::from_fn(|| room.lane_mut().poll_event()));
}

/// A room in which the first `players` members play, and all run the lane.
struct Lanes {
    sim: Sim,
    peers: Vec<PeerId>,
    ran: Vec<Shared>,
    rng: Rng,
    begin: Tick,
}

impl Lanes {
    fn new(seed: u64, members: usize, players: usize, mut link: impl FnMut(&mut Rng) -> Link) -> Self {
        let (mut sim, mut rng) = (Sim::keeping_seats(seed, Duration::from_secs(30)), Rng::new(seed));
        let mut options = Options::host("tanks");
        if let Wish::Host { max_players, tick_rate, .. } = &mut options.intent {
            (*max_players, *tick_rate) = (10, TickRate::new(60).unwrap());
        }
        let host = sim.host(options, link(&mut rng));
        let code = sim.code(host);
        let mut peers = vec![host];
        peers.extend((1..members).map(|_| sim.join(code, link(&mut rng))));
        sim.run_for(2_000);
        let begin = sim.room(host).tick_number().unwrap().offset(30);
        let ids: Vec<MemberId> = (0..players).map(|id| MemberId(id.try_into().unwrap())).collect();
        let ran: Vec<Shared> = peers.iter().map(|_| Shared::default()).collect();
        for (peer, ran) in peers.iter().zip(&ran) {
            let (ids, ran) = (ids.clone(), Rc::clone(ran));
            sim.act(*peer, |room, _| room.rollback(&RollbackConfig::new(ids.clone(), begin)).unwrap());
            sim.play(*peer, move |room, now| frame(room, &ids, &ran, now));
        }
        Lanes { sim, peers, ran, rng, begin }
    }

    /// Lets all players change their input now and then.
    fn run_for(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            let index = self.rng.index(self.ran.len());
            self.ran[index].borrow_mut().pressed = i64::try_from(self.rng.below(100)).unwrap();
            self.sim.run_for(50);
        }
    }

    /// Checks that all have the same states, up to what is settled everywhere. Returns the number of compared
    /// steps.
    fn check(&self) -> usize {
        let settled = |peer: &PeerId| self.sim.room(*peer).lane().diagnostics().unwrap();
        let least = self.peers.iter().map(|peer| {
            let diagnostics = settled(peer);
            diagnostics.settled.since(self.begin).min(diagnostics.next.since(self.begin))
        });
        let steps = usize::try_from(least.min().unwrap()).unwrap();
        let first = self.ran[0].borrow();
        for (index, ran) in self.ran.iter().enumerate() {
            let ran = ran.borrow();
            assert_eq!(ran.events, [], "peer {index}");
            for step in 0..u32::try_from(steps).unwrap() {
                let tick = self.begin.0 + step;
                assert_eq!(ran.after[&tick], first.after[&tick], "peer {index} after step {step} of {steps}");
            }
        }
        steps
    }
}

#[test]
fn players_and_spectators_come_to_the_same_states() {
    for_seeds(4, |seed| {
        let players = 2 + usize::try_from(seed % 7).unwrap();
        let mut lanes = Lanes::new(seed, players + 1, players, |rng| {
            Link::quic().latency_ms(10 + rng.below(40)).jitter_ms(rng.below(30)).loss(30)
        });
        lanes.run_for(8_000);
        assert!(lanes.check() > 350);
        let rollbacks: u64 = lanes
            .peers
            .iter()
            .map(|peer| lanes.sim.room(*peer).lane().diagnostics().unwrap().rollbacks)
            .sum();
        assert!(rollbacks > 0, "links are slow enough for guesses to be wrong");
        let spectator = lanes.sim.room(lanes.peers[players]).lane().diagnostics().unwrap();
        assert_eq!(spectator.replayed, 0);
    });
}

#[test]
fn a_player_that_stalls_for_a_minute_does_not_hold_up_the_others() {
    let mut lanes = Lanes::new(3, 3, 3, |_| Link::quic().latency_ms(30).jitter_ms(10));
    lanes.run_for(3_000);
    let sleeper = lanes.peers[2];
    let steps =
        |lanes: &Lanes, index: usize| lanes.sim.room(lanes.peers[index]).lane().diagnostics().unwrap();
    let before = [steps(&lanes, 0), steps(&lanes, 1)];
    lanes.sim.stall(sleeper, true);
    lanes.run_for(60_000);
    for (index, before) in before.iter().enumerate() {
        let after = steps(&lanes, index);
        assert!(after.steps - before.steps > 3_580, "member {index} ran {}", after.steps - before.steps);
        assert!(after.deepest <= 24 && after.missed == 0, "{after:?}");
    }
    lanes.sim.stall(sleeper, false);
    lanes.run_for(20_000);
    assert!(lanes.check() > 4_500);
}

#[test]
fn a_process_that_resumes_its_seat_and_begins_the_lane_again_comes_to_the_states_of_the_others() {
    for_seeds(6, |seed| {
        let mut lanes =
            Lanes::new(seed, 4, 3, |_| Link::quic().latency_ms(20 + 10 * (seed % 4)).jitter_ms(10).loss(20));
        lanes.run_for(4_000);
        // A player, or a spectator.
        let (index, away) =
            (2 + usize::try_from(seed % 2).unwrap(), [20, 400, 4_000][usize::try_from(seed % 3).unwrap()]);
        let peer = lanes.peers[index];
        let proof = lanes.sim.room(peer).resume_proof().expect("the hub keeps seats");
        lanes.sim.crash(peer);
        lanes.run_for(away);
        let mut options = Options::host("tanks");
        options.intent = Wish::Resume { session: proof.session, token: proof.token };
        lanes.sim.restart(peer, options);
        let (ids, begin) = ([0, 1, 2].map(MemberId), lanes.begin);
        let ran = Shared::default();
        lanes.ran[index] = Rc::clone(&ran);
        let mut has_begun = false;
        lanes.sim.play(peer, move |room, now| {
            // The process knows of the lane what it reads in the room.
            has_begun = has_begun || room.rollback(&RollbackConfig::new(ids, begin)).is_ok();
            if has_begun {
                frame(room, &ids, &ran, now);
            }
        });
        lanes.run_for(10_000);
        assert_eq!(lanes.sim.hub().stats().resumed, 1);
        assert!(lanes.check() > 720, "{} steps are settled everywhere", lanes.check());
        let at =
            |lanes: &Lanes, index: usize| lanes.sim.room(lanes.peers[index]).lane().diagnostics().unwrap();
        let before = at(&lanes, index).missed;
        lanes.run_for(2_000);
        assert_eq!(at(&lanes, index).missed, before, "its inputs count again");
        assert!([0, 1].iter().all(|other| at(&lanes, *other).missed == 0), "it held nobody up");
    });
}

#[test]
fn threat_24_a_state_that_differs_is_found_within_a_second() {
    for_seeds(3, |seed| {
        let mut lanes = Lanes::new(seed, 3, 3, |_| Link::quic().latency_ms(40).loss(30));
        lanes.run_for(4_000);
        let at = lanes.sim.room(lanes.peers[1]).lane().diagnostics().unwrap().next.0 + 10;
        lanes.ran[1].borrow_mut().spoil_at = Some(at);
        lanes.run_for(1_250);
        for index in [0, 1, 2] {
            let ran = lanes.ran[index].borrow();
            assert!(!ran.events.is_empty(), "member {index} found nothing");
            for event in &ran.events {
                let Event::Desync { player: Some(player), tick, is_exact: true } = event else {
                    panic!("{event:?}");
                };
                assert_eq!(*tick, Tick(at + 1));
                assert!(index == 1 || *player == 1, "only member 1 differs");
            }
        }
    });
}

#[test]
fn threat_22_a_clock_that_swings_makes_nobody_go_back_further_than_the_window() {
    let mut lanes = Lanes::new(5, 3, 3, |_| Link::quic().latency_ms(40).jitter_ms(20));
    // A player whose frames come in bursts, so that its inputs are early, late and early again.
    for turn in 0..40 {
        lanes.sim.stall(lanes.peers[2], turn % 2 == 0);
        lanes.run_for(400);
    }
    for index in [0, 1] {
        let diagnostics = lanes.sim.room(lanes.peers[index]).lane().diagnostics().unwrap();
        assert!(diagnostics.deepest <= 24 && diagnostics.missed == 0, "{diagnostics:?}");
        assert!(diagnostics.steps > 900, "{diagnostics:?}");
    }
    lanes.sim.stall(lanes.peers[2], false);
    lanes.run_for(5_000);
    assert!(lanes.check() > 1_000);
}

#[test]
fn threat_23_far_ticks_and_junk_of_a_member_hurt_nobody() {
    let mut lanes = Lanes::new(6, 2, 2, |_| Link::quic().latency_ms(20));
    let code = lanes.sim.code(lanes.peers[0]);
    let mallory = lanes.sim.intrude(hello(Intent::Join { code, secret: None }), Link::quic());
    lanes.sim.run_for(500);
    let mut rng = Rng::new(66);
    for _ in 0..200 {
        let mut junk: Vec<u8> =
            (0..3 + rng.index(60)).map(|_| u8::try_from(rng.below(256)).unwrap()).collect();
        junk[..3].copy_from_slice(&[0, 0, u8::try_from(rng.below(4)).unwrap()]);
        lanes.sim.say(mallory, |session, _| {
            let upward = Upward { to: Recipient::Others, stamp: false, payload: junk.into() };
            session.send(Outgoing::new(channel::ROLLBACK, upward.encode())).unwrap();
        });
        lanes.run_for(50);
    }
    assert!(lanes.check() > 500);
    for peer in &lanes.peers {
        let diagnostics = lanes.sim.room(*peer).lane().diagnostics().unwrap();
        assert!(diagnostics.ignored > 0 && diagnostics.missed_by_all == 0, "{diagnostics:?}");
    }
}

#[test]
fn who_leaves_is_not_waited_for() {
    let mut lanes = Lanes::new(8, 3, 3, |_| Link::quic().latency_ms(30));
    lanes.run_for(3_000);
    let gone = lanes.peers.pop().unwrap();
    lanes.ran.pop();
    lanes.sim.act(gone, |room, now| room.leave(now));
    lanes.run_for(500);
    let before = lanes.sim.room(lanes.peers[1]).lane().diagnostics().unwrap().stalled;
    lanes.run_for(4_000);
    let after = lanes.sim.room(lanes.peers[1]).lane().diagnostics().unwrap();
    assert_eq!(after.stalled, before, "{after:?}");
    assert!(lanes.check() > 400);
}

#[test]
fn reads_of_a_room_without_a_lane_are_those_of_the_host() {
    let mut sim = Sim::new(9);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let guest = sim.join(sim.code(host), Link::quic());
    sim.act(host, |room, _| room.set("tank", &5i32, parlor_sync::audience::Audience::All).unwrap());
    sim.run_for(500);
    sim.act(guest, |room, now| {
        assert_eq!(room.rollback_state::<i32>("tank").unwrap(), Some(5));
        assert!(room.lane().diagnostics().is_none() && room.lane().states().is_empty());
        assert!(!room.rollback_step(&0, now).unwrap());
        let alone = RollbackConfig::new([MemberId(0)], Tick(1));
        assert!(room.rollback(&alone).is_err(), "one player is none");
        room.rollback(&RollbackConfig::new([MemberId(0), MemberId(1)], Tick(1))).unwrap();
        room.lane_mut().set("tank", &6i32).unwrap();
        room.lane_mut().set("ball", &1i32).unwrap();
        assert_eq!(room.rollback_state::<i32>("tank").unwrap(), Some(6));
        assert!(room.lane_mut().remove("tank") && !room.lane_mut().remove("tank"));
        assert_eq!(room.rollback_state::<i32>("tank").unwrap(), Some(5));
        assert_eq!(room.lane().states().len(), 1);
        room.lane_mut().end();
        assert_eq!(room.rollback_state::<i32>("ball").unwrap(), None);
    });
}

#[test]
fn a_prediction_of_a_key_stands_until_the_hosts_word() {
    let mut sim = Sim::new(10);
    let host = sim.host(Options::host("tanks"), Link::quic().latency_ms(50));
    let guest = sim.join(sim.code(host), Link::quic().latency_ms(50));
    sim.play(host, |room, _| {
        let place: i64 = room.get("tank").unwrap().unwrap_or(0);
        let pressed: i64 = room.input(MemberId(1)).unwrap().unwrap_or(0);
        room.set("tank", &(place.max(pressed)), parlor_sync::audience::Audience::All).unwrap();
    });
    sim.run_for(1_000);
    for value in 1..=5i64 {
        sim.act(guest, |room, _| {
            room.send_input(&value).unwrap();
            // The last prediction is wrong.
            room.set_predicted("tank", &(if value == 5 { 99 } else { value })).unwrap();
        });
        let predicted = sim.act(guest, |room, _| room.predicted::<i64>("tank").unwrap());
        assert_eq!(predicted, Some(if value == 5 { 99 } else { value }));
        assert_ne!(sim.room(guest).get::<i64>("tank").unwrap(), predicted, "the host has not heard of it");
        sim.run_for(1_000);
        assert_eq!(
            sim.room(guest).predicted::<i64>("tank").unwrap(),
            Some(value),
            "the host's word is there"
        );
    }
    let counted = sim.room(guest).prediction_diagnostics(None);
    assert_eq!((counted.confirmed, counted.corrections, counted.waiting), (4, 1, 0), "{counted:?}");
}

#[test]
fn a12_predictions_are_counted_by_key() {
    let mut sim = Sim::new(11);
    let host = sim.host(Options::host("tanks"), Link::quic().latency_ms(30));
    let guest = sim.join(sim.code(host), Link::quic().latency_ms(30));
    sim.play(host, |room, _| {
        let pressed: i64 = room.input(MemberId(1)).unwrap().unwrap_or(0);
        for key in ["right", "wrong"] {
            room.set(key, &pressed, parlor_sync::audience::Audience::All).unwrap();
        }
    });
    sim.run_for(1_000);
    for value in 1..=5i64 {
        sim.act(guest, |room, _| {
            room.send_input(&value).unwrap();
            room.set_predicted("right", &value).unwrap();
            room.set_predicted("wrong", &-value).unwrap();
        });
        let waiting = sim.room(guest).prediction_diagnostics(Some("wrong"));
        assert_eq!((waiting.keys, waiting.waiting), (1, 1));
        sim.run_for(500);
    }
    let of = |key| sim.room(guest).prediction_diagnostics(Some(key));
    let (right, wrong) = (of("right"), of("wrong"));
    assert_eq!((right.confirmed, right.corrections, right.waiting), (5, 0, 0), "{right:?}");
    assert_eq!((wrong.confirmed, wrong.corrections, wrong.waiting), (0, 5, 0), "{wrong:?}");
    assert_eq!(of("another"), parlor_client_core::OverlayDiagnostics::default());
}

#[test]
fn a12_a_rollback_lane_tells_the_history_and_corrections_of_each_key() {
    let mut lanes = Lanes::new(12, 2, 2, |_| Link::quic().latency_ms(80));
    // A key that no input changes is never corrected.
    for peer in lanes.peers.clone() {
        lanes.sim.act(peer, |room, _| room.lane_mut().set("still", &1i32).unwrap());
    }
    lanes.run_for(5_000);
    lanes.check();
    for peer in &lanes.peers {
        let lane = lanes.sim.room(*peer).lane();
        let (all, sum) = (lane.diagnostics().unwrap(), lane.key_diagnostics("sum").unwrap());
        assert!(sum.corrections > 0 && sum.corrections <= all.replayed, "{sum:?} {all:?}");
        assert!(sum.corrected.is_some_and(|tick| tick.since(lanes.begin) > 0) && sum.history > 10, "{sum:?}");
        let still = lane.key_diagnostics("still").unwrap();
        assert_eq!((still.corrections, still.corrected), (0, None));
        assert_eq!(lane.key_diagnostics("none"), None);
    }
}

#[test]
fn a10_what_is_settled_has_no_guesses_and_is_the_same_at_host_players_and_spectators() {
    for_seeds(2, |seed| {
        let mut lanes = Lanes::new(seed, 4, 3, |_| Link::quic().latency_ms(50).jitter_ms(20).loss(20));
        lanes.run_for(8_000);
        let steps = lanes.check();
        assert!(steps > 200, "{steps}");
        let first = lanes.ran[0].borrow();
        for (index, ran) in lanes.ran.iter().enumerate() {
            let ran = ran.borrow();
            let end = lanes.begin.0 + u32::try_from(steps).unwrap();
            let settled = ran.settled.range(lanes.begin.0 + 1..end);
            let compared = settled.map(|(tick, sum)| {
                assert_eq!(first.after[&(tick - 1)], *sum, "peer {index}, before step {tick}");
            });
            assert!(compared.count() > 50, "peer {index}");
        }
        // The host's own view is ahead of what is settled, and has guesses.
        let host = lanes.sim.room(lanes.peers[0]).lane();
        let (tick, _) = host.settled::<i64>("sum").unwrap().unwrap();
        assert!(host.diagnostics().unwrap().next.is_newer_than(tick));
    });
}
