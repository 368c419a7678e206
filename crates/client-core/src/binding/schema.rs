//! Schemas and components from their descriptions.

use super::{Fault, Record, mismatch, unknown_word};
use parlor_sync::replicator::{Template, Tolerance};
use parlor_sync::schema::{Component, Condition, Field, Interpolation, Kind, Range, Schema};
use parlor_sync::value::Value;
use std::time::Duration;

/// The schema that a description stands for: the same as that of the Rust types with these fields. `path` is where
/// the description stands, for faults.
///
/// # Errors
/// [`Fault`] with what is wrong, and where.
pub fn read_schema(value: Value, path: &str) -> Result<Schema, Fault> {
    let mut record = Record::new(value, path)?;
    let components = record.list("components")?.unwrap_or_default();
    let mut builder = Schema::builder();
    for (index, value) in components.into_iter().enumerate() {
        let mut component = Record::new(value, &format!("{}[{index}]", record.at("components")))?;
        builder = builder.component(read_component(&mut component)?);
        component.end()?;
    }
    if let Some(mut interest) = record.record("interest")? {
        let name = interest.text("component")?;
        let name = interest.need("component", name)?;
        let field = interest.text("field")?;
        let field = interest.need("field", field)?;
        let radius = interest.number("radius")?;
        let radius = interest.need("radius", radius)?;
        let leave = interest.number("leave")?.unwrap_or(radius);
        interest.end()?;
        builder = builder.interest(&name, &field, radius, leave);
    }
    record.end()?;
    builder.build().map_err(|error| Fault::at("bad_schema", path, &error.to_string()))
}

/// The type of a player's own state that a description stands for.
///
/// # Errors
/// [`Fault`] with what is wrong, and where.
pub fn read_template(mut record: Record) -> Result<Template, Fault> {
    let tolerances = record.record("tolerance")?;
    let longest_ms = record.int::<u16>("longestIntervalMs")?;
    let component = read_component(&mut record)?;
    let mut builder = Template::builder(component.name()).priority(component.priority());
    for field in component.fields() {
        builder = builder.field(&field.name, field.clone(), Tolerance::default());
    }
    if let Some(longest_ms) = longest_ms {
        builder = builder.longest_interval(Duration::from_millis(longest_ms.into()));
    }
    if let Some(mut radius) = record.record("radius")? {
        let (field, metres) = (radius.text("field")?, radius.number("within")?);
        builder = builder.radius(&radius.need("field", field)?, radius.need("within", metres)?);
        radius.end()?;
    }
    for (field, value) in tolerances.map(|mut all| all.all()).unwrap_or_default() {
        let mut given = Record::new(value, &record.at(&format!("tolerance.{field}")))?;
        let late_by = given.int::<u32>("lateByMs")?.map(|ms| Duration::from_millis(ms.into()));
        let tolerance = Tolerance {
            off_by: given.number("offBy")?.unwrap_or_default(),
            turned_by: given.number("turnedBy")?.unwrap_or_default(),
            late_by: late_by.unwrap_or_default(),
            jump: given.number("jump")?.unwrap_or_default(),
            priority: given.int("priority")?.unwrap_or_default(),
        };
        given.end()?;
        builder = builder.tolerance(&field, tolerance);
    }
    let built = builder.build().map_err(|error| Fault::at("bad_schema", "own", &error.to_string()));
    record.end()?;
    built
}

fn read_component(record: &mut Record) -> Result<Component, Fault> {
    let name = record.text("name")?;
    let mut builder = Component::builder(&record.need("name", name)?);
    if let Some(priority) = record.int("priority")? {
        builder = builder.priority(priority);
    }
    builder = builder.condition(match record.text("condition")?.as_deref() {
        None | Some("everyone") => Condition::Everyone,
        Some("owner") => Condition::OwnerOnly,
        Some("not-owner") => Condition::NotOwner,
        Some(word) => {
            let known = "\"everyone\", \"owner\", \"not-owner\"";
            return Err(unknown_word(&record.at("condition"), word, known));
        }
    });
    let fields = record.list("fields")?;
    for (index, value) in record.need("fields", fields)?.into_iter().enumerate() {
        let mut field = Record::new(value, &format!("{}[{index}]", record.at("fields")))?;
        let name = field.text("name")?;
        let name = field.need("name", name)?;
        builder = builder.field(&name, read_field(&mut field)?);
        field.end()?;
    }
    Ok(builder.build())
}

fn read_field(record: &mut Record) -> Result<Field, Fault> {
    let mut field = Field::from(read_kind(record)?);
    if let Some(interpolate) = record.text("interpolate")? {
        field = field.interpolation(match interpolate.as_str() {
            "none" => Interpolation::None,
            "linear" => Interpolation::Linear,
            "spherical" => Interpolation::Spherical,
            "hermite" => Interpolation::Hermite,
            word => {
                let known = "\"none\", \"linear\", \"spherical\", \"hermite\"";
                return Err(unknown_word(&record.at("interpolate"), word, known));
            }
        });
    }
    if let Some(steps) = record.int("threshold")? {
        field = field.threshold(steps);
    }
    if let Some(priority) = record.int("priority")? {
        field = field.priority(priority);
    }
    Ok(field)
}

fn read_kind(record: &mut Record) -> Result<Kind, Fault> {
    let kind = record.text("kind")?;
    let kind = record.need("kind", kind)?;
    Ok(match kind.as_str() {
        "bool" => Kind::Bool,
        "int" => Kind::Int { min: int(record, "min")?, max: int(record, "max")? },
        "float" => {
            let Range { min, max, step } = read_range(record)?;
            Kind::Float { min, max, step }
        }
        "floatBits" => Kind::float_bits(number(record, "min")?, number(record, "max")?, int(record, "bits")?),
        "angle" => Kind::Angle { steps: int(record, "steps")? },
        "vec2" | "vec3" => {
            let Range { min, max, step } = read_range(record)?;
            Kind::Vector { dims: if kind == "vec2" { 2 } else { 3 }, min, max, step }
        }
        "unitVector" => Kind::UnitVector { bits: int(record, "bits")? },
        "rotation" => Kind::Rotation { bits: int(record, "bits")? },
        "transform" => Kind::Transform {
            position: range_in(record, "position")?,
            rotation_bits: int(record, "rotationBits")?,
        },
        "body" => Kind::Body {
            position: range_in(record, "position")?,
            rotation_bits: int(record, "rotationBits")?,
            velocity: range_in(record, "velocity")?,
            spin: range_in(record, "spin")?,
        },
        "oneOf" => Kind::Enum { names: record.texts("names")? },
        "text" => Kind::Text { bytes_max: int(record, "bytesMax")? },
        "bytes" => Kind::Bytes { bytes_max: int(record, "bytesMax")? },
        "any" => Kind::Any { bytes_max: int(record, "bytesMax")? },
        word => {
            let known = "the kinds that there are: bool, int, float, floatBits, angle, vec2, vec3, unitVector, \
                rotation, transform, body, oneOf, text, bytes, any";
            return Err(unknown_word(&record.at("kind"), word, known));
        }
    })
}

fn int<T: TryFrom<i64>>(record: &mut Record, name: &str) -> Result<T, Fault> {
    let value = record.int(name)?;
    record.need(name, value)
}

fn number(record: &mut Record, name: &str) -> Result<f64, Fault> {
    let value = record.number(name)?;
    record.need(name, value)
}

fn read_range(record: &mut Record) -> Result<Range, Fault> {
    Ok(Range::new(number(record, "min")?, number(record, "max")?, number(record, "step")?))
}

fn range_in(record: &mut Record, name: &str) -> Result<Range, Fault> {
    let Some(mut range) = record.record(name)? else {
        return Err(mismatch(&record.at(name), "a map with min, max and step", &Value::Null));
    };
    let read = read_range(&mut range)?;
    range.end()?;
    Ok(read)
}
