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
    /// Whether it is in use.
    #[serde(default)]
    pub status: RoomStatus,
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
    /// The players that may pause the room and change its name, visibility and metadata: the host first.
    #[serde(default)]
    pub admins: Vec<String>,
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
    /// Moves that wait for votes, oldest first.
    #[serde(default)]
    pub proposals: Vec<ProposedMove>,
    /// The last decided moves, oldest first.
    #[serde(default)]
    pub decided: Vec<DecidedMove>,
    /// The room's metadata, set by the host.
    pub metadata: Value,
    /// Arbitrary values set by players.
    pub data: Value,
    /// The result of the game.
    #[serde(default)]
    pub result: Option<RoomResult>,
}

/// Whether a room is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomStatus {
    /// It is.
    #[default]
    Active,
    /// It stands still, and its clocks do, until it is resumed.
    Paused,
    /// All players have left. Those who played may still read it.
    Archived,
}

/// The result of one check of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The room has no such check.
    #[default]
    NotApplicable,
    /// Undecided.
    Pending,
    /// The move passed.
    Valid,
    /// The move failed.
    Invalid,
    /// The other players rejected it.
    Disputed,
    /// Another change came first.
    Superseded,
}

/// The results of a move's checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Checks {
    /// Phase, turn, type, fields and size.
    pub server: Check,
    /// The rule set.
    pub rules: Check,
    /// The votes of the other players.
    pub peers: Check,
}

/// A move that waits for votes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ProposedMove {
    /// Its number, for [`TurnRoom::validate`](super::TurnRoom::validate).
    pub id: u64,
    /// Its player.
    pub player: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its data.
    pub data: Value,
    /// Its checks.
    pub checks: Checks,
}

/// A decided move.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DecidedMove {
    /// Its number.
    pub id: u64,
    /// Its player.
    pub player: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its checks.
    pub checks: Checks,
    /// Why it was rejected; `None` if it stands.
    #[serde(default)]
    pub why: Option<String>,
}

/// A message of a room's history.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoomMessage {
    /// Its number in the room, from 1.
    pub number: u64,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: u64,
    /// The sender.
    pub player: String,
    /// The sender's display name at that time.
    pub name: String,
    /// The kind of message, defined by the game.
    #[serde(rename = "type")]
    pub kind: String,
    /// The message.
    pub body: Value,
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
