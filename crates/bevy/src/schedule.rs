//! When the plugin's systems run.

use bevy_ecs::schedule::{ScheduleLabel, SystemSet};

/// One fixed step of the room. Its systems run once for each step that is due, at most eight in a row and then no more
/// in this frame, in `PreUpdate`. It does not run while no room is open.
///
/// Everything that the game simulates belongs here: on the authority, what these systems change is sent after each run.
/// Where something is [predicted](crate::Replicating::predicted), steps that turned out otherwise are run again first:
/// [`not_replaying`](crate::not_replaying) tells them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub struct NetTick;

/// What comes before each [`NetTick`]: where the step starts from, and what players want in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub(crate) struct Prepare;

/// In which order a step is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub(crate) enum PrepareSet {
    /// Components become what the step starts from.
    SetBack,
    /// This app's player is asked what it wants.
    Sample,
    /// Entities are given what their owners want.
    HandOut,
}

/// What is done after each [`NetTick`]: what changed goes to the room, what the authority decided or what a member predicts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, ScheduleLabel)]
pub(crate) struct Publish;

/// When the plugin works, in `PreUpdate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub enum ParlorSet {
    /// What came is taken, then the steps that are due run.
    Drive,
    /// [`Interpolated`](crate::Interpolated) components get the values of this frame.
    Interpolate,
}

/// In which order things go to the room after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SystemSet)]
pub(crate) enum PublishSet {
    /// Which entities there are, and whose.
    Entities,
    /// What they are made of.
    Components,
    /// On a member: what it makes of its own.
    Predicted,
}
