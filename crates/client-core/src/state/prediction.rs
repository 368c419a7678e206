//! Prediction: a member's own entities run ahead of the host's state.

use super::{Member, SharedState};
use crate::info::Diagnostics;
use crate::options::Options;
use parlor_proto::{EntityId, Tick};
use parlor_sync::prediction::{Frame, Predictor, Rerun};
use parlor_sync::schema::{ComponentId, Replicated, RowReader, RowWriter};
use parlor_sync::world::WorldError;

impl Member {
    pub(crate) fn is_rerunning(&self) -> bool {
        self.predictor().is_some_and(Predictor::is_rerunning)
    }

    /// Compares predictions with the host's state. Returns the steps to run again after a misprediction.
    pub(crate) fn reconcile(&mut self, newest: Tick, frame: Frame) -> Option<Rerun> {
        let settled = self.settled();
        let (world, predictor) = self.prediction();
        predictor?.reconcile(world, settled, newest, frame)
    }

    /// A predicted component of an own entity. The inner `None` if the entity has none, the outer one if it
    /// is not predicted.
    pub(super) fn predicted(&self, entity: EntityId, id: ComponentId) -> Option<Option<RowReader<'_>>> {
        self.predictor()?.read(entity, id)
    }
}

impl SharedState {
    /// Starts the prediction that the options ask for, at a member, and sets how it draws.
    pub(crate) fn configure(&mut self, options: &Options) {
        if let SharedState::Member(member) = self {
            member.draw_by(options.drawing.clone());
            member.predict(options.predicted_mask(member.world().schema()), options.smoothing);
        }
    }

    /// Begins a step of the game.
    pub(crate) fn begin_step(&mut self, tick: Tick) {
        if let Some(predictor) = self.predictor_mut() {
            predictor.begin_step(tick);
        }
    }

    /// Ends the game's current step.
    pub(crate) fn end_step(&mut self) {
        if let Some(predictor) = self.predictor_mut() {
            predictor.end_step();
        }
    }

    pub(crate) fn diagnose_prediction(&self, diagnostics: &mut Diagnostics) {
        if let SharedState::Member(member) = self
            && let Some(predictor) = member.predictor()
        {
            diagnostics.prediction = predictor.counters();
        }
    }

    /// The predictor of a member that predicts.
    fn predictor_mut(&mut self) -> Option<&mut Predictor> {
        match self {
            SharedState::Host(_) => None,
            SharedState::Member(member) => member.prediction().1,
        }
    }

    /// Sets a predicted component; returns `None` if it is not predicted.
    pub(crate) fn insert_predicted<C: Replicated>(
        &mut self,
        entity: EntityId,
        component: &C,
    ) -> Option<Result<(), WorldError>> {
        self.write_predicted(entity, self.world().schema().find(C::NAME)?, |row| component.write(row))
    }

    /// As [`insert_predicted`](Self::insert_predicted), without a Rust type.
    pub(crate) fn write_predicted(
        &mut self,
        entity: EntityId,
        id: ComponentId,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> Option<Result<(), WorldError>> {
        let written = self.predictor_mut()?.write_with(entity, id, write)?;
        Some(written.map(drop))
    }

    /// Removes a predicted component and returns whether it existed; `None` if it is not predicted.
    pub(crate) fn remove_predicted(&mut self, entity: EntityId, id: ComponentId) -> Option<bool> {
        self.predictor_mut()?.remove(entity, id)
    }
}
