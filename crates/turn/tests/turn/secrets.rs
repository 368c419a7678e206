//! Games with hidden information: no view or notice contains what its reader may not know.

use crate::harness::{Table, refused};
use parlor_turn::rock_paper_scissors::{DRAWS_MAX, WINS};
use parlor_turn::{Code, Notice, Phase, RuleSets};
use proptest::prelude::*;
use serde_json::{Value, json};

const CHOICES: [&str; 3] = ["rock", "paper", "scissors"];

fn table() -> Table {
    Table::playing(&json!({ "rules": "rock-paper-scissors", "spectators": true }), &["ada", "bob"])
}

fn choose(table: &mut Table, by: &str, choice: &str) {
    table.propose(by, json!({ "type": "choose", "data": { "choice": choice } })).expect("it may be chosen");
}

/// All that a player can read now or got in these notices, as text.
fn known_to(table: &Table, who: &str, told: &[Notice]) -> String {
    let told = told.iter().filter(|notice| notice.to.iter().any(|to| to.as_str() == who));
    let told: Vec<Value> = told.map(|notice| json!([notice.kind, notice.body])).collect();
    format!("{} {}", table.view_of(who).expect("it may read the room"), json!(told))
}

fn names(known: &str, choice: &str) -> bool {
    known.contains(&format!("{choice:?}"))
}

#[test]
fn a_choice_is_its_players_own_until_both_have_chosen() {
    let mut table = table();
    choose(&mut table, "ada", "paper");
    let told = table.told();
    assert!(names(&known_to(&table, "ada", &told), "paper"), "her own");
    for other in ["bob", "eve"] {
        let known = known_to(&table, other, &told);
        assert!(!names(&known, "paper"), "{other} knows {known}");
        assert!(known.contains("\"has_chosen\":\"ada\""), "that she has chosen is no secret: {known}");
    }
    assert!(told.iter().any(|notice| notice.to.iter().any(|to| to.as_str() == "bob")), "he hears of it");
    assert_eq!(table.view()["state"]["choice"], "paper", "the server sees all");
    choose(&mut table, "bob", "rock");
    let told = table.told();
    for who in ["ada", "bob", "eve"] {
        let known = known_to(&table, who, &told);
        assert!(names(&known, "paper") && names(&known, "rock"), "{who} knows {known}");
    }
    assert_eq!(table.view()["state"]["wins"], json!([1, 0]));
    assert_eq!(table.current(), "bob", "who was second is first in the next round");
}

#[test]
fn without_its_rules_nobody_knows_what_is_a_secret_and_none_is_told() {
    let mut table = table();
    choose(&mut table, "ada", "paper");
    table.rules = RuleSets::none();
    assert_eq!(table.view_of("ada").expect("it can be read")["state"], json!({}));
    assert_eq!(table.view()["state"]["choice"], "paper", "the server sees all");
}

#[test]
fn three_rounds_win_and_too_many_draws_are_one() {
    let mut table = table();
    for _ in 0..WINS {
        let first = table.current().to_owned();
        let second = if first == "ada" { "bob" } else { "ada" };
        let of = |who: &str| if who == "ada" { "scissors" } else { "paper" };
        choose(&mut table, &first, of(&first));
        choose(&mut table, second, of(second));
    }
    assert_eq!(table.result(), Some((Some("ada"), "three_rounds")));
    let mut table = self::table();
    for _ in 0..2 * DRAWS_MAX {
        assert_eq!(table.room.phase(), Phase::Playing);
        let who = table.current().to_owned();
        choose(&mut table, &who, "rock");
    }
    assert_eq!(table.result(), Some((None, "too_many_draws")));
}

#[test]
fn what_is_no_choice_is_refused() {
    let mut table = table();
    for (kind, data, path) in [
        ("put", json!({ "choice": "rock" }), "type"),
        ("choose", json!({ "choice": "well" }), "data"),
        ("choose", json!({}), "data"),
        ("choose", json!({ "choice": "rock", "more": 1 }), "data"),
        ("choose", json!(["rock"]), "data"),
    ] {
        let refused = refused(table.propose("ada", json!({ "type": kind, "data": data.clone() })));
        assert_eq!(refused, (Code::IllegalMove, path.to_owned()), "{kind} {data}");
    }
}

proptest! {
    #[test]
    fn whatever_is_chosen_nobody_reads_the_others_open_choice(choices in prop::collection::vec(0_usize..3, 1..60)) {
        let mut table = table();
        for choice in choices {
            if table.room.phase() != Phase::Playing {
                break;
            }
            let who = table.current().to_owned();
            let last = table.view()["state"]["last"].clone();
            choose(&mut table, &who, CHOICES[choice]);
            let told = table.told();
            if table.view()["state"]["has_chosen"].is_null() {
                continue;
            }
            // The word may occur in the choices of the previous round.
            let is_known = names(&last.to_string(), CHOICES[choice]);
            for reader in ["ada", "bob", "eve"].into_iter().filter(|reader| *reader != who) {
                prop_assert!(is_known || !names(&known_to(&table, reader, &told), CHOICES[choice]), "{}", reader);
            }
        }
    }
}

#[test]
fn r2_who_watches_does_not_hear_a_secret_before_it_is_none() {
    let written = json!({ "rules": "rock-paper-scissors", "spectators": true });
    let mut table = Table::playing(&written, &["ada", "bob"]);
    choose(&mut table, "ada", "rock");
    let public = |table: &mut Table| {
        let told = table.told().into_iter().filter(|notice| notice.is_public);
        told.filter(|notice| notice.kind == parlor_turn::NoticeKind::MoveMade)
            .map(|notice| notice.body["data"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(public(&mut table), [json!({})], "told once, and without the choice");
    choose(&mut table, "bob", "paper");
    assert_eq!(public(&mut table), [json!({ "choice": "paper" })]);
}
