//! Turn rooms: rooms that the server runs, and that survive the departure of all players and a restart of the
//! server.
//!
//! A room is one document, [`TurnRoom`]. Only [`TurnRoom::apply`] changes it, one operation at a time, given
//! the actor, the operation and the time. It returns effects or a refusal; a refusal changes nothing. A
//! server loads the document, applies an operation to a copy, stores document and effects together, and only
//! then answers. If storing fails it drops the copy, and nothing has happened. Timers are due at
//! [`TurnRoom::next_deadline`], as one more operation.
//!
//! - [`Game`]: a game's file, written by the server's operator in Parlor's or RUN.game's format
//! - [`Config`]: a room's configuration; [`Criteria`]: matchmaking criteria
//! - [`Op`], [`Actor`], [`Context`]: an operation, its caller and its environment
//! - [`Effect`], [`Refusal`]: the result of an operation
//! - [`Rules`], [`RuleSets`]: games whose moves the server judges, such as [`draughts`] and
//!   [`rock_paper_scissors`]
//! - `seats.rs`: joining and leaving; `play.rs`: the course of a game; `moves.rs`: moves and the peers' votes

mod checks;
mod clients;
mod config;
mod criteria;
pub mod draughts;
mod effect;
mod game;
mod ids;
mod json;
pub mod limits;
mod moves;
mod notify;
mod op;
mod pause;
mod play;
mod refusal;
mod resign;
pub mod rock_paper_scissors;
mod rules;
mod seats;
mod spelling;
mod view;
mod written;

pub use checks::{Check, Checks};
pub use clients::ClientsMay;
pub use config::{
    Config, Limits, MoveType, Moves, Notifications, OnTimeout, Players, Quorum, RoleAssignment, Template,
    Visibility,
};
pub use criteria::{Criteria, Listed};
pub use effect::{Effect, Notice, NoticeKind, Push, PushOn, Said, Topic};
pub use game::{Game, Mode};
pub use ids::{BadId, PlayerId, ProposalId, RoomId, UnixMillis};
pub use op::{
    Actor, ConfiguredBy, Context, Create, End, Join, Kick, NewRoom, Op, Propose, Say, Start, Update, Validate,
};
pub use refusal::{Code, Refusal};
pub use rules::{Attempt, Award, Ended, Made, Next, Opening, Outcome, RuleSets, Rules, Secrets};
pub use view::{ProposalView, RoomView, Summary};
pub use written::Written;

use notify::Work;
use parlor_proto::RoomCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A whole turn room. Serializing it with `serde` and back yields an equal room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRoom {
    id: RoomId,
    #[serde(with = "code_as_text")]
    code: RoomCode,
    name: String,
    config: Written<Config>,
    /// Default: the creator's, as in rooms that older servers stored.
    #[serde(default)]
    configured_by: ConfiguredBy,
    visibility: Visibility,
    max_players: u16,
    created_by: PlayerId,
    created: UnixMillis,
    updated: UnixMillis,
    version: u64,
    phase: Phase,
    host: Option<PlayerId>,
    /// Beside the host.
    #[serde(default)]
    admins: Vec<PlayerId>,
    /// Since when the room is paused.
    #[serde(default)]
    paused: Option<UnixMillis>,
    /// In order of joining.
    players: Vec<Player>,
    /// The last that were in the game at some time: they may read the room after all have left it.
    #[serde(default)]
    played: Vec<PlayerId>,
    /// Players that may not return. With [`limits::BARRED_MAX`] entries the room admits no more players.
    barred: BTreeMap<PlayerId, Barred>,
    turn: Turn,
    state: Value,
    state_version: u64,
    metadata: Value,
    data: Value,
    /// Moves that wait for votes, oldest first.
    open: Vec<Proposal>,
    /// The last decided moves, oldest first.
    decided: Vec<Written<Decided>>,
    proposals_given: u64,
    notices_given: u64,
    #[serde(default)]
    messages_given: u64,
    result: Option<GameResult>,
}

/// The phase of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Players are gathering.
    Waiting,
    /// The game is running.
    Playing,
    /// The game is over, or all players have left.
    Ended,
}

/// A player in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Player {
    /// The account.
    pub id: PlayerId,
    /// The display name.
    pub name: String,
    /// When the player joined.
    pub joined: UnixMillis,
    /// The player's role in the game.
    pub role: Option<String>,
    /// Whether the player is in the game.
    pub status: Status,
}

/// Whether a seated player takes part in the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In the game, or waiting for it.
    Active,
    /// The player resigned.
    Resigned,
    /// The player ran out of time.
    TimedOut,
}

/// Why a player may not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Barred {
    Kicked,
    OutOfGame,
}

/// The state of the turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    /// The players in the game; with turns, in turn order.
    order: Vec<PlayerId>,
    current: Option<PlayerId>,
    /// Number of finished turns.
    count: u64,
    deadline: Option<UnixMillis>,
    /// The rest of the turn's time while its move waits for votes.
    left_ms: Option<u64>,
    /// The maximum number of players that were in the game at once.
    most_players: usize,
    /// Consecutive turns that passed without a move.
    skipped: u32,
}

/// A move that waits for the peers' votes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Proposal {
    id: ProposalId,
    player: PlayerId,
    kind: String,
    data: Value,
    patch: Option<Value>,
    /// The state version that it was made for, if given.
    made_for: Option<u64>,
    proposed: UnixMillis,
    deadline: UnixMillis,
    /// The peers and their votes.
    votes: BTreeMap<PlayerId, Option<bool>>,
}

/// The outcome of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// The move.
    pub id: ProposalId,
    /// Its player.
    pub player: PlayerId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The results of its checks.
    pub checks: Checks,
    /// Why it was rejected; `None` if it stands.
    pub why: Option<String>,
}

/// The result of a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GameResult {
    /// The winner, if there is one.
    pub winner: Option<PlayerId>,
    /// The reason.
    pub reason: String,
    /// The player whose move, resignation or request ended it.
    pub finisher: Option<PlayerId>,
    /// The time of the end.
    pub ended: UnixMillis,
}

impl TurnRoom {
    /// Creates a room. `config` is a result of [`Config::read`]. The game may start at once, hence the
    /// effects.
    ///
    /// # Errors
    /// `bad_input`, `too_large` or `too_deep` for the creator's request, with the field's path;
    /// `unknown_rules` if the server lost the rule set since the configuration was read.
    pub fn create(
        new: NewRoom,
        config: Config,
        with: &Context<'_>,
    ) -> Result<(TurnRoom, Vec<Effect>), Refusal> {
        let NewRoom { id, code, configured_by, creator, create } = new;
        create.check(&config)?;
        let mut room = TurnRoom {
            id,
            code,
            name: create.name_with(&config),
            configured_by,
            visibility: create.visibility.unwrap_or(config.visibility),
            max_players: create.max_players_with(&config),
            created_by: creator.clone(),
            created: with.now,
            updated: with.now,
            version: 1,
            phase: Phase::Waiting,
            host: Some(creator.clone()),
            admins: Vec::new(),
            paused: None,
            players: Vec::new(),
            played: Vec::new(),
            barred: BTreeMap::new(),
            turn: Turn::default(),
            state: config.state.clone(),
            state_version: 1,
            metadata: create.metadata_with(&config)?,
            data: Value::Object(serde_json::Map::new()),
            open: Vec::new(),
            decided: Vec::new(),
            proposals_given: 0,
            notices_given: 0,
            messages_given: 0,
            result: None,
            config: Written::new(config),
        };
        let mut work = Work::new(with, &Actor::Player(creator.clone()));
        room.join(creator, Join { name: create.player_name }, &mut work)?;
        Ok((room, work.effects))
    }

    /// Applies an operation of `actor`. Any change increments [`version`](TurnRoom::version); without one
    /// there are no effects and nothing needs to be stored.
    ///
    /// # Errors
    /// A [`Refusal`] with the reason. Nothing has changed then.
    pub fn apply(&mut self, actor: &Actor, op: Op, with: &Context<'_>) -> Result<Vec<Effect>, Refusal> {
        let mut changed = self.clone();
        let mut work = Work::new(with, actor);
        if changed.perform(actor, op, &mut work)? {
            changed.version = changed.version.saturating_add(1);
            // The timestamp never goes back, even if the clock does.
            changed.updated = changed.updated.max(with.now);
            *self = changed;
        }
        Ok(work.effects)
    }

    /// Performs an operation; returns whether anything changed.
    fn perform(&mut self, actor: &Actor, op: Op, work: &mut Work<'_>) -> Result<bool, Refusal> {
        let player = match (actor, op) {
            (Actor::Server, Op::Expire) => return Ok(self.expire(work)),
            (Actor::Server, Op::End(end)) => return self.end(None, end, work),
            (Actor::Server, Op::Kick(kick)) => return self.kick(None, kick, work),
            (Actor::Server, Op::Pause(pauses)) => return self.pause(None, pauses, work),
            (Actor::Server, _) => {
                let sentence = "the server itself sits in no room: do it as a player";
                return Err(Refusal::new(Code::NotInRoom, sentence));
            }
            (Actor::Player(player), op) => (player.clone(), op),
        };
        match player {
            (player, Op::Join(join)) => self.join(player, join, work),
            (_, Op::Expire) => {
                Err(Refusal::new(Code::ServerOnly, "timers are the server's: wait for it to act"))
            }
            (player, op) => {
                self.seat(&player)?;
                self.perform_seated(player, op, work)
            }
        }
    }

    fn perform_seated(&mut self, player: PlayerId, op: Op, work: &mut Work<'_>) -> Result<bool, Refusal> {
        match op {
            Op::Leave => self.leave(&player, work),
            Op::Kick(kick) => self.kick(Some(&player), kick, work),
            Op::Start(start) => self.start(&player, start, work),
            Op::Propose(propose) => self.propose(&player, propose, work),
            Op::Validate(validate) => self.validate(&player, validate, work),
            Op::Resign => self.resign(&player, work),
            Op::End(end) => self.end(Some(&player), end, work),
            Op::Pause(pauses) => self.pause(Some(&player), pauses, work),
            Op::Update(update) => self.update(&player, update, work),
            Op::Say(say) => self.say(&player, say, work),
            // Handled before the seat lookup.
            Op::Join(_) | Op::Expire => Ok(false),
        }
    }

    /// Returns the next timer. [`Op::Expire`] is to be applied then, or as soon after as the server can.
    /// A paused room has none.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        if self.paused.is_some() {
            return None;
        }
        self.open.iter().map(|proposal| proposal.deadline).chain(self.turn.deadline).min()
    }

    /// Whether matchmaking may pick this room: public, waiting or open to late players, with a free seat, not paused.
    pub fn is_joinable(&self) -> bool {
        let is_open = self.visibility == Visibility::Public && self.paused.is_none();
        is_open && self.has_free_seat() && self.takes_players()
    }

    /// Returns the number of changes of the document, from 1.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the number of changes of the state, from 1.
    pub fn state_version(&self) -> u64 {
        self.state_version
    }

    /// Returns the room's id.
    pub fn id(&self) -> &RoomId {
        &self.id
    }

    /// Returns the code that players type to join.
    pub fn code(&self) -> RoomCode {
        self.code
    }

    /// Returns its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns who wrote the configuration.
    pub fn configured_by(&self) -> ConfiguredBy {
        self.configured_by
    }

    /// Returns the phase of the game.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the host: the player that may start the game and kick players.
    pub fn host(&self) -> Option<&PlayerId> {
        self.host.as_ref()
    }

    /// Returns the players that may pause the room and change what is said about it: the host, and those that it named.
    pub fn admins(&self) -> impl Iterator<Item = &PlayerId> {
        self.host.iter().chain(&self.admins)
    }

    /// Returns the number of messages that players have sent.
    pub fn messages(&self) -> u64 {
        self.messages_given
    }

    /// Returns the players, in order of joining.
    pub fn players(&self) -> &[Player] {
        &self.players
    }

    /// Returns the player whose turn it is.
    pub fn current_player(&self) -> Option<&PlayerId> {
        self.turn.current.as_ref()
    }

    /// Returns the players in the game; with turns, in turn order.
    pub fn turn_order(&self) -> &[PlayerId] {
        &self.turn.order
    }

    /// Returns the confirmed state, secrets included.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// Returns the result of the game.
    pub fn result(&self) -> Option<&GameResult> {
        self.result.as_ref()
    }

    /// Returns the last decided moves, oldest first.
    pub fn decided(&self) -> &[Written<Decided>] {
        &self.decided
    }
}

/// Serializes a code as the text that players type.
mod code_as_text {
    use parlor_proto::RoomCode;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(code: &RoomCode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(code.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RoomCode, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
