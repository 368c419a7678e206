//! Read access to a room.

use super::config::Visibility;
use super::ids::{PlayerId, ProposalId, RoomId, UnixMillis};
use super::limits::PLAYED_MAX;
use super::op::{Actor, ConfiguredBy};
use super::refusal::{Code, Refusal};
use super::rules::RuleSets;
use super::{Checks, Decided, GameResult, Phase, Player, Proposal, Status, TurnRoom, Written, json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A room as its reader sees it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoomView<'a> {
    /// The summary, as in room lists.
    #[serde(flatten)]
    pub summary: Summary<'a>,
    /// The code that players type to join; visible to members only.
    pub code: Option<&'a str>,
    /// The creator.
    pub created_by: &'a PlayerId,
    /// The host, who may start the game and kick players.
    pub host: Option<&'a PlayerId>,
    /// The players that may pause the room and change its name, visibility and metadata: the host first.
    pub admins: Vec<&'a PlayerId>,
    /// The players, in order of joining.
    pub players: &'a [Player],
    /// Free-form data set by players.
    #[schemars(with = "Map<String, Value>")]
    pub data: &'a Value,
    /// Whether players move in turns.
    pub turn_based: bool,
    /// The players in the game; with turns, in turn order.
    pub turn_order: &'a [PlayerId],
    /// Whose turn it is.
    pub current_player: Option<&'a PlayerId>,
    /// Number of finished turns.
    pub turn_count: u64,
    /// When the turn times out.
    pub turn_deadline: Option<UnixMillis>,
    /// The confirmed state, as far as the reader may see it.
    #[schemars(with = "Map<String, Value>")]
    pub state: Cow<'a, Value>,
    /// The number of changes of the state.
    pub state_version: u64,
    /// The state as if all waiting moves were accepted; `None` if none waits.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub optimistic_state: Option<Value>,
    /// The newest move, decided or not.
    pub last_proposal: Option<ProposalId>,
    /// Moves that wait for votes, oldest first.
    pub proposals: Vec<ProposalView<'a>>,
    /// The last decided moves, oldest first.
    pub decided: &'a [Written<Decided>],
    /// The result of the game.
    pub result: Option<&'a GameResult>,
}

/// A room's entry in a list of rooms.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary<'a> {
    /// The room's id.
    pub id: &'a RoomId,
    /// Its name.
    pub name: &'a str,
    /// Its game.
    pub game: &'a str,
    /// The rule set that judges the moves.
    pub rules: Option<&'a str>,
    /// Who wrote its configuration.
    pub configured_by: ConfiguredBy,
    /// Whether it is listed.
    pub visibility: Visibility,
    /// `active`, `paused`, or `archived` once all players have left.
    #[schemars(extend("enum" = ["active", "paused", "archived"]))]
    pub status: &'static str,
    /// The phase of the game.
    pub phase: Phase,
    /// The number of players.
    pub player_count: usize,
    /// The number of seats.
    pub max_players: u16,
    /// The room's metadata.
    #[schemars(with = "Map<String, Value>")]
    pub metadata: &'a Value,
    /// When it was created.
    pub created: UnixMillis,
    /// When it last changed.
    pub updated: UnixMillis,
    /// The number of changes of the document.
    pub version: u64,
}

/// A move that waits for votes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProposalView<'a> {
    /// Its id.
    pub id: ProposalId,
    /// Its player.
    pub player: &'a PlayerId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// Its data.
    pub data: &'a Value,
    /// Its patch of the state.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub state: Option<&'a Value>,
    /// When it was made.
    pub proposed: UnixMillis,
    /// When silence counts as consent.
    pub deadline: UnixMillis,
    /// Players that accepted it.
    pub accepted_by: Vec<&'a PlayerId>,
    /// Players that rejected it.
    pub rejected_by: Vec<&'a PlayerId>,
    /// Players that have not voted.
    pub waiting_for: Vec<&'a PlayerId>,
    /// The results of its checks.
    pub checks: Checks,
}

impl TurnRoom {
    /// Returns the room as `reader` may see it, if it [may](Self::may_read). The rules filter a state with
    /// secrets for players; the server sees all.
    ///
    /// # Errors
    /// `not_in_room` for others.
    pub fn view(&self, reader: &Actor, rules: &RuleSets) -> Result<RoomView<'_>, Refusal> {
        self.check_reader(reader)?;
        let is_member = match reader {
            Actor::Server => true,
            Actor::Player(player) => self.player(player).is_some(),
        };
        let last_proposal = (self.proposals_given > 0).then_some(ProposalId(self.proposals_given));
        Ok(RoomView {
            summary: self.summary(),
            code: is_member.then_some(self.code.as_str()),
            created_by: &self.created_by,
            host: self.host.as_ref(),
            admins: self.admins().collect(),
            players: &self.players,
            data: &self.data,
            turn_based: self.config.is_turn_based(),
            turn_order: &self.turn.order,
            current_player: self.turn.current.as_ref(),
            turn_count: self.turn.count,
            turn_deadline: self.shown_deadline(),
            state: self.seen_state(reader, rules),
            state_version: self.state_version,
            optimistic_state: (!self.open.is_empty()).then(|| self.optimistic_state()),
            last_proposal,
            proposals: self.open.iter().map(Proposal::view).collect(),
            decided: &self.decided,
            result: self.result.as_ref(),
        })
    }

    /// Whether `reader` may read the room: its players and the server; where the configuration admits spectators, any
    /// account that was not kicked; and once all players have left, those who played and were not kicked.
    pub fn may_read(&self, reader: &Actor) -> bool {
        match reader {
            Actor::Server => true,
            Actor::Player(player) if self.player(player).is_some() => true,
            Actor::Player(player) if self.was_kicked(player) => false,
            Actor::Player(player) => {
                self.config.spectators || (self.players.is_empty() && self.played.contains(player))
            }
        }
    }

    /// Refuses who may not read the room.
    ///
    /// # Errors
    /// `not_in_room`.
    pub fn check_reader(&self, reader: &Actor) -> Result<(), Refusal> {
        if self.may_read(reader) {
            return Ok(());
        }
        Err(Refusal::new(Code::NotInRoom, "only its players read this room: join it first"))
    }

    /// Remembers that a player was in the game.
    pub(super) fn has_played(&mut self, player: &PlayerId) {
        if self.played.contains(player) {
            return;
        }
        if self.played.len() >= PLAYED_MAX {
            self.played.remove(0);
        }
        self.played.push(player.clone());
    }

    /// Returns its entry for room lists.
    pub fn summary(&self) -> Summary<'_> {
        Summary {
            id: &self.id,
            name: &self.name,
            game: self.config.game(),
            rules: self.config.rules.as_deref(),
            configured_by: self.configured_by,
            visibility: self.visibility,
            status: if self.players.is_empty() {
                "archived"
            } else if self.paused.is_some() {
                "paused"
            } else {
                "active"
            },
            phase: self.phase,
            player_count: self.players.len(),
            max_players: self.max_players,
            metadata: &self.metadata,
            created: self.created,
            updated: self.updated,
            version: self.version,
        }
    }

    /// Returns the state as `reader` may see it.
    fn seen_state(&self, reader: &Actor, rules: &RuleSets) -> Cow<'_, Value> {
        let Actor::Player(player) = reader else { return Cow::Borrowed(&self.state) };
        match self.rules(rules) {
            // Without the rules the secrets are unknown, so nothing is shown.
            Err(_) => Cow::Owned(Value::Object(Map::new())),
            Ok(rules) => match rules.and_then(|rules| rules.secrets()) {
                Some(secrets) if self.phase != Phase::Waiting => {
                    secrets.seen(&self.state, Some(player).filter(|player| self.player(player).is_some()))
                }
                _ => Cow::Borrowed(&self.state),
            },
        }
    }

    /// Returns the state as if all waiting moves were accepted.
    pub(super) fn optimistic_state(&self) -> Value {
        let mut state = self.state.clone();
        for patch in self.open.iter().filter_map(|proposal| proposal.patch.as_ref()) {
            json::merge(&mut state, patch);
        }
        state
    }

    /// Whether a player is in the game.
    pub(super) fn is_in_game(&self, player: &PlayerId) -> bool {
        self.player(player).is_some_and(|player| player.status == Status::Active)
            && self.turn.order.contains(player)
    }
}

impl Proposal {
    fn view(&self) -> ProposalView<'_> {
        let who = |vote: Option<bool>| {
            self.votes.iter().filter(|(_, said)| **said == vote).map(|(player, _)| player).collect()
        };
        ProposalView {
            id: self.id,
            player: &self.player,
            kind: &self.kind,
            data: &self.data,
            state: self.patch.as_ref(),
            proposed: self.proposed,
            deadline: self.deadline,
            accepted_by: who(Some(true)),
            rejected_by: who(Some(false)),
            waiting_for: who(None),
            checks: Checks::PENDING,
        }
    }
}
