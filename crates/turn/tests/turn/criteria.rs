//! Matchmaking criteria: which rooms they find.

use crate::harness::{Table, config};
use parlor_turn::{Code, Create, Criteria, Listed, RuleSets};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn read(written: Value) -> Criteria {
    Criteria::read(&written).expect("criteria that can be")
}

fn opened(written: &Value, create: Create) -> Listed {
    let table = Table::created(config(written), create, 1, RuleSets::built_in(), &[]);
    // As in a list of rooms.
    let summary = serde_json::to_value(table.room.summary()).expect("a summary is JSON");
    let listed = serde_json::from_value(summary).expect("a summary says what criteria look at");
    assert_eq!(Listed::from(&table.room.summary()), listed);
    listed
}

#[test]
fn a_room_meets_all_of_the_criteria_or_is_not_found() {
    let metadata = json!({ "mode": "ranked", "league": 3, "map": { "size": [8, 8] }, "cup": null });
    let room = opened(
        &json!({ "rules": "draughts" }),
        Create { name: Some("Ada's".to_owned()), metadata: Some(metadata), ..Create::default() },
    );
    for (written, is_met) in [
        (json!({}), true),
        (json!({ "name": "Ada's" }), true),
        (json!({ "name": "ada's" }), false),
        (json!({ "rules": "draughts", "max_players": 2 }), true),
        (json!({ "rules": "rock-paper-scissors" }), false),
        (json!({ "max_players": 3 }), false),
        (json!({ "metadata": { "mode": "ranked", "league": 3 } }), true),
        (json!({ "metadata": { "mode": "ranked", "league": 4 } }), false),
        (json!({ "metadata": { "league": 3.0 } }), true),
        (json!({ "metadata": { "league": "3" } }), false),
        (json!({ "metadata": { "map": { "size": [8, 8.0] } } }), true),
        (json!({ "metadata": { "map": { "size": [8] } } }), false),
        (json!({ "metadata": { "map": {} } }), false),
        (json!({ "metadata": { "cup": null, "never": null } }), true),
        (json!({ "metadata": { "mode": null } }), false),
        (json!({ "name": "Ada's", "metadata": { "never": 1 } }), false),
    ] {
        assert_eq!(read(written.clone()).admit(&room), is_met, "{written}");
    }
}

#[test]
fn large_numbers_are_not_taken_for_their_neighbours() {
    let create = |id: u64| Create { metadata: Some(json!({ "id": id })), ..Create::default() };
    let room = opened(&json!({}), create(9_007_199_254_740_993));
    assert!(read(json!({ "metadata": { "id": 9_007_199_254_740_993_u64 } })).admit(&room));
    assert!(!read(json!({ "metadata": { "id": 9_007_199_254_740_992_u64 } })).admit(&room));
}

#[test]
fn what_cannot_be_looked_for_is_refused_by_its_path() {
    let many: Map<String, Value> = (0..17).map(|number| (format!("f{number}"), json!(1))).collect();
    for (written, code, path) in [
        (json!([]), Code::BadInput, "criteria"),
        (json!([null, null, null, {}]), Code::BadInput, "criteria"),
        (json!({ "nmae": "x" }), Code::BadInput, "criteria.nmae"),
        (json!({ "name": 7 }), Code::BadInput, "criteria.name"),
        (json!({ "name": " " }), Code::BadInput, "criteria.name"),
        (json!({ "name": "x".repeat(65) }), Code::TooLarge, "criteria.name"),
        (json!({ "rules": "a b" }), Code::BadInput, "criteria.rules"),
        (json!({ "max_players": 0 }), Code::BadInput, "criteria.max_players"),
        (json!({ "max_players": 65 }), Code::BadInput, "criteria.max_players"),
        (json!({ "metadata": 7 }), Code::BadInput, "criteria.metadata"),
        (json!({ "metadata": many }), Code::TooLarge, "criteria.metadata"),
        (json!({ "metadata": { "a": "x".repeat(4096) } }), Code::TooLarge, "criteria"),
    ] {
        let refusal = Criteria::read(&written).expect_err("no criteria");
        assert_eq!((refusal.code, refusal.path.as_deref()), (code, Some(path)), "{written}: {refusal}");
    }
}

#[test]
fn a_room_that_would_not_meet_them_is_not_opened() {
    let players =
        json!({ "players": { "min": 2, "max": 4 }, "name": "Noughts", "metadata": { "mode": "free" } });
    for (criteria, create, path) in [
        (json!({ "name": "Other" }), Create::default(), "criteria.name"),
        (json!({ "rules": "draughts" }), Create::default(), "criteria.rules"),
        (json!({ "max_players": 5 }), Create::default(), "criteria.max_players"),
        (
            json!({ "max_players": 3 }),
            Create { max_players: Some(2), ..Create::default() },
            "criteria.max_players",
        ),
        (json!({ "metadata": { "mode": "ranked" } }), Create::default(), "criteria.metadata.mode"),
        (json!({ "metadata": { "mode": null } }), Create::default(), "criteria.metadata.mode"),
        // A merge drops nested nulls.
        (json!({ "metadata": { "map": { "size": null } } }), Create::default(), "criteria.metadata.map"),
    ] {
        let refusal = read(criteria.clone()).met_by(create, &config(&players)).expect_err("not met");
        assert_eq!((refusal.code, refusal.path.as_deref()), (Code::BadInput, Some(path)), "{criteria}");
    }
    let create = Create { metadata: Some(json!({ "mode": "ranked" })), ..Create::default() };
    let met = read(json!({ "metadata": { "mode": "ranked" } })).met_by(create, &config(&players));
    assert!(met.is_ok(), "what is asked for goes before the configuration: {met:?}");
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i32).prop_map(Value::from),
        (0..3_i32).prop_map(|number| json!(f64::from(number))),
        "[ab]{0,1}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[ab]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn fields() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::hash_map("[abc]", values(), 0..3).prop_map(|map| map.into_iter().collect())
}

/// Numbers as floats, so that equal ones are written alike.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn a_room_is_found_exactly_if_each_value_is_the_one_that_is_looked_for(stands in fields(), sought in fields()) {
        let room = Listed { name: "n".to_owned(), rules: None, max_players: 4, metadata: json!(stands) };
        let is_met = sought.iter().all(|(field, value)| {
            plain(value) == stands.get(field).map_or(Value::Null, plain)
        });
        prop_assert_eq!(read(json!({ "metadata": sought })).admit(&room), is_met);
    }

    #[test]
    fn the_room_that_is_opened_for_criteria_is_found_by_them(
        sought in fields(),
        asked in prop::option::of(fields()),
        configured in fields(),
        name in prop::option::of("[ab]{1,2}"),
        seats in prop::option::of(1..6_u16),
    ) {
        let criteria = read(json!({ "name": name, "max_players": seats, "metadata": sought }));
        let written = json!({ "metadata": configured });
        let create = Create { metadata: asked.map(Value::from), ..Create::default() };
        match criteria.met_by(create, &config(&written)) {
            Ok(create) => prop_assert!(criteria.admit(&opened(&written, create))),
            Err(refusal) => prop_assert!(refusal.path.is_some_and(|path| path.starts_with("criteria."))),
        }
    }

    #[test]
    fn nothing_that_is_not_asked_for_is_in_the_way(sought in fields()) {
        // Objects are left out: a merge removes their nulls, so no room could have such values.
        let sought: Map<String, Value> = sought.into_iter().filter(|(_, value)| !value.is_object()).collect();
        let criteria = read(json!({ "metadata": sought }));
        let met = criteria.met_by(Create::default(), &config(&json!({})));
        prop_assert!(met.is_ok(), "{met:?}");
    }
}
