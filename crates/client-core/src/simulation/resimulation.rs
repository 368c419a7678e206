//! Resimulation: the host runs steps again for inputs that came late.

use crate::info::Diagnostics;
use crate::options::Options;
use parlor_proto::Tick;
use parlor_sync::limits::RESIMULATE_TICKS_MAX;
use parlor_sync::saves::Saves;
use parlor_sync::schema::NOT_OF_GAME;
use parlor_sync::world::World;

/// Saved states of the host's entities, for rolling back.
#[derive(Debug)]
pub(crate) struct Resimulation {
    saves: Saves,
    /// How often it rolled back.
    count: u64,
    /// How often it could not roll back far enough for the input, which then counts from a later step on.
    short: u64,
}

impl Resimulation {
    /// Returns `None` if resimulation is disabled.
    pub(crate) fn new(options: &Options) -> Option<Box<Resimulation>> {
        let ticks = options.resimulate_ticks.min(RESIMULATE_TICKS_MAX) as usize;
        // Running that many steps again needs the state at the end of the step before them.
        let saves = Saves::new(ticks + 1, NOT_OF_GAME);
        (ticks > 0).then(|| Box::new(Resimulation { saves, count: 0, short: 0 }))
    }

    /// Saves the state at the end of a step.
    pub(crate) fn save(&mut self, world: &mut World, ended: Tick) {
        self.saves.save(world, ended);
    }

    /// Rolls the entities back to before a step whose input came late, or as far as possible. Returns the
    /// first step to run again; `None` if nothing was rolled back.
    pub(crate) fn go_back(&mut self, world: &mut World, late: Tick, ended: Tick) -> Option<Tick> {
        let oldest = self.saves.oldest(world)?;
        let wanted = late.offset(-1);
        let from: Tick = if oldest.is_newer_than(wanted) { oldest } else { wanted };
        let mut is_short = from != wanted;
        let mut first = None;
        if ended.is_newer_than(from) {
            match self.saves.restore(world, from) {
                Ok(_) => {
                    self.count += 1;
                    first = Some(from.next());
                }
                Err(_) => {
                    is_short = true;
                    let back = self.saves.restore(world, ended);
                    back.expect("what there was a moment ago has room");
                }
            }
        }
        self.short += u64::from(is_short);
        first
    }

    pub(crate) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        (diagnostics.resimulations, diagnostics.resimulations_short) = (self.count, self.short);
    }
}
