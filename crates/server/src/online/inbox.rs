//! A player's inbox: what happened in its rooms, in order, until the player says that it knows.

use super::Services;
use super::accounts::{DONE, Done};
use super::failure::Failure;
use super::table::Caller;
use crate::store::Notice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many notices are given at once if nobody says how many.
const PAGE: u64 = 100;

/// Which part of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInbox {
    /// Only what has a greater number than this.
    #[serde(default)]
    after: u64,
    /// How many at most.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u64,
}

fn page() -> u64 {
    PAGE
}

/// What the player knows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Acknowledge {
    /// All notices up to the one with this number.
    up_to: u64,
}

/// A part of an inbox.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct InboxView {
    /// In order.
    notices: Vec<NoticeView>,
    /// The number of the newest notice that there ever was; 0 if there was none.
    newest: u64,
    /// How many went unread because too many waited.
    dropped: u64,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct NoticeView {
    /// One more than the notice before has.
    pub(super) seq: u64,
    /// What kind of thing; docs/turn-rooms.md lists them.
    pub(super) kind: String,
    /// When, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// The room, and what else belongs to it.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(super) notice: Value,
}

pub(super) async fn read(services: Services, caller: Caller, input: ReadInbox) -> Result<InboxView, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
    let inbox = services.store().read_inbox(&realm, &player, input.after, limit).await?;
    let notices = inbox.notices.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(InboxView { notices, newest: inbox.newest, dropped: inbox.dropped })
}

pub(super) async fn acknowledge(
    services: Services,
    caller: Caller,
    input: Acknowledge,
) -> Result<Done, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    services.store().acknowledge(&realm, &player, input.up_to).await?;
    Ok(DONE)
}

fn view(notice: Notice) -> Result<NoticeView, Failure> {
    let body = serde_json::from_slice(&notice.body);
    let body = body.map_err(|error| Failure::defect(&format!("a stored notice is no JSON: {error}")))?;
    Ok(NoticeView { seq: notice.seq, kind: notice.kind, at_ms: notice.at_ms, notice: body })
}
