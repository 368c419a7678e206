//! What a room can be asked to do, and by whom.

use super::config::{Config, Visibility};
use super::ids::{PlayerId, ProposalId, RoomId, UnixMillis};
use super::json;
use super::limits::{DATA_BYTES_MAX, NAME_CHARS_MAX};
use super::refusal::{Code, Refusal};
use super::rules::RuleSets;
use parlor_proto::RoomCode;
use serde_json::Value;
use std::collections::BTreeMap;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// An account, which the server has made sure of.
    Player(PlayerId),
    /// The server: a timer that is due, or its operator.
    Server,
}

/// What an operation is done with, beside what it says itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time of day.
    pub now: UnixMillis,
    /// Fresh for each operation, and not to be guessed: orders of turns, roles and dice come from it.
    pub seed: [u8; 32],
    /// The rule sets that the server has.
    pub rules: &'a RuleSets,
}

/// What the server gives to a room that it creates.
#[derive(Clone, Debug)]
pub struct NewRoom {
    /// The room's id, never given before.
    pub id: RoomId,
    /// What players type to join, free at this moment.
    pub code: RoomCode,
    /// Who creates it: the host.
    pub creator: PlayerId,
    /// What the creator asked for.
    pub create: Create,
}

/// What the creator of a room asks for, over what the configuration says.
#[derive(Clone, Debug, Default)]
pub struct Create {
    /// The creator's name, as the others read it; the account's id without it.
    pub player_name: Option<String>,
    /// The room's name; the game's without it.
    pub name: Option<String>,
    /// Whether it is listed.
    pub visibility: Option<Visibility>,
    /// Seats, between the configuration's least and most.
    pub max_players: Option<u16>,
    /// Merged into the configuration's.
    pub metadata: Option<Value>,
}

impl Create {
    /// Whether a room can be opened like this.
    ///
    /// # Errors
    /// `bad_input`, `too_large` or `too_deep`, with the field's path.
    pub fn check(&self, config: &Config) -> Result<(), Refusal> {
        let (min, max) = (config.players_min(), config.players_max());
        if self.max_players.is_some_and(|seats| !(min..=max).contains(&seats)) {
            return Err(Refusal::at(Code::BadInput, "max_players", format!("must be {min} to {max}")));
        }
        for (path, text) in [("player_name", &self.player_name), ("name", &self.name)] {
            text.iter().try_for_each(|text| json::check_text(path, text, NAME_CHARS_MAX))?;
        }
        self.metadata_with(config).map(|_| ())
    }

    /// What the room is called.
    pub(super) fn name_with(&self, config: &Config) -> String {
        self.name.as_deref().or(config.name.as_deref()).unwrap_or(config.game()).to_owned()
    }

    /// How many fit.
    pub(super) fn max_players_with(&self, config: &Config) -> u16 {
        self.max_players.unwrap_or(config.players_max())
    }

    /// What is said about the room.
    pub(super) fn metadata_with(&self, config: &Config) -> Result<Value, Refusal> {
        json::patched(&config.metadata, "metadata", self.metadata.clone(), DATA_BYTES_MAX)
    }
}

/// An operation on a room.
#[derive(Clone, Debug)]
pub enum Op {
    /// Sit down. Who sits already stays, and nothing changes.
    Join(Join),
    /// Get up. In a game with turns that is the end of the game for who leaves.
    Leave,
    /// Turn a player out for good: the host's.
    Kick(Kick),
    /// Begin the game: the host's.
    Start(Start),
    /// Make a move.
    Propose(Propose),
    /// Say whether another's move is right.
    Validate(Validate),
    /// Give up.
    Resign,
    /// End the game: the host's where no rules decide, and the operator's.
    End(End),
    /// Change what is said about the room.
    Update(Update),
    /// Say something to all.
    Say(Say),
    /// Do what is due: the server's. Nothing changes if nothing is due.
    Expire,
}

/// See [`Op::Join`].
#[derive(Clone, Debug, Default)]
pub struct Join {
    /// The player's name, as the others read it; the account's id without it.
    pub name: Option<String>,
}

/// See [`Op::Kick`].
#[derive(Clone, Debug)]
pub struct Kick {
    /// Whom.
    pub player: PlayerId,
    /// Why; all are told.
    pub reason: Option<String>,
}

/// See [`Op::Start`].
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// All players in the order of their turns; drawn without it.
    pub turn_order: Option<Vec<PlayerId>>,
    /// Who plays what, where the configuration says `assigned`; who is not named gets what is left, in order of joining.
    pub roles: Option<BTreeMap<PlayerId, String>>,
}

/// See [`Op::Propose`].
#[derive(Clone, Debug)]
pub struct Propose {
    /// The type of the move.
    pub kind: String,
    /// What belongs to it; the fields that the configuration requires are looked up here.
    pub data: Value,
    /// The state that the move was made for ([`state_version`](super::TurnRoom::state_version)): with it, a move that
    /// comes too late or twice is refused.
    pub state_version: Option<u64>,
    /// What the move changes of the state, where no rules decide: merged into it.
    pub state: Option<Value>,
}

/// See [`Op::Validate`].
#[derive(Clone, Debug)]
pub struct Validate {
    /// Which move.
    pub proposal: ProposalId,
    /// Whether it is right.
    pub accept: bool,
    /// Why not; all are told.
    pub reason: Option<String>,
}

/// See [`Op::End`].
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Who won, if one did.
    pub winner: Option<PlayerId>,
    /// Why; `ended` without it.
    pub reason: Option<String>,
}

/// See [`Op::Update`]. What is left out stays.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The room's name: the host's.
    pub name: Option<String>,
    /// Whether it is listed: the host's.
    pub visibility: Option<Visibility>,
    /// Merged into the room's metadata: the host's.
    pub metadata: Option<Value>,
    /// Merged into the room's data: any player's.
    pub data: Option<Value>,
}

/// See [`Op::Say`].
#[derive(Clone, Debug)]
pub struct Say {
    /// What kind of message it is.
    pub kind: String,
    /// The message.
    pub body: Value,
}
