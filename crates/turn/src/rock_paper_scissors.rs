//! Rock, paper, scissors: the smallest game with hidden information, and an example of a rule set with
//! secrets.
//!
//! In each round both players choose, one after the other; who chooses first alternates. The first choice
//! stays hidden until the second is made. The first player with [`WINS`] rounds wins the game.
//!
//! A choice has the type `choose` and the data `{"choice": "rock"}`.

use super::ids::PlayerId;
use super::refusal::{Code, Refusal};
use super::rules::{Attempt, Made, Next, Opening, Outcome, Rules, Secrets};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The rule set `rock-paper-scissors`.
#[derive(Clone, Copy, Debug)]
pub struct RockPaperScissors;

/// Rounds that win the game.
pub const WINS: u32 = 3;
/// Consecutive drawn rounds after which the game is a draw.
pub const DRAWS_MAX: u32 = 20;

/// A player's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Beats scissors.
    Rock,
    /// Beats rock.
    Paper,
    /// Beats paper.
    Scissors,
}

impl Choice {
    /// Whether this choice beats the other.
    pub fn beats(self, other: Choice) -> bool {
        matches!(
            (self, other),
            (Choice::Rock, Choice::Scissors)
                | (Choice::Paper, Choice::Rock)
                | (Choice::Scissors, Choice::Paper)
        )
    }
}

/// The stored state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Both players, in the turn order of the first round.
    players: [PlayerId; 2],
    /// Rounds that each has won.
    wins: [u32; 2],
    /// The number of the round, from 1.
    round: u32,
    /// Consecutive drawn rounds.
    draws: u32,
    /// The player that has already chosen in this round; `None` if neither has.
    has_chosen: Option<PlayerId>,
    /// That player's choice: the secret.
    choice: Option<Choice>,
    /// Both choices of the previous round, in the order of `players`.
    last: Option<[Choice; 2]>,
}

impl Rules for RockPaperScissors {
    fn name(&self) -> &'static str {
        "rock-paper-scissors"
    }

    fn players(&self) -> RangeInclusive<u16> {
        2..=2
    }

    fn open(&self, players: &[PlayerId], _: [u8; 32]) -> Result<Opening, Refusal> {
        let [first, second] = players else {
            return Err(Refusal::new(Code::TooFewPlayers, "this is a game for two players"));
        };
        let state = State {
            players: [first.clone(), second.clone()],
            wins: [0, 0],
            round: 1,
            draws: 0,
            has_chosen: None,
            choice: None,
            last: None,
        };
        Ok(Opening { state: json!(state), first: first.clone() })
    }

    fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal> {
        if attempt.kind != "choose" {
            return Err(Refusal::at(Code::IllegalMove, "type", "there is one type of move: use \"choose\""));
        }
        let data = attempt.data.as_object().filter(|data| data.len() == 1);
        let choice = data.and_then(|data| Choice::deserialize(data.get("choice")?).ok());
        let Some(choice) = choice else {
            let sentence = "must be {\"choice\": \"rock\"}, \"paper\" or \"scissors\", and nothing else";
            return Err(Refusal::at(Code::IllegalMove, "data", sentence));
        };
        let mut state = State::deserialize(attempt.state).map_err(|error| {
            Refusal::new(Code::RulesFault, format!("the stored state is damaged: {error}"))
        })?;
        let next = state.choose(attempt.player, choice);
        Ok(Outcome { state: json!(state), next })
    }

    fn secrets(&self) -> Option<&dyn Secrets> {
        Some(self)
    }
}

impl Secrets for RockPaperScissors {
    fn seen<'a>(&self, state: &'a Value, reader: Option<&PlayerId>) -> Cow<'a, Value> {
        if state["choice"].is_null() || is_by(state, reader) {
            return Cow::Borrowed(state);
        }
        let mut state = state.clone();
        state["choice"] = Value::Null;
        Cow::Owned(state)
    }

    fn told<'a>(&self, made: &Made<'a>, reader: Option<&PlayerId>) -> Cow<'a, Value> {
        // Once both have chosen, the state has both choices and no secret.
        if made.state["choice"].is_null() || is_by(made.state, reader) {
            return Cow::Borrowed(made.data);
        }
        Cow::Owned(json!({}))
    }
}

/// Whether the secret of a state belongs to this reader.
fn is_by(state: &Value, reader: Option<&PlayerId>) -> bool {
    reader.is_some_and(|reader| state["has_chosen"] == reader.as_str())
}

impl State {
    fn choose(&mut self, player: &PlayerId, choice: Choice) -> Next {
        let Some(first) = self.choice.take() else {
            self.has_chosen = Some(player.clone());
            self.choice = Some(choice);
            return Next::Turn(self.other(player));
        };
        self.has_chosen = None;
        let choices = if self.players[0] == *player { [choice, first] } else { [first, choice] };
        self.last = Some(choices);
        let won = [choices[0].beats(choices[1]), choices[1].beats(choices[0])];
        match won.iter().position(|won| *won) {
            None => {
                self.draws += 1;
                if self.draws == DRAWS_MAX {
                    return Next::Over { winner: None, reason: "too_many_draws".to_owned() };
                }
            }
            Some(winner) => {
                self.draws = 0;
                self.wins[winner] += 1;
                if self.wins[winner] == WINS {
                    let winner = Some(self.players[winner].clone());
                    return Next::Over { winner, reason: "three_rounds".to_owned() };
                }
            }
        }
        self.round += 1;
        // The second player of this round is first in the next.
        Next::Turn(player.clone())
    }

    fn other(&self, player: &PlayerId) -> PlayerId {
        let [first, second] = &self.players;
        if first == player { second.clone() } else { first.clone() }
    }
}
