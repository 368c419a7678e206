//! Effects of operations: notices and push notifications.

use super::ids::PlayerId;
use super::rules::Award;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An effect that the server executes after storing the document, or stores with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A notice for inboxes, live feeds and webhooks.
    Notice(Notice),
    /// A push notification for absent players, through inboxes and webhooks that reach devices.
    Push(Push),
    /// A score for a board, from the rules of a game that has ended.
    Award(Award),
}

/// A notice of an event in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The number of the notice in its room, from 1, for ordering and deduplication.
    pub seq: u64,
    /// The recipients.
    pub to: Vec<PlayerId>,
    /// The kind of event.
    pub kind: NoticeKind,
    /// The details, an object. `docs/turn-rooms.md` lists the fields of each kind.
    pub body: Value,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// The kind of a notice.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum NoticeKind {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl NoticeKind {
            /// All of them.
            pub const ALL: &[NoticeKind] = &[$(NoticeKind::$name),+];

            /// Returns the kind's name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(NoticeKind::$name => $text,)+
                }
            }
        }
    };
}

kinds! {
    /// A player joined.
    PlayerJoined = "player_joined",
    /// A player left.
    PlayerLeft = "player_left",
    /// A player was kicked.
    PlayerKicked = "player_kicked",
    /// A player is out of the game: resigned or ran out of time.
    PlayerForfeited = "player_forfeited",
    /// The host changed.
    HostChanged = "host_changed",
    /// The game has begun.
    GameStarted = "game_started",
    /// A turn has begun; sent to all players.
    TurnStarted = "turn_started",
    /// A turn has begun; sent to the player whose turn it is.
    YourTurn = "your_turn",
    /// A turn passed without a move.
    TurnSkipped = "turn_skipped",
    /// A move waits for votes.
    MoveProposed = "move_proposed",
    /// A move was made, or accepted by vote.
    MoveMade = "move_made",
    /// A waiting move was rejected; the state does not include it.
    MoveRejected = "move_rejected",
    /// The game is over.
    GameOver = "game_over",
    /// The room's name, visibility, metadata or data changed.
    RoomUpdated = "room_updated",
    /// A player sent a message.
    Message = "message",
}

/// A push notification, made from a template of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Its number, in sequence with the notices.
    pub seq: u64,
    /// The recipients.
    pub to: Vec<PlayerId>,
    /// The occasion.
    pub on: PushOn,
    /// The title.
    pub title: String,
    /// The body text.
    pub body: String,
}

/// The occasion of a push notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushOn {
    /// It is the recipient's turn.
    TurnStart,
    /// The game is over.
    GameEnd,
}
