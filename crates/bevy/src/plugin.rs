//! The plugin itself, and what a frame does.

use crate::drive::{Ticked, drive};
use crate::entities::{EntityMap, forget};
use crate::messages;
use crate::prediction::set_back;
use crate::publish::{Gone, despawn, spawn, transfer};
use crate::registry::Registry;
use crate::room::{in_room, is_authority};
use bevy_app::{App, Plugin, PreUpdate};
use bevy_ecs::schedule::common_conditions::not;
use bevy_ecs::schedule::{IntoScheduleConfigs, ScheduleLabel, SystemSet};

/// One fixed step of the room. Its systems run once for each step that is due, at most eight in a row and then no more
/// in this frame, in `PreUpdate`. It does not run while no room is open.
///
/// Everything that the game simulates belongs here: on the authority, what these systems change is sent after each run.
/// Where something is [predicted](crate::Replicating::predicted), steps that turned out otherwise are run again first:
/// [`not_replaying`](crate::not_replaying) tells them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub struct NetTick;

/// What comes before each [`NetTick`]: where the step starts from, and what players want in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub(crate) struct Prepare;

/// In which order a step is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub(crate) enum PrepareSet {
    /// Components become what the step starts from.
    SetBack,
    /// This app's player is asked what it wants.
    Sample,
    /// Entities are given what their owners want.
    HandOut,
}

/// What is done after each [`NetTick`]: what changed goes to the room, what the authority decided or what a member predicts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub(crate) struct Publish;

/// When the plugin works, in `PreUpdate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub enum ParlorSet {
    /// What came is taken, then the steps that are due run.
    Drive,
    /// [`Interpolated`](crate::Interpolated) components get the values of this frame.
    Interpolate,
}

/// In which order things go to the room after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub(crate) enum PublishSet {
    /// Which entities there are, and whose.
    Entities,
    /// What they are made of.
    Components,
    /// On a member: what it makes of its own.
    Predicted,
}

/// Puts a room's world into a Bevy app. See the [crate's documentation](crate) for a whole program.
#[derive(Clone, Debug)]
pub struct ParlorPlugin {
    app: String,
}

impl ParlorPlugin {
    /// The plugin for the game `app`. Rooms of different games never meet.
    #[must_use]
    pub fn app(app: &str) -> Self {
        ParlorPlugin { app: app.to_owned() }
    }
}

impl Plugin for ParlorPlugin {
    fn build(&self, app: &mut App) {
        messages::init(app.world_mut());
        app.insert_resource(Registry::new(&self.app))
            .init_resource::<EntityMap>()
            .init_resource::<Gone>()
            .init_resource::<Ticked>()
            .init_schedule(Prepare)
            .init_schedule(NetTick)
            .init_schedule(Publish)
            .add_observer(forget)
            .configure_sets(PreUpdate, (ParlorSet::Drive, ParlorSet::Interpolate.run_if(in_room)).chain())
            .add_systems(PreUpdate, drive.in_set(ParlorSet::Drive))
            .configure_sets(
                Publish,
                (PublishSet::Entities, PublishSet::Components).chain().run_if(is_authority),
            )
            .configure_sets(Publish, PublishSet::Predicted.run_if(in_room).run_if(not(is_authority)))
            .add_systems(Publish, (despawn, spawn, transfer).chain().in_set(PublishSet::Entities))
            .configure_sets(
                Prepare,
                (PrepareSet::SetBack, PrepareSet::Sample, PrepareSet::HandOut).chain().run_if(in_room),
            )
            .add_systems(Prepare, set_back.in_set(PrepareSet::SetBack));
    }
}
