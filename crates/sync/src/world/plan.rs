//! Plans: the content of the next packets for a receiver, before encoding. Equal plans have equal bodies.

use super::meta::Meta;
use super::store::World;
use crate::audience::Viewer;
use crate::delta::{EntryKind, HISTORY_MAX};
use crate::schema::ComponentId;

/// Estimated bytes of an entry's head, seldom reached; for a lane, never reached.
pub(super) const ENTRY_BYTES_BAD: usize = 48;
pub(super) const LANE_BYTES_BAD: usize = 6;

/// Priority of an entity without components.
const NORMAL_PRIORITY: u32 = 256;

/// The plan for one entity: its slot, and its [`Shape`] in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanEntry {
    pub(super) slot: u16,
    pub(super) shape: u16,
}

/// The plan for an entity, independent of its slot. Most entities of a packet have one of few shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) kind: EntryKind,
    /// The number of baselines.
    pub(super) rows: u8,
    /// The label of the row that is sent.
    pub(super) label: u32,
    /// The labels of the rows that it builds on, the baseline first.
    pub(super) history: [u32; HISTORY_MAX],
    /// The receiver's components afterwards.
    pub(super) mask: u64,
    /// The viewer, if more than component values changed since one of these rows: then equal masks do not
    /// imply equal views.
    pub(super) view: Option<Viewer>,
}

impl Shape {
    /// Despawns an entity.
    pub(super) const FAREWELL: Shape =
        Shape { kind: EntryKind::Despawn, rows: 0, label: 0, history: [0; HISTORY_MAX], mask: 0, view: None };

    /// The label of the oldest row that it builds on.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.history[..usize::from(self.rows)].last().copied()
    }
}

/// The inputs that determine a shape, if the receiver's view has no part in it: the rows that it has, as in
/// [`ReceiverState`](super::receiver_state::ReceiverState), the label of the row that is sent, and the
/// components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) acked: u32,
    pub(super) older: u64,
    pub(super) label: u32,
    pub(super) mask: u64,
}

/// The content of the next packets, by ascending slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) entries: Vec<PlanEntry>,
    /// The shapes of entries; equal ones may occur twice.
    shapes: Vec<Shape>,
    /// A digest of each shape, to compare them quickly.
    digests: Vec<u64>,
    /// A digest of the plan.
    pub(super) digest: u64,
    /// A digest of the plan's entities and components, without baselines.
    pub(super) view_digest: u64,
}

/// The shapes of recent causes while a plan is made. It is no part of the plan, because a server has a plan for each
/// member of a room.
#[derive(Debug, Default)]
pub(super) struct FoundShapes {
    /// By cause.
    found: [Option<Found>; FOUND],
    /// The last one: most entities of a packet have the same.
    last: Option<Found>,
}

/// The cached shape of a cause.
#[derive(Clone, Copy, Debug)]
struct Found {
    cause: Cause,
    /// No older row is used.
    oldest: u32,
    shape: u16,
}

/// The number of cached causes: a power of two.
const FOUND: usize = 16;
/// The number of shapes searched for an equal one. With more, entities differ too much for a search to pay.
const LOOKED_THROUGH: usize = 16;

impl Plan {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.shapes.clear();
        self.digests.clear();
        (self.digest, self.view_digest) = (0, 0);
    }

    /// Bytes of memory of its lists.
    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<PlanEntry>()
            + self.shapes.capacity() * size_of::<Shape>()
            + self.digests.capacity() * size_of::<u64>()
    }

    /// Whether it equals another plan.
    pub(super) fn is_same(&self, other: &Plan) -> bool {
        // The last pair of shapes that was found to be equal.
        let mut equal = None;
        let mut says_same = |(entry, theirs): (&PlanEntry, &PlanEntry)| {
            let shapes = Some((entry.shape, theirs.shape));
            let is_equal = shapes == equal || self.shape(*entry) == other.shape(*theirs);
            equal = shapes;
            is_equal && entry.slot == theirs.slot
        };
        self.digest == other.digest
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(&mut says_same)
    }

    /// Copies another plan, to be compared and read.
    pub(super) fn copy_from(&mut self, other: &Plan) {
        self.entries.clone_from(&other.entries);
        self.shapes.clone_from(&other.shapes);
        self.digest = other.digest;
    }

    /// Returns the shape of an entry.
    pub(super) fn shape(&self, entry: PlanEntry) -> &Shape {
        &self.shapes[usize::from(entry.shape)]
    }

    /// Queues this entity with a shape.
    pub(super) fn push(&mut self, slot: u16, shape: Shape) {
        let mask = shape.mask;
        let shape = self.intern(shape);
        self.push_shape(slot, shape, mask);
    }

    /// Queues this entity with a cached plan. Returns false if its metadata changed (at `meta_label`) since
    /// one of the rows used.
    ///
    /// `settle` limits the cause to the rows to use, and returns the shape. It must be a pure function of its
    /// argument while the plan is made.
    #[inline]
    pub(super) fn push_found(
        &mut self,
        found: &mut FoundShapes,
        slot: u16,
        cause: Cause,
        meta_label: u32,
        settle: impl FnOnce(Cause) -> (Cause, Shape),
    ) -> bool {
        let last = found.last.as_ref().filter(|last| last.cause == cause && meta_label <= last.oldest);
        let shape = match last {
            Some(last) => last.shape,
            None => match self.find(found, cause, meta_label, settle) {
                Some(shape) => shape,
                None => return false,
            },
        };
        self.push_shape(slot, shape, cause.mask);
        true
    }

    /// Returns the shape for `cause`, unless `meta_label` is after one of the rows.
    #[inline(never)]
    fn find(
        &mut self,
        FoundShapes { found, last }: &mut FoundShapes,
        cause: Cause,
        meta_label: u32,
        settle: impl FnOnce(Cause) -> (Cause, Shape),
    ) -> Option<u16> {
        let mixed = (cause.older ^ u64::from(cause.acked) << 32 ^ u64::from(cause.label) ^ cause.mask << 16)
            .wrapping_mul(MIX);
        let place = usize::from((mixed >> (u64::BITS - u8::BITS)) as u8) % FOUND;
        let known = match found[place] {
            Some(known) if known.cause == cause => known,
            _ => {
                let (settled, shape) = settle(cause);
                let oldest = settled.oldest();
                if meta_label > oldest {
                    return None;
                }
                *found[place].insert(Found { cause, oldest, shape: self.intern(shape) })
            }
        };
        *last = Some(known);
        (meta_label <= known.oldest).then_some(known.shape)
    }

    #[inline]
    fn push_shape(&mut self, slot: u16, shape: u16, mask: u64) {
        self.digest = mix(self.digest, u64::from(slot) ^ self.digests[usize::from(shape)]);
        // Slots ascend, so their order carries no information.
        let word = (u64::from(slot) ^ mask.rotate_left(16)).wrapping_mul(MIX);
        self.view_digest = self.view_digest.wrapping_add(word);
        self.entries.push(PlanEntry { slot, shape });
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are not more shapes than slots")]
    fn intern(&mut self, shape: Shape) -> u16 {
        let few = if self.shapes.len() <= LOOKED_THROUGH { &self.shapes[..] } else { &[] };
        if let Some(found) = few.iter().position(|other| *other == shape) {
            return found as u16;
        }
        let word =
            shape.mask ^ u64::from(shape.rows) << 40 ^ (shape.kind as u64) << 32 ^ u64::from(shape.label);
        self.digests
            .push(shape.history.iter().fold(mix(0, word), |digest, label| mix(digest, u64::from(*label))));
        self.shapes.push(shape);
        (self.shapes.len() - 1) as u16
    }
}

#[inline]
fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(MIX).rotate_left(29)
}

/// An odd number with well mixed bits: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

const _: () = assert!(crate::limits::ENTITIES_MAX <= 1 << 16, "a plan has at most a shape for each slot");

impl World {
    /// Returns what `viewer` sees of a slot's entity: the label of its last visible change, and its
    /// components. `None` if there is no entity to publish.
    pub(super) fn row_seen(&self, slot: u16, viewer: Viewer) -> Option<(u32, u64)> {
        if let Some(brief) = self.brief(slot, viewer == Viewer::Everything) {
            return Some((brief.label, brief.mask));
        }
        self.slots.get(usize::from(slot)).filter(|place| place.published)?;
        let metas = &self.metas[usize::from(slot)];
        let meta = metas.newest()?;
        let mask = self.masks.of(viewer, meta);
        let metas_label = metas.seen_label(viewer, &self.masks)?;
        let labels = ComponentId::in_mask(mask).filter_map(|id| self.columns[id.index()].newest(slot));
        Some((labels.fold(metas_label, u32::max), mask))
    }

    /// The label of the last change, visible to `viewer`, of more than component values.
    pub(super) fn meta_seen(&self, slot: u16, viewer: Viewer) -> Option<u32> {
        self.metas[usize::from(slot)].seen_label(viewer, &self.masks)
    }

    /// The highest priority of these components.
    pub(super) fn priority(&self, mask: u64) -> u32 {
        let components = self.schema.components();
        ComponentId::in_mask(mask)
            .map(|id| u32::from(components[id.index()].priority()))
            .max()
            .unwrap_or(NORMAL_PRIORITY)
    }

    /// Whether the row of `label`, as `viewer` saw it, is completely known, so that another row can build on
    /// it.
    pub(super) fn remembers(&self, slot: u16, viewer: Viewer, label: u32) -> bool {
        let Some(meta) = self.metas[usize::from(slot)].at(label) else { return false };
        ComponentId::in_mask(self.masks.of(viewer, meta))
            .all(|id| self.columns[id.index()].oldest(slot).is_some_and(|oldest| oldest <= label))
    }

    /// Returns the meta of a slot's entity at a known tick.
    pub(super) fn meta_at(&self, slot: u16, label: u32) -> Option<&Meta> {
        self.metas[usize::from(slot)].at(label)
    }

    /// Whether an entity had these components at all ticks from `from` to `to`, both included.
    pub(super) fn had_components(&self, slot: u16, mask: u64, from: u32, to: u32) -> bool {
        self.metas[usize::from(slot)].had(mask, from, to)
    }

    /// Returns the components of a slot's entity at a known tick.
    pub(super) fn mask_at(&self, slot: u16, label: u32) -> Option<u64> {
        // Nearly always only values changed since, and the brief is more likely to be in the cache than its
        // source.
        match self.brief(slot, true).filter(|brief| brief.meta_label <= label) {
            Some(brief) => Some(brief.mask),
            None => self.meta_at(slot, label).map(|meta| meta.mask),
        }
    }

    /// Whether only component values of an entity changed since `label`.
    pub(super) fn is_same_since(&self, slot: u16, label: u32) -> bool {
        self.metas[usize::from(slot)].newest().is_some_and(|meta| meta.label <= label)
    }
}
