//! Accepted and refused moves, and their effects where no rules decide.

use crate::harness::{Table, code, refused};
use parlor_turn::{Check, Code, NoticeKind, Phase, ProposalId};
use serde_json::{Value, json};

fn two() -> Value {
    json!({ "turn_based": true, "players": { "min": 2, "max": 2 } })
}

#[test]
fn before_and_after_the_game_only_moves_that_are_listed_for_then_are_taken() {
    let mut written = two();
    written["moves"] = json!({
        "waiting": { "ready": { "required_fields": ["colour"] } },
        "ended": { "thanks": {} },
    });
    let mut table = Table::new(&written, &[]);
    assert_eq!(code(table.put("ada", json!({ "x": 1 }))), Code::WrongPhase);
    let bare = table.propose("ada", json!({ "type": "ready" }));
    assert_eq!(refused(bare), (Code::MissingField, "data.colour".to_owned()));
    // In the waiting phase there are no turns, and a move cannot end the game.
    let ready = json!({ "type": "ready", "data": { "colour": "red" }, "state": { "red": "ada", "isGameOver": true } });
    table.propose("ada", ready).expect("it is listed for the lobby");
    assert_eq!(table.room.phase(), Phase::Waiting);
    table.join("bob").expect("a seat");
    let first = table.current().to_owned();
    table.put(&first, json!({ "x": 1 })).expect("playing lists no moves, so any goes");
    assert_eq!(table.room.phase(), Phase::Playing, "a flag from the lobby ends no game");
    assert_eq!(table.room.state()["red"], "ada", "what was agreed on in the lobby is there in the game");
    let second = table.current().to_owned();
    assert_eq!(code(table.propose(&first, json!({ "type": "thanks" }))), Code::NotYourTurn);
    table.put(&second, json!({ "isGameOver": true })).expect("it is the player's turn");
    assert_eq!(table.room.phase(), Phase::Ended);
    assert_eq!(code(table.put(&first, json!({}))), Code::WrongPhase);
    table.propose(&first, json!({ "type": "thanks" })).expect("it is listed for afterwards");
    assert_eq!(table.result(), Some((None, "completed")));
}

#[test]
fn a_phase_that_is_listed_takes_no_other_moves() {
    let mut written = two();
    written["moves"] = json!({ "playing": { "put": { "required_fields": ["cell"] } } });
    let mut table = Table::playing(&written, &["ada", "bob"]);
    let other = table.propose("ada", json!({ "type": "take" }));
    assert_eq!(refused(other), (Code::MoveNotAllowed, "type".to_owned()));
    let missing = |data: Value| json!({ "type": "put", "data": data, "state": { "cell": 1 } });
    for data in
        [json!({}), json!({ "cell": null }), json!({ "at": { "cell": 1 } }), json!("cell"), json!(["cell"])]
    {
        let done = table.propose("ada", missing(data));
        assert_eq!(
            refused(done),
            (Code::MissingField, "data.cell".to_owned()),
            "it is looked up in the data alone"
        );
    }
    table.propose("ada", missing(json!({ "cell": false }))).expect("the field is there");
    let mut none = two();
    none["moves"] = json!({ "playing": {} });
    let mut table = Table::playing(&none, &["ada", "bob"]);
    assert_eq!(refused(table.put("ada", json!({}))), (Code::MoveNotAllowed, "type".to_owned()));
}

#[test]
fn a_move_for_another_state_is_refused_so_that_none_counts_twice() {
    let mut table = Table::playing(&json!({}), &["ada", "bob"]);
    let version = table.room.state_version();
    let put = |version: u64| json!({ "type": "put", "state_version": version, "state": { "n": 1 } });
    table.propose("ada", put(version)).expect("it is the state");
    assert_eq!(table.room.state_version(), version + 1);
    // The answer was lost and the request is repeated; or Bob moved on an old state.
    for name in ["ada", "bob"] {
        assert_eq!(
            refused(table.propose(name, put(version))),
            (Code::StaleState, "state_version".to_owned())
        );
    }
    assert_eq!(
        refused(table.propose("bob", put(version + 2))),
        (Code::StaleState, "state_version".to_owned())
    );
    table.propose("bob", put(version + 1)).expect("it is the state");
}

#[test]
fn a_move_that_needs_no_word_stands_at_once() {
    let mut table = Table::playing(&two(), &["ada", "bob"]);
    table
        .propose("ada", json!({ "type": "put", "data": { "cell": 4 }, "state": { "c4": "x" } }))
        .expect("her turn");
    let told = table.told();
    let kinds: Vec<NoticeKind> = told.iter().map(|notice| notice.kind).collect();
    assert_eq!(kinds, [NoticeKind::MoveMade, NoticeKind::TurnStarted, NoticeKind::YourTurn]);
    let version = table.room.state_version();
    assert_eq!(
        told[0].body,
        json!({ "proposal": 1, "player": "ada", "type": "put", "data": { "cell": 4 }, "state_version": version })
    );
    let decided = &table.room.decided()[0];
    assert_eq!(decided.id, ProposalId(1));
    assert_eq!((decided.checks.server, decided.checks.rules), (Check::Valid, Check::NotApplicable));
    assert_eq!(decided.checks.peers, Check::NotApplicable);
    assert_eq!(table.view()["optimistic_state"], Value::Null, "nothing waits");
    assert_eq!(table.view()["last_proposal"], 1);
}

#[test]
fn r7_a_move_ends_the_game_and_says_who_won() {
    let mut table = Table::playing(&two(), &["ada", "bob"]);
    for (state, path) in [
        (json!({ "isGameOver": true, "winner": "eve" }), "state.winner"),
        (json!({ "isGameOver": true, "winner": 3 }), "state.winner"),
        (json!({ "isGameOver": true, "winner": "not an id" }), "state.winner"),
    ] {
        assert_eq!(refused(table.put("ada", state)), (Code::NoSuchPlayer, path.to_owned()));
    }
    let wrong = json!({ "isGameOver": true, "endReason": { "a": 1 } });
    assert_eq!(refused(table.put("ada", wrong)), (Code::BadInput, "state.endReason".to_owned()));
    for flag in [json!(false), json!("true"), json!(1)] {
        table.put("ada", json!({ "isGameOver": flag, "winner": "bob" })).expect("her turn");
        assert_eq!(table.room.phase(), Phase::Playing, "only true is true");
        table.put("bob", json!({ "winner": "ada" })).expect("his turn");
    }
    table.told();
    table
        .put("ada", json!({ "isGameOver": true, "winner": "bob", "endReason": "checkmate" }))
        .expect("her turn");
    assert_eq!(table.result(), Some((Some("bob"), "checkmate")));
    let told = table.told();
    let kinds: Vec<NoticeKind> = told.iter().map(|notice| notice.kind).collect();
    assert_eq!(kinds, [NoticeKind::MoveMade, NoticeKind::GameOver], "no turn begins at the end");
    assert_eq!(told[1].body["winner"], "bob");
    assert_eq!(told[1].body["finisher"], "ada");
    assert_eq!(table.room.current_player(), None);
}

#[test]
fn moves_have_numbers_that_are_never_given_twice() {
    let mut table = Table::playing(&json!({}), &["ada"]);
    for number in 1..=20 {
        table.put("ada", json!({ "n": number })).expect("a move");
        assert_eq!(table.room.decided().last().map(|decided| decided.id), Some(ProposalId(number)));
    }
    assert_eq!(table.room.decided().len(), 8, "the last ones can be read");
    let bad = table.propose("ada", json!({ "type": "two words" }));
    assert_eq!(refused(bad), (Code::BadInput, "type".to_owned()));
}

#[test]
fn r4_a_refused_move_says_which_check_failed() {
    let checks = |done: Result<(), parlor_turn::Refusal>| json!(done.expect_err("it is refused").checks);
    let mut table = Table::playing(&two(), &["ada", "bob"]);
    let expected = json!({ "server": "invalid", "rules": "not_applicable", "peers": "not_applicable" });
    assert_eq!(checks(table.put("bob", json!({}))), expected, "not his turn");
    let claims = table.put("ada", json!({ "isGameOver": true, "winner": "eve" }));
    assert_eq!(checks(claims), expected);
    let judged = json!({ "turn_based": true, "quorum": "all" });
    let mut table = Table::playing(&judged, &["ada", "bob"]);
    let expected = json!({ "server": "invalid", "rules": "not_applicable", "peers": "pending" });
    assert_eq!(checks(table.put("bob", json!({}))), expected);
    let mut table = Table::playing(&json!({ "rules": "draughts" }), &["ada", "bob"]);
    let path = |path: [u8; 2]| json!({ "type": "move", "data": { "path": path } });
    let expected = json!({ "server": "invalid", "rules": "pending", "peers": "not_applicable" });
    assert_eq!(checks(table.propose("bob", path([21, 17]))), expected);
    let expected = json!({ "server": "valid", "rules": "invalid", "peers": "not_applicable" });
    assert_eq!(checks(table.propose("ada", path([1, 32]))), expected);
    table.propose("ada", path([11, 15])).expect("a legal move");
    let stands = json!({ "server": "valid", "rules": "valid", "peers": "not_applicable" });
    assert_eq!(table.view()["decided"][0]["checks"], stands);
    assert_eq!(checks(table.resign("eve")), serde_json::Value::Null, "no move");
}
