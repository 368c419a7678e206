//! The keyed state that a host writes and all members read.

use parlor_client_core::{Event, Options, RoomCore, RoomError, StateSource, StateUpdate};
use parlor_proto::{ApiMisuse, MemberId, Packet, Tick};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::rc::Rc;

/// The hash of the host's state at each of its sequences.
type Truth = Rc<RefCell<BTreeMap<u64, u64>>>;

fn options(options: Options) -> Options {
    Options { hash_every: NonZeroU64::new(1), ..options }
}

/// A room in which the host changes random keys in each step until stopped.
struct World {
    sim: Sim,
    host: PeerId,
    guests: Vec<PeerId>,
    truth: Truth,
    is_busy: Rc<RefCell<bool>>,
}

fn scribble(room: &mut RoomCore, rng: &mut Rng) {
    for _ in 0..rng.below(6) {
        let key = format!("key/{}", rng.below(20));
        if rng.per_mille(200) {
            room.remove(&key).expect("the host may");
        } else {
            let text = "x".repeat(rng.index(60));
            room.set(&key, &(rng.below(1_000), text), Audience::All).expect("the host may");
        }
    }
}

fn world(seed: u64, guests: usize, mut link: impl FnMut() -> Link) -> World {
    let mut sim = Sim::new(seed);
    let host = sim.host(options(Options::host("tanks")), link());
    let code = sim.code(host);
    let guests = (0..guests).map(|_| sim.enter(options(Options::join("tanks", code)), link())).collect();
    let (truth, is_busy) = (Truth::default(), Rc::new(RefCell::new(true)));
    let mut rng = Rng::new(seed);
    let (busy, held) = (Rc::clone(&is_busy), Rc::clone(&truth));
    sim.play(host, move |room, _| {
        held.borrow_mut().extend(room.state_hash());
        if *busy.borrow() {
            scribble(room, &mut rng);
        }
    });
    World { sim, host, guests, truth, is_busy }
}

impl World {
    fn run(&mut self, ms: u64) {
        self.sim.run_for(ms);
        for guest in &self.guests {
            for (sequence, hash) in self.sim.room(*guest).state_checksums() {
                assert_eq!(self.truth.borrow().get(&sequence), Some(&hash), "at state {sequence}");
            }
        }
    }

    fn settle(&mut self) {
        *self.is_busy.borrow_mut() = false;
        self.run(3_000);
    }

    fn assert_equal(&self) {
        let host = self.sim.room(self.host);
        for guest in &self.guests {
            let guest = self.sim.room(*guest);
            let (at, hash) = guest.state_hash().expect("all has arrived");
            let (host_at, host_hash) = host.state_hash().expect("it has a state");
            // The host may have committed a step without changes, which is not sent.
            assert!(at <= host_at && hash == host_hash, "{at} {hash:x}, {host_at} {host_hash:x}");
            assert_eq!(guest.keys(), host.keys());
            for key in host.keys() {
                let read =
                    |room: &RoomCore| room.get::<(u64, String)>(&key).expect("every value is such a pair");
                assert_eq!(read(guest), read(host), "{key}");
            }
        }
    }
}

#[test]
fn everybody_comes_to_hold_what_the_host_holds_and_never_anything_else() {
    for_seeds(SEEDS, |seed| {
        let mut links = Rng::new(seed ^ 1);
        let mut world = world(seed, 3, || Link::any(&mut links).jitter_ms(40));
        world.run(4_000);
        world.settle();
        world.assert_equal();
        for guest in &world.guests {
            let counted = world.sim.room(*guest).diagnostics();
            assert!(counted.updates_decoded > 20, "{counted:?}");
            assert_eq!(counted.updates_gapped, 0);
        }
    });
}

#[test]
fn a_state_too_large_for_a_datagram_survives_loss() {
    for_seeds(SEEDS / 5, |seed| {
        let mut world = world(seed, 2, || Link::quic().jitter_ms(20).loss(50));
        let host = world.host;
        world.sim.act(host, |room, _| {
            for key in 0..20 {
                room.set(&format!("big/{key}"), &(u64::MAX >> 2, "y".repeat(1_000)), Audience::All).unwrap();
            }
        });
        world.run(1_000);
        world.settle();
        // All of an update's twenty fragments must arrive, so some are sent many times.
        world.run(5_000);
        world.assert_equal();
    });
}

#[test]
fn a_latecomer_is_given_everything() {
    for_seeds(SEEDS, |seed| {
        let mut links = Rng::new(seed ^ 2);
        let mut world = world(seed, 1, || Link::any(&mut links));
        world.run(3_000);
        let code = world.sim.code(world.host);
        let late =
            world.sim.enter(options(Options::join("tanks", code)), Link::quic().loss(100).jitter_ms(20));
        world.guests.push(late);
        world.run(2_000);
        let first = world.sim.events(late).iter().find_map(|event| match event {
            Event::State(update) => Some(update.source),
            _ => None,
        });
        assert_eq!(first, Some(StateSource::Complete));
        world.settle();
        world.assert_equal();
    });
}

#[test]
fn a_blackout_of_some_seconds_is_made_up_for() {
    for_seeds(SEEDS / 2, |seed| {
        let mut world = world(seed, 3, || Link::quic().jitter_ms(10));
        world.run(1_000);
        let (guest, host) = (world.guests[0], world.host);
        world.sim.silence(guest, true);
        world.run(4_000);
        world.sim.silence(guest, false);
        world.run(1_000);
        world.sim.silence(host, true);
        world.run(3_000);
        world.sim.silence(host, false);
        world.run(1_000);
        world.settle();
        world.assert_equal();
    });
}

/// A host with a secret for player 1 alone, and the packets to players 1, 2 and a late third one.
fn wires(seed: u64, secret: &'static str, salt: u64) -> [Vec<Packet>; 3] {
    let mut sim = Sim::new(seed);
    let mut rng = Rng::new(seed);
    let host = sim.host(Options::host("tanks"), Link::quic().jitter_ms(20));
    let code = sim.code(host);
    let guests = [(); 2].map(|()| sim.join(code, Link::any(&mut rng)));
    let mut draw = rng.clone();
    sim.play(host, move |room, _| {
        let number = draw.below(1_000);
        room.set("public", &number, Audience::All).expect("the host may");
        let own = Audience::members([MemberId(1)]);
        room.set("secret", &(number ^ salt, secret), own.clone()).expect("the host may");
        // The secret is also the key's name, and the key is set and removed.
        if number.is_multiple_of(3) {
            room.set(secret, &(number ^ salt), own).expect("the host may");
        } else {
            room.remove(secret).expect("the host may");
        }
    });
    sim.run_for(2_000);
    let late = sim.join(code, Link::quic().loss(50));
    sim.run_for(2_000);
    let read = |peer| sim.room(peer).get::<(u64, String)>("secret").expect("it is such a pair");
    assert_eq!(read(guests[0]).expect("it may see it").1, secret);
    assert_eq!([guests[1], late].map(read), [None, None]);
    assert!(sim.room(late).get::<u64>("public").expect("it is a number").is_some());
    assert_eq!(sim.room(late).keys(), ["public"]);
    [guests[0], guests[1], late].map(|peer| sim.received(peer).to_vec())
}

#[test]
fn what_is_private_never_reaches_the_wire_of_another() {
    for_seeds(SEEDS / 2, |seed| {
        // Packets are entropy-coded as a whole, so a search for the secret would find nothing. Instead the
        // other players' packets must not depend on it.
        let one = wires(seed, "pssst-this-is-for-one-alone", 0);
        let other = wires(seed, "nothing-of-this-gets-around", 512);
        let [told, not_told, late] = [0, 1, 2].map(|index| one[index] == other[index]);
        assert!(!told, "it does matter to whom it is told");
        assert!(not_told && late);
        assert!(one[1].len() > 30 && one[2].len() > 20);
    });
}

#[test]
fn what_does_not_change_is_not_sent() {
    let mut sim = Sim::new(1);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let guest = sim.join(sim.code(host), Link::quic());
    sim.play(host, |room, _| {
        room.set("a", &1, Audience::All).unwrap();
        room.set("b", &"two", Audience::members([MemberId(1)])).unwrap();
        // The host's own input causes no update either.
        room.send_input(&"still").unwrap();
        assert_eq!(room.input::<String>(MemberId(0)).unwrap().as_deref(), Some("still"));
    });
    sim.run_for(3_000);
    let before = (sim.traffic(host), sim.traffic(guest), sim.room(host).state_hash());
    sim.run_for(10_000);
    let after = (sim.traffic(host), sim.traffic(guest), sim.room(host).state_hash());
    assert_eq!(before.2, after.2, "no step has a sequence of its own");
    assert!(after.0.up - before.0.up <= 20, "{before:?} {after:?}");
    assert!(after.1.down - before.1.down <= 20, "{before:?} {after:?}");
    assert_eq!(sim.room(host).diagnostics().updates_published, 1);
}

#[test]
fn a_host_that_asks_for_no_steps_publishes_once_a_step_all_the_same() {
    let mut sim = Sim::new(8);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let guest = sim.join(sim.code(host), Link::quic());
    sim.run_for(500);
    sim.stall(host, true);
    sim.take_events(guest);
    // It writes and polls a hundred times a second.
    for number in 0..300u64 {
        sim.run_for(10);
        sim.act(host, |room, now| {
            room.set("number", &number, Audience::All).unwrap();
            while room.poll(now).is_some() {}
        });
    }
    let updates = updates(&mut sim, guest);
    assert!((75..=92).contains(&updates.len()), "{} updates in 3 s of 30 steps each", updates.len());
    assert!(updates.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
    let newest = sim.room(guest).get::<u64>("number").unwrap().unwrap();
    assert!(newest >= 285, "{newest}");
    let now_ms = sim.act(guest, |room, now| room.server_time(now).unwrap().as_millis());
    let at_ms = u128::from(updates.last().unwrap().server_time_ms);
    assert!(at_ms <= now_ms && now_ms - at_ms < 200, "{at_ms} of {now_ms}");
}

#[test]
fn the_host_reads_what_it_wrote_at_once_and_nobody_else_writes() {
    let mut sim = Sim::new(2);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let guest = sim.join(sim.code(host), Link::quic());
    sim.act(host, |room, now| {
        room.set("x", &3, Audience::All).unwrap();
        assert_eq!(room.get::<i32>("x").unwrap(), Some(3));
        assert_eq!(room.interpolated::<i32>("x", now).unwrap(), Some(3));
        assert!(room.get::<String>("x").is_err() && room.get::<i32>("y").unwrap().is_none());
    });
    sim.act(guest, |room, _| {
        let not_host = |error: RoomError| {
            assert!(
                matches!(error, RoomError::Misuse(ApiMisuse::NotHost { local: MemberId(1), .. })),
                "{error}"
            );
        };
        not_host(room.set("x", &4, Audience::All).unwrap_err());
        not_host(room.remove("x").unwrap_err());
        not_host(room.declare("x", parlor_sync::keyed::Hints::none()).unwrap_err());
        not_host(room.kick(MemberId(0), "").unwrap_err());
    });
    sim.run_for(500);
    assert_eq!(sim.room(guest).get::<i32>("x").unwrap(), Some(3));
}

#[test]
fn interpolated_reads_move_smoothly_and_stay_within_the_ends() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let host = sim.host(Options::host("tanks"), Link::quic().jitter_ms(5));
        let guest = sim.join(sim.code(host), Link::quic().latency_ms(50).jitter_ms(15));
        // A step moves it by one.
        sim.play(host, |room, _| {
            let x: f64 = room.get("x").unwrap().unwrap_or(0.0);
            room.set("x", &(x + 1.0), Audience::All).unwrap();
        });
        sim.run_for(5_000);
        // A game of 100 frames a second, which polls and then draws.
        sim.stall(guest, true);
        let mut last: Option<f64> = None;
        let mut moved = Vec::new();
        for _ in 0..300 {
            sim.run_for(10);
            let (newest, shown): (f64, f64) = sim.act(guest, |room, now| {
                while room.poll(now).is_some() {}
                (room.get("x").unwrap().unwrap(), room.interpolated("x", now).unwrap().unwrap())
            });
            assert!((1.0..=newest).contains(&shown), "{shown} of {newest}");
            assert!(newest - shown < 15.0, "{shown} is far behind {newest}");
            if let Some(last) = last {
                moved.push(shown - last);
            }
            last = Some(shown);
        }
        // 10 ms are 0.3 steps.
        assert!(moved.iter().all(|step| (0.0..1.5).contains(step)), "{moved:?}");
        // The buffer covers 95 of 100 updates of the last seconds. Before a later one the value stands still
        // for a moment; after it the value moves fast for another.
        let even = moved.iter().filter(|step| (0.27..0.33).contains(*step)).count();
        assert!(even >= moved.len() * 85 / 100, "{even} of {} steps are even: {moved:?}", moved.len());
    });
}

fn updates(sim: &mut Sim, peer: PeerId) -> Vec<StateUpdate> {
    let updates = sim.take_events(peer).into_iter().filter_map(|event| match event {
        Event::State(update) => Some(update),
        _ => None,
    });
    updates.collect()
}

#[test]
fn a_player_learns_which_of_its_inputs_was_used() {
    for_seeds(SEEDS / 2, |seed| {
        let mut sim = Sim::new(seed);
        let mut rng = Rng::new(seed);
        let host = sim.host(Options::host("tanks"), Link::any(&mut rng));
        let guest = sim.join(sim.code(host), Link::any(&mut rng));
        let stop = Rc::new(Cell::new(false));
        let has_stopped = Rc::clone(&stop);
        sim.play(guest, move |room, _| {
            if !has_stopped.get() {
                room.send_input(&room.tick_number().unwrap().0.to_string()).unwrap();
            }
        });
        sim.play(host, |room, _| {
            if let Some(input) = room.input::<String>(MemberId(1)).unwrap() {
                room.set("used", &input, Audience::All).unwrap();
            }
        });
        sim.run_for(5_000);
        // Of two changed entities, one may arrive before the other.
        stop.set(true);
        sim.run_for(3_000);
        let updates = updates(&mut sim, guest);
        let acks: Vec<Tick> = updates.iter().filter_map(|update| update.input_ack_tick).collect();
        // Four streams in a row, each delayed by a loss for up to a third of a second, leave few.
        assert!(acks.len() > 10, "{} acknowledgements", acks.len());
        assert!(acks.windows(2).all(|pair| pair[1].since(pair[0]) >= 0), "{acks:?}");
        assert!(acks.last().unwrap().since(acks[0]) > 60);
        let used: String = sim.room(guest).get("used").unwrap().unwrap();
        assert_eq!(used, acks.last().unwrap().0.to_string(), "the state and its acknowledgement are one");
    });
}

#[test]
fn updates_say_when_they_were_written_and_what_they_changed() {
    for_seeds(SEEDS / 2, |seed| {
        let mut sim = Sim::new(seed);
        let host = sim.host(Options::host("tanks"), Link::quic());
        let guest = sim.join(sim.code(host), Link::quic().latency_ms(40).jitter_ms(20));
        sim.play(host, |room, _| {
            let tick = room.tick_number().unwrap();
            room.set(if tick.0 % 2 == 0 { "even" } else { "odd" }, &tick.0, Audience::All).unwrap();
        });
        sim.run_for(5_000);
        let updates = updates(&mut sim, guest);
        let sequences: BTreeSet<u64> = updates.iter().map(|update| update.sequence).collect();
        assert!(sequences.len() > 60, "most bring a newer state");
        for pair in updates.windows(2) {
            assert!(pair[1].sequence >= pair[0].sequence);
            assert!(pair[1].server_time_ms >= pair[0].server_time_ms);
            assert!(pair[1].server_tick.since(pair[0].server_tick) >= 0);
        }
        for update in &updates {
            assert!((update.tick_interval_ms - 33.333).abs() < 0.01);
            assert!(
                !update.changed.is_empty() && update.changed.iter().all(|key| key == "even" || key == "odd")
            );
            let began_ms = u64::from(update.server_tick.0) * 100 / 3;
            assert!(update.server_time_ms.abs_diff(began_ms) <= 1, "{update:?}");
        }
        assert_eq!(updates[0].source, StateSource::Complete);
        let last = updates.last().unwrap();
        assert_eq!(last.source, StateSource::Delta);
        // Up to 20 ms of the link, and up to a frame at the host.
        assert!(last.jitter_ms > 1.0 && last.jitter_ms < 37.0, "{last:?}");
        assert!(last.buffer_delay_ms > 33.0 && last.buffer_delay_ms < 100.0, "{last:?}");
        assert!(last.history_depth >= 2 && last.buffered_server_time_ms > 0.0, "{last:?}");
        let now_ms = sim.act(guest, |room, now| room.server_time(now).unwrap().as_millis());
        assert!(u128::from(last.server_time_ms) <= now_ms && now_ms - u128::from(last.server_time_ms) < 300);
    });
}
