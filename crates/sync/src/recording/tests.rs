use super::*;
use crate::audience::{Audience, Viewer};
use crate::keyed::Keys;
use crate::limits::{RECORD_BYTES_MAX, RECORDING_HEAD_BYTES_MAX, RECORDING_WAITING_BYTES_MAX};
use crate::schema::{Component, Kind, Schema};
use crate::world::World;
use bytes::Bytes;
use parlor_proto::wire::cursor::{ReadError, Write};
use parlor_proto::{Instant, MemberId, Tick, TickRate, limits};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let place = Component::builder("place").field("at", Kind::vector3(-64.0, 64.0, 0.01)).build();
    let note = Component::builder("note").field("text", Kind::text(200)).build();
    Arc::new(Schema::builder().component(place).component(note).build().expect("it is in order"))
});

fn head() -> Head {
    Head {
        code: "K7QM".parse().expect("it is a code"),
        app: "tanks".into(),
        environment: String::new(),
        tick_rate: TickRate::DEFAULT,
        schema: Arc::clone(&SCHEMA),
        opened: Instant::from_millis(77),
    }
}

fn at(tick: u32) -> Instant {
    TickRate::DEFAULT.begins(Tick(tick))
}

/// An edit of the world in a tick.
type Edit = (u8, u8, u16);

/// A recorded world, and its state after each tick.
struct Recorded {
    bytes: Vec<u8>,
    hashes: Vec<(Instant, u64)>,
    figures: Figures,
}

fn edit(world: &mut World, keys: &mut Keys, (operation, what, how): Edit) {
    let entities: Vec<_> =
        world.entities().filter(|it| world.has(*it, SCHEMA.find("place").unwrap())).collect();
    let Some(entity) = entities.get(usize::from(what) % entities.len().max(1)).copied() else {
        let entity = world.spawn(None).unwrap();
        world.write_row(entity, SCHEMA.find("place").unwrap(), &[0, 1, 2], &[]).unwrap();
        return;
    };
    match operation % 8 {
        0 => {
            let entity = world.spawn(Some(MemberId(u32::from(how % 3)))).unwrap();
            world
                .write_row(entity, SCHEMA.find("place").unwrap(), &[i32::from(how) % 12_800, 0, 1], &[])
                .unwrap();
        }
        1 => world.despawn(entity).unwrap(),
        2 => world.set_owner(entity, (how % 2 == 0).then_some(MemberId(how.into()))).unwrap(),
        3 => world.set_audience(entity, Audience::members([MemberId(u32::from(how % 5))])).unwrap(),
        4 => {
            let text = vec![b'x'; usize::from(how % 200)].into();
            world.write_row(entity, SCHEMA.find("note").unwrap(), &[], &[text]).unwrap();
        }
        5 => keys
            .set(world, &format!("key/{}", what % 4), &i64::from(how).into(), Audience::All)
            .map(drop)
            .unwrap(),
        _ => {
            let lane = i32::from(how) % 12_800;
            world
                .write_row(entity, SCHEMA.find("place").unwrap(), &[lane, lane / 2, 7], &[])
                .map(drop)
                .unwrap();
        }
    }
}

fn record(ticks: &[Vec<Edit>]) -> Recorded {
    let (mut world, mut keys) = (World::new(Arc::clone(&SCHEMA), TickRate::DEFAULT), Keys::new());
    let mut recorder = Recorder::new(&head());
    recorder.came(MemberId(0), "ada");
    let (mut bytes, mut hashes) = (Vec::new(), Vec::new());
    for (tick, edits) in (1..).zip(ticks) {
        edits.iter().for_each(|it| edit(&mut world, &mut keys, *it));
        keys.close(&mut world).unwrap();
        world.commit(Tick(tick)).unwrap();
        recorder.observe(&world, at(tick));
        hashes.push((at(tick), world.hash(Viewer::Everything)));
        bytes.extend(recorder.take());
    }
    recorder.end(Ended::Closed);
    bytes.extend(recorder.take());
    Recorded { bytes, hashes, figures: recorder.figures() }
}

/// A fixed recording with two marks.
static SHORT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let edit = |tick: u16| ((tick * 5).to_le_bytes()[0], tick.to_le_bytes()[0], tick * 91);
    record(&(0..33).map(|tick| vec![edit(tick)]).collect::<Vec<_>>()).bytes
});

/// The result of reading a file: the first error, or the end.
fn verdict(bytes: &[u8]) -> Result<Playback, RecordingError> {
    let mut playback = Playback::new();
    playback.feed(bytes);
    while playback.step(Instant::from_micros(u64::MAX))?.is_some() {}
    Ok(playback)
}

fn is_in_order(bytes: &[u8]) -> bool {
    verdict(bytes).is_ok_and(|it| it.ended().is_some() && it.first_difference().is_none())
}

fn edits() -> impl Strategy<Value = Vec<Vec<Edit>>> {
    vec(vec(any::<Edit>(), 0..6), 1..80)
}

proptest! {
    /// The model: the world itself, after each tick.
    #[test]
    fn x3_every_tick_comes_back_bit_for_bit(ticks in edits(), piece in 1usize..2_000) {
        let recorded = record(&ticks);
        prop_assert_eq!(recorded.figures.bytes, recorded.bytes.len() as u64);
        let mut playback = Playback::new();
        let mut pieces = recorded.bytes.chunks(piece);
        for (at, hash) in &recorded.hashes {
            loop {
                match playback.next_at().unwrap() {
                    None => match pieces.next() {
                        Some(piece) => playback.feed(piece),
                        None => break,
                    },
                    Some(next) if next > *at => break,
                    Some(_) => prop_assert!(playback.step(*at).unwrap().is_some()),
                }
            }
            prop_assert_eq!(playback.world().unwrap().hash(Viewer::Everything), *hash);
        }
        let whole = verdict(&recorded.bytes).unwrap();
        prop_assert_eq!(whole.ended(), Some(Ended::Closed));
        prop_assert_eq!(whole.first_difference(), None);
        prop_assert_eq!(whole.marks(), recorded.figures.marks);
        prop_assert_eq!(whole.marks(), ticks.len().div_ceil(30) as u64);
    }

    #[test]
    fn other_bytes_are_a_named_error(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = SHORT.clone();
        for (index, byte) in changes {
            *index.get_mut(&mut bytes) = byte;
        }
        prop_assert_eq!(is_in_order(&bytes), bytes == *SHORT);
    }

    #[test]
    fn garbage_is_a_named_error(bytes in vec(any::<u8>(), 1..400), behind_magic: bool) {
        let bytes = if behind_magic { [MAGIC, &[VERSION, 1, 0], &bytes[..]].concat() } else { bytes };
        prop_assert!(!is_in_order(&bytes));
    }
}

#[test]
fn one_flipped_bit_is_found_wherever_it_is() {
    assert!(is_in_order(&SHORT) && verdict(&SHORT).unwrap().marks() == 2);
    for place in 0..SHORT.len() {
        for bit in 0..8 {
            let mut bytes = SHORT.clone();
            bytes[place] ^= 1 << bit;
            assert!(!is_in_order(&bytes), "bit {bit} of byte {place}");
        }
    }
}

#[test]
fn a_record_that_is_missing_or_elsewhere_is_found() {
    let mut writer = Writer::new(&head());
    let mut pieces = vec![writer.take()];
    for member in 0..4 {
        writer.write(at(member), &Record::Came { member: MemberId(member), name: "x".into() });
        pieces.push(writer.take());
    }
    writer.write(at(9), &Record::End(Ended::Stopped));
    pieces.push(writer.take());
    assert!(is_in_order(&pieces.concat()));
    let mut without = pieces.clone();
    without.remove(2);
    assert!(matches!(verdict(&without.concat()), Err(RecordingError::Damaged { record: 1, .. })));
    pieces.swap(2, 3);
    assert!(matches!(verdict(&pieces.concat()), Err(RecordingError::Damaged { record: 1, .. })));
}

#[test]
fn a_file_that_was_cut_is_read_up_to_the_cut() {
    let bytes = SHORT.clone();
    let mut before = 0;
    for cut in 0..bytes.len() {
        let playback = verdict(&bytes[..cut]).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert_eq!((playback.ended(), playback.first_difference()), (None, None), "cut at {cut}");
        assert!(playback.reader().records() >= before && playback.reader().leftover_bytes() <= cut);
        before = playback.reader().records();
    }
    assert_eq!(before + 1, verdict(&bytes).unwrap().reader().records());
}

#[test]
fn what_is_no_recording_of_this_version_is_named() {
    let bytes = SHORT.clone();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        verdict(&bytes).unwrap_err()
    };
    assert_eq!(with(0, b'X'), RecordingError::NotARecording);
    assert_eq!(with(MAGIC.len(), 99), RecordingError::Version { found: 99 });
    assert_eq!(with(MAGIC.len() + 1, 99), RecordingError::Protocol { found: 99 });
    assert_eq!(with(MAGIC.len() + 6, b'Z'), RecordingError::HeadDamaged);
    assert_eq!(verdict(b"PARLORLOG\x03").unwrap_err(), RecordingError::NotARecording);
    let more = [&bytes[..], &[0]].concat();
    assert_eq!(verdict(&more).unwrap_err(), RecordingError::AfterEnd { offset: bytes.len() as u64 });
}

#[test]
fn a_huge_length_waits_for_nothing() {
    let mut bytes = Writer::new(&head()).take();
    let (offset, huge) = (bytes.len() as u64, 1 << 60);
    bytes.put_varint(0);
    bytes.put_varint(huge);
    assert_eq!(verdict(&bytes).unwrap_err(), RecordingError::TooLong { record: 0, offset, bytes: huge });
    // The longest valid record is still waited for.
    bytes.truncate(usize::try_from(offset).unwrap());
    bytes.put_varint(0);
    bytes.put_varint(RECORD_BYTES_MAX as u64);
    let playback = verdict(&bytes).unwrap();
    assert_eq!((playback.ended(), playback.reader().records()), (None, 0));
    let mut bytes = Vec::new();
    Head::write_preamble(&mut bytes);
    bytes.put_varint(RECORDING_HEAD_BYTES_MAX as u64 + 1);
    assert_eq!(verdict(&bytes).unwrap_err(), RecordingError::Head(ReadError::OutOfRange { field: "length" }));
}

/// A file with valid checks around records that a recorder does not make.
fn forged(records: impl IntoIterator<Item = Record>) -> Result<Playback, RecordingError> {
    let mut writer = Writer::new(&head());
    records.into_iter().for_each(|record| writer.write(at(1), &record));
    verdict(&writer.take())
}

#[test]
fn right_checks_around_wrong_records_are_named_errors_too() {
    let packet = Record::Packet(Bytes::from_static(&[0xff; 40]));
    assert!(matches!(forged([packet]), Err(RecordingError::Stream { record: 0, .. })));
    let mark = Record::Mark { tick: Tick(5), hash: 1 };
    assert_eq!(forged([mark]).unwrap().first_difference(), Some(Tick(5)));
    let crowd =
        |many: u32| (0..many).map(|member| Record::Came { member: MemberId(member), name: String::new() });
    let most = u32::from(limits::MEMBERS_MAX_SERVER_RUN);
    assert_eq!(forged(crowd(most)).unwrap().players().len(), most as usize);
    assert!(matches!(forged(crowd(most + 1)), Err(RecordingError::Malformed { .. })));
    let long = Record::Came { member: MemberId(1), name: "x".repeat(limits::NAME_BYTES_MAX + 1) };
    assert!(matches!(forged([long]), Err(RecordingError::Malformed { record: 0, .. })));
}

/// As with a build that decodes differently: packets of another world between the marks of this one.
#[test]
fn a_world_that_comes_out_otherwise_is_found_by_its_hash() {
    let records = |bytes: &[u8]| -> Vec<Record> {
        let mut reader = Reader::new();
        reader.feed(bytes);
        std::iter::from_fn(|| reader.next_record().unwrap()).map(|(_, record)| record).collect()
    };
    let is_mark = |record: &Record| matches!(record, Record::Mark { .. });
    let other = record(&(0..33).map(|tick| vec![(6, 0, tick * 17 + 5)]).collect::<Vec<_>>()).bytes;
    assert!(is_in_order(&other));
    let mut marks = records(&SHORT).into_iter().filter(is_mark);
    let mixed = records(&other).into_iter().map(|it| if is_mark(&it) { marks.next().unwrap() } else { it });
    assert_eq!(forged(mixed).unwrap().first_difference(), Some(Tick(31)));
}

#[test]
fn players_are_those_who_were_there() {
    let came = |member, name: &str| Record::Came { member: MemberId(member), name: name.into() };
    let playback = forged([came(0, "ada"), came(1, "bo"), Record::Left { member: MemberId(0) }]).unwrap();
    assert_eq!(playback.players().iter().map(|(id, name)| (id.0, &**name)).collect::<Vec<_>>(), [(1, "bo")]);
}

#[test]
fn a_recording_that_nobody_takes_ends_and_is_whole() {
    let mut recorder = Recorder::new(&head());
    let mut records = 0u64;
    while recorder.figures().ended.is_none() {
        recorder.came(MemberId(1), &"x".repeat(limits::NAME_BYTES_MAX));
        records += 1;
        assert!(records < RECORDING_WAITING_BYTES_MAX as u64, "it ends");
    }
    assert_eq!(recorder.figures().ended, Some(Ended::Behind));
    recorder.came(MemberId(1), "late");
    recorder.end(Ended::Closed);
    let bytes = recorder.take();
    assert!(bytes.len() < RECORDING_WAITING_BYTES_MAX + 1024);
    let playback = verdict(&bytes).unwrap();
    assert_eq!((playback.ended(), playback.reader().records()), (Some(Ended::Behind), records + 1));
    assert!(recorder.take().is_empty());
}
