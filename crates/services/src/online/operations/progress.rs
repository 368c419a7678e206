//! Operations on definitions, statistics, achievements and ratings.

use super::{EVERY_ROLE, OPERATORS, PLAYER_AND_SERVER, SERVER, get, post};
use crate::online::table::Operation;
use crate::online::{definitions, progress, ratings};

pub(super) fn all() -> Vec<Operation> {
    of_definitions().into_iter().chain(of_progress()).chain(of_ratings()).collect()
}

fn of_definitions() -> Vec<Operation> {
    vec![
        Operation::new(
            "admin.define",
            post("/admin/definitions"),
            OPERATORS,
            "Defines a statistic, an achievement, a ladder or a queue, or changes its definition",
            definitions::define,
        )
        .refuses(&[&["stale", "quota", "no_such_board"]]),
        Operation::new(
            "admin.undefine",
            post("/admin/definitions/delete"),
            OPERATORS,
            "Deletes a definition; what players have of it stays",
            definitions::undefine,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "admin.definitions",
            get("/admin/definitions"),
            OPERATORS,
            "Lists what is defined, apart from boards",
            definitions::list,
        )
        .lists(),
    ]
}

fn of_progress() -> Vec<Operation> {
    vec![
        Operation::new(
            "statistic.list",
            get("/statistics"),
            EVERY_ROLE,
            "Lists a player's statistics: a player's own, and for operators anybody's",
            progress::list_statistics,
        )
        .lists()
        .refuses(&[&["missing_field"]]),
        Operation::new(
            "statistic.write",
            post("/statistics"),
            PLAYER_AND_SERVER,
            "Writes up to 32 statistics of a player, all or none",
            progress::write_statistics,
        )
        .refuses(&[&[
            "no_such_statistic",
            "no_such_player",
            "server_only",
            "out_of_range",
            "missing_field",
            "too_often",
            "quota",
        ]]),
        Operation::new(
            "statistic.totals",
            get("/statistics/{statistic}/totals"),
            EVERY_ROLE,
            "Gives what the values of all players add up to, by day",
            progress::totals,
        )
        .refuses(&[&["no_such_statistic"]]),
        Operation::new(
            "achievement.list",
            get("/achievements"),
            EVERY_ROLE,
            "Lists the game's achievements with a player's progress",
            progress::list_achievements,
        )
        .lists()
        .refuses(&[&["missing_field"]]),
        Operation::new(
            "achievement.write",
            post("/achievements/{achievement}"),
            PLAYER_AND_SERVER,
            "Writes a player's progress of an achievement",
            progress::write_achievement,
        )
        .refuses(&[&[
            "no_such_achievement",
            "no_such_player",
            "server_only",
            "goal_decides",
            "missing_field",
            "too_often",
            "quota",
        ]]),
    ]
}

fn of_ratings() -> Vec<Operation> {
    vec![
        Operation::new(
            "rating.read",
            get("/ratings/{ladder}"),
            EVERY_ROLE,
            "Gives a player's rating on a ladder",
            ratings::read,
        )
        .refuses(&[&["no_such_ladder", "missing_field"]]),
        Operation::new(
            "rating.report",
            post("/ratings/{ladder}/results"),
            SERVER,
            "Rates the result of a match: all its players, or none",
            ratings::report,
        )
        .refuses(&[&["no_such_ladder", "no_such_player"]]),
    ]
}
