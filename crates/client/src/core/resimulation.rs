//! Steps of the host that are run again for inputs that came late.

use super::options::Options;
use super::room::Joined;
use super::shared::HIDDEN;
use parlor_proto::{Instant, Tick};
use parlor_sync::limits::RESIMULATE_TICKS_MAX;
use parlor_sync::saves::Saves;

/// What the host needs to go back, if its game wants it to.
#[derive(Debug)]
pub(super) struct Resimulation {
    saves: Saves,
    /// How often it went back.
    count: u64,
    /// How often it could not go back as far as the input asked for.
    short: u64,
}

impl Resimulation {
    /// None if no step is to be run again.
    pub(super) fn new(options: &Options) -> Option<Box<Resimulation>> {
        let ticks = options.resimulate_ticks.min(RESIMULATE_TICKS_MAX) as usize;
        // To run that many again it takes the end of the one before them.
        let saves = Saves::new(ticks + 1, HIDDEN);
        (ticks > 0).then(|| Box::new(Resimulation { saves, count: 0, short: 0 }))
    }

    /// How often it went back.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// How often it could not go back as far as an input asked for: that one counts from a later step on.
    pub(super) fn short(&self) -> u64 {
        self.short
    }
}

impl Joined {
    /// At the host, before the next step begins: remembers how the last one ended. If an input came too late for a step that
    /// was run, and the next step is a new one, sets the entities back and has the steps from there on run again.
    ///
    /// What was published stays. What the steps come to is published with the next one that is new.
    pub(super) fn resimulate(&mut self, now: Instant) {
        let is_due = self.ticker.until_next(self.simulation_time(now)).is_zero();
        let (ended, is_waiting) = (self.step().tick, self.replay.is_waiting());
        let Some(resimulation) = self.resimulation.as_deref_mut().filter(|_| is_waiting || is_due) else {
            return;
        };
        let Some(world) = self.shared.host_mut().map(|host| host.world_mut()) else { return };
        resimulation.saves.save(world, ended);
        if is_waiting {
            return;
        }
        let Some(late) = self.inputs.take_late() else { return };
        let Some(oldest) = resimulation.saves.oldest(world) else { return };
        let wanted = late.offset(-1);
        let from: Tick = if oldest.is_newer_than(wanted) { oldest } else { wanted };
        let mut is_short = from != wanted;
        if ended.is_newer_than(from) {
            match resimulation.saves.restore(world, from) {
                Ok(_) => {
                    resimulation.count += 1;
                    self.replay.queue(from.next(), ended);
                }
                Err(_) => {
                    is_short = true;
                    let back = resimulation.saves.restore(world, ended);
                    back.expect("what there was a moment ago has room");
                }
            }
        }
        resimulation.short += u64::from(is_short);
    }
}
