//! What goes into the next packets of a publisher.

use super::Publisher;
use crate::audience::Viewer;
use crate::interest::NEARNESS_MAX;
use crate::world::plan::{FoundShapes, Shape};
use crate::world::store::World;

impl Publisher {
    /// Plans the next packets: all pending entities, or the most urgent that the budget allows.
    pub(super) fn make_plan(&mut self, world: &World, tick: u32, nearness: impl Fn(u16) -> u16) {
        self.plan.clear();
        self.own.clear();
        (self.done, self.place, self.planned) = (0, None, Some((world.log.end(), tick)));
        let is_new_tick = self.aged.replace(tick) != Some(tick);
        let (mut allows_large, mut found) = (!self.flights.has_large(), FoundShapes::default());
        let fits = self.budget_bytes() * 16 / self.entry_bytes.max(1) + 1;
        if self.pending.len() > fits && is_new_tick {
            self.grow_urgencies(world, nearness);
        }
        if self.pending.len() <= fits {
            for word in 0..self.pending.words() {
                for slot in self.pending.slots_of(word) {
                    self.plan_slot(world, tick, slot, (&mut allows_large, &mut found));
                }
            }
        } else {
            let mut chosen = core::mem::take(&mut self.chosen);
            chosen.clear();
            chosen.extend(self.pending.iter().map(|slot| (self.known[usize::from(slot)].urgency, slot)));
            // The most urgent first; of equal ones the lower slot.
            chosen.select_nth_unstable_by_key(fits - 1, |(urgency, slot)| {
                (core::cmp::Reverse(*urgency), *slot)
            });
            chosen.truncate(fits);
            chosen.sort_unstable_by_key(|(_, slot)| *slot);
            for (_, slot) in &chosen {
                self.plan_slot(world, tick, *slot, (&mut allows_large, &mut found));
            }
            self.chosen = chosen;
        }
    }

    /// Increases the urgency of all pending slots, once for each tick in which not all can be sent.
    fn grow_urgencies(&mut self, world: &World, nearness: impl Fn(u16) -> u16) {
        for slot in self.pending.iter() {
            let known = &mut self.known[usize::from(slot)];
            let row = world.row_seen(slot, self.viewer).filter(|_| known.is_present);
            // A despawn takes few bytes.
            let priority = row.map_or(u32::from(u16::MAX), |(_, mask)| world.priority(mask));
            let weight = (priority * u32::from(nearness(slot)) / u32::from(NEARNESS_MAX)).max(1);
            known.urgency = known.urgency.saturating_add(weight);
        }
    }

    /// Adds a slot to the plan.
    fn plan_slot(
        &mut self,
        world: &World,
        tick: u32,
        slot: u16,
        (allows_large, found): (&mut bool, &mut FoundShapes),
    ) {
        let known = &self.known[usize::from(slot)];
        if !known.is_present {
            return self.plan.push(slot, Shape::FAREWELL);
        }
        let brief = world.brief(slot, self.viewer == Viewer::Everything);
        let seen = brief.map(|brief| (brief.label, brief.mask));
        let Some((label, mask)) = seen.or_else(|| world.row_seen(slot, self.viewer)) else { return };
        if !known.needs(label) {
            self.pending.remove(slot);
            return;
        }
        let bytes_bad = brief.map_or_else(|| world.bytes_bad(slot, mask), |brief| brief.bytes_bad);
        if bytes_bad as usize > self.config.packet_bytes {
            if !*allows_large {
                return;
            }
            *allows_large = false;
        }
        let cause = brief.and_then(|brief| Some((known.cause(tick, label, mask)?, brief.meta_label)));
        let until = self.rows_until;
        let is_planned = cause.is_some_and(|(cause, meta_label)| {
            self.plan.push_found(found, slot, cause, meta_label, |cause| {
                let settled = cause.without_newer(tick, until);
                (settled, settled.update(tick))
            })
        });
        if !is_planned {
            let plan = if brief.is_some() { &mut self.plan } else { &mut self.own };
            plan.push(slot, known.shape(world, self.viewer, tick, slot, (label, mask)));
        }
    }
}
