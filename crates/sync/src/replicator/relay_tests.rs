//! Four members with a state each, over a hub and a network that loses, delays and repeats packets.

use super::*;
use crate::audience::Viewer;
use crate::schema::{Body, Kind, Range};
use crate::world::{Encodings, Outcome, Publisher, PublisherConfig, Sent, World};
use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::wire::replica::OwnState;
use parlor_proto::{Instant, MemberId, PathId, Tick, TickRate};
use std::sync::Arc;

const RATE: TickRate = TickRate::DEFAULT;
const MEMBERS: u32 = 4;
/// Maximum delay of a packet in steps.
const LATE_MAX: u32 = 5;

/// A link from a world to a receiver, which reports the fate of its packets.
struct Way {
    publisher: Publisher,
    introduction: Option<Introduction>,
    remote: Remote,
    under_way: Vec<(u32, Sent, OwnState)>,
    /// Fates to report, and when.
    fates: Vec<(u32, Sent, bool)>,
    packets: usize,
}

impl Way {
    fn new(viewer: Viewer, remote: Remote) -> Self {
        let publisher = Publisher::new(viewer, PublisherConfig::default());
        Way { publisher, introduction: None, remote, under_way: Vec::new(), fates: Vec::new(), packets: 0 }
    }

    fn send(
        &mut self,
        world: &crate::world::World,
        form: &Form,
        tick: u32,
        luck: &mut Rng,
        loss_percent: u64,
    ) {
        let introduction = self.introduction.get_or_insert_with(|| Introduction::new(form.schema().encode()));
        let mut encodings = Encodings::default();
        while let Some((packet, sent)) = self.publisher.poll(world, &mut encodings, at(tick)) {
            self.packets += 1;
            let state = introduction.wrap(packet, sent);
            if luck.below(100) < loss_percent {
                self.fates.push((tick + LATE_MAX * 2, sent, false));
                continue;
            }
            let copies = 1 + u32::from(luck.below(100) < loss_percent);
            let late: Vec<u32> = (0..copies).map(|_| tick + delay(luck)).collect();
            let first = late.iter().copied().min().expect("at least one");
            self.under_way.extend(late.into_iter().map(|due| (due, sent, state.clone())));
            self.fates.push((first + 1 + delay(luck), sent, true));
        }
    }

    fn receive(&mut self, tick: u32) {
        let under_way = std::mem::take(&mut self.under_way);
        let (due, later) = under_way.into_iter().partition(|(due, ..)| *due <= tick);
        self.under_way = later;
        for (_, _, state) in due {
            self.remote.apply(state, at(tick)).expect("nobody breaks the protocol");
        }
        let fates = std::mem::take(&mut self.fates);
        let (due, later): (Vec<_>, Vec<_>) = fates.into_iter().partition(|(due, ..)| *due <= tick);
        self.fates = later;
        for (_, sent, arrived) in due {
            if arrived {
                self.publisher.delivered(sent);
                self.introduction.iter_mut().for_each(|it| it.delivered(sent));
            } else {
                self.publisher.lost(sent);
            }
        }
    }
}

/// The delay of a packet in steps.
fn delay(luck: &mut Rng) -> u32 {
    u32::try_from(luck.below(LATE_MAX.into())).expect("it is below a u32")
}

fn at(tick: u32) -> Instant {
    RATE.begins(Tick(tick))
}

fn kind(member: u32) -> Kind {
    let position = Range::new(-512.0, 512.0, 1.0 / 512.0);
    match member {
        0 => Kind::Transform { position, rotation_bits: 9 },
        1 => Kind::vector3(-512.0, 512.0, 1.0 / 64.0),
        2 => Kind::float_bits(-512.0, 512.0, 16),
        _ => Kind::Body {
            position,
            rotation_bits: 9,
            velocity: Range::new(-64.0, 64.0, 1.0 / 64.0),
            spin: Range::new(-8.0, 8.0, 1.0 / 64.0),
        },
    }
}

fn own(member: u32) -> Own {
    let template = Template::builder(&format!("of {member}"))
        .field("it", kind(member), Tolerance::off_by(0.1).jump(100.0))
        .field("name", Kind::text(16), Tolerance::default())
        .build();
    Own::new(template.expect("it is in order"), RATE, MemberId(member))
}

fn set(own: &mut Own, member: u32, x: f32, name: &str) {
    let rotation = [0.0, 0.0, (x / 7.0).sin(), (x / 7.0).cos()];
    own.write(|row| {
        match member {
            0 => row.set(0, &crate::schema::Transform { position: [x, -x, 0.0], rotation }),
            1 => row.set(0, &[x, 1.0, -x]),
            2 => row.set(0, &x),
            _ => row.set(0, &Body { position: [x, 0.0, 0.0], rotation, ..Body::default() }),
        }
        row.set(1, &name.to_owned());
    })
    .expect("it fits");
}

/// Runs a room of four for 90 steps, and then until nothing is in flight. Then everyone must have every
/// other's state.
fn run(seed: u64, loss_percent: u64) {
    let mut luck = Rng::new(seed);
    let mut owns: Vec<Own> = (0..MEMBERS).map(own).collect();
    let mut up: Vec<Way> =
        (0..MEMBERS).map(|_| Way::new(Viewer::Everything, Remote::of_everything(RATE))).collect();
    let others = |source: u32| (0..MEMBERS).filter(move |member| *member != source);
    let mut down: Vec<Vec<Way>> = (0..MEMBERS)
        .map(|source| {
            others(source).map(|to| Way::new(Viewer::Member(MemberId(to)), Remote::new(RATE))).collect()
        })
        .collect();
    let (mut x, mut speed) = ([0.0f32; 4], [0.0f32; 4]);
    for tick in 1..240u32 {
        for (member, own) in (0..MEMBERS).zip(&mut owns) {
            let index = member as usize;
            if tick < 90 {
                if luck.below(10) == 0 {
                    speed[index] = (luck.below(100) as f32 - 50.0) / 40.0;
                }
                x[index] += if luck.below(60) == 0 { 200.0 } else { speed[index] };
                x[index] = x[index].rem_euclid(400.0);
                set(own, member, x[index], ["Ada", "Bo"][luck.index(40) / 39]);
            }
            own.commit(Tick(tick)).expect("ticks count up");
        }
        for (source, own) in owns.iter().enumerate() {
            let loss = if tick < 90 { loss_percent } else { 0 };
            up[source].send(own.world(), own.template().form(), tick, &mut luck, loss);
            up[source].receive(tick);
            let hub = &up[source].remote;
            if let (Some(world), Some(form)) = (hub.world(), hub.form()) {
                for way in &mut down[source] {
                    way.send(world, form, tick, &mut luck, loss);
                    way.receive(tick);
                }
            }
        }
    }
    for (own, ways) in owns.iter().zip(&mut down) {
        let exact =
            own.world().read_row(own.world().entities().next().unwrap(), template::STATE).unwrap().unwrap();
        for way in ways {
            let world = way.remote.world().expect("something came");
            let entity = world.entities().next().expect("the state came");
            assert_eq!(world.read_row(entity, template::STATE).unwrap(), Some(exact), "seed {seed}");
            let seen = way.remote.state_at(at(400)).unwrap();
            let mut still = Vec::new();
            motion::numbers_of(own.template().form().component(), exact.0, exact.1, &mut still);
            let off = way.remote.remote_state().unwrap().form().motion().deviation(0, &seen.numbers, &still);
            assert!(
                off.off_by < 0.1 + 1e-3,
                "seed {seed}: it is seen off by {off:?} after all has come to rest"
            );
        }
    }
}

/// The number of seeds: `PARLOR_SEEDS`, or `usual` if that is not set.
fn seeds(usual: u64) -> u64 {
    std::env::var("PARLOR_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn all_have_what_the_others_sent_in_the_end() {
    for seed in 0..seeds(1_000) {
        run(seed, seed % 40);
    }
}

/// One member's link to the hub, without loss.
fn alone(member: u32) -> (Own, Way) {
    (own(member), Way::new(Viewer::Everything, Remote::of_everything(RATE)))
}

#[test]
fn a_state_that_stands_where_it_was_sent_is_sent_again_if_others_think_it_moves() {
    let (mut own, mut way) = alone(1);
    for tick in 1..60 {
        set(&mut own, 1, tick.min(9) as f32, "");
        own.commit(Tick(tick)).unwrap();
        way.send(own.world(), own.template().form(), tick, &mut Rng::new(1), 0);
        way.receive(tick + LATE_MAX * 2);
    }
    let seen = way.remote.state_at(at(80)).unwrap();
    assert!((seen.row().field(0).numbers()[0] - 9.0).abs() < 0.2, "{seen:?}");
}

#[test]
fn idle_states_cost_nothing() {
    let (mut own, mut way) = alone(0);
    let mut packets = 0;
    for tick in 1..600 {
        set(&mut own, 0, 5.0, "Ada");
        own.commit(Tick(tick)).unwrap();
        way.send(own.world(), own.template().form(), tick, &mut Rng::new(1), 0);
        way.receive(tick + LATE_MAX * 2);
        if tick == 10 {
            packets = way.packets;
        }
    }
    assert_eq!(way.packets, packets);
}

#[test]
fn the_schema_is_told_until_it_is_known_and_again_after_a_restart() {
    let mut introduction = Introduction::new(own(0).template().form().schema().encode());
    let tells =
        |introduction: &mut Introduction, sent| introduction.wrap(Bytes::new(), Sent(sent)).schema.is_some();
    assert!(tells(&mut introduction, 0) && tells(&mut introduction, 1));
    introduction.delivered(Sent(1));
    assert!(!tells(&mut introduction, 2));
    introduction.restart();
    assert!(tells(&mut introduction, 3));
    introduction.delivered(Sent(2));
    assert!(tells(&mut introduction, 4), "what was sent before the restart does not count");
    introduction.delivered(Sent(3));
    assert!(!tells(&mut introduction, 5));
}

#[test]
fn threat_18_a_stream_that_breaks_the_rules_is_refused_by_name() {
    let schema = |member: u32| Some(own(member).template().form().schema().encode());
    let apply = |remote: &mut Remote, schema: Option<Bytes>, packet: &'static [u8]| {
        remote.apply(OwnState { schema, packet: Bytes::from_static(packet) }, at(1))
    };
    let mut remote = Remote::new(RATE);
    assert_eq!(apply(&mut remote, None, &[1, 2, 3]), Ok(Outcome::Waiting), "nothing is known of it yet");
    assert!(matches!(apply(&mut remote, schema(0), &[255; 40]), Err(ReplicaError::Stream(_))));
    assert_eq!(apply(&mut remote, schema(1), &[]), Err(ReplicaError::OtherForm));
    let foreign = crate::schema::Schema::default().encode();
    assert!(matches!(apply(&mut Remote::new(RATE), Some(foreign), &[]), Err(ReplicaError::Form(_))));
    let garbage = Bytes::from_static(&[7; 30]);
    assert!(matches!(apply(&mut Remote::new(RATE), Some(garbage), &[]), Err(ReplicaError::Schema(_))));
}

#[test]
fn what_does_not_fit_the_template_changes_nothing() {
    let mut own = own(2);
    set(&mut own, 2, 7.0, "Ada");
    own.commit(Tick(1)).unwrap();
    let lanes = |own: &Own| {
        let world = own.world();
        world.read_row(world.entities().next().unwrap(), template::STATE).unwrap().unwrap().0.to_vec()
    };
    let before = lanes(&own);
    assert!(own.write(|row| row.set(0, &f32::NAN)).is_err());
    assert!(own.write(|row| row.set(0, &[1.0f32, 2.0])).is_err());
    // Fields that a type has beyond the template's must not be written.
    own.write(|row| {
        row.set(2, &10.0);
        row.set(3, &true);
        row.set(4, &3u8);
    })
    .unwrap();
    own.commit(Tick(2)).unwrap();
    assert_eq!(lanes(&own), before);
    assert!(own.commit(Tick(2)).is_err(), "each tick is committed once");
    own.teleport();
    own.commit(Tick(3)).unwrap();
    let last = before.len() - 1;
    assert_eq!(lanes(&own)[last], before[last] + 1, "a cut is told");
}

/// Sends each world that `next` returns over one path, on which every packet arrives. Ends with `None`.
fn over_a_path(mut next: impl FnMut(u32) -> Option<World>) -> Result<(), ReplicaError> {
    let mut remote = Remote::new(RATE);
    let mut publisher = Publisher::new(Viewer::Member(MemberId(1)), PublisherConfig::new(u32::MAX));
    let mut introduction = None;
    for tick in 0.. {
        let Some(world) = next(tick) else { break };
        let schema = || Introduction::new(world.schema().encode());
        let introduction: &mut Introduction = introduction.get_or_insert_with(schema);
        let mut encodings = Encodings::default();
        while let Some((packet, sent)) = publisher.poll(&world, &mut encodings, at(tick)) {
            remote.apply_direct(PathId(7), introduction.wrap(packet, sent), at(tick))?;
            publisher.delivered(sent);
        }
    }
    Ok(())
}

#[test]
fn threat_15_a_state_over_a_path_is_one_entity_and_takes_so_much_and_no_more() {
    let text = Template::builder("long").field("text", Kind::text(16_000), Tolerance::default()).build();
    let mut own = Own::new(text.expect("it is in order"), RATE, MemberId(0));
    let mut said = 0;
    let mut say = |tick: u32, own: &mut Own| {
        let text = format!("{tick:016000}");
        own.write(|row| row.set(0, &text)).expect("it is in order");
        own.commit(Tick(tick)).expect("it is in order");
        said += 1;
        own.world().clone()
    };
    let few = over_a_path(|tick| (tick < 20).then(|| say(tick, &mut own)));
    assert_eq!(few, Ok(()));
    let many = over_a_path(|tick| (tick < 2_000).then(|| say(20 + tick, &mut own)));
    assert_eq!(many, Err(ReplicaError::TooMuchHistory));
    assert!(said < 220, "{said} states of 16,000 bytes were taken");
    let mut world = World::new(Arc::clone(own.world().schema()), RATE);
    for slot in 0..2 {
        world.spawn(Some(MemberId(0))).unwrap_or_else(|error| panic!("{slot}: {error}"));
    }
    world.commit(Tick(1)).expect("it is in order");
    assert_eq!(over_a_path(|tick| (tick < 2).then(|| world.clone())), Err(ReplicaError::Entities));
}
