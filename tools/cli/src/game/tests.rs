//! The rules as properties, over arbitrary inputs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::world::Publication;
use super::*;

/// What a transcript of calls is made of.
#[derive(Clone, Debug)]
enum Call {
    Join(u32),
    Leave(u32),
    Steps(u32, BTreeMap<u32, Input>),
}

fn dirs() -> impl Strategy<Value = Dir> {
    prop::sample::select(vec![Dir::Stay, Dir::Up, Dir::Down, Dir::Left, Dir::Right])
}

fn inputs() -> impl Strategy<Value = BTreeMap<u32, Input>> {
    let input = (dirs(), any::<bool>()).prop_map(|(dir, dash)| Input { dir, dash });
    prop::collection::btree_map(0..20u32, input, 0..20)
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        2 => (0..18u32).prop_map(Call::Join),
        1 => (0..18u32).prop_map(Call::Leave),
        6 => (1..90u32, inputs()).prop_map(|(count, inputs)| Call::Steps(count, inputs)),
    ];
    prop::collection::vec(call, 1..60)
}

fn run(seed: u64, calls: &[Call], mut after: impl FnMut(&mut World)) -> World {
    let mut world = World::new(seed);
    for call in calls {
        match call {
            Call::Join(id) => world.join(*id, &format!("player {id}")),
            Call::Leave(id) => world.leave(*id),
            Call::Steps(count, inputs) => (0..*count).for_each(|_| {
                world.step(inputs);
                after(&mut world);
            }),
        }
        after(&mut world);
    }
    world
}

fn wealth(scene: &Scene) -> u32 {
    let carried: u32 = scene.players.values().map(|bird| bird.state.score).sum();
    carried + scene.gems.values().map(|gem| gem.worth).sum::<u32>()
}

fn inside(x: f32, y: f32) -> bool {
    (0.0..=FIELD_WIDTH).contains(&x) && (0.0..=FIELD_HEIGHT).contains(&y)
}

/// A room's keyed state in a map.
#[derive(Default)]
struct Map(BTreeMap<String, serde_json::Value>);

impl Map {
    fn take(&mut self, publication: Publication) {
        for key in publication.gone {
            assert!(self.0.remove(&key).is_some(), "{key} was never published");
        }
        self.0.extend(
            publication.set.into_iter().map(|(key, value)| (key, serde_json::to_value(value).unwrap())),
        );
    }

    fn get<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.0.get(key)?.clone()).ok()
    }
}

impl Source for Map {
    fn keys(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
    fn player(&self, key: &str) -> Option<PlayerState> {
        self.get(key)
    }
    fn badge(&self, key: &str) -> Option<Badge> {
        self.get(key)
    }
    fn gem(&self, key: &str) -> Option<GemState> {
        self.get(key)
    }
    fn round(&self, key: &str) -> Option<RoundState> {
        self.get(key)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_and_no_gem_leaves_the_field(seed: u64, calls in calls()) {
        run(seed, &calls, |world| {
            let scene = world.scene();
            for Bird { state, .. } in scene.players.values() {
                assert!(inside(state.x, state.y), "{state:?}");
            }
            for gem in scene.gems.values() {
                assert!(inside(gem.x, gem.y) && gem.worth > 0, "{gem:?}");
            }
            assert!(scene.gems.len() < 250, "the room's keys stay bounded");
        });
    }

    #[test]
    fn the_same_seed_and_calls_give_the_same_world(seed: u64, calls in calls()) {
        let publish = |mut world: World| serde_json::to_string(&world.publish().set).unwrap();
        prop_assert_eq!(publish(run(seed, &calls, |_| {})), publish(run(seed, &calls, |_| {})));
    }

    #[test]
    fn a_reader_sees_what_the_authority_sees(seed: u64, calls in calls()) {
        let mut map = Map::default();
        let world = run(seed, &calls, |world| map.take(world.publish()));
        prop_assert_eq!(Scene::read(&map, world.tick()), world.scene());
    }

    #[test]
    fn every_player_has_its_own_glyph_and_colour(seed: u64, calls in calls()) {
        run(seed, &calls, |world| {
            let scene = world.scene();
            let glyphs: std::collections::BTreeSet<_> = scene.players.values().map(|bird| bird.badge.glyph).collect();
            let slots: std::collections::BTreeSet<_> = scene.players.values().map(|bird| bird.badge.slot).collect();
            assert_eq!((glyphs.len(), slots.len()), (scene.players.len(), scene.players.len()));
        });
    }
}

fn toward(scene: &Scene, from: u32, to: u32) -> Input {
    let (a, b) = (scene.players[&from].state, scene.players[&to].state);
    let dir = match (b.x - a.x, b.y - a.y) {
        (x, y) if x.abs() > y.abs() && x > 0.0 => Dir::Right,
        (x, y) if x.abs() > y.abs() => Dir::Left,
        (_, y) if y > 0.0 => Dir::Down,
        _ => Dir::Up,
    };
    Input { dir, dash: true }
}

/// A chase in which player 0 dashes at player 1, who carries gems; calls `check` with the scenes around each tick.
fn chase(seed: u64, mut check: impl FnMut(&Scene, &Scene)) {
    let mut world = World::new(seed);
    world.join(0, "hunter");
    world.join(1, "bot");
    let mut bot = Bot::new(seed, 0.3);
    for _ in 0..50 * HZ {
        let before = world.scene();
        let inputs = BTreeMap::from([(0, toward(&before, 0, 1)), (1, bot.think(&before, 1))]);
        world.step(&inputs);
        check(&before, &world.scene());
    }
}

#[test]
fn a_knock_scatters_gems_and_loses_none() {
    let mut knocks = 0;
    for seed in 0..6 {
        chase(seed, |before, after| {
            let (old, new) = (before.players[&1].state, after.players[&1].state);
            let appeared = wealth(after).wrapping_sub(wealth(before));
            assert!(
                [0, 1, 5].contains(&appeared) || before.round != after.round,
                "only new gems add to the wealth: {appeared}"
            );
            if new.motion == Motion::Dizzy && old.motion != Motion::Dizzy && old.score > 2 {
                knocks += 1;
                assert!(new.safe && new.score < old.score);
            }
        });
    }
    assert!(knocks > 5, "the chase must show knocks: {knocks}");
}

#[test]
fn who_was_just_knocked_is_safe() {
    let mut safe_since = None;
    chase(3, |before, after| {
        let (old, new) = (before.players[&1].state, after.players[&1].state);
        if new.safe && !old.safe {
            safe_since = Some(after.tick);
        }
        if old.safe {
            assert!(new.score >= old.score, "no second knock while safe");
        }
        if old.safe && !new.safe {
            assert_eq!(after.tick - safe_since.unwrap(), HZ * 3 / 2);
        }
    });
    assert!(safe_since.is_some());
}

#[test]
fn a_leaver_leaves_its_gems() {
    let mut world = World::new(5);
    world.join(0, "Ada");
    world.join(1, "Bo");
    let mut bot = Bot::new(5, 1.0);
    for _ in 0..20 * HZ {
        let input = bot.think(&world.scene(), 1);
        world.step(&BTreeMap::from([(1, input)]));
    }
    let before = world.scene();
    assert!(before.players[&1].state.score > 5);
    world.leave(1);
    let after = world.scene();
    assert!(!after.players.contains_key(&1));
    assert_eq!(wealth(&after), wealth(&before));
    assert!(world.publish().set.iter().all(|(key, _)| key != "p/1" && key != "n/1"));
}

#[test]
fn a_round_begins_with_two_ends_after_a_minute_and_begins_again() {
    let mut world = World::new(9);
    let steps = |world: &mut World, count: u32| (0..count).for_each(|_| world.step(&BTreeMap::new()));
    world.join(0, "Ada");
    steps(&mut world, 100);
    assert_eq!(world.scene().round, RoundState::default(), "one alone waits");
    world.join(1, "Bo");
    steps(&mut world, 1);
    let round = world.scene().round;
    assert_eq!((round.number, round.phase, round.ends_at), (1, Phase::Playing, world.tick() + 60 * HZ));
    world.join(2, "late");
    let mut bot = Bot::new(1, 1.0);
    for _ in 0..60 * HZ {
        assert_eq!(world.scene().round, round, "the round is published once");
        let input = bot.think(&world.scene(), 2);
        world.step(&BTreeMap::from([(2, input)]));
    }
    let over = world.scene();
    assert_eq!((over.round.phase, &over.round.winners[..]), (Phase::Over, &[2][..]), "the late one may win");
    assert_eq!(over.round.best, over.players[&2].state.score);
    assert!(over.gems.is_empty());
    steps(&mut world, 5 * HZ);
    assert_eq!((world.scene().round.number, world.scene().round.phase), (2, Phase::Playing));
    assert!(
        world.scene().players.values().all(|bird| bird.state.score == 0) && !world.scene().gems.is_empty()
    );
    world.leave(1);
    world.leave(2);
    steps(&mut world, 66 * HZ);
    assert_eq!((world.scene().round.number, world.scene().round.phase), (2, Phase::Waiting));
}

#[test]
fn a_tie_has_two_winners_and_an_empty_round_none() {
    let mut world = World::new(2);
    world.join(0, "Ada");
    world.join(1, "Bo");
    world.step(&BTreeMap::new());
    let mut scene = world.scene();
    for score in [0, 7] {
        scene.players.values_mut().for_each(|bird| bird.state.score = score);
        scene.gems.clear();
        scene.tick = scene.round.ends_at.wrapping_sub(1);
        let mut end = World::resume(1, &scene);
        end.step(&BTreeMap::new());
        let round = end.scene().round;
        assert_eq!((round.winners.len(), round.best), (if score == 0 { 0 } else { 2 }, score));
    }
}

#[test]
fn a_still_magpie_changes_nothing_and_a_late_input_flies_on() {
    let mut world = World::new(4);
    world.join(0, "Ada");
    let state = |world: &World| world.scene().players[&0].state;
    let start = state(&world);
    world.step(&BTreeMap::new());
    assert_eq!((state(&world).x, state(&world).y), (start.x, start.y));
    world.step(&BTreeMap::from([(0, Input { dir: Dir::Left, dash: false })]));
    let first = state(&world).x;
    world.step(&BTreeMap::new());
    assert!(state(&world).x < first);
    for _ in 0..30 * HZ {
        world.step(&BTreeMap::from([(0, Input::default())]));
    }
    let still = state(&world);
    world.step(&BTreeMap::from([(0, Input::default())]));
    assert_eq!(state(&world), still);
}

#[test]
fn ticks_wrap_around() {
    let mut world = World::new(8);
    world.set_tick(u32::MAX - 30 * HZ);
    world.join(0, "Ada");
    world.join(1, "Bo");
    (0..59 * HZ).for_each(|_| world.step(&BTreeMap::new()));
    assert_eq!(world.scene().round.phase, Phase::Playing);
    (0..2 * HZ).for_each(|_| world.step(&BTreeMap::new()));
    assert_eq!(world.scene().round.phase, Phase::Over);
}

#[test]
fn a_scene_survives_what_another_machine_may_say() {
    let mut map = Map::default();
    for (key, text) in [
        (
            "p/1",
            r#"{"x":1e30,"y":-5,"heading":"Up","motion":"Dashing","safe":false,"score":4294967295,"dash_ready_at":0}"#,
        ),
        ("p/2", "17"),
        ("p/-1", "{}"),
        ("g/70000", "{}"),
        ("g/1", r#"{"x":1e300,"y":1,"worth":4294967295}"#),
        ("g/2", r#"{"x":59,"y":1,"worth":4294967295}"#),
        ("round", "[]"),
        ("other", "1"),
    ] {
        map.0.insert(key.into(), serde_json::from_str(text).unwrap());
    }
    let scene = Scene::read(&map, 3);
    assert_eq!(scene.players.keys().collect::<Vec<_>>(), [&1]);
    assert_eq!((scene.players[&1].state.x, scene.players[&1].state.y), (FIELD_WIDTH, 0.0));
    assert_eq!(scene.players[&1].badge.name, "player 1");
    let mut world = World::resume(1, &scene);
    (0..100).for_each(|_| world.step(&BTreeMap::new()));
    world.leave(1);
    world.step(&BTreeMap::new());
}
