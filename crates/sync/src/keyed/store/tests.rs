use super::*;
use crate::value::ValueErrorKind;

fn stamp() -> StateStamp {
    StateStamp::default()
}

fn set(store: &mut Store, key: &str, value: impl Into<Value>) -> bool {
    store.set(key, &value.into(), Audience::All).unwrap()
}

fn changed(store: &Store, since: u64) -> Vec<u32> {
    let mut ids: Vec<u32> = store.changed_since(StateSequence(since)).map(|id| id.0).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn what_is_set_shows_at_once_and_counts_from_the_commit() {
    let mut store = Store::new();
    assert!(set(&mut store, "a", 1));
    assert_eq!(store.get("a"), Some(Value::Int(1)));
    assert_eq!((store.len(), store.view(Viewer::Everything).count()), (1, 0));
    assert_eq!(store.commit(stamp()), Ok(Some(StateSequence(1))));
    assert_eq!(store.view(Viewer::Everything).count(), 1);

    assert!(store.remove("a"));
    assert!(set(&mut store, "b", 2));
    assert_eq!(store.iter().map(|item| item.key).collect::<Vec<_>>(), ["b"]);
    assert_eq!(store.view(Viewer::Everything).map(|item| item.key).collect::<Vec<_>>(), ["a"]);
    assert_eq!(store.commit(stamp()), Ok(Some(StateSequence(2))));
    assert_eq!((store.get("a"), store.len()), (None, 1));
    assert_eq!(changed(&store, 1), [0, 1]);
}

#[test]
fn a_batch_that_ends_as_it_began_is_none() {
    let mut store = Store::new();
    set(&mut store, "a", 1);
    store.commit(stamp()).unwrap();
    let size = store.bytes();
    assert!(!set(&mut store, "a", 1));
    assert!(set(&mut store, "a", 2));
    assert!(set(&mut store, "a", 1));
    assert!(store.remove("a"));
    assert!(!store.remove("a"));
    assert!(set(&mut store, "a", 1));
    assert!(set(&mut store, "b", 1));
    assert!(store.remove("b"));
    assert_eq!(store.commit(stamp()), Ok(None));
    assert_eq!((store.sequence(), store.bytes()), (StateSequence(1), size));
}

#[test]
fn an_input_that_was_used_is_a_change() {
    let mut store = Store::new();
    let used = |tick| StateStamp { input_acks: [(MemberId(1), Tick(tick))].into(), ..stamp() };
    assert_eq!(store.commit(used(5)), Ok(Some(StateSequence(1))));
    assert_eq!(store.commit(used(5)), Ok(None));
    assert_eq!(store.commit(used(6)), Ok(Some(StateSequence(2))));
    assert_eq!(store.stamp(), used(6));
    assert_eq!(store.commit(stamp()), Ok(Some(StateSequence(3))));
    let many = (0..300).map(|id| (MemberId(id), Tick(0))).collect();
    let error = store.commit(StateStamp { input_acks: many, ..stamp() });
    assert_eq!(error, Err(StateError::TooManyAcks { members: 300 }));
}

#[test]
fn numbers_of_keys_are_not_used_again() {
    let mut store = Store::new();
    for round in 0..3 {
        set(&mut store, "a", round);
        store.commit(stamp()).unwrap();
        assert_eq!(store.names["a"], KeyId(u32::try_from(round).unwrap()));
        store.remove("a");
        store.commit(stamp()).unwrap();
    }
    store.next_key = KeyId(KEY_ID_MAX);
    set(&mut store, "last", 1);
    assert_eq!(store.set("more", &Value::Null, Audience::All), Err(StateError::KeysSpent));
    store.commit(stamp()).unwrap();
    assert_eq!(store.set("more", &Value::Null, Audience::All), Err(StateError::KeysSpent));
    assert!(set(&mut store, "last", 2), "keys that exist can still be set");
}

#[test]
fn the_state_is_bounded() {
    let mut store = Store::new();
    for key in ["", &"x".repeat(65)] {
        let error = store.set(key, &Value::Null, Audience::All);
        assert_eq!(error, Err(StateError::KeyLength { key: key.to_owned() }));
    }
    let error = store.set("tank", &vec![Value::Null, f64::NAN.into()].into(), Audience::All).unwrap_err();
    assert_eq!(error.to_string(), "tank[1]: a number must be finite");
    let error = store.set("big", &"x".repeat(STATE_VALUE_BYTES_MAX).into(), Audience::All).unwrap_err();
    let StateError::Value(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), &ValueErrorKind::TooLarge { max: STATE_VALUE_BYTES_MAX });
    let crowd = Audience::members((0..257).map(MemberId));
    let error = store.set("crowd", &Value::Null, crowd);
    assert_eq!(error, Err(StateError::AudienceTooLarge { members: 257 }));

    let chunk = Value::from("x".repeat(STATE_VALUE_BYTES_MAX - 100));
    for n in 0..3 {
        set(&mut store, &n.to_string(), chunk.clone());
    }
    let before = store.bytes();
    let error = store.set("3", &chunk, Audience::All);
    assert!(matches!(error, Err(StateError::TooManyBytes { .. })), "{error:?}");
    assert_eq!((store.bytes(), store.get("3")), (before, None));

    let mut store = Store::new();
    for n in 0..STATE_KEYS_MAX {
        set(&mut store, &format!("{n:x}"), Value::Null);
    }
    assert_eq!(store.set("more", &Value::Null, Audience::All), Err(StateError::TooManyKeys));
}

#[test]
fn removals_are_remembered_up_to_a_bound() {
    let mut store = Store::new();
    for n in 0..TOMBSTONES_MAX + 10 {
        set(&mut store, "a", i64::try_from(n).unwrap());
        store.commit(stamp()).unwrap();
        store.remove("a");
        store.commit(stamp()).unwrap();
    }
    assert_eq!((store.by_change.len(), store.tombstones.len()), (TOMBSTONES_MAX, TOMBSTONES_MAX));
    assert_eq!(store.forgotten, StateSequence(20));
}

#[test]
fn a_key_that_changes_often_stands_in_the_index_once() {
    let mut store = Store::new();
    for n in 0..100 {
        set(&mut store, "a", n);
        store.commit(stamp()).unwrap();
    }
    assert_eq!(store.by_change.iter().collect::<Vec<_>>(), [&(StateSequence(100), KeyId(0))]);
}

#[test]
fn hints_follow_the_longest_prefix() {
    let mut store = Store::new();
    let hints = |path| Hints::none().angle(path).unwrap();
    set(&mut store, "tank/1", 1);
    store.commit(stamp()).unwrap();
    store.declare("tank/", hints("heading")).unwrap();
    store.declare("tank/boss", hints("turret")).unwrap();
    set(&mut store, "tank/boss1", 1);
    set(&mut store, "bullet", 1);
    assert_eq!(store.item("tank/1").unwrap().hints, &hints("heading"));
    assert_eq!(store.item("tank/boss1").unwrap().hints, &hints("turret"));
    assert_eq!(store.item("bullet").unwrap().hints, &Hints::none());
    assert_eq!(store.commit(stamp()), Ok(Some(StateSequence(2))));
    store.declare("tank/", hints("heading")).unwrap();
    assert_eq!(store.commit(stamp()), Ok(None));

    let long = Hints::none().snap(&"x".repeat(64)).unwrap();
    for n in 0..900 {
        set(&mut store, &format!("tank/{n}"), Value::Null);
    }
    let before = store.bytes();
    let error = store.declare("tank/", long);
    assert!(matches!(error, Err(StateError::TooManyBytes { .. })), "{error:?}");
    assert_eq!(store.bytes(), before);
    assert_eq!(store.item("tank/1").unwrap().hints, &hints("heading"));
}

#[test]
fn the_size_is_what_a_complete_update_takes() {
    let mut store = Store::new();
    store.declare("b", Hints::none().angle("x").unwrap()).unwrap();
    set(&mut store, "a", "text");
    store.set("b", &1.into(), Audience::members([MemberId(3), MemberId(100)])).unwrap();
    store.commit(stamp()).unwrap();
    let (bytes, _) = super::super::Publisher::new(Viewer::Everything).poll_update(&store).unwrap();
    // Flags, sequence, tick, time, acks, next key and count take 10; each key's number 1 of the 4 counted.
    assert_eq!(bytes.len() - 10, store.bytes() - 2 * (KEY_ID_BYTES_MAX - 1));
}
