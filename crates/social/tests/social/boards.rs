//! What submissions make of an entry, against ten plain lines.

use parlor_social::limits::NUMBER_MAX;
use parlor_social::{Board, Entry, Keep, Name, Order, Refused, Submission, Writers, mark_of};
use proptest::prelude::*;
use std::collections::VecDeque;

fn board(order: Order, keep: Keep) -> Board {
    Board { order, keep, ..Board::default() }
}

fn scored(score: i64, sub: i64, at_ms: u64) -> Submission {
    Submission { score, sub, at_ms, ..Submission::default() }
}

/// What a player sees of an entry: its score, its sub-score, and since when.
fn seen(board: &Board, entry: &Entry) -> (i64, i64, u64) {
    (board.turned(entry.key.score), board.turned(entry.key.sub), entry.key.at_ms)
}

/// An entry in plain lines, as players know it.
#[derive(Default)]
struct Plain {
    held: Option<(i64, i64, u64)>,
    ids: VecDeque<u64>,
}

impl Plain {
    fn submit(&mut self, board: &Board, given: &Submission) {
        if given.id.is_some_and(|id| self.ids.contains(&id)) {
            return;
        }
        let (score, sub) = (given.score, given.sub);
        let next = match self.held {
            None => (score, sub),
            Some((held, held_sub, _)) => match board.keep {
                Keep::Last => (score, sub),
                Keep::Sum => (held + score, held_sub + sub),
                Keep::Best => {
                    let is_better = match board.order {
                        Order::Most => (score, sub) > (held, held_sub),
                        Order::Least => (score, sub) < (held, held_sub),
                    };
                    if !is_better {
                        return;
                    }
                    (score, sub)
                }
            },
        };
        let since = self.held.filter(|(held, sub, _)| (*held, *sub) == next);
        self.held = Some((next.0, next.1, since.map_or(given.at_ms, |(_, _, at_ms)| at_ms)));
        if let Some(id) = given.id {
            self.ids.push_front(id);
            self.ids.truncate(4);
        }
    }
}

proptest! {
    #[test]
    fn t3_an_entry_is_what_plain_lines_say(
        order in prop_oneof![Just(Order::Most), Just(Order::Least)],
        keep in prop_oneof![Just(Keep::Best), Just(Keep::Last), Just(Keep::Sum)],
        given in prop::collection::vec((-3_i64..4, -1_i64..2, prop::option::of(1_u64..9)), 1..30),
    ) {
        let board = board(order, keep);
        let (mut entry, mut plain): (Option<Entry>, _) = (None, Plain::default());
        for (at_ms, (score, sub, id)) in (1..).zip(given) {
            let submission = Submission { id, ..scored(score, sub, at_ms) };
            let verdict = board.submit(entry.as_ref(), &submission).unwrap();
            plain.submit(&board, &submission);
            let before = entry.as_ref().map(|entry| (entry.key.score, entry.key.sub));
            let after = (verdict.entry.key.score, verdict.entry.key.sub);
            prop_assert_eq!(verdict.improved, before.is_none_or(|before| after > before));
            if !verdict.is_changed {
                prop_assert_eq!(Some(&verdict.entry), entry.as_ref());
            }
            entry = Some(verdict.entry);
            prop_assert_eq!(entry.as_ref().map(|entry| seen(&board, entry)), plain.held);
        }
    }
}

#[test]
fn t3_a_sum_that_is_sent_again_counts_once() {
    let board = board(Order::Most, Keep::Sum);
    let with_id = |score, id: &str| Submission { id: Some(mark_of(id)), ..scored(score, 0, 1) };
    let mut entry = board.submit(None, &with_id(5, "a")).unwrap().entry;
    for id in ["b", "c", "d"] {
        entry = board.submit(Some(&entry), &with_id(1, id)).unwrap().entry;
    }
    // All of the four that came last are known.
    for id in ["a", "b", "c", "d"] {
        let verdict = board.submit(Some(&entry), &with_id(100, id)).unwrap();
        assert!(verdict.again && !verdict.is_changed);
        assert_eq!(verdict.entry, entry);
    }
    assert_eq!((entry.key.score, entry.tries), (8, 4));
    entry = board.submit(Some(&entry), &with_id(1, "e")).unwrap().entry;
    assert!(!board.submit(Some(&entry), &with_id(1, "a")).unwrap().again);
}

#[test]
fn t3_score_and_sub_score_are_one_value() {
    let board = board(Order::Most, Keep::Best);
    let first = board.submit(None, &scored(100, 5, 1)).unwrap().entry;
    let second = board.submit(Some(&first), &scored(90, 9, 2)).unwrap();
    assert!(!second.improved && !second.is_changed);
    assert_eq!(seen(&board, &second.entry), (100, 5, 1));
}

#[test]
fn t3_who_reaches_the_same_score_again_keeps_its_place() {
    for keep in [Keep::Best, Keep::Last] {
        let board = board(Order::Least, keep);
        let first = board.submit(None, &scored(71, 0, 10)).unwrap().entry;
        let second = board.submit(Some(&first), &scored(71, 0, 20)).unwrap();
        assert_eq!(seen(&board, &second.entry), (71, 0, 10));
    }
}

#[test]
fn t3_what_a_board_does_not_take_is_refused() {
    let board = Board {
        min: Some(0),
        max: Some(100),
        attempts: Some(2),
        opens_ms: Some(10),
        closes_ms: Some(20),
        ..Board::default()
    };
    let refused = |submission| board.submit(None, &submission).unwrap_err();
    assert_eq!(refused(scored(101, 0, 10)), Refused::Score { min: 0, max: 100 });
    assert_eq!(refused(scored(-1, 0, 10)), Refused::Score { min: 0, max: 100 });
    assert_eq!(refused(scored(1, NUMBER_MAX + 1, 10)), Refused::Sub);
    assert_eq!(refused(scored(1, i64::MIN, 10)), Refused::Sub);
    assert_eq!(refused(scored(1, 0, 9)), Refused::NotOpen(10));
    assert_eq!(refused(scored(1, 0, 20)), Refused::Closed(20));
    let mut entry = board.submit(None, &scored(7, 0, 10)).unwrap().entry;
    // A submission that is no better is an attempt, too.
    entry = board.submit(Some(&entry), &scored(6, 0, 11)).unwrap().entry;
    assert_eq!(board.submit(Some(&entry), &scored(9, 0, 12)), Err(Refused::Attempts(2)));
}

#[test]
fn t3_a_sum_ends_where_numbers_of_javascript_end() {
    let board = board(Order::Least, Keep::Sum);
    let entry = board.submit(None, &scored(NUMBER_MAX, 0, 1)).unwrap().entry;
    assert_eq!(board.submit(Some(&entry), &scored(1, 0, 2)), Err(Refused::Sum));
    let less = board.submit(Some(&entry), &scored(-1, 0, 2)).unwrap().entry;
    assert_eq!(seen(&board, &less).0, NUMBER_MAX - 1);
    let any = Board::default();
    assert!(matches!(any.submit(None, &scored(i64::MIN, 0, 1)), Err(Refused::Score { .. })));
}

#[test]
fn t3_a_definition_that_makes_no_sense_is_refused_by_its_field() {
    let wrong = |field: &str, board: Board| assert_eq!(board.check().unwrap_err().field, field);
    wrong("title", Board { title: "x".repeat(257), ..Board::default() });
    wrong("min", Board { min: Some(i64::MIN), ..Board::default() });
    wrong("max", Board { max: Some(NUMBER_MAX + 1), ..Board::default() });
    wrong("max", Board { min: Some(2), max: Some(1), ..Board::default() });
    wrong("seasons", Board { seasons: Some(65), ..Board::default() });
    wrong("closes_ms", Board { opens_ms: Some(2), closes_ms: Some(2), ..Board::default() });
    wrong("attempts", Board { attempts: Some(0), ..Board::default() });
    wrong("seats", Board { seats: Some(0), ..Board::default() });
    let reset = |reset: &str| Board { reset: Some(reset.to_owned()), ..Board::default() };
    for never in ["", "x", "0 0 30 2 *", "* * * * *", "*/30 * * * *", "0 0 4 * * 1", "59 0 * * *\u{0}"] {
        wrong("reset", reset(never));
    }
    wrong("reset", reset(&"1,".repeat(100)));
    wrong("utc_offset_minutes", Board { utc_offset_minutes: 1_000, ..reset("0 4 * * 1") });
    assert!(reset("0 4 * * 1").check().unwrap().is_some());
    assert!(Board::default().check().unwrap().is_none());
    assert_eq!(Board::of_players().writers, Writers::Players);
    for bad in ["", "a b", "ä", "a/b", &"x".repeat(65)] {
        assert!(Name::new(bad).is_err(), "{bad}");
    }
    assert_eq!(Name::new("fastest-lap.v2").unwrap().as_str(), "fastest-lap.v2");
}

#[test]
fn t3_a_definition_reads_as_it_was_written() {
    let text = r#"{"title":"Laps","order":"least","reset":"0 4 * * 1","utc_offset_minutes":60,"attempts":3}"#;
    let board: Board = serde_json::from_str(text).unwrap();
    assert_eq!((board.order, board.keep, board.writers), (Order::Least, Keep::Best, Writers::Server));
    let again: Board = serde_json::from_str(&serde_json::to_string(&board).unwrap()).unwrap();
    assert_eq!(again, board);
    assert!(serde_json::from_str::<Board>(r#"{"sort":"least"}"#).is_err());
}
