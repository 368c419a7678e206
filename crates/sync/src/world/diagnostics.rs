//! How a receiver fares.

use super::encode::Body;
use super::plan::Shape;
use super::store::World;
use super::{Publisher, Replica};
use crate::delta::EntryKind;
use crate::schema::ComponentId;
use parlor_proto::Tick;

/// What was sent to a receiver since its publisher was made, and what waits; or what came to a replica. What
/// only the other end knows is 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// Packets that were sent, and their bytes.
    pub packets: u64,
    /// Bytes of these packets, without what the session puts around them.
    pub bytes: u64,
    /// Entries of these packets.
    pub entries: u64,
    /// Bytes of a packet for each of its entries, over all packets; `None` before the first entry.
    pub bytes_per_entity: Option<f64>,
    /// Bytes of each component over all packets, and how often it was sent, by [`ComponentId`].
    pub components: Vec<(ComponentId, ComponentFigures)>,
    /// Entries that brought an entity in full, and ones that took it away.
    pub spawns: u64,
    /// Entries that said that an entity is gone.
    pub despawns: u64,
    /// Packets of which it is known that they arrived, and that they were lost.
    pub delivered: u64,
    /// Packets of which it is known, or taken for granted, that they were lost.
    pub lost: u64,
    /// Acknowledgements that came too late to count.
    pub late: u64,
    /// Acknowledgements and losses of packets that were never sent, or whose fate was known.
    pub unknown: u64,
    /// How often something waited and could not be sent, for the budget or for what is under way.
    pub held_back: u64,
    /// Ticks from the baseline of an update to the row that it brings: the mean of all, and the most.
    pub baseline_age_ticks_mean: Option<f64>,
    /// The highest age of a baseline.
    pub baseline_age_ticks_max: u32,
    /// Entities that the receiver sees.
    pub visible: usize,
    /// Entities of which something waits to be sent.
    pub pending: usize,
    /// Ticks by which what the receiver has of an entity is behind, at most, over those that it has something
    /// of; as a sender knows it.
    pub staleness_ticks_max: u32,
    /// Ticks of the room since the newest one that a packet told of, as a receiver knows it. It grows while
    /// there is nothing to tell. `None` before the first packet.
    pub newest_age_ticks: Option<u32>,
    /// Ticks of the room since the newest one as of which nothing was missing, as a receiver knows it. `None`
    /// while there was none.
    pub settled_age_ticks: Option<u32>,
    /// Bytes whose fate is not known.
    pub in_flight_bytes: usize,
    /// Bytes that may be sent at this moment.
    pub budget_bytes: usize,
}

/// What was sent of one component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComponentFigures {
    /// Bytes, without the heads of entries.
    pub bytes: u64,
    /// How often.
    pub times: u64,
}

/// Counts of one publisher.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    packets: u64,
    bytes: u64,
    entries: u64,
    components: Vec<ComponentFigures>,
    spawns: u64,
    despawns: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) unknown: u64,
    pub(super) held_back: u64,
    ages: u64,
    updates: u64,
    age_max: u32,
}

impl Figures {
    /// So many entries of this shape are sent.
    pub(super) fn note(&mut self, shape: &Shape, count: u64) {
        self.entries += count;
        match shape.kind {
            EntryKind::Spawn => self.spawns += count,
            EntryKind::Despawn => self.despawns += count,
            EntryKind::Update => {
                let age = shape.label.saturating_sub(shape.history[0]);
                self.ages += count * u64::from(age);
                self.updates += count;
                self.age_max = self.age_max.max(age);
            }
        }
    }

    pub(super) fn note_body(&mut self, body: &Body, packet_bytes: usize) {
        self.packets += 1;
        self.bytes += packet_bytes as u64;
        self.components.resize(body.components.len(), ComponentFigures::default());
        for (figures, (bytes, times)) in self.components.iter_mut().zip(&body.components) {
            figures.bytes += u64::from(*bytes);
            figures.times += u64::from(*times);
        }
    }
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

impl Publisher {
    /// How the receiver fares.
    pub fn diagnostics(&self, world: &World) -> Diagnostics {
        let figures = &self.figures;
        let staleness = self.known.iter().zip(&world.slots).filter(|(known, _)| known.is_present);
        let components = (0u8..).map(ComponentId).zip(figures.components.iter().copied());
        Diagnostics {
            packets: figures.packets,
            bytes: figures.bytes,
            entries: figures.entries,
            bytes_per_entity: mean(figures.bytes, figures.entries),
            components: components.collect(),
            spawns: figures.spawns,
            despawns: figures.despawns,
            delivered: figures.delivered,
            lost: figures.lost,
            late: figures.late,
            unknown: figures.unknown,
            held_back: figures.held_back,
            baseline_age_ticks_mean: mean(figures.ages, figures.updates),
            baseline_age_ticks_max: figures.age_max,
            visible: self.known.iter().filter(|known| known.is_present).count(),
            pending: self.pending.len(),
            staleness_ticks_max: staleness
                .filter_map(|(known, slot)| known.staleness(slot.label))
                .max()
                .unwrap_or(0),
            newest_age_ticks: None,
            settled_age_ticks: None,
            in_flight_bytes: self.in_flight_bytes(),
            budget_bytes: self.budget_bytes(),
        }
    }
}

impl Replica {
    /// What came, in the words for what is sent: `delivered` are packets that were taken in, and `late` those
    /// that were not. `now` is the tick of the room at this moment.
    pub fn diagnostics(&self, now: Tick) -> Diagnostics {
        let counters = self.counters();
        let age = |tick: Tick| now.0.saturating_sub(tick.0);
        Diagnostics {
            packets: counters.taken,
            bytes: counters.bytes,
            entries: counters.entries,
            bytes_per_entity: mean(counters.bytes, counters.entries),
            delivered: counters.taken,
            late: counters.old,
            baseline_age_ticks_mean: mean(counters.baseline_ages_ticks, counters.updates),
            baseline_age_ticks_max: counters.baseline_age_ticks_max,
            visible: self.world().len(),
            newest_age_ticks: self.world().tick().map(age),
            settled_age_ticks: self.was_settled().map(age),
            ..Diagnostics::default()
        }
    }
}
