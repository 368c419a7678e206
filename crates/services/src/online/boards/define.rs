//! What operators do with boards.

use super::{Defined, RealmBoards, board_name, no_such_board};
use crate::online::Services;
use crate::online::accounts::{DONE, Done};
use crate::online::failure::Failure;
use crate::online::table::Caller;
use crate::store::{StoreError, StoredBoard};
use parlor_server::realm::Realm;
use parlor_social::limits::NAME_BYTES_MAX;
use parlor_social::{Board, Name, Schedule, Season, SeasonClock};
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
    let schedule = input
        .definition
        .check()
        .map_err(|error| Failure::field(format!("definition.{}", error.field), error.sentence))?;
    let board = (&input.definition, schedule.as_ref());
    let defined = put(&services, &realm, &name, board, input.version).await?;
    tracing::info!(board = %name, ?realm, %by, version = defined.version, "a board was defined");
    Ok(DefinedBoard { version: defined.version })
}

/// Stores a definition, and remembers it.
async fn put(
    services: &Services,
    realm: &Realm,
    name: &Name,
    (board, schedule): (&Board, Option<&Schedule>),
    version: Option<u64>,
) -> Result<Arc<Defined>, Failure> {
    let defining = services.boards().cache.change().await;
    let known = services.boards().of_defining(services, realm, &defining).await?;
    let (document, now_ms) = (to_document(board)?, services.time().now_ms());
    // The season goes on, whatever the schedule says.
    let running = known.get(name).map_or(Season(0), |before| before.season(now_ms).0);
    let (_, ends_ms) = SeasonClock::after(running, now_ms).season(schedule, now_ms);
    let at = (now_ms, running, ends_ms.filter(|_| board.tells()));
    let stored = services.store().put_board(realm, name, document, version, at).await;
    remembered(services, realm, &known, stored)
}

/// A board to which any player may submit, which is made if there is none of this name. Whoever asks is charged
/// before it is made.
pub(super) async fn make(
    services: &Services,
    realm: &Realm,
    name: &Name,
    charge: impl FnOnce() -> Result<(), Failure>,
) -> Result<Arc<Defined>, Failure> {
    let defining = services.boards().cache.change().await;
    let known = services.boards().of_defining(services, realm, &defining).await?;
    if let Some(defined) = known.get(name) {
        // Another score was faster.
        return Ok(Arc::clone(defined));
    }
    charge()?;
    let (document, now_ms) = (to_document(&Board::of_players())?, services.time().now_ms());
    let stored = services.store().make_board(realm, name, document, now_ms).await;
    remembered(services, realm, &known, stored)
}

fn to_document(board: &Board) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(board).map_err(|error| Failure::defect(&error.to_string()))
}

/// Remembers a definition, or forgets what is doubtful after its failure.
fn remembered(
    services: &Services,
    realm: &Realm,
    known: &RealmBoards,
    stored: Result<StoredBoard, StoreError>,
) -> Result<Arc<Defined>, Failure> {
    let boards = services.boards();
    let stored =
        stored.inspect_err(|error| boards.cache.doubt(realm, error)).map_err(|error| match error {
            error @ StoreError::Invalid { .. } => Failure::from(error).at("definition"),
            error => error.into(),
        })?;
    let defined = Arc::new(Defined::read(&stored)?);
    let mut known = known.clone();
    known.insert(stored.name, Arc::clone(&defined));
    boards.cache.remember(realm, known);
    Ok(defined)
}

pub(crate) async fn delete(services: Services, caller: Caller, input: DeleteBoard) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let boards = services.boards();
    let name = board_name(&input.board)?;
    let defining = boards.cache.change().await;
    let mut known = boards.of_defining(&services, &realm, &defining).await?.as_ref().clone();
    let deleted = services.store().delete_board(&realm, &name, services.time().now_ms()).await;
    if let Some(gone) = known.remove(&name) {
        boards.index().forget(gone.number);
    }
    deleted.inspect_err(|error| boards.cache.doubt(&realm, error)).map_err(|error| match error {
        StoreError::Missing { .. } => no_such_board(&input.board),
        error => error.into(),
    })?;
    boards.cache.remember(&realm, known);
    tracing::info!(board = %name, ?realm, %by, "a board was deleted");
    Ok(DONE)
}
