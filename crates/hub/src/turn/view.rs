//! What is read of a room.

use super::config::Visibility;
use super::ids::{PlayerId, ProposalId, RoomId, UnixMillis};
use super::op::Actor;
use super::refusal::{Code, Refusal};
use super::rules::RuleSets;
use super::{Checks, Decided, GameResult, Phase, Player, Proposal, Status, TurnRoom, Written, json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A room as who may read it reads it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoomView<'a> {
    /// What a list of rooms says, too.
    #[serde(flatten)]
    pub summary: Summary<'a>,
    /// What players type to join; only members read it.
    pub code: Option<&'a str>,
    /// Who created it.
    pub created_by: &'a PlayerId,
    /// Who may start the game and turn players out.
    pub host: Option<&'a PlayerId>,
    /// Who sits there, in the order of joining.
    pub players: &'a [Player],
    /// Any values that players put there.
    #[schemars(with = "Map<String, Value>")]
    pub data: &'a Value,
    /// Whether players move in turns.
    pub turn_based: bool,
    /// Who is in the game; with turns, in their order.
    pub turn_order: &'a [PlayerId],
    /// Whose turn it is.
    pub current_player: Option<&'a PlayerId>,
    /// Turns that are over.
    pub turn_count: u64,
    /// When the turn ends by itself.
    pub turn_deadline: Option<UnixMillis>,
    /// The state that stands, as far as the reader may see it.
    #[schemars(with = "Map<String, Value>")]
    pub state: Cow<'a, Value>,
    /// Counts its changes.
    pub state_version: u64,
    /// The state with all moves that wait, as if they stood; none waits without it.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub optimistic_state: Option<Value>,
    /// The newest move, decided or not.
    pub last_proposal: Option<ProposalId>,
    /// Moves that wait for the word of the peers, oldest first.
    pub proposals: Vec<ProposalView<'a>>,
    /// The last that were decided, oldest first.
    pub decided: &'a [Written<Decided>],
    /// How the game ended.
    pub result: Option<&'a GameResult>,
}

/// What a list of rooms says of one.
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
    /// Whether it is listed.
    pub visibility: Visibility,
    /// `active`, or `archived` once nobody sits there.
    #[schemars(extend("enum" = ["active", "archived"]))]
    pub status: &'static str,
    /// Where the game is.
    pub phase: Phase,
    /// How many sit there.
    pub player_count: usize,
    /// How many fit.
    pub max_players: u16,
    /// What is said about it.
    #[schemars(with = "Map<String, Value>")]
    pub metadata: &'a Value,
    /// When it was created.
    pub created: UnixMillis,
    /// When it last changed.
    pub updated: UnixMillis,
    /// Counts its changes.
    pub version: u64,
}

/// A move that waits.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProposalView<'a> {
    /// Which.
    pub id: ProposalId,
    /// Whose.
    pub player: &'a PlayerId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// What belongs to it.
    pub data: &'a Value,
    /// What it changes.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub state: Option<&'a Value>,
    /// When it was made.
    pub proposed: UnixMillis,
    /// When silence counts as consent.
    pub deadline: UnixMillis,
    /// Who has said yes.
    pub accepted_by: Vec<&'a PlayerId>,
    /// Who has said no.
    pub rejected_by: Vec<&'a PlayerId>,
    /// Who has said nothing.
    pub waiting_for: Vec<&'a PlayerId>,
    /// What was found.
    pub checks: Checks,
}

impl TurnRoom {
    /// The room as `reader` may read it: who sits there, the server, and, where the configuration lets spectators in,
    /// anybody else who was not kicked. Of a state with secrets players see what the rules show them, the server all.
    ///
    /// # Errors
    /// `not_in_room` for others.
    pub fn view(&self, reader: &Actor, rules: &RuleSets) -> Result<RoomView<'_>, Refusal> {
        let is_member = match reader {
            Actor::Server => true,
            Actor::Player(player) => self.player(player).is_some(),
        };
        let watches = match reader {
            Actor::Server => true,
            Actor::Player(player) => self.config.spectators && !self.was_kicked(player),
        };
        if !is_member && !watches {
            return Err(Refusal::new(Code::NotInRoom, "only its players read this room: join it first"));
        }
        let last_proposal = (self.proposals_given > 0).then_some(ProposalId(self.proposals_given));
        Ok(RoomView {
            summary: self.summary(),
            code: is_member.then_some(self.code.as_str()),
            created_by: &self.created_by,
            host: self.host.as_ref(),
            players: &self.players,
            data: &self.data,
            turn_based: self.config.is_turn_based(),
            turn_order: &self.turn.order,
            current_player: self.turn.current.as_ref(),
            turn_count: self.turn.count,
            turn_deadline: self.turn.deadline,
            state: self.seen_state(reader, rules),
            state_version: self.state_version,
            optimistic_state: (!self.open.is_empty()).then(|| self.optimistic_state()),
            last_proposal,
            proposals: self.open.iter().map(Proposal::view).collect(),
            decided: &self.decided,
            result: self.result.as_ref(),
        })
    }

    /// What a list of rooms says of it.
    #[must_use]
    pub fn summary(&self) -> Summary<'_> {
        Summary {
            id: &self.id,
            name: &self.name,
            game: self.config.game(),
            rules: self.config.rules.as_deref(),
            visibility: self.visibility,
            status: if self.players.is_empty() { "archived" } else { "active" },
            phase: self.phase,
            player_count: self.players.len(),
            max_players: self.max_players,
            metadata: &self.metadata,
            created: self.created,
            updated: self.updated,
            version: self.version,
        }
    }

    /// The state as `reader` may see it.
    fn seen_state(&self, reader: &Actor, rules: &RuleSets) -> Cow<'_, Value> {
        let Actor::Player(player) = reader else { return Cow::Borrowed(&self.state) };
        match self.rules(rules) {
            // The rules alone know what is a secret.
            Err(_) => Cow::Owned(Value::Object(Map::new())),
            Ok(rules) => match rules.and_then(|rules| rules.secrets()) {
                Some(secrets) if self.phase != Phase::Waiting => {
                    secrets.seen(&self.state, Some(player).filter(|player| self.player(player).is_some()))
                }
                _ => Cow::Borrowed(&self.state),
            },
        }
    }

    /// The state as if all moves that wait stood.
    pub(super) fn optimistic_state(&self) -> Value {
        let mut state = self.state.clone();
        for patch in self.open.iter().filter_map(|proposal| proposal.patch.as_ref()) {
            json::merge(&mut state, patch);
        }
        state
    }

    /// Who is in the game.
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
