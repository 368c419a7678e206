//! Turn rooms: rooms that the server runs and that outlive everybody, the server's process included.
//!
//! A room is one document, [`TurnRoom`]. Nothing else changes it but [`TurnRoom::apply`], one operation at a time: who asks, what
//! for, and when. It gives the effects or a refusal, and a refusal has changed nothing. So a server loads the document, applies an
//! operation to a copy, stores document and effects together, and only then answers; if storing fails it drops the copy,
//! and nothing has happened. What is due by itself is due at [`TurnRoom::next_deadline`], as one more operation.
//!
//! - [`Config`]: what a room is set up to be; [`Criteria`]: what a room must be for whoever looks for one
//! - [`Op`], [`Actor`], [`Context`]: what is asked, by whom, and with what
//! - [`Effect`], [`Refusal`]: what comes of it
//! - [`Rules`], [`RuleSets`]: games whose moves the server judges, such as [`draughts`] and [`rock_paper_scissors`]
//! - `seats.rs`: who sits there; `play.rs`: the game's course; `moves.rs`: moves and the word of the peers

mod config;
mod criteria;
pub mod draughts;
mod effect;
mod ids;
mod json;
pub mod limits;
mod moves;
mod notify;
mod op;
mod play;
mod refusal;
pub mod rock_paper_scissors;
mod rules;
mod seats;
mod view;
mod written;

pub use config::{
    Config, Limits, MoveType, Moves, Notifications, OnTimeout, Players, Quorum, RoleAssignment, Template,
    Visibility,
};
pub use criteria::{Criteria, Listed};
pub use effect::{Effect, Notice, NoticeKind, Push, PushOn};
pub use ids::{BadId, PlayerId, ProposalId, RoomId, UnixMillis};
pub use op::{Actor, Context, Create, End, Join, Kick, NewRoom, Op, Propose, Say, Start, Update, Validate};
pub use refusal::{Code, Refusal};
pub use rules::{Attempt, Made, Next, Opening, Outcome, RuleSets, Rules, Secrets};
pub use view::{ProposalView, RoomView, Summary};
pub use written::Written;

use notify::Work;
use parlor_proto::RoomCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A turn room, whole. `serde` writes it and reads it back; both give an equal room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRoom {
    id: RoomId,
    #[serde(with = "code_as_text")]
    code: RoomCode,
    name: String,
    config: Written<Config>,
    visibility: Visibility,
    max_players: u16,
    created_by: PlayerId,
    created: UnixMillis,
    updated: UnixMillis,
    version: u64,
    phase: Phase,
    host: Option<PlayerId>,
    /// In the order of joining.
    players: Vec<Player>,
    /// Who does not come back. Only players get in here, and with [`limits::BARRED_MAX`] of both nobody joins.
    barred: BTreeMap<PlayerId, Barred>,
    turn: Turn,
    state: Value,
    state_version: u64,
    metadata: Value,
    data: Value,
    /// Moves that wait for the word of the peers, oldest first.
    open: Vec<Proposal>,
    /// The last that were decided, oldest first.
    decided: Vec<Written<Decided>>,
    proposals_given: u64,
    notices_given: u64,
    result: Option<GameResult>,
}

/// Where a game is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Players come together.
    Waiting,
    /// The game goes on.
    Playing,
    /// The game is over, or everybody has left.
    Ended,
}

/// Who sits in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Player {
    /// The account.
    pub id: PlayerId,
    /// What the others read.
    pub name: String,
    /// Since when.
    pub joined: UnixMillis,
    /// What the player plays.
    pub role: Option<String>,
    /// Whether the player is in the game.
    pub status: Status,
}

/// Whether somebody who sits in a room is in its game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In it, or waiting for it.
    Active,
    /// Gave up.
    Resigned,
    /// Ran out of time.
    TimedOut,
}

/// Why somebody does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Barred {
    Kicked,
    OutOfGame,
}

/// Whose turn it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    /// Who is in the game; with turns, in their order.
    order: Vec<PlayerId>,
    current: Option<PlayerId>,
    /// Turns that are over.
    count: u64,
    deadline: Option<UnixMillis>,
    /// What is left of the turn while its move waits for the peers.
    left_ms: Option<u64>,
    /// The most that were in the game at once.
    most_players: usize,
    /// Turns in a row that passed without a move.
    skipped: u32,
}

/// A move that waits for the word of the peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Proposal {
    id: ProposalId,
    player: PlayerId,
    kind: String,
    data: Value,
    patch: Option<Value>,
    /// The state that it was made for, if it said so.
    made_for: Option<u64>,
    proposed: UnixMillis,
    deadline: UnixMillis,
    /// The peers, and what each has said.
    votes: BTreeMap<PlayerId, Option<bool>>,
}

/// What became of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// Which.
    pub id: ProposalId,
    /// Whose.
    pub player: PlayerId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What was found.
    pub checks: Checks,
    /// Why it does not stand, where it does not.
    pub why: Option<String>,
}

/// What was found about a move. What a server check finds wrong is refused at once and stands nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// Phase, turn, type, fields, size.
    pub server: Check,
    /// The rule set.
    pub rules: Check,
    /// The peers.
    pub peers: Check,
}

/// What one check says of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// There is no such check in this room.
    NotApplicable,
    /// Not decided.
    Pending,
    /// It may stand.
    Valid,
    /// Peers said no.
    Disputed,
    /// Something else came first.
    Superseded,
}

/// How a game ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GameResult {
    /// Who won, if one did.
    pub winner: Option<PlayerId>,
    /// Why.
    pub reason: String,
    /// Whose move, resignation or word ended it.
    pub finisher: Option<PlayerId>,
    /// When.
    pub ended: UnixMillis,
}

impl TurnRoom {
    /// Opens a room. `config` is what [`Config::read`] gave. It may begin its game at once, hence the effects.
    ///
    /// # Errors
    /// `bad_input`, `too_large` or `too_deep` for what the creator asked, with the field's path; `unknown_rules` if the
    /// server lost the rule set since the configuration was read.
    pub fn create(
        new: NewRoom,
        config: Config,
        with: &Context<'_>,
    ) -> Result<(TurnRoom, Vec<Effect>), Refusal> {
        let NewRoom { id, code, creator, create } = new;
        create.check(&config)?;
        let mut room = TurnRoom {
            id,
            code,
            name: create.name_with(&config),
            visibility: create.visibility.unwrap_or(config.visibility),
            max_players: create.max_players_with(&config),
            created_by: creator.clone(),
            created: with.now,
            updated: with.now,
            version: 1,
            phase: Phase::Waiting,
            host: Some(creator.clone()),
            players: Vec::new(),
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
            result: None,
            config: Written::new(config),
        };
        let mut work = Work::new(with, &Actor::Player(creator.clone()));
        room.join(creator, Join { name: create.player_name }, &mut work)?;
        Ok((room, work.effects))
    }

    /// Does what `actor` asks. If anything changed, [`version`](TurnRoom::version) is one higher; if not, there are no effects
    /// and nothing needs to be stored.
    ///
    /// # Errors
    /// A [`Refusal`] that says why not. Nothing has changed then.
    pub fn apply(&mut self, actor: &Actor, op: Op, with: &Context<'_>) -> Result<Vec<Effect>, Refusal> {
        let mut changed = self.clone();
        let mut work = Work::new(with, actor);
        if changed.perform(actor, op, &mut work)? {
            changed.version = changed.version.saturating_add(1);
            // A clock that was set back does not make a room younger.
            changed.updated = changed.updated.max(with.now);
            *self = changed;
        }
        Ok(work.effects)
    }

    /// Says whether anything changed.
    fn perform(&mut self, actor: &Actor, op: Op, work: &mut Work<'_>) -> Result<bool, Refusal> {
        let player = match (actor, op) {
            (Actor::Server, Op::Expire) => return Ok(self.expire(work)),
            (Actor::Server, Op::End(end)) => return self.end(None, end, work),
            (Actor::Server, Op::Kick(kick)) => return self.kick(None, kick, work),
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
            Op::Update(update) => self.update(&player, update, work),
            Op::Say(say) => self.say(&player, say, work),
            // Handled before it came to who sits here.
            Op::Join(_) | Op::Expire => Ok(false),
        }
    }

    /// When something is due by itself: [`Op::Expire`] is to be applied then, or as soon after as the server can.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        self.open.iter().map(|proposal| proposal.deadline).chain(self.turn.deadline).min()
    }

    /// Whether a player who looks for a room of this game may be given this one: it is listed, waits or takes late
    /// players, and has a free seat.
    #[must_use]
    pub fn is_joinable(&self) -> bool {
        self.visibility == Visibility::Public && self.has_free_seat() && self.takes_players()
    }

    /// Counts the changes of the document, from 1.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Counts the changes of the state, from 1.
    #[must_use]
    pub fn state_version(&self) -> u64 {
        self.state_version
    }

    /// The room's id.
    #[must_use]
    pub fn id(&self) -> &RoomId {
        &self.id
    }

    /// What players type to join.
    #[must_use]
    pub fn code(&self) -> RoomCode {
        self.code
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where the game is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Who may start the game and turn players out.
    #[must_use]
    pub fn host(&self) -> Option<&PlayerId> {
        self.host.as_ref()
    }

    /// Who sits there, in the order of joining.
    #[must_use]
    pub fn players(&self) -> &[Player] {
        &self.players
    }

    /// Whose turn it is.
    #[must_use]
    pub fn current_player(&self) -> Option<&PlayerId> {
        self.turn.current.as_ref()
    }

    /// Who is in the game; with turns, in their order.
    #[must_use]
    pub fn turn_order(&self) -> &[PlayerId] {
        &self.turn.order
    }

    /// The state that stands, secrets included.
    #[must_use]
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// How the game ended.
    #[must_use]
    pub fn result(&self) -> Option<&GameResult> {
        self.result.as_ref()
    }

    /// The last moves that were decided, oldest first.
    #[must_use]
    pub fn decided(&self) -> &[Written<Decided>] {
        &self.decided
    }
}

/// A code as the text that players type.
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
