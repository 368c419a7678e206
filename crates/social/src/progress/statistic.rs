//! Statistics: whole numbers of a player.

use crate::board::Writers;
use crate::definition::BadDefinition;
use crate::limits::{IDS, NUMBER_MAX, TOTALLED_MAX};
use crate::name::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a write does to a statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatisticKeep {
    /// It is added.
    #[default]
    Sum,
    /// It replaces the value.
    Last,
    /// It replaces a smaller value.
    Most,
    /// It replaces a greater value.
    Least,
}

/// What an operator defines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "StatisticDefinition")]
pub struct Statistic {
    /// A title to show.
    pub title: String,
    /// What a write does.
    pub keep: StatisticKeep,
    /// Who may write.
    pub writers: Writers,
    /// Smallest number of one write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// Largest number of one write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// Whether the server adds up the values of all players.
    pub totals: bool,
    /// The board that follows: the value after each write is a score of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
}

/// A player's value, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticValue {
    /// The number.
    pub value: i64,
    /// Marks of the newest writes, the newest first; 0 for none. A write that is sent again is known by them.
    pub recent: [u64; IDS],
}

/// A write to a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatisticWrite {
    /// The number: what is added for [`StatisticKeep::Sum`], otherwise a value.
    pub number: i64,
    /// The mark of its id: see [`mark_of`](crate::mark_of).
    pub id: Option<u64>,
}

/// What a write makes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticWritten {
    /// The value after it.
    pub value: StatisticValue,
    /// Growth of the number.
    pub growth: i64,
    /// Whether the write was known: it counted when it came first.
    pub again: bool,
    /// Whether there is anything to store.
    pub is_changed: bool,
}

/// Why a write is refused. It changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StatisticRefused {
    /// The number is none that this statistic takes.
    #[error("a number of this statistic is {min} to {max}")]
    Range {
        /// The smallest one.
        min: i64,
        /// The largest one.
        max: i64,
    },
    /// The sum would be larger than a value can be.
    #[error("the sum would exceed {0}")]
    Sum(i64),
}

impl Statistic {
    /// Checks a definition.
    ///
    /// # Errors
    /// [`BadDefinition`] names the first wrong field.
    pub fn check(&self) -> Result<(), BadDefinition> {
        BadDefinition::title(&self.title)?;
        BadDefinition::not_by_rules(self.writers)?;
        for (field, number) in [("min", self.min), ("max", self.max)] {
            if number.is_some_and(|number| !(-NUMBER_MAX..=NUMBER_MAX).contains(&number)) {
                let sentence = format!("a number is -{NUMBER_MAX} to {NUMBER_MAX}");
                return Err(BadDefinition::new(field, sentence));
            }
        }
        let (min, max) = self.range();
        if min > max {
            return Err(BadDefinition::new("max", "it is smaller than `min`"));
        }
        match self.board.as_deref().map(Name::new) {
            Some(Err(error)) => Err(BadDefinition::new("board", error.to_string())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// The smallest and the largest number of one write.
    fn range(&self) -> (i64, i64) {
        let most = self.most();
        (self.min.unwrap_or(-most), self.max.unwrap_or(most))
    }

    /// The largest value, and as a negative number the smallest.
    fn most(&self) -> i64 {
        if self.totals { TOTALLED_MAX } else { NUMBER_MAX }
    }

    /// What a write makes of a player's value.
    ///
    /// # Errors
    /// [`StatisticRefused`]; then nothing changes.
    pub fn write(
        &self,
        before: Option<&StatisticValue>,
        write: StatisticWrite,
    ) -> Result<StatisticWritten, StatisticRefused> {
        if let (Some(before), Some(id)) = (before, write.id)
            && before.recent.contains(&id)
        {
            return Ok(StatisticWritten { value: before.clone(), growth: 0, again: true, is_changed: false });
        }
        let ((min, max), most) = (self.range(), self.most());
        if !(min..=max).contains(&write.number) || !(-most..=most).contains(&write.number) {
            return Err(StatisticRefused::Range { min: min.max(-most), max: max.min(most) });
        }
        let held = before.map(|before| before.value);
        let next = match (self.keep, held) {
            (_, None) | (StatisticKeep::Last, _) => write.number,
            (StatisticKeep::Sum, Some(held)) => held
                .checked_add(write.number)
                .filter(|sum| (-most..=most).contains(sum))
                .ok_or(StatisticRefused::Sum(most))?,
            (StatisticKeep::Most, Some(held)) => held.max(write.number),
            (StatisticKeep::Least, Some(held)) => held.min(write.number),
        };
        let is_changed = held != Some(next) || matches!(self.keep, StatisticKeep::Sum | StatisticKeep::Last);
        let mut value = before.cloned().unwrap_or_default();
        value.value = next;
        if is_changed && let Some(id) = write.id {
            value.recent.rotate_right(1);
            value.recent[0] = id;
        }
        let growth = next.saturating_sub(held.unwrap_or(0));
        Ok(StatisticWritten { value, growth, again: false, is_changed })
    }

    /// Whether a value has reached a goal: at least that much, and at most for [`StatisticKeep::Least`].
    pub fn has_reached(&self, value: i64, goal: i64) -> bool {
        match self.keep {
            StatisticKeep::Least => value <= goal,
            StatisticKeep::Sum | StatisticKeep::Last | StatisticKeep::Most => value >= goal,
        }
    }
}
