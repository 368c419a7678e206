//! Which components are replicated.

use crate::interpolated::{hide, interpolate};
use crate::plugin::{ParlorSet, Publish, PublishSet};
use crate::prediction::predict;
use crate::publish::{Removed, note_removal, publish};
use crate::receive::receive;
use bevy_app::{App, PreUpdate};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::{Component, Resource};
use bevy_ecs::schedule::IntoScheduleConfigs;
use bevy_ecs::world::EntityWorldMut;
use parlor::schema::{self, ComponentId, Replicated, Schema, SchemaError};
use parlor::{EntityId, RoomBuilder, WorldAccess};
use std::marker::PhantomData;
use thiserror::Error;

/// Why a component is not replicated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReplicateError {
    /// The app has no plugin.
    #[error("{0} cannot be replicated: add ParlorPlugin::app(\"…\") to the app first")]
    NoPlugin(&'static str),
    /// There is one of this name already: it was registered twice, or another type has its name.
    #[error("{0} is replicated already: every component once, and no two of one name")]
    Duplicate(&'static str),
    /// A room was opened or joined meanwhile.
    #[error("{0} cannot be replicated any more: the app was in a room, and both ends count components alike")]
    Started(&'static str),
    /// The components make no schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// What a component must be.
pub trait Shared: Component<Mutability = Mutable> + Replicated {}

impl<C: Component<Mutability = Mutable> + Replicated> Shared for C {}

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
        registry.ok_or(ReplicateError::NoPlugin(C::NAME))?.add::<C>()?;
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
        let interest = Interest { component: C::NAME, field: field.to_owned(), radius, leave };
        self.app.world_mut().resource_mut::<Registry>().interest = Some(interest);
        self
    }
}

/// The game's name, and its components in the order in which they were registered.
#[derive(Debug, Resource)]
pub(crate) struct Registry {
    app: String,
    components: Vec<Registered>,
    interest: Option<Interest>,
    /// Which type the input of a player is.
    input: Option<&'static str>,
    /// Of the rooms of this app, from the first one on.
    schema: Option<Schema>,
}

#[derive(Debug)]
struct Registered {
    name: &'static str,
    component: fn() -> schema::Component,
    receive: fn(&mut EntityWorldMut<'_>, &WorldAccess<'_>, EntityId, bool),
    /// What a room that predicts it is told of it.
    predict: Option<fn(RoomBuilder) -> RoomBuilder>,
    /// Its number, once there is a schema.
    id: Option<ComponentId>,
}

#[derive(Debug)]
struct Interest {
    component: &'static str,
    field: String,
    radius: f64,
    leave: f64,
}

impl Registry {
    pub(crate) fn new(app: &str) -> Self {
        Registry { app: app.to_owned(), components: Vec::new(), interest: None, input: None, schema: None }
    }

    pub(crate) fn app(&self) -> &str {
        &self.app
    }

    fn add<C: Shared>(&mut self) -> Result<(), ReplicateError> {
        if self.schema.is_some() {
            return Err(ReplicateError::Started(C::NAME));
        }
        if self.components.iter().any(|component| component.name == C::NAME) {
            return Err(ReplicateError::Duplicate(C::NAME));
        }
        self.components.push(Registered {
            name: C::NAME,
            component: C::component,
            receive: receive::<C>,
            predict: None,
            id: None,
        });
        Ok(())
    }

    /// Members predict `C` from here on; says whether they did not before.
    fn predict<C: Shared>(&mut self) -> bool {
        let registered = self.components.iter_mut().find(|registered| registered.name == C::NAME);
        registered.is_some_and(|it| it.predict.replace(RoomBuilder::predict::<C>).is_none())
    }

    /// Tells a room to be what is predicted in it.
    pub(crate) fn say_predicted(&self, room: RoomBuilder) -> RoomBuilder {
        self.components.iter().filter_map(|registered| registered.predict).fold(room, |room, say| say(room))
    }

    /// The components that members predict, by their numbers.
    pub(crate) fn predicted_mask(&self) -> u64 {
        let predicted = self.components.iter().filter(|registered| registered.predict.is_some());
        predicted.filter_map(|registered| registered.id).fold(0, |mask, id| mask | id.bit())
    }

    /// Names the type of a player's input; gives the one that it has already, if it has one.
    pub(crate) fn set_input(&mut self, name: &'static str) -> Option<&'static str> {
        self.input.replace(name)
    }

    /// The schema of all rooms of this app. From the first call on no component can be added.
    pub(crate) fn schema(&mut self) -> Result<Schema, SchemaError> {
        if let Some(schema) = &self.schema {
            return Ok(schema.clone());
        }
        let components = self.components.iter().map(|registered| (registered.component)());
        let builder = components.fold(Schema::builder(), schema::SchemaBuilder::component);
        let schema = match &self.interest {
            Some(Interest { component, field, radius, leave }) => {
                builder.interest(component, field, *radius, *leave)
            }
            None => builder,
        }
        .build()?;
        for registered in &mut self.components {
            registered.id = schema.find(registered.name);
        }
        Ok(self.schema.insert(schema).clone())
    }

    /// Brings the components in `mask`, by their numbers, from the room into an entity of the app, as changes or without a
    /// word.
    pub(crate) fn receive(
        &self,
        entity: &mut EntityWorldMut<'_>,
        access: &WorldAccess<'_>,
        id: EntityId,
        mask: u64,
        is_change: bool,
    ) {
        let is_meant =
            |registered: &&Registered| registered.id.is_some_and(|number| mask & number.bit() != 0);
        for registered in self.components.iter().filter(is_meant) {
            (registered.receive)(entity, access, id, is_change);
        }
    }
}
