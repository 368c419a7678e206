//! A member's own state.

use super::added::CUTS;
use super::reckoner::Reckoner;
use super::template::{STATE, Template};
use crate::schema::{Replicated, RowError, RowReader, RowWriter};
use crate::world::{EntityId, World, WorldError};
use bytes::Bytes;
use parlor_proto::{MemberId, Tick, TickRate};
use std::sync::Arc;

/// A member's own state. The game sets it as often as it likes; each step commits it to a world with one
/// entity. A commit changes the world only if the others' extrapolation is outside the template's tolerances.
///
/// The owner publishes its [`world`](Self::world) to the hub.
#[derive(Clone, Debug)]
pub struct Own {
    template: Template,
    world: World,
    owner: MemberId,
    /// `None` before the first commit.
    entity: Option<EntityId>,
    reckoner: Reckoner,
    /// The last state set.
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
    is_set: bool,
    is_cut: bool,
    scratch: (Vec<i32>, Vec<Bytes>),
}

impl Own {
    /// Creates an unset state of `owner`, for a room with this tick rate.
    pub fn new(template: Template, rate: TickRate, owner: MemberId) -> Self {
        let form = template.form();
        let (lanes, blobs) = form.component().rest_row();
        Own {
            world: World::new(Arc::clone(form.schema()), rate),
            reckoner: Reckoner::new(template.clone(), rate),
            scratch: (lanes.clone(), blobs.clone()),
            template,
            owner,
            entity: None,
            lanes,
            blobs,
            is_set: false,
            is_cut: false,
        }
    }

    /// Returns the template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Sets the state. Numbers are clamped to the range of their field.
    ///
    /// # Errors
    /// [`RowError`] for a value that is NaN, infinite or too long, and for fields that the template lacks or
    /// has with another kind. Nothing is changed then.
    pub fn set<C: Replicated>(&mut self, state: &C) -> Result<(), RowError> {
        self.write(|row| state.write(row))
    }

    /// Sets fields of the state by their indices; the others keep their values.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn write(&mut self, write: impl FnOnce(&mut RowWriter<'_>)) -> Result<(), RowError> {
        let (lanes, blobs) = &mut self.scratch;
        lanes.clone_from(&self.lanes);
        blobs.clone_from(&self.blobs);
        let form = self.template.form();
        let mut row = RowWriter::new(form.component(), lanes, blobs);
        write(&mut row);
        row.finish()?;
        // The last fields are the replicator's own, even if a type with more fields than the template wrote
        // there.
        let added = form.game_lanes()..;
        lanes[added.clone()].copy_from_slice(&self.lanes[added]);
        std::mem::swap(lanes, &mut self.lanes);
        std::mem::swap(blobs, &mut self.blobs);
        self.is_set = true;
        Ok(())
    }

    /// Returns the last state set, as quantized; `None` before the first.
    pub fn get<C: Replicated>(&self) -> Option<C> {
        self.row().map(|row| C::read(&row))
    }

    /// As [`get`](Self::get), without a Rust type. The game's fields come first.
    pub fn row(&self) -> Option<RowReader<'_>> {
        self.is_set.then(|| RowReader::new(self.template.form().component(), &self.lanes, &self.blobs))
    }

    /// Marks the next state as a teleport: others show it there at once, without interpolation.
    pub fn teleport(&mut self) {
        self.is_cut = true;
    }

    /// Ends a step. Returns whether there is something to send.
    ///
    /// # Errors
    /// [`WorldError::TickNotNewer`]; nothing is changed then.
    pub fn commit(&mut self, tick: Tick) -> Result<bool, WorldError> {
        if self.is_set && self.world.tick().is_none_or(|newest| tick.0 > newest.0) {
            self.commit_state(tick)?;
        }
        self.world.commit(tick)
    }

    /// Returns the world with the state that others must see.
    pub fn world(&self) -> &World {
        &self.world
    }

    fn commit_state(&mut self, tick: Tick) -> Result<(), WorldError> {
        let form = self.template.form();
        let is_put = std::mem::take(&mut self.is_cut);
        let is_cut = self.reckoner.look(tick, &self.lanes, &self.blobs, is_put);
        if !is_cut && !self.reckoner.is_due(tick, &self.lanes, &self.blobs) {
            return Ok(());
        }
        self.reckoner.write_rates(&mut self.lanes, &mut self.blobs);
        self.lanes[form.beat_lane()] ^= 1;
        if is_cut {
            let cut = &mut self.lanes[form.cut_lane()];
            *cut = (*cut + 1) % CUTS;
        }
        let entity = match self.entity {
            Some(entity) => entity,
            None => *self.entity.insert(self.world.spawn(Some(self.owner))?),
        };
        self.world.write_row(entity, STATE, &self.lanes, &self.blobs)?;
        self.reckoner.sent(tick, &self.lanes, &self.blobs);
        Ok(())
    }
}
