//! Rows: the lanes and blobs of one component of one entity, written from and read as values.

use super::component::Component;
use super::error::{FieldFault, RowError};
use super::kind::{FIELD_NUMBERS_MAX, Kind};
use super::{FieldValue, quantize};
use crate::value::Value;
use bytes::Bytes;
use core::any::type_name;

/// Writes the fields of a component into lanes and blobs. The first error is kept and returned by
/// [`finish`](Self::finish). Fields that are not set keep the row's values.
#[derive(Debug)]
pub struct RowWriter<'a> {
    component: &'a Component,
    lanes: &'a mut [i32],
    blobs: &'a mut [Bytes],
    fault: Option<(usize, FieldFault)>,
}

impl<'a> RowWriter<'a> {
    /// Creates a writer of one row of `component`.
    ///
    /// # Panics
    /// If `lanes` and `blobs` do not have the component's lengths.
    pub fn new(component: &'a Component, lanes: &'a mut [i32], blobs: &'a mut [Bytes]) -> Self {
        assert_eq!(
            (lanes.len(), blobs.len()),
            (component.lanes(), component.blobs()),
            "a row of its component"
        );
        RowWriter { component, lanes, blobs, fault: None }
    }

    /// The component.
    pub const fn component(&self) -> &'a Component {
        self.component
    }

    /// Sets the field with this index, quantized. Numbers outside the field's range are clamped. A number
    /// that is not finite, a text that is too long and an index without a name are errors.
    pub fn set<V: FieldValue>(&mut self, field: usize, value: &V) {
        if let Err(fault) = self.try_set(field, value) {
            self.fault.get_or_insert((field, fault));
        }
    }

    /// Sets the field with this index by its numbers, as many as [`Kind::numbers`] says: for code without its
    /// Rust type.
    pub fn set_numbers(&mut self, field: usize, numbers: &[f64]) {
        let written = match self.field(field) {
            Some(mut field) => field.numbers(numbers),
            None => Err(FieldFault::WrongType { found: "a field that there is not" }),
        };
        if let Err(fault) = written {
            self.fault.get_or_insert((field, fault));
        }
    }

    /// Checks that everything that was set is valid.
    ///
    /// # Errors
    /// [`RowError`] with the first invalid field, and why. The row must not be used then.
    pub fn finish(self) -> Result<(), RowError> {
        self.fault.map_or(Ok(()), |(field, fault)| Err(self.component.row_error(field, fault)))
    }

    fn try_set<V: FieldValue>(&mut self, field: usize, value: &V) -> Result<(), FieldFault> {
        match self.field(field) {
            Some(mut field) if V::fits(field.kind()) => value.write(&mut field),
            _ => Err(FieldFault::WrongType { found: type_name::<V>() }),
        }
    }

    fn field(&mut self, field: usize) -> Option<FieldWriter<'_>> {
        let kind = &self.component.fields().get(field)?.kind;
        let lanes = &mut self.lanes[self.component.field_lanes(field)];
        let blob = self.component.field_blob(field).map(|index| &mut self.blobs[index]);
        Some(FieldWriter { kind, lanes, blob })
    }
}

/// Writes one field.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    kind: &'a Kind,
    lanes: &'a mut [i32],
    blob: Option<&'a mut Bytes>,
}

impl FieldWriter<'_> {
    /// The kind of the field.
    pub const fn kind(&self) -> &Kind {
        self.kind
    }

    /// Writes the numbers of a numeric kind, as many as [`Kind::numbers`] says, in the order of [`Kind`]'s
    /// table.
    ///
    /// # Errors
    /// [`FieldFault`] for a number that is not finite, a wrong count of numbers, or an index without a name.
    pub fn numbers(&mut self, numbers: &[f64]) -> Result<(), FieldFault> {
        quantize::quantize(self.kind, numbers, self.lanes)
    }

    /// Writes text.
    ///
    /// # Errors
    /// [`FieldFault`] if it is too long, or the field is no text.
    pub fn text(&mut self, text: &str) -> Result<(), FieldFault> {
        match self.kind {
            Kind::Text { .. } => self.put_blob(text.as_bytes(), Bytes::copy_from_slice),
            _ => Err(FieldFault::WrongType { found: "text" }),
        }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`FieldFault`] if they are too many, or the field has no bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), FieldFault> {
        match self.kind {
            Kind::Bytes { .. } => self.put_blob(bytes, Bytes::copy_from_slice),
            _ => Err(FieldFault::WrongType { found: "bytes" }),
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    /// [`FieldFault`] if it cannot be sent or is too long, or the field holds no value.
    pub fn value(&mut self, value: &Value) -> Result<(), FieldFault> {
        let Kind::Any { bytes_max } = self.kind else {
            return Err(FieldFault::WrongType { found: "a value" });
        };
        let bytes = value.encode(usize::from(*bytes_max))?;
        self.put_blob(&bytes, |_| bytes.clone())
    }

    /// Sets the blob to `bytes`, which are not copied if nothing changes.
    fn put_blob(&mut self, bytes: &[u8], own: impl FnOnce(&[u8]) -> Bytes) -> Result<(), FieldFault> {
        let max = self.kind.blob_bytes_max().unwrap_or(0);
        if bytes.len() > max {
            return Err(FieldFault::TooLong { bytes: bytes.len(), max });
        }
        if let Some(blob) = &mut self.blob
            && **blob != bytes
        {
            **blob = own(bytes);
        }
        Ok(())
    }
}

/// Reads the fields of a component, from a row of lanes or from interpolated numbers.
#[derive(Clone, Copy, Debug)]
pub struct RowReader<'a> {
    component: &'a Component,
    source: Source<'a>,
    blobs: &'a [Bytes],
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Lanes(&'a [i32]),
    Numbers(&'a [f64]),
}

impl<'a> RowReader<'a> {
    /// Creates a reader of a row of lanes and blobs.
    pub const fn new(component: &'a Component, lanes: &'a [i32], blobs: &'a [Bytes]) -> Self {
        RowReader { component, source: Source::Lanes(lanes), blobs }
    }

    /// Creates a reader of numbers, field by field, and blobs.
    pub const fn of_numbers(component: &'a Component, numbers: &'a [f64], blobs: &'a [Bytes]) -> Self {
        RowReader { component, source: Source::Numbers(numbers), blobs }
    }

    /// The component.
    pub const fn component(&self) -> &'a Component {
        self.component
    }

    /// Returns the value of the field with this index. If it does not fit `V`, or there is no such field, the
    /// result is `V` read from zeros and no bytes.
    pub fn get<V: FieldValue>(&self, field: usize) -> V {
        V::read(&self.field(field))
    }

    /// Returns the field with this index, for code without its Rust type.
    pub fn field(&self, field: usize) -> FieldReader<'a> {
        let kind = self.component.fields().get(field).map(|field| &field.kind);
        let mut numbers = [0.0; FIELD_NUMBERS_MAX];
        if let Some(kind) = kind {
            match self.source {
                Source::Lanes(lanes) => {
                    let lanes = lanes.get(self.component.field_lanes(field)).unwrap_or_default();
                    numbers = quantize::numbers_of(kind, lanes);
                }
                Source::Numbers(all) => {
                    let own = all.get(self.component.field_numbers(field)).unwrap_or_default();
                    own.iter().zip(&mut numbers).for_each(|(from, to)| *to = *from);
                }
            }
        }
        let blob = self.component.field_blob(field).and_then(|index| self.blobs.get(index));
        FieldReader { kind, numbers, blob }
    }
}

/// A field to read.
#[derive(Clone, Copy, Debug)]
pub struct FieldReader<'a> {
    kind: Option<&'a Kind>,
    numbers: [f64; FIELD_NUMBERS_MAX],
    blob: Option<&'a Bytes>,
}

impl<'a> FieldReader<'a> {
    /// The kind of the field; `None` if there is no such field.
    pub const fn kind(&self) -> Option<&'a Kind> {
        self.kind
    }

    /// Its numbers, in the order of [`Kind`]'s table.
    pub fn numbers(&self) -> &[f64] {
        let count = self.kind.map_or(0, Kind::numbers);
        self.numbers.get(..count).unwrap_or_default()
    }

    /// Its first `N` numbers; 0 for missing ones.
    pub fn array<const N: usize>(&self) -> [f64; N] {
        core::array::from_fn(|index| self.numbers.get(index).copied().unwrap_or(0.0))
    }

    /// Its bytes; `None` for a numeric field.
    pub const fn blob(&self) -> Option<&'a Bytes> {
        self.blob
    }
}

impl Component {
    /// Checks that received `lanes` and `blobs` are a valid row of this component.
    ///
    /// # Errors
    /// [`RowError`] with the first invalid field: a lane beyond its span, a direction or rotation that is not
    /// canonical, a blob that is too long or invalid for its kind.
    pub fn check_row(&self, lanes: &[i32], blobs: &[Bytes]) -> Result<(), RowError> {
        self.check_lanes(lanes)?;
        self.check_blobs(blobs)
    }

    /// [`check_row`](Self::check_row) for lanes with the component's length, each known to be within its
    /// span.
    pub(crate) fn check_row_in_span(&self, lanes: &[i32], blobs: &[Bytes]) -> Result<(), RowError> {
        for (field, kind) in self.fields().iter().map(|field| &field.kind).enumerate() {
            if !quantize::is_canonical(kind, &lanes[self.field_lanes(field)]) {
                return Err(self.row_error(field, FieldFault::Lane));
            }
        }
        debug_assert_eq!(self.check_lanes(lanes), Ok(()), "a lane is beyond its span");
        self.check_blobs(blobs)
    }

    fn check_blobs(&self, blobs: &[Bytes]) -> Result<(), RowError> {
        if self.blobs() == 0 {
            return Ok(());
        }
        for (field, kind) in self.fields().iter().map(|field| &field.kind).enumerate() {
            if let Some(blob) = self.field_blob(field) {
                let blob = blobs.get(blob).map(AsRef::as_ref);
                check_blob(kind, blob).map_err(|fault| self.row_error(field, fault))?;
            }
        }
        Ok(())
    }

    /// [`check_row`](Self::check_row) for the lanes alone.
    ///
    /// # Errors
    /// [`RowError`].
    pub fn check_lanes(&self, lanes: &[i32]) -> Result<(), RowError> {
        let in_span =
            |(lane, kind): (&i32, &super::LaneKind)| u32::try_from(*lane).is_ok_and(|lane| lane <= kind.span);
        let all_in_span = lanes.len() == self.lanes() && lanes.iter().zip(self.lane_kinds()).all(in_span);
        for (field, kind) in self.fields().iter().map(|field| &field.kind).enumerate() {
            let indices = self.field_lanes(field);
            let in_order = match lanes.get(indices.clone()) {
                Some(own) => {
                    let spans = &self.lane_kinds()[indices];
                    (all_in_span || own.iter().zip(spans).all(in_span)) && quantize::is_canonical(kind, own)
                }
                None => false,
            };
            if !in_order {
                return Err(self.row_error(field, FieldFault::Lane));
            }
        }
        Ok(())
    }

    /// Returns the row in which every number is the one nearest to 0, every rotation the identity, every text
    /// empty and every value [`Value::Null`].
    pub fn rest_row(&self) -> (Vec<i32>, Vec<Bytes>) {
        let (mut lanes, mut blobs) = (vec![0; self.lanes()], vec![Bytes::new(); self.blobs()]);
        for (field, kind) in self.fields().iter().map(|field| &field.kind).enumerate() {
            let numbers = [0.0; FIELD_NUMBERS_MAX];
            let numbers = numbers.get(..kind.numbers()).unwrap_or_default();
            // A kind that is invalid in a schema keeps its zeros.
            let _ = quantize::quantize(kind, numbers, &mut lanes[self.field_lanes(field)]);
            if let (Kind::Any { .. }, Some(blob)) = (kind, self.field_blob(field)) {
                blobs[blob] = Value::Null.encode(1).unwrap_or_default();
            }
        }
        (lanes, blobs)
    }

    fn row_error(&self, field: usize, fault: FieldFault) -> RowError {
        let name = self.fields().get(field).map_or_else(|| field.to_string(), |field| field.name.clone());
        RowError { component: self.name().to_owned(), field: name, fault }
    }
}

fn check_blob(kind: &Kind, blob: Option<&[u8]>) -> Result<(), FieldFault> {
    let (Some(max), Some(blob)) = (kind.blob_bytes_max(), blob) else {
        return Err(FieldFault::Blob { expected: "there" });
    };
    if blob.len() > max {
        return Err(FieldFault::TooLong { bytes: blob.len(), max });
    }
    match kind {
        Kind::Text { .. } if core::str::from_utf8(blob).is_err() => {
            Err(FieldFault::Blob { expected: "UTF-8" })
        }
        Kind::Any { .. } if Value::decode(Bytes::copy_from_slice(blob)).is_err() => {
            Err(FieldFault::Blob { expected: "the encoding of a value" })
        }
        _ => Ok(()),
    }
}
