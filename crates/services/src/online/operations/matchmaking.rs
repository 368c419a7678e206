//! Operations of the matchmaker.

use super::{EVERY_ROLE, PLAYER, PLAYER_AND_SERVER, get, post};
use crate::online::homes::question;
use crate::online::matchmaking::{self, charges};
use crate::online::table::Operation;

pub(super) fn all() -> Vec<Operation> {
    of_searches().into_iter().chain(of_matches()).chain(of_offers()).collect()
}

fn of_searches() -> Vec<Operation> {
    vec![
        Operation::new(
            "matchmaking.queues",
            get("/matchmaking/queues"),
            EVERY_ROLE,
            "Lists the queues, and how many search there",
            matchmaking::queues,
        )
        .at_home(question)
        .lists(),
        Operation::new(
            "matchmaking.enter",
            post("/matchmaking"),
            PLAYER,
            "Begins to search a match, alone or with a party",
            matchmaking::enter,
        )
        .at_home(charges::entries)
        .refuses(&[&[
            "no_such_queue",
            "no_such_lobby",
            "not_owner",
            "not_here",
            "already_in_queue",
            "party_too_large",
            "too_many_tickets",
            "too_often",
        ]]),
        Operation::new(
            "matchmaking.read",
            get("/matchmaking/{ticket}"),
            PLAYER,
            "Says how a search stands",
            matchmaking::read,
        )
        .at_home(question)
        .refuses(&[&["no_such_ticket"]]),
        Operation::new(
            "matchmaking.leave",
            post("/matchmaking/{ticket}/leave"),
            PLAYER,
            "Ends a search for all of its members",
            matchmaking::leave,
        )
        .at_home(charges::words)
        .refuses(&[&["no_such_ticket", "too_often"]]),
    ]
}

fn of_matches() -> Vec<Operation> {
    vec![
        Operation::new(
            "matchmaking.confirm",
            post("/matchmaking/{ticket}/confirm"),
            PLAYER,
            "Takes a match that was found, or does not",
            matchmaking::confirm,
        )
        .at_home(charges::words)
        .refuses(&[&["no_such_ticket", "not_asked", "too_often"]]),
        Operation::new(
            "matchmaking.opened",
            post("/matchmaking/{ticket}/opened"),
            PLAYER,
            "Says the code of the room that the player was asked to open, and in which it sits",
            matchmaking::opened,
        )
        .at_home(charges::words)
        .refuses(&[&["no_such_ticket", "not_asked", "no_such_room", "too_often"]]),
        Operation::new(
            "matchmaking.again",
            post("/matchmaking/{ticket}/again"),
            PLAYER,
            "Searches on, because the player could not get into the room that was found",
            matchmaking::again,
        )
        .at_home(charges::words)
        .refuses(&[&["no_such_ticket", "not_asked", "too_often"]]),
    ]
}

fn of_offers() -> Vec<Operation> {
    vec![
        Operation::new(
            "matchmaking.offer",
            post("/matchmaking/offers"),
            PLAYER_AND_SERVER,
            "Offers the free seats of a match, for a minute",
            matchmaking::offer,
        )
        .at_home(charges::offered)
        .refuses(&[&["no_such_queue", "no_such_room", "server_only", "not_yours", "too_often"]]),
        Operation::new(
            "matchmaking.withdraw",
            post("/matchmaking/offers/withdraw"),
            PLAYER_AND_SERVER,
            "Takes an offer back",
            matchmaking::withdraw,
        )
        .at_home(question)
        .refuses(&[&["not_yours"]]),
    ]
}
