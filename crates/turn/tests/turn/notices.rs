//! Recipients of notices, and recipients and texts of pushes.

use crate::harness::{Table, id};
use parlor_turn::{NoticeKind, PushOn};
use serde_json::{Value, json};

fn called() -> Value {
    json!({
        "game": "noughts", "turn_based": true, "name": "Den", "players": { "min": 2, "max": 4 },
        "turn_timeout_ms": 10_000,
        "notifications": {
            "on_turn_start": {
                "title": "{{ currentPlayerName }}'s turn",
                "body": "{{previousPlayerName}}|{{roomName}}|{{turnNumber}}|{{gameType}}|{{roomId}}|{{open",
            },
            "on_game_end": { "title": "{{winnerName}} won", "body": "{{finisherName}}|{{endReason}}|{{roomName}}" },
        },
    })
}

fn pushes(table: &mut Table) -> Vec<(PushOn, Vec<String>, String, String)> {
    let pushed = table.pushed().into_iter();
    pushed
        .map(|push| {
            let to = push.to.iter().map(|player| player.as_str().to_owned()).collect();
            (push.on, to, push.title, push.body)
        })
        .collect()
}

#[test]
fn r8_whose_turn_begins_is_called_with_the_words_of_the_template() {
    let mut table = Table::playing(&called(), &["ada", "bob"]);
    table.put("ada", json!({})).expect("her turn");
    let to = vec!["bob".to_owned()];
    let body = "ada|Den|2|noughts|room-1|{{open".to_owned();
    assert_eq!(pushes(&mut table), [(PushOn::TurnStart, to, "BOB's turn".to_owned(), body)]);
}

#[test]
fn r8_a_move_that_ends_the_game_calls_all_others_to_the_end_and_nobody_to_a_turn() {
    let mut table = Table::playing(&called(), &["ada", "bob", "cleo"]);
    table
        .put("ada", json!({ "isGameOver": true, "winner": "cleo", "endReason": "points" }))
        .expect("her turn");
    let to = vec!["bob".to_owned(), "cleo".to_owned()];
    let body = "ada|points|Den".to_owned();
    assert_eq!(pushes(&mut table), [(PushOn::GameEnd, to, "CLEO won".to_owned(), body)]);
}

#[test]
fn a_draw_has_no_winners_name_and_time_no_finishers() {
    let mut table = Table::playing(&called(), &["ada", "bob"]);
    table.put("ada", json!({ "isGameOver": true })).expect("her turn");
    assert_eq!(pushes(&mut table)[0].2, " won");
    let mut table = Table::playing(&called(), &["ada", "bob"]);
    table.expire_at(10_000);
    let both = vec!["ada".to_owned(), "bob".to_owned()];
    let body = "|timeout|Den".to_owned();
    assert_eq!(pushes(&mut table), [(PushOn::GameEnd, both, "BOB won".to_owned(), body)], "both were away");
}

#[test]
fn r8_nobody_is_called_because_of_what_they_did_themselves_and_to_the_first_turn() {
    // Ada starts the game, and it is her turn.
    let mut written = called();
    written["auto_start"] = json!(false);
    let mut table = Table::new(&written, &["bob"]);
    table.start(json!({ "turn_order": ["ada", "bob"] })).expect("the host may");
    assert_eq!(pushes(&mut table), []);
    // Bob has the first turn, which follows none, and did not start the game.
    let mut table = Table::new(&written, &["bob"]);
    table.start(json!({ "turn_order": ["bob", "ada"] })).expect("the host may");
    assert_eq!(pushes(&mut table), []);
    table.put("bob", json!({})).expect("his turn");
    assert_eq!(pushes(&mut table)[0].1, ["ada"]);
    // With a single player each turn follows the player's own.
    let mut table = Table::playing(&called_alone(), &["ada"]);
    table.put("ada", json!({})).expect("her turn");
    assert_eq!((table.current().to_owned(), pushes(&mut table)), ("ada".to_owned(), vec![]));
}

fn called_alone() -> Value {
    let mut written = called();
    written["players"] = json!({ "min": 1, "max": 1 });
    written
}

#[test]
fn who_left_is_still_named_in_what_the_next_reads() {
    let mut table = Table::playing(&called(), &["bob", "cleo", "ada"]);
    table.leave("bob").expect("anybody may");
    let pushed = pushes(&mut table);
    assert_eq!((pushed[0].2.as_str(), pushed[0].3.split('|').next()), ("CLEO's turn", Some("BOB")));
}

#[test]
fn r8_without_templates_nobody_is_called() {
    let mut table = Table::playing(&json!({ "turn_based": true }), &["ada", "bob"]);
    table.put("ada", json!({})).expect("her turn");
    table.put("bob", json!({ "isGameOver": true })).expect("his turn");
    assert_eq!(pushes(&mut table), []);
}

#[test]
fn a_name_that_looks_like_a_variable_is_a_name() {
    let mut written = called();
    written["name"] = json!("{{roomId}}");
    let mut table = Table::playing(&written, &["ada", "bob"]);
    table.put("ada", json!({})).expect("her turn");
    assert!(pushes(&mut table)[0].3.contains("|{{roomId}}|"));
}

#[test]
fn a_turn_is_told_to_all_and_to_whose_it_is() {
    let mut table = Table::playing(&called(), &["ada", "bob", "cleo"]);
    table.put("ada", json!({})).expect("her turn");
    let told = table.told();
    let turn = &told[1];
    assert_eq!((turn.kind, turn.to.len()), (NoticeKind::TurnStarted, 3));
    let deadline = crate::harness::BEGIN.after_ms(10_000);
    let version = table.room.state_version();
    assert_eq!(
        turn.body,
        json!({ "player": "bob", "turn": 2, "state_version": version, "deadline": deadline })
    );
    assert_eq!(
        (told[2].kind, &told[2].to, &told[2].body),
        (NoticeKind::YourTurn, &vec![id("bob")], &turn.body)
    );
    assert_eq!(json!(NoticeKind::YourTurn), NoticeKind::YourTurn.as_str());
}
