//! The course of a game: start, turns and end.

use crate::harness::{Table, code, config, id, refused};
use parlor_turn::{Actor, Code, Create, End, NoticeKind, Op, Phase, RuleSets};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn three() -> Value {
    json!({ "turn_based": true, "players": { "min": 3, "max": 3 } })
}

#[test]
fn r3_the_game_begins_with_the_last_player_that_it_needs() {
    let mut table = Table::new(&three(), &["bob"]);
    assert_eq!(table.room.phase(), Phase::Waiting);
    table.told();
    table.join("cleo").expect("there is a seat");
    assert_eq!(table.room.phase(), Phase::Playing);
    let kinds = table.kinds();
    let expected =
        [NoticeKind::PlayerJoined, NoticeKind::GameStarted, NoticeKind::TurnStarted, NoticeKind::YourTurn];
    assert_eq!(kinds, expected);
    let order: BTreeSet<&str> = table.order().into_iter().collect();
    assert_eq!(order, BTreeSet::from(["ada", "bob", "cleo"]));
    assert_eq!(table.current(), table.order()[0]);
}

#[test]
fn a_game_for_one_begins_when_its_room_is_created() {
    let table = Table::new(&json!({ "players": { "min": 1 } }), &[]);
    assert_eq!((table.room.phase(), table.room.version()), (Phase::Playing, 1));
}

#[test]
fn r3_without_a_least_number_only_the_host_begins() {
    let mut table = Table::new(&json!({ "players": { "max": 2 } }), &["bob"]);
    assert_eq!(table.room.phase(), Phase::Waiting, "a full room, and nobody said begin");
    assert_eq!(code(table.by("bob", Op::Start(parlor_turn::Start::default()))), Code::NotHost);
    table.start(json!({})).expect("the host may");
    assert_eq!(code(table.start(json!({}))), Code::WrongPhase);
}

#[test]
fn too_few_players_do_not_begin() {
    let mut table = Table::new(&json!({ "players": { "min": 2 }, "auto_start": false }), &[]);
    assert_eq!(code(table.start(json!({}))), Code::TooFewPlayers);
    table.join("bob").expect("there is a seat");
    table.start(json!({})).expect("two are enough");
}

#[test]
fn the_order_is_drawn_from_the_seed() {
    let config = config(&three());
    let mut orders = BTreeSet::new();
    for seed in 0..60 {
        let draw = || {
            let table = Table::created(
                config.clone(),
                Create::default(),
                seed * 10,
                RuleSets::none(),
                &["bob", "cleo"],
            );
            table.order().join(" ")
        };
        assert_eq!(draw(), draw(), "seed {seed}: the same seed draws the same order");
        orders.insert(draw());
    }
    assert_eq!(orders.len(), 6, "all orders of three occur: {orders:?}");
}

#[test]
fn r3_a_given_order_names_all_players_once() {
    let mut written = three();
    written["auto_start"] = json!(false);
    let mut table = Table::new(&written, &["bob", "cleo"]);
    for order in [
        json!(["ada", "bob"]),
        json!(["ada", "bob", "bob"]),
        json!(["ada", "bob", "eve"]),
        json!(["ada", "bob", "cleo", "cleo"]),
        json!([]),
    ] {
        let done = table.start(json!({ "turn_order": order }));
        assert_eq!(refused(done), (Code::BadTurnOrder, "turn_order".to_owned()), "{order}");
    }
    table.start(json!({ "turn_order": ["cleo", "ada", "bob"] })).expect("all, once");
    assert_eq!((table.current(), table.order()), ("cleo", vec!["cleo", "ada", "bob"]));
}

#[test]
fn r6_turns_go_round() {
    let mut table = Table::playing(&three(), &["cleo", "ada", "bob"]);
    for (turn, name) in ["cleo", "ada", "bob", "cleo", "ada", "bob", "cleo"].into_iter().enumerate() {
        assert_eq!(table.current(), name);
        assert_eq!(table.view()["turn_count"], turn);
        for other in ["ada", "bob", "cleo"].into_iter().filter(|other| *other != name) {
            assert_eq!(code(table.put(other, json!({}))), Code::NotYourTurn);
        }
        table.put(name, json!({ "n": turn })).expect("it is the player's turn");
    }
}

fn roles(table: &Table) -> Vec<Option<&str>> {
    table.room.players().iter().map(|player| player.role.as_deref()).collect()
}

#[test]
fn r6_roles_by_joining_go_as_far_as_they_go() {
    let written =
        json!({ "players": { "min": 3 }, "roles": ["red", "blue"], "role_assignment": "first_come" });
    let table = Table::new(&written, &["bob", "cleo"]);
    assert_eq!(roles(&table), [Some("red"), Some("blue"), None]);
}

#[test]
fn r6_roles_that_are_drawn_come_to_everybody_in_time() {
    let written = json!({ "players": { "min": 2 }, "roles": ["red", "blue"] });
    let config = config(&written);
    let mut seen = BTreeSet::new();
    for seed in 0..20 {
        let table = Table::created(config.clone(), Create::default(), seed * 10, RuleSets::none(), &["bob"]);
        let drawn: Vec<String> = roles(&table).into_iter().flatten().map(str::to_owned).collect();
        seen.insert(drawn);
    }
    assert_eq!(seen.len(), 2, "both ways occur, and each role once: {seen:?}");
}

#[test]
fn r6_roles_that_the_host_assigns_are_checked() {
    let written = json!({ "roles": ["red", "blue", "judge"], "role_assignment": "assigned" });
    let mut table = Table::new(&written, &["bob", "cleo"]);
    let wrong = [
        (json!({ "eve": "red" }), Code::NoSuchPlayer, "roles.eve"),
        (json!({ "bob": "green" }), Code::BadInput, "roles.bob"),
        (json!({ "ada": "red", "bob": "red" }), Code::BadInput, "roles.bob"),
    ];
    for (roles, code, path) in wrong {
        assert_eq!(refused(table.start(json!({ "roles": roles }))), (code, path.to_owned()));
    }
    table.start(json!({ "roles": { "bob": "red" } })).expect("the host may");
    assert_eq!(roles(&table), [Some("blue"), Some("red"), Some("judge")], "the rest in order of joining");
    let mut table = Table::new(&json!({ "roles": ["red"] }), &[]);
    let done = table.start(json!({ "roles": { "ada": "red" } }));
    assert_eq!(refused(done), (Code::BadInput, "roles".to_owned()), "drawn roles are not assigned");
}

#[test]
fn the_last_who_has_not_given_up_wins() {
    let mut table = Table::playing(&three(), &["ada", "bob", "cleo"]);
    table.resign("cleo").expect("in turn or not");
    assert_eq!((table.current(), table.order()), ("ada", vec!["ada", "bob"]));
    assert_eq!(code(table.resign("cleo")), Code::OutOfGame);
    assert_eq!(code(table.put("cleo", json!({}))), Code::OutOfGame);
    table.told();
    table.resign("ada").expect("her turn, too");
    assert_eq!(
        table.kinds(),
        [NoticeKind::PlayerForfeited, NoticeKind::GameOver],
        "no turn begins at the end"
    );
    assert_eq!(table.result(), Some((Some("bob"), "resignation")));
    assert_eq!(table.room.result().and_then(|result| result.finisher.clone()), Some(id("ada")));
    assert_eq!(code(table.resign("bob")), Code::WrongPhase);
    assert_eq!(table.room.players().len(), 3, "who gave up still sits there");
}

#[test]
fn giving_up_ends_a_game_without_turns_too_once_one_is_left() {
    let mut table = Table::playing(&json!({}), &["ada", "bob"]);
    table.resign("ada").expect("in a game");
    assert_eq!(table.result(), Some((Some("bob"), "resignation")));
    let mut alone = Table::playing(&json!({}), &["ada"]);
    alone.resign("ada").expect("in a game");
    assert_eq!(alone.result(), Some((None, "abandoned")), "who plays alone loses to nobody");
}

#[test]
fn r4_a_resignation_is_also_a_move_and_needs_no_turn() {
    let mut table = Table::playing(&three(), &["ada", "bob", "cleo"]);
    let for_another = json!({ "type": "resign", "data": { "resignedBy": "ada" } });
    assert_eq!(refused(table.propose("bob", for_another)), (Code::BadInput, "data.resignedBy".to_owned()));
    table.propose("bob", json!({ "type": "resign", "data": { "resignedBy": "bob" } })).expect("out of turn");
    table.propose("cleo", json!({ "type": "resign" })).expect("without a name it is the one who says it");
    assert_eq!(table.result(), Some((Some("ada"), "resignation")));
    // As a move, it must be listed in the configuration.
    let mut listed = three();
    listed["moves"] = json!({ "playing": { "put": {} } });
    let mut table = Table::playing(&listed, &["ada", "bob", "cleo"]);
    let done = table.propose("bob", json!({ "type": "resign" }));
    assert_eq!(refused(done), (Code::MoveNotAllowed, "type".to_owned()));
    table.resign("bob").expect("as a verb, always");
    let mut waiting = Table::new(&three(), &[]);
    assert_eq!(code(waiting.resign("ada")), Code::WrongPhase);
}

#[test]
fn r4_a_resignation_that_brings_a_final_state_is_taken() {
    let mut table = Table::playing(&three(), &["ada", "bob", "cleo"]);
    let resigns = |state: Value| json!({ "type": "resign", "data": { "resignedBy": "bob" }, "state": state });
    let own = resigns(json!({ "isGameOver": true, "winner": "bob" }));
    assert_eq!(refused(table.propose("bob", own)), (Code::BadInput, "state.winner".to_owned()));
    let last = resigns(json!({ "isGameOver": true, "winner": "cleo", "endReason": "gave_up", "score": 3 }));
    table.propose("bob", last).expect("out of turn");
    assert_eq!(table.result(), Some((Some("cleo"), "gave_up")));
    assert_eq!(table.room.state()["score"], 3);
    assert_eq!(table.view()["players"][1]["status"], "resigned");
    assert_eq!(
        table.kinds(),
        [NoticeKind::MoveMade, NoticeKind::PlayerForfeited, NoticeKind::GameOver],
        "the state, whose it is, and the end"
    );
    // A state that ends nothing is kept, and the game goes on without the player.
    let mut table = Table::playing(&three(), &["ada", "bob", "cleo"]);
    table.propose("bob", resigns(json!({ "left": ["bob"] }))).expect("out of turn");
    assert_eq!((table.current(), table.order()), ("ada", vec!["ada", "cleo"]));
    assert_eq!(table.room.state(), &json!({ "left": ["bob"] }));
    // Without a reason it is a resignation.
    let mut table = Table::playing(&three(), &["ada", "bob", "cleo"]);
    table.propose("bob", resigns(json!({ "isGameOver": true, "winner": "ada" }))).expect("out of turn");
    assert_eq!(table.result(), Some((Some("ada"), "resignation")));
    // Where others judge the state, a resignation brings none.
    let mut judged = three();
    judged["quorum"] = json!("all");
    let mut table = Table::playing(&judged, &["ada", "bob", "cleo"]);
    let done = table.propose("bob", resigns(json!({ "isGameOver": true, "winner": "ada" })));
    assert_eq!(refused(done), (Code::BadInput, "state".to_owned()));
    // Rules make the state.
    let mut table = Table::playing(&json!({ "rules": "draughts" }), &["ada", "bob"]);
    let done = table.propose("bob", resigns(json!({ "isGameOver": true })));
    assert_eq!(refused(done), (Code::RulesDecide, "state".to_owned()));
}

#[test]
fn the_host_and_the_operator_may_end_a_game_without_rules() {
    let mut table = Table::playing(&three(), &["ada", "bob", "cleo"]);
    assert_eq!(code(table.end("bob", json!({}))), Code::NotHost);
    let stranger = table.end("ada", json!({ "winner": "eve" }));
    assert_eq!(refused(stranger), (Code::NoSuchPlayer, "winner".to_owned()));
    let long = table.end("ada", json!({ "reason": "x".repeat(300) }));
    assert_eq!(refused(long), (Code::TooLarge, "reason".to_owned()));
    table.end("ada", json!({ "winner": "cleo", "reason": "by points" })).expect("the host may");
    assert_eq!(table.result(), Some((Some("cleo"), "by points")));
    assert_eq!(code(table.end("ada", json!({}))), Code::WrongPhase, "it ends once");
    assert_eq!(table.result(), Some((Some("cleo"), "by points")));

    let mut table = Table::new(&json!({ "rules": "draughts" }), &["bob"]);
    assert_eq!(code(table.end("ada", json!({ "winner": "ada" }))), Code::RulesDecide);
    table.apply(&Actor::Server, Op::End(End::default())).expect("the operator may");
    assert_eq!(table.result(), Some((None, "ended")));
    let mut waiting = Table::new(&three(), &[]);
    assert_eq!(code(waiting.end("ada", json!({}))), Code::WrongPhase);
    waiting.apply(&Actor::Server, Op::End(End::default())).expect("the operator may");
    assert_eq!(waiting.room.phase(), Phase::Ended);
}
