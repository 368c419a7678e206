//! Coding plans, and sharing what was coded between receivers with equal plans.

use super::meta::Meta;
use super::plan::{ENTRY_BYTES_BAD, LANE_BYTES_BAD, Plan, PlanEntry, Shape};
use super::ring::Form;
use super::store::World;
use crate::audience::Viewer;
use crate::delta::{self, EntryHead, EntryKind, HISTORY_MAX, Past, Writer};
use crate::limits::{PACKET_ENTRIES_MAX, PACKET_OUTPUT_BYTES_MAX, PACKET_PART_BYTES};
use crate::schema::ComponentId;
use bytes::Bytes;

/// Encoded bodies of one state of one world, shared by all receivers with equal plans.
#[derive(Clone, Debug, Default)]
pub struct Encodings {
    state: State,
    shared: Vec<Shared>,
    /// How many of `shared` belong to this state; the others are spare buffers.
    used: usize,
    writer: Writer,
    out: Vec<u8>,
    /// The component counters of a body before its last entry.
    before: Vec<(u32, u32)>,
    /// The number of bodies encoded, and of reuses for another receiver.
    coded: u64,
    reused: u64,
}

/// The state of a world that bodies are encoded from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    lineage: u32,
    changes: u64,
    tick: Option<u32>,
}

/// The form of a receiver's bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BodyForm {
    /// Whether it gets owners, zones and audiences.
    pub(super) everything: bool,
    /// Whether they are plain instead of coded.
    pub(super) is_plain: bool,
    /// Maximum bytes of a body, unless a single entity is larger.
    pub(super) bytes_max: usize,
}

#[derive(Clone, Debug, Default)]
struct Shared {
    form: BodyForm,
    plan: Plan,
    bodies: Vec<Body>,
    bodies_used: usize,
}

/// A body and its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    /// The index in the plan after its last entry.
    pub(super) until: usize,
    /// Bytes of each component, and how often it was coded.
    pub(super) components: Vec<(u32, u32)>,
}

/// The cache position of a receiver's plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    state: State,
    index: usize,
    body: usize,
}

impl Encodings {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Encodings::default()
    }

    /// The number of bodies encoded, and of reuses for another receiver.
    pub const fn counts(&self) -> (u64, u64) {
        (self.coded, self.reused)
    }

    /// Returns the next body of a plan, which must have entries left. `place` is the position of the last
    /// one, and is advanced.
    pub(super) fn next_body(
        &mut self,
        world: &World,
        form: BodyForm,
        plan: &Plan,
        place: &mut Option<Place>,
    ) -> &Body {
        let state = State { lineage: world.lineage, changes: world.log.end(), tick: world.tick };
        if self.state != state {
            (self.state, self.used) = (state, 0);
        }
        let index = match *place {
            Some(Place { state: then, index, .. })
                if then == state && index < self.used && self.shared[index].plan.digest == plan.digest =>
            {
                index
            }
            _ => self.find(form, plan),
        };
        let body =
            place.filter(|place| place.state == state && place.index == index).map_or(0, |it| it.body + 1);
        *place = Some(Place { state, index, body });
        if body < self.shared[index].bodies_used {
            self.reused += 1;
        } else {
            self.code(world, index);
        }
        &self.shared[index].bodies[body]
    }

    /// Bytes of memory, for a world with these tables.
    pub fn memory_bytes(&self, world: &World) -> usize {
        let body = |body: &Body| body.bytes.len() + body.components.capacity() * size_of::<(u32, u32)>();
        let shared = |it: &Shared| {
            let bodies = it.bodies.iter().map(body).sum::<usize>();
            size_of::<Shared>() + it.plan.memory_bytes() + it.bodies.capacity() * size_of::<Body>() + bodies
        };
        // A writer's state has the size of the initial tables.
        self.shared.iter().map(shared).sum::<usize>() + self.out.capacity() + 2 * world.tables_bytes()
    }

    fn find(&mut self, form: BodyForm, plan: &Plan) -> usize {
        let is_equal = |shared: &Shared| shared.form == form && shared.plan.is_same(plan);
        if let Some(found) = self.shared[..self.used].iter().position(is_equal) {
            return found;
        }
        if self.used == self.shared.len() {
            self.shared.push(Shared::default());
        }
        let shared = &mut self.shared[self.used];
        (shared.form, shared.bodies_used) = (form, 0);
        shared.plan.copy_from(plan);
        self.used += 1;
        self.used - 1
    }

    /// Encodes one more body of a plan.
    fn code(&mut self, world: &World, index: usize) {
        let shared = &mut self.shared[index];
        let from = shared.bodies_used.checked_sub(1).map_or(0, |last| shared.bodies[last].until);
        if shared.bodies_used == shared.bodies.len() {
            shared.bodies.push(Body::default());
        }
        let body = &mut shared.bodies[shared.bodies_used];
        body.components.clear();
        body.components.resize(world.columns.len(), (0, 0));
        if shared.form.is_plain {
            self.writer.begin_plain(world.tables());
        } else {
            self.writer.begin(world.tables(), shared.form.everything);
        }
        let mut coding = Coding {
            world,
            form: shared.form,
            plan: &shared.plan,
            writer: &mut self.writer,
            components: &mut body.components,
            before: &mut self.before,
            sized: None,
            head: EntryHead::update(0),
            head_of: None,
        };
        body.until = coding.body_from(from, shared.form.bytes_max);
        self.out.clear();
        self.writer.finish(world.tables(), &mut self.out);
        body.bytes = Bytes::copy_from_slice(&self.out);
        shared.bodies_used += 1;
        self.coded += 1;
    }
}

/// Encodes the entries of one body.
struct Coding<'a> {
    world: &'a World,
    form: BodyForm,
    plan: &'a Plan,
    writer: &'a mut Writer,
    components: &'a mut Vec<(u32, u32)>,
    before: &'a mut Vec<(u32, u32)>,
    /// The last shape without blobs whose size was computed, and its size.
    sized: Option<(u16, Size)>,
    /// The head of the last entry, and its shape if all entries of that shape differ only in slot and
    /// changes.
    head: EntryHead,
    head_of: Option<u16>,
}

/// The size of an entry.
#[derive(Clone, Copy)]
struct Size {
    /// Bytes of memory at the receiver.
    output: usize,
    /// Worst-case bytes in the packet.
    bad: usize,
}

impl Coding<'_> {
    /// Encodes entries from `from` on until the body is full: at least one. Returns the end position.
    fn body_from(&mut self, from: usize, packet_bytes: usize) -> usize {
        let plan = self.plan;
        let (mut output, mut count) = (0, 0);
        for entry in &plan.entries[from..] {
            let size = self.size(*entry);
            output += size.output;
            if count > 0 && (count == PACKET_ENTRIES_MAX || output > PACKET_OUTPUT_BYTES_MAX) {
                break;
            }
            // Far from the limit, and for the first entry, no undo is needed.
            let is_near = count > 0 && self.writer.bytes() + size.bad > packet_bytes;
            let mark = is_near.then(|| {
                self.before.clone_from(self.components);
                self.writer.mark()
            });
            self.entry(*entry);
            if let Some(mark) = mark
                && self.writer.bytes() > packet_bytes
            {
                self.writer.undo(&mark);
                self.components.clone_from(self.before);
                break;
            }
            count += 1;
        }
        from + count
    }

    fn size(&mut self, entry: PlanEntry) -> Size {
        if let Some((_, size)) = self.sized.filter(|(shape, _)| *shape == entry.shape) {
            return size;
        }
        let Shape { mask, label, .. } = *self.plan.shape(entry);
        let (mut parts, mut lanes, mut blobs) = (0, 0, 0);
        for id in ComponentId::in_mask(mask) {
            let column = &self.world.columns[id.index()];
            parts += 1 + column.blobs();
            lanes += column.lanes();
            if column.blobs() > 0 {
                let form = column.at(entry.slot, label);
                blobs += form.map_or(0, |form| form.blobs.iter().map(|blob| blob.len() + 8).sum());
            }
        }
        let bad = ENTRY_BYTES_BAD + lanes * LANE_BYTES_BAD + blobs + blobs / 4;
        let size = Size { output: parts * PACKET_PART_BYTES + lanes * 4 + blobs, bad };
        self.sized = (mask & self.world.blob_columns == 0).then_some((entry.shape, size));
        size
    }

    fn entry(&mut self, entry: PlanEntry) {
        let (plan, slot) = (self.plan, entry.slot);
        let shape = plan.shape(entry);
        if self.head_of != Some(entry.shape) {
            self.head = self.head_of_shape(slot, shape);
            let is_plain = shape.kind == EntryKind::Update && shape.view.is_none();
            self.head_of = is_plain.then_some(entry.shape);
        }
        self.head.slot = slot;
        if self.head_of.is_some() {
            self.head.changed = self.changed_values(slot, shape, shape.mask);
        }
        self.writer.head(self.world.tables(), &self.head);
        for id in ComponentId::in_mask(self.head.changed) {
            self.component(slot, shape, id);
        }
    }

    /// The head of an entry; for a plain update without its changes.
    fn head_of_shape(&self, slot: u16, shape: &Shape) -> EntryHead {
        let mut head = EntryHead { kind: shape.kind, ..EntryHead::update(slot) };
        if shape.kind == EntryKind::Despawn {
            return head;
        }
        head.row_age = self.world.tick.unwrap_or(0).saturating_sub(shape.label);
        if shape.kind == EntryKind::Spawn {
            head.generation = self.world.slots[usize::from(slot)].generation;
            (head.mask, head.mask_changed, head.changed) = (shape.mask, true, shape.mask);
            head.meta = self.world.meta_at(slot, shape.label).map(|meta| self.meta(meta));
            return head;
        }
        head.history = shape.rows;
        for (age, label) in head.ages.iter_mut().zip(&shape.history).take(usize::from(shape.rows)) {
            *age = shape.label - label;
        }
        if let Some(viewer) = shape.view {
            self.fill_changes(slot, shape, viewer, &mut head);
        }
        head
    }

    /// Sets the changes of an entity since its baseline, if more than values may have changed.
    fn fill_changes(&self, slot: u16, shape: &Shape, viewer: Viewer, head: &mut EntryHead) {
        let baseline = shape.history[0];
        let mask_before = self.mask_at(slot, shape, baseline);
        if self.world.meta_seen(slot, viewer).is_some_and(|label| label > baseline) {
            // Also if the mask is the same as at the baseline: it differed in between, and rows of that time
            // may be in use.
            (head.mask, head.mask_changed) = (shape.mask, true);
            head.meta = self.world.meta_at(slot, shape.label).map(|meta| self.meta(meta));
        }
        head.changed = shape.mask & !mask_before | self.changed_values(slot, shape, shape.mask & mask_before);
    }

    /// The components whose values differ from the baseline.
    fn changed_values(&self, slot: u16, shape: &Shape, mask: u64) -> u64 {
        let has_changed = |id: ComponentId| {
            let versions = self.world.columns[id.index()].versions(slot);
            versions.is_some_and(|versions| versions.changed_since(shape.history[0]))
        };
        ComponentId::in_mask(mask).filter(|id| has_changed(*id)).fold(0, |changed, id| changed | id.bit())
    }

    /// The components of a sent row.
    fn mask_at(&self, slot: u16, shape: &Shape, label: u32) -> u64 {
        let Some(viewer) = shape.view else { return shape.mask };
        self.world.meta_at(slot, label).map_or(0, |meta| self.world.masks.of(viewer, meta))
    }

    fn component(&mut self, slot: u16, shape: &Shape, id: ComponentId) {
        let Some(versions) = self.world.columns[id.index()].versions(slot) else { return };
        let Some(now) = versions.at(shape.label) else { return };
        let mut pasts = [EMPTY; HISTORY_MAX];
        let mut count = 0;
        // A plain body has no baseline.
        let rows = if self.form.is_plain { 0 } else { shape.rows };
        for label in &shape.history[..usize::from(rows)] {
            if self.mask_at(slot, shape, *label) & id.bit() != 0
                && let Some(Form { lanes, blobs }) = versions.at(*label)
            {
                pasts[count] = Past { age: shape.label - label, lanes, blobs };
                count += 1;
            }
        }
        let before = self.writer.bytes();
        self.writer.component(self.world.tables(), id, &pasts[..count], now.lanes, now.blobs);
        let (bytes, times) = &mut self.components[id.index()];
        *bytes += u32::try_from(self.writer.bytes() - before).unwrap_or(u32::MAX);
        *times += 1;
    }

    fn meta(&self, meta: &Meta) -> delta::Meta {
        let owner = meta.owner;
        if !self.form.everything {
            return delta::Meta { owner, ..delta::Meta::default() };
        }
        delta::Meta { owner, zone: meta.zone, audience: (*meta.audience).clone() }
    }
}

/// No past.
const EMPTY: Past<'static> = Past { age: 1, lanes: &[], blobs: &[] };
