//! Interpolated values for drawing.

use crate::entities::Networked;
use crate::registry::Shared;
use crate::room::RoomResource;
use bevy_ecs::prelude::{Commands, Component, Entity, On, Query, Remove, ResMut, With};
use std::ops::Deref;

/// The value of `C` to draw in this frame. On a member it lags slightly behind `C`, so that it moves evenly
/// between updates. For its own entities, and on the authority, it equals `C`. It exists from the first frame
/// in which `C` does.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use parlor_bevy::Interpolated;
/// # #[derive(Component)] struct Position { x: f32, y: f32 }
///
/// fn draw(tanks: Query<&Interpolated<Position>>) {
///     for position in &tanks {
///         println!("{:.1}, {:.1}", position.x, position.y);
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Component)]
pub struct Interpolated<C: Send + Sync + 'static>(pub C);

impl<C: Send + Sync + 'static> Deref for Interpolated<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

/// An entity, its room id, and its interpolated value.
type Shown<C> = (Entity, &'static Networked, Option<&'static mut Interpolated<C>>);

/// Updates all `Interpolated<C>` for this frame.
pub(crate) fn interpolate<C: Shared>(
    mut room: ResMut<RoomResource>,
    mut entities: Query<Shown<C>, With<C>>,
    mut commands: Commands,
) {
    // The set of this system runs only in an open room.
    let _ = room.look(|access| {
        for (entity, networked, shown) in &mut entities {
            let Ok(Some(component)) = access.interpolated::<C>(networked.id) else { continue };
            match shown {
                Some(mut shown) => shown.0 = component,
                None => drop(commands.entity(entity).insert(Interpolated(component))),
            }
        }
    });
}

/// Removes the interpolated value when `C` or the room is gone.
pub(crate) fn hide<C: Shared>(removed: On<Remove, (C, Networked)>, mut commands: Commands) {
    commands.entity(removed.entity).try_remove::<Interpolated<C>>();
}
