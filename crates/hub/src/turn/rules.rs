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

/// The rules of a game. They see a whole state and give a whole state: nothing is kept between two calls, so that a game
/// goes on after a restart, on any server that has the same rules.
///
/// A state is what [`open`](Rules::open) or [`check`](Rules::check) gave, read back from the store. All who may read the room
/// read all of it, unless the rules have [`secrets`](Rules::secrets).
pub trait Rules: Send + Sync {
    /// What a configuration calls them by: lower-case letters, digits, `.`, `_`, `-`.
    fn name(&self) -> &'static str;

    /// How many play.
    fn players(&self) -> RangeInclusive<u16>;

    /// What players are called, in the order of their turns.
    fn roles(&self) -> &'static [&'static str] {
        &[]
    }

    /// The state that a game begins with, and whose turn is first. `players` are in the order of their turns.
    ///
    /// # Errors
    /// A refusal if these cannot play.
    fn open(&self, players: &[PlayerId], seed: [u8; 32]) -> Result<Opening, Refusal>;

    /// What a move comes to.
    ///
    /// # Errors
    /// A refusal, best with the code `illegal_move`, that tells the player what it may do instead.
    fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal>;

    /// How the game goes on without a player who resigned, left, was kicked or ran out of time, where more than one is
    /// left. `None` says that it cannot: then it ends without a winner. With one left the room ends the game itself.
    fn without(&self, state: &Value, gone: &PlayerId, left: &[PlayerId]) -> Option<Outcome> {
        let _ = (state, gone, left);
        None
    }

    /// What players may not see of a game, if there is anything.
    fn secrets(&self) -> Option<&dyn Secrets> {
        None
    }
}

/// What each player sees of a game in which not all see all. Whoever runs the server, and the game's own service, see everything.
///
/// Public are in any case: who sits in the room, whose turn it is, that a move was made and of which type, the state's number, and what the rules
/// say of the end.
pub trait Secrets: Send + Sync {
    /// The state as `reader` sees it; without one, as somebody sees it who does not play.
    fn seen<'a>(&self, state: &'a Value, reader: Option<&PlayerId>) -> Cow<'a, Value>;

    /// The data of a move that was made, as `reader`, who sits in the room, is told of it.
    fn told<'a>(&self, made: &Made<'a>, reader: &PlayerId) -> Cow<'a, Value>;
}

/// A move that was made.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// The state after it.
    pub state: &'a Value,
    /// Whose move it was.
    pub player: &'a PlayerId,
    /// Its type.
    pub kind: &'a str,
    /// What belongs to it.
    pub data: &'a Value,
}

/// How a game begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// The first state.
    pub state: Value,
    /// Whose turn is first.
    pub first: PlayerId,
}

/// A move that a player wants to make.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The state as it is.
    pub state: &'a Value,
    /// Who is left in the game, in the order of turns.
    pub players: &'a [PlayerId],
    /// Whose move it is.
    pub player: &'a PlayerId,
    /// The type of the move.
    pub kind: &'a str,
    /// What belongs to it.
    pub data: &'a Value,
    /// What dice are thrown with; different at each attempt.
    pub seed: [u8; 32],
}

/// What a move comes to.
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
    /// It is this player's turn; it may be the same one's again.
    Turn(PlayerId),
    /// The game is over.
    Over {
        /// Who won, if one did.
        winner: Option<PlayerId>,
        /// Why, in a word or a few.
        reason: String,
    },
}

/// The rule sets that a server has.
#[derive(Default)]
pub struct RuleSets {
    by_name: BTreeMap<&'static str, Box<dyn Rules>>,
}

impl RuleSets {
    /// None at all.
    #[must_use]
    pub fn none() -> RuleSets {
        RuleSets::default()
    }

    /// Those that come with Parlor.
    #[must_use]
    pub fn built_in() -> RuleSets {
        RuleSets::none().with(Box::new(Draughts)).with(Box::new(RockPaperScissors))
    }

    /// These and one more, in the place of one that has the same name.
    #[must_use]
    pub fn with(mut self, rules: Box<dyn Rules>) -> RuleSets {
        self.by_name.insert(rules.name(), rules);
        self
    }

    /// The rule set of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn Rules> {
        self.by_name.get(name).map(Box::as_ref)
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.by_name.keys().copied()
    }
}

impl fmt::Debug for RuleSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
