//! Seasons: the times between the resets of a board.
//!
//! A schedule is a cron expression of five fields at a fixed offset from UTC. A named time zone would have an hour twice
//! or never when its clocks change, and a reset in it.

use crate::limits::{OFFSET_MINUTES_MAX, SCHEDULE_BYTES_MAX, SEASON_LEAST};
use chrono::{DateTime, FixedOffset};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use thiserror::Error;

/// Occurrences that are compared with one another when a schedule is checked. A year of a daily schedule has fewer.
const CHECKED: usize = 400;

/// A season of a board, named by its beginning in milliseconds since 1970; 0 on a board without resets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Season(pub u64);

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSchedule {
    /// It is no cron expression.
    #[error("it must be a cron expression of five fields, such as `0 4 * * 1`: {0}")]
    Pattern(String),
    /// It is too long.
    #[error("it has {0} bytes, and {SCHEDULE_BYTES_MAX} are the most")]
    Long(usize),
    /// It never fires.
    #[error("there is no such day: a schedule must have a next time")]
    Never,
    /// Resets follow too fast.
    #[error("resets must be at least {} minutes apart", SEASON_LEAST.as_secs() / 60)]
    Often,
    /// The offset is none of a place on earth.
    #[error("an offset from UTC has -{OFFSET_MINUTES_MAX} to {OFFSET_MINUTES_MAX} minutes")]
    Offset,
}

/// When a board is reset.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    offset: FixedOffset,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    ///
    /// [`BadSchedule`].
    pub fn new(pattern: &str, utc_offset_minutes: i32) -> Result<Self, BadSchedule> {
        if pattern.len() > SCHEDULE_BYTES_MAX {
            return Err(BadSchedule::Long(pattern.len()));
        }
        let range = -OFFSET_MINUTES_MAX..=OFFSET_MINUTES_MAX;
        let offset = Some(utc_offset_minutes).filter(|minutes| range.contains(minutes));
        let offset =
            offset.and_then(|minutes| FixedOffset::east_opt(minutes * 60)).ok_or(BadSchedule::Offset)?;
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(pattern).map_err(|error| BadSchedule::Pattern(error.to_string()))?;
        let schedule = Schedule { cron, offset };
        schedule.must_be_slow()?;
        Ok(schedule)
    }

    /// Looks at the occurrences of a leap year and what follows it.
    fn must_be_slow(&self) -> Result<(), BadSchedule> {
        const LEAP_YEAR_MS: u64 = 1_704_067_200_000;
        let least_ms = u64::try_from(SEASON_LEAST.as_millis()).unwrap_or(u64::MAX);
        let mut at_ms = self.next_ms(LEAP_YEAR_MS).ok_or(BadSchedule::Never)?;
        for _ in 0..CHECKED {
            let Some(next_ms) = self.next_ms(at_ms) else { break };
            if next_ms - at_ms < least_ms {
                return Err(BadSchedule::Often);
            }
            at_ms = next_ms;
        }
        Ok(())
    }

    /// The first reset after a time.
    fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let next = self.cron.find_next_occurrence(&self.at(now_ms)?, false).ok()?;
        u64::try_from(next.timestamp_millis()).ok()
    }

    /// The last reset at or before a time.
    fn last_ms(&self, now_ms: u64) -> Option<u64> {
        let last = self.cron.find_previous_occurrence(&self.at(now_ms)?, true).ok()?;
        u64::try_from(last.timestamp_millis()).ok()
    }

    fn at(&self, now_ms: u64) -> Option<DateTime<FixedOffset>> {
        // Whole seconds: a cron expression knows no smaller time, and a part of a second must not hide a reset at its
        // beginning.
        let seconds = i64::try_from(now_ms / 1_000).ok()?;
        Some(DateTime::from_timestamp(seconds, 0)?.with_timezone(&self.offset))
    }
}

/// Tells the season of a time. It never returns to a season that is over, whatever the clock does.
#[derive(Clone, Debug, Default)]
pub struct SeasonClock {
    newest: Season,
    /// When `newest` ends; `None` if it never does. Unknown as long as nobody has asked.
    ends_ms: Option<Option<u64>>,
    /// Resets up to this time count for nothing.
    since_ms: Option<u64>,
}

impl SeasonClock {
    /// A clock for a board that has begun this season before, and was defined as it is at a time. The season goes on
    /// after that time: resets before it are those of a schedule that the board did not have then.
    pub fn after(newest: Season, defined_ms: u64) -> Self {
        SeasonClock { newest, ends_ms: None, since_ms: Some(defined_ms) }
    }

    /// The newest season that it knows.
    pub fn newest(&self) -> Season {
        self.newest
    }

    /// The season at a time, and when it ends.
    pub fn season(&mut self, schedule: Option<&Schedule>, now_ms: u64) -> (Season, Option<u64>) {
        let Some(schedule) = schedule else { return (self.newest, None) };
        let is_current = match self.ends_ms {
            Some(ends_ms) => ends_ms.is_none_or(|ends_ms| now_ms < ends_ms),
            None => false,
        };
        if !is_current {
            let counts = |reset: &u64| self.since_ms.is_none_or(|since_ms| *reset > since_ms);
            let season = Season(schedule.last_ms(now_ms).filter(counts).unwrap_or_default());
            self.newest = self.newest.max(season);
            let from_ms = self.newest.0.max(self.since_ms.unwrap_or_default());
            self.ends_ms = Some(schedule.next_ms(if from_ms == 0 { now_ms } else { from_ms }));
        }
        (self.newest, self.ends_ms.flatten())
    }
}
