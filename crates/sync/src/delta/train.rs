//! Trains the priors: records the coded decisions model by model, then finds the best initial state of each.

use super::fields::Learner;
use super::head::{LastHead, head};
use super::layout;
use super::tables::Tables;
use super::{EntryHead, Past};
use crate::coder::{Bit, Code, SYMBOLS, Symbols};
use crate::schema::{ComponentId, Schema};
use bytes::Bytes;
use parlor_proto::TickRate;
use std::fmt::Write as _;

/// Initial counts to try for a decision's model.
const BIT_COUNTS: [u8; 7] = [0, 2, 5, 12, 30, 70, 150];
/// Initial counts to try for a choice-of-sixteen model.
const SYMBOL_COUNTS: [u16; 5] = [0, 4, 10, 24, 60];

/// Records what packets would code. It has the interface of a [`Writer`](super::Writer).
#[derive(Debug, Default)]
pub struct Trainer {
    recorder: Recorder,
}

/// Feeds packets of one schema to a [`Trainer`].
#[derive(Debug)]
pub struct Training<'a> {
    recorder: &'a mut Recorder,
    tables: Tables,
    learner: Learner,
    last: LastHead,
}

#[derive(Debug, Default)]
struct Recorder {
    packet: u32,
    bits: Vec<Vec<(u32, bool)>>,
    symbols: Vec<Vec<(u32, u8)>>,
}

impl Code for Recorder {
    const DECODES: bool = false;

    type Live<'a> = &'a mut Recorder;

    fn live(&mut self) -> &mut Recorder {
        self
    }

    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        self.bits[usize::from(model.probability()) - 1].push((self.packet, bit));
        bit
    }

    #[expect(clippy::cast_possible_truncation, reason = "below 16")]
    fn symbol(&mut self, model: &mut Symbols, symbol: usize) -> usize {
        self.symbols[usize::from(model.count())].push((self.packet, symbol as u8));
        symbol
    }

    fn plain(&mut self, _: u32, value: u32) -> u32 {
        value
    }
}

impl Trainer {
    /// Creates a trainer without any records.
    pub fn new() -> Self {
        let recorder = Recorder {
            packet: 0,
            bits: vec![Vec::new(); layout::COUNT],
            symbols: vec![Vec::new(); layout::SYMBOL_COUNT],
        };
        Trainer { recorder }
    }

    /// Returns the input for packets of this schema.
    pub fn training(&mut self, schema: &Schema, rate: TickRate) -> Training<'_> {
        // Each model carries its index as its probability, so that the recorder can identify it.
        let bits: Vec<Bit> = (1..).take(layout::COUNT).map(|id| Bit::new(id, 0)).collect();
        let symbols: Vec<Symbols> =
            (0..).take(layout::SYMBOL_COUNT).map(|id| Symbols::new([0; 15], id)).collect();
        let tables = Tables::with_priors(schema, rate, (&bits, &symbols));
        Training { recorder: &mut self.recorder, tables, learner: Learner::default(), last: LastHead::new() }
    }

    /// The content of `priors.rs` after its head.
    pub fn priors(&self) -> String {
        let mut out = String::from("#[rustfmt::skip]\npub(super) static PRIORS: [Bit; COUNT] = [\n");
        for line in self.recorder.bits.chunks(8) {
            let each: Vec<String> = line.iter().map(|events| bit_prior(events)).collect();
            let _ = writeln!(out, "    {},", each.join(", "));
        }
        out.push_str("];\n\n#[rustfmt::skip]\npub(super) static SYMBOLS: [Symbols; SYMBOL_COUNT] = [\n");
        let mut before = symbol_prior(&[]);
        for (id, events) in self.recorder.symbols.iter().enumerate() {
            // A rarely used model takes over its neighbour's state.
            if events.len() >= 50 {
                before = symbol_prior(events);
            } else if id % layout::BUCKETS == 0 {
                let next = self.recorder.symbols[id..].iter().find(|events| events.len() >= 50);
                before = symbol_prior(next.map_or(&[], |next| next));
            }
            let _ = writeln!(out, "    {before},");
        }
        out.push_str("];\n");
        out
    }
}

impl Training<'_> {
    /// Begins a packet.
    pub fn begin(&mut self) {
        self.recorder.packet += 1;
        self.learner.begin(&self.tables);
        self.last = LastHead::new();
    }

    /// Records the head of an entry, or the end of the packet.
    pub fn head(&mut self, given: Option<&EntryHead>) {
        let models = (&mut self.learner.models[..], &self.tables);
        let recorded = head(self.recorder, models, true, &mut self.last, given);
        debug_assert!(recorded.is_ok());
    }

    /// Records a component.
    pub fn component(&mut self, id: ComponentId, past: &[Past<'_>], lanes: &[i32], blobs: &[Bytes]) {
        let (mut lanes, mut blobs) = (lanes.to_vec(), blobs.to_vec());
        let recorded = self.learner.component(
            self.recorder,
            &self.tables,
            id,
            past,
            (&mut lanes, &mut blobs),
            |_, _| {},
        );
        debug_assert!(recorded.is_ok());
    }
}

/// The cost in bits of these events, with models that begin in this state in each packet.
fn cost<M: Copy, E: Copy>(events: &[(u32, E)], begin: M, mut each: impl FnMut(&mut M, E) -> f64) -> f64 {
    let (mut packet, mut model, mut sum) = (0, begin, 0.0);
    for &(of, event) in events {
        if of != packet {
            (packet, model) = (of, begin);
        }
        sum += each(&mut model, event);
    }
    sum
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a ratio"
)]
fn bit_prior(events: &[(u32, bool)]) -> String {
    let ones = events.iter().filter(|event| event.1).count() as f64;
    let p = ((ones + 0.4) / (events.len() as f64 + 0.8) * 65_536.0).clamp(64.0, 65_472.0) as u16;
    let price = |n: u8| {
        cost(events, Bit::new(p, n), |model, bit| {
            let p = f64::from(model.probability()) / 65_536.0;
            model.learn(bit);
            -(if bit { p } else { 1.0 - p }).log2()
        })
    };
    // Without evidence it adapts at once.
    let n = if events.len() < 20 {
        0
    } else {
        BIT_COUNTS.into_iter().min_by(|&a, &b| price(a).total_cmp(&price(b))).unwrap_or(0)
    };
    format!("Bit::new({p}, {n})")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "below the total")]
fn symbol_prior(events: &[(u32, u8)]) -> String {
    let mut counts = [0.2; SYMBOLS];
    events.iter().for_each(|event| counts[usize::from(event.1)] += 1.0);
    let (all, mut sum) = (counts.iter().sum::<f64>(), 0.0);
    let weights: [i16; SYMBOLS - 1] = core::array::from_fn(|at| {
        sum += counts[at];
        (sum / all * f64::from(Symbols::TOTAL)) as i16
    });
    let price = |n: u16| {
        cost(events, Symbols::new(weights, n), |model, symbol| {
            let (from, to) = model.span(usize::from(symbol));
            model.learn(usize::from(symbol));
            -((to - from) as f64 / 32_768.0).log2()
        })
    };
    let n = if events.len() < 50 {
        0
    } else {
        SYMBOL_COUNTS.into_iter().min_by(|&a, &b| price(a).total_cmp(&price(b))).unwrap_or(0)
    };
    let weights = weights.map(|weight| weight.to_string()).join(", ");
    format!("Symbols::new([{weights}], {n})")
}
