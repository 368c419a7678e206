//! One frame: takes in what arrived, then runs the steps that are due.

use crate::actions;
use crate::entities::leave_entities;
use crate::messages::{self, RoomEvent};
use crate::receive;
use crate::room::RoomResource;
use crate::schedule::{NetTick, Prepare, Publish};
use bevy_ecs::prelude::{Resource, World};
use parlor::Event;

/// Whether the last frame ran a new step (not a replay), or no room is open that could run one.
#[derive(Debug, Resource)]
pub(crate) struct Ticked(bool);

impl Default for Ticked {
    fn default() -> Self {
        Ticked(true)
    }
}

/// Drives the room, if the app is in one.
pub(crate) fn drive(world: &mut World) {
    if world.resource::<Ticked>().0 {
        messages::forget_old(world);
    }
    while let Some(event) = poll(world) {
        receive::take(world, &event);
        let is_over = matches!(event, Event::Closed(_));
        world.write_message(RoomEvent(event));
        if is_over {
            world.remove_resource::<RoomResource>();
            leave_entities(world);
        }
    }
    receive::changes(world);
    actions::publish_before_actions(world);
    let mut has_ticked = false;
    while is_due(world) {
        has_ticked |= world.get_resource::<RoomResource>().is_some_and(|room| !room.is_replay());
        world.run_schedule(Prepare);
        world.run_schedule(NetTick);
        world.run_schedule(Publish);
    }
    let has_room = world.contains_resource::<RoomResource>();
    world.resource_mut::<Ticked>().0 = has_ticked || !has_room;
}

fn poll(world: &mut World) -> Option<Event> {
    world.get_resource_mut::<RoomResource>()?.poll()
}

fn is_due(world: &mut World) -> bool {
    world.get_resource_mut::<RoomResource>().is_some_and(|mut room| room.begin_step())
}
