//! Ratings of players.

use super::accounts::account;
use super::definitions::name;
use super::error::StoreError;
use super::ids::AccountId;
use super::sql::{Done, Sql, TableRow, params};
use super::types::check_text;
use super::{Store, once};
use parlor_server::realm::Realm;
use parlor_social::{Name, RATING_START, Rating, ResultRefused, rate};

/// Time for which the id of a result is remembered.
const ONCE_FOR_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A team of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultTeam {
    /// Its players.
    pub players: Vec<AccountId>,
    /// Its place, 1 for the best. Teams with the same place have drawn.
    pub place: u32,
}

/// What a result has made of a player's rating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedPlayer {
    /// The player.
    pub account: AccountId,
    /// Its rating before.
    pub before: Rating,
    /// Its rating from here on.
    pub after: Rating,
}

/// The outcome of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultOutcome {
    /// All ratings have changed, in the order of the teams and their players.
    Rated(Vec<RatedPlayer>),
    /// The id was used: it counted when it came first.
    Again,
    /// There is no such account.
    NoAccount(AccountId),
    /// It cannot be rated.
    Refused(ResultRefused),
}

impl Store {
    /// Rates a result: all ratings change, or none. `id` names the result, which counts once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if the id is no text for a store.
    pub async fn rate(
        &self,
        realm: &Realm,
        ladder: &Name,
        teams: Vec<ResultTeam>,
        id: &str,
        now_ms: u64,
    ) -> Result<ResultOutcome, StoreError> {
        check_text("the result's id", id)?;
        let (realm, ladder, id) = (realm.clone(), ladder.clone(), format!("result/{ladder}/{id}"));
        self.write(0, move |sql| {
            if once::is_used(sql, &realm, &id)? {
                return Ok(ResultOutcome::Again);
            }
            let mut given = Vec::with_capacity(teams.len());
            for team in &teams {
                let mut ratings = Vec::with_capacity(team.players.len());
                for player in &team.players {
                    if account(sql, &realm, player)?.is_none() {
                        return Ok(ResultOutcome::NoAccount(player.clone()));
                    }
                    ratings.push(rating(sql, &realm, &ladder, player)?.unwrap_or(RATING_START));
                }
                given.push((ratings, team.place));
            }
            let rated = match rate(&given) {
                Ok(rated) => rated,
                Err(refused) => return Ok(ResultOutcome::Refused(refused)),
            };
            once::remember(sql, &realm, &id, (now_ms, now_ms.saturating_add(ONCE_FOR_MS)))?;
            let mut changes = Vec::new();
            let players = teams.iter().flat_map(|team| &team.players);
            let before = given.iter().flat_map(|(team, _)| team);
            for ((account, before), after) in players.zip(before).zip(rated.into_iter().flatten()) {
                put(sql, (&realm, account), &ladder, &after, now_ms)?;
                changes.push(RatedPlayer { account: account.clone(), before: *before, after });
            }
            Ok(ResultOutcome::Rated(changes))
        })
        .await
    }

    /// The ratings of players on a ladder: that of a beginner for those without results.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn ratings(
        &self,
        realm: &Realm,
        ladder: &Name,
        accounts: Vec<AccountId>,
    ) -> Result<Vec<Rating>, StoreError> {
        let (realm, ladder) = (realm.clone(), ladder.clone());
        self.read(move |sql| {
            let one =
                |account: &AccountId| Ok(rating(sql, &realm, &ladder, account)?.unwrap_or(RATING_START));
            accounts.iter().map(one).collect()
        })
        .await
    }

    /// All ratings of an account with the names of their ladders.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn ratings_of(
        &self,
        realm: &Realm,
        account: &AccountId,
    ) -> Result<Vec<(Name, Rating)>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT mean, doubt, games, ladder FROM ratings WHERE realm = $1 AND account = $2
                 ORDER BY ladder LIMIT $3",
                params![&realm, &account, super::definitions::DEFINITIONS_MAX],
            )?;
            rows.into_iter().map(|mut row| Ok((name(&mut row, 3)?, read(&mut row)?))).collect()
        })
        .await
    }
}

fn read(row: &mut TableRow) -> Done<Rating> {
    Ok(Rating { mean: row.signed(0)?, doubt: row.signed(1)?, games: row.number(2)? })
}

fn rating(sql: &mut dyn Sql, realm: &Realm, ladder: &Name, account: &AccountId) -> Done<Option<Rating>> {
    let mut rows = sql.rows(
        "SELECT mean, doubt, games FROM ratings WHERE realm = $1 AND account = $2 AND ladder = $3",
        params![realm, account, ladder.as_str()],
    )?;
    rows.first_mut().map(read).transpose()
}

fn put(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    ladder: &Name,
    rating: &Rating,
    now_ms: u64,
) -> Done<()> {
    sql.later(
        "INSERT INTO ratings (realm, account, ladder, mean, doubt, games, changed_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (realm, account, ladder) DO UPDATE SET mean = $4, doubt = $5, games = $6, changed_ms = $7",
        params![realm, account, ladder.as_str(), rating.mean, rating.doubt, rating.games, now_ms],
    )
}
