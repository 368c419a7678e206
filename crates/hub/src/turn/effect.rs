//! What an operation has others told.

use super::ids::PlayerId;
use schemars::JsonSchema;
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

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum NoticeKind {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl NoticeKind {
            /// All of them.
            pub const ALL: &[NoticeKind] = &[$(NoticeKind::$name),+];

            /// The kind as programs read it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(NoticeKind::$name => $text,)+
                }
            }
        }
    };
}

kinds! {
    /// Somebody sat down.
    PlayerJoined = "player_joined",
    /// Somebody got up.
    PlayerLeft = "player_left",
    /// Somebody was turned out.
    PlayerKicked = "player_kicked",
    /// Somebody plays no further: gave up, or ran out of time.
    PlayerForfeited = "player_forfeited",
    /// Somebody else is the host.
    HostChanged = "host_changed",
    /// The game has begun.
    GameStarted = "game_started",
    /// A turn has begun: to all.
    TurnStarted = "turn_started",
    /// A turn has begun: to whose it is.
    YourTurn = "your_turn",
    /// A turn passed without a move.
    TurnSkipped = "turn_skipped",
    /// A move waits for the word of the others.
    MoveProposed = "move_proposed",
    /// A move stands.
    MoveMade = "move_made",
    /// A move that waited does not stand; the state is as if it had not been.
    MoveRejected = "move_rejected",
    /// The game is over.
    GameOver = "game_over",
    /// What is said about the room changed.
    RoomUpdated = "room_updated",
    /// Somebody said something.
    Message = "message",
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
