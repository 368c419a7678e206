use super::super::{Audience, Publisher, StateStamp, Viewer};
use super::*;
use parlor_proto::MemberId;

const ME: Viewer = Viewer::Member(MemberId(1));

fn commit(store: &mut Store, pairs: &[(&str, i64)]) {
    for (key, value) in pairs {
        store.set(key, &Value::Int(*value), Audience::All).unwrap();
    }
    store.commit(StateStamp::default()).unwrap();
}

fn taken(outcome: Result<Outcome<Applied>, UpdateError>) -> Applied {
    match outcome {
        Ok(Outcome::Taken(applied)) => applied,
        other => panic!("{other:?}"),
    }
}

fn names(changes: &Changes) -> (Vec<(&str, bool)>, Vec<&str>) {
    let changed = changes.changed.iter().map(|change| (&*change.key, change.created)).collect();
    (changed, changes.removed.iter().map(|name| &**name).collect())
}

#[test]
fn what_changed_is_told() {
    let (mut store, mut publisher, mut replica) = (Store::new(), Publisher::new(ME), Replica::new());
    commit(&mut store, &[("a", 1), ("b", 1), ("c", 1)]);
    let (bytes, sent) = publisher.poll_update(&store).unwrap();
    let applied = taken(replica.apply(bytes.clone()));
    assert_eq!(names(&applied.changes), (vec![("a", true), ("b", true), ("c", true)], vec![]));
    publisher.delivered(sent);
    store.remove("a");
    store.remove("b");
    store.commit(StateStamp::default()).unwrap();
    commit(&mut store, &[("b", 2), ("c", 2)]);
    let applied = taken(replica.apply(publisher.poll_update(&store).unwrap().0));
    assert_eq!(names(&applied.changes), (vec![("c", false), ("b", true)], vec!["a"]));
    assert_eq!((replica.get("b"), replica.len()), (Some(&Value::Int(2)), 2));
    assert_eq!(replica.apply(bytes), Ok(Outcome::Old));
    assert_eq!(replica.counters(), ReplicaCounters { taken: 2, old: 1, ..ReplicaCounters::default() });
}

#[test]
fn what_builds_on_nothing_is_a_gap() {
    let (mut store, mut publisher, mut replica) = (Store::new(), Publisher::new(ME), Replica::new());
    commit(&mut store, &[("a", 1)]);
    let (_, sent) = publisher.poll_update(&store).unwrap();
    publisher.delivered(sent);
    commit(&mut store, &[("a", 2)]);
    let delta = publisher.poll_update(&store).unwrap().0;
    let gap = Outcome::Gap { baseline: StateSequence(1), own: StateSequence::EMPTY };
    assert_eq!(replica.apply(delta), Ok(gap));
    assert_eq!((replica.len(), replica.counters().gaps), (0, 1));
    publisher.restart();
    taken(replica.apply(publisher.poll_update(&store).unwrap().0));
    assert_eq!(replica.sequence(), StateSequence(2));
}

#[test]
fn what_breaks_the_protocol_changes_nothing() {
    let (mut store, mut publisher, mut replica) = (Store::new(), Publisher::new(ME), Replica::new());
    commit(&mut store, &[("a", 1)]);
    let bytes = publisher.poll_update(&store).unwrap().0;
    taken(replica.apply(bytes.clone()));
    assert!(matches!(replica.apply(bytes.slice(1..)), Err(UpdateError::Read(_))));
    assert_eq!((replica.get("a"), replica.counters().refused), (Some(&Value::Int(1)), 1));
}

#[test]
fn a_transfer_is_seen_once_even_if_nothing_changed() {
    let (mut store, mut publisher, mut replica) = (Store::new(), Publisher::new(ME), Replica::new());
    commit(&mut store, &[("a", 1)]);
    taken(replica.apply(publisher.poll_update(&store).unwrap().0));
    publisher.begin_transfer();
    let (bytes, _) = publisher.poll_update(&store).unwrap();
    let applied = taken(replica.apply(bytes.clone()));
    assert_eq!((applied.head.source, names(&applied.changes)), (Source::Transfer, (vec![], vec![])));
    assert_eq!(replica.apply(bytes), Ok(Outcome::Old));
}

#[test]
fn a_replica_that_is_ahead_follows_a_new_authority_back() {
    let (mut store, mut publisher, mut replica) = (Store::new(), Publisher::new(ME), Replica::new());
    commit(&mut store, &[("a", 1)]);
    let mut survivor = store.clone();
    commit(&mut store, &[("a", 2), ("lost", 2)]);
    taken(replica.apply(publisher.poll_update(&store).unwrap().0));
    // The successor has the first batch only, and gives the number of the lost key to another one.
    replica.restart();
    assert_eq!((replica.sequence(), replica.get("a")), (StateSequence::EMPTY, Some(&Value::Int(2))));
    let mut publisher = Publisher::new(ME);
    publisher.begin_transfer();
    let (bytes, sent) = publisher.poll_update(&survivor).unwrap();
    let applied = taken(replica.apply(bytes));
    publisher.delivered(sent);
    assert_eq!(names(&applied.changes), (vec![("a", false)], vec!["lost"]));
    commit(&mut survivor, &[("new", 3)]);
    taken(replica.apply(publisher.poll_update(&survivor).unwrap().0));
    assert_eq!(replica.hash(), survivor.hash(ME));
}

#[test]
fn the_successor_goes_on_where_the_state_stands() {
    let mut store = Store::new();
    store.declare("a", Hints::none().angle("x").unwrap()).unwrap();
    commit(&mut store, &[("a", 1), ("b", 1)]);
    store.set("secret", &Value::Int(7), Audience::members([MemberId(9)])).unwrap();
    commit(&mut store, &[("gone", 1)]);
    store.remove("gone");
    store.commit(StateStamp::default()).unwrap();
    let mut replica = Replica::new();
    taken(replica.apply(Publisher::new(Viewer::Everything).poll_update(&store).unwrap().0));
    let mut successor = replica.into_store();
    assert_eq!(successor.hash(Viewer::Everything), store.hash(Viewer::Everything));
    assert_eq!(successor.item("secret").unwrap().audience, &Audience::members([MemberId(9)]));
    assert_eq!(successor.item("a").unwrap().hints, &Hints::none().angle("x").unwrap());
    assert_eq!((successor.next_key, successor.size), (store.next_key, store.size));
    commit(&mut successor, &[("c", 1)]);
    assert_eq!(successor.sequence(), StateSequence(4));
}

#[test]
fn one_flipped_decoded_byte_changes_the_hash() {
    let mut store = Store::new();
    store.set("text", &"hello".into(), Audience::All).unwrap();
    commit(&mut store, &[("n", 1)]);
    let mut replica = Replica::new();
    taken(replica.apply(Publisher::new(ME).poll_update(&store).unwrap().0));
    assert_eq!(replica.hash(), store.hash(ME));
    let id = replica.store.names["text"];
    replica.values.insert(id, Arc::new("hellp".into()));
    assert_ne!(replica.hash(), store.hash(ME));
    replica.values.insert(id, Arc::new("hello".into()));
    let id = replica.store.names["n"];
    replica.values.insert(id, Arc::new(Value::Int(0)));
    assert_ne!(replica.hash(), store.hash(ME));
}
