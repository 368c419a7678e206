//! A player's inbox: notices of its rooms, in order, until the player acknowledges them.

use super::Services;
use super::accounts::{DONE, Done};
use super::failure::Failure;
use super::page::Limit;
use super::table::Caller;
use crate::store::Notice;
use parlor_turn::NoticeKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Which part of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInbox {
    /// Only what has a greater number than this.
    #[serde(default)]
    after: u64,
    /// How many at most; there are fewer if they are long.
    #[serde(default)]
    limit: Limit,
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
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct NoticeView {
    /// One more than the notice before has.
    pub(super) seq: u64,
    /// What kind of thing; docs/turn-rooms.md lists them. `push` is a text for people.
    #[schemars(schema_with = "kinds")]
    pub(super) kind: String,
    /// When, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// What it says.
    #[schemars(with = "NoticeContent<'static, Map<String, Value>>")]
    pub(super) notice: Box<RawValue>,
}

/// What a notice says, as inboxes and webhooks have it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Told")]
pub(super) struct NoticeContent<'a, B> {
    /// The room.
    pub(super) room: &'a parlor_turn::RoomId,
    /// Counts the room's notices: who hears of one twice knows it by this.
    pub(super) seq: u64,
    /// The rest: docs/turn-rooms.md has the fields of each kind.
    pub(super) body: B,
}

/// The kind of a notice that is a text for people.
pub(super) const PUSH: &str = "push";

fn kinds(_: &mut SchemaGenerator) -> Schema {
    let kinds: Vec<&str> = NoticeKind::ALL.iter().map(|kind| kind.as_str()).chain([PUSH]).collect();
    json_schema!({ "type": "string", "enum": kinds })
}

pub(super) async fn read(services: Services, caller: Caller, input: ReadInbox) -> Result<InboxView, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    let inbox = services.store().read_inbox(&realm, &player, input.after, input.limit.rows()).await?;
    let next = inbox.notices.last().map(|last| last.seq).filter(|last| *last < inbox.newest);
    let notices = inbox.notices.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(InboxView { notices, newest: inbox.newest, dropped: inbox.dropped, next })
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

pub(super) fn view(notice: Notice) -> Result<NoticeView, Failure> {
    let body = serde_json::from_slice(&notice.body);
    let body = body.map_err(|error| Failure::defect(&format!("a stored notice is no JSON: {error}")))?;
    Ok(NoticeView { seq: notice.seq, kind: notice.kind, at_ms: notice.at_ms, notice: body })
}
