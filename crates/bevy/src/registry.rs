//! Registry of replicated components.

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::{Component, Resource};
use bevy_ecs::world::EntityWorldMut;
use parlor::schema::{self, ComponentId, Replicated, Schema, SchemaError};
use parlor::{Action, Actions, EntityId, RoomBuilder, WorldReader, kind};
use std::collections::BTreeSet;
use thiserror::Error;

/// Why a component cannot be replicated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReplicateError {
    /// The app has no plugin.
    #[error("{0} cannot be replicated: add ParlorPlugin::app(\"…\") to the app first")]
    NoPlugin(&'static str),
    /// A component with this name is registered already: the same one twice, or another type with the same
    /// name.
    #[error("{0} is replicated already: every component once, and no two of one name")]
    Duplicate(&'static str),
    /// A room has been opened or joined already.
    #[error("{0} cannot be replicated any more: the app was in a room, and both ends count components alike")]
    Started(&'static str),
    /// The components do not form a valid schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// The bounds of a replicated component.
pub trait Shared: Component<Mutability = Mutable> + Replicated {}

impl<C: Component<Mutability = Mutable> + Replicated> Shared for C {}

/// The game's name, and its components in registration order.
#[derive(Debug, Resource)]
pub(crate) struct Registry {
    app: String,
    components: Vec<Registered>,
    actions: Actions,
    interest: Option<Interest>,
    /// The type name of the player's input.
    input: Option<&'static str>,
    /// The schema of this app's rooms, fixed by the first one.
    schema: Option<Schema>,
    /// Components that were changed by a command and are not registered.
    missed: BTreeSet<&'static str>,
}

/// Copies a component from the room into an entity of the app, marked as changed or not.
pub(crate) type Receive = fn(&mut EntityWorldMut<'_>, &WorldReader<'_>, EntityId, bool);

#[derive(Debug)]
struct Registered {
    name: &'static str,
    component: fn() -> schema::Component,
    receive: Receive,
    /// Whether members predict it.
    is_predicted: bool,
    /// Its component number, set with the schema.
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
        Registry {
            app: app.to_owned(),
            components: Vec::new(),
            actions: Actions::default(),
            interest: None,
            input: None,
            schema: None,
            missed: BTreeSet::new(),
        }
    }

    pub(crate) fn app(&self) -> &str {
        &self.app
    }

    pub(crate) fn add<C: Shared>(&mut self, receive: Receive) -> Result<(), ReplicateError> {
        if self.schema.is_some() {
            return Err(ReplicateError::Started(C::NAME));
        }
        if self.components.iter().any(|component| component.name == C::NAME) {
            return Err(ReplicateError::Duplicate(C::NAME));
        }
        self.components.push(Registered {
            name: C::NAME,
            component: C::component,
            receive,
            is_predicted: false,
            id: None,
        });
        Ok(())
    }

    /// Whether `C` is not registered; true only once for each type.
    pub(crate) fn misses<C: Shared>(&mut self) -> bool {
        self.components.iter().all(|component| component.name != C::NAME) && self.missed.insert(C::NAME)
    }

    /// Sets interest: members see what is near their own entities, measured by this field of this component.
    pub(crate) fn set_interest(&mut self, component: &'static str, field: &str, radius: f64, leave: f64) {
        self.interest = Some(Interest { component, field: field.to_owned(), radius, leave });
    }

    /// Makes `C` predicted. Returns whether it was not predicted before.
    pub(crate) fn predict<C: Shared>(&mut self) -> bool {
        let registered = self.components.iter_mut().find(|registered| registered.name == C::NAME);
        registered.is_some_and(|it| !std::mem::replace(&mut it.is_predicted, true))
    }

    /// Defines a predicted action.
    ///
    /// # Errors
    /// A text for a person.
    pub(crate) fn define<A: Action>(&mut self) -> Result<(), String> {
        if self.schema.is_some() {
            let name = A::NAME;
            return Err(format!("the action \"{name}\" cannot be defined any more: the app was in a room"));
        }
        self.actions.define::<A>()
    }

    /// The predicted actions.
    pub(crate) fn actions(&self) -> &Actions {
        &self.actions
    }

    /// Configures the predicted components and actions of a room.
    pub(crate) fn say_predicted<K: kind::Hosted>(&self, room: RoomBuilder<K>) -> RoomBuilder<K> {
        let predicted = self.components.iter().filter(|registered| registered.is_predicted);
        let room = room.actions(&self.actions);
        predicted.fold(room, |room, registered| room.predict_named(registered.name))
    }

    /// The components that members predict, one bit for each component number.
    pub(crate) fn predicted_mask(&self) -> u64 {
        let predicted = self.components.iter().filter(|registered| registered.is_predicted);
        predicted.filter_map(|registered| registered.id).fold(0, |mask, id| mask | id.bit())
    }

    /// Sets the type of the player's input. Returns the existing one, if there is one.
    pub(crate) fn set_input(&mut self, name: &'static str) -> Option<&'static str> {
        self.input.replace(name)
    }

    /// The schema of all rooms of this app. No component can be added after the first call.
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

    /// Copies the components in `mask` (one bit for each component number) from the room into an entity of
    /// the app, marked as changed or not.
    pub(crate) fn receive(
        &self,
        entity: &mut EntityWorldMut<'_>,
        access: &WorldReader<'_>,
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
