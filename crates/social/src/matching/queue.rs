//! A queue as its operator defines it: who goes with whom, and how limits widen.

use crate::definition::BadDefinition;
use crate::limits::{GROUP_MAX, PROPERTIES_MAX, TEAMS_MAX};
use crate::name::Name;
use core::time::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest doubt that widens a window, in points.
const DOUBT_MAX: i64 = 2_000;

/// How many players a match has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MatchPlayers")]
pub struct Players {
    /// At least.
    pub min: u16,
    /// At most.
    pub max: u16,
    /// A multiple of this. Default: 1.
    #[serde(default = "one")]
    pub multiple: u16,
}

fn one() -> u16 {
    1
}

impl Default for Players {
    fn default() -> Self {
        Players { min: 2, max: 2, multiple: 1 }
    }
}

impl Players {
    /// Checks that some number fits.
    ///
    /// # Errors
    /// The wrong field, and a sentence.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if !(2..=GROUP_MAX).contains(&self.max) {
            return Err(("max", format!("2 to {GROUP_MAX}")));
        }
        if self.min < 2 || self.min > self.max {
            return Err(("min", "2 to `max`".to_owned()));
        }
        if self.multiple == 0 || self.max / self.multiple * self.multiple < self.min {
            return Err(("multiple", "no number from `min` to `max` is a multiple of it".to_owned()));
        }
        Ok(())
    }

    /// Whether so many fit.
    pub fn admits(&self, count: usize) -> bool {
        (usize::from(self.min)..=usize::from(self.max)).contains(&count)
            && count.is_multiple_of(usize::from(self.multiple.max(1)))
    }
}

/// Whose limits count between two tickets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WidenBy {
    /// The mean of both.
    #[default]
    Both,
    /// The wider ones.
    Oldest,
    /// The narrower ones.
    Youngest,
}

/// How far apart in skill two tickets may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillRule {
    /// The ladder whose points count.
    pub ladder: String,
    /// Points at first. Default: 150.
    #[serde(default = "start")]
    pub start: u32,
    /// Points more for each second of waiting. Default: 25.
    #[serde(default = "per_s")]
    pub per_s: u32,
    /// Points at most. Default: 1,000.
    #[serde(default = "most")]
    pub most: u32,
    /// Seconds after which skill counts no more; missing for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_after_s: Option<u32>,
    /// Whose limits count between two tickets.
    #[serde(default)]
    pub widen_by: WidenBy,
}

fn start() -> u32 {
    150
}
fn per_s() -> u32 {
    25
}
fn most() -> u32 {
    1_000
}

/// How long round trips to the server may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RttRule {
    /// Milliseconds at first.
    pub start_ms: u32,
    /// Milliseconds more for each second of waiting.
    pub per_s: u32,
    /// Milliseconds at most; a player whose round trip is not measured yet counts with them.
    pub most_ms: u32,
    /// Seconds after which round trips count no more; missing for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_after_s: Option<u32>,
}

/// When matches that run and have free seats get players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backfill {
    /// Before new matches.
    #[default]
    First,
    /// After new matches.
    Last,
    /// Never.
    Never,
}

/// Who may offer the free seats of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OfferedBy {
    /// The game's own service.
    #[default]
    Server,
    /// Also any member of the match.
    Players,
}

/// What an operator defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "QueueDefinition")]
pub struct Queue {
    /// A title to show.
    pub title: String,
    /// Players of a match.
    pub players: Players,
    /// Properties that all players of a match have alike. Tickets without one have it alike, too.
    pub same: Vec<String>,
    /// How far apart in skill players may be; missing for any skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillRule>,
    /// How long round trips may be; missing for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<RttRule>,
    /// Teams of equal size into which players are put, parties whole; 0 for none.
    pub teams: u16,
    /// Milliseconds that a ticket waits for others before it is tried.
    pub gather_ms: u32,
    /// Milliseconds after which a match may have fewer players than `players.max`.
    pub fill_ms: u32,
    /// Seconds after which a search ends.
    pub life_s: u32,
    /// Seconds in which all must confirm; 0 for no confirmation.
    pub confirm_s: u32,
    /// When matches that run get players.
    pub backfill: Backfill,
    /// Who may offer seats.
    pub offers: OfferedBy,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            title: String::new(),
            players: Players::default(),
            same: Vec::new(),
            skill: None,
            rtt: None,
            teams: 0,
            gather_ms: 500,
            fill_ms: 10_000,
            life_s: 600,
            confirm_s: 0,
            backfill: Backfill::First,
            offers: OfferedBy::Server,
        }
    }
}

impl Queue {
    /// Checks a definition.
    ///
    /// # Errors
    /// [`BadDefinition`] names the first wrong field.
    pub fn check(&self) -> Result<(), BadDefinition> {
        BadDefinition::title(&self.title)?;
        self.players.check().map_err(|(field, sentence)| {
            let field = match field {
                "min" => "players.min",
                "max" => "players.max",
                _ => "players.multiple",
            };
            BadDefinition::new(field, sentence)
        })?;
        if self.same.len() > PROPERTIES_MAX || self.same.iter().any(|name| Name::new(name).is_err()) {
            return Err(BadDefinition::new("same", format!("names of at most {PROPERTIES_MAX} properties")));
        }
        if let Some(skill) = &self.skill {
            Name::new(&skill.ladder)
                .map_err(|error| BadDefinition::new("skill.ladder", error.to_string()))?;
        }
        if self.teams == 1 || self.teams > TEAMS_MAX {
            return Err(BadDefinition::new("teams", format!("0, or 2 to {TEAMS_MAX}")));
        }
        let fits = |count: u16| self.players.admits(count.into()) && count.is_multiple_of(self.teams.max(1));
        if !(self.players.min..=self.players.max).any(fits) {
            return Err(BadDefinition::new("teams", "no number of players can be put into equal teams"));
        }
        for (field, value, most) in [
            ("gather_ms", self.gather_ms, 60_000),
            ("fill_ms", self.fill_ms, 600_000),
            ("confirm_s", self.confirm_s, 120),
        ] {
            if value > most {
                return Err(BadDefinition::new(field, format!("0 to {most}")));
            }
        }
        if !(10..=3_600).contains(&self.life_s) {
            return Err(BadDefinition::new("life_s", "10 to 3600"));
        }
        Ok(())
    }

    /// How far from its own skill a ticket looks at this age; `None` for any distance.
    pub(super) fn window(&self, age: Duration, doubt: i64) -> Option<i64> {
        let Some(skill) = &self.skill else { return None };
        if skill.any_after_s.is_some_and(|after| age.as_secs() >= after.into()) {
            return None;
        }
        let grown = u64::from(skill.per_s).saturating_mul(millis(age)) / 1_000;
        let points = u64::from(skill.start).saturating_add(grown).min(skill.most.into());
        Some(i64::try_from(points).unwrap_or(i64::MAX).saturating_add(doubt.min(DOUBT_MAX) / 2))
    }

    /// How far from its own skill a ticket with this window can go with anybody; `None` for any distance.
    pub(super) fn farthest(&self, window: Option<i64>) -> Option<i64> {
        let skill = self.skill.as_ref()?;
        let somebody_takes_anybody = skill.any_after_s.is_some() && skill.widen_by == WidenBy::Oldest;
        let widest = i64::from(skill.most.max(skill.start)) + DOUBT_MAX / 2;
        if somebody_takes_anybody { None } else { self.reach(window, Some(widest)) }
    }

    /// How far apart two tickets may be, by the windows of the older and the younger one.
    pub(super) fn reach(&self, one: Option<i64>, other: Option<i64>) -> Option<i64> {
        let by = self.skill.as_ref().map_or(WidenBy::Both, |skill| skill.widen_by);
        match (one, other, by) {
            (None, None, _) | (None, _, WidenBy::Oldest) | (_, None, WidenBy::Oldest) => None,
            // Somebody who takes anybody is as near as the other allows.
            (None, Some(window), _) | (Some(window), None, _) => Some(window),
            (Some(one), Some(other), WidenBy::Both) => Some(one.midpoint(other)),
            (Some(one), Some(other), WidenBy::Oldest) => Some(one.max(other)),
            (Some(one), Some(other), WidenBy::Youngest) => Some(one.min(other)),
        }
    }

    /// The longest round trip that a ticket accepts at this age; `None` for any.
    pub(super) fn rtt_limit(&self, age: Duration) -> Option<u32> {
        let Some(rtt) = &self.rtt else { return None };
        if rtt.any_after_s.is_some_and(|after| age.as_secs() >= after.into()) {
            return None;
        }
        let grown = u64::from(rtt.per_s).saturating_mul(millis(age)) / 1_000;
        let limit = u64::from(rtt.start_ms).saturating_add(grown).min(rtt.most_ms.into());
        Some(u32::try_from(limit).unwrap_or(u32::MAX))
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
