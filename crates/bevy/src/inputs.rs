//! Inputs: what each player wants in a step, as a component on the entities that it owns.

use crate::entities::Owner;
use crate::prediction::not_replaying;
use crate::registry::Registry;
use crate::room::RoomResource;
use crate::schedule::{Prepare, PrepareSet};
use bevy_app::App;
use bevy_ecs::error::Result;
use bevy_ecs::prelude::{Commands, Component, Entity, In, Local, On, Query, Remove, ResMut};
use bevy_ecs::schedule::IntoScheduleConfigs;
use bevy_ecs::system::IntoSystem;
use parlor::{ApiMisuse, MemberId, RoomError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::collections::BTreeMap;
use std::ops::Deref;

/// The input of this entity's owner for the running step, as [`input`](InputApp::input) sampled it on the
/// owner's machine. Default value until the first input arrives. The authority has it on every entity with an
/// owner. A member has it only on its own entities, because it does not know the inputs of others.
///
/// A system that queries it therefore moves exactly what its machine may move. The value comes from another
/// machine: validate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
pub struct Input<I: Send + Sync + 'static>(pub I);

impl<I: Send + Sync + 'static> Deref for Input<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.0
    }
}

/// The bounds of an input type. [`parlor::Step::send_input`] documents its maximum size.
pub trait Wish: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static {}

impl<I: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static> Wish for I {}

/// Registers the player's input.
pub trait InputApp {
    /// Registers the system `sample`, which returns the input of this app's player. It runs once for each
    /// step of the room, before [`NetTick`](crate::NetTick). It does not run in a replay: a replayed step
    /// gets its original input. The authority and this app see the input as [`Input<I>`] on the entities that
    /// the player owns. A [spectator's](parlor::JoinBuilder::spectate) is not sent.
    ///
    /// ```
    /// use bevy_app::App;
    /// use bevy_ecs::prelude::*;
    /// use parlor::schema::Kind;
    /// use parlor_bevy::{Input, InputApp, NetTick, ParlorPlugin, ReplicateApp};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Component)]
    /// struct Position {
    ///     x: f32,
    /// }
    /// parlor::replicated!(Position as "position" => { x: Kind::float(-100.0, 100.0, 0.01) });
    ///
    /// #[derive(Clone, Default, Serialize, Deserialize)]
    /// struct Drive {
    ///     speed: i8,
    /// }
    ///
    /// #[derive(Default, Resource)]
    /// struct Keys {
    ///     is_right: bool,
    /// }
    ///
    /// fn sample(keys: Res<Keys>) -> Drive {
    ///     Drive { speed: i8::from(keys.is_right) }
    /// }
    ///
    /// /// The same on the host and on the owner.
    /// fn step(mut tanks: Query<(&mut Position, &Input<Drive>)>) {
    ///     for (mut position, input) in &mut tanks {
    ///         position.x += 0.1 * f32::from(input.speed.clamp(-1, 1));
    ///     }
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins(ParlorPlugin::app("tanks")).init_resource::<Keys>();
    /// app.replicate::<Position>().predicted().interpolated();
    /// app.input(sample).add_systems(NetTick, step);
    /// ```
    ///
    /// An input that is too large goes to Bevy's error handler as an error.
    ///
    /// # Panics
    /// If the app has no plugin, or an input is already registered: a player has one input a step. A
    /// misconfigured app must not start.
    fn input<I: Wish, M>(&mut self, sample: impl IntoSystem<(), I, M> + 'static) -> &mut Self;

    /// Registers the input type for an app without a player, such as a dedicated host or a spectator. It gets
    /// the [`Input<I>`] of others as far as it may see them, and sends none.
    ///
    /// # Panics
    /// As [`input`](Self::input).
    fn input_of_others<I: Wish>(&mut self) -> &mut Self;
}

impl InputApp for App {
    fn input<I: Wish, M>(&mut self, sample: impl IntoSystem<(), I, M> + 'static) -> &mut Self {
        self.input_of_others::<I>();
        let sample =
            sample.pipe::<_, _, Result, _>(send::<I>).in_set(PrepareSet::Sample).run_if(not_replaying);
        self.add_systems(Prepare, sample)
    }

    fn input_of_others<I: Wish>(&mut self) -> &mut Self {
        let Some(mut registry) = self.world_mut().get_resource_mut::<Registry>() else {
            panic!("there is no room to send inputs in: add ParlorPlugin::app(\"…\") to the app first");
        };
        if let Some(known) = registry.set_input(type_name::<I>()) {
            panic!(
                "the input is {known} already: a player has one input a step, put all that it wants into that"
            );
        }
        self.add_observer(disown::<I>).add_systems(Prepare, hand_out::<I>.in_set(PrepareSet::HandOut))
    }
}

/// Sends the sampled input.
fn send<I: Wish>(In(input): In<I>, mut room: ResMut<RoomResource>) -> Result {
    match room.step().map_or(Ok(()), |mut step| step.send_input(&input)) {
        // The next poll reports that the room is over; and a spectator has no input.
        Err(RoomError::Misuse(ApiMisuse::Closed(_) | ApiMisuse::Spectator { .. })) => Ok(()),
        sent => Ok(sent?),
    }
}

/// An entity with its owner and its current input.
type Owned<I> = (Entity, &'static Owner, Option<&'static mut Input<I>>);

/// Sets all `Input<I>` for the running step.
fn hand_out<I: Wish>(
    mut room: ResMut<RoomResource>,
    mut entities: Query<Owned<I>>,
    mut wishes: Local<BTreeMap<MemberId, I>>,
    mut commands: Commands,
) {
    let known_alone = if room.is_host() { None } else { room.local_id() };
    wishes.clear();
    let Some(mut step) = room.step() else { return };
    for (entity, owner, input) in &mut entities {
        let owner = owner.0.filter(|owner| known_alone.is_none_or(|known| known == *owner));
        let Some(owner) = owner else {
            if input.is_some() {
                commands.entity(entity).remove::<Input<I>>();
            }
            continue;
        };
        let read = || step.input::<I>(owner).unwrap_or_default();
        let wish = wishes.entry(owner).or_insert_with(read).clone();
        match input {
            Some(mut input) => input.0 = wish,
            None => drop(commands.entity(entity).insert(Input(wish))),
        }
    }
}

/// Removes the input of an entity without an [`Owner`].
fn disown<I: Wish>(removed: On<Remove, Owner>, mut commands: Commands) {
    commands.entity(removed.entity).try_remove::<Input<I>>();
}
