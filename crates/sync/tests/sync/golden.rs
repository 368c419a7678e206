//! `testdata/world.txt`: packets of streams, and a reader's state after them. `PARLOR_GOLDEN=write` rewrites
//! it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use core::fmt::Write;
use parlor_impair::Rng;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::delta::{EntryHead, EntryKind, Meta, Past, Tables, Writer};
use parlor_sync::schema::{Component, ComponentId, Condition, Kind, Range, Schema};
use parlor_sync::value::{Map, Value};
use parlor_sync::world::{
    Audience, Encodings, Outcome, Publisher, PublisherConfig, Replica, Sent, Viewer, World,
};
use std::sync::Arc;

const HEAD: &str = "\
# Packets of a world, in the order in which a reader gets them, and what it holds after each: see PROTOCOL.md.
# A stream begins with `stream member` or `stream everything`; then
#   schema HEX, rate TICKS PER SECOND
#   packet HEX
#   taken tick T settled 0|1 transfer 0|1, or old, or waiting, or refused, which ends the stream: what becomes of it; if taken,
#   all that is held then:
#   entity SLOT.GENERATION owner MEMBER|- room N audience all|MEMBERS
#   row COMPONENT lanes NUMBERS blobs HEXES, for each component of this entity
# Lists have commas between their parts and are - if they have none.
";

const KEY: ComponentId = ComponentId(0);
const BODY: ComponentId = ComponentId(2);
const HEALTH: ComponentId = ComponentId(3);
const SIGN: ComponentId = ComponentId(4);

fn schema() -> Arc<Schema> {
    let range = |min, max, step| Range { min, max, step };
    let body = Kind::Body {
        position: range(-64.0, 64.0, 1.0 / 256.0),
        rotation_bits: 9,
        velocity: range(-32.0, 32.0, 1.0 / 64.0),
        spin: range(-8.0, 8.0, 1.0 / 64.0),
    };
    let health =
        Component::builder("health").field("points", Kind::int(0, 200)).condition(Condition::OwnerOnly);
    let sign = Component::builder("sign").field("says", Kind::text(80)).field("angle", Kind::angle(360));
    let sign = sign.field("faces", Kind::UnitVector { bits: 9 });
    let body = Component::builder("body").field("at", body);
    let builder = Schema::builder().component(body.build()).component(health.build());
    Arc::new(builder.component(sign.build()).build().unwrap())
}

struct Stream {
    rng: Rng,
    world: World,
    entities: Vec<EntityId>,
    key: EntityId,
}

/// The tick at which the authority changes.
const TRANSFER: u32 = 14;

/// Values of every kind and width.
fn value(tick: u32) -> Value {
    let number = i64::from(tick);
    let wide = [number, -number, 100 * number, 40_000 * number, i64::MIN + number].map(Value::from);
    let map = Map::from_pairs(vec![
        ("at".to_owned(), Value::List(vec![0.5.into(), (0.1 * f64::from(tick)).into()])),
        ("name".to_owned(), "x".repeat(20 + usize::try_from(tick).unwrap()).into()),
        ("none".to_owned(), Value::Null),
        ("raw".to_owned(), Value::Bytes(Bytes::from_static(b"\0\xff"))),
    ]);
    match tick % 4 {
        0 => Value::List(wide.into()),
        1 => Value::Map(map.unwrap()),
        2 => Value::List((0..16 + tick).map(Value::from).collect()),
        _ => Value::Bool(tick % 8 == 3),
    }
}

impl Stream {
    fn change(&mut self, tick: u32) {
        let rng = &mut self.rng;
        if self.entities.len() < 4 && rng.below(3) == 0 {
            let owner = rng.pick(&[None, Some(MemberId(1)), Some(MemberId(2))]);
            self.entities.push(self.world.spawn(owner).unwrap());
        }
        for (entity, number) in self.entities.iter().zip(0i32..) {
            let on = i32::try_from(tick).unwrap();
            let speed = 2_048 + 40 * number;
            let noise = i32::try_from(rng.below(3)).unwrap();
            let rest = self.world.schema().components()[BODY.index()].rest_row().0;
            let mut lanes = vec![16_384 + on * 8 + noise, 16_384 - on * number, 12_000];
            lanes.extend_from_slice(&rest[3..7]);
            lanes.extend([speed, 2_048, 2_048, 512, 512, 512]);
            if number != 2 || on % 3 == 0 {
                self.world.write_row(*entity, BODY, &lanes, &[]).unwrap();
            }
        }
        let blobs = ["door".into(), Bytes::new(), value(tick).encode(usize::MAX).unwrap()];
        self.world.write_row(self.key, KEY, &[], &blobs).unwrap();
        if let Some(entity) = self.entities.get(rng.index(4)).copied() {
            // Entities that go with the old authority are not despawned: they go when the new stream is
            // settled.
            match if tick == TRANSFER { 7 } else { rng.below(8) } {
                0 => drop(self.world.remove_row(entity, SIGN).unwrap()),
                1 | 2 => {
                    let text = format!("tick {tick} of {entity}");
                    let angle = i32::try_from(rng.below(360)).unwrap();
                    let lanes = [angle, 3 * angle % 511, 255];
                    self.world.write_row(entity, SIGN, &lanes, &[text.into()]).unwrap();
                }
                3 | 4 => drop(self.world.write_row(entity, HEALTH, &[200 - tick as i32], &[]).unwrap()),
                5 => self.world.set_owner(entity, rng.pick(&[None, Some(MemberId(1))])).unwrap(),
                6 => {
                    let audience = rng.pick(&[
                        Audience::members([MemberId(1)]),
                        Audience::members([MemberId(2), MemberId(9)]),
                    ]);
                    self.world.set_audience(entity, audience).unwrap();
                }
                _ => {
                    self.world.despawn(entity).unwrap();
                    self.entities.retain(|it| *it != entity);
                }
            }
        }
        self.world.commit(Tick(tick)).unwrap();
    }
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|it| it.to_string()).collect();
    if items.is_empty() { "-".to_owned() } else { items.join(",") }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn tell(out: &mut String, world: &World) {
    for id in world.entities() {
        let owner = list(world.owner(id).unwrap().map(|owner| owner.0));
        let audience = match world.audience(id).unwrap() {
            Audience::All => "all".to_owned(),
            Audience::Members(members) => list(members.iter().map(|member| member.0)),
        };
        let room = world.zone(id).unwrap();
        writeln!(out, "entity {}.{} owner {owner} room {room} audience {audience}", id.slot, id.generation)
            .unwrap();
        for component in (0u8..).map(ComponentId).take(world.schema().components().len()) {
            if let Some((lanes, blobs)) = world.read_row(id, component).unwrap() {
                let blobs = list(blobs.iter().map(|blob| hex(blob)));
                writeln!(out, "row {} lanes {} blobs {blobs}", component.0, list(lanes)).unwrap();
            }
        }
    }
}

/// Writes a packet, its result and the state after it. Returns the result.
fn apply(out: &mut String, replica: &mut Replica, bytes: Bytes) -> String {
    writeln!(out, "packet {}", hex(&bytes)).unwrap();
    let outcome = match replica.apply(bytes) {
        Ok(Outcome::Old) => "old".to_owned(),
        Ok(Outcome::Waiting) => "waiting".to_owned(),
        Ok(Outcome::Taken(applied)) => {
            let (settled, transfer) = (u8::from(applied.settled), u8::from(applied.transfer));
            format!("taken tick {} settled {settled} transfer {transfer}", applied.tick.0)
        }
        Err(_) => "refused".to_owned(),
    };
    writeln!(out, "{outcome}").unwrap();
    if outcome.starts_with("taken") {
        tell(out, replica.world());
    }
    outcome
}

/// A packet that no publisher of these streams would have sent at this time: flags, number, floor gap, tick,
/// and the entry for slot 3.
type Scripted = (u8, u16, u8, u32, Said);

#[derive(Clone, Copy)]
enum Said {
    /// A spawn with this generation and position.
    Spawn(u16, i32),
    /// An update: the position, the age of the baseline in ticks, and the position there.
    Update(i32, u32, i32),
}

const LAST: u8 = 1;
const COMPLETE: u8 = 4;

/// Applies packets written by hand to a world with interest, and writes the result of each.
fn script(out: &mut String, packets: &[(Scripted, &str)]) {
    let place = Component::builder("place").field("at", Kind::vector3(0.0, 100.0, 0.5));
    let builder = Schema::bare().component(place.build());
    let schema = Arc::new(builder.interest("place", "at", 10.0, 12.5).build().unwrap());
    let tables = Tables::new(&schema, TickRate::DEFAULT);
    writeln!(out, "\nstream member\nschema {}\nrate 30", hex(&schema.encode())).unwrap();
    let mut replica = Replica::new(schema, TickRate::DEFAULT);
    for ((flags, number, floor_gap, tick, said), expected) in packets {
        let mut writer = Writer::new();
        writer.begin(&tables, false);
        let mut head = EntryHead { changed: 1, ..EntryHead::update(3) };
        let (x, past) = match *said {
            Said::Spawn(generation, x) => {
                (head.kind, head.generation) = (EntryKind::Spawn, generation);
                (head.mask, head.mask_changed, head.meta) = (1, true, Some(Meta::default()));
                (x, None)
            }
            Said::Update(x, age, was) => {
                (head.history, head.ages) = (1, [age, 0, 0]);
                (x, Some((age, [was, 7, 7])))
            }
        };
        writer.head(&tables, &head);
        let pasts: Vec<Past> =
            past.iter().map(|(age, lanes)| Past { age: *age, lanes, blobs: &[] }).collect();
        writer.component(&tables, ComponentId(0), &pasts, &[x, 7, 7], &[]);
        let mut packet = vec![*flags];
        packet.extend_from_slice(&number.to_le_bytes());
        packet.push(*floor_gap);
        packet.extend((flags & COMPLETE != 0).then_some(*floor_gap));
        packet.extend_from_slice(&tick.to_le_bytes());
        writer.finish(&tables, &mut packet);
        let outcome = apply(out, &mut replica, packet.into());
        assert!(outcome.starts_with(expected), "{outcome}, not {expected}");
    }
}

/// Cases that do not occur in the streams of two correct ends.
fn scripts(out: &mut String) {
    use Said::{Spawn, Update};
    // A receiver joins a stream before its epoch is sent; numbers wrap. Then another entity is in the slot,
    // and a late packet of it arrives whose spawn is unknown.
    script(
        out,
        &[
            ((LAST, 65_533, 0, 9, Update(10, 1, 9)), "waiting"),
            ((LAST | COMPLETE, 65_534, 0, 10, Spawn(1, 20)), "taken tick 10 settled 1"),
            ((LAST, 65_535, 0, 11, Update(22, 1, 20)), "taken tick 11 settled 1"),
            ((LAST, 0, 2, 12, Update(24, 1, 22)), "taken tick 12 settled 1"),
            ((LAST, 2, 1, 14, Spawn(2, 90)), "taken tick 14 settled 0"),
            ((0, 1, 0, 13, Spawn(1, 26)), "taken tick 13 settled 1"),
            ((LAST, 3, 1, 15, Update(91, 1, 90)), "taken tick 15 settled 1"),
            ((0, 65_535, 0, 11, Update(22, 1, 20)), "old"),
        ],
    );
    // The rows of the history are kept, and the one before them; a packet that is too late is ignored.
    script(
        out,
        &[
            ((LAST | COMPLETE, 1, 0, 1, Spawn(1, 10)), "taken"),
            ((LAST, 2, 0, 2, Update(12, 1, 10)), "taken"),
            ((LAST, 3, 0, 60, Update(14, 58, 12)), "taken"),
            ((LAST, 4, 0, 124, Update(16, 64, 14)), "taken"),
            ((LAST, 5, 0, 190, Update(18, 66, 16)), "taken"),
            ((LAST, 6, 0, 195, Update(20, 135, 14)), "taken tick 195 settled 1"),
            ((LAST, 7, 0, 130, Update(20, 6, 16)), "old"),
            ((LAST, 8, 0, 200, Update(22, 198, 12)), "refused"),
        ],
    );
    // A row that never arrived.
    script(
        out,
        &[
            ((LAST | COMPLETE, 1, 0, 1, Spawn(1, 10)), "taken"),
            ((LAST, 3, 1, 3, Update(14, 1, 12)), "refused"),
        ],
    );
}

fn stream(out: &mut String, viewer: Viewer, seed: u64) {
    let (name, mut replica) = match viewer {
        Viewer::Everything => ("everything", Replica::of_everything(schema(), TickRate::DEFAULT)),
        Viewer::Member(_) => ("member", Replica::new(schema(), TickRate::DEFAULT)),
    };
    writeln!(out, "\nstream {name}\nschema {}\nrate 30", hex(&schema().encode())).unwrap();
    let mut world = World::new(schema(), TickRate::DEFAULT);
    let key = world.spawn(None).unwrap();
    let mut room = Stream { rng: Rng::new(seed), world, entities: Vec::new(), key };
    let config =
        PublisherConfig { packet_bytes: 100, in_flight_bytes_max: 4_000, ..PublisherConfig::new(4_000) };
    let (mut publisher, mut encodings) = (Publisher::new(viewer, config), Encodings::new());
    let mut flying: Vec<(Bytes, Sent)> = Vec::new();
    for tick in 1..26 {
        // Late packets arrive after a long time.
        let tick = if tick < 20 { tick } else { tick + 90 };
        room.change(tick);
        if tick == TRANSFER {
            publisher.begin_transfer();
        }
        while let Some(packet) =
            publisher.poll(&room.world, &mut encodings, Instant::from_millis(u64::from(tick) * 33))
        {
            flying.push(packet);
        }
        let calm = tick > 110 || (TRANSFER + 1..TRANSFER + 4).contains(&tick);
        while flying.len() > if calm { 0 } else { 2 } {
            let (bytes, sent) = flying.remove(room.rng.index(flying.len().min(3)));
            if !calm && room.rng.below(6) == 0 {
                publisher.lost(sent);
                continue;
            }
            assert!(!apply(out, &mut replica, bytes).starts_with("refused"));
            publisher.delivered(sent);
        }
    }
}

#[test]
fn testdata_world_txt_is_what_a_reader_holds() {
    let mut text = HEAD.to_owned();
    stream(&mut text, Viewer::Member(MemberId(1)), 1);
    stream(&mut text, Viewer::Everything, 4);
    scripts(&mut text);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/world.txt");
    if std::env::var_os("PARLOR_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(path, &text).unwrap();
    }
    for part in [
        "taken tick",
        "row 0",
        "settled 1",
        "transfer 1",
        "old",
        "waiting",
        "refused",
        "owner 1",
        "audience 1",
        "row 3",
    ] {
        assert!(text.contains(part), "nothing shows {part:?}");
    }
    let file = std::fs::read_to_string(path).expect("testdata/world.txt is there");
    let differs = file.lines().zip(text.lines()).position(|(was, is)| was != is);
    assert_eq!(
        differs, None,
        "testdata/world.txt is another one from this line on; PARLOR_GOLDEN=write writes it anew"
    );
    assert_eq!(file.len(), text.len());
}
