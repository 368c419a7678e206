//! Inputs: what each player wants in a step, beside what it owns.

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

/// What the owner of this entity wants in the step that runs, as [`input`](InputApp::input) sampled it on the owner's machine;
/// the default until something was heard of it. On the authority it is on every entity that has an owner; on a member on its
/// own alone, since nobody else's wishes are known there.
///
/// So a system that asks for it moves on each machine what that machine may move. What it says comes from another machine: treat
/// it as a wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
pub struct Input<I: Send + Sync + 'static>(pub I);

impl<I: Send + Sync + 'static> Deref for Input<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.0
    }
}

/// What an input must be. How large it may be says [`parlor::Step::send_input`].
pub trait Wish: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static {}

impl<I: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static> Wish for I {}

/// Saying what a player's input is.
pub trait InputApp {
    /// Has the system `sample` say what this app's player wants: once for each step of the room, before [`NetTick`](crate::NetTick),
    /// and never for a step that is run again, which gets the input that it had. It comes to the authority, and there and
    /// here it is the [`Input<I>`] on what this player owns.
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
    /// /// The same on the host and on whoever drives.
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
    /// An input that is too large to be sent goes to Bevy's error handler.
    ///
    /// # Panics
    /// If the app has no plugin, or its input was named before: a player has one input a step. An app that is put together
    /// wrongly shall not start.
    fn input<I: Wish, M>(&mut self, sample: impl IntoSystem<(), I, M> + 'static) -> &mut Self;

    /// The same for an app that has no player of its own, such as a dedicated host or a spectator: it gets the [`Input<I>`] of
    /// others as far as it may, and sends none.
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

/// Sends what was sampled.
fn send<I: Wish>(In(input): In<I>, mut room: ResMut<RoomResource>) -> Result {
    match room.step().map_or(Ok(()), |mut step| step.send_input(&input)) {
        // The next poll tells that the room is over.
        Err(RoomError::Misuse(ApiMisuse::Closed(_))) => Ok(()),
        sent => Ok(sent?),
    }
}

/// Whose an entity is, and what is known there of the owner's wishes.
type Owned<I> = (Entity, &'static Owner, Option<&'static mut Input<I>>);

/// Brings all `Input<I>` to the step that runs.
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

/// Without an [`Owner`] nobody wants anything.
fn disown<I: Wish>(removed: On<Remove, Owner>, mut commands: Commands) {
    commands.entity(removed.entity).try_remove::<Input<I>>();
}
