//! Diagnostics of senders and receivers.

use super::encode::Body;
use super::plan::Shape;
use super::store::World;
use super::{Publisher, Replica};
use crate::delta::EntryKind;
use crate::schema::ComponentId;
use parlor_proto::Tick;

/// Counters of a publisher since its creation, with what is pending; or of a replica. Values that only the
/// other end knows are 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes, without the session's overhead.
    pub bytes: u64,
    /// Their entries.
    pub entries: u64,
    /// Average bytes of packets for each entry; `None` before the first entry.
    pub bytes_per_entity: Option<f64>,
    /// Bytes of each component over all packets, and how often it was sent, by [`ComponentId`].
    pub components: Vec<(ComponentId, ComponentFigures)>,
    /// Entries that sent an entity in full.
    pub spawns: u64,
    /// Entries that despawned an entity.
    pub despawns: u64,
    /// Packets known to be delivered.
    pub delivered: u64,
    /// Packets known or presumed to be lost.
    pub lost: u64,
    /// Acknowledgements that came too late to count.
    pub late: u64,
    /// Acknowledgements and losses of packets that were never sent, or were settled before.
    pub unknown: u64,
    /// How often pending state could not be sent, because of the rate or the in-flight limit.
    pub held_back: u64,
    /// Mean age of an update's baseline, in ticks before the row that it sends.
    pub baseline_age_ticks_mean: Option<f64>,
    /// Maximum age of a baseline.
    pub baseline_age_ticks_max: u32,
    /// Entities visible to the receiver.
    pub visible: usize,
    /// Entities with state to send.
    pub pending: usize,
    /// Maximum ticks by which the receiver's rows are behind, as the sender knows it; over the entities that
    /// the receiver has.
    pub staleness_ticks_max: u32,
    /// Age in ticks of the newest tick in a packet, as the receiver knows it. It grows while there are no
    /// changes. `None` before the first packet.
    pub newest_age_ticks: Option<u32>,
    /// Age in ticks of the newest settled tick, as the receiver knows it. `None` if there was none.
    pub settled_age_ticks: Option<u32>,
    /// Unacknowledged bytes.
    pub in_flight_bytes: usize,
    /// Bytes that may be sent now.
    pub budget_bytes: usize,
}

/// Counters of one component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComponentFigures {
    /// Bytes, without the heads of entries.
    pub bytes: u64,
    /// The number of times it was sent.
    pub times: u64,
}

/// Counters of one publisher.
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
    /// Counts `count` sent entries of this shape.
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
    /// Returns the diagnostics of the receiver.
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
    /// Returns the diagnostics of what was received, in a sender's terms: `delivered` are the applied
    /// packets, `late` the others. `now` is the room's current tick.
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
