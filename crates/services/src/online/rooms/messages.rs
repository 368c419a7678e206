//! The history of a turn room: the last messages that players sent.

use super::handlers::{actor, room};
use super::look_at;
use crate::online::Services;
use crate::online::failure::Failure;
use crate::online::page::Limit;
use crate::online::table::Caller;
use crate::store::{AccountId, NewMessage, StoredMessage};
use parlor_turn::{PlayerId, Said};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Which part of a room's history.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadMessages {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// A part of a room's history.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Messages {
    /// The newest first.
    messages: Vec<MessageView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A message of a room.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RoomMessage")]
pub(crate) struct MessageView {
    /// Its number in the room, from 1.
    number: u64,
    /// When it was sent, in milliseconds since 1970.
    at_ms: u64,
    /// The player that sent it.
    #[schemars(with = "PlayerId")]
    player: String,
    /// The player's name at that time.
    name: String,
    /// Its type, defined by the game.
    #[serde(rename = "type")]
    kind: String,
    /// The message.
    #[schemars(with = "Value")]
    body: Box<RawValue>,
}

/// A message of an account, in the account's export.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ExportedMessage {
    room: String,
    #[serde(flatten)]
    message: MessageView,
}

/// The part of a message that the store keeps as it is.
#[derive(Serialize, Deserialize)]
struct Kept<B> {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    body: B,
}

pub(crate) async fn messages(
    services: Services,
    caller: Caller,
    input: ReadMessages,
) -> Result<Messages, Failure> {
    let (realm, actor) = actor(&services, &caller)?;
    let room = room(&input.room)?;
    look_at(&services, &realm, &room, &actor, |_| Ok(())).await?;
    let (after, limit) = (input.after.as_deref(), input.limit.rows());
    let page = services.store().messages(&realm, &room, after, limit).await?;
    let messages = page.items.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(Messages { messages, next: page.next })
}

/// A message as the store keeps it.
pub(super) fn stored(said: &Said, at_ms: u64) -> Result<NewMessage, Failure> {
    let kept = Kept { name: said.name.clone(), kind: said.kind.clone(), body: &said.body };
    let body = serde_json::to_vec(&kept).map_err(|error| Failure::defect(&error.to_string()))?;
    let account = AccountId::new(said.player.as_str())?;
    Ok(NewMessage { number: said.number, at_ms, account, body })
}

fn view(message: NewMessage) -> Result<MessageView, Failure> {
    let kept: Kept<Box<RawValue>> = serde_json::from_slice(&message.body)
        .map_err(|error| Failure::defect(&format!("message {} cannot be read: {error}", message.number)))?;
    Ok(MessageView {
        number: message.number,
        at_ms: message.at_ms,
        player: message.account.to_string(),
        name: kept.name,
        kind: kept.kind,
        body: kept.body,
    })
}

/// A message of an account, for its export.
pub(crate) fn exported(said: StoredMessage) -> Result<ExportedMessage, Failure> {
    Ok(ExportedMessage { room: said.room.to_string(), message: view(said.message)? })
}
