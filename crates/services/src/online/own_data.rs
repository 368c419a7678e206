//! Export and deletion of an account's data: by its player, and by an operator.

use super::Services;
use super::accounts::{self, DONE, Done};
use super::boards::OwnEntryView;
use super::failure::{Failure, Kind};
use super::matches::KeptView;
use super::table::Caller;
use super::tokens::ACCESS_LIFE;
use super::{bans, friends, inbox, progress, ratings, rooms, saves, storage};
use crate::store::{AccountId, Ban, BoardNumber, StoreError};
use parlor_server::realm::Realm;
use parlor_social::Season;
use parlor_turn::PlayerId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Entries of a page: rooms and notices have up to 64 KiB each.
const ENTRIES: usize = 10;
/// Entries of a page of small ones.
const SMALL_ENTRIES: usize = 500;
/// The refusals of a player that is not in a room.
const LEFT_ALREADY: [&str; 2] = ["not_in_room", "no_such_room"];
/// The ban's reason while tokens of a deleted account are still valid.
const DELETED: &str = "the account was deleted";

/// Which account, so that none is deleted by mistake.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteAccount {
    /// The account's id.
    account: String,
}

/// Which part of what is stored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportOwn {
    /// What the last part gave as `next`; nothing for the first.
    after: Option<String>,
}

/// Which part of what is stored about an account.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportAccount {
    /// The account's id.
    account: String,
    /// What the last part gave as `next`; nothing for the first.
    after: Option<String>,
}

/// A part of what is stored about an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Export {
    /// What the entries are.
    #[schemars(extend("enum" = ["account", "sign_ins", "rooms", "inbox", "matches", "boards", "saves", "objects", "statistics", "achievements", "ratings", "friends", "messages"]))]
    kind: &'static str,
    /// The account with its ways to sign in; or when a device signed in and until when that is good; or the summary of a room that it sits in
    /// (`turn.read` has the rest); or a notice of its inbox; or a match that is kept and that it was in (`match.log` has the rest);
    /// or its entry on a board; or a save; or an object of its; or one of its statistics, achievements or ratings; or
    /// a friend, a request or a block; or a message of its in a room's history.
    #[schemars(with = "Vec<Value>")]
    entries: Vec<Box<RawValue>>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Deletes the caller's account.
pub(super) async fn delete(
    services: Services,
    caller: Caller,
    input: DeleteAccount,
) -> Result<Done, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    if input.account != account.as_str() {
        let sentence = "this is not the id of the account that asks: account.me says what it is";
        return Err(Failure::field("account", sentence));
    }
    erase(&services, &realm, &account).await?;
    tracing::info!(%account, ?realm, "an account was deleted by its player");
    Ok(DONE)
}

/// Deletes an account, for an operator.
pub(super) async fn delete_any(
    services: Services,
    caller: Caller,
    input: DeleteAccount,
) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let account = id(&input.account)?;
    erase(&services, &realm, &account).await?;
    tracing::info!(%account, ?realm, %by, "an account was deleted by an operator");
    Ok(DONE)
}

/// Bans the account first, so that it cannot act meanwhile. After a failure the deletion can be repeated.
async fn erase(services: &Services, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
    let store = services.store();
    if store.account(realm, account).await?.is_none() {
        return Err(Failure::new(Kind::NotFound, "not_found", "there is no such account here").at("account"));
    }
    let at_ms = services.time().now_ms();
    if store.ban_of(realm, account, at_ms).await?.is_none() {
        let life_ms = u64::try_from(ACCESS_LIFE.as_millis()).unwrap_or(u64::MAX);
        let until_ms = Some(at_ms.saturating_add(life_ms));
        let (reason, by) = (DELETED.to_owned(), account.to_string());
        store.ban(realm, &Ban { account: account.clone(), reason, by, at_ms, until_ms }).await?;
    }
    services.has_ordered();
    bans::put_out(services, realm, account, services.time().now_s());
    leave_rooms(services, realm, account).await?;
    bans::remove_from_rooms(services, realm, account, DELETED).await?;
    let deleted = store.delete_account(realm, account).await;
    services.has_ordered();
    match deleted {
        // Another request was faster.
        Ok(()) | Err(StoreError::Missing { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes the account leave its rooms, which also ends its part in running games.
async fn leave_rooms(services: &Services, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
    let player = PlayerId::new(account.as_str()).map_err(|error| Failure::defect(&error.to_string()))?;
    let mut after = None;
    loop {
        let page = services.store().rooms_of(realm, account, after.as_deref(), ENTRIES).await?;
        for room in &page.items {
            match rooms::leave_for_good(services, realm, &room.id, player.clone()).await {
                // It left meanwhile, or the room was deleted.
                Err(failure) if LEFT_ALREADY.contains(&failure.code()) => {}
                left => left?,
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

pub(super) async fn export(services: Services, caller: Caller, input: ExportOwn) -> Result<Export, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    part(&services, &realm, &account, input.after.as_deref()).await
}

/// Exports an account's data, for an operator.
pub(super) async fn export_any(
    services: Services,
    caller: Caller,
    input: ExportAccount,
) -> Result<Export, Failure> {
    let realm = services.realm_of(&caller)?;
    part(&services, &realm, &id(&input.account)?, input.after.as_deref()).await
}

/// A page of the export. `after` is `KIND` or `KIND:AFTER`; the kinds follow one another.
async fn part(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    after: Option<&str>,
) -> Result<Export, Failure> {
    let (kind, after) = match after.unwrap_or("account").split_once(':') {
        Some((kind, after)) => (kind, Some(after)),
        None => (after.unwrap_or("account"), None),
    };
    let store = services.store();
    let (kind, entries, more, following) = match kind {
        "account" => {
            let own = accounts::own(services, realm, account).await?.ok_or_else(|| {
                Failure::new(Kind::NotFound, "not_found", "there is no such account here").at("account")
            })?;
            ("account", vec![json(&own)?], None, Some("sign_ins"))
        }
        "sign_ins" => {
            let sign_ins = store.sign_ins_of(realm, account).await?;
            let entries = sign_ins.iter().map(|(since_ms, until_ms)| {
                json(&serde_json::json!({ "last_used_ms": since_ms, "expires_ms": until_ms }))
            });
            ("sign_ins", entries.collect::<Result<_, _>>()?, None, Some("rooms"))
        }
        "rooms" => {
            let page = store.rooms_of(realm, account, after, ENTRIES).await?;
            let entries = page.items.iter().map(|room| stored(&room.summary));
            ("rooms", entries.collect::<Result<_, _>>()?, page.next, Some("inbox"))
        }
        "inbox" => {
            let after = after.map_or(Some(0), |after| after.parse().ok()).ok_or_else(bad_after)?;
            let found = store.read_inbox(realm, account, after, ENTRIES).await?;
            let last = found.notices.last().map(|last| last.seq);
            let more = last.filter(|last| *last < found.newest).map(|last| last.to_string());
            let entries = found.notices.into_iter().map(|notice| json(&inbox::view(notice)?));
            ("inbox", entries.collect::<Result<_, _>>()?, more, Some("matches"))
        }
        "matches" => {
            let page = store.kept_matches(realm, Some(account), after, ENTRIES).await?;
            let entries = page.items.into_iter().map(|kept| json(&KeptView::from(kept)));
            ("matches", entries.collect::<Result<_, _>>()?, page.next, Some("boards"))
        }
        "boards" => {
            let after = after.map(board_season).transpose()?;
            let page = store.entries_of(realm, account, after, ENTRIES).await?;
            let entries = page.items.into_iter().map(|own| json(&OwnEntryView::read(own)?));
            ("boards", entries.collect::<Result<_, _>>()?, page.next, Some("saves"))
        }
        "saves" => {
            let after = after.map(|after| after.parse().map_err(|_| bad_after())).transpose()?;
            let page = store.saves_of(realm, account, after).await?;
            let entries = page.items.into_iter().map(|save| json(&saves::exported(save)));
            ("saves", entries.collect::<Result<_, _>>()?, page.next, Some("objects"))
        }
        _ => part_of_progress(services, realm, account, (kind, after)).await?,
    };
    let next = more.map(|more| format!("{kind}:{more}")).or_else(|| following.map(str::to_owned));
    Ok(Export { kind, entries, next })
}

/// The kind of a page, its entries, `after` for its next page, and the kind that follows.
type KindPage = (&'static str, Vec<Box<RawValue>>, Option<String>, Option<&'static str>);

/// A page of the kinds that follow saves.
async fn part_of_progress(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    (kind, after): (&str, Option<&str>),
) -> Result<KindPage, Failure> {
    let store = services.store();
    Ok(match kind {
        "objects" => {
            let page = store.objects_of(realm, None, Some(account), None, after).await?;
            let entries = page.items.into_iter().map(|object| json(&storage::view(object)?));
            ("objects", entries.collect::<Result<_, _>>()?, page.next, Some("statistics"))
        }
        "statistics" => {
            let page = store.statistics_of(realm, account, after, SMALL_ENTRIES).await?;
            let entries = page.items.into_iter().map(|own| json(&progress::exported_statistic(own)));
            ("statistics", entries.collect::<Result<_, _>>()?, page.next, Some("achievements"))
        }
        "achievements" => {
            let page = store.progress_of(realm, account, after, SMALL_ENTRIES).await?;
            let entries = page.items.into_iter().map(|own| json(&progress::exported(own)));
            ("achievements", entries.collect::<Result<_, _>>()?, page.next, Some("ratings"))
        }
        "ratings" => {
            let ratings = store.ratings_of(realm, account).await?;
            let entries = ratings.iter().map(|own| json(&ratings::exported(own)));
            ("ratings", entries.collect::<Result<_, _>>()?, None, Some("friends"))
        }
        "friends" => {
            let page = store.friends_of(realm, account, None, after, SMALL_ENTRIES).await?;
            let entries = page.items.into_iter().map(|friend| json(&friends::exported(friend)));
            ("friends", entries.collect::<Result<_, _>>()?, page.next, Some("messages"))
        }
        "messages" => {
            let page = store.messages_of(realm, account, after, SMALL_ENTRIES).await?;
            let entries = page.items.into_iter().map(|said| json(&rooms::exported(said)?));
            ("messages", entries.collect::<Result<_, _>>()?, page.next, None)
        }
        _ => return Err(bad_after()),
    })
}

/// The board and the season that a part has ended with: `NUMBER-SEASON`.
fn board_season(after: &str) -> Result<(BoardNumber, Season), Failure> {
    let (board, season) = after.split_once('-').ok_or_else(bad_after)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| bad_after());
    Ok((BoardNumber(number(board)?), Season(number(season)?)))
}

fn bad_after() -> Failure {
    Failure::field("after", "it must be what the part before gave as `next`")
}

fn json(what: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    serde_json::value::to_raw_value(what).map_err(|error| Failure::defect(&error.to_string()))
}

fn stored(bytes: &[u8]) -> Result<Box<RawValue>, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::defect(&format!("a summary cannot be read: {error}")))
}

fn id(text: &str) -> Result<AccountId, Failure> {
    AccountId::new(text).map_err(|error| Failure::field("account", error.to_string()))
}
