//! Writes the kept corpus: golden vectors for `packet` and `control`, scripts for `session` and `baselines`, schemas, bodies,
//! streams of packets and recordings.

use parlor_fuzz::sync_targets::{self, GAME, KINDS, history, pasts, recorded_room, row_of};
use parlor_fuzz::targets::op;
use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::delta::{EntryHead, EntryKind, Meta, Tables, Writer};
use parlor_sync::recording::{Ended, Reader, Record, Recorder};
use parlor_sync::schema::ComponentId;
use parlor_sync::schema::{Component, Condition, Interpolation, Kind, Range, Schema, SchemaError};
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, World, WorldError};
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let vectors = fs::read_to_string(root.join("../testdata/wire.txt"))?;
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, hex)) = line.split_once(" = ") else { continue };
        let bytes = from_hex(hex);
        let group = name.split('.').next().unwrap_or(name);
        let (target, before): (_, &[u8]) = match (group, name) {
            (
                "to_member",
                "to_member.joined" | "to_member.kicked" | "to_member.presence" | "to_member.action_refused",
            ) => ("control", &[0]),
            ("to_hub", "to_hub.set_data" | "to_hub.kick" | "to_hub.refuse_action") => ("control", &[1]),
            ("up", "up.member" | "up.members" | "up.everyone_stamped") => ("control", &[2]),
            ("down", _) => ("control", &[3]),
            ("action", "action.up") => ("control", &[4]),
            ("action", "action.down") => ("control", &[5]),
            ("replica", "replica.down") => ("control", &[7]),
            ("replica", _) => ("control", &[6]),
            ("packet", _) | ("header", "header.full") => ("packet", &[]),
            // A frame becomes a packet by the shortest header.
            (
                _,
                "hello.join_full" | "hello.create_named" | "hello.foreign" | "welcome.member" | "redirect",
            ) => ("packet", &[0]),
            (_, "retry_after" | "refused.bad_request" | "close.kicked" | "time.echo" | "fragment") => {
                ("packet", &[0])
            }
            (_, "sequenced" | "reliable" | "ordered") => ("packet", &[0]),
            _ => continue,
        };
        write(&root, target, name, &[before, &bytes].concat())?;
    }
    for (name, script) in scripts() {
        write(&root, "session", name, &script)?;
    }
    for (name, schema) in schemas().map_err(std::io::Error::other)? {
        write(&root, "schema", name, &schema.encode())?;
    }
    for (name, body) in bodies() {
        write(&root, "delta", name, &body)?;
    }
    for (name, viewer) in [("member", Viewer::Member(MemberId(1))), ("everything", Viewer::Everything)] {
        write(&root, "world", name, &stream(viewer).map_err(std::io::Error::other)?)?;
    }
    for (name, script) in baselines() {
        write(&root, "baselines", name, &script)?;
    }
    for (name, bytes) in recordings().map_err(std::io::Error::other)? {
        write(&root, "recording", name, &bytes)?;
    }
    Ok(())
}

fn write(root: &Path, target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let directory = root.join("corpus").join(target);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(name), bytes)
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Client and server talk from here on.
fn open(kind: u8) -> Vec<u8> {
    vec![kind, op::CARRY, op::ANSWER | op::SERVER, 0, op::CARRY | op::SERVER, op::CARRY]
}

fn scripts() -> Vec<(&'static str, Vec<u8>)> {
    const S: u8 = op::SERVER;
    let both = [op::CARRY, op::CARRY | S];
    let script = |kind: u8, then: &[&[u8]]| [open(kind), then.concat()].concat();
    // A message on each lane, the last one in fragments.
    let talk: &[u8] =
        &[op::SEND, 3, 0, 0, 20, op::SEND | S, 4, 0, 0, 20, op::SEND, 5, 0, 0, 20, op::SEND | S, 6, 1, 20, 0];
    let wait = [op::WAIT, 0, 30];
    vec![
        ("talk.quic", script(0, &[talk, &both, &wait, &both])),
        ("talk.websocket", script(1, &[talk, &both, &wait, &both])),
        ("refused", vec![0, op::CARRY, op::ANSWER | S, 1, op::CARRY | S, op::WAIT, 3, 0]),
        ("late_answer", vec![0, op::CARRY, op::WAIT, 0x20, 0, op::ANSWER | S, 0, op::CARRY | S]),
        ("leave_at_once", vec![1, op::ANSWER, op::CARRY, op::ANSWER | S, 0, op::CARRY | S]),
        (
            "resume",
            script(
                0,
                &[talk, &[op::LOSE, op::DETACH, op::ATTACH | S, 1, op::ATTACH, 1], &both, &wait, &both],
            ),
        ),
        ("timed_out", script(0, &[&[op::WAIT, 0x10, 0, op::LOSE, op::WAIT, 0x20, 0], &both])),
        ("goodbye", script(0, &[talk, &[op::ANSWER], &both])),
        (
            "garbage",
            script(0, &[&[op::FEED | S, 0, 0, 4, 1, 9, 0, 0xff, op::CARRY | S, op::FEED, 1, 0, 1, 0xe0]]),
        ),
        ("ack_of_the_future", script(1, &[&[op::FEED, 1, 0, 7, 2, 0xff, 0x7f, 0, 0, 0, 0, op::CARRY]])),
    ]
}

/// The shortest one, one with all kinds, and one with all that is said besides of components and fields.
fn schemas() -> Result<Vec<(&'static str, Schema)>, SchemaError> {
    let metres = Range::new(-256.0, 256.0, 1.0 / 512.0);
    let kinds = Component::builder("kinds")
        .field("bool", Kind::Bool)
        .field("int", Kind::int(-20, 1 << 20))
        .field("float", Kind::float(-1.0, 1.0, 0.001))
        .field("angle", Kind::angle(1024))
        .field("flat", Kind::vector2(-10.0, 10.0, 0.01))
        .field("vector", Kind::vector3(-10.0, 10.0, 0.01))
        .field("direction", Kind::unit_vector(10))
        .field("rotation", Kind::rotation(9))
        .field("transform", Kind::Transform { position: metres, rotation_bits: 9 })
        .field("body", Kind::Body { position: metres, rotation_bits: 11, velocity: metres, spin: metres })
        .field("enum", Kind::Enum { names: ["idle", "run"].map(str::to_owned).to_vec() })
        .field("text", Kind::text(16))
        .field("bytes", Kind::bytes(8))
        .field("any", Kind::any(32))
        .build();
    let place = Kind::vector3(-512.0, 512.0, 0.01);
    let walker = Component::builder("walker")
        .priority(512)
        .field("place", place.interpolation(Interpolation::None).threshold(2))
        .build();
    let purse = Component::builder("purse")
        .condition(Condition::OwnerOnly)
        .field("coins", Kind::int(0, 1_000_000).interpolation(Interpolation::Linear))
        .build();
    Ok(vec![
        ("builtins", Schema::default()),
        ("kinds", Schema::bare().component(kinds).build()?),
        (
            "interest",
            Schema::builder()
                .component(walker)
                .component(purse)
                .interest("walker", "place", 64.0, 80.0)
                .build()?,
        ),
    ])
}

/// Bodies with all kinds of entries, against three rows, one, and none.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let spawn = |slot: u16, mask: u64, meta: Meta| EntryHead {
        kind: EntryKind::Spawn,
        generation: 7,
        mask,
        mask_changed: true,
        meta: Some(meta),
        changed: mask,
        ..EntryHead::update(slot)
    };
    let update = |slot: u16, ages: [u32; 3], history: u8, changed: u64| EntryHead {
        row_age: 1,
        ages,
        history,
        changed,
        ..EntryHead::update(slot)
    };
    let mine = Meta { owner: Some(MemberId(1)), ..Meta::default() };
    let hidden = Meta { owner: None, zone: 3, audience: Audience::members([MemberId(1), MemberId(9)]) };
    let gone = EntryHead { kind: EntryKind::Despawn, ..EntryHead::update(40) };
    let kinds = [
        spawn(0, 1, mine.clone()),
        update(1, [2, 5, 9], 3, 1),
        update(2, [2, 5, 9], 3, 1),
        update(3, [2, 5, 9], 3, 1),
        update(8, [4, 0, 0], 1, 1),
        gone.clone(),
    ];
    let game = [
        spawn(3, 0b11100, hidden),
        update(5, [1, 4, 8], 3, 0b100),
        EntryHead { mask: 0b10100, mask_changed: true, meta: Some(mine), ..update(9, [1, 4, 0], 2, 0b10000) },
        gone,
    ];
    let body = |form: u8, schema: &Schema, heads: &[EntryHead]| {
        let tables = Tables::new(schema, TickRate::DEFAULT);
        let mut writer = Writer::new();
        writer.begin(&tables, form & 2 != 0);
        for head in heads {
            writer.head(&tables, head);
            for (id, component) in (0..).map(ComponentId).zip(schema.components()) {
                if head.changed & id.bit() != 0 {
                    let (lanes, blobs) = row_of(component, u32::from(head.slot) << 8);
                    writer.component(&tables, id, &pasts(head, &history(schema, head, id)), &lanes, &blobs);
                }
            }
        }
        let mut out = vec![form];
        writer.finish(&tables, &mut out);
        out
    };
    vec![("kinds", body(0, &KINDS, &kinds)), ("empty", body(0, &KINDS, &[])), ("game", body(3, &GAME, &game))]
}

/// A stream of a world in which entities come, change and go, without the acknowledgement of each third packet.
fn stream(viewer: Viewer) -> Result<Vec<u8>, WorldError> {
    let mut world = World::new(GAME.clone(), TickRate::DEFAULT);
    let (mut publisher, mut encodings) =
        (Publisher::new(viewer, PublisherConfig::default()), Encodings::new());
    let mut out = vec![u8::from(viewer == Viewer::Everything)];
    let mut entities = Vec::new();
    for tick in 1..40u32 {
        if tick % 5 == 1 {
            entities.push(world.spawn((tick % 2 == 0).then_some(MemberId(1)))?);
        }
        for (entity, at) in entities.iter().zip(0..) {
            let id = ComponentId(if (tick + at) % 7 == 0 { 3 + (tick % 2) as u8 } else { 2 });
            let (lanes, blobs) = row_of(&GAME.components()[id.index()], at << 12 | tick);
            world.write_row(*entity, id, &lanes, &blobs)?;
        }
        if tick % 17 == 0 {
            world.despawn(entities.remove(0))?;
        }
        world.commit(Tick(tick))?;
        let now = Instant::from_millis(u64::from(tick) * 33);
        while let Some((packet, sent)) = publisher.poll(&world, &mut encodings, now) {
            out.extend_from_slice(&u16::try_from(packet.len()).unwrap_or(u16::MAX).to_be_bytes());
            out.extend_from_slice(&packet);
            if sent.0 % 3 != 0 { publisher.delivered(sent) } else { publisher.lost(sent) }
        }
    }
    Ok(out)
}

/// Scripts in which packets are lost, late, repeated and forged, and entities and epochs come and go.
fn baselines() -> Vec<(&'static str, Vec<u8>)> {
    use sync_targets::op::{
        AUDIENCE, COMMIT, DELIVER, DESPAWN, FORGE, FORGET, LOSE, MUTATE, OWNER, REMOVE, REPEAT, SEND, SPAWN,
        TRANSFER, WRITE,
    };
    let script = |form: u8, steps: &[[u8; 3]]| [vec![form], steps.concat()].concat();
    let begin = [[SPAWN, 0, 1], [SPAWN, 0, 0], [WRITE, 0, 3], [WRITE, 1, 6], [COMMIT, 0, 0], [SEND, 0, 3]];
    let tick = |how: u8| [[WRITE, how, 9], [WRITE, how + 1, how], [COMMIT, 0, how], [SEND, 0, 3]];
    let ticks: Vec<[u8; 3]> = (0..20).flat_map(tick).collect();
    let lossy =
        [[LOSE, 0, 0], [DELIVER, 3, 0], [REPEAT, 0, 0], [FORGET, 0, 0], [DELIVER, 1, 0], [MUTATE, 0, 99]];
    let changes =
        [[OWNER, 0, 2], [AUDIENCE, 1, 10], [REMOVE, 0, 0], [DESPAWN, 1, 0], [SPAWN, 0, 2], [COMMIT, 0, 0]];
    let late = [[DELIVER, 0, 0], [WRITE, 0, 12], [COMMIT, 0, 250], [SEND, 0, 3], [DELIVER, 9, 0]];
    let hostile = [[FORGE, 0, 0], [FORGE, 0, 7], [TRANSFER, 0, 0], [SEND, 0, 3], [DELIVER, 0, 0]];
    vec![
        ("lossy", script(0, &[&begin[..], &ticks, &lossy, &ticks, &lossy].concat())),
        ("changes", script(0, &[&begin[..], &lossy, &changes, &ticks, &changes, &lossy].concat())),
        ("late", script(1, &[&begin[..], &late, &ticks, &late, &lossy, &late].concat())),
        ("hostile", script(1, &[&begin[..], &ticks, &hostile, &ticks, &lossy, &hostile].concat())),
    ]
}

/// A recording of a world in which entities come, change and go, whole and cut; and records of all kinds, as a script.
fn recordings() -> Result<Vec<(&'static str, Vec<u8>)>, WorldError> {
    let mut world = World::new(GAME.clone(), TickRate::DEFAULT);
    let mut recorder = Recorder::new(&recorded_room());
    recorder.came(MemberId(0), "ada");
    let mut entities = Vec::new();
    for tick in 1..40u32 {
        if tick % 5 == 1 {
            entities.push(world.spawn((tick % 2 == 0).then_some(MemberId(1)))?);
        }
        for (entity, at) in entities.iter().zip(0..) {
            let (lanes, blobs) = row_of(&GAME.components()[2], at << 12 | tick);
            world.write_row(*entity, ComponentId(2), &lanes, &blobs)?;
        }
        if tick % 17 == 0 {
            world.despawn(entities.remove(0))?;
        }
        world.commit(Tick(tick))?;
        recorder.observe(&world, TickRate::DEFAULT.begins(Tick(tick)));
    }
    recorder.left(MemberId(0));
    recorder.end(Ended::Closed);
    let file = recorder.take();
    let mut reader = Reader::new();
    reader.feed(&file);
    let mut script = vec![1];
    while let Ok(Some((_, record))) = reader.next_record() {
        let (kind, said) = match record {
            Record::Packet(packet) => (0, packet.to_vec()),
            Record::Mark { hash, .. } => (4, hash.to_be_bytes().to_vec()),
            Record::Came { name, .. } => (5, name.into_bytes()),
            Record::Left { .. } => (6, Vec::new()),
            Record::End(_) => (7, Vec::new()),
        };
        script.extend([kind, 33]);
        script.extend(u16::try_from(said.len()).unwrap_or(u16::MAX).to_be_bytes());
        script.extend(said);
    }
    let cut = [&[200], &file[..file.len() - 9]].concat();
    Ok(vec![("file", [&[254], &file[..]].concat()), ("cut", cut), ("records", script)])
}
