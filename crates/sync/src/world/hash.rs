//! A hash by which two ends check that they hold the same world.

use super::store::World;
use crate::audience::{Audience, Viewer};
use crate::schema::ComponentId;
use xxhash_rust::xxh3::Xxh3Default;

impl World {
    /// Returns the xxh3-64 hash of the entities that `viewer` sees, by ascending slot. For each: slot and
    /// generation (2 bytes each), owner (its number plus 1, or 0; 8 bytes), for [`Viewer::Everything`] the
    /// zone (4 bytes) and the audience (its size plus 1 in 8 bytes, 0 for all, then 4 bytes each), the
    /// components (8 bytes), and of each component its lanes (4 bytes each) and blobs (length in 8 bytes, and
    /// the bytes). All little-endian. Uncommitted changes count.
    pub fn hash(&self, viewer: Viewer) -> u64 {
        self.hash_of(viewer, |slot| self.slots[usize::from(slot)].audience.admits(viewer))
    }

    /// The [`hash`](Self::hash) of the entities that `sees` admits.
    pub(super) fn hash_of(&self, viewer: Viewer, sees: impl Fn(u16) -> bool) -> u64 {
        let mut hash = Xxh3Default::new();
        for entity in self.entities().filter(|entity| sees(entity.slot)) {
            let place = &self.slots[usize::from(entity.slot)];
            let mask = self.masks.part(viewer, place.owner, place.mask);
            hash.update(&entity.slot.to_le_bytes());
            hash.update(&entity.generation.to_le_bytes());
            hash.update(&place.owner.map_or(0, |owner| u64::from(owner.0) + 1).to_le_bytes());
            if viewer == Viewer::Everything {
                hash.update(&place.zone.to_le_bytes());
                let members = match &*place.audience {
                    Audience::All => None,
                    Audience::Members(members) => Some(members),
                };
                hash.update(&members.map_or(0, |members| members.len() as u64 + 1).to_le_bytes());
                members.into_iter().flatten().for_each(|member| hash.update(&member.0.to_le_bytes()));
            }
            hash.update(&mask.to_le_bytes());
            let forms =
                ComponentId::in_mask(mask).filter_map(|id| self.columns[id.index()].present(entity.slot));
            for form in forms {
                form.lanes.iter().for_each(|lane| hash.update(&lane.to_le_bytes()));
                for blob in form.blobs {
                    hash.update(&(blob.len() as u64).to_le_bytes());
                    hash.update(blob);
                }
            }
        }
        hash.digest()
    }
}
