//! Operations on boards.

use super::{EVERY_ROLE, OPERATORS, PLAYER, PLAYER_AND_SERVER, SERVER, get, post};
use crate::online::boards;
use crate::online::table::Operation;

/// Codes of what is written.
const WRITES: &[&str] = &["no_such_board", "server_only", "missing_field"];
/// Codes of scores.
const SCORES: &[&str] = &[
    "no_such_player",
    "out_of_range",
    "no_attempts_left",
    "not_open",
    "board_closed",
    "board_full",
    "quota",
    "bad_receipt",
    "receipt_used",
];
/// Codes of questions about ranks.
const READS: &[&str] = &["no_such_board", "no_such_season", "not_ranked", "too_often"];

pub(super) fn all() -> Vec<Operation> {
    of_operators().into_iter().chain(of_scores()).chain(of_ranks()).collect()
}

fn of_operators() -> Vec<Operation> {
    vec![
        Operation::new(
            "admin.define_board",
            post("/admin/boards"),
            OPERATORS,
            "Defines a board, or changes its definition",
            boards::define,
        )
        .refuses(&[&["stale", "quota"]]),
        Operation::new(
            "admin.delete_board",
            post("/admin/boards/delete"),
            OPERATORS,
            "Deletes a board with all its entries",
            boards::delete,
        )
        .refuses(&[&["no_such_board"]]),
    ]
}

fn of_scores() -> Vec<Operation> {
    vec![
        Operation::new(
            "board.submit",
            post("/boards/{board}/scores"),
            PLAYER_AND_SERVER,
            "Submits a score",
            boards::submit,
        )
        .refuses(&[WRITES, SCORES, &["too_often"]]),
        Operation::new(
            "board.submit_many",
            post("/scores"),
            SERVER,
            "Submits up to 100 scores of any players and boards, all or none",
            boards::submit_many,
        )
        .refuses(&[WRITES, SCORES]),
        Operation::new(
            "board.remove",
            post("/boards/{board}/remove"),
            EVERY_ROLE,
            "Removes an entry: a player's own, and for operators any",
            boards::remove,
        )
        .refuses(&[WRITES, &["no_such_season", "no_such_entry"]]),
    ]
}

fn of_ranks() -> Vec<Operation> {
    vec![
        Operation::new(
            "board.list",
            get("/boards"),
            EVERY_ROLE,
            "Lists the boards of the game",
            boards::list,
        )
        .lists(),
        Operation::new(
            "board.top",
            get("/boards/{board}"),
            EVERY_ROLE,
            "Gives the best entries of a board, or those from any position on",
            boards::top,
        )
        .lists()
        .refuses(&[READS]),
        Operation::new(
            "board.around",
            get("/boards/{board}/around"),
            EVERY_ROLE,
            "Gives the entries around a player's",
            boards::around,
        )
        .lists()
        .refuses(&[READS, &["no_such_entry", "missing_field"]]),
        Operation::new(
            "board.of",
            post("/boards/{board}/of"),
            EVERY_ROLE,
            "Gives the entries of these players, such as friends",
            boards::of,
        )
        .lists()
        .refuses(&[READS]),
        Operation::new(
            "board.friends",
            get("/boards/{board}/friends"),
            PLAYER,
            "Gives the entries of the player and its friends",
            boards::friends,
        )
        .lists()
        .refuses(&[READS]),
        Operation::new(
            "board.seasons",
            get("/boards/{board}/seasons"),
            EVERY_ROLE,
            "Lists the seasons of a board",
            boards::seasons,
        )
        .refuses(&[&["no_such_board"]]),
    ]
}
