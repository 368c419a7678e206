//! Predictions against a model: an authority with the same step, a network that loses, delays and reorders
//! packets, and a member that runs ahead.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_impair::Rng;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::audience::Viewer;
use parlor_sync::limits::REPLAY_TICKS_MAX;
use parlor_sync::prediction::{Frame, PredictionCounters, Predictor, Rerun, Smoothing};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use parlor_sync::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, Sent, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const ME: MemberId = MemberId(3);
const RATE: TickRate = TickRate::DEFAULT;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Walker {
    at: [f32; 2],
    heading: f32,
    steps: u16,
}
replicated!(Walker as "walker" => {
    at: Kind::vector2(-200.0, 200.0, 1.0 / 64.0),
    heading: Kind::angle(256),
    steps: Kind::int(0, 1_000).threshold(2),
});

/// It exists now and then.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spark {
    left: u8,
}
replicated!(Spark as "spark" => { left: Kind::int(0, 20) });

/// The input of a tick, which changes every five ticks.
fn input(seed: u64, tick: u32) -> u64 {
    (seed ^ u64::from(tick / 5)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59
}

/// A step of the game, the same for the authority and the member.
fn step(walker: Option<Walker>, spark: Option<Spark>, input: u64) -> (Walker, Option<Spark>) {
    let before = walker.unwrap_or(Walker { at: [0.0; 2], heading: 0.0, steps: 0 });
    let heading = before.heading + [-0.11, 0.0, 0.07, 0.2][(input & 3) as usize];
    let pace = if input & 4 == 0 { 0.0 } else { 0.4 };
    let at = [before.at[0] + pace * heading.cos(), before.at[1] + pace * heading.sin()];
    let at = at.map(|axis| if axis.abs() > 190.0 { 0.0 } else { axis });
    let spark = match spark {
        Some(Spark { left: 0 }) => None,
        Some(Spark { left }) => Some(Spark { left: left - 1 }),
        None => (input & 8 != 0).then_some(Spark { left: 7 }),
    };
    (Walker { at, heading, steps: (before.steps + 1) % 1_000 }, spark)
}

struct Network {
    rng: Rng,
    lost_per_mille: u64,
    /// In ticks.
    delay: u32,
    jitter: u32,
    /// Nothing arrives in these ticks.
    silence: std::ops::Range<u32>,
    down: BTreeMap<(u32, u64), (bytes::Bytes, Sent)>,
    fates: BTreeMap<(u32, u64), (Sent, bool)>,
    sent: u64,
}

struct Play {
    seed: u64,
    schema: Arc<Schema>,
    world: World,
    publisher: Publisher,
    encodings: Encodings,
    entity: EntityId,
    network: Network,
    replica: Replica,
    predictor: Predictor,
    lead: u32,
    tick: u32,
    /// Ticks at which the authority pushes the walker.
    pushes: Vec<u32>,
    truth: BTreeMap<u32, (Walker, Option<Spark>)>,
    /// The member's first result for each tick.
    first: BTreeMap<u32, (Walker, Option<Spark>)>,
    reruns: Vec<Rerun>,
}

fn play(seed: u64, delay: u32, jitter: u32, lost_per_mille: u64) -> Play {
    let schema = Schema::builder().replicate::<Walker>().replicate::<Spark>().build().unwrap();
    let schema = Arc::new(schema);
    let mut world = World::new(Arc::clone(&schema), RATE);
    let entity = world.spawn(Some(ME)).unwrap();
    let predicted = ["walker", "spark"].iter().fold(0, |mask, name| mask | schema.find(name).unwrap().bit());
    Play {
        seed,
        world,
        publisher: Publisher::new(Viewer::Member(ME), PublisherConfig::default()),
        encodings: Encodings::default(),
        entity,
        network: Network {
            rng: Rng::new(seed),
            lost_per_mille,
            delay,
            jitter,
            silence: 0..0,
            down: BTreeMap::new(),
            fates: BTreeMap::new(),
            sent: 0,
        },
        replica: Replica::new(Arc::clone(&schema), RATE),
        predictor: Predictor::new(Arc::clone(&schema), ME, predicted, Smoothing::default()),
        schema,
        lead: delay + 2,
        tick: 0,
        pushes: Vec::new(),
        truth: BTreeMap::new(),
        first: BTreeMap::new(),
        reruns: Vec::new(),
    }
}

impl Network {
    fn send(&mut self, tick: u32, packet: bytes::Bytes, sent: Sent) {
        self.sent += 1;
        let at = tick + self.delay + u32::try_from(self.rng.below(u64::from(self.jitter) + 1)).unwrap();
        let is_lost = self.rng.per_mille(self.lost_per_mille) || self.silence.contains(&at);
        if !is_lost {
            self.down.insert((at, self.sent), (packet, sent));
        }
        self.fates.insert((at + self.delay + 1, self.sent), (sent, !is_lost));
    }
}

impl Play {
    fn counters(&self) -> PredictionCounters {
        self.predictor.counters()
    }

    fn author(&mut self) {
        let (world, entity) = (&mut self.world, self.entity);
        let before = (world.get(entity).unwrap(), world.get(entity).unwrap());
        let (mut walker, spark) = step(before.0, before.1, input(self.seed, self.tick));
        if self.pushes.contains(&self.tick) {
            walker.at[0] += 3.0;
        }
        world.insert(entity, &walker).unwrap();
        match spark {
            Some(spark) => drop(world.insert(entity, &spark).unwrap()),
            None => drop(world.remove::<Spark>(entity).unwrap()),
        }
        world.commit(Tick(self.tick)).unwrap();
        self.truth.insert(self.tick, (world.get(entity).unwrap().unwrap(), world.get(entity).unwrap()));
        let now = RATE.begins(Tick(self.tick));
        while let Some((packet, sent)) = self.publisher.poll(&self.world, &mut self.encodings, now) {
            self.network.send(self.tick, packet, sent);
        }
    }

    fn carry(&mut self) {
        while let Some(entry) = self.network.fates.first_entry().filter(|entry| entry.key().0 <= self.tick) {
            let (sent, delivered) = entry.remove();
            if delivered {
                self.publisher.delivered(sent);
            } else {
                self.publisher.lost(sent);
            }
        }
        while let Some(entry) = self.network.down.first_entry().filter(|entry| entry.key().0 <= self.tick) {
            let (packet, _) = entry.remove();
            if let Outcome::Taken(applied) = self.replica.apply(packet).unwrap() {
                self.predictor.observe(self.replica.world(), &applied, false);
            }
        }
    }

    fn newest(&self) -> u32 {
        self.tick + self.lead
    }

    fn frame(&self) -> Frame {
        Frame { phase: 0.5, now: RATE.begins(Tick(self.tick)) }
    }

    fn member_step(&mut self, tick: u32) {
        let (predictor, entity) = (&mut self.predictor, self.entity);
        predictor.begin_step(Tick(tick));
        if let Some(before) = predictor.get::<Walker>(entity) {
            let spark = predictor.get(entity).unwrap();
            let (walker, spark) = step(before, spark, input(self.seed, tick));
            predictor.insert(entity, &walker).unwrap().unwrap();
            match spark {
                Some(spark) => drop(predictor.insert(entity, &spark).unwrap().unwrap()),
                None => drop(predictor.remove(entity, self.schema.find("spark").unwrap()).unwrap()),
            }
        }
        predictor.end_step();
    }

    fn reconcile(&mut self, newest: u32) {
        let (settled, frame) = (self.replica.settled(), self.frame());
        let rerun = self.predictor.reconcile(self.replica.world(), settled, Tick(newest), frame);
        if let Some(rerun) = rerun {
            self.reruns.push(rerun);
            for tick in rerun.first.0..=rerun.last.0 {
                self.member_step(tick);
            }
        }
    }

    /// Runs one tick of both; the member runs no step if it is stalled.
    fn turn(&mut self, is_stalled: bool) {
        self.tick += 1;
        self.author();
        self.carry();
        if !is_stalled {
            let newest = self.newest();
            self.reconcile(newest - 1);
            self.member_step(newest);
            if let Some(Some(walker)) = self.predictor.get::<Walker>(self.entity) {
                self.first.insert(newest, (walker, self.predictor.get(self.entity).unwrap()));
            }
        }
    }

    fn turns(&mut self, count: u32) {
        (0..count).for_each(|_| self.turn(false));
    }

    /// Ticks at which the first prediction differed from the authority's result.
    fn wrong(&self) -> Vec<u32> {
        let compared =
            self.first.iter().filter_map(|(tick, first)| Some((*tick, first, self.truth.get(tick)?)));
        compared.filter(|(_, first, truth)| first != truth).map(|(tick, ..)| tick).collect()
    }
}

#[test]
fn what_is_predicted_is_what_the_authority_has_when_nothing_interferes() {
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let [delay, jitter] = [5, 3].map(|bound| u32::try_from(rng.below(bound)).unwrap());
        let mut play = play(seed, delay, jitter, rng.below(80));
        play.turns(900);
        let counters = play.counters();
        assert_eq!(play.wrong(), [0; 0], "seed {seed}");
        assert_eq!((counters.corrections, counters.snaps), (0, 0), "seed {seed}: {counters:?}");
        assert!(counters.confirmed > 500, "seed {seed}: {counters:?}");
        assert!(play.first.len() > 880, "seed {seed}");
    }
}

#[test]
fn a_push_from_outside_costs_one_correction() {
    for seed in 0..24 {
        let mut play = play(seed, 3, 1, 0);
        play.pushes = vec![200, 300, 411];
        play.turns(600);
        let counters = play.counters();
        assert_eq!((counters.corrections, counters.snaps), (3, 0), "seed {seed}: {counters:?}");
        // From the push until the member received it.
        let wrong = play.wrong();
        assert!(
            wrong.iter().all(|tick| play.pushes.iter().any(|push| (*push..push + 12).contains(tick))),
            "{wrong:?}"
        );
        assert!(wrong.len() >= 3, "seed {seed}: nothing was pushed");
        assert!(counters.displacement_max > 2.9 && counters.displacement_max < 3.2, "{counters:?}");
    }
}

#[test]
fn a_push_is_corrected_once_for_each_lost_chance_at_most() {
    for seed in 0..24 {
        let mut play = play(seed, 2, 2, 50);
        play.pushes = (1..9).map(|push| push * 100).collect();
        play.turns(900);
        assert_eq!(play.counters().corrections, 8, "seed {seed}");
    }
}

/// After a stall of a minute the number of steps run is bounded, and soon after all predictions are right.
#[test]
fn threat_22_a_member_that_stalls_for_a_minute_runs_a_bounded_number_of_steps() {
    for seed in 0..8 {
        let mut play = play(seed, 2, 1, 20);
        play.turns(200);
        (0..1_800).for_each(|_| play.turn(true));
        play.reruns.clear();
        play.turns(1);
        let counters = play.counters();
        play.turns(300);
        let long = play.reruns.iter().map(|rerun| rerun.last.since(rerun.first)).max().unwrap_or(0);
        assert!(long < i32::try_from(REPLAY_TICKS_MAX).unwrap(), "seed {seed}: {:?}", play.reruns);
        assert!(play.reruns.len() <= 2, "seed {seed}: {:?}", play.reruns);
        assert!(play.counters().confirmed > counters.confirmed + 200, "seed {seed}");
        let newest = play.tick;
        assert!(play.wrong().iter().all(|tick| *tick < newest - 250), "seed {seed}");
    }
}

#[test]
fn after_a_silence_the_member_is_set_right_however_long_it_was() {
    for seed in 0..8 {
        let mut play = play(seed, 2, 1, 0);
        play.pushes = vec![300];
        play.network.silence = 250..1_000;
        play.turns(1_300);
        let long = play.reruns.iter().map(|rerun| rerun.last.since(rerun.first)).max().unwrap_or(0);
        assert!(long < i32::try_from(REPLAY_TICKS_MAX).unwrap(), "seed {seed}");
        assert_eq!(
            play.counters().corrections + play.counters().snaps,
            1,
            "seed {seed}: {:?}",
            play.counters()
        );
        assert!(play.wrong().iter().all(|tick| *tick < 1_010), "seed {seed}: {:?}", play.wrong());
    }
}

#[test]
fn threat_22_what_is_known_too_late_is_set_right_at_once_and_runs_nothing_again() {
    let mut play = play(5, 2, 0, 0);
    play.lead = REPLAY_TICKS_MAX + 10;
    play.pushes = vec![200];
    play.turns(400);
    assert!(play.counters().snaps > 0 && play.reruns.is_empty(), "{:?}", play.counters());
}

#[test]
fn an_entity_is_predicted_while_it_is_the_members_own() {
    let mut play = play(9, 2, 1, 0);
    play.turns(100);
    let id = play.schema.find("walker").unwrap();
    assert!(play.predictor.row(play.entity, id).is_some());
    play.world.set_owner(play.entity, Some(MemberId(8))).unwrap();
    play.turns(20);
    assert!(play.predictor.row(play.entity, id).is_none());
    assert!(play.predictor.insert(play.entity, &play.truth[&110].0).is_none());
    play.world.set_owner(play.entity, Some(ME)).unwrap();
    play.first.clear();
    play.turns(60);
    assert!(play.predictor.row(play.entity, id).is_some());
    assert_eq!((play.wrong(), play.counters().corrections), (vec![], 0));
    play.world.despawn(play.entity).unwrap();
    play.world.commit(Tick(play.tick + 1)).unwrap();
    let now = RATE.begins(Tick(play.tick));
    let (packet, _) = play.publisher.poll(&play.world, &mut play.encodings, now).unwrap();
    let Outcome::Taken(applied) = play.replica.apply(packet).unwrap() else { panic!("it is new") };
    play.predictor.observe(play.replica.world(), &applied, false);
    assert!(play.predictor.row(play.entity, id).is_none());
}

/// Runs the same with and without display: the rows are equal bit for bit, and what is shown moves without
/// jumps.
#[test]
fn nothing_that_is_smoothed_reaches_the_simulation() {
    let mut seen = play(4, 3, 0, 0);
    let mut unseen = play(4, 3, 0, 0);
    let (mut last, mut jumps, mut differed) = (None::<[f32; 2]>, 0, 0);
    for play in [&mut seen, &mut unseen] {
        play.pushes = vec![150];
    }
    for _ in 0..300 {
        seen.turn(false);
        unseen.turn(false);
        for part in 0..4u64 {
            let now = RATE.begins(Tick(seen.tick)) + Duration::from_micros(8_333 * part);
            let frame = Frame { phase: part as f64 / 4.0, now };
            let Some(Some(shown)) = seen.predictor.show::<Walker>(seen.entity, frame) else { continue };
            let jump = last.map_or(0.0, |last| (shown.at[0] - last[0]).hypot(shown.at[1] - last[1]));
            jumps += usize::from(jump > 0.5);
            differed += usize::from(seen.counters().corrections > 0 && jump > 0.15);
            last = Some(shown.at);
        }
        let rows = |play: &Play| {
            (play.predictor.get::<Walker>(play.entity), play.predictor.get::<Spark>(play.entity))
        };
        assert_eq!(rows(&seen), rows(&unseen));
    }
    assert_eq!((seen.counters(), seen.counters().corrections), (unseen.counters(), 1));
    // Three units in 100 ms are a quarter of a unit a frame, and the walker's own steps are a tenth.
    assert_eq!(jumps, 0, "what is shown jumped");
    assert!(differed > 5, "what was displaced was shown at once");
}

#[test]
fn what_was_displaced_has_faded_within_a_tenth_of_a_second_and_leaps_are_shown_at_once() {
    for (push, is_leap) in [(3.0f32, false), (60.0, true)] {
        let schema = Arc::new(Schema::builder().replicate::<Walker>().build().unwrap());
        let mut world = World::new(Arc::clone(&schema), RATE);
        let entity = world.spawn(Some(ME)).unwrap();
        let mask = schema.find("walker").unwrap().bit();
        let mut predictor = Predictor::new(schema, ME, mask, Smoothing::default());
        let mut walker = Walker { at: [0.0; 2], heading: 0.0, steps: 0 };
        let commit = |world: &mut World, predictor: &mut Predictor, tick: u32, walker: &Walker| {
            world.insert(entity, walker).unwrap();
            world.commit(Tick(tick)).unwrap();
            let applied = parlor_sync::world::Applied { changed: vec![(entity, mask)], ..Default::default() };
            predictor.observe(world, &applied, false);
        };
        commit(&mut world, &mut predictor, 1, &walker);
        let at = |ms| Frame { phase: 0.0, now: Instant::from_millis(ms) };
        assert_eq!(predictor.reconcile(&world, None, Tick(1), at(0)), None);
        walker.at[0] = push;
        commit(&mut world, &mut predictor, 2, &walker);
        assert_eq!(
            predictor.reconcile(&world, None, Tick(3), at(1_000)),
            Some(Rerun { first: Tick(3), last: Tick(3) })
        );
        predictor.begin_step(Tick(3));
        predictor.end_step();
        let mut shown = |ms| predictor.show::<Walker>(entity, at(ms)).unwrap().unwrap().at[0];
        let expected = if is_leap { [push; 3] } else { [0.0, push / 2.0, push] };
        for (ms, expected) in [1_000, 1_050, 1_100].into_iter().zip(expected) {
            assert!((shown(ms) - expected).abs() < 0.01, "{} at {ms} ms", shown(ms));
        }
        assert_eq!(predictor.get::<Walker>(entity), Some(Some(walker)));
    }
}
