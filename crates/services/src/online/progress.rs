//! The operations on statistics and achievements. docs/progress.md describes each.

use super::Services;
use super::budgets::AccountBudgets;
use super::definitions::RealmDefinitions;
use super::failure::{Failure, Kind};
use super::page::Limit;
use super::secrets::check_request_id;
use super::table::Caller;
use crate::store::{
    AccountId, DefinitionKind, NewScore, NewStatistic, OwnStatistic, STATISTICS_MAX, StoreError, TOTAL_DAYS,
    Total,
};
use core::time::Duration;
use parlor_hub::budget::Rate;
use parlor_server::realm::Realm;
use parlor_social::limits::ID_BYTES_MAX;
use parlor_social::{
    Achievement, Goal, Name, Progress, ProgressRefused, ProgressWrite, Statistic, StatisticKeep,
    StatisticRefused, StatisticWrite, Submission, Writers, mark_of, unlocks,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Writes of an account, of statistics and achievements together.
const WRITES: Rate = Rate { burst: 20, interval: Duration::from_millis(200) };
/// Default number of days of totals.
const DAYS: u64 = 30;

/// What accounts owe for writes.
pub(super) type ProgressWrites = AccountBudgets;

/// The budget of accounts for writes.
pub(super) fn writes(clock: parlor_server::embed::Clock, random: impl FnMut() -> u64) -> ProgressWrites {
    AccountBudgets::new(WRITES, clock, random)
}

/// A write to a statistic. It has either `add` or `set`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteStatistic {
    /// The statistic.
    statistic: String,
    /// What is added, where the statistic is a sum.
    add: Option<i64>,
    /// A value, where it is not.
    set: Option<i64>,
    /// Names this write: sent again with the same id, it counts once. Players must give it for a sum.
    #[schemars(length(min = 1, max = ID_BYTES_MAX))]
    id: Option<String>,
}

/// Statistics to write, all or none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteStatistics {
    /// Up to 32.
    #[schemars(length(min = 1, max = STATISTICS_MAX))]
    writes: Vec<WriteStatistic>,
    /// The player's account: for the game's own service, which must name it.
    account: Option<String>,
}

/// What the writes have done.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct StatisticsWritten {
    /// One for each write, in their order.
    statistics: Vec<StatisticWrittenView>,
    /// The achievements that were unlocked by this.
    unlocked: Vec<String>,
}

/// What a write has made of a statistic.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct StatisticWrittenView {
    /// The statistic.
    statistic: String,
    /// Its value from here on.
    value: i64,
    /// Whether the write was known by its id, and counted when it came first.
    again: bool,
}

/// Whose progress.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListProgress {
    /// The player's account: for operators, who must name it.
    account: Option<String>,
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// A part of a player's statistics.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct StatisticList {
    /// In the order of their names; those that the player has never written are not among them.
    statistics: Vec<StatisticView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A statistic of a player.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct StatisticView {
    /// Its name.
    statistic: String,
    /// Its title; missing if it is no longer defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its value.
    value: i64,
    /// When it was written, in milliseconds since 1970.
    changed_ms: u64,
}

/// A part of the game's achievements.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct AchievementList {
    /// In the order of their names.
    achievements: Vec<AchievementView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An achievement with a player's progress.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct AchievementView {
    /// Its name.
    achievement: String,
    /// Its title; missing while it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its description; missing while it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether players see title and description only once they have unlocked it.
    hidden: bool,
    /// What it is worth.
    points: u32,
    /// Steps, or the value of the statistic, so far.
    progress: i64,
    /// Where it is unlocked.
    goal: i64,
    /// The statistic that unlocks it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    statistic: Option<String>,
    /// When it was unlocked, in milliseconds since 1970; missing while it is locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlocked_ms: Option<u64>,
    /// Players who have unlocked it.
    unlocked_by: u64,
    /// Players with any statistic or achievement.
    players: u64,
}

/// What a player has done for an achievement. It has one of `unlock`, `add`, `to` and `reset`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteAchievement {
    /// The achievement.
    achievement: String,
    /// All steps are done.
    #[serde(default)]
    unlock: bool,
    /// So many steps more.
    add: Option<u64>,
    /// At least so many steps.
    to: Option<u64>,
    /// No step, and locked again.
    #[serde(default)]
    reset: bool,
    /// Names this write: sent again with the same id, it counts once. Players must give it with `add`.
    #[schemars(length(min = 1, max = ID_BYTES_MAX))]
    id: Option<String>,
    /// The player's account: for the game's own service, which must name it.
    account: Option<String>,
}

/// What a write has made of an achievement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct AchievementWritten {
    /// The achievement.
    achievement: AchievementView,
    /// Whether it was unlocked by this.
    unlocked: bool,
}

/// Which totals.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadTotals {
    /// The statistic.
    statistic: String,
    /// Days, today included; default: 30.
    #[schemars(range(min = 1, max = TOTAL_DAYS))]
    days: Option<u64>,
}

/// What the values of all players add up to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Totals {
    /// Of all time.
    all: TotalView,
    /// Of each day with a write, the newest first.
    days: Vec<TotalView>,
}

/// A total.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TotalView {
    /// Days since 1970; 0 for all time.
    day: u64,
    /// Players who have written.
    players: u64,
    /// Writes.
    writes: u64,
    /// What all values have grown by.
    total: i64,
}

impl From<Total> for TotalView {
    fn from(Total { day, players, writes, total }: Total) -> Self {
        TotalView { day, players, writes, total }
    }
}

fn no_such_statistic(name: &str, path: impl Into<String>) -> Failure {
    let sentence = format!("there is no statistic {name:.80}: an operator defines it first");
    Failure::new(Kind::NotFound, "no_such_statistic", sentence).at(path)
}

fn no_such_achievement(name: &str) -> Failure {
    let sentence = format!("there is no achievement {name:.80}: achievement.list has those that there are");
    Failure::new(Kind::NotFound, "no_such_achievement", sentence).at("achievement")
}

fn server_only(path: impl Into<String>) -> Failure {
    let sentence = "the game's own service writes this";
    Failure::new(Kind::Forbidden, "server_only", sentence).at(path)
}

fn no_such_player(error: StoreError) -> Failure {
    match error {
        StoreError::Missing { .. } => {
            let sentence = "there is no such account here";
            Failure::new(Kind::NotFound, "no_such_player", sentence).at("account")
        }
        error => error.into(),
    }
}

/// Charges a player for a write.
fn charge(services: &Services, caller: &Caller, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
    if caller.is_player() { services.progress_writes().charge(realm, account) } else { Ok(()) }
}

pub(super) async fn write_statistics(
    services: Services,
    caller: Caller,
    input: WriteStatistics,
) -> Result<StatisticsWritten, Failure> {
    let (realm, account) = services.own_or_named(&caller, input.account.as_deref())?;
    charge(&services, &caller, &realm, &account)?;
    if !(1..=STATISTICS_MAX).contains(&input.writes.len()) {
        return Err(Failure::field("writes", format!("1 to {STATISTICS_MAX} at once")));
    }
    let mut writes = Vec::with_capacity(input.writes.len());
    for (at, write) in input.writes.iter().enumerate() {
        writes.push(check(&services, &caller, (&realm, &account), write, &format!("writes[{at}].")).await?);
    }
    let names: Vec<String> = writes.iter().map(|write| write.name.to_string()).collect();
    let now_ms = services.time().now_ms();
    let written = services.store().write_statistics(&realm, &account, writes, now_ms).await;
    let written = written.map_err(no_such_player)?.map_err(|(at, refused)| {
        let (StatisticRefused::Range { .. } | StatisticRefused::Sum(_)) = refused;
        let field =
            input.writes.get(at).map_or("set", |write| if write.add.is_some() { "add" } else { "set" });
        Failure::new(Kind::BadInput, "out_of_range", refused.to_string()).at(format!("writes[{at}].{field}"))
    })?;
    let view = |(statistic, (value, again))| StatisticWrittenView { statistic, value, again };
    Ok(StatisticsWritten {
        statistics: names.into_iter().zip(written.values).map(view).collect(),
        unlocked: written.unlocked.iter().map(Name::to_string).collect(),
    })
}

/// Checks a write, and gathers what follows from it.
async fn check(
    services: &Services,
    caller: &Caller,
    (realm, account): (&Realm, &AccountId),
    write: &WriteStatistic,
    path: &str,
) -> Result<NewStatistic, Failure> {
    let at = |field: &str| format!("{path}{field}");
    let name =
        Name::new(&write.statistic).map_err(|_| no_such_statistic(&write.statistic, at("statistic")))?;
    let (number, is_sum) = match (write.add, write.set) {
        (Some(add), None) => (add, true),
        (None, Some(set)) => (set, false),
        (Some(_), Some(_)) => return Err(Failure::field(at("set"), "either `add` or `set`, not both")),
        (None, None) => return Err(Failure::missing(at("add"), "a write has `add` or `set`")),
    };
    let mut known = services.definitions().of(services, realm).await?;
    if !known.statistics.contains_key(&name) {
        let keep = if is_sum { StatisticKeep::Sum } else { StatisticKeep::Last };
        let definition = json!({ "writers": "players", "keep": keep });
        let of = (DefinitionKind::Statistic, &name);
        let made = services.definitions().make(services, caller, realm, of, definition).await;
        known = made.ok_or_else(|| no_such_statistic(&write.statistic, at("statistic")))??;
    }
    let rules = known.statistics.get(&name).cloned();
    let rules = rules.ok_or_else(|| no_such_statistic(&write.statistic, at("statistic")))?;
    if caller.is_player() && rules.writers != Writers::Players {
        return Err(server_only(at("statistic")));
    }
    match (rules.keep == StatisticKeep::Sum, is_sum) {
        (true, false) => return Err(Failure::field(at("set"), "this statistic is a sum: use `add`")),
        (false, true) => return Err(Failure::field(at("add"), "this statistic is no sum: use `set`")),
        (true, true) | (false, false) => {}
    }
    if caller.is_player() && is_sum && write.id.is_none() {
        return Err(Failure::missing(at("id"), "each write to a sum has an id, so that it counts once"));
    }
    let id =
        write.id.as_deref().map(|id| check_request_id(&at("id"), id).map(|()| mark_of(id))).transpose()?;
    let follows = follows(services, realm, account, &rules).await?;
    let unlocks = unlocks(known.achievements.iter().map(|(name, it)| (name, &**it)), &name);
    Ok(NewStatistic { name, rules, write: StatisticWrite { number, id }, follows, unlocks })
}

/// The score on the board that follows. A board that was deleted is followed no longer.
async fn follows(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    rules: &Statistic,
) -> Result<Option<NewScore>, Failure> {
    let Some(board) = rules.board.as_deref() else { return Ok(None) };
    let defined = match services.boards().find(services, realm, board).await {
        Err(failure) if failure.code() == "no_such_board" => return Ok(None),
        found => found?,
    };
    let at_ms = services.time().now_ms();
    let submission = Submission { at_ms, ..Submission::default() };
    Ok(Some(defined.score(account.clone(), submission)))
}

pub(super) async fn list_statistics(
    services: Services,
    caller: Caller,
    input: ListProgress,
) -> Result<StatisticList, Failure> {
    let (realm, account) = services.own_or_named(&caller, input.account.as_deref())?;
    let known = services.definitions().of(&services, &realm).await?;
    let page =
        services.store().statistics_of(&realm, &account, input.after.as_deref(), input.limit.rows()).await?;
    let view = |OwnStatistic { name, value, changed_ms }: OwnStatistic| StatisticView {
        title: known.statistics.get(&name).map(|it| it.title.clone()),
        statistic: name.to_string(),
        value,
        changed_ms,
    };
    Ok(StatisticList { statistics: page.items.into_iter().map(view).collect(), next: page.next })
}

pub(super) async fn totals(services: Services, caller: Caller, input: ReadTotals) -> Result<Totals, Failure> {
    let realm = services.realm_of(&caller)?;
    let days = input.days.unwrap_or(DAYS);
    if !(1..=TOTAL_DAYS).contains(&days) {
        return Err(Failure::field("days", format!("1 to {TOTAL_DAYS}")));
    }
    let known = services.definitions().of(&services, &realm).await?;
    let name = Name::new(&input.statistic).ok().filter(|name| known.statistics.contains_key(name));
    let name = name.ok_or_else(|| no_such_statistic(&input.statistic, "statistic"))?;
    let now_ms = services.time().now_ms();
    let (all, days) = services.store().statistic_totals(&realm, &name, days, now_ms).await?;
    Ok(Totals { all: all.into(), days: days.into_iter().map(TotalView::from).collect() })
}

pub(super) async fn list_achievements(
    services: Services,
    caller: Caller,
    input: ListProgress,
) -> Result<AchievementList, Failure> {
    let (realm, account) = services.own_or_named(&caller, input.account.as_deref())?;
    let known = services.definitions().of(&services, &realm).await?;
    let after = input.after.unwrap_or_default();
    let mut names = known.achievements.keys().filter(|name| name.as_str() > after.as_str());
    let shown: Vec<Name> = names.by_ref().take(input.limit.rows()).cloned().collect();
    let next = names.next().and(shown.last()).map(Name::to_string);
    let achievements = views(&services, &known, (&realm, &account), shown, &after).await?;
    Ok(AchievementList { achievements, next })
}

/// Shows achievements with a player's progress. `names` are in order, and all follow `after`.
async fn views(
    services: &Services,
    known: &RealmDefinitions,
    (realm, account): (&Realm, &AccountId),
    names: Vec<Name>,
    after: &str,
) -> Result<Vec<AchievementView>, Failure> {
    let store = services.store();
    let totals = store.achievement_totals(realm).await?;
    let page = store.progress_of(realm, account, Some(after), crate::store::DEFINITIONS_MAX).await?;
    let progress: BTreeMap<Name, Progress> = page.items.into_iter().collect();
    let by_statistic = names
        .iter()
        .any(|name| known.achievements.get(name).is_some_and(|achievement| achievement.statistic.is_some()));
    let values: BTreeMap<Name, i64> = if by_statistic {
        let page = store.statistics_of(realm, account, None, crate::store::DEFINITIONS_MAX).await?;
        page.items.into_iter().map(|own| (own.name, own.value)).collect()
    } else {
        BTreeMap::new()
    };
    let view = |name: Name| {
        let achievement = known.achievements.get(&name)?;
        let own = progress.get(&name).cloned().unwrap_or_default();
        Some(view(&name, achievement, &own, &values, &totals))
    };
    Ok(names.into_iter().filter_map(view).collect())
}

fn view(
    name: &Name,
    achievement: &Achievement,
    own: &Progress,
    values: &BTreeMap<Name, i64>,
    totals: &BTreeMap<String, u64>,
) -> AchievementView {
    let (progress, goal, statistic) = match achievement.goal() {
        Some(Goal::Statistic { name, at }) => {
            (values.get(&name).copied().unwrap_or(0), at, Some(name.to_string()))
        }
        Some(Goal::Count(count)) => (signed(own.steps), signed(count), None),
        None => (signed(own.steps), 1, None),
    };
    let is_shown = !achievement.hidden || own.unlocked_ms.is_some();
    AchievementView {
        achievement: name.to_string(),
        title: is_shown.then(|| achievement.title.clone()),
        description: is_shown.then(|| achievement.description.clone()),
        hidden: achievement.hidden,
        points: achievement.points,
        progress,
        goal,
        statistic,
        unlocked_ms: own.unlocked_ms,
        unlocked_by: totals.get(name.as_str()).copied().unwrap_or(0),
        players: totals.get("").copied().unwrap_or(0),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) async fn write_achievement(
    services: Services,
    caller: Caller,
    input: WriteAchievement,
) -> Result<AchievementWritten, Failure> {
    let (realm, account) = services.own_or_named(&caller, input.account.as_deref())?;
    charge(&services, &caller, &realm, &account)?;
    let write = match (input.unlock, input.add, input.to, input.reset) {
        (true, None, None, false) => ProgressWrite::Unlock,
        (false, Some(more), None, false) => ProgressWrite::Add(more),
        (false, None, Some(steps), false) => ProgressWrite::To(steps),
        (false, None, None, true) => ProgressWrite::Reset,
        _ => {
            let sentence = "a write has one of `unlock`, `add`, `to` and `reset`";
            return Err(Failure::missing("unlock", sentence));
        }
    };
    let name = Name::new(&input.achievement).map_err(|_| no_such_achievement(&input.achievement))?;
    let mut known = services.definitions().of(&services, &realm).await?;
    if !known.achievements.contains_key(&name) {
        // How many steps it has is not known, so only what is done is made by a first write.
        let makes = write == ProgressWrite::Unlock;
        let (of, definition) = ((DefinitionKind::Achievement, &name), json!({ "writers": "players" }));
        let made = match makes {
            true => services.definitions().make(&services, &caller, &realm, of, definition).await,
            false => None,
        };
        known = made.ok_or_else(|| no_such_achievement(&input.achievement))??;
    }
    let achievement = known.achievements.get(&name).cloned();
    let achievement = achievement.ok_or_else(|| no_such_achievement(&input.achievement))?;
    if caller.is_player() && achievement.writers != Writers::Players {
        return Err(server_only("achievement"));
    }
    if caller.is_player() && input.add.is_some() && input.id.is_none() {
        return Err(Failure::missing("id", "each write with `add` has an id, so that it counts once"));
    }
    let id = input.id.as_deref().map(|id| check_request_id("id", id).map(|()| mark_of(id))).transpose()?;
    let goal = achievement.goal().ok_or_else(|| no_such_achievement(&input.achievement))?;
    let now_ms = services.time().now_ms();
    let store = services.store();
    let written = store.write_progress(&realm, &account, (&name, goal), (write, id), now_ms).await;
    let (_, unlocked) = written.map_err(no_such_player)?.map_err(|refused| {
        let ProgressRefused::GoalDecides = refused;
        Failure::new(Kind::Conflict, "goal_decides", refused.to_string()).at("achievement")
    })?;
    let mut shown = views(&services, &known, (&realm, &account), vec![name], "").await?;
    let achievement = shown.pop().ok_or_else(|| no_such_achievement(&input.achievement))?;
    Ok(AchievementWritten { achievement, unlocked })
}

/// A progress of an export.
pub(super) fn exported((name, progress): (Name, Progress)) -> impl Serialize {
    json!({ "achievement": name.as_str(), "steps": progress.steps, "unlocked_ms": progress.unlocked_ms })
}

/// A statistic of an export.
pub(super) fn exported_statistic(own: OwnStatistic) -> impl Serialize {
    json!({ "statistic": own.name.as_str(), "value": own.value, "changed_ms": own.changed_ms })
}
