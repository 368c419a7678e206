//! Changes of a component by a command.

use crate::registry::{Registry, Shared};
use bevy_ecs::prelude::{EntityCommands, EntityWorldMut};

/// Changes a replicated component from a system that does not query it.
pub trait MutateCommands {
    /// Changes a component: to a new state, or a part of it in place. An entity without it is left as it is. A
    /// component that no call of [`replicate`](crate::ReplicateApp::replicate) names changes in this app alone; the
    /// log (`tracing`) warns of it once.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use parlor::schema::Kind;
    /// use parlor_bevy::MutateCommands;
    ///
    /// # #[derive(Component)]
    /// # struct Fuel { litres: f32 }
    /// # parlor::replicated!(Fuel as "fuel" => { litres: Kind::float(0.0, 100.0, 0.1) });
    /// fn refuel(mut commands: Commands, tanks: Query<Entity, With<Fuel>>) {
    ///     for tank in &tanks {
    ///         commands.entity(tank).mutate(|fuel: &mut Fuel| fuel.litres += 1.0);
    ///     }
    /// }
    /// # bevy_ecs::system::assert_is_system(refuel);
    /// ```
    fn mutate<C: Shared>(&mut self, change: impl FnOnce(&mut C) + Send + 'static) -> &mut Self;
}

impl MutateCommands for EntityCommands<'_> {
    fn mutate<C: Shared>(&mut self, change: impl FnOnce(&mut C) + Send + 'static) -> &mut Self {
        self.queue(move |mut entity: EntityWorldMut<'_>| {
            let is_news = entity.world_scope(|world| {
                world.get_resource_mut::<Registry>().is_some_and(|mut registry| registry.misses::<C>())
            });
            if is_news {
                tracing::warn!(
                    "the component \"{}\" was changed and is not replicated: call app.replicate for it in every app",
                    C::NAME
                );
            }
            if let Some(mut component) = entity.get_mut::<C>() {
                change(&mut component);
            }
        })
    }
}
