//! Which components are replicated.

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::{Component, Resource};
use bevy_ecs::world::EntityWorldMut;
use parlor::schema::{self, ComponentId, Replicated, Schema, SchemaError};
use parlor::{EntityId, RoomBuilder, WorldReader, kind};
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

/// Brings a component from the room into an entity of the app, as a change or without a word.
pub(crate) type Receive = fn(&mut EntityWorldMut<'_>, &WorldReader<'_>, EntityId, bool);

#[derive(Debug)]
struct Registered {
    name: &'static str,
    component: fn() -> schema::Component,
    receive: Receive,
    /// Whether members predict it.
    is_predicted: bool,
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

    /// Members see what is near what they own, by this field of this component.
    pub(crate) fn set_interest(&mut self, component: &'static str, field: &str, radius: f64, leave: f64) {
        self.interest = Some(Interest { component, field: field.to_owned(), radius, leave });
    }

    /// Members predict `C` from here on; says whether they did not before.
    pub(crate) fn predict<C: Shared>(&mut self) -> bool {
        let registered = self.components.iter_mut().find(|registered| registered.name == C::NAME);
        registered.is_some_and(|it| !std::mem::replace(&mut it.is_predicted, true))
    }

    /// Tells a room to be what is predicted in it.
    pub(crate) fn say_predicted<K: kind::Hosted>(&self, room: RoomBuilder<K>) -> RoomBuilder<K> {
        let predicted = self.components.iter().filter(|registered| registered.is_predicted);
        predicted.fold(room, |room, registered| room.predict_named(registered.name))
    }

    /// The components that members predict, by their numbers.
    pub(crate) fn predicted_mask(&self) -> u64 {
        let predicted = self.components.iter().filter(|registered| registered.is_predicted);
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
