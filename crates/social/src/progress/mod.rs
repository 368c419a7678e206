//! Progress of players: statistics, achievements and ratings, as their operators define them.

mod achievement;
mod rating;
mod statistic;

pub use achievement::{Achievement, Goal, Progress, ProgressRefused, ProgressWrite, unlocks};
pub use rating::{Ladder, RATING_START, Rating, RatingChange, ResultRefused, rate};
pub use statistic::{
    Statistic, StatisticKeep, StatisticRefused, StatisticValue, StatisticWrite, StatisticWritten,
};
