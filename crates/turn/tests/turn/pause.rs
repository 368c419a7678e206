//! Pauses of a room.

use crate::harness::{BEGIN, Table, code};
use parlor_turn::{Actor, Code, NoticeKind, Op};
use serde_json::{Value, json};

fn timed() -> Value {
    json!({ "turn_based": true, "players": { "min": 2, "max": 3 }, "turn_timeout_ms": 10_000 })
}

fn pause(table: &mut Table, at_ms: u64, by: &str, pauses: bool) {
    table.now = BEGIN.after_ms(at_ms);
    table.by(by, Op::Pause(pauses)).expect("it may");
}

#[test]
fn r9_a_paused_room_stands_still_and_its_clock_too() {
    let mut table = Table::playing(&timed(), &["ada", "bob", "cleo"]);
    assert_eq!(code(table.by("bob", Op::Pause(true))), Code::NotHost);
    pause(&mut table, 4_000, "ada", true);
    assert_eq!(table.kinds(), [NoticeKind::RoomPaused]);
    let view = table.view();
    assert_eq!((&view["status"], &view["turn_deadline"]), (&json!("paused"), &Value::Null));
    assert_eq!(table.room.next_deadline(), None);
    let version = table.room.version();
    pause(&mut table, 5_000, "ada", true);
    assert_eq!(table.room.version(), version, "it is paused already");
    table.expire_at(60_000);
    assert_eq!((table.current(), table.room.version()), ("ada", version), "no time passes");
    assert_eq!(code(table.put("ada", json!({}))), Code::Paused);
    table.update("bob", json!({ "data": { "x": 1 } })).expect("players may write and talk");
    table.now = BEGIN.after_ms(104_000);
    table.effects.clear();
    pause(&mut table, 104_000, "ada", false);
    let resumed = &table.told()[0];
    assert_eq!(
        (resumed.kind, &resumed.body["deadline"]),
        (NoticeKind::RoomResumed, &json!(BEGIN.after_ms(110_000)))
    );
    assert_eq!(table.view()["status"], "active");
    table.expire_at(109_999);
    assert_eq!(table.current(), "ada");
    table.expire_at(110_000);
    assert_eq!(table.current(), "bob", "6 of the 10 seconds were left");
}

#[test]
fn r9_a_turn_that_begins_in_a_pause_has_all_of_its_time_after_it() {
    let mut table = Table::playing(&timed(), &["bob", "cleo", "ada"]);
    pause(&mut table, 4_000, "ada", true);
    table.now = BEGIN.after_ms(50_000);
    table.leave("bob").expect("anybody may");
    assert_eq!((table.current(), table.room.next_deadline()), ("cleo", None));
    pause(&mut table, 100_000, "ada", false);
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(110_000)));
}

#[test]
fn r9_what_waits_for_peers_waits_through_a_pause() {
    let mut judged = timed();
    judged["quorum"] = json!("all");
    judged["validation_timeout_ms"] = json!(5_000);
    let mut table = Table::playing(&judged, &["ada", "bob"]);
    table.put("ada", json!({ "x": 1 })).expect("her turn");
    pause(&mut table, 1_000, "ada", true);
    assert_eq!(code(table.validate("bob", 1, true)), Code::Paused);
    table.expire_at(20_000);
    assert_eq!(table.view()["proposals"][0]["id"], 1, "silence is no consent in a pause");
    pause(&mut table, 21_000, "ada", false);
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(25_000)));
    table.expire_at(25_000);
    assert_eq!(table.room.state(), &json!({ "x": 1 }));
}

#[test]
fn r9_nobody_joins_or_starts_a_paused_room_and_its_end_ends_the_pause() {
    let mut table = Table::new(&json!({ "players": { "min": 2 }, "auto_start": false }), &["bob"]);
    assert!(table.room.is_joinable());
    pause(&mut table, 0, "ada", true);
    assert!(!table.room.is_joinable(), "nobody is sent there");
    assert_eq!(code(table.join("cleo")), Code::Paused);
    assert_eq!(code(table.start(json!({}))), Code::Paused);
    pause(&mut table, 0, "ada", false);
    table.start(json!({})).expect("the host may");
    pause(&mut table, 0, "ada", true);
    table.resign("bob").expect("out of a paused game, too");
    assert_eq!(table.view()["status"], "active");
    assert_eq!(code(table.by("ada", Op::Pause(true))), Code::WrongPhase);
}

#[test]
fn r9_in_a_game_with_rules_only_the_operator_pauses() {
    let mut table = Table::playing(&json!({ "rules": "draughts" }), &["ada", "bob"]);
    assert_eq!(code(table.by("ada", Op::Pause(true))), Code::RulesDecide);
    table.apply(&Actor::Server, Op::Pause(true)).expect("the operator may");
    let moved = table.propose("ada", json!({ "type": "move", "data": { "path": [11, 15] } }));
    assert_eq!(code(moved), Code::Paused);
    table.apply(&Actor::Server, Op::Pause(false)).expect("the operator may");
    table.propose("ada", json!({ "type": "move", "data": { "path": [11, 15] } })).expect("her turn");
}
