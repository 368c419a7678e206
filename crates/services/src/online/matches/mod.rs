//! Matches: the list of open ones, and logs of kept ones.

mod entry;
mod keeping;

pub(super) use keeping::{begin, keep, look_after};

use super::accounts::{DONE, Done};
use super::failure::{Failure, Kind};
use super::live::{self, Live};
use super::page::Limit;
use super::table::Caller;
use super::{Services, live_elsewhere};
use crate::store::{KeptMatch, LiveListing, LiveQuery, MatchQuery, Role};
use entry::EntryView;
use parlor_hub::{MatchFilter, RoomQuery, RoomSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Log end: the store was unavailable.
const CUT_UNAVAILABLE: &str = "store unavailable";
/// Log end: the store was full.
const CUT_STORE_FULL: &str = "store full";
/// Log end: the store rejected an entry, which is a defect.
const CUT_REFUSED: &str = "defect";

/// Which matches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListMatches {
    /// Those under this label alone.
    label: Option<String>,
    /// Those with so many members at least.
    #[serde(default)]
    min_members: usize,
    /// Those with so many at most.
    max_members: Option<usize>,
    /// Only those that have a seat left.
    #[serde(default)]
    open_seats: bool,
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// Which part of a list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListKept {
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// Which part of a log.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadLog {
    /// The match's id.
    #[serde(rename = "match")]
    id: String,
    /// The number of the first entry; what the last part gave as `next`.
    #[serde(default)]
    from: u64,
    /// How many entries at most; there may be fewer, if they are long.
    #[serde(default)]
    limit: Limit,
}

/// A match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedMatch {
    /// Its id.
    #[serde(rename = "match")]
    id: String,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Matches {
    /// Shard by shard, in the order of their ids.
    matches: Vec<LiveMatch>,
    /// What to give as `after` for the next part, which may be empty; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A match that can be joined.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LiveMatch {
    /// Its id, by which it is joined.
    id: String,
    /// What it is listed under.
    label: String,
    /// Members in it.
    members: usize,
    /// Members that it may have.
    max_members: u16,
    /// When it opened, in milliseconds since 1970.
    opened_at_ms: u64,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct KeptMatches {
    /// The newest first.
    matches: Vec<KeptView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A match that is kept.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct KeptView {
    /// Its id.
    id: String,
    /// What it was listed under.
    label: String,
    /// When it opened, in milliseconds since 1970.
    opened_at_ms: u64,
    /// When it ended; null as long as it goes on.
    ended_at_ms: Option<u64>,
    /// How it ended: `ended` if its last member left or its server said goodbye, `server_ended` if its server was gone without a word, so
    /// that the newest moments may be missing; null as long as it goes on.
    ending: Option<&'static str>,
    /// Entries of its log.
    entries: u64,
    /// Bytes of them.
    bytes: u64,
    /// Why the log ends before the match does, as its last entry says; null if it does not.
    cut: Option<String>,
}

/// A part of a log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Log {
    /// The match.
    #[serde(rename = "match")]
    of: KeptView,
    /// What happened in it, in the order in which it did.
    entries: Vec<EntryView>,
    /// What to give as `from` for the next part; missing if there are no more entries yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub(super) async fn list(services: Services, caller: Caller, input: ListMatches) -> Result<Matches, Failure> {
    let realm = services.realm_of(&caller)?;
    let after = input.after.as_deref().map(|text| live::code("after", text)).transpose()?;
    if let Some(cluster) = services.cluster() {
        let matches = MatchQuery {
            label: input.label,
            members_min: input.min_members as u64,
            members_max: input.max_members.map(|most| most as u64),
            has_seat: input.open_seats,
        };
        let query = live_elsewhere::query(&realm, after, input.limit.rows());
        let query = LiveQuery { matches: Some(matches), ..query };
        let (matches, next) = cluster.directory().list(query).await?;
        return Ok(Matches { matches: matches.into_iter().map(LiveMatch::from).collect(), next });
    }
    let matches = Some(MatchFilter {
        label: input.label,
        members_min: input.min_members,
        members_max: input.max_members,
        has_seat: input.open_seats,
    });
    let query = RoomQuery { matches, after, ..live::query(&realm, input.limit.rows()) };
    let live = services.live();
    let page = live.rooms(query).await?;
    let matches = page.rooms.iter().map(|room| seen(room, live)).collect();
    Ok(Matches { matches, next: page.next.map(|code| code.as_str().to_owned()) })
}

/// Lists kept matches: a player's own, or for operators all of the environment.
pub(super) async fn kept(
    services: Services,
    caller: Caller,
    input: ListKept,
) -> Result<KeptMatches, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let player = Some(account).filter(|_| is_player(&caller));
    let limit = input.limit.rows();
    let page = services.store().kept_matches(&realm, player.as_ref(), input.after.as_deref(), limit).await?;
    Ok(KeptMatches { matches: page.items.into_iter().map(KeptView::from).collect(), next: page.next })
}

pub(super) async fn log(services: Services, caller: Caller, input: ReadLog) -> Result<Log, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let id = live::code("match", &input.id)?;
    let (store, id) = (services.store(), id.as_str());
    // Players who did not take part get the same answer as for an unknown match.
    if is_player(&caller) && !store.was_in_match(&realm, id, &account).await? {
        return Err(no_such_match());
    }
    let limit = input.limit.rows();
    let kept = store.kept_match(&realm, id).await?.ok_or_else(no_such_match)?;
    let stored = store.match_log(&realm, id, input.from, limit).await?;
    let mut entries = stored.iter().map(entry::view).collect::<Result<Vec<_>, _>>()?;
    let after_ms = stored.last().map_or(kept.opened_ms, |last| last.at_ms);
    // Entries stored between the two queries belong to the next page.
    let end = stored.last().map_or(input.from, |last| last.number.saturating_add(1));
    let is_all = end >= kept.entries;
    if is_all
        && input.from <= kept.entries
        && let Some(why) = &kept.cut
    {
        entries.push(entry::cut(kept.entries, after_ms, why));
    }
    let next = (!is_all).then_some(end);
    Ok(Log { of: kept.into(), entries, next })
}

pub(super) async fn forget(services: Services, caller: Caller, input: NamedMatch) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let id = live::code("match", &input.id)?;
    services.store().forget_match(&realm, id.as_str()).await.map_err(|error| match error {
        crate::store::StoreError::Missing { .. } => no_such_match(),
        error => error.into(),
    })?;
    tracing::info!(%id, %by, "a kept match was forgotten");
    Ok(DONE)
}

fn is_player(caller: &Caller) -> bool {
    caller.identity.as_ref().is_none_or(|identity| identity.role == Role::Player)
}

fn no_such_match() -> Failure {
    let sentence =
        "no match that is kept has this id, as far as you may know: match.kept lists those that you were in";
    Failure::new(Kind::NotFound, "no_such_match", sentence).at("match")
}

fn seen(room: &RoomSummary, live: &Live) -> LiveMatch {
    LiveMatch {
        id: room.code.as_str().to_owned(),
        label: room.label.clone(),
        members: room.players,
        max_members: room.max_players,
        opened_at_ms: live.opened_at_ms(room),
    }
}

impl From<LiveListing> for LiveMatch {
    fn from(listing: LiveListing) -> Self {
        LiveMatch {
            id: listing.code,
            label: listing.label,
            members: usize::try_from(listing.counts.players).unwrap_or(usize::MAX),
            max_members: u16::try_from(listing.max_players).unwrap_or(u16::MAX),
            opened_at_ms: listing.opened_ms,
        }
    }
}

impl From<KeptMatch> for KeptView {
    fn from(kept: KeptMatch) -> Self {
        KeptView {
            id: kept.id,
            label: kept.label,
            opened_at_ms: kept.opened_ms,
            ended_at_ms: kept.ended.map(|(at_ms, _)| at_ms),
            ending: kept.ended.map(|(_, ending)| ending.as_str()),
            entries: kept.entries,
            bytes: kept.bytes,
            cut: kept.cut,
        }
    }
}
