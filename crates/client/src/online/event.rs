//! Events of a turn room.

use super::error::OnlineError;
use super::view::{Checks, RoomMessage, RoomView};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event of a turn room.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The room is connected, for the first time or again. Its view is up to date.
    Connected {
        /// The room's id, for [`SignIn::resume`](super::SignIn::resume).
        room: String,
        /// The code to join by, if others may.
        code: Option<String>,
    },
    /// The connection was lost. It is reconnected automatically.
    Lost {
        /// Why.
        why: String,
    },
    /// A player took a seat.
    PlayerJoined {
        /// The account.
        player: String,
        /// The display name.
        name: String,
    },
    /// A player left, was kicked, resigned or ran out of time.
    PlayerLeft {
        /// The account.
        player: String,
        /// The kind of notice, as docs/turn-rooms.md lists them.
        how: String,
    },
    /// The game has begun.
    GameStarted,
    /// A turn has begun.
    TurnStarted {
        /// The player on turn.
        player: String,
        /// Whether it is this player's.
        is_me: bool,
        /// The turn's number, from 1.
        turn: u64,
    },
    /// A move awaits the judgement of the other players: [`TurnRoom::validate`](super::TurnRoom::validate).
    MoveProposed {
        /// The proposal's number.
        proposal: u64,
        /// The player that made it.
        player: String,
        /// The move's type.
        kind: String,
        /// The move's data.
        data: Value,
    },
    /// A move was accepted, and the state includes it.
    MoveMade {
        /// The player that made it.
        player: String,
        /// The move's type.
        kind: String,
        /// The move's data.
        data: Value,
        /// The state's version after the move.
        state_version: u64,
    },
    /// A move was rejected.
    MoveRejected {
        /// The player that made it. This player, if the others never saw it.
        player: String,
        /// Why.
        error: OnlineError,
        /// Which check failed, if the server said so.
        checks: Option<Checks>,
    },
    /// The room was paused, or goes on.
    Paused {
        /// Whether it is paused now.
        is_paused: bool,
        /// Who did it; `None` for the operator.
        player: Option<String>,
    },
    /// The game is over.
    GameOver {
        /// The winner, if there is one.
        winner: Option<String>,
        /// Why.
        reason: String,
    },
    /// A player sent a message.
    Message {
        /// The sender.
        player: String,
        /// The kind of message, defined by the game.
        kind: String,
        /// The message.
        body: Value,
        /// Its number in the room's history, from 1.
        number: u64,
    },
    /// A part of the room's history: the answer to [`TurnRoom::read_messages`](super::TurnRoom::read_messages).
    History {
        /// The newest first.
        messages: Vec<RoomMessage>,
        /// What to read on after; `None` after the last part.
        next: Option<String>,
    },
    /// The room's settings, metadata or data were changed.
    Updated {
        /// The player that changed them.
        player: String,
        /// The changed fields: `name`, `visibility`, `admins`; of `metadata` and `data` the object that was merged.
        changed: Value,
        /// Whether `metadata` and `data` took the place of the old ones, and were not merged.
        replaces: bool,
    },
    /// Something else changed: read the view again.
    Changed,
    /// A request of this player failed.
    Failed {
        /// The operation.
        op: String,
        /// Why.
        error: OnlineError,
    },
    /// The room is closed, or could not be opened. Sent once, as the last event.
    Closed(OnlineError),
}

/// What a subscriber to a room is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Who is in the room, and what is said about it: [`Event::PlayerJoined`], [`Event::PlayerLeft`] and
    /// [`Event::Updated`].
    Data,
    /// [`Event::Message`].
    Messages,
    /// The course of the game: its start, turns, moves, pauses and end.
    Game,
}

impl Topic {
    /// All of them.
    pub const ALL: [Topic; 3] = [Topic::Data, Topic::Messages, Topic::Game];
}

/// Returns the topic of an event that a notice reports; `None` for what is this player's own affair.
pub(super) fn topic_of(event: &Event) -> Option<Topic> {
    Some(match event {
        Event::PlayerJoined { .. } | Event::PlayerLeft { .. } | Event::Updated { .. } | Event::Changed => {
            Topic::Data
        }
        Event::Message { .. } => Topic::Messages,
        Event::GameStarted
        | Event::TurnStarted { .. }
        | Event::MoveProposed { .. }
        | Event::MoveMade { .. }
        | Event::Paused { .. }
        | Event::GameOver { .. } => Topic::Game,
        Event::Connected { .. }
        | Event::Lost { .. }
        | Event::MoveRejected { .. }
        | Event::History { .. }
        | Event::Failed { .. }
        | Event::Closed(_) => return None,
    })
}

/// A notice from the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Notice {
    /// Its number in the inbox; 0 of a room that is only watched.
    #[serde(default)]
    pub(super) seq: u64,
    pub(super) kind: String,
    pub(super) notice: Told,
}

/// The content of a notice.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) room: String,
    pub(super) body: Value,
}

/// Returns the event for a notice, if a game has a use for it.
pub(super) fn of_notice(notice: &Notice, me: &str) -> Option<Event> {
    let body = &notice.notice.body;
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let number = |field: &str| body[field].as_u64().unwrap_or_default();
    Some(match notice.kind.as_str() {
        "player_joined" => Event::PlayerJoined { player: text("player"), name: text("name") },
        "player_left" | "player_kicked" | "player_forfeited" => {
            Event::PlayerLeft { player: text("player"), how: notice.kind.clone() }
        }
        "game_started" => Event::GameStarted,
        "turn_started" => {
            let player = text("player");
            Event::TurnStarted { is_me: player == me, player, turn: number("turn") }
        }
        "move_proposed" => Event::MoveProposed {
            proposal: number("proposal"),
            player: text("player"),
            kind: text("type"),
            data: body["data"].clone(),
        },
        "move_made" => Event::MoveMade {
            player: text("player"),
            kind: text("type"),
            data: body["data"].clone(),
            state_version: number("state_version"),
        },
        "move_rejected" => {
            let error = OnlineError::new("disputed", text("reason"));
            let checks = Checks::deserialize(&body["checks"]).ok();
            Event::MoveRejected { player: text("player"), error, checks }
        }
        "game_over" => {
            Event::GameOver { winner: body["winner"].as_str().map(str::to_owned), reason: text("reason") }
        }
        "room_updated" => Event::Updated {
            player: text("player"),
            changed: body["changed"].clone(),
            replaces: body["replaces"] == true,
        },
        "room_paused" | "room_resumed" => Event::Paused {
            is_paused: notice.kind == "room_paused",
            player: body["player"].as_str().map(str::to_owned),
        },
        "message" => Event::Message {
            player: text("player"),
            kind: text("type"),
            body: body["body"].clone(),
            number: number("number"),
        },
        "your_turn" | "push" => return None,
        _ => Event::Changed,
    })
}

/// Returns the event that tells a newcomer the state of a running or finished game.
pub(super) fn of_view(view: &RoomView, me: &str) -> Option<Event> {
    if let Some(result) = &view.result {
        return Some(Event::GameOver { winner: result.winner.clone(), reason: result.reason.clone() });
    }
    let player = view.current_player.clone()?;
    Some(Event::TurnStarted { is_me: player == me, player, turn: view.turn_count.saturating_add(1) })
}
