//! The readable data of a turn room.

use serde::Deserialize;
use serde_json::Value;

/// A turn room's data from its server. docs/turn-rooms.md documents each field.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoomView {
    /// Its id.
    pub id: String,
    /// The code to join by.
    #[serde(default)]
    pub code: Option<String>,
    /// Its name.
    pub name: String,
    /// Its game.
    pub game: String,
    /// The rule set that validates moves.
    #[serde(default)]
    pub rules: Option<String>,
    /// The phase of the game.
    pub phase: Phase,
    /// The number of the room's changes.
    pub version: u64,
    /// The host, which may start the game and kick players.
    #[serde(default)]
    pub host: Option<String>,
    /// The players, in the order of joining.
    pub players: Vec<RoomPlayer>,
    /// The number of seats.
    pub max_players: u16,
    /// The players in the game; with turns, in turn order.
    pub turn_order: Vec<String>,
    /// The player on turn.
    #[serde(default)]
    pub current_player: Option<String>,
    /// The number of completed turns.
    pub turn_count: u64,
    /// When the turn times out, in milliseconds since 1970.
    #[serde(default)]
    pub turn_deadline: Option<u64>,
    /// The accepted state.
    pub state: Value,
    /// The number of its changes.
    pub state_version: u64,
    /// The state as if all pending moves were accepted; `None` without pending moves.
    #[serde(default)]
    pub optimistic_state: Option<Value>,
    /// The room's metadata, set by the host.
    pub metadata: Value,
    /// Arbitrary values set by players.
    pub data: Value,
    /// The result of the game.
    #[serde(default)]
    pub result: Option<RoomResult>,
}

/// The phase of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Players are joining.
    Waiting,
    /// The game is running.
    Playing,
    /// The game is over.
    Ended,
}

/// A player in a room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RoomPlayer {
    /// The account.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The player's role.
    #[serde(default)]
    pub role: Option<String>,
    /// `active`, `resigned` or `timed_out`.
    pub status: String,
}

/// The result of a game.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RoomResult {
    /// The winner, if there is one.
    #[serde(default)]
    pub winner: Option<String>,
    /// Why.
    pub reason: String,
}

impl RoomView {
    /// Returns the player with this id.
    pub fn player(&self, id: &str) -> Option<&RoomPlayer> {
        self.players.iter().find(|player| player.id == id)
    }
}
