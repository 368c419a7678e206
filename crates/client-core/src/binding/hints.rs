//! How values of keyed state move, from a description.

use super::{Fault, Record};
use parlor_sync::keyed::{Hints, Interp};
use parlor_sync::value::Value;

/// The hints that a description stands for: `{angle?: [path], snap?: [path], linear?: [path], period?: {path: number}}`.
///
/// # Errors
/// [`Fault`] with what is wrong, and where.
pub fn read_hints(value: Value) -> Result<Hints, Fault> {
    let mut record = Record::new(value, "")?;
    let mut hints = Hints::none();
    let mut add = |path: &str, interp: Interp| {
        hints = hints.with(path, interp).map_err(|error| Fault::new("bounds", &error.to_string()))?;
        Ok::<(), Fault>(())
    };
    for path in record.texts("angle")? {
        add(&path, Interp::Angle { period: core::f64::consts::TAU })?;
    }
    for path in record.texts("snap")? {
        add(&path, Interp::Snap)?;
    }
    for path in record.texts("linear")? {
        add(&path, Interp::Linear)?;
    }
    if let Some(mut periods) = record.record("period")? {
        for path in periods.names() {
            let period = periods.number(&path)?.unwrap_or_default();
            add(&path, Interp::Angle { period })?;
        }
        periods.end()?;
    }
    record.end()?;
    Ok(hints)
}
