use super::*;
use crate::audience::{Audience, Viewer};
use crate::keyed::{Hints, Interp, KeyReader, Keys};
use crate::limits::{ARRIVALS_MAX, BUFFER_DELAY_MAX, HISTORY_DEPTH_MAX};
use crate::schema::Schema;
use crate::value::{Map, Value};
use crate::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, World};
use core::time::Duration;
use parlor_proto::{Instant, MemberId, TickRate};
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

const TICK: Duration = Duration::from_millis(50);

/// A host that publishes directly into a playout, by default without delay.
struct Stage {
    world: World,
    keys: Keys,
    publisher: Publisher,
    replica: Replica,
    reader: KeyReader,
    playout: Playout,
}

impl Stage {
    fn new() -> Self {
        let (schema, rate) = (Arc::new(Schema::default()), TickRate::new(20).unwrap());
        Stage {
            world: World::new(Arc::clone(&schema), rate),
            keys: Keys::new(),
            publisher: Publisher::new(Viewer::Member(MemberId(1)), PublisherConfig::default()),
            replica: Replica::new(schema, rate),
            reader: KeyReader::new(),
            playout: Playout::new(rate),
        }
    }

    fn commit(&mut self, server_ms: u64, arrival_ms: u64) {
        let (rate, now) = (self.world.rate(), Instant::from_millis(arrival_ms));
        self.keys.close(&mut self.world).unwrap();
        self.world.commit(rate.tick_at(Instant::from_millis(server_ms))).unwrap();
        let polled = self.publisher.poll(&self.world, &mut Encodings::default(), now);
        let Some((bytes, sent)) = polled else { return };
        let Ok(Outcome::Taken(applied)) = self.replica.apply(bytes) else { panic!("not taken") };
        self.publisher.delivered(sent);
        let changes = self.reader.observe(self.replica.world(), &applied);
        self.playout.observe(now, &applied, &changes, &self.reader);
    }

    fn set(&mut self, at_ms: u64, value: impl Into<Value>) {
        self.keys.set(&mut self.world, "x", &value.into(), Audience::All).unwrap();
        self.commit(at_ms, at_ms);
    }

    fn x(&self, at_ms: u64) -> Option<Value> {
        self.playout.value_at("x", Instant::from_millis(at_ms)).map(Cow::into_owned)
    }
}

fn map(pairs: &[(&str, Value)]) -> Value {
    Value::Map(Map::from_pairs(pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect()).unwrap())
}

fn half(a: impl Into<Value>, b: impl Into<Value>, hints: &Hints) -> String {
    interpolate(&a.into(), &b.into(), 0.5, hints, WholeNumbers::StayWhole).to_string()
}

#[test]
fn each_kind_moves_in_its_way() {
    let none = Hints::none();
    assert_eq!(half(1.0, 2.0, &none), "1.5");
    assert_eq!(half(1, 4, &none), "3");
    assert_eq!(half(1, 4, &none.snap("").unwrap()), "1");
    assert_eq!(half(1, 2.0, &none), "1.5");
    let real =
        |hints: &Hints| interpolate(&1.into(), &4.into(), 0.5, hints, WholeNumbers::MoveAsReals).to_string();
    assert_eq!(real(&none), "2.5", "with one kind of number a whole one is nothing special");
    assert_eq!(real(&none.snap("").unwrap()), "1");
    assert_eq!(half("a", "b", &none), r#""a""#);
    assert_eq!(half(true, 1.0, &none), "true");
    let list = |items: &[f64]| Value::List(items.iter().map(|item| Value::Float(*item)).collect());
    assert_eq!(half(list(&[0.0, 1.0]), list(&[1.0, 2.0]), &none), "[0.5,1.5]");
    assert_eq!(half(list(&[0.0]), list(&[1.0, 2.0]), &none), "[0.0]");
    let (a, b) = (map(&[("x", 0.0.into()), ("y", 1.0.into())]), map(&[("x", 1.0.into()), ("z", 2.0.into())]));
    assert_eq!(half(a.clone(), b.clone(), &none), r#"{"x":0.5,"y":1.0}"#);
    assert_eq!(interpolate(&a, &b, 1.0, &none, WholeNumbers::StayWhole), b);
    assert_eq!(interpolate(&a, &b, f64::NAN, &none, WholeNumbers::StayWhole), a);
}

#[test]
fn hints_reach_the_parts_they_name() {
    let degrees = Interp::Angle { period: 360.0 };
    let hints = Hints::none()
        .with("wheels.*.turn", degrees)
        .and_then(|it| it.with("wheels.1.turn", Interp::Snap))
        .and_then(|it| it.with("score", Interp::Linear))
        .and_then(|it| it.snap("pos"))
        .and_then(|it| it.with("pos.y", Interp::Linear))
        .unwrap();
    let wheel = |turn: f64| map(&[("turn", turn.into())]);
    let tank = |turn: f64, score: i64, at: f64| {
        let wheels = Value::List(vec![wheel(turn), wheel(turn)]);
        map(&[
            ("wheels", wheels),
            ("score", score.into()),
            ("pos", map(&[("x", at.into()), ("y", at.into())])),
        ])
    };
    assert_eq!(
        half(tank(350.0, 10, 0.0), tank(30.0, 20, 1.0), &hints),
        r#"{"pos":{"x":0.0,"y":0.5},"score":15,"wheels":[{"turn":370.0},{"turn":350.0}]}"#
    );
    let whole = Hints::none().with("", degrees).unwrap();
    assert_eq!(half(10.0, 350.0, &whole), "0.0");
    assert_eq!(half(10, 350, &whole), "0");
    assert_eq!(half(f64::MAX, f64::MIN, &whole), Value::Float(f64::MAX).to_string());
}

#[test]
fn values_are_shown_between_their_samples() {
    let mut stage = Stage::new();
    stage.set(1_000, 0.0);
    stage.set(1_100, 10.0);
    let shown = [900, 1_000, 1_025, 1_050, 1_100, 5_000].map(|at| stage.x(at).unwrap());
    assert_eq!(shown, [0.0, 0.0, 2.5, 5.0, 10.0, 10.0].map(Value::Float));
    assert_eq!(stage.playout.value_at("y", Instant::ZERO), None);
}

#[test]
fn a_value_that_stood_still_does_not_creep() {
    let mut stage = Stage::new();
    stage.set(1_000, 0.0);
    stage.set(3_000, 10.0);
    assert_eq!(stage.x(2_900), Some(Value::Float(0.0)));
    assert_eq!(stage.x(2_975), Some(Value::Float(5.0)));
}

#[test]
fn another_key_of_the_same_name_is_snapped_to() {
    let mut stage = Stage::new();
    stage.set(1_000, 0.0);
    // Removed and set again: the same name, another key.
    stage.keys.remove(&mut stage.world, "x").unwrap();
    stage.keys.close(&mut stage.world).unwrap();
    stage.set(1_100, 10.0);
    assert_eq!(stage.x(1_099), Some(Value::Float(0.0)));
    assert_eq!(stage.x(1_100), Some(Value::Float(10.0)));
    stage.keys.remove(&mut stage.world, "x").unwrap();
    stage.commit(1_200, 1_200);
    assert_eq!((stage.x(1_100), stage.playout.keys().count()), (None, 0));
}

#[test]
fn nothing_is_smeared_across_a_transfer() {
    let mut stage = Stage::new();
    stage.set(1_000, 0.0);
    stage.set(1_050, 1.0);
    stage.playout.render_time(Instant::from_millis(1_050)).unwrap();
    stage.publisher.begin_transfer();
    stage.set(1_100, 100.0);
    assert_eq!(stage.x(1_075), Some(Value::Float(100.0)));
    stage.set(1_150, 101.0);
    assert_eq!(stage.x(1_125), Some(Value::Float(100.5)));
    assert_eq!(stage.playout.metrics().history_depth, 2);
}

#[test]
fn a_long_stall_grows_nothing() {
    let mut stage = Stage::new();
    for n in 0..1_000 {
        stage.set(n * 50, f64::from(u32::try_from(n).unwrap()));
    }
    assert_eq!(stage.playout.metrics().history_depth, HISTORY_DEPTH_MAX);
    // The next playout drops the samples that are no longer needed.
    stage.playout.render_time(Instant::from_millis(50_000)).unwrap();
    stage.set(50_050, 0.5);
    assert!(stage.playout.metrics().history_depth <= 4, "{:?}", stage.playout.metrics());

    let mut timeline = Timeline::new(TICK);
    (0..10_000).for_each(|n| timeline.arrived(Instant::from_millis(n), Instant::ZERO));
    assert!(format!("{timeline:?}").matches("Arrival ").count() <= ARRIVALS_MAX);
}

#[test]
fn samples_nearly_always_lie_around_the_moment_shown() {
    // Updates every 50 ms take 80 to 120 ms; room time and local time differ by an hour.
    let mut timeline = Timeline::new(TICK);
    let (hour, mut frames, mut starved) = (3_600_000, 0, 0);
    let mut arrivals: Vec<(u64, u64)> =
        (0..400u64).map(|n| (hour + n * 50 + 80 + n * 7_919 % 41, n * 50)).collect();
    arrivals.sort_unstable();
    let mut waiting = arrivals.into_iter().peekable();
    for now in (hour + 80..hour + 20_000).step_by(16) {
        while let Some((_, server)) = waiting.next_if(|(arrival, _)| *arrival <= now) {
            timeline.arrived(Instant::from_millis(now), Instant::from_millis(server));
        }
        timeline.render_time(Instant::from_millis(now));
        if now > hour + 2_000 {
            frames += 1;
            starved += u32::from(timeline.buffered() == Duration::ZERO);
        }
    }
    assert!(starved * 20 < frames, "{starved} of {frames}");
    let delay = timeline.buffer_delay();
    assert!(
        delay >= TICK + Duration::from_millis(30) && delay <= TICK + Duration::from_millis(60),
        "{delay:?}"
    );
    assert!(timeline.jitter() <= Duration::from_millis(56), "{:?}", timeline.jitter());
}

#[test]
fn the_delay_grows_fast_and_shrinks_slowly() {
    let mut timeline = Timeline::new(TICK);
    let mut run = |ticks: core::ops::Range<u64>, late: u64| {
        for n in ticks {
            let now = Instant::from_millis(n * 50 + if n % 3 == 0 { late } else { 0 });
            timeline.arrived(now, Instant::from_millis(n * 50));
            timeline.render_time(now);
        }
        timeline.buffer_delay().as_millis()
    };
    assert_eq!(run(0..40, 0), 50);
    assert!(run(40..60, 200) > 200, "a second is enough to grow");
    assert!(run(60..62, 0) > 200);
    let shrinking = run(62..150, 0);
    assert!(shrinking > 100, "{shrinking}");
    assert_eq!(run(150..700, 0), 50);
    assert!(run(700..1_000, 5_000) <= BUFFER_DELAY_MAX.as_millis());
}

/// The delay after `ticks` updates with every tenth lost, each later than the fastest by 0 to `jitter_ms`.
fn delay_ms(ticks: u64, jitter_ms: u64, loses: bool) -> (u128, u128) {
    let mut timeline = Timeline::new(TICK);
    for tick in 0..ticks {
        let sent_ms = 1_000 + tick * 50;
        let now = Instant::from_millis(7_000 + sent_ms + tick * 7 % (jitter_ms + 1));
        if !(loses && tick % 10 == 9) {
            timeline.arrived(now, Instant::from_millis(sent_ms));
        }
        timeline.render_time(now);
    }
    (timeline.buffer_delay().as_millis(), timeline.jitter().as_millis())
}

#[test]
fn what_is_lost_makes_the_delay_longer_where_the_jitter_allows_to_wait_for_what_follows() {
    for jitter_ms in [0, 5, 20, 22, 40, 60] {
        let ((even, _), (delay, jitter)) = (delay_ms(600, jitter_ms, false), delay_ms(600, jitter_ms, true));
        assert!(
            even <= 50 + jitter + jitter / 4 + 1,
            "{even} ms without loss and with {jitter_ms} ms jitter"
        );
        // Two ticks and the jitter cover everything. If even the fastest is not in time, a longer delay does
        // not help.
        let (covering, most) = (2 * 50 + jitter, 50 + 2 * jitter);
        let expected = if most < 2 * 50 { even } else { covering.min(most) };
        assert!(
            delay.abs_diff(expected) <= 8 && delay >= even,
            "{delay} ms, not {expected}, with {jitter_ms} ms jitter"
        );
    }
}

#[test]
fn updates_that_come_two_ticks_apart_are_not_taken_for_lost_ones() {
    let mut timeline = Timeline::new(TICK);
    for tick in 0..300u64 {
        let sent_ms = 1_000 + tick * 2 * 50;
        timeline.arrived(Instant::from_millis(sent_ms + tick * 8 % 21), Instant::from_millis(sent_ms));
        timeline.render_time(Instant::from_millis(sent_ms + 21));
    }
    let jitter = timeline.jitter();
    assert!((18..=20).contains(&jitter.as_millis()), "{jitter:?}");
    assert_eq!(timeline.buffer_delay(), TICK + 2 * jitter);
}

fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![-1e3..1e3, any::<f64>().prop_filter("finite", |it| it.is_finite())]
}

proptest! {
    #[test]
    fn a_result_lies_between_its_ends(a in floats(), b in floats(), c: i64, d: i64, t in -0.5..1.5) {
        let Value::Float(between) = interpolate(&a.into(), &b.into(), t, &Hints::none(), WholeNumbers::StayWhole) else { panic!() };
        prop_assert!(a.min(b) <= between && between <= a.max(b));
        let linear = Hints::none().with("", Interp::Linear).unwrap();
        let Value::Int(between) = interpolate(&c.into(), &d.into(), t, &linear, WholeNumbers::StayWhole) else { panic!() };
        prop_assert!(c.min(d) <= between && between <= c.max(d));
    }

    #[test]
    fn an_angle_takes_the_shorter_way(a in -720.0..720.0, b in -720.0..720.0, t in 0.0..0.999) {
        let hints = Hints::none().with("", Interp::Angle { period: 360.0 }).unwrap();
        let Value::Float(between) = interpolate(&Value::Float(a), &Value::Float(b), t, &hints, WholeNumbers::StayWhole) else { panic!() };
        let apart = |a: f64, b: f64| { let d = (b - a).rem_euclid(360.0); d.min(360.0 - d) };
        prop_assert!((apart(a, between) - apart(a, b) * t).abs() < 1e-6);
        prop_assert!((apart(between, b) - apart(a, b) * (1.0 - t)).abs() < 1e-6);
    }

    #[test]
    fn time_never_runs_backwards(
        steps in proptest::collection::vec((0u64..3_000, any::<bool>(), prop_oneof![0u64..400, any::<u64>()]), 1..200)
    ) {
        let mut timeline = Timeline::new(TICK);
        let (mut now, mut last) = (Instant::from_millis(1_000_000), None);
        for (elapsed_ms, arrives, late_ms) in steps {
            now += Duration::from_millis(elapsed_ms);
            if arrives {
                timeline.arrived(now, now - Duration::from_millis(late_ms));
            }
            let shown = timeline.render_time(now);
            prop_assert!(shown >= last);
            prop_assert!(shown.is_some() == (timeline.buffer_delay() > Duration::ZERO || last.is_some() || arrives));
            last = shown;
        }
    }
}
