//! Measures the cost of the parts of the world engine, in milliseconds per tick: a host's world, its
//! publisher, the hub's replica, and the views of all members.
//!
//! `cargo run --release -p parlor-sync --example world_lab [ticks] [words of the names of scenes ...]`

#![allow(clippy::print_stdout, reason = "it is a command")]

#[path = "../../../tests/sim/src/walkers.rs"]
#[allow(unreachable_pub, dead_code, reason = "it is another crate's, and a part of it is used")]
mod walkers;

use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::replicated;
use parlor_sync::schema::{ComponentId, Kind, Range, Replicated, RowWriter, Schema, Transform};
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, Replica, Sent, Viewer, Views, World};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use walkers::Walkers;

/// A walker, as in a game.
struct Walker {
    place: Transform,
}

replicated!(Walker as "walker" => {
    place: Kind::Transform { position: Range::new(0.0, 512.0, 1.0 / 512.0), rotation_bits: 9 },
});

/// Large enough that the rate limit never applies.
const BYTES_PER_SECOND: u32 = 8_000_000;
/// Length of a tick.
const TICK_US: u64 = 33_333;

/// The delay of members' acknowledgements.
#[derive(Clone, Copy)]
enum Acks {
    /// The same for all, at the next tick.
    Equal,
    /// Each 10 ms after the one before, without loss: some are in the same tick.
    Apart,
    /// Each packet 0 to 150 ms later at random, and one in a hundred is lost: hardly two members have the
    /// same rows.
    Mixed,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    rooms: u32,
    members: u32,
    entities: usize,
    moving: bool,
    acks: Acks,
}

const CASES: [Case; 8] = [
    case("equal", 1, 16, 1_000, Acks::Equal),
    case("apart", 1, 16, 1_000, Acks::Apart),
    case("mixed", 1, 16, 1_000, Acks::Mixed),
    Case { moving: false, ..case("idle", 1, 16, 1_000, Acks::Apart) },
    case("crowd", 1, 100, 100, Acks::Apart),
    case("crowd-mixed", 1, 100, 100, Acks::Mixed),
    case("room-1", 1, 16, 100, Acks::Apart),
    case("room-64", 64, 16, 100, Acks::Apart),
];

const fn case(name: &'static str, rooms: u32, members: u32, entities: usize, acks: Acks) -> Case {
    Case { name, rooms, members, entities, moving: true, acks }
}

/// The time of the parts, over all ticks.
#[derive(Clone, Copy, Default)]
struct Costs {
    commit: Duration,
    up: Duration,
    apply: Duration,
    flush: Duration,
    fates: Duration,
    read: Duration,
}

/// Runs `run` and adds its duration: needs an idle machine.
fn timed<T>(sum: &mut Duration, run: impl FnOnce() -> T) -> T {
    let began = std::time::Instant::now();
    let out = run();
    *sum += began.elapsed();
    out
}

/// A room: its host, its hub, its members.
struct Room {
    case: Case,
    rng: Rng,
    host: World,
    entities: Vec<EntityId>,
    up: Publisher,
    up_acks: VecDeque<Sent>,
    encodings: Encodings,
    hub: Replica,
    views: Views,
    /// Fates to report: when, of which member and packet, and whether it was delivered.
    fates: Vec<(u64, MemberId, Sent, bool)>,
    due: Vec<(MemberId, Sent, bool)>,
    packets: Vec<(MemberId, Bytes, Sent)>,
    /// One member's replica, which gets all packets.
    replica: Replica,
    bytes: usize,
    count: u64,
    /// Bodies encoded, and reused for another member, before it was warm.
    coded: (u64, u64),
}

impl Room {
    fn new(case: Case) -> Self {
        let schema = Arc::new(Schema::builder().replicate::<Walker>().build().expect("a good schema"));
        let mut host = World::new(Arc::clone(&schema), TickRate::DEFAULT);
        let spawn = |_| host.spawn(None).expect("there is room");
        let entities = (0..case.entities).map(spawn).collect();
        let mut views = Views::new(&schema);
        (0..case.members).for_each(|id| views.add(MemberId(id), PublisherConfig::new(BYTES_PER_SECOND)));
        Room {
            case,
            rng: Rng::new(5),
            host,
            entities,
            up: Publisher::new(Viewer::Everything, PublisherConfig::new(BYTES_PER_SECOND)),
            up_acks: VecDeque::new(),
            encodings: Encodings::new(),
            hub: Replica::of_everything(Arc::clone(&schema), TickRate::DEFAULT),
            views,
            fates: Vec::new(),
            due: Vec::new(),
            packets: Vec::new(),
            replica: Replica::new(schema, TickRate::DEFAULT),
            bytes: 0,
            count: 0,
            coded: (0, 0),
        }
    }

    fn turn(&mut self, tick: u32, rows: &[i32], costs: &mut Costs) {
        let now = 1_000_000 + u64::from(tick) * TICK_US;
        let Room { host, entities, up, encodings, hub, views, .. } = self;
        timed(&mut costs.commit, || {
            for (entity, lanes) in entities.iter().zip(rows.chunks_exact(LANES)) {
                host.write_row(*entity, WALKER, lanes, &[]).expect("a good row");
            }
            host.commit(Tick(tick)).expect("a newer tick")
        });
        let packets: Vec<(Bytes, Sent)> = timed(&mut costs.up, || {
            // The hub is two ticks away.
            while self.up_acks.len() > 8 {
                self.up_acks.pop_front().into_iter().for_each(|sent| up.delivered(sent));
            }
            core::iter::from_fn(|| up.poll(host, encodings, Instant::from_micros(now))).collect()
        });
        timed(&mut costs.apply, || {
            for (bytes, _) in &packets {
                hub.apply(bytes.clone()).expect("a good packet");
            }
        });
        self.up_acks.extend(packets.into_iter().map(|(_, sent)| sent));
        self.fates.retain(|fate| {
            if fate.0 <= now {
                self.due.push((fate.1, fate.2, fate.3));
            }
            fate.0 > now
        });
        timed(&mut costs.fates, || {
            self.due.drain(..).for_each(|(member, sent, came)| views.fate(member, sent, came));
        });
        let packets = &mut self.packets;
        timed(&mut costs.flush, || {
            views.flush(hub.world(), Instant::from_micros(now), |member, bytes, sent| {
                packets.push((member, bytes, sent));
            });
        });
        for (member, bytes, sent) in self.packets.drain(..) {
            (self.bytes, self.count) = (self.bytes + bytes.len(), self.count + 1);
            let (delay_us, is_lost) = match self.case.acks {
                Acks::Equal => (0, false),
                Acks::Apart => (10_000 * u64::from(member.0 % 16), false),
                Acks::Mixed => (self.rng.below(150_001), self.rng.below(100) == 0 && member.0 > 0),
            };
            self.fates.push((now + delay_us, member, sent, !is_lost));
            if member.0 == 0 {
                timed(&mut costs.read, || self.replica.apply(bytes).expect("a good packet"));
            }
        }
    }
}

/// The component of all entities, behind the built-in ones, and how many lanes it has.
const WALKER: ComponentId = ComponentId(2);
const LANES: usize = 7;

/// The rows of all walkers at each tick.
fn record(entities: usize, ticks: u32) -> Vec<Vec<i32>> {
    let component = Walker::component();
    let mut walkers = Walkers::new(1, entities);
    let tick = |_| {
        walkers.step(1.0 / 30.0);
        let mut rows = vec![0; entities * LANES];
        for (at, lanes) in rows.chunks_exact_mut(LANES).enumerate() {
            let (position, rotation) = walkers.get(at);
            #[allow(clippy::cast_possible_truncation, reason = "games have f32")]
            let place =
                Transform { position: position.map(|x| x as f32), rotation: rotation.map(|x| x as f32) };
            let mut writer = RowWriter::new(&component, lanes, &mut []);
            Walker { place }.write(&mut writer);
            writer.finish().expect("walkers are finite");
        }
        rows
    };
    (0..ticks).map(tick).collect()
}

fn run(case: Case, ticks: u32) {
    let recorded = record(case.entities, if case.moving { ticks } else { 1 });
    let mut rooms: Vec<Room> = (0..case.rooms).map(|_| Room::new(case)).collect();
    let (mut costs, warm) = (Costs::default(), ticks / 4);
    for tick in 0..ticks {
        if tick == warm {
            costs = Costs::default();
            rooms.iter_mut().for_each(|room| {
                (room.bytes, room.count, room.coded) = (0, 0, room.views.encodings());
            });
        }
        let rows = recorded.get(tick as usize).unwrap_or(&recorded[0]);
        rooms.iter_mut().for_each(|room| room.turn(tick + 1, rows, &mut costs));
    }
    let measured = f64::from(ticks - warm);
    let ms = |cost: Duration| cost.as_secs_f64() * 1e3 / measured;
    let seen = f64::from(case.rooms * case.members) * case.entities as f64;
    let (bytes, packets) = rooms.iter().fold((0, 0), |(b, p), room| (b + room.bytes, p + room.count));
    let (coded, reused) = rooms.iter().fold((0, 0), |(c, r), room| {
        let counts = room.views.encodings();
        (c + counts.0 - room.coded.0, r + counts.1 - room.coded.1)
    });
    println!(
        "{:12} commit {:.3} up {:.3} apply {:.3} flush {:.3} ({:.0} ns each) fates {:.3} ({:.1} ns each) one member {:.3} ms; \
         {:.2} bytes each, {:.1} packets, {:.0}% coded",
        case.name,
        ms(costs.commit),
        ms(costs.up),
        ms(costs.apply),
        ms(costs.flush),
        ms(costs.flush) * 1e6 / seen,
        ms(costs.fates),
        ms(costs.fates) * 1e6 / seen,
        ms(costs.read),
        bytes as f64 / measured / seen,
        packets as f64 / measured,
        100.0 * coded as f64 / (coded + reused).max(1) as f64,
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ticks = words.first().and_then(|word| word.parse().ok()).unwrap_or(200);
    let wanted = words.get(1..).unwrap_or_default();
    for case in CASES {
        if wanted.is_empty() || wanted.iter().any(|word| word == case.name) {
            run(case, ticks);
        }
    }
}
