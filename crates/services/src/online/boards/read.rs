//! What is read from boards.

use super::index::WAIT;
use super::{Defined, ENTRIES_MAX, no_ranks};
use crate::online::Services;
use crate::online::callers;
use crate::online::failure::{Failure, Kind};
use crate::online::page::Limit;
use crate::online::table::Caller;
use crate::store::AccountId;
use parlor_server::realm::Realm;
use parlor_social::{Board, Keep, Order, Ranks, Season, Standing, Writers};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

type Object = Map<String, Value>;

/// Which part of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListBoards {
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most; there are never more than 100.
    #[serde(default)]
    limit: Limit,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BoardList {
    /// In the order of their names.
    boards: Vec<BoardView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A board.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BoardView {
    /// Its name.
    board: String,
    /// Counts its definitions.
    version: u64,
    /// Its title.
    title: String,
    /// Which scores are better.
    order: Order,
    /// What a submission does to an entry.
    keep: Keep,
    /// Who may submit. Scores of players are no proof of anything.
    writers: Writers,
    /// The current season: its beginning in milliseconds since 1970, or 0.
    season: u64,
    /// When it ends; missing if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_ms: Option<u64>,
    /// When the first submission is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_ms: Option<u64>,
    /// From when on no submission is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_ms: Option<u64>,
    /// Submissions of a player in a season.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// Players of a season.
    #[serde(skip_serializing_if = "Option::is_none")]
    seats: Option<u64>,
}

/// Which page of a board.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopOfBoard {
    /// The board.
    board: String,
    /// The position of the first entry. Default: 1.
    #[serde(default)]
    from: Position,
    /// How many entries at most.
    #[serde(default)]
    count: Count,
    /// The season, the current one if missing.
    season: Option<u64>,
}

/// Whose neighbours on a board.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AroundOnBoard {
    /// The board.
    board: String,
    /// Whose; the caller's own if missing.
    account: Option<String>,
    /// How many entries at most, with that one in the middle.
    #[serde(default)]
    count: Count,
    /// The season, the current one if missing.
    season: Option<u64>,
}

/// Whose entries on a board.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfBoard {
    /// The board.
    board: String,
    /// The players' accounts, up to 100, such as those of friends.
    #[schemars(length(max = ENTRIES_MAX))]
    accounts: Vec<String>,
    /// The season, the current one if missing.
    season: Option<u64>,
}

/// How many friends on a board.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FriendsOnBoard {
    /// The board.
    board: String,
    /// How many entries at most, the best first. Default: 100.
    #[serde(default = "Count::most")]
    count: Count,
    /// The season, the current one if missing.
    season: Option<u64>,
}

/// Which board.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeasonsOfBoard {
    /// The board.
    board: String,
}

/// Entries of a board.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BoardPage {
    /// The season: its beginning in milliseconds since 1970, or 0.
    season: u64,
    /// When the season ends, if it is the current one and ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_ms: Option<u64>,
    /// Number of entries of the season.
    entries_total: u64,
    /// The entries, the best first.
    entries: Vec<BoardEntryView>,
}

/// An entry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BoardEntryView {
    /// Whose it is.
    account: String,
    /// The name of that account.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// 1 and the number of entries with a better score or sub-score; equal ones share it.
    rank: u64,
    /// Its place in the whole order, from 1. Of equal entries, the older one comes first.
    position: u64,
    /// The score.
    score: i64,
    /// The sub-score.
    sub: i64,
    /// Since when it has both, in milliseconds since 1970.
    at_ms: u64,
    /// Submissions that counted, on a board with attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    tries: Option<u64>,
    /// What was said with the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Object>")]
    extra: Option<Box<RawValue>>,
}

/// The seasons of a board.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SeasonList {
    /// Those that have or had entries, the newest first.
    seasons: Vec<SeasonView>,
}

/// A season.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SeasonView {
    /// Its beginning in milliseconds since 1970, or 0.
    season: u64,
    /// Number of its entries.
    entries: u64,
}

/// A position in the order of a board.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct Position(u64);

impl Default for Position {
    fn default() -> Self {
        Position(1)
    }
}

impl TryFrom<u64> for Position {
    type Error = &'static str;

    fn try_from(position: u64) -> Result<Self, Self::Error> {
        if position == 0 { Err("positions begin with 1") } else { Ok(Position(position)) }
    }
}

impl JsonSchema for Position {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Position".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "default": 1 })
    }
}

/// A number of entries.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct Count(usize);

impl Count {
    const DEFAULT: usize = 11;

    fn most() -> Self {
        Count(ENTRIES_MAX)
    }
}

impl Default for Count {
    fn default() -> Self {
        Count(Self::DEFAULT)
    }
}

impl TryFrom<u64> for Count {
    type Error = String;

    fn try_from(wanted: u64) -> Result<Self, String> {
        let count = usize::try_from(wanted).ok().filter(|count| (1..=ENTRIES_MAX).contains(count));
        count.map(Count).ok_or_else(|| format!("a page has 1 to {ENTRIES_MAX} entries"))
    }
}

impl JsonSchema for Count {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": ENTRIES_MAX, "default": Count::DEFAULT })
    }
}

pub(crate) async fn list(
    services: Services,
    caller: Caller,
    input: ListBoards,
) -> Result<BoardList, Failure> {
    let realm = services.realm_of(&caller)?;
    let (boards, now_ms) = (services.boards().of(&services, &realm).await?, services.time().now_ms());
    let after = input.after.unwrap_or_default();
    let rest = boards.values().filter(|defined| defined.name.as_str() > after.as_str());
    let rows = input.limit.rows().min(ENTRIES_MAX);
    let mut part: Vec<&Arc<Defined>> = rest.take(rows + 1).collect();
    let has_more = part.len() > rows;
    part.truncate(rows);
    let next = part.last().filter(|_| has_more).map(|last| last.name.to_string());
    Ok(BoardList { boards: part.into_iter().map(|defined| view(defined, now_ms)).collect(), next })
}

fn view(defined: &Defined, now_ms: u64) -> BoardView {
    let Board { title, order, keep, writers, opens_ms, closes_ms, attempts, seats, .. } = &*defined.board;
    let (season, ends_ms) = defined.season(now_ms);
    BoardView {
        board: defined.name.to_string(),
        version: defined.version,
        title: title.clone(),
        order: *order,
        keep: *keep,
        writers: *writers,
        season: season.0,
        ends_ms,
        opens_ms: *opens_ms,
        closes_ms: *closes_ms,
        attempts: *attempts,
        seats: *seats,
    }
}

pub(crate) async fn top(services: Services, caller: Caller, input: TopOfBoard) -> Result<BoardPage, Failure> {
    let realm = services.realm_of(&caller)?;
    let defined = services.boards().find(&services, &realm, &input.board).await?;
    let season = season(&services, &defined, input.season).await?;
    let (from, count) = (input.from.0, input.count.0);
    page((&services, &caller), &realm, &defined, season, |ranks| owned(ranks.page(from, count))).await
}

pub(crate) async fn around(
    services: Services,
    caller: Caller,
    input: AroundOnBoard,
) -> Result<BoardPage, Failure> {
    let (realm, account) = services.subject(&caller, input.account.as_deref(), "account")?;
    let defined = services.boards().find(&services, &realm, &input.board).await?;
    let season = season(&services, &defined, input.season).await?;
    let around = |ranks: &Ranks| ranks.around(account.as_str(), input.count.0).map(owned);
    let ask = |ranks: &Ranks| around(ranks).unwrap_or_default();
    let page = page((&services, &caller), &realm, &defined, season, ask).await?;
    if page.entries.is_empty() { Err(no_entry()) } else { Ok(page) }
}

pub(crate) async fn of(services: Services, caller: Caller, input: OfBoard) -> Result<BoardPage, Failure> {
    let realm = services.realm_of(&caller)?;
    if input.accounts.len() > ENTRIES_MAX {
        return Err(Failure::field("accounts", format!("{ENTRIES_MAX} are the most")));
    }
    for (at, account) in input.accounts.iter().enumerate() {
        callers::account_id(account, &format!("accounts[{at}]"))?;
    }
    let defined = services.boards().find(&services, &realm, &input.board).await?;
    let season = season(&services, &defined, input.season).await?;
    let accounts = input.accounts;
    let ask = |ranks: &Ranks| owned(ranks.of(accounts.iter().map(String::as_str)));
    page((&services, &caller), &realm, &defined, season, ask).await
}

/// Gives the player's own entry and those of its friends.
pub(crate) async fn friends(
    services: Services,
    caller: Caller,
    input: FriendsOnBoard,
) -> Result<BoardPage, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let defined = services.boards().find(&services, &realm, &input.board).await?;
    let season = season(&services, &defined, input.season).await?;
    let mut shown = services.store().friend_ids(&realm, &account).await?;
    shown.push(account);
    let ask = |ranks: &Ranks| {
        let mut best = owned(ranks.of(shown.iter().map(AccountId::as_str)));
        best.truncate(input.count.0);
        best
    };
    page((&services, &caller), &realm, &defined, season, ask).await
}

pub(crate) async fn seasons(
    services: Services,
    caller: Caller,
    input: SeasonsOfBoard,
) -> Result<SeasonList, Failure> {
    let realm = services.realm_of(&caller)?;
    let defined = services.boards().find(&services, &realm, &input.board).await?;
    let stored = services.store().board_seasons(defined.number).await?;
    let seasons = stored.into_iter().map(|one| SeasonView { season: one.season.0, entries: one.entries });
    Ok(SeasonList { seasons: seasons.collect() })
}

pub(super) fn no_entry() -> Failure {
    Failure::new(Kind::NotFound, "no_such_entry", "this player has no entry in this season of the board")
}

/// The season that is asked for: the current one, or one with entries.
pub(super) async fn season(
    services: &Services,
    defined: &Defined,
    asked: Option<u64>,
) -> Result<Season, Failure> {
    let (current, _) = defined.season(services.time().now_ms());
    let Some(asked) = asked.map(Season).filter(|asked| *asked != current) else { return Ok(current) };
    let stored = services.store().board_seasons(defined.number).await?;
    if stored.iter().any(|one| one.season == asked) {
        return Ok(asked);
    }
    let sentence = "there is no such season: board.seasons has those that there are";
    Err(Failure::new(Kind::NotFound, "no_such_season", sentence).at("season"))
}

/// An entry that the ranks have shown. Its numbers are those of the entry: see [`Board::turned`].
pub(super) struct Shown {
    pub(super) account: String,
    pub(super) rank: u64,
    position: u64,
    pub(super) score: i64,
    pub(super) sub: i64,
    at_ms: u64,
}

pub(super) fn owned(standings: Vec<Standing<'_>>) -> Vec<Shown> {
    let shown = |standing: Standing<'_>| Shown {
        account: standing.owner.to_owned(),
        rank: standing.rank,
        position: standing.position,
        score: standing.key.score,
        sub: standing.key.sub,
        at_ms: standing.key.at_ms,
    };
    standings.into_iter().map(shown).collect()
}

/// A page: what the ranks say, with the names and what was said from the store.
async fn page(
    (services, caller): (&Services, &Caller),
    realm: &Realm,
    defined: &Defined,
    season: Season,
    ask: impl FnOnce(&Ranks) -> Vec<Shown>,
) -> Result<BoardPage, Failure> {
    services.boards().charge_past(services, caller, defined, season)?;
    let ranked = services.boards().newest_ranks(services, defined, season, WAIT).await?;
    let asked = ranked.ask(|ranks| (ask(ranks), ranks.len() as u64));
    let (shown, entries_total) = asked.map_err(no_ranks)?;
    let accounts: Result<Vec<AccountId>, Failure> =
        shown.iter().map(|shown| Ok(AccountId::new(&shown.account)?)).collect();
    let details = services.store().entry_details(realm, defined.number, season, accounts?).await?;
    let mut entries = Vec::with_capacity(shown.len());
    for (shown, details) in shown.into_iter().zip(details) {
        // An entry that was removed meanwhile.
        let Some(details) = details else { continue };
        let extra = details.extra.as_deref().map(serde_json::from_slice::<Box<RawValue>>).transpose();
        let extra = extra.map_err(|error| Failure::defect(&format!("an entry cannot be read: {error}")))?;
        entries.push(BoardEntryView {
            account: shown.account,
            name: details.name,
            rank: shown.rank,
            position: shown.position,
            score: defined.board.turned(shown.score),
            sub: defined.board.turned(shown.sub),
            at_ms: shown.at_ms,
            tries: defined.board.attempts.map(|_| details.tries),
            extra,
        });
    }
    let (current, ends_ms) = defined.season(services.time().now_ms());
    let ends_ms = ends_ms.filter(|_| season == current);
    Ok(BoardPage { season: season.0, ends_ms, entries_total, entries })
}

/// An entry of an account, for its export.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OwnEntryView {
    board: String,
    season: u64,
    score: i64,
    sub: i64,
    at_ms: u64,
    tries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
}

impl OwnEntryView {
    pub(crate) fn read(own: crate::store::OwnEntry) -> Result<Self, Failure> {
        let unreadable =
            |error: serde_json::Error| Failure::defect(&format!("an entry cannot be read: {error}"));
        let board: Board = serde_json::from_slice(&own.document).map_err(unreadable)?;
        let key = own.entry.key;
        let extra = own.entry.extra.as_deref().map(serde_json::from_slice).transpose().map_err(unreadable)?;
        Ok(OwnEntryView {
            board: own.board,
            season: own.season.0,
            score: board.turned(key.score),
            sub: board.turned(key.sub),
            at_ms: key.at_ms,
            tries: own.entry.tries,
            extra,
        })
    }
}
