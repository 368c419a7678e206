use super::super::{Audience, Declared, Publisher, StateStamp, UpdateHead, Viewer};
use super::*;
use crate::value::Value;
use parlor_proto::limits::{STATE_KEYS_MAX, STATE_VALUE_BYTES_MAX};
use parlor_proto::{Instant, MemberId, Tick};
use proptest::prelude::*;

fn entry(id: u32, name: Option<&str>, value: impl Into<Value>) -> UpdateEntry {
    let value = value.into();
    UpdateEntry {
        id: KeyId(id),
        declared: name.map(|name| Declared { name: name.to_owned(), hints: Hints::none() }),
        audience: Some(Audience::All),
        encoded: value.encode(STATE_VALUE_BYTES_MAX).unwrap(),
        value,
    }
}

fn update(baseline: u64, sequence: u64, removed: &[u32], entries: Vec<UpdateEntry>) -> Update {
    let next_key = entries.last().map_or(10, |last| last.id.0 + 1).max(10);
    Update {
        head: UpdateHead {
            sequence: StateSequence(sequence),
            baseline: StateSequence(baseline),
            source: if baseline == 0 { Source::Complete } else { Source::Delta },
            tick: Tick(0),
            server_time: Instant::ZERO,
            input_acks: vec![],
            next_key: Some(KeyId(next_key)),
        },
        removed: removed.iter().map(|id| KeyId(*id)).collect(),
        entries,
    }
}

/// At sequence 5, with keys 1 and 2, and having seen all numbers below 10.
fn store() -> Store {
    let mut store = Store::new();
    let first = update(0, 5, &[], vec![entry(1, Some("a"), 1), entry(2, Some("b"), 2)]);
    assert!(matches!(store.adopt(&first), Ok(Outcome::Taken(_))));
    store
}

fn refused(update: &Update) -> UpdateError {
    let mut store = store();
    let error = store.adopt(update).unwrap_err();
    assert_eq!((store.sequence(), store.bytes()), (StateSequence(5), self::store().bytes()));
    assert_eq!((store.get("a"), store.get("b")), (Some(Value::Int(1)), Some(Value::Int(2))));
    error
}

#[test]
fn an_update_is_taken_whole_or_not_at_all() {
    let fine = || entry(1, None, 7);
    let more = |second| update(5, 6, &[], vec![fine(), second]);
    assert_eq!(refused(&more(entry(3, None, 7))), UpdateError::Undeclared { id: KeyId(3) });
    assert_eq!(refused(&more(entry(2, Some("c"), 7))), UpdateError::Renamed { id: KeyId(2) });
    assert_eq!(refused(&more(entry(12, Some("b"), 7))), UpdateError::NameTaken { id: KeyId(12) });
    assert_eq!(refused(&more(entry(3, Some("c"), 7))), UpdateError::Reused { id: KeyId(3) });
    let twice = update(5, 6, &[], vec![entry(11, Some("c"), 1), entry(12, Some("c"), 1)]);
    assert_eq!(refused(&twice), UpdateError::NameTaken { id: KeyId(12) });

    let chunk = "x".repeat(STATE_VALUE_BYTES_MAX - 10);
    let entries = (10..14).map(|id| entry(id, Some(&id.to_string()), chunk.clone())).collect();
    assert!(matches!(refused(&update(5, 6, &[], entries)), UpdateError::TooMuch { keys: 6, .. }));
    let keys = u32::try_from(STATE_KEYS_MAX).unwrap();
    let entries = (10..10 + keys).map(|id| entry(id, Some(&id.to_string()), 0)).collect();
    assert!(matches!(refused(&update(5, 6, &[], entries)), UpdateError::TooMuch { .. }));
}

#[test]
fn a_name_may_move_to_another_key_in_one_update() {
    let mut store = store();
    let moved = update(5, 8, &[1], vec![entry(11, Some("a"), 3)]);
    let Ok(Outcome::Taken(changes)) = store.adopt(&moved) else { panic!() };
    assert_eq!((changes.changed.len(), changes.changed[0].created), (1, true));
    assert!(changes.removed.is_empty());
    assert_eq!((store.get("a"), store.sequence()), (Some(Value::Int(3)), StateSequence(8)));
    let complete = update(0, 9, &[], vec![entry(12, Some("a"), 4)]);
    let Ok(Outcome::Taken(changes)) = store.adopt(&complete) else { panic!() };
    assert_eq!(changes.removed, ["b".into()]);
    assert_eq!((store.get("a"), store.len()), (Some(Value::Int(4)), 1));
}

#[test]
fn what_is_the_same_did_not_change() {
    let mut store = store();
    let same = update(5, 6, &[], vec![entry(1, None, 1), entry(2, None, 3)]);
    let Ok(Outcome::Taken(changes)) = store.adopt(&same) else { panic!() };
    assert_eq!(changes.changed.len(), 1);
    assert_eq!(store.changed_since(StateSequence(5)).collect::<Vec<_>>(), [KeyId(2)]);
}

#[test]
fn old_updates_and_gaps_change_nothing() {
    let mut store = store();
    assert_eq!(store.adopt(&update(0, 5, &[], vec![])), Ok(Outcome::Old));
    assert_eq!(store.adopt(&update(3, 4, &[1], vec![])), Ok(Outcome::Old));
    let gap = Outcome::Gap { baseline: StateSequence(6), own: StateSequence(5) };
    assert_eq!(store.adopt(&update(6, 7, &[1], vec![])), Ok(gap));
    assert_eq!(store.len(), 2);
    store.set("own", &Value::Null, Audience::All).unwrap();
    assert_eq!(store.adopt(&update(5, 6, &[1], vec![])), Err(UpdateError::OwnChanges));
}

#[test]
fn what_is_kept_does_not_keep_the_update() {
    let mut store = Store::new();
    let packet = update(0, 1, &[], vec![entry(0, Some("a"), "some text")]).encode();
    let received = Update::decode(packet.clone()).unwrap();
    store.adopt(&received).unwrap();
    let kept = store.item("a").unwrap().encoded.as_ptr();
    assert!(!packet.as_ptr_range().contains(&kept));
}

proptest! {
    /// Whatever a host sends, the hub goes on: with the update or without, it publishes, hashes and hands over.
    #[test]
    fn no_update_harms_a_store(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3)) {
        let mut store = store();
        let mut member = Publisher::new(Viewer::Member(MemberId(1)));
        let (_, sent) = member.poll_update(&store).unwrap();
        member.delivered(sent);
        let mut bytes = update(5, 6, &[1], vec![entry(2, None, 1.5), entry(12, Some("c"), "text")]).encode().to_vec();
        for (at, with) in damage {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        if let Ok(update) = Update::decode(bytes.into()) {
            let before = store.sequence();
            if !matches!(store.adopt(&update), Ok(Outcome::Taken(_))) {
                prop_assert_eq!(store.sequence(), before);
            }
        }
        for mut publisher in [member, Publisher::new(Viewer::Everything)] {
            if let Some((bytes, _)) = publisher.poll_update(&store) {
                prop_assert!(Update::decode(bytes).is_ok());
            }
        }
        prop_assert_eq!(store.len(), store.iter().count());
        prop_assert_eq!(store.iter().filter(|item| store.get(item.key).is_some()).count(), store.len());
        store.set("next", &Value::Null, Audience::All).ok();
        store.commit(StateStamp::default()).ok();
        prop_assert!(store.size.is_allowed());
    }
}
