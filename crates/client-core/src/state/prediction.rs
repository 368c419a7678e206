//! Prediction: a member's own entities run ahead of the host's state.

use super::{Member, SharedState};
use crate::info::Diagnostics;
use crate::options::Options;
use parlor_proto::{EntityId, MemberId, Tick};
use parlor_sync::prediction::{Frame, Predictor, Rerun};
use parlor_sync::schema::Replicated;
use parlor_sync::world::WorldError;
use std::sync::Arc;

impl Member {
    pub(crate) fn is_rerunning(&self) -> bool {
        self.predictor.as_ref().is_some_and(|predictor| predictor.is_rerunning())
    }

    /// Compares predictions with the host's state. Returns the steps to run again after a misprediction.
    pub(crate) fn reconcile(&mut self, newest: Tick, frame: Frame) -> Option<Rerun> {
        let settled = self.settled();
        let Member { predictor, replica, .. } = self;
        predictor.as_mut()?.reconcile(replica.world(), settled, newest, frame)
    }

    /// A predicted component of an own entity. The inner `None` if the entity has none, the outer one if it
    /// is not predicted.
    pub(crate) fn predicted<C: Replicated>(&self, entity: EntityId) -> Option<Option<C>> {
        self.predictor.as_ref()?.get(entity)
    }
}

impl SharedState {
    /// Starts the prediction that the options ask for, at a member.
    pub(crate) fn predict(&mut self, options: &Options, me: MemberId) {
        let SharedState::Member(member) = self else { return };
        let schema = member.replica.world().schema();
        let mask = options.predicted_mask(schema);
        if mask != 0 {
            let predictor = Predictor::new(Arc::clone(schema), me, mask, options.smoothing);
            member.predictor = Some(Box::new(predictor));
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
            && let Some(predictor) = &member.predictor
        {
            diagnostics.prediction = predictor.counters();
        }
    }

    /// The predictor of a member that predicts.
    fn predictor_mut(&mut self) -> Option<&mut Predictor> {
        match self {
            SharedState::Host(_) => None,
            SharedState::Member(member) => member.predictor.as_deref_mut(),
        }
    }

    /// Sets a predicted component; returns `None` if it is not predicted.
    pub(crate) fn insert_predicted<C: Replicated>(
        &mut self,
        entity: EntityId,
        component: &C,
    ) -> Option<Result<(), WorldError>> {
        let written = self.predictor_mut()?.insert(entity, component)?;
        Some(written.map(drop))
    }

    /// Removes a predicted component and returns whether it existed; `None` if it is not predicted.
    pub(crate) fn remove_predicted<C: Replicated>(&mut self, entity: EntityId) -> Option<bool> {
        let id = self.world().schema().find(C::NAME)?;
        self.predictor_mut()?.remove(entity, id)
    }
}
