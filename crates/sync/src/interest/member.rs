//! The view of one member.

use super::bits::Bits;
use super::grid::{CellKey, Cube};
use super::{Interest, Reach, nearness_at};
use parlor_proto::MemberId;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: MemberId,
    /// Slots of the entities that it owns.
    pub(super) eyes: Vec<u16>,
    /// Whether an eye was added, moved or removed since the last look.
    pub(super) has_new_eyes: bool,
    /// Whether it was never evaluated.
    is_new: bool,
    /// Zones of its eyes, ascending.
    zones: Vec<u32>,
    /// Cells of its eyes, each once.
    cells: Vec<CellKey>,
    /// What it sees by the rules, before a filter.
    pub(super) seen: Bits,
    /// What was reported as seen.
    pub(super) told: Bits,
    /// By slot: the squared distance to the nearest eye at its last evaluation; infinite beyond `leave`.
    distances: Vec<f32>,
}

/// Reusable buffers, so that a look allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    seen: Bits,
    zones: Vec<u32>,
    cells: Vec<usize>,
    /// Examined pairs of a member and an entity.
    pub(super) looks: u64,
}

impl Member {
    pub(super) fn new(id: MemberId, eyes: Vec<u16>) -> Self {
        Member {
            id,
            eyes,
            has_new_eyes: true,
            is_new: true,
            zones: Vec::new(),
            cells: Vec::new(),
            seen: Bits::default(),
            told: Bits::default(),
            distances: Vec::new(),
        }
    }

    pub(super) fn nearness(&self, slot: u16, reach: Reach) -> u16 {
        let squared = self.distances.get(usize::from(slot)).copied().unwrap_or(f32::INFINITY);
        nearness_at(f64::from(squared).sqrt(), reach.radius)
    }
}

/// The squared distances of a reach.
#[derive(Clone, Copy, Debug)]
struct Squares {
    radius: f32,
    leave: f32,
}

impl Interest {
    /// Updates what a member sees by the rules. Returns whether it may have changed.
    pub(super) fn look(&mut self, member: &mut Member) -> bool {
        if !member.has_new_eyes && self.everywhere.is_empty() && !self.grid.has_moves() {
            return false;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        member.distances.resize(self.slots.len(), f32::INFINITY);
        if std::mem::take(&mut member.has_new_eyes) {
            self.look_anew(member, &mut scratch);
        } else {
            self.look_at_moves(member, &mut scratch);
        }
        self.scratch = scratch;
        true
    }

    /// Evaluates only what changed, for a member whose eyes did not move.
    fn look_at_moves(&mut self, member: &mut Member, scratch: &mut Scratch) {
        scratch.looks += self.everywhere.len() as u64;
        for slot in &self.everywhere {
            let sees = self.judge(member, *slot);
            member.seen.set(*slot, sees);
        }
        if !self.grid.has_moves() {
            return;
        }
        scratch.cells.clear();
        member.cells.iter().for_each(|key| self.grid.neighbours(*key, &mut scratch.cells));
        self.grid.begin_walk();
        for cell in &scratch.cells {
            if self.grid.visit(*cell) {
                scratch.looks += self.grid.cell(*cell).changed.len() as u64;
                for slot in &self.grid.cell(*cell).changed {
                    let sees = self.judge(member, *slot);
                    member.seen.set(*slot, sees);
                }
            }
        }
    }

    /// Evaluates all positioned entities around the member's eyes. Others are evaluated only if they changed,
    /// or if the zones of its eyes did.
    fn look_anew(&mut self, member: &mut Member, scratch: &mut Scratch) {
        self.find_eyes(member, &mut scratch.zones);
        let same_rooms = scratch.zones == member.zones && !std::mem::take(&mut member.is_new);
        std::mem::swap(&mut scratch.zones, &mut member.zones);

        scratch.seen.clear();
        member.distances.fill(f32::INFINITY);
        if self.reach.is_some() {
            for eye in &member.eyes {
                self.look_around(*eye, &member.seen, &mut member.distances, scratch);
            }
        }
        if same_rooms {
            scratch.seen.add_common(&member.seen, &self.unplaced);
        } else {
            let zones = member.zones.iter().copied().filter(|zone| *zone != 0);
            for zone in std::iter::once(0).chain(zones) {
                if let Some(cell) = self.grid.get(CellKey { zone, cube: Cube::Nowhere }) {
                    let entries = &self.grid.cell(cell).entries;
                    scratch.looks += entries.len() as u64;
                    entries.iter().for_each(|entry| scratch.seen.set(entry.slot, true));
                }
            }
        }
        for eye in &member.eyes {
            scratch.seen.set(*eye, true);
        }
        scratch.seen.retain_in(&self.restricted, |slot| self.admits(member.id, slot));
        scratch.looks += self.everywhere.len() as u64;
        for slot in &self.everywhere {
            let sees = self.judge(member, *slot);
            scratch.seen.set(*slot, sees);
        }
        std::mem::swap(&mut scratch.seen, &mut member.seen);
    }

    /// Collects the cells and zones of a member's eyes.
    fn find_eyes(&self, member: &mut Member, zones: &mut Vec<u32>) {
        zones.clear();
        member.cells.clear();
        for eye in &member.eyes {
            let record = &self.slots[usize::from(*eye)];
            zones.extend(record.place.map(|place| place.zone));
            member.cells.extend(record.spot.map(|spot| self.grid.key_of(spot)));
        }
        zones.sort_unstable();
        zones.dedup();
        member.cells.sort_unstable();
        member.cells.dedup();
    }

    /// Adds the entities near an eye.
    fn look_around(&self, eye: u16, seen: &Bits, distances: &mut [f32], scratch: &mut Scratch) {
        let record = &self.slots[usize::from(eye)];
        let (Some(spot), Some(from)) = (record.spot, record.place.and_then(|place| place.position)) else {
            return;
        };
        let squares = self.squares();
        scratch.cells.clear();
        self.grid.neighbours(self.grid.key_of(spot), &mut scratch.cells);
        for cell in &scratch.cells {
            let entries = &self.grid.cell(*cell).entries;
            scratch.looks += entries.len() as u64;
            for entry in entries {
                let squared = distance_squared(from, entry.position);
                if squared > squares.leave {
                    continue;
                }
                let distance = &mut distances[usize::from(entry.slot)];
                *distance = distance.min(squared);
                if squared <= squares.radius || seen.contains(entry.slot) {
                    scratch.seen.set(entry.slot, true);
                }
            }
        }
    }

    /// Whether a member sees the entity of `slot` by the rules, given whether it did before. Records its
    /// distance.
    fn judge(&self, member: &mut Member, slot: u16) -> bool {
        let record = &self.slots[usize::from(slot)];
        let Some(place) = record.place else { return false };
        let sees = match place.position {
            None => place.zone == 0 || member.zones.binary_search(&place.zone).is_ok(),
            Some(position) => {
                let squares = self.squares();
                let eyes = member.eyes.iter().filter_map(|eye| self.slots[usize::from(*eye)].place);
                let eyes = eyes.filter(|eye| place.zone == 0 || place.zone == eye.zone);
                let squared =
                    eyes.filter_map(|eye| eye.position).map(|from| distance_squared(from, position));
                let nearest = squared.fold(f32::INFINITY, f32::min);
                let is_within = nearest <= squares.leave;
                member.distances[usize::from(slot)] = if is_within { nearest } else { f32::INFINITY };
                nearest <= squares.radius || (is_within && member.seen.contains(slot))
            }
        };
        (sees || place.owner == Some(member.id)) && self.admits(member.id, slot)
    }

    #[allow(clippy::cast_possible_truncation)] // what no f32 holds is infinite
    fn squares(&self) -> Squares {
        let reach = self.reach.map_or((0.0, 0.0), |reach| (reach.radius, reach.leave));
        Squares { radius: (reach.0 * reach.0) as f32, leave: (reach.1 * reach.1) as f32 }
    }
}

fn distance_squared(a: [f32; 3], b: [f32; 3]) -> f32 {
    let [x, y, z] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    x * x + y * y + z * z
}
