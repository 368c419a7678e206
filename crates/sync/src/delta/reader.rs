//! The body reader.

use super::fields::Learner;
use super::head::{LastHead, head};
use super::plain;
use super::tables::Tables;
use super::{DeltaError, EntryHead, Past};
use crate::coder::Decoder;
use crate::limits::{PACKET_ENTRIES_MAX, PACKET_OUTPUT_BYTES_MAX, PACKET_PART_BYTES};
use crate::schema::ComponentId;
use bytes::Bytes;

/// Reads the body of a packet as [`Writer`](super::Writer) wrote it.
#[derive(Debug)]
pub struct Reader<'a> {
    tables: &'a Tables,
    source: Source<'a>,
    learner: Learner,
    last: LastHead,
    everything: bool,
    /// The slots before slots begin again, and how many of them are below the last one since then.
    before: Vec<u16>,
    below: usize,
    entries: usize,
    output_bytes: usize,
}

/// The source of a body.
#[derive(Debug)]
enum Source<'a> {
    Coded(Decoder<'a>),
    Plain(plain::In<'a>),
}

impl<'a> Reader<'a> {
    /// Creates a reader of this body. `everything` says whether it has zones and audiences.
    pub fn new(tables: &'a Tables, body: &'a [u8], everything: bool) -> Self {
        Self::of(tables, Source::Coded(Decoder::new(body)), everything)
    }

    /// Creates a reader of a plain body, for a receiver of everything.
    pub fn plain(tables: &'a Tables, body: &'a [u8]) -> Self {
        Self::of(tables, Source::Plain(plain::In::new(body)), true)
    }

    fn of(tables: &'a Tables, source: Source<'a>, everything: bool) -> Self {
        let mut learner = Learner::default();
        learner.begin(tables);
        let (last, before) = (LastHead::new(), Vec::new());
        Reader { tables, source, learner, last, everything, before, below: 0, entries: 0, output_bytes: 0 }
    }

    /// Reads the head of the next entry; `None` at the end of the body. All changed components of an entry
    /// must be [read](Self::component) before the next head.
    ///
    /// # Errors
    ///
    /// [`DeltaError`] if a writer cannot have written the body. Nothing more can be read then.
    pub fn head(&mut self) -> Result<Option<EntryHead>, DeltaError> {
        let models = (&mut self.learner.models[..], self.tables);
        let read = match &mut self.source {
            Source::Coded(decoder) => {
                let read = head(decoder, models, self.everything, &mut self.last, None)?;
                decoder.check()?;
                read
            }
            Source::Plain(plain) => {
                let read = head(plain, models, self.everything, &mut self.last, None)?;
                plain.check()?;
                read
            }
        };
        self.entries += 1;
        match read {
            None => {
                match &self.source {
                    Source::Coded(decoder) => decoder.finish()?,
                    Source::Plain(plain) => plain.finish()?,
                }
                Ok(None)
            }
            Some(_) if self.entries > PACKET_ENTRIES_MAX => {
                Err(DeltaError::TooMuch { what: "1,024 entries" })
            }
            Some(head) => {
                self.note_slot(head.slot)?;
                Ok(Some(head))
            }
        }
    }

    /// Checks that a packet has one entry for each slot.
    fn note_slot(&mut self, slot: u16) -> Result<(), DeltaError> {
        if !self.last.is_again() {
            self.before.push(slot);
            return Ok(());
        }
        self.below += self.before[self.below..].iter().take_while(|before| **before < slot).count();
        if self.before.get(self.below) == Some(&slot) { Err(DeltaError::Twice { slot }) } else { Ok(()) }
    }

    /// Reads a component into `lanes` and `blobs`, which have the component's lengths, against the writer's
    /// past. In a [plain](Self::plain) body there is no past, and values are not checked against their
    /// ranges.
    ///
    /// # Errors
    ///
    /// [`DeltaError`] if a writer cannot have written the body against this past. Nothing more can be read
    /// then.
    pub fn component(
        &mut self,
        id: ComponentId,
        past: &[Past<'_>],
        lanes: &mut [i32],
        blobs: &mut [Bytes],
    ) -> Result<(), DeltaError> {
        self.component_told(id, past, lanes, blobs, |_, _| {})
    }

    /// As [`component`](Self::component), and adds the bits that each field took to `costs`, one entry for
    /// each field of the component. For diagnostics.
    ///
    /// # Errors
    ///
    /// As [`component`](Self::component).
    pub fn component_costs(
        &mut self,
        id: ComponentId,
        past: &[Past<'_>],
        lanes: &mut [i32],
        blobs: &mut [Bytes],
        costs: &mut [f64],
    ) -> Result<(), DeltaError> {
        let mut before = self.bits_read();
        if let Source::Plain(_) = &self.source {
            self.component(id, past, lanes, blobs)?;
            // A plain body has no costs by field.
            costs.iter_mut().take(1).for_each(|cost| *cost += self.bits_read() - before);
            return Ok(());
        }
        self.component_told(id, past, lanes, blobs, |field, decoder| {
            let after = decoder.bits_read();
            if let Some(cost) = costs.get_mut(field) {
                *cost += after - before;
            }
            before = after;
        })
    }

    /// The number of bits read so far, as a fraction. For diagnostics.
    #[expect(clippy::cast_precision_loss, reason = "a body is shorter than 2^50 bits")]
    pub fn bits_read(&self) -> f64 {
        match &self.source {
            Source::Coded(decoder) => decoder.bits_read(),
            Source::Plain(plain) => 8.0 * plain.read_bytes() as f64,
        }
    }

    fn component_told(
        &mut self,
        id: ComponentId,
        past: &[Past<'_>],
        lanes: &mut [i32],
        blobs: &mut [Bytes],
        told: impl FnMut(usize, &Decoder<'a>),
    ) -> Result<(), DeltaError> {
        match &mut self.source {
            Source::Coded(decoder) => {
                self.learner.component(decoder, self.tables, id, past, (lanes, blobs), told)?;
                decoder.check()?;
            }
            Source::Plain(plain) => {
                plain.component(lanes, blobs);
                plain.check()?;
            }
        }
        let parts = PACKET_PART_BYTES * (1 + blobs.len());
        self.output_bytes += parts + 4 * lanes.len() + blobs.iter().map(Bytes::len).sum::<usize>();
        if self.output_bytes > PACKET_OUTPUT_BYTES_MAX {
            return Err(DeltaError::TooMuch { what: "128 KiB of state" });
        }
        Ok(())
    }
}
