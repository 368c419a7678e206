//! Registering components, with the systems that replicate them.

use crate::interpolated::{hide, interpolate};
use crate::prediction::predict;
use crate::publish::{Removed, note_removal, publish};
use crate::receive::receive;
use crate::registry::{Registry, ReplicateError, Shared};
use crate::schedule::{ParlorSet, Publish, PublishSet};
use bevy_app::{App, PreUpdate};
use bevy_ecs::schedule::IntoScheduleConfigs;
use std::marker::PhantomData;

/// Registering components.
pub trait ReplicateApp {
    /// Replicates the component `C` of all entities that have [`Replicate`](crate::Replicate). All apps of a game must
    /// register the same components in the same order: the order is the one on the wire, and whoever has another one is not let
    /// into the room.
    ///
    /// ```
    /// use bevy_app::App;
    /// use bevy_ecs::prelude::*;
    /// use parlor::schema::Kind;
    /// use parlor_bevy::{ParlorPlugin, ReplicateApp};
    ///
    /// #[derive(Component, Debug, Clone, Default, PartialEq)]
    /// struct Fuel {
    ///     litres: f32,
    /// }
    /// parlor::replicated!(Fuel as "fuel" => { litres: Kind::float(0.0, 100.0, 0.1) });
    ///
    /// App::new().add_plugins(ParlorPlugin::app("tanks")).replicate::<Fuel>();
    /// ```
    ///
    /// # Panics
    /// With the message of [`try_replicate`](Self::try_replicate)'s error: an app that is put together wrongly shall not
    /// start.
    fn replicate<C: Shared>(&mut self) -> Replicating<'_, C>;

    /// The same, with an error instead of a panic.
    ///
    /// # Errors
    /// [`ReplicateError`] if the plugin is not there, there is such a component already, or the app was in a room.
    fn try_replicate<C: Shared>(&mut self) -> Result<Replicating<'_, C>, ReplicateError>;
}

impl ReplicateApp for App {
    fn replicate<C: Shared>(&mut self) -> Replicating<'_, C> {
        self.try_replicate().unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_replicate<C: Shared>(&mut self) -> Result<Replicating<'_, C>, ReplicateError> {
        let registry = self.world_mut().get_resource_mut::<Registry>();
        registry.ok_or(ReplicateError::NoPlugin(C::NAME))?.add::<C>(receive::<C>)?;
        self.init_resource::<Removed<C>>()
            .add_observer(note_removal::<C>)
            .add_systems(Publish, publish::<C>.in_set(PublishSet::Components));
        Ok(Replicating { app: self, component: PhantomData })
    }
}

/// A component that is replicated, and what more there is to say of it.
#[derive(Debug)]
pub struct Replicating<'a, C> {
    app: &'a mut App,
    component: PhantomData<C>,
}

impl<C: Shared> Replicating<'_, C> {
    /// Gives each networked entity an [`Interpolated<C>`](crate::Interpolated) beside its `C`: the value to draw, a little
    /// behind, so that it moves evenly. `C` itself stays what the authority said: the simulation never sees a smoothed value.
    pub fn interpolated(self) -> Self {
        self.app
            .add_observer(hide::<C>)
            .add_systems(PreUpdate, interpolate::<C>.in_set(ParlorSet::Interpolate));
        self
    }

    /// Has members run the steps of what they own ahead of what the authority has told, so that their players see at once what
    /// they did. The systems in [`NetTick`](crate::NetTick) that change this component must come to the same on authority and
    /// member: from the components that are predicted, the [`Input`](crate::Input) and the number of the step, and from nothing
    /// else. Where the authority decided otherwise, what it had is taken, and the steps since then are run again
    /// with the inputs that they had.
    ///
    /// Outside of steps a member's changes to it are lost, and other entities than its own are not predicted. The authority does
    /// not predict: its steps decide.
    pub fn predicted(self) -> Self {
        if self.app.world_mut().resource_mut::<Registry>().predict::<C>() {
            self.app.add_systems(Publish, predict::<C>.in_set(PublishSet::Predicted));
        }
        self
    }

    /// Lets a member see what comes within `radius` of an entity that it owns, until it is farther away than `leave`. Where
    /// an entity is says the field `field` of this component, a vector, a transform or a body, in whose unit both are. One
    /// component of an app can say so; the last one counts. Without one everybody sees everything.
    pub fn interest(self, field: &str, radius: f64, leave: f64) -> Self {
        self.app.world_mut().resource_mut::<Registry>().set_interest(C::NAME, field, radius, leave);
        self
    }
}
