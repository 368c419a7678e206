//! Senders and remote states together, over a link with latency.

use super::added::CUTS;
use super::reckoner::Reckoner;
use super::*;
use crate::schema::{Body, Kind, Range, RowWriter, Schema, Transform};
use bytes::Bytes;
use core::time::Duration;
use parlor_proto::{Instant, Tick, TickRate};
use proptest::prelude::*;
use std::sync::Arc;

const RATE: TickRate = TickRate::DEFAULT;
const POSITION: Range = Range::new(-512.0, 512.0, 1.0 / 512.0);
const TOLERANCE: f64 = 0.05;

fn body() -> Kind {
    let (velocity, spin) = (Range::new(-64.0, 64.0, 1.0 / 64.0), Range::new(-16.0, 16.0, 1.0 / 64.0));
    Kind::Body { position: POSITION, rotation_bits: 11, velocity, spin }
}

fn template(kind: Kind) -> Template {
    let tolerance = Tolerance::off_by(TOLERANCE).turned_by(0.05).jump(20.0);
    Template::builder("it").field("it", kind, tolerance).build().expect("it is in order")
}

/// A sender's work in each step, without a world.
struct Sender {
    form: Arc<Form>,
    reckoner: Reckoner,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
    sent: usize,
}

impl Sender {
    fn new(template: Template) -> Self {
        let form = Arc::clone(template.form());
        let (lanes, blobs) = form.component().rest_row();
        Sender { form, reckoner: Reckoner::new(template, RATE), lanes, blobs, sent: 0 }
    }

    /// Sets the state at `tick`. Returns whether it is sent.
    fn step(&mut self, tick: u32, set: impl FnOnce(&mut RowWriter<'_>)) -> bool {
        let mut row = RowWriter::new(self.form.component(), &mut self.lanes, &mut self.blobs);
        set(&mut row);
        row.finish().expect("it fits");
        let is_cut = self.reckoner.look(Tick(tick), &self.lanes, &self.blobs, false);
        if is_cut {
            let cut = &mut self.lanes[self.form.cut_lane()];
            *cut = (*cut + 1) % CUTS;
        } else if !self.reckoner.is_due(Tick(tick), &self.lanes, &self.blobs) {
            return false;
        }
        self.reckoner.write_rates(&mut self.lanes, &mut self.blobs);
        self.lanes[self.form.beat_lane()] ^= 1;
        self.reckoner.sent(Tick(tick), &self.lanes, &self.blobs);
        self.sent += 1;
        true
    }

    fn show(&self, remote_state: &mut RemoteState, tick: u32, late: Duration) {
        assert!(remote_state.observe(at(tick), &self.lanes, &self.blobs, at(tick) + late));
    }
}

fn at(tick: u32) -> Instant {
    Instant::from_micros(u64::from(tick) * 1_000_000 / u64::from(RATE.hz()) + 1)
}

fn x(state: &State) -> f64 {
    state.row().field(0).numbers()[0]
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// A walk with occasional changes of acceleration.
#[derive(Clone, Copy, Default)]
struct Walker {
    position: [f64; 3],
    velocity: [f64; 3],
}

impl Walker {
    fn step(&mut self, push: [f64; 3]) {
        for ((position, velocity), push) in self.position.iter_mut().zip(&mut self.velocity).zip(push) {
            *velocity = (*velocity + push / 30.0).clamp(-8.0, 8.0);
            *position += *velocity / 30.0;
        }
    }
}

#[derive(Clone, Copy)]
struct Numbers<'a>(&'a [f64]);

impl crate::schema::FieldValue for Numbers<'_> {
    fn fits(_: &Kind) -> bool {
        true
    }

    fn write(&self, field: &mut crate::schema::FieldWriter<'_>) -> Result<(), crate::schema::FieldFault> {
        field.numbers(self.0)
    }

    fn read(_: &crate::schema::FieldReader<'_>) -> Self {
        Numbers(&[])
    }
}

/// The numbers of `kind` for a walker that faces its direction.
fn numbers(kind: &Kind, walker: &Walker) -> Vec<f64> {
    let [x, y, z] = walker.position;
    let half = x.sin() / 2.0;
    let rotation = [0.0, 0.0, half.sin(), half.cos()];
    let turning = walker.velocity[0] * x.cos();
    match kind {
        Kind::Float { .. } | Kind::Angle { .. } => vec![x],
        Kind::Vector { .. } => vec![x, y, z],
        Kind::UnitVector { .. } => vec![x.cos(), x.sin(), 0.5],
        Kind::Rotation { .. } => rotation.to_vec(),
        Kind::Transform { .. } => [&[x, y, z][..], &rotation].concat(),
        _ => [&[x, y, z][..], &rotation, &walker.velocity, &[0.0, 0.0, turning]].concat(),
    }
}

fn kinds() -> [Kind; 7] {
    [
        body(),
        Kind::Transform { position: POSITION, rotation_bits: 11 },
        Kind::vector3(-512.0, 512.0, 1.0 / 512.0),
        Kind::float(-512.0, 512.0, 1.0 / 512.0),
        Kind::angle(4_096),
        Kind::unit_vector(12),
        Kind::rotation(11),
    ]
}

proptest! {
    /// With the sent states received, the shown state is never further off than its tolerance.
    #[test]
    fn t6_others_never_see_it_further_off_than_tolerated(
        pushes in proptest::collection::vec((proptest::array::uniform3(-6.0f64..6.0), 1u32..40), 1..12),
        kind in 0usize..7,
    ) {
        let kind = kinds()[kind].clone();
        let mut sender = Sender::new(template(kind.clone()));
        let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
        let motion = motion::Motion::new(sender.form.component());
        let (mut walker, mut tick) = (Walker::default(), 0);
        for (push, steps) in pushes {
            for _ in 0..steps {
                tick += 1;
                walker.step(push);
                let truth = numbers(&kind, &walker);
                if sender.step(tick, |row| row.set(0, &Numbers(&truth))) {
                    sender.show(&mut remote_state, tick, Duration::ZERO);
                }
                let seen = remote_state.raw_at(at(tick)).expect("the first step was sent");
                let mut exact = Vec::new();
                motion::numbers_of(sender.form.component(), &sender.lanes, &sender.blobs, &mut exact);
                let off = motion.deviation(0, &seen.numbers, &exact);
                prop_assert!(!off.is_real || (off.off_by <= TOLERANCE + 1e-4 && off.turned_by <= 0.05 + 1e-4),
                    "{off:?} at step {tick}: {seen:?}");
            }
        }
    }

    /// The shown state moves without jumps, however late and wrong the samples are.
    #[test]
    fn t7_errors_are_blended_away(
        pushes in proptest::collection::vec((proptest::array::uniform3(-20.0f64..20.0), 1u32..20), 2..10),
        late_ms in 0u64..200, delay_ms in 0u64..150,
    ) {
        let kind = Kind::vector3(-512.0, 512.0, 1.0 / 512.0);
        let mut sender = Sender::new(template(kind.clone()));
        let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
        let (mut walker, mut tick, mut under_way) = (Walker::default(), 0, std::collections::VecDeque::new());
        let (mut shown, mut now) = (None::<Vec<f64>>, at(1));
        for (push, steps) in pushes {
            for _ in 0..steps {
                tick += 1;
                walker.step(push);
                if sender.step(tick, |row| row.set(0, &Numbers(&walker.position))) {
                    under_way.push_back((tick, sender.lanes.clone(), sender.blobs.clone()));
                }
                while now < at(tick + 1) {
                    now += Duration::from_millis(3);
                    let arrived = |sent: &u32| at(*sent) + Duration::from_millis(late_ms) <= now;
                    while under_way.front().is_some_and(|(sent, ..)| arrived(sent)) {
                        let (sent, lanes, blobs) = under_way.pop_front().unwrap();
                        remote_state.observe(at(sent), &lanes, &blobs, now);
                    }
                    let Some(state) = remote_state.state_at(now - Duration::from_millis(delay_ms)) else { continue };
                    if let Some(before) = shown.replace(state.numbers[..3].to_vec()) {
                        // 3 ms at 14 m/s on three axes are 42 mm; and 3% of an error of some metres are
                        // blended out.
                        let moved = distance(&before, &state.numbers[..3]);
                        prop_assert!(moved < 0.35, "it leapt by {moved} m at {now}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_moves_steadily_is_sent_rarely_and_what_stands_still_never() {
    let mut sender = Sender::new(template(body()));
    let moving = |tick: u32| Body {
        position: [tick as f32 / 10.0, 0.0, 0.0],
        velocity: [3.0, 0.0, 0.0],
        ..Body::default()
    };
    for tick in 1..=300 {
        sender.step(tick, |row| row.set(0, &moving(tick)));
    }
    assert!((19..=22).contains(&sender.sent), "ten seconds of steady motion are {} states", sender.sent);
    let (sent, still) = (sender.sent, Body { velocity: [0.0; 3], ..moving(300) });
    for tick in 301..=900 {
        sender.step(tick, |row| row.set(0, &still));
    }
    assert!(sender.sent <= sent + 1, "standing still is told once");
}

#[test]
fn what_moves_steadily_never_stands_still_because_the_next_state_is_under_way() {
    let late = Duration::from_millis(400);
    let mut sender = Sender::new(template(Kind::vector3(-512.0, 512.0, 1.0 / 512.0)));
    let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
    let mut under_way = std::collections::VecDeque::new();
    let mut before = None;
    for tick in 1..=300u32 {
        if sender.step(tick, |row| row.set(0, &[tick as f32 / 10.0, 0.0, 0.0])) {
            under_way.push_back((tick, sender.lanes.clone(), sender.blobs.clone()));
        }
        while let Some((sent, lanes, blobs)) =
            under_way.pop_front_if(|(sent, ..)| at(*sent) + late <= at(tick))
        {
            remote_state.observe(at(sent), &lanes, &blobs, at(tick));
        }
        let Some(seen) = remote_state.state_at(at(tick)).map(|state| x(&state)) else { continue };
        if let Some(before) = before.replace(seen).filter(|_| tick > 30) {
            assert!((0.05..0.15).contains(&(seen - before)), "from {before} to {seen} at step {tick}");
        }
    }
}

#[test]
fn others_are_told_that_something_stands_where_it_was_last_seen() {
    let mut sender = Sender::new(template(Kind::vector3(-512.0, 512.0, 1.0 / 512.0)));
    let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
    // The lanes of step 10 equal those of step 9: only the beat distinguishes them.
    for tick in 1..40u32 {
        if sender.step(tick, |row| row.set(0, &[tick.min(9) as f32, 0.0, 0.0])) {
            sender.show(&mut remote_state, tick, Duration::ZERO);
        }
    }
    assert!((x(&remote_state.raw_at(at(40)).unwrap()) - 9.0).abs() <= TOLERANCE);
}

#[test]
fn t7_extrapolation_ends() {
    let mut sender = Sender::new(template(body()));
    let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
    let moving = Body { velocity: [10.0, 0.0, 0.0], ..Body::default() };
    assert!(sender.step(1, |row| row.set(0, &moving)));
    sender.show(&mut remote_state, 1, Duration::ZERO);
    assert!((x(&remote_state.state_at(at(1) + EXTRAPOLATION_MAX / 2).unwrap()) - 5.0).abs() < 1e-3);
    assert!((x(&remote_state.state_at(at(1) + EXTRAPOLATION_MAX * 60).unwrap()) - 10.0).abs() < 1e-3);
}

#[test]
fn a_jump_is_shown_at_once() {
    for jump in [5.0f32, 100.0] {
        let mut sender = Sender::new(template(Kind::vector3(-512.0, 512.0, 1.0 / 512.0)));
        let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
        for tick in 1..=3 {
            if sender.step(tick, |row| row.set(0, &[0.0f32, 0.0, 0.0])) {
                sender.show(&mut remote_state, tick, Duration::ZERO);
            }
        }
        assert!(x(&remote_state.state_at(at(4)).unwrap()).abs() < 1e-9);
        assert!(sender.step(4, |row| row.set(0, &[jump, 0.0, 0.0])));
        sender.show(&mut remote_state, 4, Duration::ZERO);
        let seen = x(&remote_state.state_at(at(4) + Duration::from_millis(1)).unwrap());
        let is_there = (seen - f64::from(jump)).abs() < 0.01;
        // 20 m in a step is a teleport, 5 m is an error.
        assert_eq!(is_there, jump > 20.0, "{seen} after a move by {jump}");
        let nowhere_between = x(&remote_state.raw_at(at(4) - Duration::from_millis(10)).unwrap());
        assert_eq!(nowhere_between.abs() < 1e-9, jump > 20.0, "{nowhere_between} before it");
    }
}

#[test]
fn rotations_and_angles_go_the_shorter_way() {
    let mut sender = Sender::new(template(Kind::angle(4_096)));
    let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
    for tick in 1..=2 {
        let angle = 3.1 + f64::from(tick) * 0.06;
        sender.step(tick, |row| row.set(0, &angle));
        sender.show(&mut remote_state, tick, Duration::ZERO);
    }
    for ms in 0..66 {
        let seen = x(&remote_state.raw_at(at(1) + Duration::from_millis(ms)).unwrap());
        let expected = 3.16 + 0.06 * (ms as f64 / 33.333);
        assert!((seen - expected).sin().abs() < 0.005, "{seen} instead of {expected}");
    }
}

#[test]
fn t6_what_leaps_is_the_older_until_the_newer_is_due() {
    let template = Template::builder("it")
        .field("health", Kind::int(0, 100), Tolerance::default())
        .field("name", Kind::text(20), Tolerance::default().late_by(Duration::from_millis(200)))
        .build()
        .unwrap();
    let mut sender = Sender::new(template);
    let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
    let mut step = |tick: u32, health: u8, name: &str| {
        let name = name.to_owned();
        let is_sent = sender.step(tick, |row| {
            row.set(0, &health);
            row.set(1, &name);
        });
        if is_sent {
            sender.show(&mut remote_state, tick, Duration::ZERO);
        }
        is_sent
    };
    assert!(step(1, 100, "Ada"));
    assert!(!step(2, 100, "Ada"));
    assert!(step(3, 90, "Ada"), "health is sent at once");
    assert!(!step(4, 90, "Bo"), "a name may be late");
    assert!((5..9).all(|tick| !step(tick, 90, "Bo")));
    assert!(step(10, 90, "Bo"), "but not for ever");
    let read = |moment: Instant| {
        let state = remote_state.raw_at(moment).unwrap();
        (state.row().get::<u8>(0), state.row().get::<String>(1))
    };
    assert_eq!(read(at(3) - Duration::from_millis(1)), (100, "Ada".to_owned()));
    assert_eq!(read(at(3)), (90, "Ada".to_owned()));
    assert_eq!(read(at(10)), (90, "Bo".to_owned()));
}

#[test]
fn small_differences_are_told_at_last() {
    let mut sender = Sender::new(template(Kind::float(-512.0, 512.0, 1.0 / 512.0)));
    assert!(sender.step(1, |row| row.set(0, &0.0f64)));
    let due = (2..200).find(|tick| sender.step(*tick, |row| row.set(0, &0.02f64)));
    assert_eq!(due, Some(1 + u32::from(RATE.hz()) / 2), "the longest interval is half a second");
}

#[test]
fn threat_18_what_is_no_state_is_refused() {
    let foreign =
        Schema::bare().component(crate::schema::Component::builder("a").field("b", Kind::Bool).build());
    let foreign = Arc::new(foreign.build().unwrap());
    assert_eq!(Form::new(foreign).unwrap_err(), TemplateError::NotATemplate);
    assert_eq!(Form::new(Arc::new(Schema::default())).unwrap_err(), TemplateError::NotATemplate);
    let mut remote_state = RemoteState::new(Arc::clone(template(body()).form()), RATE);
    assert!(!remote_state.observe(at(1), &[0; 3], &[], at(1)));
    assert!(remote_state.state_at(at(1)).is_none());
    for number in [f64::NAN, f64::INFINITY, -1.0] {
        for tolerance in [
            Tolerance::off_by(number),
            Tolerance::default().turned_by(number),
            Tolerance::default().jump(number),
        ] {
            let built = Template::builder("a").field("b", Kind::Bool, tolerance).build();
            assert_eq!(built.unwrap_err(), TemplateError::Tolerance { field: "b".to_owned() });
        }
    }
    let unknown = Template::builder("a")
        .field("b", Kind::Bool, Tolerance::default())
        .tolerance("c", Tolerance::default());
    assert!(matches!(unknown.build(), Err(TemplateError::NoSuchField { .. })));
}

#[test]
fn t6_states_come_back_as_types() {
    crate::replicated!(Car as "car" => { place: Kind::Transform { position: POSITION, rotation_bits: 9 }, fuel: Kind::float_bits(0.0, 1.0, 8) });
    #[derive(Clone, Debug, PartialEq)]
    struct Car {
        place: Transform,
        fuel: f32,
    }
    let template = Template::of::<Car>().tolerance("place", Tolerance::off_by(0.1)).build().unwrap();
    let mut sender = Sender::new(template);
    let car = Car { place: Transform { position: [1.0, 2.0, 3.0], ..Transform::default() }, fuel: 1.0 };
    assert!(sender.step(1, |row| crate::schema::Replicated::write(&car, row)));
    let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
    sender.show(&mut remote_state, 1, Duration::from_millis(40));
    let state = remote_state.state_at(at(1)).unwrap();
    assert_eq!((state.name(), state.read::<Car>()), ("car", car));
    let latency = remote_state.latency().unwrap();
    assert_eq!((latency.mean, latency.variance), (Duration::from_millis(40), Duration::ZERO));
}

#[test]
fn t6_a_change_is_as_urgent_as_its_most_urgent_field() {
    let template = Template::builder("it")
        .field("place", Kind::vector2(-8.0, 8.0, 0.5), Tolerance::off_by(0.1))
        .field("health", Kind::int(0, 100).priority(1_024), Tolerance::default())
        .field("name", Kind::text(20), Tolerance::default().priority(64))
        .priority(300)
        .build()
        .unwrap();
    let form = template.form();
    let received = Form::new(Arc::new(Schema::decode(form.schema().encode()).unwrap())).unwrap();
    let (lanes, blobs) = form.component().rest_row();
    let row = |x: f64, health: i64, name: &str| {
        let (mut lanes, mut blobs) = (lanes.clone(), blobs.clone());
        let mut row = RowWriter::new(form.component(), &mut lanes, &mut blobs);
        row.set(0, &[x, 0.0]);
        row.set(1, &health);
        row.set(2, &name.to_owned());
        row.finish().unwrap();
        (lanes, blobs)
    };
    let before = row(0.0, 50, "Ada");
    let urgency = |(lanes, blobs): (Vec<i32>, Vec<Bytes>)| {
        received.urgency(Some((&before.0, &before.1)), (&lanes, &blobs))
    };
    assert_eq!(urgency(row(1.0, 50, "Ada")), 300);
    assert_eq!(urgency(row(0.0, 50, "Bo")), 64);
    assert_eq!(urgency(row(1.0, 50, "Bo")), 300);
    assert_eq!(urgency(row(1.0, 51, "Bo")), 1_024);
    assert_eq!(urgency(before.clone()), 300, "a state that is repeated");
    assert_eq!(received.urgency(None, (&before.0, &before.1)), 300, "the first one");
}

proptest! {
    #[test]
    fn t6_plain_floats_come_as_they_are(bits in any::<u32>(), wide in any::<f64>()) {
        crate::replicated!(Score as "score" => { points: Kind::plain_f32(), total: Kind::plain_f64() });
        #[derive(Clone, Debug)]
        struct Score {
            points: f32,
            total: f64,
        }
        let mut sender = Sender::new(Template::of::<Score>().build().unwrap());
        let score = Score { points: f32::from_bits(bits), total: wide };
        if !score.points.is_finite() || !wide.is_finite() {
            let (mut lanes, mut blobs) = sender.form.component().rest_row();
            let mut row = RowWriter::new(sender.form.component(), &mut lanes, &mut blobs);
            crate::schema::Replicated::write(&score, &mut row);
            prop_assert!(row.finish().is_err());
            return Ok(());
        }
        let write = |row: &mut RowWriter<'_>| crate::schema::Replicated::write(&score, row);
        prop_assert!(sender.step(1, write));
        prop_assert!(!sender.step(2, write), "it did not change");
        let mut remote_state = RemoteState::new(Arc::clone(&sender.form), RATE);
        sender.show(&mut remote_state, 1, Duration::ZERO);
        let seen: Score = remote_state.state_at(at(3)).unwrap().read();
        prop_assert_eq!((seen.points, seen.total), (score.points, score.total));
    }
}

#[test]
fn t7_a_radius_needs_a_position() {
    let with = |field: &str, radius: f64| {
        let builder =
            Template::builder("it").field("place", Kind::vector2(-8.0, 8.0, 0.5), Tolerance::default());
        builder.field("health", Kind::int(0, 100), Tolerance::default()).radius(field, radius).build()
    };
    assert!(with("place", 100.0).is_ok());
    for (field, radius) in [("health", 100.0), ("nowhere", 100.0), ("place", 0.0), ("place", f64::NAN)] {
        assert!(matches!(with(field, radius), Err(TemplateError::Schema(_))), "{field} {radius}");
    }
}

#[test]
fn t6_a_cycle_has_no_end() {
    for (degrees, expected) in
        [(0.0, 0.0), (90.0, 90.0), (359.0, 359.0), (360.0, 0.0), (-90.0, 270.0), (720.0, 0.0)]
    {
        let back = Cycle::DEGREES.from_radians(Cycle::DEGREES.to_radians(degrees));
        assert!((back - expected).abs() < 1e-9, "{degrees}° came back as {back}°");
    }
}
