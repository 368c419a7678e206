//! A room as it is read.

use serde::Deserialize;
use serde_json::Value;

/// A turn room, as its server says that it stands. docs/turn-rooms.md says what each field means.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoomView {
    /// Its id.
    pub id: String,
    /// What others type to join.
    #[serde(default)]
    pub code: Option<String>,
    /// Its name.
    pub name: String,
    /// Its game.
    pub game: String,
    /// The rule set that judges the moves.
    #[serde(default)]
    pub rules: Option<String>,
    /// Where the game is.
    pub phase: Phase,
    /// Counts the room's changes.
    pub version: u64,
    /// Who may start the game and turn players out.
    #[serde(default)]
    pub host: Option<String>,
    /// Who sits there, in the order of joining.
    pub players: Vec<RoomPlayer>,
    /// How many fit.
    pub max_players: u16,
    /// Who is in the game; with turns, in their order.
    pub turn_order: Vec<String>,
    /// Whose turn it is.
    #[serde(default)]
    pub current_player: Option<String>,
    /// Turns that are over.
    pub turn_count: u64,
    /// When the turn ends by itself, in milliseconds since 1970.
    #[serde(default)]
    pub turn_deadline: Option<u64>,
    /// The state that stands.
    pub state: Value,
    /// Counts its changes.
    pub state_version: u64,
    /// The state as if all moves that wait stood; none waits without it.
    #[serde(default)]
    pub optimistic_state: Option<Value>,
    /// What is said about the room.
    pub metadata: Value,
    /// Any values that players put there.
    pub data: Value,
    /// How the game ended.
    #[serde(default)]
    pub result: Option<RoomResult>,
}

/// Where a game is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Players come together.
    Waiting,
    /// The game goes on.
    Playing,
    /// It is over.
    Ended,
}

/// Who sits in a room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RoomPlayer {
    /// The account.
    pub id: String,
    /// What the others read.
    pub name: String,
    /// What the player plays.
    #[serde(default)]
    pub role: Option<String>,
    /// `active`, `resigned` or `timed_out`.
    pub status: String,
}

/// How a game ended.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RoomResult {
    /// Who won, if one did.
    #[serde(default)]
    pub winner: Option<String>,
    /// Why.
    pub reason: String,
}

impl RoomView {
    /// The player with this id.
    pub fn player(&self, id: &str) -> Option<&RoomPlayer> {
        self.players.iter().find(|player| player.id == id)
    }
}
