//! Why something was not done: one shape everywhere.

use serde::Serialize;
use std::fmt;

/// What a room says when it does not do what it was asked for. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What programs branch on.
    pub code: Code,
    /// What happened and what to do, for a person.
    pub sentence: String,
    /// The field that is wrong, as `data.to` or `config.players.min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Refusal {
    /// A refusal that no single field is the cause of.
    pub fn new(code: Code, sentence: impl Into<String>) -> Refusal {
        Refusal { code, sentence: sentence.into(), path: None }
    }

    /// A refusal because of one field.
    pub fn at(code: Code, path: impl Into<String>, sentence: impl Into<String>) -> Refusal {
        Refusal { code, sentence: sentence.into(), path: Some(path.into()) }
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
        /// The codes of refusals. Their texts are a promise to programs: `docs/turn-rooms.md` lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $name,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// The code as programs read it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)+
                }
            }
        }
    };
}

codes! {
    /// The configuration says something that cannot be.
    BadConfig = "bad_config",
    /// A field has the wrong type, is missing or unknown, or holds what it may not.
    BadInput = "bad_input",
    /// Something is larger than the room allows.
    TooLarge = "too_large",
    /// JSON is nested too deeply.
    TooDeep = "too_deep",
    /// It cannot be done in this phase of the game.
    WrongPhase = "wrong_phase",
    /// Only who is in the room may.
    NotInRoom = "not_in_room",
    /// All seats are taken.
    RoomFull = "room_full",
    /// The game has begun and takes nobody in.
    GameStarted = "game_started",
    /// Who was kicked does not come back.
    Kicked = "kicked",
    /// Who resigned, left or ran out of time plays no further in this game.
    OutOfGame = "out_of_game",
    /// Only the host may.
    NotHost = "not_host",
    /// Only the server itself may.
    ServerOnly = "server_only",
    /// It is another player's turn.
    NotYourTurn = "not_your_turn",
    /// The configuration does not list this type of move for this phase.
    MoveNotAllowed = "move_not_allowed",
    /// A field that this type of move requires is missing.
    MissingField = "missing_field",
    /// The move was made for another state than the room has.
    StaleState = "stale_state",
    /// The rules forbid the move.
    IllegalMove = "illegal_move",
    /// The rules of the room decide that, and no player.
    RulesDecide = "rules_decide",
    /// This server does not have the rule set that the room names.
    UnknownRules = "unknown_rules",
    /// The rule set gave an answer that cannot be.
    RulesFault = "rules_fault",
    /// A move already waits for the word of the others.
    ProposalOpen = "proposal_open",
    /// As many moves wait as the room allows.
    TooManyProposals = "too_many_proposals",
    /// No open proposal has this number.
    NoSuchProposal = "no_such_proposal",
    /// Only the players who were in the game when the move was proposed judge it, each other's and once.
    NotYourVote = "not_your_vote",
    /// No player of the room has this id.
    NoSuchPlayer = "no_such_player",
    /// The order of turns is not made of the players, each once.
    BadTurnOrder = "bad_turn_order",
    /// There are fewer players than the game needs.
    TooFewPlayers = "too_few_players",
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
