//! Operations on friends and presence.

use super::{PLAYER, get, post};
use crate::online::friends;
use crate::online::table::Operation;

/// Codes of what a player does about another.
const STEPS: &[&str] =
    &["no_such_player", "yourself", "blocked", "not_asked", "friends_full", "asked_too_often", "too_often"];

pub(super) fn all() -> Vec<Operation> {
    let mut all = of_lists();
    all.extend(of_steps());
    all
}

fn of_lists() -> Vec<Operation> {
    vec![
        Operation::new(
            "friend.list",
            get("/friends"),
            PLAYER,
            "Lists the player's friends, requests and blocks",
            friends::list,
        )
        .lists(),
        Operation::new(
            "friend.code",
            get("/friends/code"),
            PLAYER,
            "Gives the code by which others find the player",
            friends::code,
        )
        .refuses(&[&["too_often", "not_found"]]),
        Operation::new(
            "friend.new_code",
            post("/friends/code"),
            PLAYER,
            "Gives the player another code; the old one is good no more",
            friends::new_code,
        )
        .refuses(&[&["too_often", "not_found"]]),
        Operation::new(
            "presence.set",
            post("/presence"),
            PLAYER,
            "Says something to friends, or hides from them",
            friends::set_presence,
        )
        .refuses(&[&["not_here", "too_often"]]),
    ]
}

fn of_steps() -> Vec<Operation> {
    vec![
        Operation::new(
            "friend.ask",
            post("/friends"),
            PLAYER,
            "Asks another player to be a friend, or accepts if that one has asked",
            friends::ask,
        )
        .refuses(&[STEPS, &["missing_field"]]),
        Operation::new(
            "friend.accept",
            post("/friends/accept"),
            PLAYER,
            "Accepts a request",
            friends::accept,
        )
        .refuses(&[STEPS]),
        Operation::new(
            "friend.remove",
            post("/friends/remove"),
            PLAYER,
            "Ends a friendship, refuses a request, or takes one back",
            friends::remove,
        )
        .refuses(&[STEPS]),
        Operation::new(
            "friend.block",
            post("/friends/block"),
            PLAYER,
            "Blocks another player, who does not learn of it",
            friends::block,
        )
        .refuses(&[STEPS]),
        Operation::new("friend.unblock", post("/friends/unblock"), PLAYER, "Ends a block", friends::unblock)
            .refuses(&[STEPS]),
    ]
}
