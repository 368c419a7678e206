//! A host's recording equals the room's history, whatever the network does.

use parlor_client_core::{Options, RoomCore, RoomError};
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::audience::Audience;
use parlor_sync::recording::{Ended, Playback, RecordingError, What};
use parlor_sync::replicated;
use parlor_sync::schema::{INPUT_ACK, KEYED_KEY, Kind, Schema};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
struct Place {
    at: [f32; 2],
}
replicated!(Place as "place" => { at: Kind::vector2(-100.0, 100.0, 1.0 / 64.0) });

/// The hash of the keys, and all entities.
type Truth = (u64, BTreeMap<EntityId, (Option<MemberId>, Option<Place>)>);

/// The host process's knowledge of its own run.
#[derive(Debug, Default)]
struct Run {
    /// By tick, at its end.
    truth: BTreeMap<u32, Truth>,
    file: Vec<u8>,
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Place>().build().expect("it is in order");
    Options { schema: Some(Arc::new(schema)), ..options }
}

fn truth(room: &mut RoomCore, now: Instant) -> Option<(u32, Truth)> {
    let (tick, hash) = room.state_hash()?;
    let world = room.world(now).expect("it is open");
    let entities = world.entities().into_iter();
    let seen = entities.map(|it| {
        (it, (world.owner(it).expect("it is there"), world.component::<Place>(it).expect("it is there")))
    });
    Some((u32::try_from(tick).expect("a tick is 32 bits wide"), (hash, seen.collect())))
}

fn scribble(room: &mut RoomCore, now: Instant, rng: &mut Rng) {
    let players: Vec<MemberId> = room.players().iter().map(|player| player.id).collect();
    for _ in 0..rng.below(4) {
        let key = format!("key/{}", rng.below(12));
        if rng.per_mille(150) {
            room.remove(&key).expect("the host may");
        } else {
            let audience =
                if rng.per_mille(300) { Audience::members([rng.pick(&players)]) } else { Audience::All };
            room.set(&key, &(rng.below(99), "x".repeat(rng.index(40))), audience).expect("the host may");
        }
    }
    let mut world = room.world(now).expect("it is open");
    let entities = world.entities();
    if entities.len() < 12 && rng.per_mille(300) {
        let owner = rng.per_mille(500).then(|| rng.pick(&players));
        let entity = world.spawn(owner).expect("there is room");
        world.insert(entity, &Place { at: [0.0, 1.0] }).expect("it is a place");
    }
    for entity in entities {
        match rng.below(60) {
            0 => world.despawn(entity).expect("it is there"),
            1 => world.transfer(entity, Some(rng.pick(&players))).expect("it is there"),
            2 => world.set_audience(entity, Audience::members([rng.pick(&players)])).expect("it is there"),
            3..40 => {
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                let at = [rng.below(200) as f32 - 100.0, rng.below(200) as f32 - 100.0];
                world.insert(entity, &Place { at }).expect("it is a place");
            }
            _ => {}
        }
    }
}

/// A room over links with up to a tenth of loss, recorded from `from_ms` on. Guests join and leave.
fn recorded(seed: u64, from_ms: u64) -> (Sim, PeerId, Rc<RefCell<Run>>) {
    let mut rng = Rng::new(seed);
    let mut link = || {
        Link::quic()
            .latency_ms(rng.below(60))
            .jitter_ms(rng.below(30))
            .loss(10 + u32::try_from(rng.below(90)).expect("it is small"))
    };
    let mut sim = Sim::new(seed);
    let host = sim.host(options(Options::host("tanks")), link());
    let run = Rc::<RefCell<Run>>::default();
    let (held, mut draws) = (Rc::clone(&run), Rng::new(seed + 1));
    sim.play(host, move |room, now| {
        let mut run = held.borrow_mut();
        run.truth.extend(truth(room, now));
        run.file.extend(room.recording_mut().take_bytes());
        scribble(room, now, &mut draws);
    });
    let code = sim.code(host);
    sim.run_for(from_ms);
    sim.act(host, |room, _| room.start_recording()).expect("it is the host");
    let guests = [(); 2].map(|()| sim.enter(options(Options::join("tanks", code)), link()));
    sim.run_for(2_500);
    sim.act(guests[0], |room, now| room.leave(now));
    sim.run_for(1_500);
    (sim, host, run)
}

/// Ends the room. Returns the whole file.
fn file_of(sim: &mut Sim, host: PeerId, run: &RefCell<Run>) -> Vec<u8> {
    sim.act(host, |room, now| room.leave(now));
    let rest = sim.act(host, |room, _| room.recording_mut().take_bytes());
    let mut run = run.borrow_mut();
    run.file.extend(rest);
    std::mem::take(&mut run.file)
}

/// The present state of a playback.
fn played(playback: &Playback) -> Truth {
    let (world, keys) = (playback.world().expect("it has begun"), playback.keys().expect("it has begun"));
    let hidden = KEYED_KEY.bit() | INPUT_ACK.bit();
    let entities = world.entities().filter(|it| world.mask(*it).expect("it is there") & hidden == 0);
    let seen = entities.map(|it| {
        (it, (world.owner(it).expect("it is there"), world.get::<Place>(it).expect("it is registered")))
    });
    (keys.hash(), seen.collect())
}

#[test]
fn every_tick_of_a_recorded_room_comes_back_whatever_its_network_loses() {
    for_seeds(SEEDS / 4, |seed| {
        let (mut sim, host, run) = recorded(seed, 200 + seed % 700);
        let file = file_of(&mut sim, host, &run);
        let run = run.borrow();
        let mut playback = Playback::new();
        let (mut compared, mut came, mut left) = (0, 0, 0);
        for piece in file.chunks(1 + usize::try_from(seed % 3_000).expect("it is small")) {
            playback.feed(piece);
            while let Some(step) = playback.step(Instant::from_micros(u64::MAX)).expect("it is in order") {
                match step.what {
                    What::Changed { applied, .. } if applied.settled => {
                        // The last commit is in the file, but no step followed in which the test looked at
                        // it.
                        if let Some(truth) = run.truth.get(&applied.tick.0) {
                            assert_eq!(played(&playback), *truth, "{}", applied.tick);
                            compared += 1;
                        }
                    }
                    What::Mark { tick, agrees, .. } => assert!(agrees, "{tick}"),
                    What::Came(_) => came += 1,
                    What::Left(_) => left += 1,
                    What::Changed { .. } | What::Ended(_) => {}
                }
            }
        }
        assert_eq!((playback.ended(), playback.first_difference()), (Some(Ended::Closed), None));
        assert!(compared > 80, "{compared} ticks");
        assert!(playback.marks() >= 4, "{} marks", playback.marks());
        assert_eq!((came, left), (3, 1), "the host and two guests came, one left");
        let names: Vec<&str> = playback.players().values().map(String::as_str).collect();
        assert_eq!(names, ["player 0", "player 2"]);
    });
}

#[test]
fn one_flipped_bit_of_a_rooms_file_is_found() {
    for_seeds(SEEDS / 10, |seed| {
        let (mut sim, host, run) = recorded(seed, 100);
        let file = file_of(&mut sim, host, &run);
        let verdict = |file: &[u8]| -> Result<bool, RecordingError> {
            let mut playback = Playback::new();
            playback.feed(file);
            while playback.step(Instant::from_micros(u64::MAX))?.is_some() {}
            Ok(playback.ended().is_some() && playback.first_difference().is_none())
        };
        assert_eq!(verdict(&file), Ok(true));
        let mut rng = Rng::new(seed);
        for _ in 0..40 {
            let (place, bit) = (rng.index(file.len()), rng.below(8));
            let mut changed = file.clone();
            changed[place] ^= 1 << bit;
            assert_ne!(verdict(&changed), Ok(true), "bit {bit} of byte {place}");
        }
    });
}

#[test]
fn a_spectator_with_a_delay_sees_the_room_as_it_was() {
    let delay = Duration::from_millis(1_500);
    for_seeds(SEEDS / 10, |seed| {
        let (mut sim, host, run) = recorded(seed, 100);
        let mut playback = Playback::new();
        let mut compared = 0;
        for _ in 0..40 {
            sim.run_for(60);
            let now = sim.act(host, |room, now| room.server_time(now)).expect("it is open");
            let mut run = run.borrow_mut();
            playback.feed(&std::mem::take(&mut run.file));
            let until = Instant::ZERO + now.saturating_sub(delay);
            while playback.step(until).expect("it is in order").is_some() {}
            assert!(playback.at() <= until);
            assert!(until.saturating_since(playback.at()) < Duration::from_millis(200), "it keeps up");
            let tick = playback.world().and_then(|world| world.tick()).expect("it has begun");
            assert_eq!(played(&playback), run.truth[&tick.0], "{tick}");
            compared += 1;
        }
        assert_eq!(compared, 40);
    });
}

#[test]
fn only_a_host_records_and_one_file_at_a_time() {
    let mut sim = Sim::new(7);
    let host = sim.host(options(Options::host("tanks")), Link::quic());
    let guest = sim.enter(options(Options::join("tanks", sim.code(host))), Link::quic());
    let start = |room: &mut RoomCore| room.start_recording();
    assert!(matches!(
        sim.act(guest, |room, _| start(room)),
        Err(RoomError::Misuse(ApiMisuse::NotOpen { .. }))
    ));
    sim.run_for(1_000);
    assert!(matches!(
        sim.act(guest, |room, _| start(room)),
        Err(RoomError::Misuse(ApiMisuse::NotHost { .. }))
    ));
    assert_eq!(sim.act(host, |room, _| start(room)), Ok(()));
    assert!(matches!(sim.act(host, |room, _| start(room)), Err(RoomError::Misuse(ApiMisuse::Bounds(_)))));
    sim.act(host, |room, _| room.recording_mut().stop());
    let figures = sim.room(host).recording().figures().expect("there was one");
    assert_eq!(figures.ended, Some(Ended::Stopped));
    assert_eq!(sim.act(host, |room, _| room.recording_mut().take_bytes()).len() as u64, figures.bytes);
    // Another recording begins with the full state.
    assert_eq!(sim.act(host, |room, _| start(room)), Ok(()));
    sim.run_for(100);
    assert!(sim.act(host, |room, _| room.recording_mut().take_bytes()).starts_with(b"PARLORREC"));
}

#[test]
fn a_recording_changes_nothing_of_what_others_are_sent() {
    let run = |is_recorded: bool| {
        let mut sim = Sim::new(11);
        let host = sim.host(options(Options::host("tanks")), Link::quic().loss(30));
        let mut rng = Rng::new(5);
        sim.play(host, move |room, now| scribble(room, now, &mut rng));
        let _guest = sim.enter(options(Options::join("tanks", sim.code(host))), Link::quic().loss(30));
        if is_recorded {
            sim.act(host, |room, _| room.start_recording()).expect("it is the host");
        } else {
            sim.act(host, |_, _| ());
        }
        sim.run_for(3_000);
        sim.trace_hash()
    };
    assert_eq!(run(true), run(false));
}
