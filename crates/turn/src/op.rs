//! Operations on a room and their callers.

use super::clients::allow;
use super::config::{Config, Visibility};
use super::ids::{PlayerId, ProposalId, RoomId, UnixMillis};
use super::json;
use super::limits::{DATA_BYTES_MAX, NAME_CHARS_MAX};
use super::refusal::{Code, Refusal};
use super::rules::RuleSets;
use parlor_proto::RoomCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The caller of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// An account that the server has authenticated.
    Player(PlayerId),
    /// The server: a due timer, or its operator.
    Server,
}

/// The environment of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time of day.
    pub now: UnixMillis,
    /// A fresh, unpredictable seed for each operation: turn orders, roles and dice come from it.
    pub seed: [u8; 32],
    /// The server's rule sets.
    pub rules: &'a RuleSets,
}

/// The server's parameters of a new room.
#[derive(Clone, Debug)]
pub struct NewRoom {
    /// The room's id; must be new.
    pub id: RoomId,
    /// The code that players type to join; must be free.
    pub code: RoomCode,
    /// Who wrote its configuration.
    pub configured_by: ConfiguredBy,
    /// The creator, who becomes the host.
    pub creator: PlayerId,
    /// The creator's request.
    pub create: Create,
}

/// Who wrote a room's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfiguredBy {
    /// The creator; untrusted by the other players.
    #[default]
    Creator,
    /// The operator.
    Operator,
}

/// The creator's request, which overrides the configuration.
#[derive(Clone, Debug, Default)]
pub struct Create {
    /// The creator's display name. Default: the account's id.
    pub player_name: Option<String>,
    /// The room's name. Default: the configuration's, else the game's.
    pub name: Option<String>,
    /// Whether it is listed.
    pub visibility: Option<Visibility>,
    /// Seats, within the configuration's minimum and maximum.
    pub max_players: Option<u16>,
    /// Merged into the configuration's metadata.
    pub metadata: Option<Value>,
    /// A chosen code for the room. Default: a drawn one.
    pub code: Option<RoomCode>,
}

impl Create {
    /// Checks whether the configuration allows this request.
    ///
    /// # Errors
    /// `bad_input`, `too_large`, `too_deep` or `operator_decides`, with the field's path.
    pub fn check(&self, config: &Config) -> Result<(), Refusal> {
        let (min, max) = (config.players_min(), config.players_max());
        if self.max_players.is_some_and(|seats| !(min..=max).contains(&seats)) {
            return Err(Refusal::at(Code::BadInput, "max_players", format!("must be {min} to {max}")));
        }
        for (path, text) in [("player_name", &self.player_name), ("name", &self.name)] {
            text.iter().try_for_each(|text| json::check_text(path, text, NAME_CHARS_MAX))?;
        }
        let metadata = self.metadata_with(config)?;
        let may = config.clients_may;
        allow("name", may.name, self.name.is_none() || self.name == config.name)?;
        allow("visibility", may.visibility, self.visibility.is_none_or(|asked| asked == config.visibility))?;
        let is_usual = self.max_players.is_none_or(|seats| seats == config.players_usual());
        allow("max_players", may.max_players, is_usual)?;
        allow("metadata", may.metadata, metadata == config.metadata)?;
        allow("code", may.code, self.code.is_none())
    }

    /// Returns the room's name.
    pub(super) fn name_with(&self, config: &Config) -> String {
        self.name.as_deref().or(config.name.as_deref()).unwrap_or(config.game()).to_owned()
    }

    /// Returns the room's number of seats.
    pub(super) fn max_players_with(&self, config: &Config) -> u16 {
        self.max_players.unwrap_or(config.players_usual())
    }

    /// Returns the room's metadata.
    ///
    /// # Errors
    /// `bad_input`, `too_large` or `too_deep`, with the field's path.
    pub fn metadata_with(&self, config: &Config) -> Result<Value, Refusal> {
        json::patched(&config.metadata, "metadata", self.metadata.clone(), DATA_BYTES_MAX)
    }
}

/// An operation on a room.
#[derive(Clone, Debug)]
pub enum Op {
    /// Take a seat. Changes nothing for a player who has one.
    Join(Join),
    /// Leave the room. In a game with turns the player forfeits.
    Leave,
    /// Remove a player for good: host only.
    Kick(Kick),
    /// Start the game: host only.
    Start(Start),
    /// Make a move.
    Propose(Propose),
    /// Accept or reject another player's move.
    Validate(Validate),
    /// Resign.
    Resign,
    /// End the game: for the host where no rules decide, and for the operator.
    End(End),
    /// Pause the room, or end its pause: for the host and its admins where no rules decide, and for the operator.
    Pause(bool),
    /// Change the room's name, visibility, admins, metadata or data.
    Update(Update),
    /// Send a message to all players.
    Say(Say),
    /// Run due timers: server only. Changes nothing if none is due.
    Expire,
}

/// See [`Op::Join`].
#[derive(Clone, Debug, Default)]
pub struct Join {
    /// The player's display name. Default: the account's id.
    pub name: Option<String>,
}

/// See [`Op::Kick`].
#[derive(Clone, Debug)]
pub struct Kick {
    /// The player to remove.
    pub player: PlayerId,
    /// The reason, sent to all players.
    pub reason: Option<String>,
}

/// See [`Op::Start`].
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// All players in turn order. Default: drawn.
    pub turn_order: Option<Vec<PlayerId>>,
    /// Roles by player, where the configuration says `assigned`. Others get the rest, in order of joining.
    pub roles: Option<BTreeMap<PlayerId, String>>,
}

/// See [`Op::Propose`].
#[derive(Clone, Debug)]
pub struct Propose {
    /// The type of the move.
    pub kind: String,
    /// Its data, an object with the fields that the configuration requires.
    pub data: Value,
    /// The state that the move was made for ([`state_version`](super::TurnRoom::state_version)). If given, a
    /// late or repeated move is refused.
    pub state_version: Option<u64>,
    /// The move's patch, merged into the state where no rules decide.
    pub state: Option<Value>,
}

/// See [`Op::Validate`].
#[derive(Clone, Debug)]
pub struct Validate {
    /// The move.
    pub proposal: ProposalId,
    /// Whether to accept it.
    pub accept: bool,
    /// The reason for a rejection, sent to all players.
    pub reason: Option<String>,
}

/// See [`Op::End`].
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The winner, if there is one.
    pub winner: Option<PlayerId>,
    /// The reason. Default: `ended`.
    pub reason: Option<String>,
}

/// See [`Op::Update`]. Omitted fields stay.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The room's name: the host's and its admins' to set.
    pub name: Option<String>,
    /// Whether it is listed: the same.
    pub visibility: Option<Visibility>,
    /// Merged into the room's metadata: the same.
    pub metadata: Option<Value>,
    /// Merged into the room's data: any player.
    pub data: Option<Value>,
    /// Whether metadata and data take the place of the old ones instead of being merged into them.
    pub replace: bool,
    /// The room's admins beside the host, who names them.
    pub admins: Option<Vec<PlayerId>>,
}

/// See [`Op::Say`].
#[derive(Clone, Debug)]
pub struct Say {
    /// The message's kind, defined by the game.
    pub kind: String,
    /// The message.
    pub body: Value,
}
