//! Rows and columns as bytes.
//!
//! A row: its numbers as f64, little-endian, in the order of the fields (bool 0 or 1, names by index, vectors x y z,
//! rotations x y z w, transform position + rotation, body position, rotation, velocity, spin), then for each field of
//! text, bytes or any: u32 length, bytes (any: the encoding of a [`Value`]).
//!
//! Columns: u32 count · u32 0 · count × u32 entity · count × i32 owner ([`NONE`] for none) · for each number: count ×
//! f64 · for each blob: count × (u32 length, bytes). Owners are not read.

use super::Fault;
use crate::columns::Columns;
use crate::describe::Fields;
use crate::world::WorldAccess;
use bytes::{Buf, Bytes};
use parlor_proto::EntityId;
use parlor_sync::schema::{Component, ComponentId, Field, Kind, RowReader, RowWriter, Schema};
use parlor_sync::value::Value;
use std::sync::Arc;

/// The number that stands for "no member" where 0 is a member.
pub const NONE: i32 = -2;

/// Appends a component of an entity as a row: as [`WorldAccess::row`] reads it. Returns whether the entity has it.
///
/// # Errors
/// [`Fault`] as of [`WorldAccess::row`].
pub fn read_row(
    world: &mut WorldAccess<'_>,
    entity: EntityId,
    component: ComponentId,
    is_shown: bool,
    out: &mut Vec<u8>,
) -> Result<bool, Fault> {
    let put = |row: &RowReader<'_>| put_row(out, row, row.component().fields().len());
    Ok(world.row(entity, component, is_shown, put)?.is_some())
}

/// Sets a component of an entity from a row: as [`WorldAccess::write_row`].
///
/// # Errors
/// [`Fault`] as of [`WorldAccess::write_row`], and if the bytes are no row of the component.
pub fn write_row(
    world: &mut WorldAccess<'_>,
    entity: EntityId,
    component: ComponentId,
    bytes: Bytes,
) -> Result<(), Fault> {
    let schema = Arc::clone(world.schema());
    let kind = component_of(&schema, component)?;
    let fields = kind.fields().len();
    set_row(world, entity, component, &Row::read(bytes, kind, fields)?, fields)
}

fn set_row(
    world: &mut WorldAccess<'_>,
    entity: EntityId,
    component: ComponentId,
    row: &Row,
    fields: usize,
) -> Result<(), Fault> {
    Ok(world.write_row(entity, component, |writer| row.write(writer, fields))?)
}

/// Appends a component of all entities that have it as columns: as [`WorldAccess::columns`] reads it. Returns how many
/// have it. `scratch` is read into, so that each frame need not allocate.
///
/// # Errors
/// [`Fault`] as of [`WorldAccess::columns`].
pub fn read_columns(
    world: &mut WorldAccess<'_>,
    component: ComponentId,
    is_shown: bool,
    scratch: &mut Columns,
    out: &mut Vec<u8>,
) -> Result<usize, Fault> {
    world.columns(component, is_shown, scratch)?;
    put_columns(out, scratch);
    Ok(scratch.entities.len())
}

/// Sets a component of many entities from columns, and returns how many. After an error none beyond the entity that it
/// names is set.
///
/// # Errors
/// [`Fault`] as of [`WorldAccess::write_row`], and if the bytes are no columns of the component.
pub fn write_columns(
    world: &mut WorldAccess<'_>,
    component: ComponentId,
    bytes: Bytes,
) -> Result<usize, Fault> {
    let schema = Arc::clone(world.schema());
    let kind = component_of(&schema, component)?;
    let fields = kind.fields().len();
    let rows = parse_columns(bytes, kind)?;
    rows.iter().try_for_each(|(_, row)| row.check(kind, fields))?;
    for (entity, row) in &rows {
        set_row(world, *entity, component, row, fields)?;
    }
    Ok(rows.len())
}

fn component_of(schema: &Schema, id: ComponentId) -> Result<&Component, Fault> {
    schema.get(id).ok_or_else(|| Fault::new("no_such_component", "the room's schema has no such component"))
}

/// Describes the fields of a component, for who reads its rows.
pub fn describe_component(component: &Component) -> Value {
    let fields = component.fields().iter().map(|Field { name, kind, .. }| {
        Fields::default()
            .with("name", name.as_str())
            .with("kind", kind_name(kind))
            .count("numbers", kind.numbers() as u64)
            .with("blob", kind.blob_bytes_max().is_some())
            .build()
    });
    Fields::default().with("name", component.name()).with("fields", Value::List(fields.collect())).build()
}

const fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int { .. } => "int",
        Kind::Float { .. } => "float",
        Kind::Angle { .. } => "angle",
        Kind::Vector { dims: 2, .. } => "vec2",
        Kind::Vector { .. } => "vec3",
        Kind::UnitVector { .. } => "unitVector",
        Kind::Rotation { .. } => "rotation",
        Kind::Transform { .. } => "transform",
        Kind::Body { .. } => "body",
        Kind::Enum { .. } => "oneOf",
        Kind::Text { .. } => "text",
        Kind::Bytes { .. } => "bytes",
        Kind::Any { .. } => "any",
    }
}

/// Writes the first `fields` fields of a row: all numbers, then all blobs.
pub fn put_row(out: &mut Vec<u8>, row: &RowReader<'_>, fields: usize) {
    for field in 0..fields {
        row.field(field).numbers().iter().for_each(|number| out.extend(number.to_le_bytes()));
    }
    for field in 0..fields {
        row.field(field).blob().into_iter().for_each(|blob| put_blob(out, blob));
    }
}

/// Writes columns.
pub fn put_columns(out: &mut Vec<u8>, columns: &Columns) {
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
#[derive(Clone, Debug)]
pub struct Row {
    numbers: Vec<f64>,
    blobs: Vec<Bytes>,
}

impl Row {
    /// Reads a row of the first `fields` fields of a component.
    ///
    /// # Errors
    /// [`Fault`] if the bytes are none.
    pub fn read(mut bytes: Bytes, component: &Component, fields: usize) -> Result<Self, Fault> {
        let (numbers, blobs) = counts(component, fields);
        let numbers = (0..numbers).map(|_| number(&mut bytes)).collect::<Result<_, _>>()?;
        let blobs = (0..blobs).map(|_| blob(&mut bytes)).collect::<Result<_, _>>()?;
        end(&bytes)?;
        let row = Row { numbers, blobs };
        row.check(component, fields)?;
        Ok(row)
    }

    /// Writes the fields.
    pub fn write(&self, row: &mut RowWriter<'_>, fields: usize) {
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
    fn check(&self, component: &Component, fields: usize) -> Result<(), Fault> {
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
fn parse_columns(mut bytes: Bytes, component: &Component) -> Result<Vec<(EntityId, Row)>, Fault> {
    let fields = component.fields().len();
    let (numbers, blobs) = counts(component, fields);
    let count = word(&mut bytes)? as usize;
    word(&mut bytes)?;
    // The fixed part of each row is there, so the count is no claim.
    if bytes.remaining() / (8 + 8 * numbers + 4 * blobs) < count {
        return Err(short());
    }
    let mut rows: Vec<(EntityId, Row)> = (0..count)
        .map(|_| Ok((EntityId::from_bits(word(&mut bytes)?), Row { numbers: Vec::new(), blobs: Vec::new() })))
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
