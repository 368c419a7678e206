//! English draughts: the moves against published counts and known positions, and whole games in a room.

use crate::harness::{Table, id, refused};
use parlor_turn::draughts::{Board, Draughts, Move, QUIET_MOVES_MAX, Side};
use parlor_turn::{Attempt, Code, Next, Phase, RuleSets, Rules};
use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

/// A board with pieces on the numbered squares.
fn board(pieces: &[(u8, char)]) -> Board {
    let mut letters = ['.'; 32];
    for (square, letter) in pieces {
        letters[usize::from(*square) - 1] = *letter;
    }
    letters.iter().collect::<String>().parse().expect("a board")
}

fn moves(board: &Board, side: Side) -> Vec<String> {
    let mut moves: Vec<String> = board.moves(side).iter().map(Move::to_string).collect();
    moves.sort();
    moves
}

fn perft(board: &Board, side: Side, depth: u32) -> u64 {
    let moves = board.moves(side);
    if depth == 1 {
        return moves.len() as u64;
    }
    moves.iter().map(|legal| perft(&board.after(legal).0, side.other(), depth - 1)).sum()
}

/// The published numbers of move sequences from the initial position (A. Bik, 2009).
#[test]
fn the_counts_of_all_sequences_are_the_published_ones() {
    let published = [7, 49, 302, 1_469, 7_361, 36_768, 179_740];
    for (depth, count) in (1..).zip(published) {
        assert_eq!(perft(&Board::default(), Side::Black, depth), count, "{depth} moves deep");
    }
}

#[test]
fn black_begins_with_one_of_seven() {
    let expected = ["10-14", "10-15", "11-15", "11-16", "12-16", "9-13", "9-14"];
    assert_eq!(moves(&Board::default(), Side::Black), expected);
}

#[test]
fn men_go_forward_and_kings_both_ways() {
    let men = board(&[(15, 'b'), (18, 'w')]);
    assert_eq!(moves(&board(&[(15, 'b')]), Side::Black), ["15-18", "15-19"]);
    assert_eq!(moves(&board(&[(15, 'w')]), Side::White), ["15-10", "15-11"]);
    assert_eq!(moves(&board(&[(15, 'B')]), Side::Black), ["15-10", "15-11", "15-18", "15-19"]);
    assert_eq!(moves(&men, Side::White), ["18x11"], "men of both sides take forward");
    assert_eq!(moves(&board(&[(15, 'b'), (10, 'w')]), Side::Black), ["15-18", "15-19"], "and not backward");
    assert_eq!(moves(&board(&[(15, 'B'), (10, 'w')]), Side::Black), ["15x6"], "as kings do");
    assert_eq!(moves(&board(&[(12, 'b'), (28, 'w')]), Side::Black), ["12-16"], "the edge is no way on");
}

#[test]
fn what_can_be_taken_must_be_and_to_the_end() {
    let two = board(&[(9, 'b'), (1, 'b'), (14, 'w'), (23, 'w')]);
    assert_eq!(moves(&two, Side::Black), ["9x18x27"]);
    // Two captures: both are legal, the shorter one too.
    let choice = board(&[(10, 'b'), (14, 'w'), (15, 'w'), (24, 'w')]);
    assert_eq!(moves(&choice, Side::Black), ["10x17", "10x19x28"]);
    // A piece with another behind it, or on the edge, cannot be captured.
    let covered = board(&[(10, 'b'), (15, 'w'), (19, 'w')]);
    assert_eq!(moves(&covered, Side::Black), ["10-14"]);
    assert_eq!(moves(&board(&[(8, 'b'), (12, 'w')]), Side::Black), ["8-11"]);
}

#[test]
fn a_man_that_is_crowned_takes_no_further() {
    // As a king it could continue over 27.
    let crowned = board(&[(22, 'b'), (26, 'w'), (27, 'w')]);
    assert_eq!(moves(&crowned, Side::Black), ["22x31"]);
    let (after, man_moved) = crowned.after(&crowned.moves(Side::Black)[0]);
    assert_eq!((after, man_moved), (board(&[(31, 'B'), (27, 'w')]), true));
    // A king continues.
    let king = board(&[(22, 'B'), (26, 'w'), (27, 'w')]);
    assert_eq!(moves(&king, Side::Black), ["22x31x24"]);
    let (after, man_moved) = king.after(&king.moves(Side::Black)[0]);
    assert_eq!((after, man_moved), (board(&[(24, 'B')]), false));
}

#[test]
fn a_king_may_come_back_to_where_it_began_and_takes_none_twice() {
    // Four pieces on a king's circle, which it can capture in both directions.
    let circle = board(&[(1, 'W'), (6, 'b'), (7, 'b'), (14, 'b'), (15, 'b')]);
    assert_eq!(moves(&circle, Side::White), ["1x10x17", "1x10x19", "1x10x3"]);
    let closed = board(&[(2, 'W'), (6, 'b'), (7, 'b'), (14, 'b'), (15, 'b')]);
    assert_eq!(moves(&closed, Side::White), ["2x11x18x9x2", "2x9x18x11x2"]);
    let (after, _) = closed.after(&closed.moves(Side::White)[0]);
    assert_eq!(after, board(&[(2, 'W')]), "all four are gone and the king is where it was");
}

/// A game of draughts in a room; Ada has Black.
fn game() -> Table {
    Table::playing(&json!({ "rules": "draughts" }), &["ada", "bob"])
}

fn path(path: &[u8]) -> Value {
    json!({ "type": "move", "data": { "path": path } })
}

#[test]
fn a_room_plays_draughts() {
    let mut table = game();
    let roles: Vec<Option<&str>> = table.room.players().iter().map(|player| player.role.as_deref()).collect();
    assert_eq!((table.current(), roles), ("ada", vec![Some("black"), Some("white")]));
    let wrong = table.propose("ada", path(&[11, 19]));
    let refusal = wrong.expect_err("it is no move");
    assert_eq!((refusal.code, refusal.path.as_deref()), (Code::IllegalMove, Some("data.path")));
    assert!(refusal.sentence.contains("11-15"), "it says what would be: {refusal}");
    for data in [json!({}), json!({ "path": "11-15" }), json!({ "path": [11, 15], "x": 1 }), json!(3)] {
        let done = table.propose("ada", json!({ "type": "move", "data": data }));
        assert_eq!(refused(done), (Code::BadInput, "data".to_owned()), "{data}");
    }
    for squares in [vec![], vec![11], vec![0, 15], vec![11, 33], vec![11; 14]] {
        assert_eq!(refused(table.propose("ada", path(&squares))), (Code::BadInput, "data.path".to_owned()));
    }
    let other = table.propose("ada", json!({ "type": "castle" }));
    assert_eq!(refused(other), (Code::MoveNotAllowed, "type".to_owned()));
    for (name, squares) in [("ada", [11, 15]), ("bob", [23, 18]), ("ada", [8, 11]), ("bob", [18, 14])] {
        table.propose(name, path(&squares)).expect("a legal move");
    }
    let refusal = table.propose("ada", path(&[11, 16])).expect_err("Black must take");
    assert!(refusal.sentence.contains("you must take") && refusal.sentence.contains("9x18"), "{refusal}");
    table.propose("ada", path(&[9, 18])).expect("a legal move");
    let state = table.room.state();
    assert_eq!((&state["turn"], &state["black"]), (&json!("white"), &json!("ada")));
}

/// A room's state in which Ada, who has Black, is to move.
fn state(board: &Board, quiet: u16) -> Value {
    json!({ "board": board.to_string(), "turn": "black", "black": "ada", "white": "bob", "quiet": quiet })
}

fn next(board: &Board, quiet: u16, squares: &[u8]) -> Next {
    let players = [id("ada"), id("bob")];
    let attempt = Attempt {
        state: &state(board, quiet),
        players: &players,
        player: &players[0],
        kind: "move",
        data: &json!({ "path": squares }),
        seed: [0; 32],
    };
    Draughts.check(&attempt).expect("a legal move").next
}

#[test]
fn who_cannot_move_has_lost() {
    let won = |reason: &str| Next::Over { winner: Some(id("ada")), reason: reason.to_owned() };
    let last = board(&[(14, 'b'), (18, 'w')]);
    assert_eq!(next(&last, 0, &[14, 23]), won("no_moves_left"), "nothing is left");
    // White's man on 13 cannot pass 9, and 6 behind it makes it safe.
    let locked = board(&[(2, 'b'), (9, 'b'), (6, 'b'), (13, 'w')]);
    let still = board(&[(9, 'b'), (6, 'b'), (1, 'b'), (13, 'w')]);
    assert_eq!(next(&locked, 0, &[2, 7]), won("no_moves_left"), "what is left is shut in");
    assert_eq!(next(&still, 0, &[9, 14]), Next::Turn(id("bob")));
}

#[test]
fn eighty_moves_that_change_nothing_are_a_draw() {
    let kings = board(&[(1, 'B'), (32, 'W'), (12, 'b')]);
    let draw = Next::Over { winner: None, reason: "draw_without_progress".to_owned() };
    assert_eq!(next(&kings, QUIET_MOVES_MAX - 1, &[1, 5]), draw);
    assert_eq!(next(&kings, QUIET_MOVES_MAX - 2, &[1, 5]), Next::Turn(id("bob")));
    assert_eq!(
        next(&kings, QUIET_MOVES_MAX - 1, &[12, 16]),
        Next::Turn(id("bob")),
        "a man's move changes something"
    );
    let prey = board(&[(1, 'B'), (6, 'W'), (32, 'W')]);
    assert_eq!(next(&prey, QUIET_MOVES_MAX - 1, &[1, 10]), Next::Turn(id("bob")), "so does a capture");

    // And counted from the first move on, in a room.
    let mut table = Table::playing(&json!({ "rules": "draughts" }), &["ada", "bob"]);
    table.propose("ada", path(&[11, 15])).expect("a legal move");
    assert_eq!(table.room.state()["quiet"], 0);
}

#[test]
fn first_and_last_square_are_enough_where_they_say_which() {
    let one = board(&[(9, 'b'), (14, 'w'), (23, 'w')]);
    assert_eq!(next(&one, 0, &[9, 27]), next(&one, 0, &[9, 18, 27]));
    let players = [id("ada"), id("bob")];
    let circle = board(&[(2, 'B'), (6, 'w'), (7, 'w'), (14, 'w'), (15, 'w'), (32, 'w')]);
    let attempt = |data: &Value| {
        let state = state(&circle, 0);
        let attempt = Attempt {
            state: &state,
            players: &players,
            player: &players[0],
            kind: "move",
            data,
            seed: [0; 32],
        };
        Draughts.check(&attempt).map(|outcome| outcome.state)
    };
    let refusal = attempt(&json!({ "path": [2, 2] })).expect_err("there are two ways round");
    assert_eq!(refusal.code, Code::IllegalMove);
    assert!(
        refusal.sentence.contains("2x9x18x11x2") && refusal.sentence.contains("2x11x18x9x2"),
        "{refusal}"
    );
    let state = attempt(&json!({ "path": [2, 9, 18, 11, 2] })).expect("the whole way");
    assert_eq!(state["board"], board(&[(2, 'B'), (32, 'w')]).to_string());
}

#[test]
fn a_stored_state_that_is_none_is_a_fault_and_no_panic() {
    let players = [id("ada"), id("bob")];
    for state in [
        json!({}),
        json!(null),
        json!({ "board": "bbb", "turn": "black", "black": "ada", "white": "bob", "quiet": 0 }),
        json!({ "board": "ü".repeat(16), "turn": "black", "black": "ada", "white": "bob", "quiet": 0 }),
        json!({ "board": "x".repeat(32), "turn": "black", "black": "ada", "white": "bob", "quiet": 0 }),
    ] {
        let data = json!({ "path": [11, 15] });
        let attempt = Attempt {
            state: &state,
            players: &players,
            player: &players[0],
            kind: "move",
            data: &data,
            seed: [0; 32],
        };
        assert_eq!(Draughts.check(&attempt).expect_err("no game").code, Code::RulesFault);
    }
    assert!(Draughts.open(&players[..1], [0; 32]).is_err());
}

/// Games of random moves: they end, pieces never increase, and the room's result matches the board's.
#[test]
fn random_games_end_as_the_board_says() {
    let games =
        std::env::var("PARLOR_SEEDS").map_or(10, |text| text.parse::<u64>().expect("a number").min(200));
    let (mut won, mut drawn) = (0, 0);
    for seed in 0..games {
        println!("seed {seed}");
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut table =
            Table::playing_with(&json!({ "rules": "draughts" }), &["ada", "bob"], RuleSets::built_in());
        let mut pieces = 24;
        let mut moves_made = 0;
        while table.room.phase() == Phase::Playing {
            let board: Board =
                table.room.state()["board"].as_str().expect("a board").parse().expect("a board");
            let (name, side) =
                if table.current() == "ada" { ("ada", Side::Black) } else { ("bob", Side::White) };
            let legal = board.moves(side);
            assert!(!legal.is_empty(), "seed {seed}: who has a turn has a move");
            let made = &legal[usize::try_from(rng.next_u64() % legal.len() as u64).expect("it fits")];
            table.propose(name, path(&made.path)).expect("a legal move");
            let now = table.room.state()["board"].as_str().expect("a board").replace('.', "").len();
            assert_eq!(now, pieces - made.takes.len(), "seed {seed}");
            pieces = now;
            moves_made += 1;
            assert!(moves_made < 3_000, "seed {seed}: it ends");
        }
        match table.result() {
            Some((Some(winner), "no_moves_left")) => {
                let loser = if winner == "ada" { Side::White } else { Side::Black };
                let board: Board =
                    table.room.state()["board"].as_str().expect("a board").parse().expect("a board");
                assert!(board.moves(loser).is_empty(), "seed {seed}");
                won += 1;
            }
            Some((None, "draw_without_progress")) => drawn += 1,
            other => panic!("seed {seed}: ended as {other:?}"),
        }
    }
    assert!(won > 0, "{won} won, {drawn} drawn");
}

proptest! {
    /// Any position and data: an answer and no panic; each listed move is accepted and leaves a legal board.
    #[test]
    fn any_position_has_an_answer(letters in "[bwBW.]{32}", data in crate::json::any_json(), quiet in 0..100_u16) {
        let board: Board = letters.parse().expect("a board");
        let players = [id("ada"), id("bob")];
        let state = state(&board, quiet);
        let check = |data: &Value| {
            let attempt =
                Attempt { state: &state, players: &players, player: &players[0], kind: "move", data, seed: [0; 32] };
            Draughts.check(&attempt)
        };
        prop_assert!(check(&data).is_err() || data.get("path").is_some());
        for legal in board.moves(Side::Black) {
            let outcome = check(&json!({ "path": legal.path }));
            let (after, _) = board.after(&legal);
            prop_assert_eq!(&outcome.expect("it is listed").state["board"], &json!(after.to_string()));
            let count = |board: &Board, of: &str| board.to_string().chars().filter(|c| of.contains(*c)).count();
            prop_assert_eq!(count(&after, "bB"), count(&board, "bB"));
            prop_assert_eq!(count(&after, "wW") + legal.takes.len(), count(&board, "wW"));
        }
    }
}
