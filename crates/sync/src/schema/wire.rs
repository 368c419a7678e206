//! The encoding of a schema. It is unique, and the schema's hash is computed over it.
//!
//! ```text
//!  schema       flags: 1 byte (1 the built-in components come first) · count: varint, of the others
//!               for each: component · interest: 0 | 1, interest
//!  component    name: text · priority: varint (1..=65535) · condition: 1 byte
//!               count: varint (1..=32) · for each: field
//!  condition    0 everyone · 1 owner only · 2 not owner
//!  field        name: text · kind: 1 byte and its parameters · interpolation: 1 byte, + 0x80 if it has a priority
//!               threshold: varint · if it has one, priority: varint (1..=65535)
//!  kind         0 bool
//!               1 int         min: 8 bytes, two's complement · max − min: varint
//!               2 float       range
//!               3 angle       steps: varint
//!               4 vector      components: 1 byte (2, 3) · range
//!               5 direction   bits: 1 byte
//!               6 rotation    bits: 1 byte
//!               7 transform   position: range · rotation bits: 1 byte
//!               8 body        position: range · rotation bits: 1 byte · velocity: range · spin: range
//!               9 enum        count: varint (1..=256) · for each: name: text
//!              10 text        most bytes: varint (1..=16384)
//!              11 bytes       most bytes: varint (1..=16384)
//!              12 any value   most bytes: varint (1..=16384)
//!  range        min, max, step: 8 bytes each, IEEE 754
//!  interpolation  0 none · 1 linear · 2 spherical · 3 Hermite
//!  interest     component: varint · field: varint · radius, leave: 8 bytes each, IEEE 754
//! ```
//!
//! A component's number is its index among all, including built-in ones; a field's number is its index in its
//! component. Text is a length (varint) and UTF-8, 1 to 64 bytes. Numbers of 8 bytes are little-endian. A
//! number that is not finite, −0, subnormal, or invalid for a schema is rejected, and so are trailing bytes.

use super::component::{Component, Field};
use super::error::SchemaError;
use super::kind::{Kind, Range};
use super::{ComponentId, Condition, GridInterest, Interpolation, Schema};
use crate::limits::{BLOB_BYTES_MAX, CHOICES_MAX, COMPONENTS_MAX, FIELD_SPAN_MAX, FIELDS_MAX};
use bytes::Bytes;
use core::num::NonZeroU16;
use parlor_proto::limits::{LABEL_BYTES_MAX, SCHEMA_BYTES_MAX};
use parlor_proto::wire::cursor::{ReadError, Reader, Write};

/// Set in the byte of a field's interpolation if the field has a priority.
const PRIORITY: u8 = 0x80;

const BUILTINS: u8 = 1;

pub(super) fn encode(schema: &Schema) -> Bytes {
    let mut out = Vec::new();
    out.put_u8(if schema.has_builtins() { BUILTINS } else { 0 });
    out.put_varint(schema.game_components().len() as u64);
    for component in schema.game_components() {
        write_component(component, &mut out);
    }
    out.put_option(schema.interest(), |out, interest| {
        out.put_varint(interest.component.0.into());
        out.put_varint(interest.field as u64);
        out.put_u64(interest.radius.to_bits());
        out.put_u64(interest.leave.to_bits());
    });
    out.into()
}

pub(super) fn decode(bytes: Bytes) -> Result<Schema, SchemaError> {
    if bytes.len() > SCHEMA_BYTES_MAX {
        return Err(SchemaError::TooLarge { bytes: bytes.len() });
    }
    let mut reader = Reader::new(bytes);
    let flags = reader.u8()?;
    if flags & !BUILTINS != 0 {
        return Err(ReadError::Unknown { field: "the flags of a schema", value: flags.into() }.into());
    }
    let count = reader.varint_max("the count of components", COMPONENTS_MAX as u64)?;
    let mut components = Vec::new();
    for _ in 0..count {
        components.push(read_component(&mut reader)?);
    }
    let mut schema = super::assemble(flags & BUILTINS != 0, components)?;
    schema.interest = reader.option("interest", |reader| {
        let id = reader.varint_max("the component of interest", u8::MAX.into())?;
        let component = ComponentId(u8::try_from(id).map_err(|_| out_of_range("the component of interest"))?);
        let field = reader.varint_max("the field of interest", FIELDS_MAX as u64)?;
        let field = usize::try_from(field).map_err(|_| out_of_range("the field of interest"))?;
        let (radius, leave) = (read_f64(reader)?, read_f64(reader)?);
        Ok(GridInterest { component, field, radius, leave })
    })?;
    reader.finish()?;
    super::finish(schema)
}

fn out_of_range(field: &'static str) -> ReadError {
    ReadError::OutOfRange { field }
}

fn write_component(component: &Component, out: &mut Vec<u8>) {
    out.put_str(component.name());
    out.put_varint(component.priority().into());
    out.put_u8(match component.condition() {
        Condition::Everyone => 0,
        Condition::OwnerOnly => 1,
        Condition::NotOwner => 2,
    });
    out.put_varint(component.fields().len() as u64);
    for field in component.fields() {
        out.put_str(&field.name);
        write_kind(&field.kind, out);
        let interpolation = match field.interpolation {
            Interpolation::None => 0,
            Interpolation::Linear => 1,
            Interpolation::Spherical => 2,
            Interpolation::Hermite => 3,
        };
        out.put_u8(interpolation | if field.priority.is_some() { PRIORITY } else { 0 });
        out.put_varint(field.threshold.into());
        if let Some(priority) = field.priority {
            out.put_varint(priority.get().into());
        }
    }
}

fn read_component(reader: &mut Reader) -> Result<Component, SchemaError> {
    let name = reader.str_max("the name of a component", LABEL_BYTES_MAX)?;
    let priority = read_priority(reader)?;
    let condition = match reader.u8()? {
        0 => Condition::Everyone,
        1 => Condition::OwnerOnly,
        2 => Condition::NotOwner,
        value => return Err(ReadError::Unknown { field: "a condition", value: value.into() }.into()),
    };
    let mut builder = Component::builder(&name).priority(priority).condition(condition);
    for _ in 0..reader.varint_max("the count of fields", FIELDS_MAX as u64)? {
        let field = read_field(&name, reader)?;
        builder = builder.field(&field.name.clone(), field);
    }
    Ok(builder.build())
}

fn read_priority(reader: &mut Reader) -> Result<u16, ReadError> {
    let priority = reader.varint_max("a priority", u16::MAX.into())?;
    u16::try_from(priority).map_err(|_| out_of_range("a priority"))
}

fn read_field(component: &str, reader: &mut Reader) -> Result<Field, SchemaError> {
    let name = reader.str_max("the name of a field", LABEL_BYTES_MAX)?;
    let kind = match reader.u8()? {
        number @ 0..=12 => read_kind(number, reader)?,
        kind => return Err(SchemaError::UnknownKind { component: component.to_owned(), field: name, kind }),
    };
    let byte = reader.u8()?;
    let interpolation = match byte & !PRIORITY {
        0 => Interpolation::None,
        1 => Interpolation::Linear,
        2 => Interpolation::Spherical,
        3 => Interpolation::Hermite,
        value => return Err(ReadError::Unknown { field: "an interpolation", value: value.into() }.into()),
    };
    let threshold = reader.varint_u32("a threshold")?;
    let mut priority = None;
    if byte & PRIORITY != 0 {
        let is = NonZeroU16::new(read_priority(reader)?);
        priority = Some(is.ok_or_else(|| out_of_range("a priority"))?);
    }
    Ok(Field { name, kind, interpolation, threshold, priority })
}

fn write_kind(kind: &Kind, out: &mut Vec<u8>) {
    out.put_u8(number_of(kind));
    match kind {
        Kind::Bool => {}
        Kind::Int { min, max } => {
            out.put_u64(min.cast_unsigned());
            out.put_varint(max.abs_diff(*min));
        }
        Kind::Float { min, max, step } => write_range(Range::new(*min, *max, *step), out),
        Kind::Angle { steps } => out.put_varint((*steps).into()),
        Kind::Vector { dims, min, max, step } => {
            out.put_u8(*dims);
            write_range(Range::new(*min, *max, *step), out);
        }
        Kind::UnitVector { bits } | Kind::Rotation { bits } => out.put_u8(*bits),
        Kind::Transform { position, rotation_bits } => {
            write_range(*position, out);
            out.put_u8(*rotation_bits);
        }
        Kind::Body { position, rotation_bits, velocity, spin } => {
            write_range(*position, out);
            out.put_u8(*rotation_bits);
            write_range(*velocity, out);
            write_range(*spin, out);
        }
        Kind::Enum { names } => {
            out.put_varint(names.len() as u64);
            names.iter().for_each(|name| out.put_str(name));
        }
        Kind::Text { bytes_max } | Kind::Bytes { bytes_max } | Kind::Any { bytes_max } => {
            out.put_varint((*bytes_max).into());
        }
    }
}

fn number_of(kind: &Kind) -> u8 {
    match kind {
        Kind::Bool => 0,
        Kind::Int { .. } => 1,
        Kind::Float { .. } => 2,
        Kind::Angle { .. } => 3,
        Kind::Vector { .. } => 4,
        Kind::UnitVector { .. } => 5,
        Kind::Rotation { .. } => 6,
        Kind::Transform { .. } => 7,
        Kind::Body { .. } => 8,
        Kind::Enum { .. } => 9,
        Kind::Text { .. } => 10,
        Kind::Bytes { .. } => 11,
        Kind::Any { .. } => 12,
    }
}

fn read_kind(number: u8, reader: &mut Reader) -> Result<Kind, ReadError> {
    Ok(match number {
        0 => Kind::Bool,
        1 => {
            let min = reader.u64()?.cast_signed();
            let span = reader.varint_max("the range of an int", FIELD_SPAN_MAX.into())?;
            let max = min.checked_add_unsigned(span).ok_or(out_of_range("the range of an int"))?;
            Kind::Int { min, max }
        }
        2 => {
            let Range { min, max, step } = read_range(reader)?;
            Kind::Float { min, max, step }
        }
        3 => Kind::Angle { steps: reader.varint_u32("the parts of a turn")? },
        4 => {
            let dims = reader.u8()?;
            let Range { min, max, step } = read_range(reader)?;
            Kind::Vector { dims, min, max, step }
        }
        5 => Kind::UnitVector { bits: reader.u8()? },
        6 => Kind::Rotation { bits: reader.u8()? },
        7 => Kind::Transform { position: read_range(reader)?, rotation_bits: reader.u8()? },
        8 => Kind::Body {
            position: read_range(reader)?,
            rotation_bits: reader.u8()?,
            velocity: read_range(reader)?,
            spin: read_range(reader)?,
        },
        9 => {
            let count = reader.varint_max("the count of names", CHOICES_MAX as u64)?;
            let mut names = Vec::new();
            for _ in 0..count {
                names.push(reader.str_max("a name to choose from", LABEL_BYTES_MAX)?);
            }
            Kind::Enum { names }
        }
        10 => Kind::Text { bytes_max: read_bytes_max(reader)? },
        11 => Kind::Bytes { bytes_max: read_bytes_max(reader)? },
        _ => Kind::Any { bytes_max: read_bytes_max(reader)? },
    })
}

fn read_bytes_max(reader: &mut Reader) -> Result<u16, ReadError> {
    let bytes_max = reader.varint_max("the most bytes of a field", BLOB_BYTES_MAX as u64)?;
    u16::try_from(bytes_max).map_err(|_| out_of_range("the most bytes of a field"))
}

fn write_range(range: Range, out: &mut Vec<u8>) {
    for number in [range.min, range.max, range.step] {
        out.put_u64((number + 0.0).to_bits()); // −0.0 + 0.0 is 0.0
    }
}

fn read_range(reader: &mut Reader) -> Result<Range, ReadError> {
    Ok(Range { min: read_f64(reader)?, max: read_f64(reader)?, step: read_f64(reader)? })
}

/// Reads a number in its unique encoding: finite, not −0, not subnormal.
fn read_f64(reader: &mut Reader) -> Result<f64, ReadError> {
    let number = f64::from_bits(reader.u64()?);
    let is_zero = number.to_bits() == 0;
    if is_zero || number.is_normal() { Ok(number) } else { Err(out_of_range("a number of a range")) }
}
