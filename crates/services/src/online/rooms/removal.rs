//! Deletion of a turn room: by its creator, and by operators.

use super::{handlers, load};
use crate::online::Services;
use crate::online::accounts::{DONE, Done};
use crate::online::failure::{Failure, Kind};
use crate::online::table::Caller;
use parlor_turn::{Actor, Phase};

/// The creator may delete a room once its game has ended, or while no other player sits in it; an operator
/// unless a game is running.
pub(crate) async fn delete(
    services: Services,
    caller: Caller,
    input: handlers::InRoom,
) -> Result<Done, Failure> {
    let (realm, actor) = handlers::actor(&services, &caller)?;
    let id = handlers::room(&input.room)?;
    let room_lock = services.room_locks().of(&realm, &id, matches!(actor, Actor::Server))?;
    let mut held = room_lock.enter().await;
    let room = match held.take() {
        Some(room) => room,
        None => load(&services, &room_lock, &realm, &id).await?,
    };
    if let Actor::Player(player) = &actor {
        let owner = services.store().room_owner(&realm, &id).await?;
        let is_owner = owner.is_some_and(|owner| owner.as_str() == player.as_str());
        if !is_owner {
            *held = Some(room);
            let sentence = "only whoever opened the room, or an operator, deletes it: leave it instead";
            return Err(Failure::new(Kind::Forbidden, "not_host", sentence));
        }
    }
    let has_others = match &actor {
        Actor::Player(player) => room.players().iter().any(|seated| seated.id != *player),
        Actor::Server => false,
    };
    let is_over = room.phase() == Phase::Ended || room.players().is_empty();
    if !is_over && (room.phase() == Phase::Playing || has_others) {
        *held = Some(room);
        let sentence =
            "others sit in this room, or its game goes on: end the game first, or leave the room to them";
        return Err(Failure::new(Kind::Conflict, "wrong_phase", sentence));
    }
    services.store().delete_room(&realm, &id).await?;
    services.subscriptions().end_room(&services, &realm, &id);
    if let Some(to) = services.hints() {
        to.tell_room_gone(&realm, &id);
    }
    tracing::info!(%id, ?realm, "a turn room was deleted");
    Ok(DONE)
}
