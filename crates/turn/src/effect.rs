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
    /// A message for the room's history. Its notice is a separate effect.
    Said(Said),
}

/// A notice of an event in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The number of the notice in its room, from 1, for ordering and deduplication.
    pub seq: u64,
    /// The recipients. Empty only where it is for subscribers alone.
    pub to: Vec<PlayerId>,
    /// Whether readers of the room that subscribed to it receive the notice, too.
    pub is_public: bool,
    /// The kind of event.
    pub kind: NoticeKind,
    /// The details, an object. `docs/turn-rooms.md` lists the fields of each kind.
    pub body: Value,
}

/// A message of a room, as its history keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// The number of the message in its room, from 1.
    pub number: u64,
    /// The player that sent it.
    pub player: PlayerId,
    /// The player's display name at that time.
    pub name: String,
    /// Its type, defined by the game.
    #[serde(rename = "type")]
    pub kind: String,
    /// The message.
    pub body: Value,
}

/// What a subscriber of a room is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Who is in the room, and what is said about it: its name, metadata and data.
    Data,
    /// Messages of players.
    Messages,
    /// The course of the game: its start, turns, moves and end.
    Game,
}

impl Topic {
    /// All of them.
    pub const ALL: [Topic; 3] = [Topic::Data, Topic::Messages, Topic::Game];
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal in $topic:ident,)+) => {
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

            /// Returns the topic that it belongs to.
            pub fn topic(self) -> Topic {
                match self {
                    $(NoticeKind::$name => Topic::$topic,)+
                }
            }
        }
    };
}

kinds! {
    /// A player joined.
    PlayerJoined = "player_joined" in Data,
    /// A player left.
    PlayerLeft = "player_left" in Data,
    /// A player was kicked.
    PlayerKicked = "player_kicked" in Data,
    /// A player is out of the game: resigned or ran out of time.
    PlayerForfeited = "player_forfeited" in Game,
    /// The host changed.
    HostChanged = "host_changed" in Data,
    /// The game has begun.
    GameStarted = "game_started" in Game,
    /// A turn has begun; sent to all players.
    TurnStarted = "turn_started" in Game,
    /// A turn has begun; sent to the player whose turn it is.
    YourTurn = "your_turn" in Game,
    /// A turn passed without a move.
    TurnSkipped = "turn_skipped" in Game,
    /// A move waits for votes.
    MoveProposed = "move_proposed" in Game,
    /// A move was made, or accepted by vote.
    MoveMade = "move_made" in Game,
    /// A waiting move was rejected; the state does not include it.
    MoveRejected = "move_rejected" in Game,
    /// The game is over.
    GameOver = "game_over" in Game,
    /// The room is paused.
    RoomPaused = "room_paused" in Game,
    /// The room is no longer paused.
    RoomResumed = "room_resumed" in Game,
    /// The room's name, visibility, admins, metadata or data changed.
    RoomUpdated = "room_updated" in Data,
    /// A player sent a message.
    Message = "message" in Messages,
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
