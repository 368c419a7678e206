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

/// Encoded bodies of one state of one world, shared by all receivers with equal plans. Receivers whose plans have the
/// same common entries share their encoding, and their own entries follow it.
#[derive(Clone, Debug, Default)]
pub struct Encodings {
    state: State,
    /// The bodies of common entries, and those of the own entries that follow them.
    shared: Vec<Shared>,
    own: Vec<Own>,
    /// How many of `shared` and of `own` belong to this state; the others are spare buffers.
    used: usize,
    own_used: usize,
    writer: Writer,
    forks: Vec<Fork>,
    out: Vec<u8>,
    /// The component counters of a body before its last entry.
    before: Costs,
    /// The number of bodies encoded, and of reuses for another receiver.
    coded: u64,
    reused: u64,
    /// The number of entries encoded.
    entries: u64,
}

/// Bytes of each component, and how often it was coded.
type Costs = Vec<(u32, u32)>;

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

/// A plan and its bodies.
#[derive(Clone, Debug, Default)]
struct Bodies {
    plan: Plan,
    bodies: Vec<Body>,
    used: usize,
}

/// The bodies of equal common entries.
#[derive(Clone, Debug, Default)]
struct Shared {
    form: BodyForm,
    common: Bodies,
}

/// The bodies of own entries.
#[derive(Clone, Debug, Default)]
struct Own {
    /// The index of the common entries before them.
    index: usize,
    bodies: Bodies,
}

/// A body and its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    /// The index in the plans after its last entry.
    pub(super) until: usize,
    pub(super) components: Costs,
}

/// The cache position of a receiver's plans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    state: State,
    index: usize,
    body: usize,
}

/// A writer behind the last common entry, where own entries can follow.
#[derive(Clone, Debug)]
struct Fork {
    /// The index of its common entries; none after the state has changed.
    index: Option<usize>,
    writer: Writer,
    components: Costs,
    filled: Filled,
}

/// Number of forks: as many sets of common entries can be in use in turn. Members of a room share few ages of
/// baselines.
const FORKS: usize = 4;

/// What a body has, of what is limited.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    entries: usize,
    /// Bytes of memory at the receiver.
    output: usize,
}

impl Bodies {
    fn is_complete(&self) -> bool {
        self.used.checked_sub(1).map_or(0, |last| self.bodies[last].until) == self.plan.entries.len()
    }

    /// Where body number `at` begins in the plan.
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.bodies[before].until)
    }

    /// Prepares the next body for this number of components.
    fn next(&mut self, components: usize) {
        if self.used == self.bodies.len() {
            self.bodies.push(Body::default());
        }
        let body = &mut self.bodies[self.used];
        body.components.clear();
        body.components.resize(components, (0, 0));
        self.used += 1;
    }

    fn memory_bytes(&self) -> usize {
        let body = |body: &Body| body.bytes.len() + body.components.capacity() * size_of::<(u32, u32)>();
        let bodies = self.bodies.iter().map(body).sum::<usize>();
        self.plan.memory_bytes() + self.bodies.capacity() * size_of::<Body>() + bodies
    }
}

impl Encodings {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Encodings::default()
    }

    /// The number of bodies encoded, and of reuses for another receiver. A body with own entries counts as encoded.
    pub const fn counts(&self) -> (u64, u64) {
        (self.coded, self.reused)
    }

    /// The number of entries encoded, in all bodies. Common entries that own ones follow count once.
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the next body of the common plan and the own plan that follows it, which together must have entries
    /// left. `place` is the position of the last one, and is advanced.
    pub(super) fn next_body(
        &mut self,
        world: &World,
        form: BodyForm,
        (common, own): (&Plan, &Plan),
        place: &mut Option<Place>,
    ) -> &Body {
        let state = State { lineage: world.lineage, changes: world.log.end(), tick: world.tick };
        if self.state != state {
            (self.state, self.used, self.own_used) = (state, 0, 0);
            self.forks.iter_mut().for_each(|fork| fork.index = None);
        }
        let index = match *place {
            Some(Place { state: then, index, .. })
                if then == state
                    && index < self.used
                    && self.shared[index].common.plan.digest == common.digest =>
            {
                index
            }
            _ => self.find(form, common),
        };
        let body =
            place.filter(|place| place.state == state && place.index == index).map_or(0, |it| it.body + 1);
        *place = Some(Place { state, index, body });
        let (has_own, coded) = (!own.entries.is_empty(), self.coded);
        while body >= self.shared[index].common.used && !self.shared[index].common.is_complete() {
            self.code_common(world, index, has_own);
        }
        let common = &self.shared[index].common;
        // Own entries follow in the last body of the common ones.
        let alone = if has_own && common.is_complete() { common.used.saturating_sub(1) } else { common.used };
        if body < alone {
            self.reused += u64::from(self.coded == coded);
            return &self.shared[index].common.bodies[body];
        }
        let at = self.find_own(index, own);
        if body - alone < self.own[at].bodies.used {
            self.reused += 1;
        } else {
            self.code_own(world, at);
        }
        &self.own[at].bodies.bodies[body - alone]
    }

    /// Bytes of memory, for a world with these tables.
    pub fn memory_bytes(&self, world: &World) -> usize {
        let shared = |it: &Shared| size_of::<Shared>() + it.common.memory_bytes();
        let own = |it: &Own| size_of::<Own>() + it.bodies.memory_bytes();
        let bodies = self.shared.iter().map(shared).chain(self.own.iter().map(own)).sum::<usize>();
        // A writer's state has the size of the initial tables.
        let writers = (2 + self.forks.len()) * world.tables_bytes();
        bodies + self.out.capacity() + writers
    }

    fn find(&mut self, form: BodyForm, common: &Plan) -> usize {
        let is_equal = |shared: &Shared| shared.form == form && shared.common.plan.is_same(common);
        if let Some(found) = self.shared[..self.used].iter().position(is_equal) {
            return found;
        }
        if self.used == self.shared.len() {
            self.shared.push(Shared::default());
        }
        let shared = &mut self.shared[self.used];
        (shared.form, shared.common.used) = (form, 0);
        shared.common.plan.copy_from(common);
        self.used += 1;
        self.used - 1
    }

    fn find_own(&mut self, index: usize, plan: &Plan) -> usize {
        let is_equal = |own: &Own| own.index == index && own.bodies.plan.is_same(plan);
        if let Some(found) = self.own[..self.own_used].iter().position(is_equal) {
            return found;
        }
        if self.own_used == self.own.len() {
            self.own.push(Own::default());
        }
        let own = &mut self.own[self.own_used];
        (own.index, own.bodies.used) = (index, 0);
        own.bodies.plan.copy_from(plan);
        self.own_used += 1;
        self.own_used - 1
    }

    /// Encodes one more body of common entries. With the last one, if own entries will follow, it keeps a fork.
    fn code_common(&mut self, world: &World, index: usize, has_own: bool) {
        let Shared { form, common } = &mut self.shared[index];
        let coded = common.used;
        let from = common.start(coded);
        common.next(world.columns.len());
        let Bodies { plan, bodies, .. } = common;
        let body = &mut bodies[coded];
        begin(&mut self.writer, world, *form);
        let mut filled = Filled::default();
        let components = &mut body.components;
        let mut coding = Coding::new(world, *form, plan, (&mut self.writer, components, &mut self.before));
        body.until = coding.body_from(from, &mut filled);
        if has_own && body.until == plan.entries.len() {
            keep_fork(&mut self.forks, world, (index, &self.writer, &body.components, filled));
        }
        body.bytes = finish(&mut self.writer, world, &mut self.out);
        (self.entries, self.coded) = (self.entries + (body.until - from) as u64, self.coded + 1);
    }

    /// Encodes one more body of own entries: the first one behind the last common entries.
    fn code_own(&mut self, world: &World, at: usize) {
        let Own { index, bodies: Bodies { used: coded, .. } } = self.own[at];
        let has_common = coded == 0 && self.shared[index].common.used > 0;
        if has_common && !self.forks.iter().any(|fork| fork.index == Some(index)) {
            // The fork was given up for another one: the last common entries are encoded again.
            self.shared[index].common.used -= 1;
            self.code_common(world, index, true);
        }
        let Shared { form, common } = &self.shared[index];
        let (all, own) = (common.plan.entries.len(), &mut self.own[at].bodies);
        let from = own.start(coded).saturating_sub(all);
        own.next(world.columns.len());
        let Bodies { plan, bodies, .. } = own;
        let body = &mut bodies[coded];
        let mut filled = Filled::default();
        match self.forks.iter().find(|fork| has_common && fork.index == Some(index)) {
            Some(fork) => {
                self.writer.resume(world.tables(), &fork.writer);
                body.components.clone_from(&fork.components);
                filled = fork.filled;
            }
            None => begin(&mut self.writer, world, *form),
        }
        let components = &mut body.components;
        let mut coding = Coding::new(world, *form, plan, (&mut self.writer, components, &mut self.before));
        let end = coding.body_from(from, &mut filled);
        body.until = all + end;
        body.bytes = finish(&mut self.writer, world, &mut self.out);
        (self.entries, self.coded) = (self.entries + (end - from) as u64, self.coded + 1);
    }
}

fn begin(writer: &mut Writer, world: &World, form: BodyForm) {
    if form.is_plain {
        writer.begin_plain(world.tables());
    } else {
        writer.begin(world.tables(), form.everything);
    }
}

/// Finishes the body of a writer.
fn finish(writer: &mut Writer, world: &World, out: &mut Vec<u8>) -> Bytes {
    out.clear();
    writer.finish(world.tables(), out);
    Bytes::copy_from_slice(out)
}

/// Keeps the state of a writer in place of the oldest fork.
fn keep_fork(
    forks: &mut Vec<Fork>,
    world: &World,
    (index, writer, components, filled): (usize, &Writer, &[(u32, u32)], Filled),
) {
    if forks.len() < FORKS && forks.iter().all(|fork| fork.index.is_some()) {
        let (writer, components) = (Writer::default(), Vec::new());
        forks.push(Fork { index: None, writer, components, filled });
    }
    let unused = forks.iter().position(|fork| fork.index.is_none());
    let fork = match unused {
        Some(at) => &mut forks[at],
        None => {
            forks.rotate_left(1);
            &mut forks[FORKS - 1]
        }
    };
    fork.writer.resume(world.tables(), writer);
    fork.components.clear();
    fork.components.extend_from_slice(components);
    (fork.index, fork.filled) = (Some(index), filled);
}

/// Encodes the entries of one body.
struct Coding<'a> {
    world: &'a World,
    form: BodyForm,
    plan: &'a Plan,
    writer: &'a mut Writer,
    components: &'a mut Costs,
    before: &'a mut Costs,
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

impl<'a> Coding<'a> {
    fn new(
        world: &'a World,
        form: BodyForm,
        plan: &'a Plan,
        (writer, components, before): (&'a mut Writer, &'a mut Costs, &'a mut Costs),
    ) -> Self {
        let head = EntryHead::update(0);
        Coding { world, form, plan, writer, components, before, sized: None, head, head_of: None }
    }

    /// Encodes entries from `from` on until the body is full: at least one in all. Returns the end position.
    fn body_from(&mut self, from: usize, filled: &mut Filled) -> usize {
        let (plan, packet_bytes) = (self.plan, self.form.bytes_max);
        let mut end = from;
        for entry in &plan.entries[from..] {
            let size = self.size(*entry);
            let (count, output) = (filled.entries, filled.output + size.output);
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
            *filled = Filled { entries: count + 1, output };
            end += 1;
        }
        end
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
