//! The body writer.

use super::fields::Learner;
use super::head::{self, LastHead, head};
use super::layout;
use super::layout::head as head_models;
use super::plain;
use super::tables::Tables;
use super::{EntryHead, Past};
use crate::coder::{self, Bit, Encoder, NUMBER_MODELS};
use crate::schema::ComponentId;
use bytes::Bytes;

/// Writes the body of a packet: [`begin`](Self::begin), then for each entry [`head`](Self::head) and its
/// [`components`](Self::component), then [`finish`](Self::finish). It is reusable.
#[derive(Clone, Debug)]
pub struct Writer {
    encoder: Encoder,
    /// The body, if it is a plain one.
    plain: Vec<u8>,
    is_plain: bool,
    learner: Learner,
    last: LastHead,
    everything: bool,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
}

/// A position of a [`Writer`].
#[derive(Clone, Debug)]
pub struct Mark {
    encoder: coder::Mark,
    plain_bytes: usize,
    last: LastHead,
    next: [Bit; 2],
    gap: [Bit; NUMBER_MODELS],
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// Creates a writer, to be used with [`begin`](Self::begin).
    pub fn new() -> Self {
        Writer {
            encoder: Encoder::new(),
            plain: Vec::new(),
            is_plain: false,
            learner: Learner::default(),
            last: LastHead::new(),
            everything: false,
            lanes: Vec::new(),
            blobs: Vec::new(),
        }
    }

    /// Begins a body. `everything` says whether its receiver gets zones and audiences.
    pub fn begin(&mut self, tables: &Tables, everything: bool) {
        self.encoder.restart();
        self.learner.begin(tables);
        self.last = LastHead::new();
        (self.everything, self.is_plain) = (everything, false);
    }

    /// Begins a plain body, for a receiver of everything.
    pub fn begin_plain(&mut self, tables: &Tables) {
        self.begin(tables, true);
        self.plain.clear();
        self.is_plain = true;
    }

    /// Continues a body where another writer with the same tables is.
    pub fn resume(&mut self, tables: &Tables, other: &Writer) {
        self.encoder.resume(&other.encoder);
        self.plain.clone_from(&other.plain);
        self.learner.resume(tables, &other.learner);
        self.last.clone_from(&other.last);
        (self.everything, self.is_plain) = (other.everything, other.is_plain);
    }

    /// Writes the head of an entry. Slots must ascend, and may begin again
    /// once; no two may be equal.
    pub fn head(&mut self, tables: &Tables, given: &EntryHead) {
        let models = (&mut self.learner.models[..], tables);
        let (last, everything) = (&mut self.last, self.everything);
        let written = if self.is_plain {
            head::write(&mut plain::Out(&mut self.plain), models, everything, last, given)
        } else {
            head::write(&mut self.encoder, models, everything, last, given)
        };
        debug_assert!(written.is_ok(), "{given:?}: {written:?}");
    }

    /// Writes a component against its past, the baseline first. The past may be empty.
    pub fn component(
        &mut self,
        tables: &Tables,
        id: ComponentId,
        past: &[Past<'_>],
        lanes: &[i32],
        blobs: &[Bytes],
    ) {
        if self.is_plain {
            return plain::Out(&mut self.plain).component(lanes, blobs);
        }
        self.lanes.clear();
        self.lanes.extend_from_slice(lanes);
        if !(blobs.is_empty() && self.blobs.is_empty()) {
            self.blobs.clear();
            self.blobs.extend_from_slice(blobs);
        }
        let (lanes, blobs) = (&mut self.lanes, &mut self.blobs);
        let written = self.learner.component(&mut self.encoder, tables, id, past, (lanes, blobs), |_, _| {});
        debug_assert!(written.is_ok(), "{written:?}");
    }

    /// An upper bound of the body's length in bytes if it ended here.
    pub fn bytes(&self) -> usize {
        END_BYTES_MAX + if self.is_plain { self.plain.len() } else { self.encoder.bytes() }
    }

    /// Returns the current position, for [`undo`](Self::undo).
    pub fn mark(&self) -> Mark {
        let models = &self.learner.models;
        let mut gap = [Bit::EVEN; NUMBER_MODELS];
        gap.copy_from_slice(&models[head_models::GAP..head_models::GAP + NUMBER_MODELS]);
        Mark {
            encoder: self.encoder.mark(),
            plain_bytes: self.plain.len(),
            last: self.last.clone(),
            next: [models[head_models::NEXT], models[head_models::NEXT + 1]],
            gap,
        }
    }

    /// Undoes the entries since `mark`, which must belong to this body. Only [`finish`](Self::finish) may
    /// follow: the adaptive state is not fully restored.
    pub fn undo(&mut self, mark: &Mark) {
        self.encoder.undo(mark.encoder);
        self.plain.truncate(mark.plain_bytes);
        self.last = mark.last.clone();
        let models = &mut self.learner.models[..layout::HEAD];
        models[head_models::NEXT..head_models::NEXT + 2].copy_from_slice(&mark.next);
        models[head_models::GAP..head_models::GAP + NUMBER_MODELS].copy_from_slice(&mark.gap);
    }

    /// Finishes the body and appends it to `out`.
    pub fn finish(&mut self, tables: &Tables, out: &mut Vec<u8>) {
        let models = (&mut self.learner.models[..], tables);
        let (last, everything) = (&mut self.last, self.everything);
        let ended = if self.is_plain {
            head(&mut plain::Out(&mut self.plain), models, everything, last, None)
        } else {
            head(&mut self.encoder, models, everything, last, None)
        };
        debug_assert_eq!(ended, Ok(None));
        if self.is_plain { out.extend_from_slice(&self.plain) } else { self.encoder.finish(out) }
    }
}

/// Maximum bytes of a body's end: two decisions.
const END_BYTES_MAX: usize = 3;
