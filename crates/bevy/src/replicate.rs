//! Registers components and the systems that replicate them.

use crate::interpolated::{hide, interpolate};
use crate::prediction::predict;
use crate::publish::{Removed, note_removal, publish};
use crate::receive::receive;
use crate::registry::{Registry, ReplicateError, Shared};
use crate::schedule::{ParlorSet, Publish, PublishSet};
use bevy_app::{App, PreUpdate};
use bevy_ecs::schedule::IntoScheduleConfigs;
use std::marker::PhantomData;

/// Registers components for replication.
pub trait ReplicateApp {
    /// Replicates the component `C` of all entities that have [`Replicate`](crate::Replicate). All apps of a
    /// game must register the same components in the same order, which is the order on the wire. An app with
    /// another order is not admitted to the room.
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
    /// With the message of [`try_replicate`](Self::try_replicate)'s error: a misconfigured app must not
    /// start.
    fn replicate<C: Shared>(&mut self) -> Replicating<'_, C>;

    /// The same, with an error instead of a panic.
    ///
    /// # Errors
    /// [`ReplicateError`] if the plugin is missing, the component is registered already, or the app has been
    /// in a room.
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

/// Options of a replicated component.
#[derive(Debug)]
pub struct Replicating<'a, C> {
    app: &'a mut App,
    component: PhantomData<C>,
}

impl<C: Shared> Replicating<'_, C> {
    /// Adds an [`Interpolated<C>`](crate::Interpolated) to each networked entity: the value to draw, slightly
    /// delayed so that it moves evenly. `C` itself keeps the authority's value: the simulation never sees a
    /// smoothed value.
    pub fn interpolated(self) -> Self {
        self.app
            .add_observer(hide::<C>)
            .add_systems(PreUpdate, interpolate::<C>.in_set(ParlorSet::Interpolate));
        self
    }

    /// Predicts this component: members simulate their own entities ahead of the authority, so that their
    /// players see at once what they did. The systems in [`NetTick`](crate::NetTick) that change it must be
    /// deterministic on authority and member. They may depend on predicted components, the
    /// [`Input`](crate::Input) and the step number, and on nothing else. Where the authority decided
    /// otherwise, its value is taken, and the later steps are run again with their original inputs.
    ///
    /// A member's changes to it outside of steps are lost. Other entities than its own are not predicted. The
    /// authority does not predict: its steps decide.
    pub fn predicted(self) -> Self {
        if self.app.world_mut().resource_mut::<Registry>().predict::<C>() {
            self.app.add_systems(Publish, predict::<C>.in_set(PublishSet::Predicted));
        }
        self
    }

    /// Limits what a member sees: an entity within `radius` of one that it owns, until it is farther away
    /// than `leave`. The position is the field `field` of this component: a vector, a transform or a body.
    /// Both distances are in its unit. One component of an app defines interest; the last call counts.
    /// Default: all members see everything.
    pub fn interest(self, field: &str, radius: f64, leave: f64) -> Self {
        self.app.world_mut().resource_mut::<Registry>().set_interest(C::NAME, field, radius, leave);
        self
    }
}
