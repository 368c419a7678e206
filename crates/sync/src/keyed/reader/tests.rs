use super::super::{Audience, Keys, Viewer};
use super::*;
use crate::schema::Schema;
use crate::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, Sent};
use parlor_proto::{Instant, MemberId, TickRate};
use std::time::Duration;

/// An authority that publishes directly to a reader.
struct Stage {
    world: World,
    keys: Keys,
    publisher: Publisher,
    replica: Replica,
    reader: KeyReader,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        let schema = Arc::new(Schema::default());
        Stage {
            world: World::new(Arc::clone(&schema), TickRate::DEFAULT),
            keys: Keys::new(),
            publisher: Publisher::new(Viewer::Member(MemberId(1)), PublisherConfig::default()),
            replica: Replica::new(schema, TickRate::DEFAULT),
            reader: KeyReader::new(),
            now: Instant::ZERO,
        }
    }

    fn set(&mut self, key: &str, value: i64) {
        self.keys.set(&mut self.world, key, &Value::Int(value), Audience::All).unwrap();
    }

    fn remove(&mut self, key: &str) {
        assert!(self.keys.remove(&mut self.world, key).unwrap());
    }

    fn commit(&mut self) {
        self.keys.close(&mut self.world).unwrap();
        let next = self.world.tick().map_or(Tick(1), Tick::next);
        self.world.commit(next).unwrap();
    }

    fn packet(&mut self) -> (Bytes, Sent) {
        self.now += Duration::from_millis(33);
        self.publisher.poll(&self.world, &mut Encodings::default(), self.now).expect("there is news")
    }

    fn apply(&mut self, packet: Bytes) -> Changes {
        let Outcome::Taken(applied) = self.replica.apply(packet).unwrap() else { panic!("it is new") };
        self.reader.observe(self.replica.world(), &applied)
    }

    /// Commits, and returns the reader's changes.
    fn pass(&mut self) -> Changes {
        self.commit();
        let (packet, sent) = self.packet();
        let changes = self.apply(packet);
        self.publisher.delivered(sent);
        assert!(self.replica.settled().is_some());
        assert_eq!(self.reader.hash(), self.keys.hash(self.publisher.viewer()));
        changes
    }
}

fn names(changes: &Changes) -> (Vec<(&str, bool)>, Vec<&str>) {
    let changed = changes.changed.iter().map(|change| (&*change.key, change.created)).collect();
    (changed, changes.removed.iter().map(|name| &**name).collect())
}

#[test]
fn what_changed_is_told() {
    let mut stage = Stage::new();
    ["a", "b", "c"].iter().for_each(|key| stage.set(key, 1));
    let changes = stage.pass();
    assert_eq!(names(&changes), (vec![("a", true), ("b", true), ("c", true)], vec![]));
    stage.remove("a");
    stage.remove("b");
    stage.commit();
    stage.set("b", 2);
    stage.set("c", 2);
    let changes = stage.pass();
    assert_eq!(names(&changes), (vec![("b", true), ("c", false)], vec!["a"]));
    assert_eq!(changes.changed[1].tick, Tick(3));
    assert_eq!((stage.reader.get("b"), stage.reader.len()), (Some(&Value::Int(2)), 2));
}

#[test]
fn a_name_that_is_given_anew_means_the_newer_one_whichever_comes_first() {
    let mut stage = Stage::new();
    stage.set("a", 1);
    stage.pass();
    stage.remove("a");
    stage.commit();
    let (farewell, _) = stage.packet();
    stage.set("a", 2);
    stage.commit();
    let (newer, _) = stage.packet();
    // The two packets arrive in reverse order.
    let changes = stage.apply(newer);
    assert_eq!(names(&changes), (vec![("a", true)], vec![]));
    assert_eq!(stage.reader.get("a"), Some(&Value::Int(2)));
    assert!(stage.apply(farewell).is_empty());
    assert_eq!((stage.reader.get("a"), stage.reader.len()), (Some(&Value::Int(2)), 1));
    assert_eq!(stage.reader.hash(), stage.keys.hash(Viewer::Everything));
}

#[test]
fn a_value_that_comes_back_as_it_was_is_no_change() {
    let mut stage = Stage::new();
    stage.set("a", 1);
    stage.pass();
    stage.set("a", 2);
    stage.commit();
    let (_, lost) = stage.packet();
    stage.publisher.lost(lost);
    stage.set("a", 1);
    assert!(stage.pass().is_empty());
}

#[test]
fn a_reader_is_told_which_of_its_own_inputs_was_used() {
    let mut stage = Stage::new();
    let used = |stage: &mut Stage, ticks: [u32; 2]| {
        let report = |tick: u32| Report { tick: Tick(tick), margin_ms: -3, late: 200 };
        let reports =
            [(MemberId(1), report(ticks[0])), (MemberId(2), report(ticks[1]))].into_iter().collect();
        stage.keys.acknowledge(&mut stage.world, &reports).unwrap();
    };
    used(&mut stage, [7, 8]);
    assert!(stage.pass().acknowledged);
    assert_eq!((stage.reader.input_ack(), stage.reader.len()), (Some(Tick(7)), 0));
    used(&mut stage, [9, 9]);
    assert!(stage.pass().acknowledged);
    let told = Report { tick: Tick(9), margin_ms: -3, late: 200 };
    assert_eq!(stage.reader.input_report(), Some(told));
    assert_eq!(stage.reader.input_ack(), Some(Tick(9)));
    stage.keys.acknowledge(&mut stage.world, &OrderedMap::new()).unwrap();
    stage.pass();
    assert_eq!(stage.reader.input_ack(), None);
}

#[test]
fn threat_16_a_key_that_cannot_be_read_is_counted_and_is_none() {
    let mut stage = Stage::new();
    stage.set("a", 1);
    stage.pass();
    let good = Value::Int(7).encode(64).unwrap();
    let name = Bytes::from_static(b"evil");
    let rows = [
        [Bytes::new(), Bytes::new(), good.clone()],
        [name.clone(), Bytes::from_static(&[0]), good.clone()],
        [name.clone(), Bytes::from_static(&[1, 2, 3]), good],
    ];
    for (count, row) in (1..).zip(rows) {
        let entity = stage.world.spawn(None).unwrap();
        stage.world.write_row(entity, KEYED_KEY, &[], &row).unwrap();
        stage.commit();
        let (packet, sent) = stage.packet();
        assert!(stage.apply(packet).is_empty());
        stage.publisher.delivered(sent);
        assert_eq!((stage.reader.unreadable(), stage.reader.len()), (count, 1));
    }
}

#[test]
fn one_flipped_decoded_byte_changes_the_hash() {
    let mut stage = Stage::new();
    stage.keys.set(&mut stage.world, "text", &"hello".into(), Audience::All).unwrap();
    stage.set("n", 1);
    stage.pass();
    let viewer = Viewer::Everything;
    let flip = |stage: &mut Stage, key: &str, value: Value| {
        let entity = *stage.reader.names[key].last().unwrap();
        stage.reader.held.get_mut(&entity).unwrap().value = Arc::new(value);
    };
    flip(&mut stage, "text", "hellp".into());
    assert_ne!(stage.reader.hash(), stage.keys.hash(viewer));
    flip(&mut stage, "text", "hello".into());
    assert_eq!(stage.reader.hash(), stage.keys.hash(viewer));
    flip(&mut stage, "n", Value::Int(0));
    assert_ne!(stage.reader.hash(), stage.keys.hash(viewer));
}
