//! Sums: bytes by channel, by kind of field and by entity.

use super::stream::{Entry, Part};
use super::{Record, Said, Way, What, value};
use parlor_proto::{ChannelId, EntityId, MemberId};
use parlor_sync::schema::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Entities that the sums name; those that took most.
const ENTITIES_SHOWN: usize = 10;

/// Sums over the records of a log. What went up and what went down are apart: they are the same state twice.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    up: Sums,
    down: Sums,
}

#[derive(Debug, Default)]
struct Sums {
    channels: BTreeMap<ChannelId, Sum>,
    /// Of the room's state. A member's own has one entity, which says nothing.
    entities: BTreeMap<EntityId, Sum>,
    kinds: BTreeMap<&'static str, Sum>,
    /// Entries without their components: which entity, as of when, built on what.
    heads: Sum,
}

/// How often, and how much.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    bytes: f64,
}

impl Sum {
    fn add(&mut self, bytes: f64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn mean(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
        if self.count == 0 { 0.0 } else { self.bytes / self.count as f64 }
    }
}

impl Tally {
    pub(super) fn count(&mut self, record: &Record) {
        let sums = match record.way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        };
        let What::Message { channel, bytes, said } = &record.what else { return };
        #[expect(clippy::cast_precision_loss, reason = "a message is smaller than 2^52 bytes")]
        sums.channels.entry(*channel).or_default().add(*bytes as f64);
        if let Said::State { source, packet } = said {
            packet.entries.iter().for_each(|entry| sums.entry(*source, entry, &packet.schema));
        }
    }

    /// Lines for a person.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, sums) in [("members said", &self.up), ("members were told", &self.down)] {
            if !sums.channels.is_empty() {
                lines.push(format!("what {name}:"));
                sums.lines(&mut lines);
            }
        }
        lines
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({ "up": self.up.json(), "down": self.down.json() })
    }
}

impl Sums {
    fn entry(&mut self, source: Option<MemberId>, entry: &Entry, schema: &Schema) {
        if source.is_none() {
            self.entities.entry(entry.entity).or_default().add(entry.bits / 8.0);
        }
        let of_part = |part: &Part| part.field_bits.iter().sum::<f64>();
        self.heads.add((entry.bits - entry.components.iter().map(of_part).sum::<f64>()) / 8.0);
        for part in &entry.components {
            let fields = schema.get(part.id).map_or(&[][..], |component| component.fields());
            for (field, bits) in fields.iter().zip(&part.field_bits) {
                self.kinds.entry(value::kind_name(&field.kind)).or_default().add(bits / 8.0);
            }
        }
    }

    fn lines(&self, lines: &mut Vec<String>) {
        let mut put = |what: &str, sum: &Sum, each: &str| {
            let Sum { count, bytes } = sum;
            lines.push(format!("  {what:<24} {bytes:>12.1} B  {count:>9} × {:>7.2} B {each}", sum.mean()));
        };
        for (channel, sum) in &self.channels {
            put(&super::lines::channel_name(*channel), sum, "a message");
        }
        if self.heads.count > 0 {
            put("entries, heads", &self.heads, "an entry");
        }
        for (kind, sum) in &self.kinds {
            put(&format!("fields, {kind}"), sum, "a field");
        }
        for (entity, sum) in self.largest() {
            put(&entity.to_string(), &sum, "an entry");
        }
    }

    fn largest(&self) -> Vec<(EntityId, Sum)> {
        let mut all: Vec<(EntityId, Sum)> = self.entities.iter().map(|(id, sum)| (*id, *sum)).collect();
        all.sort_by(|(_, a), (_, b)| b.bytes.total_cmp(&a.bytes));
        all.truncate(ENTITIES_SHOWN);
        all
    }

    fn json(&self) -> Value {
        let sum = |sum: &Sum| json!({ "count": sum.count, "bytes": sum.bytes });
        let named = |all: Vec<(String, &Sum)>| -> Value {
            all.into_iter().map(|(name, one)| (name, sum(one))).collect::<serde_json::Map<_, _>>().into()
        };
        let channels = self.channels.iter().map(|(id, sum)| (super::lines::channel_name(*id), sum));
        json!({
            "channels": named(channels.collect()),
            "entry_heads": sum(&self.heads),
            "kinds": named(self.kinds.iter().map(|(kind, sum)| ((*kind).to_owned(), sum)).collect()),
            "entities": named(self.entities.iter().map(|(id, sum)| (super::lines::name(*id), sum)).collect()),
        })
    }
}
