//! The operations on ratings. docs/progress.md describes each.

use super::Services;
use super::callers::account_id;
use super::failure::{Failure, Kind};
use super::secrets::check_request_id;
use super::table::Caller;
use crate::store::{RatedPlayer, ResultOutcome, ResultTeam};
use parlor_server::realm::Realm;
use parlor_social::limits::{ID_BYTES_MAX, RATED_PLAYERS_MAX, RATED_TEAMS_MAX};
use parlor_social::{Name, Rating};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

/// Whose rating.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadRating {
    /// The ladder.
    ladder: String,
    /// The player's account; the player's own if missing. Operators must name it.
    account: Option<String>,
}

/// A player's rating.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct RatingView {
    /// The player.
    account: String,
    /// Points: 2,500 for a beginner.
    points: i64,
    /// How uncertain they are, in points: 833 for a beginner.
    uncertainty: i64,
    /// Results so far.
    games: u64,
}

/// A result of a match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportResult {
    /// The ladder.
    ladder: String,
    /// Names the result: sent again with the same id within a week, it counts once.
    #[schemars(length(min = 1, max = ID_BYTES_MAX))]
    id: String,
    /// The teams; a player alone is a team of one.
    #[schemars(length(min = 2, max = RATED_TEAMS_MAX))]
    teams: Vec<TeamResult>,
}

/// A team's result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamResult {
    /// The accounts of its players.
    #[schemars(length(min = 1, max = RATED_PLAYERS_MAX))]
    players: Vec<String>,
    /// Its place, 1 for the best; teams with the same place have drawn.
    #[schemars(range(min = 1))]
    place: u32,
}

/// What a result has made of ratings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ResultReported {
    /// In the order of the teams and their players; nothing for a result that counted before.
    ratings: Vec<RatingChangeView>,
    /// Whether the id was used, and the result counted when it came first.
    again: bool,
}

/// What a result has made of a rating.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct RatingChangeView {
    /// The rating from here on.
    rating: RatingView,
    /// What it has grown by, in points.
    growth: i64,
}

fn view(account: &str, rating: &Rating) -> RatingView {
    RatingView {
        account: account.to_owned(),
        points: rating.points(),
        uncertainty: rating.uncertainty(),
        games: rating.games,
    }
}

/// A rating of an export.
pub(super) fn exported((ladder, rating): &(Name, Rating)) -> impl Serialize {
    json!({
        "ladder": ladder.as_str(), "points": rating.points(), "uncertainty": rating.uncertainty(), "games": rating.games,
    })
}

async fn ladder(services: &Services, realm: &Realm, name: &str) -> Result<Name, Failure> {
    let known = services.definitions().of(services, realm).await?;
    let found = Name::new(name).ok().filter(|name| known.ladders.contains_key(name));
    found.ok_or_else(|| {
        let sentence = format!("there is no ladder {name:.80}: an operator defines it first");
        Failure::new(Kind::NotFound, "no_such_ladder", sentence).at("ladder")
    })
}

pub(super) async fn read(
    services: Services,
    caller: Caller,
    input: ReadRating,
) -> Result<RatingView, Failure> {
    let (realm, account) = services.subject(&caller, input.account.as_deref(), "account")?;
    let ladder = ladder(&services, &realm, &input.ladder).await?;
    let ratings = services.store().ratings(&realm, &ladder, vec![account.clone()]).await?;
    let rating = ratings.first().ok_or_else(|| Failure::defect("a player has no rating"))?;
    Ok(view(account.as_str(), rating))
}

pub(super) async fn report(
    services: Services,
    caller: Caller,
    input: ReportResult,
) -> Result<ResultReported, Failure> {
    let realm = services.realm_of(&caller)?;
    check_request_id("id", &input.id)?;
    let ladder = ladder(&services, &realm, &input.ladder).await?;
    let mut players = BTreeSet::new();
    let mut teams = Vec::with_capacity(input.teams.len());
    for (at, team) in input.teams.iter().enumerate() {
        if team.place == 0 {
            return Err(Failure::field(format!("teams[{at}].place"), "the best place is 1"));
        }
        let mut ids = Vec::with_capacity(team.players.len());
        for (nth, player) in team.players.iter().enumerate() {
            let path = format!("teams[{at}].players[{nth}]");
            if !players.insert(player.as_str()) {
                return Err(Failure::field(path, "a player is in a result once"));
            }
            ids.push(account_id(player, &path)?);
        }
        teams.push(ResultTeam { players: ids, place: team.place });
    }
    let now_ms = services.time().now_ms();
    let outcome = services.store().rate(&realm, &ladder, teams, &input.id, now_ms).await?;
    let change = |RatedPlayer { account, before, after }: RatedPlayer| RatingChangeView {
        rating: view(account.as_str(), &after),
        growth: after.points() - before.points(),
    };
    match outcome {
        ResultOutcome::Rated(rated) => {
            Ok(ResultReported { ratings: rated.into_iter().map(change).collect(), again: false })
        }
        ResultOutcome::Again => Ok(ResultReported { ratings: Vec::new(), again: true }),
        ResultOutcome::NoAccount(account) => {
            let sentence = format!("there is no account {account} here");
            Err(Failure::new(Kind::NotFound, "no_such_player", sentence).at("teams"))
        }
        ResultOutcome::Refused(refused) => Err(Failure::field("teams", refused.to_string())),
    }
}
