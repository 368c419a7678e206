//! Games judged by the server, with a rule set of the test: a heap of stones of which each player takes one
//! to three; the player who takes the last stone wins.

use crate::harness::{Table, code, id, refused};
use parlor_turn::limits::AWARDS_MAX;
use parlor_turn::{
    Actor, Attempt, Award, Check, Code, Ended, Next, Op, Opening, Outcome, Phase, PlayerId, Refusal,
    RuleSets, Rules, Status,
};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

struct Heap {
    goes_on: bool,
}

fn after<'a>(players: &'a [PlayerId], player: &PlayerId) -> &'a PlayerId {
    let seat = players.iter().position(|other| other == player).expect("a player of this game");
    &players[(seat + 1) % players.len()]
}

impl Rules for Heap {
    fn name(&self) -> &'static str {
        "heap"
    }

    fn players(&self) -> RangeInclusive<u16> {
        2..=4
    }

    fn open(&self, players: &[PlayerId], _seed: [u8; 32]) -> Result<Opening, Refusal> {
        // The last in turn order begins, to show that the rules decide this.
        let first = players.last().expect("two at least").clone();
        Ok(Opening { state: json!({ "stones": 8 }), first })
    }

    fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal> {
        match attempt.kind {
            "take" => {}
            "name_a_stranger" => return Ok(outcome(json!({}), Next::Turn(id("eve")))),
            "let_a_stranger_win" => {
                let next = Next::Over { winner: Some(id("eve")), reason: "x".to_owned() };
                return Ok(outcome(json!({}), next));
            }
            "swell" => {
                let state = json!({ "x": "y".repeat(100_000) });
                return Ok(outcome(state, Next::Turn(attempt.player.clone())));
            }
            "roll" => {
                let state =
                    json!({ "stones": 8, "dice": attempt.seed[0] % 6 + 1, "by": attempt.seed.to_vec() });
                return Ok(outcome(state, Next::Turn(attempt.player.clone())));
            }
            _ => return Err(Refusal::at(Code::MoveNotAllowed, "type", "take stones: that is all there is")),
        }
        let stones = attempt.state["stones"].as_u64().expect("as it was stored");
        let taken = attempt.data["stones"].as_u64().filter(|taken| (1..=3.min(stones)).contains(taken));
        let Some(taken) = taken else {
            return Err(Refusal::at(
                Code::IllegalMove,
                "data.stones",
                "take one to three, if so many are there",
            ));
        };
        let left = stones - taken;
        let next = if left == 0 {
            Next::Over { winner: Some(attempt.player.clone()), reason: "last_stone".to_owned() }
        } else {
            Next::Turn(after(attempt.players, attempt.player).clone())
        };
        Ok(outcome(json!({ "stones": left }), next))
    }

    fn without(&self, state: &Value, _gone: &PlayerId, left: &[PlayerId]) -> Option<Outcome> {
        self.goes_on.then(|| outcome(state.clone(), Next::Turn(left[0].clone())))
    }

    /// As many stones as are left to each in the room, somebody who is not there, and too many.
    fn awards(&self, ended: &Ended<'_>) -> Vec<Award> {
        let stones = ended.state["stones"].as_i64().unwrap_or(0);
        let award = |player: PlayerId, sub| Award { player, board: "heap".to_owned(), score: stones, sub };
        let mut awards = vec![award(id("eve"), 0)];
        for round in 0..40 {
            awards.extend(ended.players.iter().map(|player| award(player.clone(), round)));
        }
        awards
    }
}

fn outcome(state: Value, next: Next) -> Outcome {
    Outcome { state, next }
}

fn heap(goes_on: bool) -> Table {
    let rules = RuleSets::built_in().with(Box::new(Heap { goes_on }));
    Table::playing_with(&json!({ "rules": "heap" }), &["ada", "bob", "cleo"], rules)
}

fn take(table: &mut Table, name: &str, stones: u64) -> Result<(), Refusal> {
    table.propose(name, json!({ "type": "take", "data": { "stones": stones } }))
}

#[test]
fn the_rules_say_whose_turn_it_is_what_stands_and_who_wins() {
    let mut table = heap(true);
    assert_eq!(table.current(), "cleo");
    assert_eq!(code(take(&mut table, "ada", 1)), Code::NotYourTurn);
    assert_eq!(refused(take(&mut table, "cleo", 4)), (Code::IllegalMove, "data.stones".to_owned()));
    for name in ["cleo", "ada"] {
        take(&mut table, name, 3).expect("a legal move");
    }
    assert_eq!(table.room.state(), &json!({ "stones": 2 }));
    let decided = table.room.decided().last().expect("two moves were made");
    assert_eq!((decided.checks.rules, decided.checks.peers), (Check::Valid, Check::NotApplicable));
    take(&mut table, "bob", 2).expect("a legal move");
    assert_eq!(table.result(), Some((Some("bob"), "last_stone")));
    assert_eq!(code(take(&mut table, "cleo", 1)), Code::WrongPhase);
}

#[test]
fn rules_for_several_numbers_of_players_begin_by_themselves_where_one_was_given() {
    let rules = || RuleSets::none().with(Box::new(Heap { goes_on: true }));
    let starts = |players: Value| {
        let table = Table::with_rules(&json!({ "rules": "heap", "players": players }), &["bob"], rules());
        table.room.phase() == Phase::Playing
    };
    assert!(starts(json!({ "min": 2 })));
    assert!(!starts(json!({})), "two to four may play: nobody said with how many it begins");
    assert!(!starts(json!({ "min": 3 })));
}

#[test]
fn players_have_no_say_in_what_rules_decide() {
    let mut table = heap(true);
    let claim =
        json!({ "type": "take", "data": { "stones": 1 }, "state": { "isGameOver": true, "winner": "cleo" } });
    assert_eq!(refused(table.propose("cleo", claim)), (Code::RulesDecide, "state".to_owned()));
    assert_eq!(code(table.end("ada", json!({ "winner": "ada" }))), Code::RulesDecide);
    let before = json!({ "rules": "heap", "auto_start": false });
    let rules = RuleSets::none().with(Box::new(Heap { goes_on: true }));
    let mut waiting = Table::with_rules(&before, &["bob"], rules);
    assert_eq!(code(take(&mut waiting, "ada", 1)), Code::WrongPhase);
}

#[test]
fn the_game_goes_on_without_a_player_if_the_rules_say_how() {
    let mut table = heap(true);
    take(&mut table, "cleo", 3).expect("a legal move");
    table.resign("ada").expect("in a game");
    assert_eq!((table.current(), table.order()), ("bob", vec!["bob", "cleo"]));
    assert_eq!(table.room.state(), &json!({ "stones": 5 }));
    table.leave("cleo").expect("anybody may");
    assert_eq!(table.result(), Some((Some("bob"), "player_left")), "with one left, no rules are asked");

    let mut table = heap(false);
    table.kick("ada", "bob").expect("the host may");
    assert_eq!(table.result(), Some((None, "player_kicked")), "these rules cannot go on with fewer");
}

#[test]
fn a_fault_of_the_rules_changes_nothing_and_is_called_one() {
    let mut table = heap(true);
    for kind in ["name_a_stranger", "let_a_stranger_win", "swell"] {
        assert_eq!(code(table.propose("cleo", json!({ "type": kind }))), Code::RulesFault, "{kind}");
    }
    take(&mut table, "cleo", 1).expect("the game goes on");
}

#[test]
fn each_attempt_has_a_seed_of_its_own() {
    let mut table = heap(true);
    let mut seen = Vec::new();
    for _ in 0..5 {
        table.propose("cleo", json!({ "type": "roll" })).expect("a legal move");
        seen.push(table.room.state()["by"].clone());
    }
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[test]
fn a_server_without_the_rules_says_so_and_still_lets_players_go() {
    let mut table = heap(true);
    table.rules = RuleSets::none();
    assert_eq!(code(take(&mut table, "cleo", 1)), Code::UnknownRules);
    table.resign("cleo").expect("giving up needs no rules");
    assert_eq!(table.result(), Some((None, "resignation")));
    assert_eq!(table.room.phase(), Phase::Ended);

    let mut timed =
        Table::playing(&json!({ "rules": "draughts", "turn_timeout_ms": 5_000 }), &["ada", "bob"]);
    timed.rules = RuleSets::none();
    timed.expire_at(5_000);
    assert_eq!(timed.result(), Some((Some("bob"), "timeout")));
    assert_eq!(timed.room.players()[0].status, Status::TimedOut);

    let mut waiting = Table::new(&json!({ "rules": "draughts" }), &[]);
    waiting.rules = RuleSets::none();
    assert_eq!(code(waiting.join("bob")), Code::UnknownRules, "the game would begin");
    waiting.apply(&Actor::Player(id("ada")), Op::Leave).expect("anybody may");
}

#[test]
fn t3_what_the_rules_award_comes_with_the_end_and_for_who_is_there_alone() {
    // Cleo begins; a game of three that loses one ends here.
    let mut table = heap(false);
    take(&mut table, "cleo", 3).expect("a legal move");
    assert!(table.awarded().is_empty(), "the game goes on");
    table.resign("ada").expect("it may");
    let awards = table.awarded();
    assert_eq!(awards.len(), AWARDS_MAX, "there is a bound");
    assert!(awards.iter().all(|award| award.player != id("eve") && award.score == 5), "{awards:?}");
    assert_eq!(awards[..2].iter().map(|award| award.player.as_str()).collect::<Vec<_>>(), ["ada", "bob"]);
    // Without rules nothing is awarded, whatever the players write.
    let mut table = Table::playing(&json!({}), &["ada", "bob"]);
    table.resign("ada").expect("it may");
    assert!(table.awarded().is_empty());
}
