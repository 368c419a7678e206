//! Turn timeouts.

use crate::harness::{BEGIN, Table, code, refused};
use parlor_turn::{Actor, Code, NoticeKind, Op, Phase, UnixMillis};
use serde_json::{Value, json};

fn timed(on_timeout: &str) -> Value {
    json!({
        "turn_based": true, "players": { "min": 2, "max": 4 },
        "turn_timeout_ms": 10_000, "on_timeout": on_timeout,
    })
}

#[test]
fn x8_who_runs_out_of_time_is_out_of_the_game() {
    let mut table = Table::playing(&timed("forfeit"), &["ada", "bob", "cleo"]);
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(10_000)));
    table.expire_at(10_000);
    let kinds = table.kinds();
    assert_eq!(kinds, [NoticeKind::PlayerForfeited, NoticeKind::TurnStarted, NoticeKind::YourTurn]);
    assert_eq!((table.current(), table.order()), ("bob", vec!["bob", "cleo"]));
    assert_eq!(code(table.put("ada", json!({}))), Code::OutOfGame);
    assert_eq!(table.view()["players"][0]["status"], "timed_out");
    table.expire_at(20_000);
    assert_eq!(table.result(), Some((Some("cleo"), "timeout")));
    assert_eq!(
        table.room.result().and_then(|result| result.finisher.clone()),
        None,
        "time ended it, and nobody"
    );
    assert_eq!(table.room.next_deadline(), None);
    table.leave("ada").expect("anybody may");
    assert_eq!(code(table.join("ada")), Code::OutOfGame);
}

#[test]
fn a_turn_that_is_skipped_passes_to_the_next() {
    let mut table = Table::playing(&timed("skip"), &["ada", "bob"]);
    table.expire_at(12_000);
    assert_eq!(table.kinds(), [NoticeKind::TurnSkipped, NoticeKind::TurnStarted, NoticeKind::YourTurn]);
    assert_eq!(table.current(), "bob");
    assert_eq!(table.view()["turn_count"], 1);
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(22_000)), "from when it was noticed");
    table.put("bob", json!({})).expect("his turn");
    assert_eq!(table.current(), "ada");
}

#[test]
fn a_game_that_everybody_forgot_ends() {
    let mut table = Table::playing(&timed("skip"), &["ada", "bob"]);
    let mut expiries = 0;
    while let Some(UnixMillis(due)) = table.room.next_deadline() {
        table.expire_at(due - BEGIN.0);
        expiries += 1;
        assert!(expiries < 100, "it ends");
    }
    assert_eq!((expiries, table.result()), (4, Some((None, "abandoned"))), "two rounds of two");
    // A move in between resets the count.
    let mut table = Table::playing(&timed("skip"), &["ada", "bob"]);
    for round in 1..=10 {
        table.expire_at(round * 60_000);
        let whose = table.current().to_owned();
        table.put(&whose, json!({})).expect("it is the player's turn");
    }
    assert_eq!(table.room.phase(), Phase::Playing);
}

#[test]
fn what_is_not_due_does_not_happen_and_what_happened_does_not_again() {
    let mut table = Table::playing(&timed("skip"), &["ada", "bob"]);
    let version = table.room.version();
    for ms in [0, 1, 9_999] {
        table.expire_at(ms);
        assert_eq!(table.room.version(), version);
    }
    table.expire_at(10_000);
    assert_eq!(table.room.version(), version + 1);
    table.expire_at(10_000);
    table.expire_at(9_000);
    assert_eq!(table.room.version(), version + 1, "the same moment, or an earlier one, changes nothing");
    let mut waiting = Table::new(&timed("skip"), &[]);
    waiting.expire_at(1_000_000);
    assert_eq!(waiting.room.version(), 1);
}

#[test]
fn a_move_counts_until_the_server_has_ended_the_turn() {
    let mut table = Table::playing(&timed("forfeit"), &["ada", "bob"]);
    table.now = BEGIN.after_ms(15_000);
    table.put("ada", json!({})).expect("nobody has ended her turn");
    table.expire_at(15_000);
    assert_eq!(table.current(), "bob", "and Bob's has just begun");
}

#[test]
fn timers_are_the_servers() {
    let mut table = Table::playing(&timed("skip"), &["ada", "bob"]);
    table.now = BEGIN.after_ms(99_000);
    for name in ["ada", "bob", "eve"] {
        assert_eq!(code(table.by(name, Op::Expire)), Code::ServerOnly);
    }
    let done = table.apply(&Actor::Server, Op::Leave);
    assert_eq!(refused(done), (Code::NotInRoom, String::new()), "and the server is no player");
}

#[test]
fn a_clock_that_jumps_breaks_nothing() {
    let mut table = Table::playing(&timed("skip"), &["ada", "bob"]);
    table.now = UnixMillis(u64::MAX);
    table.apply(&Actor::Server, Op::Expire).expect("the server may");
    assert_eq!(table.room.next_deadline(), Some(UnixMillis(u64::MAX)));
    table.now = UnixMillis(0);
    table.put("bob", json!({})).expect("his turn");
    assert_eq!(table.room.next_deadline(), Some(UnixMillis(10_000)));
    assert_eq!(table.view()["updated"], u64::MAX, "a room does not get younger");
}
