//! JSON from players: merging into the state, and limits.

use crate::harness::{Table, refused};
use parlor_turn::Code;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn free() -> Table {
    Table::playing(&json!({ "state": { "a": { "x": 1, "y": [1, 2] }, "b": 2 } }), &["ada"])
}

#[test]
fn a_patch_is_merged_field_by_field_however_deep() {
    let mut table = free();
    table.put("ada", json!({ "a": { "x": null, "z": { "deep": true } } })).expect("a move");
    assert_eq!(table.room.state(), &json!({ "a": { "y": [1, 2], "z": { "deep": true } }, "b": 2 }));
    table
        .put("ada", json!({ "a": { "y": [3] }, "b": null, "c": { "gone": null, "here": 0 } }))
        .expect("a move");
    let expected = json!({ "a": { "y": [3], "z": { "deep": true } }, "c": { "here": 0 } });
    assert_eq!(table.room.state(), &expected, "lists are replaced, null takes away and is not stored");
    table.put("ada", json!({ "a": 7 })).expect("a move");
    assert_eq!(table.room.state(), &json!({ "a": 7, "c": { "here": 0 } }));
}

/// The examples of RFC 7396, appendix A, with objects as patches; a room's state is always an object.
#[test]
fn the_examples_of_rfc_7396_hold() {
    let examples = [
        (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
        (json!({ "a": "b" }), json!({ "a": null }), json!({})),
        (json!({ "a": "b", "b": "c" }), json!({ "a": null }), json!({ "b": "c" })),
        (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] })),
        (json!({ "a": { "b": "c" } }), json!({ "a": { "b": "d", "c": null } }), json!({ "a": { "b": "d" } })),
        (json!({ "a": [{ "b": "c" }] }), json!({ "a": [1] }), json!({ "a": [1] })),
        (json!({ "e": null }), json!({ "a": 1 }), json!({ "e": null, "a": 1 })),
        (json!({}), json!({ "a": { "bb": { "ccc": null } } }), json!({ "a": { "bb": {} } })),
    ];
    for (state, patch, expected) in examples {
        let mut table = Table::playing(&json!({ "state": state }), &["ada"]);
        table.put("ada", patch).expect("a move");
        assert_eq!(table.room.state(), &expected);
    }
}

fn nested(depth: usize) -> Value {
    (0..depth)
        .fold(json!(1), |inner, level| if level % 2 == 0 { json!({ "a": inner }) } else { json!([inner]) })
}

#[test]
fn threat_17_what_is_nested_too_deeply_is_refused() {
    let mut table = free();
    table.propose("ada", json!({ "type": "put", "data": nested(32) })).expect("as deep as it may be");
    for depth in [33, 64, 120] {
        let data = table.by("ada", op(nested(depth), None));
        assert_eq!(refused(data), (Code::TooDeep, "data".to_owned()));
        let state = table.by("ada", op(json!({}), Some(json!({ "a": nested(depth) }))));
        assert_eq!(refused(state), (Code::TooDeep, "state".to_owned()));
        let update = parlor_turn::Update { data: Some(nested(depth)), ..Default::default() };
        let update = table.by("ada", parlor_turn::Op::Update(update));
        assert_eq!(refused(update), (Code::TooDeep, "data".to_owned()));
    }
}

fn op(data: Value, state: Option<Value>) -> parlor_turn::Op {
    let kind = "put".to_owned();
    parlor_turn::Op::Propose(parlor_turn::Propose { kind, data, state_version: None, state })
}

#[test]
fn a_move_and_the_state_are_not_larger_than_the_configuration_allows() {
    let written = json!({ "limits": { "state_bytes": 100, "move_bytes": 60 } });
    let mut table = Table::playing(&written, &["ada"]);
    let text = |len: usize| "x".repeat(len);
    table.put("ada", json!({ "a": text(40) })).expect("it fits");
    assert_eq!(refused(table.put("ada", json!({ "b": text(60) }))), (Code::TooLarge, "state".to_owned()));
    let both = json!({ "type": "put", "data": { "d": text(30) }, "state": { "b": text(30) } });
    assert_eq!(refused(table.propose("ada", both)), (Code::TooLarge, "state".to_owned()), "data counts, too");
    let data = json!({ "type": "put", "data": text(60) });
    assert_eq!(refused(table.propose("ada", data)), (Code::TooLarge, "data".to_owned()));
    table.put("ada", json!({ "b": text(40) })).expect("it fits");
    let third = table.put("ada", json!({ "c": text(20) }));
    assert_eq!(refused(third), (Code::TooLarge, "state".to_owned()), "the state as a whole is what counts");
    table.put("ada", json!({ "a": null, "c": text(20) })).expect("what is taken away makes room");
    assert_eq!(refused(table.put("ada", json!([1]))), (Code::BadInput, "state".to_owned()));
}

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

/// The result of a merge, by another algorithm: the fields of both, each looked at alone.
fn merged(old: Option<&Value>, patch: &Value) -> Option<Value> {
    match patch {
        Value::Null => None,
        Value::Object(changes) => {
            let nothing = Map::new();
            let old = old.and_then(Value::as_object).unwrap_or(&nothing);
            let names = old.keys().chain(changes.keys());
            let fields = names.filter_map(|name| {
                let value = match changes.get(name) {
                    None => old.get(name).cloned(),
                    Some(change) => merged(old.get(name), change),
                };
                Some((name.clone(), value?))
            });
            Some(Value::Object(fields.collect()))
        }
        other => Some(other.clone()),
    }
}

proptest! {
    /// The harness compares each stored document with the loaded one, so this also shows that any number and
    /// text survives storing.
    #[test]
    fn whatever_is_merged_is_what_the_model_says(patches in prop::collection::vec(any_json(), 1..6)) {
        let mut table = Table::playing(&json!({}), &["ada"]);
        let mut model = json!({});
        for patch in patches {
            let done = table.put("ada", patch.clone());
            prop_assert_eq!(done.is_ok(), patch.is_object());
            if !patch.is_object() {
                continue;
            }
            model = merged(Some(&model), &patch).expect("an object is no null");
            prop_assert_eq!(table.room.state(), &model);
        }
    }
}
