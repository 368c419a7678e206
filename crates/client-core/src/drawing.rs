//! How a game draws others: its own interpolation of components, and the bounds of the delay.

use parlor_proto::OrderedMap;
use parlor_sync::interpolation::{Between, RenderDelay, WholeNumbers};
use parlor_sync::schema::{Component, Replicated, RowReader};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Mixes two versions of a component: the older, the newer, and where between them the moment lies. 0 is the older
/// one, 1 the newer one. Up to 250 ms beyond the newest version it is larger than 1.
pub type Interpolator<C> = fn(&C, &C, f64) -> C;

/// How a member draws components of others.
#[derive(Clone, Default)]
pub struct Drawing {
    /// The game's interpolators, each an [`Interpolator`] of its component.
    by_component: OrderedMap<&'static str, Arc<dyn Any + Send + Sync>>,
    /// Whether components without an interpolator of the game snap to each version. Default: they move as the schema
    /// says.
    pub snaps: bool,
    /// Bounds of the delay of what is drawn.
    pub delay: RenderDelay,
    /// How whole numbers in values of keys move. Default: through whole numbers.
    pub whole_numbers: WholeNumbers,
}

impl fmt::Debug for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drawing")
            .field("interpolators", &self.by_component.keys())
            .field("snaps", &self.snaps)
            .field("delay", &self.delay)
            .field("whole_numbers", &self.whole_numbers)
            .finish()
    }
}

impl Drawing {
    /// Sets the game's interpolator of a component.
    pub fn interpolate_by<C: Replicated>(&mut self, by: Interpolator<C>) {
        self.by_component.insert(C::NAME, Arc::new(by));
    }

    /// The names of the components with an interpolator of the game.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_component.keys().copied()
    }

    /// Draws a component by the game's interpolator, if it has one.
    pub(crate) fn draw<C: Replicated>(&self, component: &Component, between: &Between<'_>) -> Option<C> {
        let by = self.by_component.get(C::NAME).and_then(|by| by.downcast_ref::<Interpolator<C>>())?;
        let [older, newer] =
            between.versions.map(|row| C::read(&RowReader::new(component, row.lanes, row.blobs)));
        Some(by(&older, &newer, between.t))
    }
}
