//! Progress of a player: statistics, achievements and ratings.

use super::account::{Account, Pending, Question};
use super::lists::escaped;
use super::repeat::random_id;
use serde::Deserialize;
use serde_json::{Value, json};

/// The statistics of an account's player, from [`Account::statistics`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// let statistics = account.statistics();
/// let mut adding = statistics.add("kills", 3);
/// // In each frame:
/// if let Some(answer) = adding.poll() {
///     for achievement in answer?.unlocked {
///         println!("unlocked: {achievement}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Statistics {
    account: Account,
}

/// The achievements of an account's player, from [`Account::achievements`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// let achievements = account.achievements();
/// let mut unlocking = achievements.unlock("first-blood");
/// // In each frame:
/// if let Some(answer) = unlocking.poll() {
///     println!("{}", if answer?.unlocked { "unlocked!" } else { "it was already" });
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Achievements {
    account: Account,
}

/// A statistic of the player.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Statistic {
    /// Its name.
    #[serde(rename = "statistic")]
    pub name: String,
    /// Its title; `None` if it is no longer defined.
    #[serde(default)]
    pub title: Option<String>,
    /// Its value.
    pub value: i64,
    /// When it was written, in milliseconds since 1970.
    pub changed_ms: u64,
}

/// A write to a statistic, for [`Statistics::write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticWrite {
    name: String,
    field: &'static str,
    number: i64,
}

/// What writes have made of statistics.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StatisticsWritten {
    /// The value of each, in the order of the writes.
    #[serde(rename = "statistics", deserialize_with = "values")]
    pub values: Vec<i64>,
    /// The achievements that were unlocked by this.
    pub unlocked: Vec<String>,
}

/// An achievement of the game with the player's progress.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Achievement {
    /// Its name.
    #[serde(rename = "achievement")]
    pub name: String,
    /// Its title; `None` while it is hidden.
    #[serde(default)]
    pub title: Option<String>,
    /// Its description; `None` while it is hidden.
    #[serde(default)]
    pub description: Option<String>,
    /// What it is worth.
    pub points: u32,
    /// Steps, or the value of the statistic, so far.
    pub progress: i64,
    /// Where it is unlocked.
    pub goal: i64,
    /// The statistic that unlocks it, if there is one.
    #[serde(default)]
    pub statistic: Option<String>,
    /// When it was unlocked, in milliseconds since 1970; `None` while it is locked.
    #[serde(default)]
    pub unlocked_ms: Option<u64>,
    /// Players who have unlocked it.
    pub unlocked_by: u64,
    /// Players with any statistic or achievement.
    pub players: u64,
}

/// What a write has made of an achievement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AchievementWritten {
    /// The achievement.
    pub achievement: Achievement,
    /// Whether it was unlocked by this.
    pub unlocked: bool,
}

/// A player's rating on a ladder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rating {
    /// The player's account.
    pub account: String,
    /// Points: 2,500 for a beginner.
    pub points: i64,
    /// How uncertain they are, in points: 833 for a beginner.
    pub uncertainty: i64,
    /// Results so far.
    pub games: u64,
}

impl StatisticWrite {
    /// Adds a number to a statistic that is a sum.
    pub fn add(name: &str, number: i64) -> Self {
        StatisticWrite { name: name.to_owned(), field: "add", number }
    }

    /// Gives a value to a statistic that is no sum; its definition says whether the last, the greatest or the least
    /// stays.
    pub fn set(name: &str, value: i64) -> Self {
        StatisticWrite { name: name.to_owned(), field: "set", number: value }
    }
}

impl Account {
    /// The statistics of the player. The server is not asked yet.
    pub fn statistics(&self) -> Statistics {
        Statistics { account: self.clone() }
    }

    /// The achievements of the player. The server is not asked yet.
    pub fn achievements(&self) -> Achievements {
        Achievements { account: self.clone() }
    }

    /// The player's rating on a ladder. Refused as `no_such_ladder` if it is not defined.
    pub fn rating(&self, ladder: &str) -> Pending<Rating> {
        self.ask(Question::Get(format!("/ratings/{}", escaped(ladder))))
    }

    /// Another player's rating on a ladder.
    pub fn rating_of(&self, ladder: &str, account: &str) -> Pending<Rating> {
        let (ladder, account) = (escaped(ladder), escaped(account));
        self.ask(Question::Get(format!("/ratings/{ladder}?account={account}")))
    }
}

impl Statistics {
    /// Adds a number to a statistic that is a sum. If the answer is lost, it is sent again and counts once.
    pub fn add(&self, name: &str, number: i64) -> Pending<StatisticsWritten> {
        self.write(&[StatisticWrite::add(name, number)])
    }

    /// Gives a value to a statistic that is no sum, in the same way.
    pub fn set(&self, name: &str, value: i64) -> Pending<StatisticsWritten> {
        self.write(&[StatisticWrite::set(name, value)])
    }

    /// Does up to 32 writes, all or none, in the same way. Those of an account are sent one after another.
    pub fn write(&self, writes: &[StatisticWrite]) -> Pending<StatisticsWritten> {
        let write = |StatisticWrite { name, field, number }: &StatisticWrite| {
            let mut write = json!({ "statistic": name, "id": random_id() });
            write[field] = (*number).into();
            write
        };
        let input = json!({ "writes": writes.iter().map(write).collect::<Vec<Value>>() });
        let question = Question::Post("/statistics".to_owned(), input);
        self.account.work(|shared| async move { shared.ask_until_answered(question).await })
    }

    /// Lists the player's statistics, in the order of their names.
    pub fn list(&self) -> Pending<Vec<Statistic>> {
        self.account.ask_all("/statistics".to_owned())
    }
}

impl Achievements {
    /// Unlocks an achievement. Refused as `goal_decides` if a statistic unlocks it.
    pub fn unlock(&self, name: &str) -> Pending<AchievementWritten> {
        self.write(name, json!({ "unlock": true }))
    }

    /// Adds steps. If the answer is lost, they are sent again and count once.
    pub fn add(&self, name: &str, steps: u64) -> Pending<AchievementWritten> {
        self.write(name, json!({ "add": steps, "id": random_id() }))
    }

    /// Makes sure that there are at least so many steps.
    pub fn reach(&self, name: &str, steps: u64) -> Pending<AchievementWritten> {
        self.write(name, json!({ "to": steps }))
    }

    /// Locks an achievement again, without any steps.
    pub fn reset(&self, name: &str) -> Pending<AchievementWritten> {
        self.write(name, json!({ "reset": true }))
    }

    /// Lists the game's achievements with the player's progress, in the order of their names.
    pub fn list(&self) -> Pending<Vec<Achievement>> {
        self.account.ask_all("/achievements".to_owned())
    }

    fn write(&self, name: &str, input: Value) -> Pending<AchievementWritten> {
        let question = Question::Post(format!("/achievements/{}", escaped(name)), input);
        self.account.work(|shared| async move { shared.ask_until_answered(question).await })
    }
}

fn values<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
    #[derive(Deserialize)]
    struct Written {
        value: i64,
    }
    Ok(Vec::<Written>::deserialize(from)?.into_iter().map(|written| written.value).collect())
}
