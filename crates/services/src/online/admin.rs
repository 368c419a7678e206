//! Operators' operations: bans, roles, backups and status.

use super::Services;
use super::accounts::{DONE, Done, Nothing};
use super::bans;
use super::failure::{Failure, Kind};
use super::page::Limit;
use super::table::Caller;
use crate::store::{AccountId, Ban, Role, TEXT_BYTES_MAX};
use parlor_server::embed::unix_ms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The account or operator to ban.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BanAccount {
    /// The account, or with `operator` a name.
    account: String,
    /// Whether it is no account, but the name (`sub`) of tokens that the operator's key signs.
    #[serde(default)]
    operator: bool,
    /// The reason, which the account sees.
    #[schemars(length(max = TEXT_BYTES_MAX))]
    reason: String,
    /// For how many seconds; for ever if missing.
    for_s: Option<u64>,
    /// Whether its entries are removed from all boards.
    #[serde(default)]
    scores: bool,
}

/// The account or operator whose ban is lifted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LiftBan {
    /// The account.
    account: String,
}

/// Which part of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListBans {
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct BanList {
    /// In the order of the accounts.
    bans: Vec<BanView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A ban.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct BanView {
    /// Who.
    account: String,
    /// Why.
    reason: String,
    /// Who decided it.
    by: String,
    /// Since when, in milliseconds since 1970.
    at_ms: u64,
    /// Until when; for ever if null.
    until_ms: Option<u64>,
}

pub(super) async fn ban(services: Services, caller: Caller, input: BanAccount) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let account = account(&input.account)?;
    if !input.operator && services.store().account(&realm, &account).await?.is_none() {
        return Err(Failure::new(Kind::NotFound, "not_found", "there is no such account here").at("account"));
    }
    let at_ms = services.time().now_ms();
    let until_ms = input.for_s.map(|seconds| at_ms.saturating_add(seconds.saturating_mul(1_000)));
    let ban = Ban { account: account.clone(), reason: input.reason, by: by.to_string(), at_ms, until_ms };
    services.store().ban(&realm, &ban).await?;
    services.has_ordered();
    bans::put_out(&services, &realm, &account, services.time().now_s());
    let removed = bans::remove_from_rooms(&services, &realm, &account, &ban.reason).await?;
    if input.scores {
        let entries = services.store().remove_entries_of(&realm, &account).await?;
        tracing::info!(%account, entries, "entries of a banned account were removed");
    }
    tracing::info!(%account, by = %ban.by, removed, "banned");
    Ok(DONE)
}

pub(super) async fn lift_ban(services: Services, caller: Caller, input: LiftBan) -> Result<Done, Failure> {
    let realm = services.realm_of(&caller)?;
    let account = account(&input.account)?;
    services.store().lift_ban(&realm, &account).await?;
    services.has_ordered();
    bans::let_in(&services, &realm, &account);
    Ok(DONE)
}

pub(super) async fn bans(services: Services, caller: Caller, input: ListBans) -> Result<BanList, Failure> {
    let realm = services.realm_of(&caller)?;
    let after = input.after.as_deref().map(account).transpose()?;
    let page = services.store().bans(&realm, after.as_ref(), input.limit.rows()).await?;
    let bans = page.items.into_iter().map(|ban| BanView {
        account: ban.account.to_string(),
        reason: ban.reason,
        by: ban.by,
        at_ms: ban.at_ms,
        until_ms: ban.until_ms,
    });
    Ok(BanList { bans: bans.collect(), next: page.next })
}

/// What an account may do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetRole {
    /// The account.
    account: String,
    /// What it may do.
    #[schemars(extend("enum" = ["player", "server", "admin"]))]
    role: String,
}

pub(super) async fn set_role(services: Services, caller: Caller, input: SetRole) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let account = account(&input.account)?;
    let role = Role::from_word(&input.role)
        .ok_or_else(|| Failure::field("role", "there are the roles player, server and admin"))?;
    services.store().set_role(&realm, &account, role).await?;
    services.has_ordered();
    services.bans().changed(&realm, &account);
    tracing::info!(%account, %by, role = role.as_str(), "has another role");
    Ok(DONE)
}

/// How it goes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Status {
    /// Transactions that the store committed since the server's start.
    store_commits: u64,
    /// Writes in them.
    store_writes: u64,
    /// Writes that the database failed at.
    store_failed: u64,
    /// Requests that the store turned away because it was slow, full or away.
    store_turned_away: u64,
    /// Writes that wait.
    store_waiting: u64,
    /// Rooms of all environments in which what was due could not be done, and is tried again later.
    rooms_put_off: u64,
    /// Bytes of the store that are in use, as far as was asked lately.
    store_bytes: u64,
    /// Bytes that the store may have.
    store_bytes_max: u64,
    /// Writes that were refused because it was full.
    store_refused_full: u64,
    /// Writes that were refused because an account or an app had too much.
    store_refused_quota: u64,
    /// Matches that were refused because they were to be kept.
    kept_matches_refused: u64,
    /// Rows of the store, by kind.
    store_rows: BTreeMap<&'static str, u64>,
    /// Unused rows deleted since the server's start, by kind.
    store_swept: BTreeMap<&'static str, u64>,
    /// Bytes of this environment's turn rooms.
    room_bytes: u64,
    /// Turn rooms of this environment that have not ended.
    open_rooms: u64,
    /// Bytes of this environment's logs of matches.
    log_bytes: u64,
    /// Bytes of this environment's saves.
    save_bytes: u64,
    /// Bytes of this environment's objects.
    object_bytes: u64,
    /// Webhooks of this environment that wait.
    webhooks_waiting: u64,
    /// Webhooks of this environment that went untold because too many waited.
    webhooks_dropped: u64,
}

pub(super) async fn status(services: Services, caller: Caller, _: Nothing) -> Result<Status, Failure> {
    let realm = services.realm_of(&caller)?;
    let (counters, outbox) = (services.store().counters(), services.store().outbox(&realm).await?);
    let holding = services.store().holding(&realm, None).await?;
    Ok(Status {
        store_bytes: counters.bytes,
        store_bytes_max: counters.bytes_max,
        store_refused_full: counters.refused_full,
        store_refused_quota: counters.refused_quota,
        kept_matches_refused: services.access().kept().refused(),
        store_rows: services.store().rows().await?.into_iter().collect(),
        store_swept: services.swept().counts().into_iter().collect(),
        room_bytes: holding.room_bytes,
        open_rooms: holding.open_rooms,
        log_bytes: holding.log_bytes,
        save_bytes: holding.save_bytes,
        object_bytes: holding.object_bytes,
        store_commits: counters.groups,
        store_writes: counters.writes,
        store_failed: counters.failed,
        store_turned_away: counters.turned_away,
        store_waiting: counters.waiting,
        rooms_put_off: services.store().rooms_put_off().await?,
        webhooks_waiting: outbox.waiting,
        webhooks_dropped: outbox.dropped,
    })
}

/// A backup that was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Backup {
    /// The file, on the server's disk.
    file: String,
}

pub(super) async fn backup(services: Services, caller: Caller, _: Nothing) -> Result<Backup, Failure> {
    let (_, by) = services.account_of(&caller)?;
    let no_folder = || {
        let sentence = "this server has no folder for backups: start it with --data FOLDER";
        Failure::new(Kind::Conflict, "no_backups", sentence)
    };
    let folder = services.backups().ok_or_else(no_folder)?.to_owned();
    // The server chooses the name: a request must not name files.
    let path = folder.join(format!("parlor-{}.db", unix_ms()));
    let failed = |error: &dyn core::fmt::Display| {
        tracing::warn!(path = %path.display(), %error, "a backup failed");
        Failure::new(Kind::Unavailable, "no_backup", format!("no backup was made: {error}"))
    };
    tokio::fs::create_dir_all(&folder).await.map_err(|error| failed(&error))?;
    let facts = services.store().backup(&path).await.map_err(|error| failed(&error))?;
    tracing::info!(path = %path.display(), %by, ?facts, "a backup was made");
    Ok(Backup { file: path.display().to_string() })
}

fn account(text: &str) -> Result<AccountId, Failure> {
    AccountId::new(text).map_err(|error| Failure::field("account", error.to_string()))
}
