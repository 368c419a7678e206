//! Reading a body.

use super::fields::Learner;
use super::head::{LastHead, head};
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
    decoder: Decoder<'a>,
    learner: Learner,
    last: LastHead,
    everything: bool,
    entries: usize,
    output_bytes: usize,
}

impl<'a> Reader<'a> {
    /// A reader of this body; `everything` says whether it has rooms and audiences.
    #[must_use]
    pub fn new(tables: &'a Tables, body: &'a [u8], everything: bool) -> Self {
        let mut learner = Learner::default();
        learner.begin(tables);
        Reader {
            tables,
            decoder: Decoder::new(body),
            learner,
            last: LastHead::new(),
            everything,
            entries: 0,
            output_bytes: 0,
        }
    }

    /// The head of the next entry, or `None` at the end of the body. All changed components of an entry are
    /// [read](Self::component) before the next head.
    ///
    /// # Errors
    ///
    /// [`DeltaError`] if the body is not one that a writer wrote. Then nothing more can be read.
    pub fn head(&mut self) -> Result<Option<EntryHead>, DeltaError> {
        let models = (&mut self.learner.models[..], self.tables);
        let read = head(&mut self.decoder, models, self.everything, &mut self.last, None)?;
        self.decoder.check()?;
        self.entries += 1;
        match read {
            None => {
                self.decoder.finish()?;
                Ok(None)
            }
            Some(_) if self.entries > PACKET_ENTRIES_MAX => {
                Err(DeltaError::TooMuch { what: "1,024 entries" })
            }
            head => Ok(head),
        }
    }

    /// Reads a component into `lanes` and `blobs`, which are as many as it has, against the past that the writer had.
    ///
    /// # Errors
    ///
    /// [`DeltaError`] if the body is not one that a writer wrote against this past. Then nothing more can be read.
    pub fn component(
        &mut self,
        id: ComponentId,
        past: &[Past<'_>],
        lanes: &mut [i32],
        blobs: &mut [Bytes],
    ) -> Result<(), DeltaError> {
        self.component_told(id, past, lanes, blobs, |_, _| {})
    }

    /// As [`component`](Self::component), and adds to each of `costs`, one for each field of the component, how many bits it
    /// took. For diagnostics.
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
        self.component_told(id, past, lanes, blobs, |field, decoder| {
            let after = decoder.bits_read();
            if let Some(cost) = costs.get_mut(field) {
                *cost += after - before;
            }
            before = after;
        })
    }

    /// How many bits of the body what was read so far took, fractions included. For diagnostics.
    #[must_use]
    pub fn bits_read(&self) -> f64 {
        self.decoder.bits_read()
    }

    fn component_told(
        &mut self,
        id: ComponentId,
        past: &[Past<'_>],
        lanes: &mut [i32],
        blobs: &mut [Bytes],
        told: impl FnMut(usize, &Decoder<'a>),
    ) -> Result<(), DeltaError> {
        self.learner.component(&mut self.decoder, self.tables, id, past, (lanes, blobs), told)?;
        self.decoder.check()?;
        let parts = PACKET_PART_BYTES * (1 + blobs.len());
        self.output_bytes += parts + 4 * lanes.len() + blobs.iter().map(Bytes::len).sum::<usize>();
        if self.output_bytes > PACKET_OUTPUT_BYTES_MAX {
            return Err(DeltaError::TooMuch { what: "128 KiB of state" });
        }
        Ok(())
    }
}
