//! The schedules and sets of the plugin.

use bevy_ecs::schedule::{ScheduleLabel, SystemSet};

/// One fixed step of the room. Runs in `PreUpdate`, once for each due step, at most eight in a frame. It does
/// not run while no room is open.
///
/// All simulation belongs here. On the authority, changes by these systems are sent after each run. With
/// [prediction](crate::Replicating::predicted), corrected steps are replayed first:
/// [`not_replaying`](crate::not_replaying) distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub struct NetTick;

/// Runs before each [`NetTick`]: restores the step's start state, makes actions and sets the players' inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub(crate) struct Prepare;

/// The order in which a step is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub(crate) enum PrepareSet {
    /// Sets components to the step's start state.
    SetBack,
    /// Makes this app's actions, and takes in what all actions of the step wrote.
    Act,
    /// Samples the input of this app's player.
    Sample,
    /// Assigns each owner's input to its entities.
    HandOut,
}

/// Runs after each [`NetTick`]: writes changes to the room, the authority's decisions or a member's
/// predictions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub(crate) struct Publish;

/// The plugin's sets in `PreUpdate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub enum ParlorSet {
    /// Takes in what arrived, then runs the steps that are due.
    Drive,
    /// Updates the [`Interpolated`](crate::Interpolated) components for this frame.
    Interpolate,
}

/// The order of publication after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub(crate) enum PublishSet {
    /// Entities and their owners.
    Entities,
    /// Components.
    Components,
    /// On a member: the predicted components of its own entities.
    Predicted,
}
