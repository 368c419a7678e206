//! Boards: scores, ranks and pages for an account.

use super::account::{Account, Pending, Question};
use super::lists::escaped;
use super::repeat::random_id;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A board of the account's game, from [`Account::board`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// let laps = account.board("laps");
/// let mut submitted = laps.submit(71_250);
/// let mut around = laps.around(11);
/// // In each frame:
/// if let Some(answer) = submitted.poll() {
///     println!("rank {:?}", answer?.rank);
/// }
/// if let Some(answer) = around.poll() {
///     for entry in answer?.entries {
///         println!("{:>4} {:>8} {}", entry.rank, entry.score, entry.name.unwrap_or_default());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Board {
    account: Account,
    name: String,
    season: Option<u64>,
}

/// A score with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// The score; on a board of sums, what is added.
    pub score: i64,
    /// Decides between equal scores.
    pub sub: i64,
    /// Data to show with the score, up to 1 KiB, such as a car or a replay.
    pub extra: Option<Map<String, Value>>,
    /// Names the submission. One that is sent again with the same id counts once. Default: a random id, so
    /// that only repetitions of the same call are known.
    pub id: Option<String>,
    /// What the game's own service signed: with it a player submits to a board that the service writes. Good once, for
    /// exactly this score.
    pub receipt: Option<String>,
}

/// What a score has made of the player's entry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Submitted {
    /// The season in which the score counts.
    pub season: u64,
    /// The score that the entry has from here on.
    pub score: i64,
    /// Its sub-score.
    pub sub: i64,
    /// Since when the entry has both, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether the entry is better than before.
    pub improved: bool,
    /// Whether the server knew the submission already; it counted when it came first.
    pub again: bool,
    /// The entry's rank; `None` while the server loads the ranks.
    #[serde(default)]
    pub rank: Option<u64>,
    /// The number of entries of the season; `None` while the server loads the ranks.
    #[serde(default)]
    pub entries: Option<u64>,
}

/// Entries of a board, the best first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BoardPage {
    /// The season: its beginning in milliseconds since 1970, or 0 on a board without seasons.
    pub season: u64,
    /// When the season ends; `None` if it is over or never ends.
    #[serde(default)]
    pub ends_ms: Option<u64>,
    /// The number of all entries of the season.
    pub entries_total: u64,
    /// The entries of this page.
    pub entries: Vec<BoardEntry>,
}

/// An entry of a board.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BoardEntry {
    /// The account's id.
    pub account: String,
    /// The account's name.
    #[serde(default)]
    pub name: Option<String>,
    /// 1 and the number of better entries: equal ones share a rank.
    pub rank: u64,
    /// The place in the whole order, from 1. Of equal entries, the older one comes first.
    pub position: u64,
    /// The score.
    pub score: i64,
    /// The sub-score.
    pub sub: i64,
    /// Since when it has both, in milliseconds since 1970.
    pub at_ms: u64,
    /// The number of submissions, on a board with attempts.
    #[serde(default)]
    pub tries: Option<u64>,
    /// Data that was submitted with the score.
    #[serde(default)]
    pub extra: Option<Map<String, Value>>,
}

/// A board on a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BoardInfo {
    /// Its name, for [`Account::board`].
    pub board: String,
    /// Its title.
    pub title: String,
    /// `most` if greater scores are better, `least` if smaller ones are.
    pub order: String,
    /// What a submission does to an entry: `best`, `last` or `sum`.
    pub keep: String,
    /// Who submits: `players` or `server`.
    pub writers: String,
    /// The current season.
    pub season: u64,
    /// When it ends; `None` if it does not.
    #[serde(default)]
    pub ends_ms: Option<u64>,
}

/// A page of the boards of a game.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BoardList {
    /// The boards, in the order of their names.
    pub boards: Vec<BoardInfo>,
    /// The value of `after` for the next page; `None` on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// A season of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct BoardSeason {
    /// Its beginning in milliseconds since 1970, or 0, for [`Board::season`].
    pub season: u64,
    /// The number of its entries.
    pub entries: u64,
}

#[derive(Deserialize)]
struct Seasons {
    seasons: Vec<BoardSeason>,
}

/// Boards.
impl Account {
    /// A board of the account's game. The server is not asked yet.
    pub fn board(&self, name: &str) -> Board {
        Board { account: self.clone(), name: name.to_owned(), season: None }
    }

    /// Lists the boards of the account's game. `after` is [`BoardList::next`] of the page before.
    pub fn boards(&self, after: Option<&str>) -> Pending<BoardList> {
        let query = after.map(|after| format!("?after={}", escaped(after))).unwrap_or_default();
        self.ask(Question::Get(format!("/boards{query}")))
    }
}

impl Board {
    /// The same board in a past season, from [`seasons`](Self::seasons). Scores still count in the current one.
    pub fn season(&self, season: u64) -> Board {
        Board { season: Some(season), ..self.clone() }
    }

    /// Submits a score. A submission whose answer is lost is sent again, and counts once. Those of an account
    /// are sent one after another.
    pub fn submit(&self, score: i64) -> Pending<Submitted> {
        self.submit_with(Score { score, ..Score::default() })
    }

    /// Submits a score with what belongs to it, as [`submit`](Self::submit) does.
    pub fn submit_with(&self, score: Score) -> Pending<Submitted> {
        let Score { score, sub, extra, id, receipt } = score;
        let id = id.unwrap_or_else(random_id);
        let mut input = json!({ "score": score, "sub": sub, "id": id });
        if let Some(extra) = extra {
            input["extra"] = Value::Object(extra);
        }
        if let Some(receipt) = receipt {
            input["receipt"] = receipt.into();
        }
        let question = Question::Post(self.path("/scores"), input);
        self.account.work(|shared| async move { shared.ask_until_answered(question).await })
    }

    /// Reads up to 100 entries from a position on; the best entry has position 1.
    pub fn top(&self, from: u64, count: usize) -> Pending<BoardPage> {
        self.get("", &[("from", Some(from)), ("count", Some(count as u64))])
    }

    /// Reads up to 100 entries with the player's own in their middle. Refused as `no_such_entry` without one.
    pub fn around(&self, count: usize) -> Pending<BoardPage> {
        self.get("/around", &[("count", Some(count as u64))])
    }

    /// Reads the entries of up to 100 accounts, such as friends. Those without an entry are left out.
    pub fn of(&self, accounts: &[&str]) -> Pending<BoardPage> {
        let mut input = json!({ "accounts": accounts });
        if let Some(season) = self.season {
            input["season"] = season.into();
        }
        self.account.ask(Question::Post(self.path("/of"), input))
    }

    /// Reads the player's own entry and those of its friends: up to 100, with their ranks among all.
    pub fn friends(&self) -> Pending<BoardPage> {
        self.get("/friends", &[])
    }

    /// Lists the seasons that have or had entries, the newest first.
    pub fn seasons(&self) -> Pending<Vec<BoardSeason>> {
        let question = Question::Get(self.path("/seasons"));
        self.account.work(|shared| async move { Ok(shared.ask_own::<Seasons>(question).await?.seasons) })
    }

    /// Removes the player's own entry from a board to which players submit.
    pub fn remove(&self) -> Pending<()> {
        let input = self.season.map_or_else(|| json!({}), |season| json!({ "season": season }));
        let question = Question::Post(self.path("/remove"), input);
        self.account.work(|shared| async move { shared.ask_own::<Value>(question).await.map(|_| ()) })
    }

    fn get(&self, below: &str, fields: &[(&str, Option<u64>)]) -> Pending<BoardPage> {
        let season = [("season", self.season)];
        let given = fields.iter().chain(&season);
        let query: Vec<String> =
            given.filter_map(|(name, value)| Some(format!("{name}={}", (*value)?))).collect();
        self.account.ask(Question::Get(format!("{}?{}", self.path(below), query.join("&"))))
    }

    fn path(&self, below: &str) -> String {
        format!("/boards/{}{below}", escaped(&self.name))
    }
}
