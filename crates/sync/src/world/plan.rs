//! What the next packets for a receiver shall say, before it is coded: equal plans have equal bodies.

use super::meta::Meta;
use super::store::World;
use crate::audience::Viewer;
use crate::delta::{EntryKind, HISTORY_MAX};
use crate::schema::ComponentId;

/// Bytes that the head of an entry seldom reaches, and a lane never.
pub(super) const ENTRY_BYTES_BAD: usize = 48;
pub(super) const LANE_BYTES_BAD: usize = 6;

/// Priority of an entity without components.
const NORMAL_PRIORITY: u32 = 256;

/// What shall be said of one entity: its slot, and which of the plan's [`Shape`]s it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanEntry {
    pub(super) slot: u16,
    pub(super) shape: u16,
}

/// What shall be said of an entity, whichever it is. Most entities of a packet have one of few shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) kind: EntryKind,
    /// How many rows it builds on.
    pub(super) rows: u8,
    /// Label of the row that it brings.
    pub(super) label: u32,
    /// Labels of the rows that it builds on, the baseline first.
    pub(super) history: [u32; HISTORY_MAX],
    /// Components that the receiver then has.
    pub(super) mask: u64,
    /// Whose view it is, if what an entity is beside its components changed since one of these rows: then
    /// equal masks do not make views equal.
    pub(super) view: Option<Viewer>,
}

impl Shape {
    /// That an entity is gone.
    pub(super) const FAREWELL: Shape =
        Shape { kind: EntryKind::Despawn, rows: 0, label: 0, history: [0; HISTORY_MAX], mask: 0, view: None };

    /// Label of the oldest row that it builds on.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.history[..usize::from(self.rows)].last().copied()
    }
}

/// What a shape follows from, where the view of the receiver has no part in it: the rows that it has, as
/// [`ReceiverState`](super::receiver_state::ReceiverState) has them, the label of the row that it gets, and
/// the components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) acked: u32,
    pub(super) older: u64,
    pub(super) label: u32,
    pub(super) mask: u64,
}

/// What the next packets shall say, by ascending slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) entries: Vec<PlanEntry>,
    /// Shapes of entries; equal ones may stand here twice.
    shapes: Vec<Shape>,
    /// For each shape what distinguishes it from most others.
    digests: Vec<u64>,
    /// Distinguishes most plans that differ.
    pub(super) digest: u64,
    /// Distinguishes most plans that speak of other entities or components, whatever they build on.
    pub(super) view_digest: u64,
    /// Shapes that were found lately, by what they follow from.
    found: [Option<Found>; FOUND],
    /// What was found last: most entities of a packet have the same.
    last: Option<Found>,
}

/// What follows from a cause.
#[derive(Clone, Copy, Debug)]
struct Found {
    cause: Cause,
    /// No row that is built on is older.
    oldest: u32,
    shape: u16,
}

/// Causes whose shapes a plan remembers: a power of two.
const FOUND: usize = 16;
/// Shapes among which a new one is looked for: when there are more, entities differ too much for that to be
/// worth while.
const LOOKED_THROUGH: usize = 16;

impl Plan {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.shapes.clear();
        self.digests.clear();
        (self.digest, self.view_digest) = (0, 0);
        (self.found, self.last) = ([None; FOUND], None);
    }

    /// Bytes of memory that its lists have.
    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<PlanEntry>()
            + self.shapes.capacity() * size_of::<Shape>()
            + self.digests.capacity() * size_of::<u64>()
    }

    /// Whether this says the same as another plan.
    pub(super) fn is_same(&self, other: &Plan) -> bool {
        // Which of their own shapes were found to be equal last.
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

    /// Makes this say the same as another plan, to be compared and read.
    pub(super) fn copy_from(&mut self, other: &Plan) {
        self.entries.clone_from(&other.entries);
        self.shapes.clone_from(&other.shapes);
        self.digest = other.digest;
    }

    /// What shall be said of an entry's entity.
    pub(super) fn shape(&self, entry: PlanEntry) -> &Shape {
        &self.shapes[usize::from(entry.shape)]
    }

    /// Of an entity this shall be said.
    pub(super) fn push(&mut self, slot: u16, shape: Shape) {
        let mask = shape.mask;
        let shape = self.intern(shape);
        self.push_shape(slot, shape, mask);
    }

    /// Of an entity it shall be said what follows from `cause`, once `settle` says which rows count of it;
    /// says whether it is so: not if the entity was another one beside its components, at `meta_label`, after
    /// one of these rows.
    ///
    /// `settle` also says what shape follows then. It is a function of nothing but what it is given, as long
    /// as the plan is made.
    #[inline]
    pub(super) fn push_found(
        &mut self,
        slot: u16,
        cause: Cause,
        meta_label: u32,
        settle: impl FnOnce(Cause) -> (Cause, Shape),
    ) -> bool {
        let last = self.last.as_ref().filter(|last| last.cause == cause && meta_label <= last.oldest);
        let shape = match last {
            Some(last) => last.shape,
            None => match self.find(cause, meta_label, settle) {
                Some(shape) => shape,
                None => return false,
            },
        };
        self.push_shape(slot, shape, cause.mask);
        true
    }

    /// The shape that follows from `cause`, unless `meta_label` is after one of the rows.
    #[inline(never)]
    fn find(
        &mut self,
        cause: Cause,
        meta_label: u32,
        settle: impl FnOnce(Cause) -> (Cause, Shape),
    ) -> Option<u16> {
        let mixed = (cause.older ^ u64::from(cause.acked) << 32 ^ u64::from(cause.label) ^ cause.mask << 16)
            .wrapping_mul(MIX);
        let place = usize::from((mixed >> (u64::BITS - u8::BITS)) as u8) % FOUND;
        let found = match self.found[place] {
            Some(known) if known.cause == cause => known,
            _ => {
                let (settled, shape) = settle(cause);
                let oldest = settled.oldest();
                if meta_label > oldest {
                    return None;
                }
                let found = Found { cause, oldest, shape: self.intern(shape) };
                self.found[place] = Some(found);
                found
            }
        };
        self.last = Some(found);
        (meta_label <= found.oldest).then_some(found.shape)
    }

    #[inline]
    fn push_shape(&mut self, slot: u16, shape: u16, mask: u64) {
        self.digest = mix(self.digest, u64::from(slot) ^ self.digests[usize::from(shape)]);
        // Slots ascend, so their order says nothing more.
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

/// An odd number whose bits are as if drawn: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

const _: () = assert!(crate::limits::ENTITIES_MAX <= 1 << 16, "a plan has at most a shape for each slot");

impl World {
    /// What `viewer` sees of a slot's entity: when anything of that changed last, and its components. `None`
    /// if there is no entity for publishers, whoever sees it.
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

    /// When what a slot's entity is beside the values of its components changed last, for `viewer`.
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

    /// Whether all that a row of `label` was for `viewer` is remembered, so that another row can build on it.
    pub(super) fn remembers(&self, slot: u16, viewer: Viewer, label: u32) -> bool {
        let Some(meta) = self.metas[usize::from(slot)].at(label) else { return false };
        ComponentId::in_mask(self.masks.of(viewer, meta))
            .all(|id| self.columns[id.index()].oldest(slot).is_some_and(|oldest| oldest <= label))
    }

    /// What a slot's entity was at a tick that is remembered.
    pub(super) fn meta_at(&self, slot: u16, label: u32) -> Option<&Meta> {
        self.metas[usize::from(slot)].at(label)
    }

    /// Whether an entity had components from `from` to `to`, both included.
    pub(super) fn had_components(&self, slot: u16, mask: u64, from: u32, to: u32) -> bool {
        self.metas[usize::from(slot)].had(mask, from, to)
    }

    /// The components that a slot's entity had at a tick that is remembered.
    pub(super) fn mask_at(&self, slot: u16, label: u32) -> Option<u64> {
        // Nearly always nothing but values changed since, and the brief is nearer than what it was made of.
        match self.brief(slot, true).filter(|brief| brief.meta_label <= label) {
            Some(brief) => Some(brief.mask),
            None => self.meta_at(slot, label).map(|meta| meta.mask),
        }
    }

    /// Whether an entity was the same beside the values of its components from `label` on.
    pub(super) fn is_same_since(&self, slot: u16, label: u32) -> bool {
        self.metas[usize::from(slot)].newest().is_some_and(|meta| meta.label <= label)
    }
}
