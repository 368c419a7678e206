use super::*;
use crate::keyed::Audience;
use proptest::prelude::*;

fn entry(id: u32, name: Option<&str>, audience: Option<Audience>, value: impl Into<Value>) -> UpdateEntry {
    let value = value.into();
    let declared =
        name.map(|name| Declared { name: name.to_owned(), hints: Hints::none().angle("a").unwrap() });
    UpdateEntry { id: KeyId(id), declared, audience, encoded: value.encode(100).unwrap(), value }
}

fn delta() -> Update {
    Update {
        head: UpdateHead {
            sequence: StateSequence(300),
            baseline: StateSequence(298),
            source: Source::Delta,
            tick: Tick(1_000),
            server_time: Instant::from_millis(33_333),
            input_acks: vec![(MemberId(0), Tick(999)), (MemberId(7), Tick(1_001))],
            next_key: None,
        },
        removed: vec![KeyId(2), KeyId(9)],
        entries: vec![entry(1, None, None, 1.5), entry(3, Some("tank/3"), None, "x")],
    }
}

fn complete() -> Update {
    let audience = Audience::members([MemberId(1), MemberId(4)]);
    let mut update = delta();
    update.head.source = Source::Transfer;
    update.head.baseline = StateSequence::EMPTY;
    update.head.next_key = Some(KeyId(10));
    update.removed.clear();
    update.entries =
        vec![entry(0, Some("a"), Some(Audience::All), Value::Null), entry(9, Some("b"), Some(audience), 7)];
    update
}

fn refused(update: &Update) -> UpdateError {
    Update::decode(update.encode()).unwrap_err()
}

#[test]
fn updates_come_back() {
    for update in [delta(), complete()] {
        assert_eq!(Update::decode(update.encode()).unwrap(), update);
    }
}

#[test]
fn an_update_without_news_is_small() {
    let mut update = delta();
    update.removed.clear();
    update.entries.clear();
    update.head.input_acks.truncate(1);
    assert_eq!(update.encode().len(), 1 + 2 + 1 + 4 + 4 + (1 + 1 + 1) + 1 + 1);
}

#[test]
fn updates_that_contradict_themselves_are_refused() {
    let mut update = delta();
    update.removed[0] = KeyId(1);
    assert_eq!(refused(&update), UpdateError::RemovedAndListed { id: KeyId(1) });

    let mut update = complete();
    update.entries[1].declared = None;
    assert_eq!(refused(&update), UpdateError::Undeclared { id: KeyId(9) });

    let mut update = complete();
    update.head.next_key = Some(KeyId(9));
    assert_eq!(refused(&update), UpdateError::Reused { id: KeyId(9) });

    let mut update = delta();
    update.head.baseline = StateSequence(300);
    let age = ReadError::OutOfRange { field: "the age of an update" };
    assert_eq!(refused(&update), UpdateError::Read(age));
    update.head.baseline = StateSequence(0);
    assert_eq!(refused(&update), UpdateError::Read(age));

    let mut update = delta();
    update.entries[0].encoded = Bytes::from_static(&[0xc8, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
    let error = DecodeError::NotFinite;
    assert_eq!(refused(&update), UpdateError::Value { id: KeyId(1), error });

    let mut update = delta();
    update.head.sequence = StateSequence(STATE_SEQUENCE_MAX + 1);
    assert!(matches!(refused(&update), UpdateError::Read(_)));

    let big = Bytes::from(vec![0; UPDATE_BYTES_MAX + 1]);
    assert_eq!(Update::decode(big), Err(UpdateError::Oversized { bytes: UPDATE_BYTES_MAX + 1 }));
}

proptest! {
    #[test]
    fn any_bytes_are_an_update_in_its_one_form_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(update) = Update::decode(bytes.clone().into()) {
            prop_assert_eq!(&update.encode()[..], &bytes[..]);
        }
    }

    #[test]
    fn a_damaged_update_is_another_in_its_one_form_or_an_error(which: bool, at: prop::sample::Index, with: u8) {
        let mut bytes = if which { delta() } else { complete() }.encode().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = with;
        if let Ok(update) = Update::decode(bytes.clone().into()) {
            prop_assert_eq!(&update.encode()[..], &bytes[..]);
        }
        bytes.truncate(at);
        prop_assert!(Update::decode(bytes.into()).is_err());
    }
}
