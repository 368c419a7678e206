//! Predicted actions in worlds that have them: each guest has a ship, and counts with it.

use super::{is_usual, refused};
use crate::model::{Model, Verdict};
use crate::peer::PeerId;
use parlor_client_core::{Acting, Action, ActionError, Options, RoomCore, RoomError};
use parlor_proto::{EntityId, Instant, MemberId};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ship {
    count: u32,
}
replicated!(Ship as "ship" => { count: Kind::int(0, 1_000_000) });

/// Counts one further. The host alone refuses unlucky ones, after the write.
#[derive(Serialize, Deserialize)]
struct Count {
    is_unlucky: bool,
}

impl Action for Count {
    const NAME: &'static str = "count";

    fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
        let entity = world.entity();
        let mut ship: Ship = world.component(entity)?.ok_or("no_ship")?;
        ship.count += 1;
        world.insert(entity, &ship)?;
        if self.is_unlucky && world.is_host() { Err("unlucky".into()) } else { Ok(()) }
    }
}

/// The options of a game with ships.
pub(super) fn with_ships(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Ship>().build().expect("one component is a schema");
    let mut options =
        Options { schema: Some(Arc::new(schema)), predicted: vec!["ship".to_owned()], ..options };
    options.actions.define::<Count>().expect("it is the only one");
    options
}

fn ships(room: &mut RoomCore, now: Instant) -> Result<Vec<(EntityId, MemberId, u32)>, RoomError> {
    let world = room.world(now)?;
    let mut ships = Vec::new();
    for entity in world.entities() {
        if let (Some(owner), Some(ship)) = (world.owner(entity)?, world.component::<Ship>(entity)?) {
            ships.push((entity, owner, ship.count));
        }
    }
    Ok(ships)
}

/// A host gives each player a ship, and reports their counts.
pub(super) fn keep_ships(model: &mut Model, host: PeerId, room: &mut RoomCore, now: Instant) -> Verdict {
    let mut keep = || -> Result<Vec<(EntityId, MemberId, u32)>, RoomError> {
        let there = ships(room, now)?;
        let players: Vec<MemberId> = room.players().iter().map(|player| player.id).collect();
        for player in players.into_iter().filter(|id| there.iter().all(|(_, owner, _)| owner != id)) {
            let mut world = room.world(now)?;
            let ship = world.spawn(Some(player))?;
            world.insert(ship, &Ship::default())?;
        }
        Ok(there)
    };
    let there = keep().map_err(|error| refused(host, "keep ships", &error))?;
    there.into_iter().try_for_each(|(_, owner, count)| model.counts_ship(host, owner, count))
}

/// A guest counts with its ship.
pub(super) fn count(
    model: &mut Model,
    guest: PeerId,
    room: &mut RoomCore,
    is_unlucky: bool,
    now: Instant,
) -> Verdict {
    let Some(me) = room.local_id() else { return Ok(()) };
    let there = ships(room, now).map_err(|error| refused(guest, "look at ships", &error))?;
    let Some((ship, _, before)) = there.into_iter().find(|(_, owner, _)| *owner == me) else { return Ok(()) };
    match room.act_predicted(ship, &Count { is_unlucky }, now) {
        Ok(()) => {
            let there = ships(room, now).map_err(|error| refused(guest, "look at ships", &error))?;
            let after = there.into_iter().find(|(entity, ..)| *entity == ship).map(|(_, _, count)| count);
            model.makes_action(guest, before, after)
        }
        // Too many wait for the host.
        Err(RoomError::Misuse(parlor_proto::ApiMisuse::Bounds(_))) => Ok(()),
        Err(error) if is_usual(room, &error) => Ok(()),
        Err(error) => Err(refused(guest, "act", &error)),
    }
}
