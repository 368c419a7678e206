//! What operators do with boards.

use super::{Defined, RealmBoards, board_name, no_such_board};
use crate::online::Services;
use crate::online::accounts::{DONE, Done};
use crate::online::failure::Failure;
use crate::online::table::Caller;
use crate::store::StoreError;
use parlor_server::realm::Realm;
use parlor_social::limits::NAME_BYTES_MAX;
use parlor_social::{Board, BoardName, Season};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A board to define or to change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DefineBoard {
    /// Its name: letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    board: String,
    /// The version that is changed, 0 for a board that there is not yet; any if missing.
    version: Option<u64>,
    /// All of its definition. Entries stay as they are.
    #[serde(default)]
    definition: Board,
}

/// A board that was defined.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DefinedBoard {
    /// Counts its definitions, from 1.
    version: u64,
}

/// A board to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteBoard {
    /// Its name.
    board: String,
}

pub(crate) async fn define(
    services: Services,
    caller: Caller,
    input: DefineBoard,
) -> Result<DefinedBoard, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let name = board_name(&input.board)?;
    input
        .definition
        .check()
        .map_err(|error| Failure::field(format!("definition.{}", error.field), error.sentence))?;
    let defined = put(&services, &realm, &name, &input.definition, input.version).await?;
    tracing::info!(board = %name, ?realm, %by, version = defined.version, "a board was defined");
    Ok(DefinedBoard { version: defined.version })
}

/// Stores a definition, and remembers it.
pub(super) async fn put(
    services: &Services,
    realm: &Realm,
    name: &BoardName,
    board: &Board,
    version: Option<u64>,
) -> Result<Arc<Defined>, Failure> {
    let boards = services.boards();
    let document = serde_json::to_vec(board).map_err(|error| Failure::defect(&error.to_string()))?;
    let before = boards.of(services, realm).await?.get(name).cloned();
    let _defining = boards.defining.lock().await;
    let stored = services.store().put_board(realm, name, document, version, services.time().now_ms()).await?;
    // The season goes on, whatever the schedule says.
    let newest = before.filter(|before| before.number == stored.number);
    let newest = newest.map_or(Season(0), |before| before.season(services.time().now_ms()).0);
    let defined = Arc::new(Defined::read(&stored, newest)?);
    let mut known: RealmBoards = boards.known(realm).map(|known| known.as_ref().clone()).unwrap_or_default();
    if boards.known(realm).is_some() {
        known.insert(name.clone(), Arc::clone(&defined));
        boards.remember(realm, known);
    }
    Ok(defined)
}

pub(crate) async fn delete(services: Services, caller: Caller, input: DeleteBoard) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let boards = services.boards();
    // An environment's boards are known before one of them is taken out.
    boards.of(&services, &realm).await?;
    let name = board_name(&input.board)?;
    let _defining = boards.defining.lock().await;
    let deleted = services.store().delete_board(&realm, &name, services.time().now_ms()).await;
    let number = deleted.map_err(|error| match error {
        StoreError::Missing { .. } => no_such_board(&input.board),
        error => error.into(),
    })?;
    if let Some(known) = boards.known(&realm) {
        let mut known = known.as_ref().clone();
        known.remove(&name);
        boards.remember(&realm, known);
    }
    boards.index().forget(number);
    tracing::info!(board = %name, ?realm, %by, "a board was deleted");
    Ok(DONE)
}
