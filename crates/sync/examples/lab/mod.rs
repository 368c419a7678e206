//! Scenes and their packets, for the lab and the training of priors.

#![allow(unreachable_pub, dead_code, reason = "each example is a crate of its own and uses a part")]
#![allow(clippy::cast_possible_truncation, reason = "scenes are small")]

#[path = "../../../../tests/sim/src/walkers.rs"]
mod walkers;

use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::{MemberId, TickRate};
use parlor_sync::audience::Audience;
use parlor_sync::delta::{EntryHead, EntryKind, Meta, Past, Reader, Tables, Trainer, Writer, pick_history};
use parlor_sync::schema::{
    Body, Component, ComponentId, INPUT_ACK, KEYED_KEY, Kind, Range, RowWriter, Schema, Transform,
};
use parlor_sync::value::{Map, Value};
use std::fmt::Write as _;
use std::time::Instant;
use walkers::Walkers;

/// Maximum bytes of a body.
const BODY_BYTES: usize = 940;
/// The component of all scenes.
const COMPONENT: ComponentId = ComponentId(0);

/// A recorded scene: the lanes of one component of each entity at each tick.
pub struct Scene {
    name: String,
    schema: Schema,
    rate: TickRate,
    lanes: usize,
    count: usize,
    /// By tick: the lanes of all entities.
    ticks: Vec<Vec<i32>>,
    /// Ages of the clients' baselines.
    ages: Vec<usize>,
}

fn schema(name: &str, kinds: Vec<(&str, Kind)>) -> Schema {
    let builder =
        kinds.into_iter().fold(Component::builder(name), |builder, (name, kind)| builder.field(name, kind));
    Schema::bare().component(builder.build()).build().expect("a good schema")
}

/// A number from -1 to 1.
fn signed(rng: &mut Rng) -> f64 {
    (rng.below(2_000_001) as f64 - 1e6) / 1e6
}

fn record(
    name: &str,
    schema: Schema,
    hz: u16,
    (count, ticks): (usize, usize),
    mut step: impl FnMut(f64, &mut dyn FnMut(&dyn Fn(&mut RowWriter<'_>))),
) -> Scene {
    let component = schema.components()[0].clone();
    let rate = TickRate::new(hz).expect("a good rate");
    let mut scene = Scene {
        name: name.into(),
        schema,
        rate,
        lanes: component.lanes(),
        count,
        ticks: Vec::new(),
        ages: (1..=6).collect(),
    };
    for _ in 0..ticks {
        let mut rows = Vec::new();
        step(1.0 / f64::from(hz), &mut |write| {
            let at = rows.len();
            rows.resize(at + component.lanes(), 0);
            let mut writer = RowWriter::new(&component, &mut rows[at..], &mut []);
            write(&mut writer);
            writer.finish().expect("finite");
        });
        scene.ticks.push(rows);
    }
    scene
}

impl Scene {
    /// Walkers with transforms.
    pub fn walkers(seed: u64, count: usize, hz: u16, ticks: usize) -> Scene {
        let position = Range::new(0.0, 512.0, 1.0 / 512.0);
        let schema = schema("walker", vec![("at", Kind::Transform { position, rotation_bits: 9 })]);
        let mut walkers = Walkers::new(seed, count);
        (0..60).for_each(|_| walkers.step(1.0 / 30.0));
        record("walkers", schema, hz, (count, ticks), |dt_s, row| {
            walkers.step(dt_s);
            for i in 0..walkers.len() {
                let (position, rotation) = walkers.get(i);
                let at =
                    Transform { position: position.map(|x| x as f32), rotation: rotation.map(|x| x as f32) };
                row(&|writer| writer.set(0, &at));
            }
        })
    }

    /// Boxes that are thrown, fall, bounce, slide and come to rest, with or without velocities in the schema.
    pub fn bouncing(seed: u64, count: usize, hz: u16, ticks: usize, velocities: bool) -> Scene {
        let (position, velocity) =
            (Range::new(-64.0, 64.0, 1.0 / 1024.0), Range::new(-32.0, 32.0, 1.0 / 256.0));
        let kind = if velocities {
            Kind::Body { position, rotation_bits: 10, velocity, spin: velocity }
        } else {
            Kind::Transform { position, rotation_bits: 10 }
        };
        let schema = schema("box", vec![("at", kind)]);
        let mut rng = Rng::new(seed);
        let mut boxes: Vec<Thrown> = (0..count).map(|_| Thrown::new(&mut rng)).collect();
        record("bouncing", schema, hz, (count, ticks), |dt_s, row| {
            for thrown in &mut boxes {
                (0..4).for_each(|_| thrown.step(&mut rng, dt_s / 4.0));
                let body = thrown.body();
                if velocities {
                    row(&|writer| writer.set(0, &body));
                } else {
                    let at = Transform { position: body.position, rotation: body.rotation };
                    row(&|writer| writer.set(0, &at));
                }
            }
        })
    }

    /// Players in the plane that run, stop and turn at once, as with a keyboard.
    pub fn players(seed: u64, count: usize, hz: u16, ticks: usize) -> Scene {
        let kinds = vec![
            ("at", Kind::vector2(0.0, 256.0, 1.0 / 256.0)),
            ("height", Kind::float(0.0, 16.0, 1.0 / 256.0)),
            ("heading", Kind::angle(1024)),
            ("health", Kind::int(0, 100)),
            ("ducks", Kind::Bool),
        ];
        let schema = schema("player", kinds);
        let mut rng = Rng::new(seed);
        let mut players: Vec<Player> = (0..count).map(|_| Player::new(&mut rng)).collect();
        record("players", schema, hz, (count, ticks), |dt_s, row| {
            for player in &mut players {
                player.step(&mut rng, dt_s);
                row(&|writer| {
                    writer.set(0, &[player.at[0] as f32, player.at[1] as f32]);
                    writer.set(1, &(player.at[2] as f32));
                    writer.set(2, &(player.heading as f32));
                    writer.set(3, &player.health);
                    writer.set(4, &player.ducks);
                });
            }
        })
    }

    fn row(&self, tick: usize, slot: usize) -> &[i32] {
        &self.ticks[tick][slot * self.lanes..][..self.lanes]
    }

    fn is_changed(&self, tick: usize, age: usize, slot: usize) -> bool {
        self.row(tick, slot) != self.row(tick - age, slot)
    }
}

struct Thrown {
    position: [f64; 3],
    velocity: [f64; 3],
    spin: [f64; 3],
    rotation: [f64; 4],
}

impl Thrown {
    fn new(rng: &mut Rng) -> Self {
        let position = [signed(rng) * 40.0, signed(rng) * 40.0, 10.0 + signed(rng) * 9.0];
        let rotation = normal([signed(rng), signed(rng), signed(rng), signed(rng) + 0.1]);
        let mut thrown = Thrown { position, velocity: [0.0; 3], spin: [0.0; 3], rotation };
        thrown.throw(rng);
        thrown
    }

    fn throw(&mut self, rng: &mut Rng) {
        self.velocity = [signed(rng) * 8.0, signed(rng) * 8.0, 4.0 + signed(rng) * 4.0];
        self.spin = [signed(rng) * 6.0, signed(rng) * 6.0, signed(rng) * 6.0];
    }

    fn step(&mut self, rng: &mut Rng, dt_s: f64) {
        self.velocity[2] -= 9.81 * dt_s;
        (0..3)
            .for_each(|j| self.position[j] = (self.position[j] + self.velocity[j] * dt_s).clamp(-63.0, 63.0));
        if self.position[2] < 0.5 {
            // Bouncing and sliding lose energy, and no two contacts are alike.
            self.position[2] = 0.5;
            let hard = (-self.velocity[2]).max(0.0);
            self.velocity[2] = if hard < 0.4 { 0.0 } else { hard * 0.4 };
            (0..2).for_each(|j| self.velocity[j] *= 1.0 - 6.0 * dt_s);
            (0..3).for_each(|j| self.spin[j] = (self.spin[j] + signed(rng) * hard) * (1.0 - 8.0 * dt_s));
            let slow = |v: &[f64; 3]| v.iter().map(|v| v * v).sum::<f64>() < 0.01;
            if slow(&self.velocity) && slow(&self.spin) {
                (self.velocity, self.spin) = ([0.0; 3], [0.0; 3]);
                if rng.per_mille(1) {
                    self.throw(rng);
                }
            }
        }
        let [x, y, z, w] = self.rotation;
        let [a, b, c] = self.spin.map(|s| s * dt_s / 2.0);
        self.rotation = normal([
            x + a * w + b * z - c * y,
            y + b * w + c * x - a * z,
            z + c * w + a * y - b * x,
            w - a * x - b * y - c * z,
        ]);
    }

    fn body(&self) -> Body {
        Body {
            position: self.position.map(|x| x as f32),
            rotation: self.rotation.map(|x| x as f32),
            velocity: self.velocity.map(|x| x as f32),
            spin: self.spin.map(|x| x as f32),
        }
    }
}

fn normal(q: [f64; 4]) -> [f64; 4] {
    let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    q.map(|x| x / length)
}

struct Player {
    at: [f64; 3],
    rise: f64,
    go: [f64; 2],
    heading: f64,
    turn: f64,
    health: i32,
    ducks: bool,
}

impl Player {
    fn new(rng: &mut Rng) -> Self {
        let at = [128.0 + signed(rng) * 120.0, 128.0 + signed(rng) * 120.0, 0.0];
        Player {
            at,
            rise: 0.0,
            go: [0.0; 2],
            heading: signed(rng) * 3.0,
            turn: 0.0,
            health: 100,
            ducks: false,
        }
    }

    fn step(&mut self, rng: &mut Rng, dt_s: f64) {
        let often = |per_s: f64, rng: &mut Rng| rng.below(1_000_000) < (per_s * dt_s * 1e6) as u64;
        if often(1.5, rng) {
            let angle = signed(rng) * core::f64::consts::PI;
            let speed = if rng.below(3) == 0 { 0.0 } else { 5.0 };
            self.go = [angle.cos() * speed, angle.sin() * speed];
        }
        if often(3.0, rng) {
            self.turn = if rng.below(2) == 0 { 0.0 } else { signed(rng) * 4.0 };
        }
        if self.at[2] <= 0.0 && often(0.3, rng) {
            self.rise = 5.0;
        }
        self.rise -= 9.81 * dt_s;
        self.at[2] = (self.at[2] + self.rise * dt_s).max(0.0);
        (0..2).for_each(|j| self.at[j] = (self.at[j] + self.go[j] * dt_s).clamp(0.0, 255.0));
        self.heading = (self.heading + self.turn * dt_s).rem_euclid(core::f64::consts::TAU);
        if often(0.2, rng) {
            self.health = if self.health < 20 { 100 } else { self.health - rng.below(20) as i32 };
        }
        if often(0.5, rng) {
            self.ducks = !self.ducks;
        }
    }
}

/// Measures a scene. Times are from the fastest tenth of the ticks, since other processes use the machine,
/// too.
pub fn measure(scene: &Scene) -> String {
    let tables = Tables::new(&scene.schema, scene.rate);
    let mut out = format!("{}:\n", scene.name);
    let (mut all_bytes, mut all_entries) = (0, 0);
    let (mut writer, mut writes, mut reads) = (Writer::new(), Vec::new(), Vec::new());
    for &age in &scene.ages {
        let (mut bytes, mut entries, mut bodies) = (0, 0, 0);
        for tick in 20..scene.ticks.len() {
            let changed = (0..scene.count).filter(|&slot| scene.is_changed(tick, age, slot)).count();
            let (mut slot, mut write_ns, mut read_ns) = (0, 0, 0);
            while slot < scene.count {
                let begun = Instant::now();
                let (body, next) = body(scene, &tables, &mut writer, tick, age, slot);
                write_ns += begun.elapsed().as_nanos();
                let begun = Instant::now();
                check(scene, &tables, tick, &body, slot..next);
                read_ns += begun.elapsed().as_nanos();
                bytes += body.len();
                slot = next;
                bodies += 1;
            }
            entries += changed;
            writes.push(write_ns as f64 / changed.max(1) as f64);
            reads.push(read_ns as f64 / changed.max(1) as f64);
        }
        let each = bytes as f64 / entries as f64;
        let _ = writeln!(out, "  age {age}: {each:.3} bytes per entity, {} per body", bytes / bodies);
        all_bytes += bytes;
        all_entries += entries;
    }
    let fast = |ns: &mut Vec<f64>| {
        ns.sort_by(f64::total_cmp);
        ns[ns.len() / 10]
    };
    let each = all_bytes as f64 / all_entries as f64;
    let (write, read) = (fast(&mut writes), fast(&mut reads));
    let _ =
        writeln!(out, "  all: {each:.3} bytes per entity, {write:.0} ns to encode, {read:.0} ns to decode");
    out
}

/// The ages of the rows that an entity is coded against, if all are known from `age` ticks ago on.
fn ages_of(tick: usize, age: usize) -> ([u32; 3], usize) {
    let (offsets, count) = pick_history(u64::MAX >> (63 - (tick - age).min(63)), age as u32);
    let mut ages = [0; 3];
    (0..count).for_each(|i| ages[i] = age as u32 + offsets[i]);
    (ages, count)
}

/// Returns the rows of these ages.
fn past_of<'a>(scene: &'a Scene, tick: usize, slot: usize, ages: &[u32; 3], count: usize) -> [Past<'a>; 3] {
    core::array::from_fn(|i| {
        let age = if i < count { ages[i] } else { 0 };
        Past { age, lanes: scene.row(tick - age as usize, slot), blobs: &[] }
    })
}

/// Writes a body from this slot on. Returns it with the next slot.
fn body(
    scene: &Scene,
    tables: &Tables,
    writer: &mut Writer,
    tick: usize,
    age: usize,
    from: usize,
) -> (Vec<u8>, usize) {
    writer.begin(tables, false);
    let (ages, count) = ages_of(tick, age);
    let mut out = Vec::new();
    for slot in from..scene.count {
        if !scene.is_changed(tick, age, slot) {
            continue;
        }
        let mark = writer.mark();
        let head = EntryHead { ages, history: count as u8, changed: 1, ..EntryHead::update(slot as u16) };
        writer.head(tables, &head);
        let past = past_of(scene, tick, slot, &ages, count);
        writer.component(tables, COMPONENT, &past[..count], scene.row(tick, slot), &[]);
        if writer.bytes() > BODY_BYTES {
            writer.undo(&mark);
            writer.finish(tables, &mut out);
            return (out, slot);
        }
    }
    writer.finish(tables, &mut out);
    (out, scene.count)
}

fn check(scene: &Scene, tables: &Tables, tick: usize, body: &[u8], slots: core::ops::Range<usize>) {
    let mut reader = Reader::new(tables, body, false);
    let mut lanes = vec![0; scene.lanes];
    while let Some(head) = reader.head().expect("it decodes") {
        let slot = usize::from(head.slot);
        assert!(slots.contains(&slot));
        let count = usize::from(head.history);
        let past = past_of(scene, tick, slot, &head.ages, count);
        reader.component(COMPONENT, &past[..count], &mut lanes, &mut []).expect("it decodes");
        assert_eq!(lanes, scene.row(tick, slot), "tick {tick}, slot {slot}");
    }
}

/// Feeds a scene to a trainer, in packets as a world sends them: full and small ones, mostly of equal ages,
/// with few known rows, with entities that are new to the receiver, despawned or transferred, and
/// occasionally with everything at once.
pub fn train(scene: &Scene, trainer: &mut Trainer, rng: &mut Rng) {
    let mut training = trainer.training(&scene.schema, scene.rate);
    for tick in (40..scene.ticks.len()).step_by(3) {
        let mut slot = 0;
        while slot < scene.count {
            let size = if rng.below(3) == 0 { 1 + rng.index(30) } else { 150 + rng.index(200) };
            let age = 1 + rng.index(8);
            let (ages, count) = ages_of(tick, age);
            // Sometimes the receiver has only one or two rows, or everything is new to it.
            let count = if rng.below(8) == 0 { rng.index(3) } else { count };
            let sparse = rng.below(4) == 0;
            let is_transfer = rng.below(12) == 0;
            training.begin();
            let end = (slot + size).min(scene.count);
            for slot in slot..end {
                if is_transfer || rng.below(200) == 0 {
                    training.head(Some(&spawn(rng, slot, 1)));
                    training.component(COMPONENT, &[], scene.row(tick, slot), &[]);
                    continue;
                }
                if !scene.is_changed(tick, age, slot) || sparse && rng.below(4) > 0 {
                    continue;
                }
                let (ages, count) =
                    if rng.below(50) == 0 { ages_of(tick, 1 + rng.index(8)) } else { (ages, count) };
                let past = past_of(scene, tick, slot, &ages, count);
                let mut head =
                    EntryHead { history: count as u8, changed: 1, ..EntryHead::update(slot as u16) };
                head.ages[..count].copy_from_slice(&ages[..count]);
                if rare(rng, slot, &mut head) {
                    training.head(Some(&head));
                    continue;
                }
                training.head(Some(&head));
                training.component(COMPONENT, &past[..count], scene.row(tick, slot), &[]);
            }
            training.head(None);
            slot = end;
        }
    }
}

/// The head of an entity that is new to its receiver.
fn spawn(rng: &mut Rng, slot: usize, mask: u64) -> EntryHead {
    let mut head = EntryHead::update(slot as u16);
    head.kind = EntryKind::Spawn;
    let bits = rng.below(13);
    head.row_age = rng.below(1 << bits) as u32;
    head.generation = rng.below(6) as u16;
    (head.mask, head.changed, head.mask_changed) = (mask, mask, true);
    head.meta = Some(meta(rng));
    head
}

fn meta(rng: &mut Rng) -> Meta {
    let owner = (rng.below(4) == 0).then(|| MemberId(1 + rng.below(16) as u32));
    let zone = if rng.below(20) == 0 { 1 + rng.below(4) as u32 } else { 0 };
    let audience = match rng.below(16) {
        0 => Audience::members([MemberId(1 + rng.below(16) as u32)]),
        _ => Audience::All,
    };
    Meta { owner, zone, audience }
}

/// Makes a head a rare one: a despawn (then returns true), another owner, other components, an older row.
fn rare(rng: &mut Rng, slot: usize, head: &mut EntryHead) -> bool {
    match rng.below(600) {
        0..3 => {
            *head = EntryHead { kind: EntryKind::Despawn, ..EntryHead::update(slot as u16) };
            return true;
        }
        3 => head.meta = Some(meta(rng)),
        4 => (head.mask, head.mask_changed) = (head.changed, true),
        5..9 => head.row_age = 1 + rng.below(6) as u32,
        _ => {}
    }
    false
}

/// Feeds keyed state to a trainer. The keys of a small game are maps of a few numbers and texts, most of
/// which change often, scores, and a level in one large text. Each is coded against its value some ticks ago,
/// and also as new.
pub fn train_keys(trainer: &mut Trainer, rng: &mut Rng, ticks: usize) {
    let mut training = trainer.training(&Schema::default(), TickRate::DEFAULT);
    let mut game = Keys::new(rng);
    let mut history: Vec<Vec<[Bytes; 3]>> = Vec::new();
    for tick in 0..ticks {
        history.push(game.step(rng));
        let now = &history[tick];
        let age = 1 + rng.index(6);
        let Some(old) = tick.checked_sub(age).map(|at| &history[at]) else { continue };
        training.begin();
        if rng.below(20) == 0 {
            for (slot, row) in now.iter().enumerate() {
                training.head(Some(&spawn(rng, slot, KEYED_KEY.bit())));
                training.component(KEYED_KEY, &[], &[], row);
            }
        } else {
            for (slot, (row, old)) in now.iter().zip(old).enumerate().filter(|(_, (row, old))| row != old) {
                let mut head = EntryHead::update(slot as u16);
                (head.history, head.ages[0], head.changed) = (1, age as u32, KEYED_KEY.bit());
                training.head(Some(&head));
                training.component(KEYED_KEY, &[Past { age: age as u32, lanes: &[], blobs: old }], &[], row);
            }
            let acks = now.len()..now.len() + 1 + rng.index(8);
            for slot in acks {
                let mut head = EntryHead::update(slot as u16);
                (head.history, head.ages[0], head.changed) = (1, age as u32, INPUT_ACK.bit());
                training.head(Some(&head));
                let before = [(tick + 500 - age) as i32, 500, 0];
                let past = Past { age: age as u32, lanes: &before, blobs: &[] };
                training.component(INPUT_ACK, &[past], &[(tick + 500 - rng.index(2)) as i32, 500, 0], &[]);
            }
        }
        training.head(None);
    }
}

/// The keys of a small game.
struct Keys {
    tanks: Vec<Player>,
    scores: Vec<i32>,
    level: String,
}

const TITLES: [&str; 6] = ["ada", "linus", "grace", "dennis", "barbara", "ken"];

impl Keys {
    fn new(rng: &mut Rng) -> Self {
        let count = 4 + rng.index(12);
        let level =
            (0..500 + rng.index(4_000)).map(|at| if at % 64 == 63 { '\n' } else { tile(rng) }).collect();
        Keys { tanks: (0..count).map(|_| Player::new(rng)).collect(), scores: vec![0; TITLES.len()], level }
    }

    /// Name, hints and value of each key.
    fn step(&mut self, rng: &mut Rng) -> Vec<[Bytes; 3]> {
        let mut keys = Vec::new();
        let mut push = |name: String, value: Value| {
            let value = value.encode(16_384).expect("it is small");
            keys.push([Bytes::from(name), Bytes::new(), value]);
        };
        for (at, tank) in self.tanks.iter_mut().enumerate() {
            tank.step(rng, 1.0 / 30.0);
            let number = |x: f64| Value::from(f64::from(x as f32));
            let mut map = vec![
                ("x".to_owned(), number(tank.at[0])),
                ("y".to_owned(), number(tank.at[1])),
                ("heading".to_owned(), number(tank.heading)),
            ];
            if at % 2 == 0 {
                map.push(("health".to_owned(), Value::from(i64::from(tank.health))));
                map.push(("name".to_owned(), TITLES[at % TITLES.len()].into()));
            }
            push(format!("tank/{at}"), Value::Map(Map::from_pairs(map).expect("each name once")));
        }
        for (title, score) in TITLES.iter().zip(&mut self.scores) {
            *score += i32::from(rng.below(60) == 0) * (1 + rng.below(20) as i32);
            push(format!("score/{title}"), Value::from(i64::from(*score)));
        }
        for _ in 0..rng.below(12).saturating_sub(9) {
            let at = rng.index(self.level.len());
            let end = at + rng.index(2);
            self.level.replace_range(at..end, &tile(rng).to_string());
        }
        push("level".to_owned(), self.level.as_str().into());
        keys
    }
}

/// A tile of a level: mostly empty.
fn tile(rng: &mut Rng) -> char {
    ['.', '.', '.', '.', '#', '#', '~', 'T'][rng.index(8)]
}
