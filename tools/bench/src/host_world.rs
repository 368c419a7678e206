//! A host's world in which every entity moves with each step.

use super::stand::Walker;
use parlor::schema::{Schema, Transform};
use parlor_client_core::RoomCore;
use parlor_proto::Instant;
use std::sync::Arc;

/// What a room with such a world is made of.
///
/// # Errors
/// It cannot be built.
pub(crate) fn schema() -> anyhow::Result<Arc<Schema>> {
    Ok(Arc::new(Schema::builder().replicate::<Walker>().build()?))
}

/// Moves all `count` walkers to where they are at `tick`; spawns those that are missing.
///
/// # Errors
/// The room is over, or full for the moment.
pub(crate) fn move_walkers(core: &mut RoomCore, count: usize, tick: u32, now: Instant) -> anyhow::Result<()> {
    let mut world = core.world(now)?;
    let mut walkers = world.entities();
    while walkers.len() < count {
        walkers.push(world.spawn(None)?);
    }
    for (number, walker) in (0_u16..).zip(walkers) {
        let along = f32::from(u16::try_from(tick % 4_096).unwrap_or_default()) / 16.0;
        let position = [along + f32::from(number), f32::from(number) * 8.0, 1.0];
        let place = Transform { position, rotation: [0.0, 0.0, 0.0, 1.0] };
        world.insert(walker, &Walker { place })?;
    }
    Ok(())
}
