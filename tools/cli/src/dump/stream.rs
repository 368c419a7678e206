//! One stream of a world's packets, decoded: each packet's entities and their sizes.
//!
//! A log has every sent packet, so this decoder has every baseline that its receiver had, and more.

use bytes::Bytes;
use parlor_proto::wire::header::expand;
use parlor_proto::{EntityId, MemberId, TickRate};
use parlor_sync::audience::Audience;
use parlor_sync::delta::{DeltaError, EntryHead, EntryKind, HISTORY_MAX, Past, Reader, Tables};
use parlor_sync::limits::BASELINE_AGE_MAX;
use parlor_sync::schema::{ComponentId, Schema};
use parlor_sync::world::{PacketHead, StreamError};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Why a packet could not be taken apart.
#[derive(Debug, Error)]
pub(crate) enum DumpError {
    /// Its head cannot be read.
    #[error(transparent)]
    Head(#[from] StreamError),
    /// Its body cannot be read.
    #[error(transparent)]
    Body(#[from] DeltaError),
    /// It builds on something that the log does not have.
    #[error("it builds on slot {slot} as of tick {tick}, which nothing before it brought")]
    Gone {
        /// The slot.
        slot: u16,
        /// The tick.
        tick: u32,
    },
    /// It names a component that there is not.
    #[error("it has {0}, which the schema does not have")]
    Component(ComponentId),
}

/// A packet, taken apart.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) head: PacketHead,
    /// Its number among all of its stream.
    pub(crate) number: u64,
    /// What its entities are made of.
    pub(crate) schema: Arc<Schema>,
    pub(crate) entries: Vec<Entry>,
}

/// What a packet says of one entity.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The entity; its generation is not known before it was spawned.
    pub(crate) entity: EntityId,
    pub(crate) kind: EntryKind,
    /// The tick that it is as of.
    pub(crate) tick: u32,
    /// How many ticks before that the rows are that it builds on.
    pub(crate) ages: Vec<u32>,
    /// Whose it is, if the entry says so.
    pub(crate) owner: Option<Option<MemberId>>,
    /// Its interest zone and who may see it, if the entry says so.
    pub(crate) scope: Option<(u32, Audience)>,
    /// All components that it has, if the entry says so.
    pub(crate) has: Option<u64>,
    pub(crate) components: Vec<Part>,
    /// What the entry took in the packet, its head included.
    pub(crate) bits: f64,
}

/// A component that an entry brings.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) id: ComponentId,
    pub(crate) lanes: Vec<i32>,
    pub(crate) blobs: Vec<Bytes>,
    /// What each field took.
    pub(crate) field_bits: Vec<f64>,
}

/// A stream of packets.
#[derive(Debug)]
pub(crate) struct Stream {
    schema: Arc<Schema>,
    tables: Arc<Tables>,
    everything: bool,
    newest: u64,
    epoch: u64,
    slots: BTreeMap<u16, Slot>,
}

/// What is remembered of a slot's entity.
#[derive(Debug, Default)]
struct Slot {
    generation: u16,
    /// By tick.
    rows: BTreeMap<u32, Row>,
}

/// What an entity was at a tick: its components, by number.
type Row = BTreeMap<u8, (Vec<i32>, Vec<Bytes>)>;

impl Stream {
    /// A stream of this schema; `everything` says whether it goes up to the hub.
    pub(crate) fn new(schema: Arc<Schema>, rate: TickRate, everything: bool) -> Self {
        let tables = Arc::new(Tables::new(&schema, rate));
        Stream { schema, tables, everything, newest: 0, epoch: 0, slots: BTreeMap::new() }
    }

    /// Takes the next packet apart.
    ///
    /// # Errors
    /// [`DumpError`]; the packets after it can be tried.
    pub(crate) fn take(&mut self, packet: Bytes) -> Result<Packet, DumpError> {
        let (head, body) = PacketHead::read(packet)?;
        let number = expand(head.number, self.newest);
        self.newest = self.newest.max(number);
        if let Some(gap) = head.epoch_gap {
            let epoch = number.saturating_sub(gap.into());
            if epoch > self.epoch {
                (self.epoch, self.slots) = (epoch, BTreeMap::new());
            }
        }
        let tables = Arc::clone(&self.tables);
        let mut reader = match head.plain {
            true => Reader::plain(&tables, &body),
            false => Reader::new(&tables, &body, self.everything),
        };
        let mut entries = Vec::new();
        let mut before = reader.bits_read();
        while let Some(head_of_entry) = reader.head()? {
            let mut entry = self.entry(&mut reader, &head_of_entry, head.tick)?;
            let after = reader.bits_read();
            entry.bits = after - before;
            before = after;
            entries.push(entry);
        }
        self.forget(head.tick);
        Ok(Packet { head, number, schema: Arc::clone(&self.schema), entries })
    }

    fn entry(&mut self, reader: &mut Reader<'_>, head: &EntryHead, tick: u32) -> Result<Entry, DumpError> {
        let label = tick.saturating_sub(head.row_age);
        let slot = self.slots.entry(head.slot).or_default();
        if head.kind == EntryKind::Spawn && slot.generation != head.generation {
            *slot = Slot { generation: head.generation, rows: BTreeMap::new() };
        }
        let ages = &head.ages[..usize::from(head.history).min(HISTORY_MAX)];
        let mut past = Vec::new();
        for age in ages {
            let tick = label.saturating_sub(*age);
            let row = slot.rows.get(&tick).ok_or(DumpError::Gone { slot: head.slot, tick })?;
            past.push((*age, row.clone()));
        }
        let mut row = past.first().map(|(_, row)| row.clone()).unwrap_or_default();
        let mut components = Vec::new();
        for id in ComponentId::in_mask(head.changed) {
            let part = part(&self.schema, reader, id, &past)?;
            row.insert(id.0, (part.lanes.clone(), part.blobs.clone()));
            components.push(part);
        }
        if head.mask_changed {
            row.retain(|id, _| head.mask & ComponentId(*id).bit() != 0);
        }
        if head.kind != EntryKind::Despawn {
            slot.rows.insert(label, row);
        }
        let scope = head.meta.as_ref().filter(|_| self.everything);
        Ok(Entry {
            entity: EntityId { slot: head.slot, generation: slot.generation },
            kind: head.kind,
            tick: label,
            ages: ages.to_vec(),
            owner: head.meta.as_ref().map(|meta| meta.owner),
            scope: scope.map(|meta| (meta.zone, meta.audience.clone())),
            has: head.mask_changed.then_some(head.mask),
            components,
            bits: 0.0,
        })
    }

    /// Forgets what no sender builds on any more: what is too old, but for the newest of it.
    fn forget(&mut self, tick: u32) {
        let oldest = tick.saturating_sub(2 * BASELINE_AGE_MAX);
        for slot in self.slots.values_mut() {
            if let Some((&keep, _)) = slot.rows.range(..oldest).next_back() {
                slot.rows = slot.rows.split_off(&keep);
            }
        }
    }
}

fn part(
    schema: &Schema,
    reader: &mut Reader<'_>,
    id: ComponentId,
    past: &[(u32, Row)],
) -> Result<Part, DumpError> {
    let component = schema.get(id).ok_or(DumpError::Component(id))?;
    let known = past
        .iter()
        .filter_map(|(age, row)| row.get(&id.0).map(|(lanes, blobs)| Past { age: *age, lanes, blobs }));
    let known: Vec<Past<'_>> = known.collect();
    let mut part = Part {
        id,
        lanes: vec![0; component.lanes()],
        blobs: vec![Bytes::new(); component.blobs()],
        field_bits: vec![0.0; component.fields().len()],
    };
    reader.component_costs(id, &known, &mut part.lanes, &mut part.blobs, &mut part.field_bits)?;
    component.check_row(&part.lanes, &part.blobs).map_err(StreamError::from)?;
    Ok(part)
}
