#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to what is wanted")]

use super::*;
use crate::limits::ENTITIES_MAX;
use crate::schema::{Component, Kind, LaneRole, Range, Schema};
use parlor_impair::Rng;
use parlor_proto::TickRate;
use proptest::prelude::*;
use std::fmt::Write as _;

/// The content of a packet, with the rows that it is coded against.
struct Packet {
    schema: Schema,
    rate: TickRate,
    everything: bool,
    entries: Vec<Entry>,
}

struct Entry {
    head: EntryHead,
    components: Vec<Part>,
}

/// A component of an entry: its past, oldest last, and its new value.
struct Part {
    id: ComponentId,
    past: Vec<(u32, Row)>,
    row: Row,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
}

fn kind(rng: &mut Rng, which: u64) -> Kind {
    let range = Range::new(-100.0, 100.0, [1.0, 0.25, 1.0 / 512.0, 1.0 / 4_194_304.0][rng.index(4)]);
    let bits = 4 + rng.below(9) as u8;
    match which {
        0 => Kind::Bool,
        1 => Kind::int(-5, 5 + (rng.draw() >> (33 + rng.below(31))) as i64),
        2 => Kind::float(range.min, range.max, range.step),
        3 => Kind::angle(2 + rng.below(5_000) as u32),
        4 => Kind::vector2(range.min, range.max, range.step),
        5 => Kind::vector3(range.min, range.max, range.step),
        6 => Kind::unit_vector(bits),
        7 => Kind::rotation(bits),
        8 => Kind::Transform { position: range, rotation_bits: bits },
        9 => Kind::Body {
            position: range,
            rotation_bits: bits,
            velocity: Range::new(-8.0, 8.0, 1.0 / 64.0),
            spin: range,
        },
        10 => Kind::Enum { names: (0..=rng.below(256).min(255)).map(|n| format!("n{n}")).collect() },
        11 => Kind::text(1 + rng.below(300) as u16),
        12 => Kind::bytes(1 + rng.below(2_000) as u16),
        _ => Kind::any(1 + rng.below(50) as u16),
    }
}

/// Kinds of fields, for [`kind`].
const KINDS: u64 = 14;

fn row(rng: &mut Rng, component: &Component, like: Option<&Row>) -> Row {
    let near = 1 + (rng.draw() >> (40 + rng.below(24))) as i64;
    let how = rng.below(4);
    let lanes = component.lane_kinds().iter().enumerate().map(|(at, lane)| {
        let uniform = rng.below(u64::from(lane.span) + 1) as i64;
        let value = match (how, like) {
            (0, _) | (_, None) => uniform,
            (1, _) => [0, i64::from(lane.span)][rng.index(2)],
            (_, Some(like)) if lane.role == LaneRole::RotationLargest && rng.below(4) > 0 => {
                i64::from(like.lanes[at])
            }
            (_, Some(like)) => i64::from(like.lanes[at]) + uniform % (2 * near) - near,
        };
        value.clamp(0, i64::from(lane.span)) as i32
    });
    let lanes = lanes.collect();
    let blobs = component.blob_bytes_max().enumerate().map(|(at, max)| {
        let mut bytes = like.map_or(Vec::new(), |like| like.blobs[at].to_vec());
        for _ in 0..rng.below(4) {
            let from = rng.index(bytes.len() + 1);
            let byte = rng.draw() as u8;
            match rng.below(4) {
                0 => bytes.insert(from, byte),
                1 => drop(bytes.drain(from..)),
                2 => bytes.extend((0..rng.below(40)).map(|n| (rng.draw() >> (n % 8 * 8)) as u8)),
                _ => bytes.iter_mut().skip(from).take(1).for_each(|b| *b = byte),
            }
        }
        bytes.truncate(max);
        Bytes::from(bytes)
    });
    Row { lanes, blobs: blobs.collect() }
}

fn head(rng: &mut Rng, slot: u16, components: usize, everything: bool) -> EntryHead {
    let all = (1u64 << components) - 1;
    let mut head = EntryHead::update(slot);
    head.row_age = (rng.draw() >> (32 + rng.below(32))).min(u64::from(u32::MAX - 1)) as u32;
    head.kind =
        [EntryKind::Update, EntryKind::Update, EntryKind::Update, EntryKind::Spawn, EntryKind::Despawn]
            [rng.index(5)];
    if head.kind == EntryKind::Despawn {
        return head;
    }
    head.mask_changed = head.kind == EntryKind::Spawn || rng.below(8) == 0;
    if head.mask_changed {
        head.mask = rng.draw() & all;
    }
    head.changed = if head.kind == EntryKind::Spawn { head.mask } else { rng.draw() & all };
    if head.kind == EntryKind::Spawn {
        head.generation = rng.draw() as u16;
    } else {
        head.history = rng.below(4) as u8;
        let mut age = 0;
        for at in 0..usize::from(head.history) {
            age += 1 + (rng.draw() >> (50 + rng.below(14))) as u32;
            head.ages[at] = age;
        }
    }
    if head.kind == EntryKind::Spawn || rng.below(8) == 0 {
        let mut meta =
            Meta { owner: (rng.below(2) == 0).then(|| MemberId(rng.draw() as u32)), ..Meta::default() };
        if everything {
            meta.zone = rng.below(3) as u32;
            if rng.below(2) == 0 {
                meta.audience = Audience::members((0..rng.below(5)).map(|_| MemberId(rng.draw() as u32)));
            }
        }
        head.meta = Some(meta);
    }
    head
}

/// Generates a packet with every kind of content from a seed.
fn packet(seed: u64, entries: u64) -> Packet {
    let mut rng = Rng::new(seed);
    let components = 1 + rng.index(3);
    let mut builder = Schema::bare();
    for at in 0..components {
        let mut component = Component::builder(&format!("c{at}"));
        for field in 0..1 + rng.below(4) {
            let which = rng.below(KINDS);
            component = component.field(&format!("f{field}"), kind(&mut rng, which));
        }
        builder = builder.component(component.build());
    }
    let schema = builder.build().unwrap();
    let everything = rng.below(2) == 0;
    let (mut packet, mut slot) =
        (Packet { schema, rate: TickRate::DEFAULT, everything, entries: Vec::new() }, 0);
    let mut before: Option<EntryHead> = None;
    for _ in 0..entries {
        slot += if rng.below(3) == 0 { rng.below(60) as u16 } else { 0 };
        let mut head = head(&mut rng, slot, components, everything);
        if let Some(before) =
            before.take().filter(|before| before.kind == EntryKind::Update && rng.below(2) == 0)
        {
            head = EntryHead { slot, ..before };
        }
        before = Some(head.clone());
        let parts = (0..components).filter(|at| head.changed >> at & 1 == 1).map(|at| {
            let component = &packet.schema.components()[at];
            let mut rows: Vec<Row> = Vec::new();
            for _ in 0..=head.history {
                let next = row(&mut rng, component, rows.last());
                rows.push(next);
            }
            let now = rows.pop().unwrap();
            let past = head.ages.iter().copied().zip(rows.into_iter().rev()).collect();
            Part { id: ComponentId(at as u8), past, row: now }
        });
        let components = parts.collect();
        packet.entries.push(Entry { head, components });
        slot += 1;
    }
    packet
}

/// More entities than any count that is learned in a packet, each in nearly steady motion.
fn crowd() -> Packet {
    let mut rng = Rng::new(1);
    let at = Kind::vector2(-100.0, 100.0, 1.0 / 64.0);
    let component = Component::builder("c").field("at", at).field("faces", Kind::angle(360)).build();
    let schema = Schema::bare().component(component).build().unwrap();
    let entries = (0..280).map(|slot| {
        let mut head = EntryHead::update(slot);
        head.changed = 1;
        head.history = if rng.below(8) == 0 { rng.below(3) as u8 } else { 3 };
        let ages = if rng.below(4) == 0 { [2, 5, 9] } else { [1, 2, 4] };
        head.ages[..usize::from(head.history)].copy_from_slice(&ages[..usize::from(head.history)]);
        let [from, speed, bend] = [12_800, 60, 5].map(|of| [0, 1, 2].map(|_| rng.below(of) as i32));
        let noise = 1 + u64::from(slot) / 50;
        let mut row = |age: u32| {
            let t = -(age as i32);
            let mut lane = |i: usize| {
                let way = (speed[i] - 30) * t + (bend[i] - 2) * t * t / 2;
                from[i] / 2 + 3_000 + way + rng.below(noise) as i32
            };
            Row { lanes: vec![lane(0), lane(1), lane(2).rem_euclid(360)], blobs: Vec::new() }
        };
        let past = head.ages[..usize::from(head.history)].iter().map(|age| (*age, row(*age))).collect();
        let part = Part { id: ComponentId(0), past, row: row(0) };
        Entry { head, components: vec![part] }
    });
    Packet { schema, rate: TickRate::DEFAULT, everything: false, entries: entries.collect() }
}

fn past(part: &Part) -> Vec<Past<'_>> {
    part.past.iter().map(|(age, row)| Past { age: *age, lanes: &row.lanes, blobs: &row.blobs }).collect()
}

fn write_entry(writer: &mut Writer, tables: &Tables, entry: &Entry) {
    writer.head(tables, &entry.head);
    for part in &entry.components {
        writer.component(tables, part.id, &past(part), &part.row.lanes, &part.row.blobs);
    }
}

fn write(packet: &Packet) -> Vec<u8> {
    let tables = Tables::new(&packet.schema, packet.rate);
    let (mut writer, mut body) = (Writer::new(), Vec::new());
    writer.begin(&tables, packet.everything);
    packet.entries.iter().for_each(|entry| write_entry(&mut writer, &tables, entry));
    let bound = writer.bytes();
    writer.finish(&tables, &mut body);
    assert!(body.len() <= bound);
    body
}

/// Reads a body, and returns whether it equals the packet.
fn read(packet: &Packet, body: &[u8]) -> Result<bool, DeltaError> {
    let tables = Tables::new(&packet.schema, packet.rate);
    let mut reader = Reader::new(&tables, body, packet.everything);
    let (mut is_same, mut entries) = (true, packet.entries.iter());
    while let Some(head) = reader.head()? {
        let entry = entries.next();
        is_same &= entry.is_some_and(|entry| entry.head == head);
        for at in (0..packet.schema.components().len()).filter(|at| head.changed >> at & 1 == 1) {
            let component = &packet.schema.components()[at];
            let part = entry.and_then(|entry| entry.components.iter().find(|part| part.id.index() == at));
            let mut lanes = vec![0; component.lanes()];
            let mut blobs = vec![Bytes::new(); component.blobs()];
            let past = part.map(past).unwrap_or_default();
            reader.component(ComponentId(at as u8), &past, &mut lanes, &mut blobs)?;
            is_same &=
                part.is_some_and(|part| part.row == Row { lanes: lanes.clone(), blobs: blobs.clone() });
            for (lane, value) in component.lane_kinds().iter().zip(lanes) {
                assert!(value >= 0 && value.unsigned_abs() <= lane.span, "a lane within its span");
            }
            for (blob, max) in blobs.iter().zip(component.blob_bytes_max()) {
                assert!(blob.len() <= max, "a blob within its bound");
            }
        }
    }
    Ok(is_same && entries.next().is_none())
}

proptest! {
    #[test]
    fn all_kinds_come_back_exactly_from_any_history(seed in any::<u64>(), entries in 0..30u64) {
        let packet = packet(seed, entries);
        prop_assert_eq!(read(&packet, &write(&packet)), Ok(true));
    }

    /// Any bytes are either rejected with an error, or are the packet itself: its encoding is unique.
    #[test]
    fn threat_16_bytes_from_anywhere_are_refused_or_are_within_all_bounds(
        seed in any::<u64>(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), 1..=255u8), 0..4),
        cut in any::<proptest::sample::Index>(),
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let packet = packet(seed, 12);
        let body = write(&packet);
        let mut changed = body.clone();
        for (at, flip) in flips {
            if !changed.is_empty() {
                let at = at.index(changed.len());
                changed[at] ^= flip;
            }
        }
        let cut = &body[..cut.index(body.len() + 1)];
        let longer = [&body[..], &[0]].concat();
        for bytes in [&changed[..], cut, &noise, &longer] {
            if bytes != body {
                prop_assert_ne!(read(&packet, bytes), Ok(true));
            }
        }
    }

    #[test]
    fn an_entry_is_never_larger_than_the_worst(seed in any::<u64>()) {
        let packet = packet(seed, 20);
        let tables = Tables::new(&packet.schema, packet.rate);
        let mut writer = Writer::new();
        writer.begin(&tables, packet.everything);
        for entry in &packet.entries {
            let before = writer.bytes();
            write_entry(&mut writer, &tables, entry);
            let blobs = entry.components.iter().flat_map(|part| &part.row.blobs).map(Bytes::len).sum();
            let worst = worst_bytes(&tables, &entry.head, blobs);
            // The writer works in units of four bytes.
            prop_assert!(writer.bytes() <= before + worst + 4);
        }
    }

    #[test]
    fn what_is_undone_leaves_a_whole_body(seed in any::<u64>(), kept in 0..8usize) {
        let packet = packet(seed, 12);
        let tables = Tables::new(&packet.schema, packet.rate);
        let (mut writer, mut body) = (Writer::new(), Vec::new());
        writer.begin(&tables, packet.everything);
        packet.entries[..kept].iter().for_each(|entry| write_entry(&mut writer, &tables, entry));
        let mark = writer.mark();
        packet.entries[kept..].iter().for_each(|entry| write_entry(&mut writer, &tables, entry));
        writer.undo(&mark);
        writer.finish(&tables, &mut body);
        let kept = Packet { entries: packet.entries.into_iter().take(kept).collect(), ..packet };
        prop_assert_eq!(&body, &write(&kept));
        prop_assert_eq!(read(&kept, &body), Ok(true));
    }
}

#[test]
fn threat_15_a_packet_gives_so_much_and_no_more() {
    let schema = Schema::bare()
        .component(Component::builder("c").field("b", Kind::bytes(16_384)).build())
        .build()
        .unwrap();
    let tables = Tables::new(&schema, TickRate::DEFAULT);
    // Each entry repeats the blob of the one before it, in at most a bit.
    let blob = [Bytes::from(vec![7; 16_384])];
    let (mut writer, mut body) = (Writer::new(), Vec::new());
    writer.begin(&tables, false);
    for slot in 0..200 {
        writer.head(&tables, &EntryHead { changed: 1, ..EntryHead::update(slot) });
        writer.component(&tables, ComponentId(0), &[], &[], &blob);
    }
    writer.finish(&tables, &mut body);
    let (mut reader, mut output, mut blobs) = (Reader::new(&tables, &body, false), 0, [Bytes::new()]);
    let refused = loop {
        match reader.head().and_then(|_| reader.component(ComponentId(0), &[], &mut [], &mut blobs)) {
            Ok(()) => output += blobs[0].len(),
            Err(why) => break why,
        }
    };
    assert!(matches!(refused, DeltaError::TooMuch { .. }), "{refused}");
    assert!(output <= 128 * 1024 && body.len() < 1_000, "{output} bytes came of {}", body.len());
}

#[test]
fn threat_16_a_body_that_says_it_is_endless_ends() {
    let schema =
        Schema::bare().component(Component::builder("c").field("b", Kind::Bool).build()).build().unwrap();
    let tables = Tables::new(&schema, TickRate::DEFAULT);
    let (mut writer, mut body) = (Writer::new(), Vec::new());
    writer.begin(&tables, false);
    (0..5_000).for_each(|slot| writer.head(&tables, &EntryHead::update(slot)));
    writer.finish(&tables, &mut body);
    let mut reader = Reader::new(&tables, &body, false);
    let refused = (0..).find_map(|entries| reader.head().err().map(|why| (entries, why))).unwrap();
    assert_eq!(refused, (1_024, DeltaError::TooMuch { what: "1,024 entries" }));
}

#[test]
fn a_small_change_in_a_large_value_costs_a_few_bytes() {
    let schema = Schema::bare()
        .component(Component::builder("c").field("b", Kind::bytes(16_384)).build())
        .build()
        .unwrap();
    let mut rng = Rng::new(3);
    let old: Vec<u8> = (0..16_000).map(|_| rng.draw() as u8).collect();
    let mut same_length = old.clone();
    same_length[5_000] ^= 1;
    same_length[9_000] ^= 1;
    let mut longer = old.clone();
    longer.splice(4_000..4_001, [1, 2, 3]);
    for new in [same_length, longer] {
        let row = |bytes: &[u8]| Row { lanes: Vec::new(), blobs: vec![Bytes::copy_from_slice(bytes)] };
        let part = Part { id: ComponentId(0), past: vec![(1, row(&old))], row: row(&new) };
        let head = EntryHead { changed: 1, history: 1, ages: [1, 0, 0], ..EntryHead::update(0) };
        let entries = vec![Entry { head, components: vec![part] }];
        let packet = Packet { schema: schema.clone(), rate: TickRate::DEFAULT, everything: false, entries };
        let body = write(&packet);
        assert_eq!(read(&packet, &body), Ok(true));
        assert!(body.len() < 24, "{} bytes", body.len());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn row_text(row: &Row) -> String {
    let blobs: Vec<String> = row.blobs.iter().map(|blob| hex(blob)).collect();
    format!("{:?} [{}]", row.lanes, blobs.join(", "))
}

#[test]
fn slots_may_begin_again_once() {
    let schema = Schema::builder().build().unwrap();
    let tables = Tables::new(&schema, TickRate::DEFAULT);
    let last = u16::try_from(ENTITIES_MAX - 1).unwrap();
    let written = |slots: &[u16]| {
        let (mut writer, mut body) = (Writer::new(), Vec::new());
        writer.begin(&tables, false);
        slots.iter().for_each(|slot| writer.head(&tables, &EntryHead::update(*slot)));
        writer.finish(&tables, &mut body);
        body
    };
    for slots in [&[7, 9, 3, 4, 8][..], &[4, 3], &[last, 0, last - 1]] {
        let body = written(slots);
        let mut reader = Reader::new(&tables, &body, false);
        for slot in slots {
            assert_eq!(reader.head().unwrap().map(|head| head.slot), Some(*slot), "of {slots:?}");
        }
        assert_eq!(reader.head(), Ok(None));
    }
    // Each slot has one entry.
    for slots in [&[7, 9, 3, 4, 9][..], &[3, 3], &[last, 0, last], &[last, last], &[5, 8, 6, 7, 8]] {
        let body = written(slots);
        let mut reader = Reader::new(&tables, &body, false);
        let (slot, before) = slots.split_last().unwrap();
        before.iter().for_each(|_| assert!(reader.head().is_ok(), "of {slots:?}"));
        assert_eq!(reader.head(), Err(DeltaError::Twice { slot: *slot }), "of {slots:?}");
    }
    // No writer begins a third run.
    let (mut last_head, slots) = (head::LastHead::new(), u32::try_from(ENTITIES_MAX).unwrap());
    let gaps = [9, slots + 3, slots + 1];
    assert_eq!(gaps.map(|gap| last_head.slot_after(gap)), [Some(8), Some(2), None]);
}

/// The content of `testdata/delta.txt`.
fn golden() -> String {
    let mut out = String::from(
        "# Bodies of packets, what they say, and what they are told against. A vector begins with `vector` and a number.\n\
         #   schema HEX, rate TICKS PER SECOND, everything 0 or 1, body HEX; then for each entry, in order:\n\
         #   entry KIND slot row_age generation changed, ages of the history, mask or -, meta or -\n\
         #     (meta: owner or -, room, audience: all or the members), and for each component that follows:\n\
         #   past COMPONENT AGE lanes blobs, of each row that it is told against, the baseline first\n\
         #   row COMPONENT lanes blobs: what comes out\n",
    );
    let packets = (0..40).map(|seed| packet(1_000 + seed, seed / 2)).chain([crowd()]);
    for (number, packet) in packets.enumerate() {
        let _ = writeln!(out, "\nvector {number}\nschema {}", hex(&packet.schema.encode()));
        let _ = writeln!(out, "rate {}\neverything {}", packet.rate.hz(), u8::from(packet.everything));
        let _ = writeln!(out, "body {}", hex(&write(&packet)));
        for Entry { head, components } in &packet.entries {
            let kind = format!("{:?}", head.kind).to_lowercase();
            let ages = &head.ages[..usize::from(head.history)];
            let mask = if head.mask_changed { head.mask.to_string() } else { "-".into() };
            let meta = head.meta.as_ref().map_or("-".into(), |meta| {
                let owner = meta.owner.map_or("-".into(), |owner| owner.0.to_string());
                let audience = match &meta.audience {
                    Audience::All => "all".into(),
                    Audience::Members(members) => {
                        format!("{:?}", members.iter().map(|id| id.0).collect::<Vec<_>>())
                    }
                };
                format!("{owner} {} {audience}", meta.zone)
            });
            let EntryHead { slot, row_age, generation, changed, .. } = head;
            let _ = writeln!(
                out,
                "entry {kind} {slot} {row_age} {generation} {changed} ages {ages:?} mask {mask} meta {meta}"
            );
            for part in components {
                for (age, row) in &part.past {
                    let _ = writeln!(out, "past {} {age} {}", part.id.0, row_text(row));
                }
                let _ = writeln!(out, "row {} {}", part.id.0, row_text(&part.row));
            }
        }
    }
    out
}

/// `PARLOR_GOLDEN=write` rewrites the file, which changes the protocol.
#[test]
fn the_bodies_are_what_they_always_were() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/delta.txt");
    let golden = golden();
    if std::env::var_os("PARLOR_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(path, &golden).expect("testdata can be written");
    }
    let file = std::fs::read_to_string(path).expect("testdata/delta.txt is there");
    let differs = file.lines().zip(golden.lines()).position(|(a, b)| a != b);
    assert_eq!(differs, None, "the first line that differs (from 0); PARLOR_GOLDEN=write writes it anew");
    assert_eq!(file.lines().count(), golden.lines().count());
}
