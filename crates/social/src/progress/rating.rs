//! Ratings: what a player's results say of its skill, by the method of Weng and Lin, "A Bayesian Approximation Method
//! for Online Ranking" (Journal of Machine Learning Research 12, 2011).
//!
//! The library computes with floating point in this place only. A rating is stored in whole millionths, and all that
//! is compared is whole numbers.

use crate::definition::BadDefinition;
use crate::limits::{RATED_PLAYERS_MAX, RATED_TEAMS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillratings::MultiTeamOutcome;
use skillratings::weng_lin::{WengLinConfig, WengLinRating, weng_lin_multi_team};
use thiserror::Error;

/// Millionths of a unit of the method.
const MILLION: f64 = 1e6;
/// Millionths in one point as players see it.
const POINT: i64 = 10_000;
/// Largest mean, and as a negative number the smallest, in millionths.
const MEAN_MAX: i64 = 1_000_000_000;

/// The rating of a player without results.
pub const RATING_START: Rating = Rating { mean: 25_000_000, doubt: 8_333_333, games: 0 };

/// What an operator defines: players are rated by the results that the game's own service reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "LadderDefinition")]
pub struct Ladder {
    /// A title to show.
    pub title: String,
}

impl Ladder {
    /// Checks a definition.
    ///
    /// # Errors
    /// [`BadDefinition`] names the first wrong field.
    pub fn check(&self) -> Result<(), BadDefinition> {
        BadDefinition::title(&self.title)
    }
}

/// A player's rating, in millionths of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rating {
    /// The expected skill.
    pub mean: i64,
    /// Its standard deviation: how little is known.
    pub doubt: i64,
    /// Results so far.
    pub games: u64,
}

/// What a result makes of the ratings, in the order of the teams and their players.
pub type RatingChange = Vec<Vec<Rating>>;

/// Why a result is not rated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResultRefused {
    /// Nothing was won.
    #[error("a result has 2 to {RATED_TEAMS_MAX} teams")]
    Teams,
    /// A team is empty, or all are too large.
    #[error("each team has a player, and all of them have at most {RATED_PLAYERS_MAX}")]
    Players,
}

impl Rating {
    /// Points as players see them: 2,500 at first.
    pub fn points(&self) -> i64 {
        rounded(self.mean)
    }

    /// The uncertainty in the same points: 833 at first.
    pub fn uncertainty(&self) -> i64 {
        rounded(self.doubt)
    }
}

/// Half a point is rounded up.
fn rounded(millionths: i64) -> i64 {
    millionths.saturating_add(POINT / 2).div_euclid(POINT)
}

/// The ratings after a result. Each team has its place, 1 for the best; equal places are a draw.
///
/// # Errors
/// [`ResultRefused`].
pub fn rate(teams: &[(Vec<Rating>, u32)]) -> Result<RatingChange, ResultRefused> {
    if !(2..=RATED_TEAMS_MAX).contains(&teams.len()) {
        return Err(ResultRefused::Teams);
    }
    let players: usize = teams.iter().map(|(team, _)| team.len()).sum();
    if players > RATED_PLAYERS_MAX || teams.iter().any(|(team, _)| team.is_empty()) {
        return Err(ResultRefused::Players);
    }
    let as_units =
        |rating: &Rating| WengLinRating { rating: units(rating.mean), uncertainty: units(rating.doubt) };
    let given: Vec<Vec<WengLinRating>> =
        teams.iter().map(|(team, _)| team.iter().map(as_units).collect()).collect();
    let with_places: Vec<(&[WengLinRating], MultiTeamOutcome)> = given
        .iter()
        .zip(teams)
        .map(|(team, (_, place))| (&team[..], MultiTeamOutcome::new(*place as usize)))
        .collect();
    let rated = weng_lin_multi_team(&with_places, &WengLinConfig::default());
    let next = |(rated, before): (&WengLinRating, &Rating)| Rating {
        mean: millionths(rated.rating).unwrap_or(before.mean).clamp(-MEAN_MAX, MEAN_MAX),
        doubt: millionths(rated.uncertainty).unwrap_or(before.doubt).clamp(1, RATING_START.doubt),
        games: before.games.saturating_add(1),
    };
    let team = |(rated, (before, _)): (&Vec<WengLinRating>, &(Vec<Rating>, u32))| {
        rated.iter().zip(before).map(next).collect()
    };
    Ok(rated.iter().zip(teams).map(team).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a rating has far fewer than 52 bits")]
fn units(millionths: i64) -> f64 {
    millionths as f64 / MILLION
}

/// `None` for what is no number, so that no rating ever becomes one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a finite number saturates, and is clamped by the caller"
)]
fn millionths(units: f64) -> Option<i64> {
    units.is_finite().then(|| (units * MILLION).round() as i64)
}
