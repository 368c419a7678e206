//! Rows and columns as bytes: see "Worlds" in the head of the crate.

use crate::boundary::{Fault, NONE};
use bytes::{Buf, Bytes};
use parlor_client_core::Columns;
use parlor_proto::EntityId;
use parlor_sync::schema::{Component, Kind, RowReader, RowWriter};
use parlor_sync::value::Value;

/// Writes the first `fields` fields of a row: all numbers, then all blobs.
pub(crate) fn put_row(out: &mut Vec<u8>, row: &RowReader<'_>, fields: usize) {
    for field in 0..fields {
        row.field(field).numbers().iter().for_each(|number| out.extend(number.to_le_bytes()));
    }
    for field in 0..fields {
        row.field(field).blob().into_iter().for_each(|blob| put_blob(out, blob));
    }
}

/// Writes columns.
pub(crate) fn put_columns(out: &mut Vec<u8>, columns: &Columns) {
    out.extend(length(columns.entities.len()));
    out.extend([0; 4]);
    columns.entities.iter().for_each(|entity| out.extend(entity.to_bits().to_le_bytes()));
    for owner in &columns.owners {
        out.extend(owner.map_or(NONE, |owner| owner.0.cast_signed()).to_le_bytes());
    }
    for column in &columns.numbers {
        column.iter().for_each(|number| out.extend(number.to_le_bytes()));
    }
    for column in &columns.blobs {
        column.iter().for_each(|blob| put_blob(out, blob));
    }
}

fn put_blob(out: &mut Vec<u8>, blob: &[u8]) {
    out.extend(length(blob.len()));
    out.extend_from_slice(blob);
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("rows are far smaller than 4 GiB").to_le_bytes()
}

/// The fields of a row that came in, not yet written.
pub(crate) struct Given {
    numbers: Vec<f64>,
    blobs: Vec<Bytes>,
}

impl Given {
    /// Reads a row of the first `fields` fields of a component.
    pub(crate) fn read(mut bytes: Bytes, component: &Component, fields: usize) -> Result<Self, Fault> {
        let (numbers, blobs) = counts(component, fields);
        let numbers = (0..numbers).map(|_| number(&mut bytes)).collect::<Result<_, _>>()?;
        let blobs = (0..blobs).map(|_| blob(&mut bytes)).collect::<Result<_, _>>()?;
        end(&bytes)?;
        Ok(Given { numbers, blobs })
    }

    /// Writes the fields.
    pub(crate) fn write(&self, row: &mut RowWriter<'_>, fields: usize) {
        let (mut number, mut blob) = (0, 0);
        for field in 0..fields {
            let kind = row.component().fields()[field].kind.clone();
            let count = kind.numbers();
            if count > 0 {
                row.set_numbers(field, &self.numbers[number..number + count]);
                number += count;
            }
            if kind.blob_bytes_max().is_some() {
                set_blob(row, field, &kind, &self.blobs[blob]);
                blob += 1;
            }
        }
    }

    /// Checks what the writer cannot: that texts are UTF-8, and values are encoded ones.
    pub(crate) fn check(&self, component: &Component, fields: usize) -> Result<(), Fault> {
        let kinds = component.fields()[..fields].iter().filter(|field| field.kind.blob_bytes_max().is_some());
        for (field, blob) in kinds.zip(&self.blobs) {
            let is_valid = match field.kind {
                Kind::Text { .. } => core::str::from_utf8(blob).is_ok(),
                Kind::Any { .. } => Value::decode(blob.clone()).is_ok(),
                _ => true,
            };
            if !is_valid {
                return Err(Fault::at("bad_value", &field.name, "these bytes are not of the field's kind"));
            }
        }
        Ok(())
    }
}

fn set_blob(row: &mut RowWriter<'_>, field: usize, kind: &Kind, blob: &Bytes) {
    match kind {
        Kind::Text { .. } => row.set(field, &String::from_utf8_lossy(blob).into_owned()),
        Kind::Any { .. } => row.set(field, &Value::decode(blob.clone()).unwrap_or_default()),
        _ => row.set(field, blob),
    }
}

/// Columns that came in, row by row.
pub(crate) fn read_columns(mut bytes: Bytes, component: &Component) -> Result<Vec<(EntityId, Given)>, Fault> {
    let fields = component.fields().len();
    let (numbers, blobs) = counts(component, fields);
    let count = word(&mut bytes)? as usize;
    word(&mut bytes)?;
    // The fixed part of each row is there, so the count is no claim.
    if bytes.remaining() / (8 + 8 * numbers + 4 * blobs) < count {
        return Err(short());
    }
    let mut rows: Vec<(EntityId, Given)> = (0..count)
        .map(|_| {
            Ok((EntityId::from_bits(word(&mut bytes)?), Given { numbers: Vec::new(), blobs: Vec::new() }))
        })
        .collect::<Result<_, Fault>>()?;
    // Owners are as they are.
    bytes.advance(4 * count);
    for _ in 0..numbers {
        for (_, row) in &mut rows {
            row.numbers.push(number(&mut bytes)?);
        }
    }
    for _ in 0..blobs {
        for (_, row) in &mut rows {
            row.blobs.push(blob(&mut bytes)?);
        }
    }
    end(&bytes)?;
    Ok(rows)
}

/// The numbers and blobs of the first fields of a component.
fn counts(component: &Component, fields: usize) -> (usize, usize) {
    let kinds = || component.fields().iter().take(fields).map(|field| &field.kind);
    let blobs = kinds().filter(|kind| kind.blob_bytes_max().is_some()).count();
    (kinds().map(Kind::numbers).sum(), blobs)
}

fn number(bytes: &mut Bytes) -> Result<f64, Fault> {
    if bytes.remaining() < 8 { Err(short()) } else { Ok(bytes.get_f64_le()) }
}

fn word(bytes: &mut Bytes) -> Result<u32, Fault> {
    if bytes.remaining() < 4 { Err(short()) } else { Ok(bytes.get_u32_le()) }
}

fn blob(bytes: &mut Bytes) -> Result<Bytes, Fault> {
    let length = word(bytes)? as usize;
    if bytes.remaining() < length { Err(short()) } else { Ok(bytes.split_to(length)) }
}

fn end(bytes: &Bytes) -> Result<(), Fault> {
    if bytes.has_remaining() {
        return Err(Fault::bad_call("the row is longer than its component: is the component the right one?"));
    }
    Ok(())
}

fn short() -> Fault {
    Fault::bad_call("the row is shorter than its component: is the component the right one?")
}
