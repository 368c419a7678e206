//! The uniform error type of operations.

use super::checks::{Check, Checks};
use serde::Serialize;
use std::fmt;

/// Why an operation was refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The error code for programs.
    pub code: Code,
    /// What happened and what to do, for people.
    pub sentence: String,
    /// The path of the wrong field, such as `data.to` or `config.players.min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Of a refused move: the check that failed is invalid, those behind it are pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
}

impl Refusal {
    /// Creates a refusal that concerns no single field.
    pub fn new(code: Code, sentence: impl Into<String>) -> Refusal {
        Refusal { code, sentence: sentence.into(), path: None, checks: None }
    }

    /// Creates a refusal that concerns one field.
    pub fn at(code: Code, path: impl Into<String>, sentence: impl Into<String>) -> Refusal {
        Refusal { code, sentence: sentence.into(), path: Some(path.into()), checks: None }
    }
}

impl Refusal {
    /// Returns this refusal of a move that fails the server's own check.
    pub(super) fn by_server(self, checks: Checks) -> Refusal {
        Refusal { checks: Some(Checks { server: Check::Invalid, ..checks }), ..self }
    }

    /// Returns this refusal of a move that the rule set forbids.
    pub(super) fn by_rules(self, checks: Checks) -> Refusal {
        let checks = Checks { server: Check::Valid, rules: Check::Invalid, ..checks };
        Refusal { checks: Some(checks), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{path}: {} ({})", self.sentence, self.code.as_str()),
            None => write!(f, "{} ({})", self.sentence, self.code.as_str()),
        }
    }
}

impl std::error::Error for Refusal {}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// Error codes of refusals. Their texts are a stable API: `docs/turn-rooms.md` lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $name,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// Returns the code's name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)+
                }
            }
        }
    };
}

codes! {
    /// The configuration is invalid.
    BadConfig = "bad_config",
    /// A field is missing or unknown, or has a wrong type or an invalid value.
    BadInput = "bad_input",
    /// Something is larger than the room allows.
    TooLarge = "too_large",
    /// JSON is nested too deeply.
    TooDeep = "too_deep",
    /// Not possible in this phase of the game.
    WrongPhase = "wrong_phase",
    /// Only players in the room may do this.
    NotInRoom = "not_in_room",
    /// The room is paused.
    Paused = "paused",
    /// All seats are taken.
    RoomFull = "room_full",
    /// The game has begun and admits no more players.
    GameStarted = "game_started",
    /// A kicked player may not return.
    Kicked = "kicked",
    /// A player who resigned, left or ran out of time is out of this game.
    OutOfGame = "out_of_game",
    /// Only the host may do this.
    NotHost = "not_host",
    /// Only the server may do this.
    ServerOnly = "server_only",
    /// It is another player's turn.
    NotYourTurn = "not_your_turn",
    /// The configuration does not list this type of move for this phase.
    MoveNotAllowed = "move_not_allowed",
    /// A field that this type of move requires is missing.
    MissingField = "missing_field",
    /// The move was made for another version of the state.
    StaleState = "stale_state",
    /// The rules forbid the move.
    IllegalMove = "illegal_move",
    /// The rules of the room decide this, not the players.
    RulesDecide = "rules_decide",
    /// The operator of the game decides this, not the clients.
    OperatorDecides = "operator_decides",
    /// This server does not have the rule set that the room names.
    UnknownRules = "unknown_rules",
    /// The rule set returned an invalid result.
    RulesFault = "rules_fault",
    /// A move already waits for votes.
    ProposalOpen = "proposal_open",
    /// The maximum number of moves already wait for votes.
    TooManyProposals = "too_many_proposals",
    /// No open proposal has this number.
    NoSuchProposal = "no_such_proposal",
    /// Only players in the game at the time of the proposal vote, once each, and not on their own moves.
    NotYourVote = "not_your_vote",
    /// No player of the room has this id.
    NoSuchPlayer = "no_such_player",
    /// The turn order must list each player exactly once.
    BadTurnOrder = "bad_turn_order",
    /// There are fewer players than the game needs.
    TooFewPlayers = "too_few_players",
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
