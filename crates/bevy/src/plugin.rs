//! The plugin, and the order of work in a frame.

use crate::actions::{Wanted, act, show_acted};
use crate::drive::{Ticked, drive};
use crate::entities::{EntityMap, forget};
use crate::messages;
use crate::prediction::set_back;
use crate::publish::{Gone, despawn, spawn, transfer};
use crate::registry::Registry;
use crate::room::{in_room, is_authority};
use crate::schedule::{NetTick, ParlorSet, Prepare, PrepareSet, Publish, PublishSet};
use bevy_app::{App, Plugin, PreUpdate};
use bevy_ecs::schedule::IntoScheduleConfigs;
use bevy_ecs::schedule::common_conditions::not;

/// Connects a Bevy app to a room. See the [crate's documentation](crate) for a whole program.
#[derive(Clone, Debug)]
pub struct ParlorPlugin {
    app: String,
}

impl ParlorPlugin {
    /// The plugin for the game `app`. Rooms of different games never meet.
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
            .init_resource::<Wanted>()
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
                (PrepareSet::SetBack, PrepareSet::Act, PrepareSet::Sample, PrepareSet::HandOut)
                    .chain()
                    .run_if(in_room),
            )
            .add_systems(Prepare, set_back.in_set(PrepareSet::SetBack))
            .add_systems(Prepare, (act, show_acted).chain().in_set(PrepareSet::Act));
    }
}
