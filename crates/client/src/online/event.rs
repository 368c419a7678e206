//! What a room tells its game.

use super::error::OnlineError;
use super::view::RoomView;
use serde::Deserialize;
use serde_json::Value;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The room is there, for the first time or again: it reads as the server has it.
    Connected {
        /// Its id, with which it is found again.
        room: String,
        /// What others type to join, if they may.
        code: Option<String>,
    },
    /// The connection is lost. It is made again by itself.
    Lost {
        /// Why.
        why: String,
    },
    /// Somebody sat down.
    PlayerJoined {
        /// The account.
        player: String,
        /// What the others read.
        name: String,
    },
    /// Somebody left, was turned out, gave up or ran out of time.
    PlayerLeft {
        /// The account.
        player: String,
        /// Which of these: the kind of notice, as docs/turn-rooms.md has it.
        how: String,
    },
    /// The game has begun.
    GameStarted,
    /// A turn has begun.
    TurnStarted {
        /// Whose.
        player: String,
        /// Whether it is this player's.
        is_me: bool,
        /// Which, from 1.
        turn: u64,
    },
    /// A move waits for the word of the others: [`TurnRoom::validate`](super::TurnRoom::validate).
    MoveProposed {
        /// The move.
        proposal: u64,
        /// Whose.
        player: String,
        /// Its type.
        kind: String,
        /// What belongs to it.
        data: Value,
    },
    /// A move stands, and the state has it.
    MoveMade {
        /// Whose.
        player: String,
        /// Its type.
        kind: String,
        /// What belongs to it.
        data: Value,
        /// The number of the state after it.
        state_version: u64,
    },
    /// A move does not stand.
    MoveRejected {
        /// Whose; this player's own if nobody else saw it.
        player: String,
        /// Why.
        error: OnlineError,
    },
    /// The game is over.
    GameOver {
        /// Who won, if one did.
        winner: Option<String>,
        /// Why.
        reason: String,
    },
    /// Somebody said something.
    Message {
        /// Who.
        player: String,
        /// What kind of message it is.
        kind: String,
        /// The message.
        body: Value,
    },
    /// What is said about the room, or its data, was changed.
    Updated {
        /// By whom.
        player: String,
        /// What: `name`, `visibility`, and of `metadata` and `data` what was merged into them.
        changed: Value,
    },
    /// Something else changed: the room reads otherwise.
    Changed,
    /// Something that was asked for was not done.
    Failed {
        /// Which operation.
        op: String,
        /// Why.
        error: OnlineError,
    },
    /// The room cannot be had, or not any more. This comes once, and nothing after it.
    Closed(OnlineError),
}

/// A notice of the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Notice {
    pub(super) seq: u64,
    pub(super) kind: String,
    pub(super) notice: Told,
}

/// What a notice says.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) room: String,
    pub(super) body: Value,
}

/// The event that a notice is, if a game may like to know.
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
            Event::MoveRejected { player: text("player"), error }
        }
        "game_over" => {
            Event::GameOver { winner: body["winner"].as_str().map(str::to_owned), reason: text("reason") }
        }
        "room_updated" => Event::Updated { player: text("player"), changed: body["changed"].clone() },
        "message" => {
            Event::Message { player: text("player"), kind: text("type"), body: body["body"].clone() }
        }
        "your_turn" | "push" => return None,
        _ => Event::Changed,
    })
}

/// What a newcomer is told of a game that goes on, or is over.
pub(super) fn of_view(view: &RoomView, me: &str) -> Option<Event> {
    if let Some(result) = &view.result {
        return Some(Event::GameOver { winner: result.winner.clone(), reason: result.reason.clone() });
    }
    let player = view.current_player.clone()?;
    Some(Event::TurnStarted { is_me: player == me, player, turn: view.turn_count.saturating_add(1) })
}
