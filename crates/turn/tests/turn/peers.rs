//! Moves that wait for the votes of other players.

use crate::harness::{BEGIN, Table, id, refused};
use parlor_turn::{Check, Code, NoticeKind, Op, Phase, ProposalId, Validate};
use serde_json::{Value, json};

/// A game with turns.
fn turns(quorum: &str) -> Value {
    json!({
        "turn_based": true, "players": { "min": 2, "max": 5 }, "quorum": quorum,
        "validation_timeout_ms": 10_000, "turn_timeout_ms": 30_000,
    })
}

/// A game without turns.
fn free(quorum: &str) -> Value {
    json!({ "players": { "max": 5 }, "quorum": quorum, "limits": { "proposals": 3 } })
}

fn peers(table: &Table) -> Vec<(u64, Check)> {
    table.room.decided().iter().map(|decided| (decided.id.0, decided.checks.peers)).collect()
}

#[test]
fn r5_what_waits_is_shown_and_stands_only_after_all_have_said_yes() {
    let mut table = Table::playing(&turns("all"), &["ada", "bob", "cleo"]);
    let state = table.room.state_version();
    table.put("ada", json!({ "c4": "x" })).expect("her turn");
    let view = table.view();
    assert_eq!(view["state"], json!({}), "nothing stands");
    assert_eq!(view["optimistic_state"], json!({ "c4": "x" }));
    assert_eq!(view["last_proposal"], 1);
    assert_eq!(
        view["proposals"][0]["checks"],
        json!({ "server": "valid", "rules": "not_applicable", "peers": "pending" })
    );
    assert_eq!(view["proposals"][0]["waiting_for"], json!(["bob", "cleo"]));
    assert_eq!(table.kinds(), [NoticeKind::MoveProposed]);
    assert_eq!(table.current(), "ada", "the turn is hers until it stands");
    assert_eq!(table.put("ada", json!({ "c5": "x" })).expect_err("one at a time").code, Code::ProposalOpen);
    table.validate("bob", 1, true).expect("a peer");
    assert_eq!(table.room.state_version(), state);
    table.validate("cleo", 1, true).expect("a peer");
    assert_eq!(table.room.state(), &json!({ "c4": "x" }));
    assert_eq!(table.kinds(), [NoticeKind::MoveMade, NoticeKind::TurnStarted, NoticeKind::YourTurn]);
    assert_eq!((table.current(), peers(&table)), ("bob", vec![(1, Check::Valid)]));
    assert_eq!(table.view()["optimistic_state"], Value::Null);
}

#[test]
fn r5_one_no_takes_back_what_all_must_accept() {
    let mut table = Table::playing(&turns("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "c4": "x" })).expect("her turn");
    table.validate("cleo", 1, true).expect("a peer");
    table.told();
    let no = Validate { proposal: ProposalId(1), accept: false, reason: Some("taken".to_owned()) };
    table.by("bob", Op::Validate(no)).expect("a peer");
    let told = table.told();
    assert_eq!(told[0].kind, NoticeKind::MoveRejected);
    assert_eq!(
        (&told[0].body["reason"], &told[0].body["checks"]["peers"]),
        (&json!("taken"), &json!("disputed"))
    );
    assert_eq!((table.room.state(), table.current()), (&json!({}), "ada"));
    assert_eq!(peers(&table), [(1, Check::Disputed)]);
    table.put("ada", json!({ "c5": "x" })).expect("she tries another");
    assert_eq!(table.view()["last_proposal"], 2);
}

#[test]
fn more_than_half_of_the_others_are_a_majority() {
    // Four others: three are more than half, two are not.
    let order = ["ada", "bob", "cleo", "dan", "eve"];
    let cases: [(&[bool], Option<bool>); 6] = [
        (&[true, true], None),
        (&[true, true, true], Some(true)),
        (&[false], None),
        (&[false, false], Some(false)),
        (&[true, false, true], None),
        (&[true, false, true, true], Some(true)),
    ];
    for (votes, expected) in cases {
        let mut table = Table::playing(&free("majority"), &order);
        table.put("ada", json!({ "x": 1 })).expect("a move");
        for (name, vote) in order[1..].iter().zip(votes) {
            table.validate(name, 1, *vote).expect("a peer");
        }
        let stands = peers(&table).first().map(|(_, check)| *check == Check::Valid);
        assert_eq!(stands, expected, "{votes:?}");
        assert_eq!(table.room.state().get("x").is_some(), expected == Some(true));
    }
}

#[test]
fn each_peer_judges_once_and_nobody_else_does() {
    let mut table = Table::playing(&free("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "x": 1 })).expect("a move");
    let not_yours = (Code::NotYourVote, "proposal".to_owned());
    assert_eq!(refused(table.validate("ada", 1, true)), not_yours, "not on one's own move");
    table.join("dan").expect("a room without turns");
    assert_eq!(refused(table.validate("dan", 1, true)), not_yours, "he was not there");
    table.validate("bob", 1, true).expect("a peer");
    assert_eq!(refused(table.validate("bob", 1, false)), not_yours, "his word is given");
    let nothing = (Code::NoSuchProposal, "proposal".to_owned());
    assert_eq!(refused(table.validate("cleo", 2, true)), nothing);
    table.validate("cleo", 1, true).expect("a peer");
    assert_eq!(refused(table.validate("cleo", 1, true)), nothing, "it is decided");
}

#[test]
fn silence_is_consent_when_the_time_is_over() {
    let mut table = Table::playing(&turns("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "x": 1 })).expect("her turn");
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(10_000)), "the turn's own time stands still");
    table.expire_at(9_999);
    assert_eq!(table.room.state(), &json!({}));
    table.expire_at(10_000);
    assert_eq!((table.room.state(), table.current()), (&json!({ "x": 1 }), "bob"));
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(40_000)), "Bob has his whole time");
}

#[test]
fn a_move_that_is_taken_back_leaves_the_turn_the_time_that_was_left() {
    let mut table = Table::playing(&turns("all"), &["ada", "bob"]);
    table.now = BEGIN.after_ms(29_000);
    table.put("ada", json!({ "x": 1 })).expect("her turn");
    table.now = BEGIN.after_ms(35_000);
    table.validate("bob", 1, false).expect("a peer");
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(36_000)), "one second was left");
    table.expire_at(36_000);
    assert_eq!(table.result(), Some((Some("bob"), "timeout")), "so nobody gains time by moves that are none");
}

#[test]
fn several_moves_wait_side_by_side_and_each_is_judged_alone() {
    let mut table = Table::playing(&free("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "a": 1, "n": "ada" })).expect("a move");
    table.put("bob", json!({ "b": 1, "n": "bob" })).expect("a move");
    table.put("ada", json!({ "c": 1 })).expect("another of hers");
    assert_eq!(table.put("cleo", json!({})).expect_err("three are allowed").code, Code::TooManyProposals);
    assert_eq!(table.view()["optimistic_state"], json!({ "a": 1, "b": 1, "c": 1, "n": "bob" }));
    // The second is decided first.
    table.validate("ada", 2, true).expect("a peer");
    table.validate("cleo", 2, true).expect("a peer");
    assert_eq!(table.room.state(), &json!({ "b": 1, "n": "bob" }));
    assert_eq!(table.view()["optimistic_state"], json!({ "a": 1, "b": 1, "c": 1, "n": "ada" }));
    table.validate("bob", 1, false).expect("a peer");
    table.validate("bob", 3, true).expect("a peer");
    table.validate("cleo", 3, true).expect("a peer");
    assert_eq!(table.room.state(), &json!({ "b": 1, "c": 1, "n": "bob" }));
    assert_eq!(peers(&table), [(2, Check::Valid), (1, Check::Disputed), (3, Check::Valid)]);
}

#[test]
fn a_move_that_was_made_for_a_state_is_overtaken_with_it() {
    let mut table = Table::playing(&free("all"), &["ada", "bob"]);
    let version = table.room.state_version();
    let put = |name: &str| json!({ "type": "put", "state_version": version, "state": { "first": name } });
    table.propose("ada", put("ada")).expect("a move");
    table.propose("bob", put("bob")).expect("a move");
    table.told();
    table.validate("ada", 2, true).expect("a peer");
    assert_eq!(table.kinds(), [NoticeKind::MoveMade, NoticeKind::MoveRejected]);
    assert_eq!(peers(&table), [(2, Check::Valid), (1, Check::Superseded)]);
    assert_eq!(table.room.state(), &json!({ "first": "bob" }));
}

#[test]
fn who_is_gone_is_not_waited_for_and_has_no_move() {
    let mut table = Table::playing(&free("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "a": 1 })).expect("a move");
    table.put("bob", json!({ "b": 1 })).expect("a move");
    table.validate("cleo", 1, true).expect("a peer");
    table.leave("bob").expect("anybody may");
    assert_eq!(table.room.state(), &json!({ "a": 1 }), "his word was the last that was missing");
    assert_eq!(peers(&table), [(2, Check::Superseded), (1, Check::Valid)]);
    // The player whose turn it is leaves while the move waits.
    let mut table = Table::playing(&turns("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "a": 1 })).expect("her turn");
    table.resign("ada").expect("in turn or not");
    assert_eq!((table.room.state(), table.current()), (&json!({}), "bob"));
    assert_eq!(table.room.next_deadline(), Some(BEGIN.after_ms(30_000)));
}

#[test]
fn the_end_of_the_game_takes_back_what_waits() {
    let mut table = Table::playing(&free("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "a": 1 })).expect("a move");
    table.put("bob", json!({ "isGameOver": true, "winner": "cleo" })).expect("a move");
    assert_eq!(table.room.phase(), Phase::Playing, "a claim that waits ends nothing");
    table.validate("ada", 2, true).expect("a peer");
    table.validate("cleo", 2, true).expect("a peer");
    assert_eq!(table.result(), Some((Some("cleo"), "completed")));
    assert_eq!(peers(&table), [(2, Check::Valid), (1, Check::Superseded)]);
    assert_eq!(table.room.next_deadline(), None);
}

#[test]
fn what_cannot_stand_any_more_when_the_peers_agree_does_not() {
    // The winner left before the others accepted.
    let mut table = Table::playing(&free("all"), &["ada", "bob", "cleo"]);
    table.put("ada", json!({ "isGameOver": true, "winner": "cleo" })).expect("a move");
    table.validate("bob", 1, true).expect("a peer");
    table.leave("cleo").expect("anybody may");
    assert_eq!((table.room.phase(), peers(&table)), (Phase::Playing, vec![(1, Check::Superseded)]));
    // The move that freed space for this one was rejected.
    let mut small = free("all");
    small["limits"] = json!({ "state_bytes": 60, "move_bytes": 60 });
    small["state"] = json!({ "old": "x".repeat(40) });
    let mut table = Table::playing(&small, &["ada", "bob"]);
    table.put("ada", json!({ "old": null })).expect("a move");
    table.put("ada", json!({ "new": "y".repeat(40) })).expect("a move");
    assert_eq!(
        refused(table.put("ada", json!({ "more": "z".repeat(40) }))),
        (Code::TooLarge, "state".to_owned()),
        "all that waits must fit together"
    );
    table.validate("bob", 1, false).expect("a peer");
    table.validate("bob", 2, true).expect("a peer");
    assert_eq!(peers(&table), [(1, Check::Disputed), (2, Check::Superseded)]);
    assert_eq!(table.room.state(), &json!({ "old": "x".repeat(40) }));
}

#[test]
fn who_plays_alone_needs_nobodys_word() {
    let mut table = Table::playing(&free("all"), &["ada"]);
    table.put("ada", json!({ "a": 1 })).expect("a move");
    assert_eq!(table.room.state(), &json!({ "a": 1 }));
    assert_eq!(table.room.players()[0].id, id("ada"));
}
