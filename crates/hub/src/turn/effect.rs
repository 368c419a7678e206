//! What an operation has others told.

use super::ids::PlayerId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the server does once the document is stored, or stores together with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Something happened: for inboxes, live feeds and webhooks.
    Notice(Notice),
    /// Somebody who may be away should be called: for inboxes and webhooks that reach devices.
    Push(Push),
}

/// Something that happened in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The room counts its notices, from 1: who has two in hand knows which came first, and who has one twice knows it.
    pub seq: u64,
    /// Whom to tell.
    pub to: Vec<PlayerId>,
    /// What kind of thing.
    pub kind: NoticeKind,
    /// The rest, an object. `docs/turn-rooms.md` says which fields each kind has.
    pub body: Value,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Somebody sat down.
    PlayerJoined,
    /// Somebody got up.
    PlayerLeft,
    /// Somebody was turned out.
    PlayerKicked,
    /// Somebody plays no further: gave up, or ran out of time.
    PlayerForfeited,
    /// Somebody else is the host.
    HostChanged,
    /// The game has begun.
    GameStarted,
    /// A turn has begun: to all.
    TurnStarted,
    /// A turn has begun: to whose it is.
    YourTurn,
    /// A turn passed without a move.
    TurnSkipped,
    /// A move waits for the word of the others.
    MoveProposed,
    /// A move stands.
    MoveMade,
    /// A move that waited does not stand; the state is as if it had not been.
    MoveRejected,
    /// The game is over.
    GameOver,
    /// What is said about the room changed.
    RoomUpdated,
    /// Somebody said something.
    Message,
}

impl NoticeKind {
    /// The kind as programs read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::PlayerJoined => "player_joined",
            NoticeKind::PlayerLeft => "player_left",
            NoticeKind::PlayerKicked => "player_kicked",
            NoticeKind::PlayerForfeited => "player_forfeited",
            NoticeKind::HostChanged => "host_changed",
            NoticeKind::GameStarted => "game_started",
            NoticeKind::TurnStarted => "turn_started",
            NoticeKind::YourTurn => "your_turn",
            NoticeKind::TurnSkipped => "turn_skipped",
            NoticeKind::MoveProposed => "move_proposed",
            NoticeKind::MoveMade => "move_made",
            NoticeKind::MoveRejected => "move_rejected",
            NoticeKind::GameOver => "game_over",
            NoticeKind::RoomUpdated => "room_updated",
            NoticeKind::Message => "message",
        }
    }
}

/// A text for people, made from a template of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Counted with the notices.
    pub seq: u64,
    /// Whom to call.
    pub to: Vec<PlayerId>,
    /// What for.
    pub on: PushOn,
    /// The headline.
    pub title: String,
    /// The text.
    pub body: String,
}

/// What somebody is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushOn {
    /// It is their turn.
    TurnStart,
    /// The game is over.
    GameEnd,
}
