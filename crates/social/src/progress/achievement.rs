//! Achievements: locked, in progress, and unlocked once.

use crate::board::Writers;
use crate::definition::BadDefinition;
use crate::limits::{ACHIEVEMENT_TEXT_BYTES_MAX, IDS, NUMBER_MAX};
use crate::name::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What an operator defines. Without `count` and `statistic` it is yes or no.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AchievementDefinition")]
pub struct Achievement {
    /// A title to show.
    pub title: String,
    /// A description to show.
    pub description: String,
    /// Whether players see its title and description only once they have unlocked it.
    pub hidden: bool,
    /// What it is worth. The server only tells it.
    pub points: u32,
    /// Who may write its progress.
    pub writers: Writers,
    /// Steps until it is unlocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The statistic that unlocks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<String>,
    /// The value of the statistic that unlocks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

/// What unlocks an achievement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many steps.
    Count(u64),
    /// A value of a statistic.
    Statistic {
        /// The statistic.
        name: Name,
        /// The value.
        at: i64,
    },
}

/// A player's progress, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps so far.
    pub steps: u64,
    /// When it was unlocked, in milliseconds since 1970.
    pub unlocked_ms: Option<u64>,
    /// Marks of the newest writes: see [`StatisticValue`](super::StatisticValue).
    pub recent: [u64; IDS],
}

/// A write to an achievement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressWrite {
    /// All steps are done.
    Unlock,
    /// So many steps more.
    Add(u64),
    /// At least so many steps.
    To(u64),
    /// No step, and locked again.
    Reset,
}

/// Why a write is refused. It changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProgressRefused {
    /// A statistic unlocks it.
    #[error("a statistic unlocks this achievement: write that")]
    GoalDecides,
}

impl Achievement {
    /// Checks a definition, and gives what unlocks it.
    ///
    /// # Errors
    /// [`BadDefinition`] names the first wrong field.
    pub fn check(&self) -> Result<Goal, BadDefinition> {
        BadDefinition::title(&self.title)?;
        BadDefinition::not_by_rules(self.writers)?;
        BadDefinition::text("description", &self.description, ACHIEVEMENT_TEXT_BYTES_MAX)?;
        match (self.count, &self.statistic, self.at) {
            (count, None, None) => {
                let (count, most) = (count.unwrap_or(1), NUMBER_MAX.unsigned_abs());
                if !(1..=most).contains(&count) {
                    return Err(BadDefinition::new("count", format!("1 to {most}")));
                }
                Ok(Goal::Count(count))
            }
            (None, Some(name), Some(at)) => {
                if !(-NUMBER_MAX..=NUMBER_MAX).contains(&at) {
                    return Err(BadDefinition::new("at", format!("-{NUMBER_MAX} to {NUMBER_MAX}")));
                }
                let name =
                    Name::new(name).map_err(|error| BadDefinition::new("statistic", error.to_string()))?;
                Ok(Goal::Statistic { name, at })
            }
            (Some(_), ..) => Err(BadDefinition::new("count", "leave it out where a statistic unlocks it")),
            (None, None, Some(_)) => Err(BadDefinition::new("statistic", "`at` needs the statistic's name")),
            (None, Some(_), None) => Err(BadDefinition::new("at", "the value that unlocks it is missing")),
        }
    }

    /// What unlocks it, if its definition is right.
    pub fn goal(&self) -> Option<Goal> {
        self.check().ok()
    }
}

impl Progress {
    /// What a write makes of it, and whether it is unlocked by that. `id` is the mark of the write's id.
    ///
    /// # Errors
    /// [`ProgressRefused`]; then nothing changes.
    pub fn write(
        &self,
        goal: &Goal,
        write: ProgressWrite,
        id: Option<u64>,
        now_ms: u64,
    ) -> Result<(Progress, bool), ProgressRefused> {
        if id.is_some_and(|id| self.recent.contains(&id)) {
            return Ok((self.clone(), false));
        }
        let mut next = self.clone();
        if let Some(id) = id {
            next.recent.rotate_right(1);
            next.recent[0] = id;
        }
        if write == ProgressWrite::Reset {
            (next.steps, next.unlocked_ms) = (0, None);
            return Ok((next, false));
        }
        let Goal::Count(count) = *goal else { return Err(ProgressRefused::GoalDecides) };
        let steps = match write {
            ProgressWrite::Add(more) => self.steps.saturating_add(more),
            ProgressWrite::To(steps) => self.steps.max(steps),
            ProgressWrite::Unlock | ProgressWrite::Reset => count,
        };
        next.steps = steps.min(count);
        let is_done = next.steps >= count;
        Ok(next.unlocked(is_done, now_ms))
    }

    /// What a value of its statistic makes of it, and whether it is unlocked by that.
    pub fn follow(&self, has_reached: bool, now_ms: u64) -> (Progress, bool) {
        self.clone().unlocked(has_reached, now_ms)
    }

    fn unlocked(mut self, is_done: bool, now_ms: u64) -> (Progress, bool) {
        let is_new = is_done && self.unlocked_ms.is_none();
        if is_new {
            self.unlocked_ms = Some(now_ms);
        }
        (self, is_new)
    }
}

/// The achievements that a statistic may unlock, among all of a game.
pub fn unlocks<'a>(
    achievements: impl Iterator<Item = (&'a Name, &'a Achievement)>,
    statistic: &Name,
) -> Vec<(Name, i64)> {
    let unlocks = |(name, achievement): (&Name, &Achievement)| match achievement.goal()? {
        Goal::Statistic { name: of, at } if of == *statistic => Some((name.clone(), at)),
        _ => None,
    };
    achievements.filter_map(unlocks).collect()
}
