//! Rule sets: games whose moves the server judges itself.

use super::draughts::Draughts;
use super::ids::PlayerId;
use super::refusal::Refusal;
use super::rock_paper_scissors::RockPaperScissors;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The rules of a game. They take a whole state and return a whole state and keep nothing between calls. A
/// game therefore continues after a restart, on any server that has the same rules.
///
/// A state is a result of [`open`](Rules::open) or [`check`](Rules::check), read back from the store. Every
/// reader of the room sees all of it, unless the rules have [`secrets`](Rules::secrets).
pub trait Rules: Send + Sync {
    /// The name for configurations: lower-case letters, digits, `.`, `_`, `-`.
    fn name(&self) -> &'static str;

    /// Returns the allowed numbers of players.
    fn players(&self) -> RangeInclusive<u16>;

    /// Returns the players' roles, in turn order.
    fn roles(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the initial state and the first player. `players` are in turn order.
    ///
    /// # Errors
    /// A refusal if these players cannot play.
    fn open(&self, players: &[PlayerId], seed: [u8; 32]) -> Result<Opening, Refusal>;

    /// Judges a move.
    ///
    /// # Errors
    /// A refusal, preferably with the code `illegal_move`, that tells the player what is legal instead.
    fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal>;

    /// Continues the game without a player who resigned, left, was kicked or ran out of time. `None` ends it
    /// without a winner. Not called with one player left: the room then ends the game.
    fn without(&self, state: &Value, gone: &PlayerId, left: &[PlayerId]) -> Option<Outcome> {
        let _ = (state, gone, left);
        None
    }

    /// Returns the scores that a game gives its players at its end, however it ended. The server submits them to boards
    /// whose `writers` are `rules`, with the move that ends the game or not at all. Default: none.
    fn awards(&self, ended: &Ended<'_>) -> Vec<Award> {
        let _ = ended;
        Vec::new()
    }

    /// Returns the filter for hidden information, if the game has any.
    fn secrets(&self) -> Option<&dyn Secrets> {
        None
    }
}

/// Filters what each player sees of a game with hidden information. The operator and the game's own service
/// see all.
///
/// Always public: the players, whose turn it is, that a move was made and its type, the state's version, and
/// the result given by the rules.
pub trait Secrets: Send + Sync {
    /// Returns the state as `reader` sees it; `None` is a reader who does not play.
    fn seen<'a>(&self, state: &'a Value, reader: Option<&PlayerId>) -> Cow<'a, Value>;

    /// Returns the data of a move as sent to `reader`; `None` is a reader who does not play.
    fn told<'a>(&self, made: &Made<'a>, reader: Option<&PlayerId>) -> Cow<'a, Value>;
}

/// A move that was made.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// The state after it.
    pub state: &'a Value,
    /// Its player.
    pub player: &'a PlayerId,
    /// Its type.
    pub kind: &'a str,
    /// Its data.
    pub data: &'a Value,
}

/// The start of a game.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// The first state.
    pub state: Value,
    /// The first player.
    pub first: PlayerId,
}

/// A move to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The state before it.
    pub state: &'a Value,
    /// The players left in the game, in turn order.
    pub players: &'a [PlayerId],
    /// Its player.
    pub player: &'a PlayerId,
    /// The type of the move.
    pub kind: &'a str,
    /// Its data.
    pub data: &'a Value,
    /// The seed for dice; different at each attempt.
    pub seed: [u8; 32],
}

/// The result of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The state after it.
    pub state: Value,
    /// How it goes on.
    pub next: Next,
}

/// How a game goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is this player's turn, possibly again.
    Turn(PlayerId),
    /// The game is over.
    Over {
        /// The winner, if there is one.
        winner: Option<PlayerId>,
        /// Why, in one or a few words.
        reason: String,
    },
}

/// A game that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Its last state.
    pub state: &'a Value,
    /// The players in the room, also those who are out of the game.
    pub players: &'a [PlayerId],
    /// The winner, if there is one.
    pub winner: Option<&'a PlayerId>,
    /// Why it ended, in one or a few words.
    pub reason: &'a str,
}

/// A score that a game gives a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Award {
    /// Who gets it: a player in the room. Others get nothing.
    pub player: PlayerId,
    /// The board, which an operator defines. Where there is none with this name, the award is dropped.
    pub board: String,
    /// The score; on a board of sums, what is added.
    pub score: i64,
    /// The sub-score, which decides between equal scores.
    pub sub: i64,
}

/// The server's rule sets. Clones share them.
#[derive(Clone, Default)]
pub struct RuleSets {
    by_name: BTreeMap<&'static str, Arc<dyn Rules>>,
}

impl RuleSets {
    /// Returns an empty set.
    pub fn none() -> RuleSets {
        RuleSets::default()
    }

    /// Returns the rule sets that come with Parlor.
    pub fn built_in() -> RuleSets {
        RuleSets::none().with(Box::new(Draughts)).with(Box::new(RockPaperScissors))
    }

    /// Adds a rule set; replaces one of the same name.
    pub fn with(mut self, rules: Box<dyn Rules>) -> RuleSets {
        self.by_name.insert(rules.name(), Arc::from(rules));
        self
    }

    /// Returns the rule set of this name.
    pub fn get(&self, name: &str) -> Option<&dyn Rules> {
        self.by_name.get(name).map(Arc::as_ref)
    }

    /// Returns the names of all rule sets.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.by_name.keys().copied()
    }
}

impl PartialEq for RuleSets {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl Eq for RuleSets {}

impl fmt::Debug for RuleSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
