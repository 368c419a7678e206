//! Operations on saves.

use super::{PLAYER, get, post};
use crate::online::saves;
use crate::online::table::Operation;

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::new("save.list", get("/saves"), PLAYER, "Lists the player's saves", saves::list),
        Operation::new(
            "save.get",
            get("/saves/{slot}"),
            PLAYER,
            "Reads a save, or a version before",
            saves::get,
        )
        .refuses(&[&["no_such_save"]]),
        Operation::new("save.set", post("/saves/{slot}"), PLAYER, "Writes a save", saves::set).refuses(&[&[
            "taken",
            "stale",
            "quota",
            "too_often",
            "not_found",
        ]]),
        Operation::new(
            "save.remove",
            post("/saves/{slot}/remove"),
            PLAYER,
            "Removes a save, which stays among the versions before",
            saves::remove,
        )
        .refuses(&[&["no_such_save", "stale", "too_often"]]),
        Operation::new(
            "save.before",
            get("/saves/{slot}/before"),
            PLAYER,
            "Lists the versions of a slot before the present one, the newest first",
            saves::before,
        ),
    ]
}
