//! A board as its operator defines it.

use crate::definition::BadDefinition;
use crate::entry::{Entry, Submission, Verdict};
use crate::limits::{NUMBER_MAX, SEASONS_MAX, TITLE_BYTES_MAX, TOLD_MAX};
use crate::ranks::Key;
use crate::season::{BadSchedule, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which scores are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BoardOrder")]
pub enum Order {
    /// Greater ones.
    #[default]
    Most,
    /// Smaller ones, such as times.
    Least,
}

/// What a submission does to an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BoardKeep")]
pub enum Keep {
    /// It replaces a worse one.
    #[default]
    Best,
    /// It replaces any.
    Last,
    /// It is added.
    Sum,
}

/// Who may submit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BoardWriters")]
pub enum Writers {
    /// Each player for itself. A changed game can submit any score that the board allows.
    Players,
    /// The game's own service, for any player; a player with a receipt of it.
    #[default]
    Server,
    /// The rules of turn rooms, when a game ends; the game's own service as well. For boards.
    Rules,
}

/// What an operator defines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "BoardDefinition")]
pub struct Board {
    /// A title to show.
    #[schemars(length(max = TITLE_BYTES_MAX))]
    pub title: String,
    /// Which scores are better.
    pub order: Order,
    /// What a submission does to an entry.
    pub keep: Keep,
    /// Who may submit.
    pub writers: Writers,
    /// Smallest score of one submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// Largest score of one submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// When a season begins: a cron expression of five fields. A board without it has one season for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// The offset of the schedule from UTC, in minutes.
    pub utc_offset_minutes: i32,
    /// Past seasons that can be read; older ones are deleted. Default: 4.
    #[schemars(range(max = SEASONS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seasons: Option<u32>,
    /// Of how many players, the best first, the webhook is told when a season ends. Default: 0, and nothing is told.
    #[schemars(range(max = TOLD_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell: Option<u32>,
    /// When the first submission is accepted, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens_ms: Option<u64>,
    /// From when on no submission is accepted, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes_ms: Option<u64>,
    /// Submissions of a player in a season.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Players of a season.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seats: Option<u64>,
}

/// Why a submission is refused. It changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The score is none that this board takes.
    #[error("a score of this board is {min} to {max}")]
    Score {
        /// The smallest one.
        min: i64,
        /// The largest one.
        max: i64,
    },
    /// The sub-score is none.
    #[error("a sub-score is -{NUMBER_MAX} to {NUMBER_MAX}")]
    Sub,
    /// The sum would be larger than a number can be.
    #[error("the sum would exceed {NUMBER_MAX}")]
    Sum,
    /// The player has used its attempts.
    #[error("all {0} attempts of this season are used")]
    Attempts(u32),
    /// It begins later.
    #[error("this board opens at {0} (milliseconds since 1970)")]
    NotOpen(u64),
    /// It is over.
    #[error("this board was closed at {0} (milliseconds since 1970)")]
    Closed(u64),
}

impl Board {
    /// Past seasons that are kept.
    const SEASONS: u32 = 4;

    /// A board to which any player may submit any number, for games in development.
    pub fn of_players() -> Self {
        Board { writers: Writers::Players, ..Board::default() }
    }

    /// Checks a definition, and gives its schedule.
    ///
    /// # Errors
    ///
    /// [`BadDefinition`] names the first wrong field.
    pub fn check(&self) -> Result<Option<Schedule>, BadDefinition> {
        BadDefinition::title(&self.title)?;
        for (field, number) in [("min", self.min), ("max", self.max)] {
            if number.is_some_and(|number| !is_number(number)) {
                return Err(BadDefinition::new(field, format!("a score is -{NUMBER_MAX} to {NUMBER_MAX}")));
            }
        }
        if self.min() > self.max() {
            return Err(BadDefinition::new("max", "it is smaller than `min`"));
        }
        if self.seasons() > SEASONS_MAX {
            return Err(BadDefinition::new("seasons", format!("{SEASONS_MAX} are the most")));
        }
        if self.tell > Some(TOLD_MAX) {
            return Err(BadDefinition::new("tell", format!("{TOLD_MAX} are the most")));
        }
        if self.tell.is_some_and(|tell| tell > 0) && self.reset.is_none() {
            return Err(BadDefinition::new("tell", "a board without `reset` has no season that ends"));
        }
        if let (Some(opens), Some(closes)) = (self.opens_ms, self.closes_ms)
            && closes <= opens
        {
            return Err(BadDefinition::new("closes_ms", "it must be after `opens_ms`"));
        }
        if self.attempts == Some(0) {
            return Err(BadDefinition::new("attempts", "at least 1, or leave it out"));
        }
        if self.seats == Some(0) {
            return Err(BadDefinition::new("seats", "at least 1, or leave it out"));
        }
        let schedule = self.reset.as_deref().map(|reset| Schedule::new(reset, self.utc_offset_minutes));
        schedule.transpose().map_err(|error| {
            let field = if error == BadSchedule::Offset { "utc_offset_minutes" } else { "reset" };
            BadDefinition::new(field, error.to_string())
        })
    }

    /// Past seasons that are kept.
    pub fn seasons(&self) -> u32 {
        self.seasons.unwrap_or(Self::SEASONS)
    }

    /// Whether the webhook is notified of the end of a season.
    pub fn tells(&self) -> bool {
        self.tell.is_some_and(|tell| tell > 0)
    }

    /// What a submission makes of an entry.
    ///
    /// # Errors
    ///
    /// [`Refused`]; then nothing changes.
    pub fn submit(&self, before: Option<&Entry>, submission: &Submission) -> Result<Verdict, Refused> {
        if let (Some(before), Some(id)) = (before, submission.id)
            && before.recent.contains(&id)
        {
            return Ok(Verdict { entry: before.clone(), improved: false, again: true, is_changed: false });
        }
        self.must_be_open(submission.at_ms)?;
        let (min, max) = (self.min(), self.max());
        if !(min..=max).contains(&submission.score) {
            return Err(Refused::Score { min, max });
        }
        if !is_number(submission.sub) {
            return Err(Refused::Sub);
        }
        if let (Some(before), Some(attempts)) = (before, self.attempts)
            && before.tries >= u64::from(attempts)
        {
            return Err(Refused::Attempts(attempts));
        }
        self.judge(before, submission)
    }

    fn must_be_open(&self, now_ms: u64) -> Result<(), Refused> {
        match (self.opens_ms, self.closes_ms) {
            (Some(opens), _) if now_ms < opens => Err(Refused::NotOpen(opens)),
            (_, Some(closes)) if now_ms >= closes => Err(Refused::Closed(closes)),
            _ => Ok(()),
        }
    }

    fn judge(&self, before: Option<&Entry>, submission: &Submission) -> Result<Verdict, Refused> {
        let given = (self.turned(submission.score), self.turned(submission.sub));
        let Some(before) = before else {
            let entry = Entry::first(given, submission);
            return Ok(Verdict { entry, improved: true, again: false, is_changed: true });
        };
        let held = (before.key.score, before.key.sub);
        let next = match self.keep {
            Keep::Best => given.max(held),
            Keep::Last => given,
            Keep::Sum => (plus(held.0, given.0)?, plus(held.1, given.1)?),
        };
        let is_taken = match self.keep {
            Keep::Best => next != held,
            Keep::Last | Keep::Sum => true,
        };
        let mut entry = before.clone();
        entry.key = Key {
            score: next.0,
            sub: next.1,
            // Whoever reaches the same score again does not lose its place by that.
            at_ms: if next == held { before.key.at_ms } else { submission.at_ms },
        };
        // A best board has nothing to remember of a submission that changes nothing, unless it is an attempt.
        let is_changed = is_taken || self.attempts.is_some();
        if is_taken {
            entry.extra.clone_from(&submission.extra);
        }
        if is_changed {
            entry.tries = before.tries.saturating_add(1);
            entry.remember(submission.id);
        }
        Ok(Verdict { entry, improved: next > held, again: false, is_changed })
    }

    fn min(&self) -> i64 {
        self.min.unwrap_or(-NUMBER_MAX)
    }

    fn max(&self) -> i64 {
        self.max.unwrap_or(NUMBER_MAX)
    }

    /// Turns a number round where less is better, from players' form into that of entries and back. A number of an
    /// entry comes back as it was.
    pub fn turned(&self, number: i64) -> i64 {
        match self.order {
            Order::Most => number,
            // The smallest of all numbers has no counterpart. It is no score, but is turned before it is refused.
            Order::Least => number.saturating_neg(),
        }
    }
}

fn is_number(number: i64) -> bool {
    (-NUMBER_MAX..=NUMBER_MAX).contains(&number)
}

fn plus(held: i64, given: i64) -> Result<i64, Refused> {
    held.checked_add(given).filter(|sum| is_number(*sum)).ok_or(Refused::Sum)
}
