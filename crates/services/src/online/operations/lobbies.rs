//! Operations on lobbies and parties.

use super::{ADMIN, OPERATORS, PLAYER, get, patch, post};
use crate::online::homes::question;
use crate::online::lobbies::{self, charges};
use crate::online::table::Operation;

/// Codes of what a member does.
const IN_LOBBY: &[&str] = &["no_such_lobby", "not_in_lobby", "not_owner", "too_often"];

pub(super) fn all() -> Vec<Operation> {
    of_entries().into_iter().chain(of_members()).chain(of_operators()).collect()
}

fn of_entries() -> Vec<Operation> {
    vec![
        Operation::new("lobby.create", post("/lobbies"), PLAYER, "Opens a lobby or a party", lobbies::create)
            .at_home(charges::created)
            .refuses(&[&["already_in_party", "too_many_lobbies", "too_often"]]),
        Operation::new(
            "lobby.find",
            post("/lobbies/find"),
            PLAYER,
            "Searches lobbies by their properties, free seats and friends",
            lobbies::find,
        )
        .at_home(charges::searches)
        .lists()
        .refuses(&[&["too_often"]]),
        Operation::new(
            "lobby.mine",
            get("/lobbies/mine"),
            PLAYER,
            "Lists the lobbies in which the player is, and those to which it is invited",
            lobbies::mine,
        )
        .at_home(charges::searches)
        .lists()
        .refuses(&[&["too_often"]]),
        Operation::new("lobby.read", get("/lobbies/{lobby}"), PLAYER, "Reads a lobby", lobbies::read)
            .at_home(question)
            .refuses(&[&["no_such_lobby", "too_often"]]),
        Operation::new(
            "lobby.join",
            post("/lobbies/join"),
            PLAYER,
            "Joins a lobby, by its id or its code",
            lobbies::join,
        )
        .at_home(charges::entries)
        .refuses(&[&[
            "no_such_lobby",
            "lobby_full",
            "locked",
            "kicked",
            "already_in_party",
            "too_many_lobbies",
            "missing_field",
            "too_often",
        ]]),
        Operation::new(
            "lobby.leave",
            post("/lobbies/{lobby}/leave"),
            PLAYER,
            "Leaves a lobby",
            lobbies::leave,
        )
        .at_home(charges::changes)
        .refuses(&[IN_LOBBY]),
        Operation::new(
            "lobby.decline",
            post("/lobbies/{lobby}/decline"),
            PLAYER,
            "Declines an invitation",
            lobbies::decline,
        )
        .at_home(charges::changes)
        .refuses(&[&["too_often"]]),
    ]
}

fn of_members() -> Vec<Operation> {
    vec![
        Operation::new(
            "lobby.update",
            patch("/lobbies/{lobby}"),
            PLAYER,
            "Changes a lobby: for its owner",
            lobbies::update,
        )
        .at_home(charges::changes)
        .refuses(&[IN_LOBBY, &["stale"]]),
        Operation::new(
            "lobby.update_me",
            patch("/lobbies/{lobby}/me"),
            PLAYER,
            "Changes what a member says of itself, such as `ready`",
            lobbies::update_me,
        )
        .at_home(charges::changes)
        .refuses(&[IN_LOBBY]),
        Operation::new(
            "lobby.invite",
            post("/lobbies/{lobby}/invite"),
            PLAYER,
            "Invites a friend",
            lobbies::invite,
        )
        .at_home(charges::invited)
        .refuses(&[IN_LOBBY, &["not_friends", "asked_too_often"]]),
        Operation::new(
            "lobby.kick",
            post("/lobbies/{lobby}/kick"),
            PLAYER,
            "Kicks a member for good: for the owner",
            lobbies::kick,
        )
        .at_home(charges::changes)
        .refuses(&[IN_LOBBY, &["no_such_player"]]),
        Operation::new(
            "lobby.promote",
            post("/lobbies/{lobby}/promote"),
            PLAYER,
            "Makes another member the owner",
            lobbies::promote,
        )
        .at_home(charges::changes)
        .refuses(&[IN_LOBBY, &["no_such_player"]]),
        Operation::new(
            "lobby.say",
            post("/lobbies/{lobby}/messages"),
            PLAYER,
            "Says something to all members",
            lobbies::say,
        )
        .at_home(charges::sayings)
        .refuses(&[IN_LOBBY]),
        Operation::new(
            "lobby.room",
            post("/lobbies/{lobby}/room"),
            PLAYER,
            "Says in which room the lobby goes on: for the owner, who sits in it",
            lobbies::room,
        )
        .at_home(charges::changes)
        .refuses(&[IN_LOBBY, &["no_such_room"]]),
    ]
}

fn of_operators() -> Vec<Operation> {
    vec![
        Operation::new("admin.lobbies", get("/admin/lobbies"), OPERATORS, "Lists all lobbies", lobbies::all)
            .at_home(question)
            .lists(),
        Operation::new(
            "admin.end_lobby",
            post("/admin/lobbies/{lobby}/end"),
            ADMIN,
            "Ends a lobby and notifies its members",
            lobbies::end,
        )
        .at_home(question)
        .refuses(&[&["no_such_lobby"]]),
    ]
}
