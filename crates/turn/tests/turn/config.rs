//! Valid and invalid configurations, and defaults.

use crate::harness::config;
use crate::json::any_json;
use parlor_turn::{Code, Config, Refusal, RuleSets, Visibility};
use proptest::prelude::*;
use serde_json::{Value, json};

fn refusal(written: &Value) -> Refusal {
    Config::read(written, "noughts", &RuleSets::built_in()).expect_err("it cannot be")
}

#[test]
fn an_empty_configuration_is_the_documented_one() {
    let config = config(&json!({}));
    assert_eq!(config.game(), "noughts", "the app, where no game is named");
    assert_eq!((config.players_min(), config.players_max()), (1, 4));
    assert_eq!(config.visibility, Visibility::Public);
    assert!(!config.is_turn_based() && !config.starts_itself() && config.takes_late_players());
    assert!(!config.spectators && config.turn_timeout_ms.is_none());
    assert_eq!(config.validation_timeout_ms, 60_000);
    assert_eq!(config.limits.state_bytes, 65_536);
    assert_eq!(config.limits.move_bytes, 16_384);
    assert_eq!(config.limits.proposals, 4);
}

#[test]
fn the_game_starts_itself_where_a_least_number_was_given() {
    assert!(config(&json!({ "players": { "min": 2 } })).starts_itself());
    assert!(!config(&json!({ "players": { "max": 2 } })).starts_itself());
    assert!(!config(&json!({ "players": { "min": 2 }, "auto_start": false })).starts_itself());
    assert!(config(&json!({ "auto_start": true })).starts_itself());
    // The host has to assign the roles.
    let assigned = json!({ "players": { "min": 2 }, "role_assignment": "assigned", "roles": ["a", "b"] });
    assert!(!config(&assigned).starts_itself());
    // Draughts needs exactly two players.
    assert!(config(&json!({ "rules": "draughts" })).starts_itself());
    assert!(!config(&json!({ "rules": "draughts", "auto_start": false })).starts_itself());
}

#[test]
fn a_least_number_above_the_usual_most_raises_the_most() {
    assert_eq!(config(&json!({ "players": { "min": 6 } })).players_max(), 6);
}

#[test]
fn r3_a_least_number_above_the_most_is_never_reached_so_the_host_begins() {
    let by_hand = config(&json!({ "players": { "min": 5, "max": 4 } }));
    assert!(!by_hand.starts_itself());
    assert_eq!((by_hand.players_min(), by_hand.players_max()), (1, 4));
    let draughts = config(&json!({ "rules": "draughts", "players": { "min": 3, "max": 2 } }));
    assert!(!draughts.starts_itself());
    assert_eq!((draughts.players_min(), draughts.players_max()), (2, 2), "the rules need both");
}

#[test]
fn what_depends_on_other_fields_is_filled_in_and_stays() {
    let turns = config(&json!({ "turn_based": true, "players": { "min": 2, "max": 3 } }));
    assert!(!turns.takes_late_players());
    let draughts = config(&json!({ "rules": "draughts" }));
    assert!(draughts.is_turn_based() && !draughts.takes_late_players());
    assert_eq!((draughts.players_min(), draughts.players_max()), (2, 2));
    for config in [turns, draughts, config(&json!({}))] {
        let stored = json!(config);
        for field in ["turn_based", "auto_start", "late_join", "game"] {
            assert!(!stored[field].is_null(), "{field} is filled in");
        }
        assert!(!stored["players"]["max"].is_null());
        assert_eq!(serde_json::from_value::<Config>(stored.clone()).expect("it is read back"), config);
        let again =
            Config::read(&stored, "other", &RuleSets::built_in()).expect("it can be read as it was written");
        assert_eq!(again, config, "reading what was filled in changes nothing");
    }
}

/// Invalid players and roles.
fn wrong_people() -> Vec<(Value, &'static str)> {
    let long = "x".repeat(65);
    let many: Vec<String> = (0..65).map(|number| format!("role{number}")).collect();
    vec![
        (json!([]), "config"),
        (json!("x"), "config"),
        (json!({ "game": 3 }), "config.game"),
        (json!({ "game": "two words" }), "config.game"),
        (json!({ "game": long }), "config.game"),
        (json!({ "name": "\u{1b}[2J" }), "config.name"),
        (json!({ "players": { "min": "2" } }), "config.players.min"),
        (json!({ "players": [2, 4] }), "config.players"),
        (json!({ "players": { "min": 0 } }), "config.players.min"),
        (json!({ "players": { "min": -1 } }), "config.players.min"),
        (json!({ "players": { "max": 65 } }), "config.players.max"),
        (json!({ "players": { "max": 99_999 } }), "config.players.max"),
        (json!({ "players": { "min": 3, "max": 2 }, "auto_start": true }), "config.players.min"),
        (json!({ "players": { "min": 99, "max": 2 } }), "config.players.min"),
        (json!({ "visibility": "hidden" }), "config.visibility"),
        (json!({ "roles": ["a", "b", "a"] }), "config.roles[2]"),
        (json!({ "roles": ["a", ""] }), "config.roles[1]"),
        (json!({ "roles": many }), "config.roles"),
        (json!({ "auto_start": true, "role_assignment": "assigned" }), "config.role_assignment"),
    ]
}

/// Fields that a rule set decides itself.
fn wrong_with_rules() -> Vec<(Value, &'static str)> {
    vec![
        (json!({ "rules": "chess" }), "config.rules"),
        (json!({ "rules": "draughts", "players": { "max": 3 } }), "config.players.max"),
        (json!({ "rules": "draughts", "players": { "min": 1 } }), "config.players.min"),
        (json!({ "rules": "draughts", "turn_based": false }), "config.turn_based"),
        (json!({ "rules": "draughts", "late_join": true }), "config.late_join"),
        (json!({ "rules": "draughts", "roles": ["a"] }), "config.roles"),
        (json!({ "rules": "draughts", "role_assignment": "assigned" }), "config.role_assignment"),
        (json!({ "rules": "draughts", "state": { "a": 1 } }), "config.state"),
        (json!({ "rules": "draughts", "moves": { "playing": {} } }), "config.moves"),
        (json!({ "rules": "draughts", "quorum": "all" }), "config.quorum"),
        (json!({ "rules": "draughts", "turn_timeout_ms": 5_000, "on_timeout": "skip" }), "config.on_timeout"),
    ]
}

/// Invalid game settings.
fn wrong_games() -> Vec<(Value, &'static str)> {
    let mut deep = json!({});
    for _ in 0..40 {
        deep = json!({ "deeper": deep });
    }
    vec![
        (json!({ "notifications": { "on_turn_start": ["a", "b"] } }), "config.notifications.on_turn_start"),
        (json!({ "moves": { "playing": { "put": [["cell"]] } } }), "config.moves.playing.put"),
        (json!({ "turn_timeout_ms": 5_000 }), "config.turn_timeout_ms"),
        (json!({ "turn_based": true, "turn_timeout_ms": 5 }), "config.turn_timeout_ms"),
        (json!({ "validation_timeout_ms": 0 }), "config.validation_timeout_ms"),
        (json!({ "quorum": "most" }), "config.quorum"),
        (json!({ "moves": { "paused": {} } }), "config.moves.paused"),
        (
            json!({ "moves": { "playing": { "put": { "required_fields": ["cell", 3] } } } }),
            "config.moves.playing.put.required_fields[1]",
        ),
        (
            json!({ "moves": { "waiting": { "r": { "required_fields": ["a", ""] } } } }),
            "config.moves.waiting.r.required_fields[1]",
        ),
        (json!({ "moves": { "playing": { "a b": {} } } }), "config.moves.playing.a b"),
        (json!({ "state": [] }), "config.state"),
        (json!({ "state": { "a": deep } }), "config"),
        (json!({ "metadata": { "a": "x".repeat(20_000) } }), "config.metadata"),
        (json!({ "limits": { "state_bytes": 1_u64 << 40 } }), "config.limits.state_bytes"),
        (json!({ "limits": { "move_bytes": 1 } }), "config.limits.move_bytes"),
        (json!({ "limits": { "proposals": 0 } }), "config.limits.proposals"),
        (
            json!({ "notifications": { "on_turn_start": { "title": "x" } } }),
            "config.notifications.on_turn_start",
        ),
        (
            json!({ "notifications": { "on_game_end": { "title": "{{currentPlayerName}}", "body": "x" } } }),
            "config.notifications.on_game_end.title",
        ),
    ]
}

#[test]
fn what_cannot_be_is_refused_with_its_path() {
    for (written, path) in [wrong_people(), wrong_with_rules(), wrong_games()].into_iter().flatten() {
        let refusal = refusal(&written);
        assert_eq!(
            (refusal.code, refusal.path.as_deref()),
            (Code::BadConfig, Some(path)),
            "{written}: {refusal}"
        );
        assert!(!refusal.sentence.is_empty());
    }
}

#[test]
fn an_unknown_field_is_named_with_those_that_there_are() {
    let refusal = refusal(&json!({ "players": { "mni": 2 } }));
    assert_eq!(refusal.path.as_deref(), Some("config.players.mni"));
    assert!(refusal.sentence.contains("mni") && refusal.sentence.contains("min"), "{refusal}");
}

/// Existing fields with arbitrary values.
fn any_config() -> impl Strategy<Value = Value> {
    let Value::Object(fields) = json!(Config::default()) else { panic!("a configuration is an object") };
    let names: Vec<String> = fields.into_iter().map(|(name, _)| name).collect();
    let small = (0..70_i64).prop_map(Value::from);
    let parts = prop::collection::btree_map("min|max|playing|proposals|on_game_end", small.clone(), 0..3)
        .prop_map(|parts| Value::Object(parts.into_iter().collect()));
    let value =
        prop_oneof![any_json(), small, parts, Just(json!("draughts")), any::<bool>().prop_map(Value::from)];
    prop::collection::btree_map(prop::sample::select(names), value, 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    /// An accepted configuration survives storing; a refusal names the field.
    #[test]
    fn whatever_is_written_is_a_configuration_or_names_what_is_wrong(written in any_config()) {
        let rules = RuleSets::built_in();
        match Config::read(&written, "noughts", &rules) {
            Err(refusal) => {
                prop_assert_eq!(refusal.code, Code::BadConfig);
                prop_assert!(refusal.path.is_some_and(|path| path.starts_with("config")));
            }
            Ok(config) => {
                prop_assert!(config.players_min() >= 1 && config.players_min() <= config.players_max());
                prop_assert_eq!(Config::read(&json!(config), "other", &rules), Ok(config));
            }
        }
    }
}
