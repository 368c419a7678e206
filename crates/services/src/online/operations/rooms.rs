//! Operations on turn rooms.

use super::{EVERY_ROLE, PLAYER, get, patch, post};
use crate::online::rooms;
use crate::online::table::Operation;

/// Codes of all operations on one room.
const IN_ROOM: &[&str] = &["no_such_room", "not_in_room", "quota"];
/// Codes of opening a room.
const SET_UP: &[&str] = &[
    "too_many_rooms",
    "bad_config",
    "too_deep",
    "operator_decides",
    "no_games",
    "no_such_game",
    "no_such_mode",
    "quota",
];
/// Codes of starting a game, which may ask a rule set.
const BEGINS: &[&str] = &["unknown_rules", "rules_fault", "illegal_move"];
/// Codes of entering a room.
const ENTRY: &[&str] = &[
    "quota",
    "too_many_rooms",
    "kicked",
    "out_of_game",
    "wrong_phase",
    "game_started",
    "room_full",
    "paused",
];
/// Codes of moves.
const MOVES: &[&str] = &[
    "wrong_phase",
    "out_of_game",
    "not_your_turn",
    "paused",
    "move_not_allowed",
    "missing_field",
    "too_deep",
    "stale_state",
    "rules_decide",
    "proposal_open",
    "too_many_proposals",
    "no_such_player",
];

/// Codes of pauses.
const PAUSES: &[&str] = &["not_host", "wrong_phase", "rules_decide"];

pub(super) fn all() -> Vec<Operation> {
    [of_rooms(), of_seats(), of_readers(), of_games()].into_iter().flatten().collect()
}

fn of_rooms() -> Vec<Operation> {
    vec![
        Operation::new("turn.create", post("/rooms"), PLAYER, "Opens a turn room", rooms::create)
            .shows_room()
            .refuses(&[SET_UP, BEGINS, &["taken", "too_often"]]),
        Operation::new(
            "turn.join_or_create",
            post("/rooms/join-or-create"),
            PLAYER,
            "Gives a room of this game that the player sits in, or joins one that has a seat, or opens one",
            rooms::join_or_create,
        )
        .shows_room()
        .refuses(&[SET_UP, BEGINS, &["too_often"]]),
        Operation::new(
            "turn.join_by_code",
            post("/rooms/join"),
            PLAYER,
            "Joins the room with a code",
            rooms::join_by_code,
        )
        .shows_room()
        .refuses(&[ENTRY, BEGINS, &["no_such_room", "too_often"]]),
        Operation::new(
            "turn.list",
            get("/rooms"),
            EVERY_ROLE,
            "Lists the rooms of a game that can be joined",
            rooms::list,
        )
        .lists()
        .refuses(&[&["too_large", "too_deep"]]),
        Operation::new(
            "turn.mine",
            get("/rooms/mine"),
            PLAYER,
            "Lists the rooms that the player sits in",
            rooms::mine,
        )
        .lists(),
        Operation::new("turn.read", get("/rooms/{room}"), EVERY_ROLE, "Reads a room", rooms::read)
            .shows_room()
            .refuses(&[IN_ROOM]),
    ]
}

fn of_seats() -> Vec<Operation> {
    vec![
        Operation::new(
            "turn.update",
            patch("/rooms/{room}"),
            PLAYER,
            "Changes what is said about a room",
            rooms::update,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["not_host", "too_deep", "operator_decides", "no_such_player"]]),
        Operation::new("turn.join", post("/rooms/{room}/join"), PLAYER, "Joins a room", rooms::join)
            .shows_room()
            .refuses(&[ENTRY, BEGINS, &["no_such_room"]]),
        Operation::new("turn.leave", post("/rooms/{room}/leave"), PLAYER, "Leaves a room", rooms::leave)
            .shows_room()
            .refuses(&[IN_ROOM]),
        Operation::new(
            "turn.kick",
            post("/rooms/{room}/kick"),
            EVERY_ROLE,
            "Turns a player out: for the host and for operators",
            rooms::kick,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["not_host", "no_such_player"]]),
        Operation::new(
            "turn.say",
            post("/rooms/{room}/messages"),
            PLAYER,
            "Says something to all in a room",
            rooms::say,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["too_deep"]]),
        Operation::new(
            "turn.messages",
            get("/rooms/{room}/messages"),
            EVERY_ROLE,
            "Lists what was said in a room, the newest first: the last 256 messages",
            rooms::messages,
        )
        .lists()
        .refuses(&[IN_ROOM]),
    ]
}

fn of_readers() -> Vec<Operation> {
    vec![
        Operation::new(
            "turn.subscribe",
            post("/rooms/{room}/subscribe"),
            PLAYER,
            "Reads a room, and sends its notices over the JSON socket that asks, as long as it has no seat there",
            rooms::subscribe,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["no_socket", "too_many_subscriptions"]]),
        Operation::new(
            "turn.unsubscribe",
            post("/rooms/{room}/unsubscribe"),
            PLAYER,
            "Sends no more notices of a room over the JSON socket that asks",
            rooms::unsubscribe,
        )
        .refuses(&[IN_ROOM, &["no_socket"]]),
        Operation::new(
            "turn.delete",
            post("/rooms/{room}/delete"),
            EVERY_ROLE,
            "Deletes a room that has ended, or where nobody else sits: for whoever opened it, and for operators",
            rooms::delete,
        )
        .refuses(&[IN_ROOM, &["not_host", "wrong_phase"]]),
    ]
}

fn of_games() -> Vec<Operation> {
    vec![
        Operation::new(
            "turn.rules",
            get("/rules"),
            EVERY_ROLE,
            "Lists the rule sets that this server has",
            rooms::rules,
        ),
        Operation::new(
            "turn.start",
            post("/rooms/{room}/start"),
            PLAYER,
            "Begins the game: for the host",
            rooms::start,
        )
        .shows_room()
        .refuses(&[
            IN_ROOM,
            BEGINS,
            &["not_host", "wrong_phase", "paused", "too_few_players", "bad_turn_order", "no_such_player"],
        ]),
        Operation::new(
            "turn.pause",
            post("/rooms/{room}/pause"),
            EVERY_ROLE,
            "Pauses a room: for the host and its admins where no rules decide, and for operators",
            rooms::pause,
        )
        .shows_room()
        .refuses(&[IN_ROOM, PAUSES]),
        Operation::new(
            "turn.resume",
            post("/rooms/{room}/resume"),
            EVERY_ROLE,
            "Ends the pause of a room: for whoever may pause it",
            rooms::resume,
        )
        .shows_room()
        .refuses(&[IN_ROOM, PAUSES]),
        Operation::new("turn.propose", post("/rooms/{room}/moves"), PLAYER, "Makes a move", rooms::propose)
            .shows_room()
            .refuses(&[IN_ROOM, BEGINS, MOVES]),
        Operation::new(
            "turn.validate",
            post("/rooms/{room}/moves/{proposal}/verdict"),
            PLAYER,
            "Says whether another's move is right",
            rooms::validate,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["no_such_proposal", "not_your_vote", "paused"]]),
        Operation::new(
            "turn.resign",
            post("/rooms/{room}/resign"),
            PLAYER,
            "Gives the game up",
            rooms::resign,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["wrong_phase", "out_of_game"]]),
        Operation::new(
            "turn.end",
            post("/rooms/{room}/end"),
            EVERY_ROLE,
            "Ends the game: for the host where no rules decide, and for operators",
            rooms::end,
        )
        .shows_room()
        .refuses(&[IN_ROOM, &["not_host", "wrong_phase", "rules_decide", "no_such_player"]]),
    ]
}
