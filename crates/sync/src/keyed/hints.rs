//! Interpolation hints of keys.

use crate::limits::{HINT_PATH_BYTES_MAX, HINTS_MAX};
use bytes::Bytes;
use core::f64::consts::TAU;
use parlor_proto::text::Quoted;
use parlor_proto::wire::cursor::{ReadError, Reader, Write, varint_width};
use std::sync::Arc;
use thiserror::Error;

/// How a part of a value is interpolated between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interp {
    /// Linear: the default for numbers. Use it for an exception from a hint for the enclosing part. Whole
    /// numbers stay whole.
    Linear,
    /// Around a circle, by the shorter way.
    Angle {
        /// The length of a full turn: 2π for radians, 360 for degrees. Finite and above 0.
        period: f64,
    },
    /// Not interpolated: keeps the older sample until the newer one is due.
    Snap,
}

/// The interpolation of one part of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The part: names of fields and indices of lists, joined by dots. `*` matches any of them; an empty path
    /// is the whole value. A hint applies to everything below its part, unless a longer path matches.
    pub path: String,
    /// The interpolation.
    pub interp: Interp,
}

/// Interpolation hints for all keys with a common prefix. Cheap to clone.
///
/// ```
/// use parlor_sync::keyed::{Hints, Interp};
/// let hints = Hints::none().angle("heading")?.with("wheels.*.turn", Interp::Angle { period: 360.0 })?;
/// assert_eq!(hints.iter().count(), 2);
/// # Ok::<(), parlor_sync::keyed::HintError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints(Option<Arc<[Hint]>>);

/// A hint is out of bounds.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum HintError {
    /// A path is too long.
    #[error("the path {} is longer than {HINT_PATH_BYTES_MAX} bytes", Quoted(.path))]
    PathTooLong {
        /// The path.
        path: String,
    },
    /// A period is not a finite number above 0.
    #[error("the period {period} of {} is not a finite number above 0", Quoted(.path))]
    Period {
        /// The path.
        path: String,
        /// The period.
        period: f64,
    },
    /// There are too many hints.
    #[error("a key has at most {HINTS_MAX} hints")]
    TooMany,
}

impl Hints {
    /// No hints: numbers are interpolated linearly, everything else snaps.
    pub const fn none() -> Self {
        Hints(None)
    }

    /// Returns these hints with one more, which replaces one with the same path.
    ///
    /// # Errors
    /// [`HintError`].
    pub fn with(&self, path: &str, interp: Interp) -> Result<Self, HintError> {
        if path.len() > HINT_PATH_BYTES_MAX {
            return Err(HintError::PathTooLong { path: path.to_owned() });
        }
        if let Interp::Angle { period } = interp
            && !is_period(period)
        {
            return Err(HintError::Period { path: path.to_owned(), period });
        }
        let mut hints: Vec<Hint> = self.iter().filter(|hint| hint.path != path).cloned().collect();
        if hints.len() == HINTS_MAX {
            return Err(HintError::TooMany);
        }
        let at = hints.partition_point(|hint| hint.path.as_str() < path);
        hints.insert(at, Hint { path: path.to_owned(), interp });
        Ok(Hints(Some(hints.into())))
    }

    /// Returns these hints with the part at `path` as an angle in radians.
    ///
    /// # Errors
    /// [`HintError`].
    pub fn angle(&self, path: &str) -> Result<Self, HintError> {
        self.with(path, Interp::Angle { period: TAU })
    }

    /// Returns these hints with the part at `path` not interpolated.
    ///
    /// # Errors
    /// [`HintError`].
    pub fn snap(&self, path: &str) -> Result<Self, HintError> {
        self.with(path, Interp::Snap)
    }

    /// Iterates over the hints, by ascending path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Hint> {
        self.as_slice().iter()
    }

    fn as_slice(&self) -> &[Hint] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The blob of the hints in a key's component: empty without hints, else as [`write`](Self::write) has
    /// them.
    pub(super) fn to_blob(&self) -> Bytes {
        let mut out = Vec::new();
        if self.0.is_some() {
            self.write(&mut out);
        }
        out.into()
    }

    /// Reads what [`to_blob`](Self::to_blob) wrote.
    pub(super) fn from_blob(blob: &Bytes) -> Result<Self, ReadError> {
        if blob.is_empty() {
            return Ok(Hints::none());
        }
        let mut reader = Reader::new(blob.clone());
        let hints = Hints::read(&mut reader)?;
        reader.finish()?;
        // Each value has a unique encoding.
        if hints.0.is_some() { Ok(hints) } else { Err(ReadError::OutOfRange { field: "the count of hints" }) }
    }

    /// Layout: a count; then for each hint its path, a byte for the kind, and the period of an angle.
    fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.as_slice().len() as u64);
        for hint in self.iter() {
            out.put_str(&hint.path);
            match hint.interp {
                Interp::Linear => out.put_u8(0),
                Interp::Snap => out.put_u8(1),
                Interp::Angle { period } => {
                    out.put_u8(2);
                    out.put_u64(period.to_bits());
                }
            }
        }
    }

    /// Bytes that [`write`](Self::write) takes.
    pub(super) fn wire_len(&self) -> usize {
        let each = |hint: &Hint| {
            let period = if matches!(hint.interp, Interp::Angle { .. }) { 8 } else { 0 };
            varint_width(hint.path.len() as u64) + hint.path.len() + 1 + period
        };
        varint_width(self.as_slice().len() as u64) + self.iter().map(each).sum::<usize>()
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let count = reader.varint_max("the count of hints", HINTS_MAX as u64)?;
        let mut hints: Vec<Hint> = Vec::new();
        for _ in 0..count {
            let path = reader.str_max("the path of a hint", HINT_PATH_BYTES_MAX)?;
            if hints.last().is_some_and(|last| last.path >= path) {
                return Err(ReadError::OutOfRange { field: "the path of a hint" });
            }
            let interp = match reader.u8()? {
                0 => Interp::Linear,
                1 => Interp::Snap,
                2 => {
                    let period = f64::from_bits(reader.u64()?);
                    if !is_period(period) {
                        return Err(ReadError::OutOfRange { field: "the period of a hint" });
                    }
                    Interp::Angle { period }
                }
                value => return Err(ReadError::Unknown { field: "the kind of a hint", value: value.into() }),
            };
            hints.push(Hint { path, interp });
        }
        Ok(if hints.is_empty() { Hints(None) } else { Hints(Some(hints.into())) })
    }
}

fn is_period(period: f64) -> bool {
    period.is_finite() && period > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_come_back() {
        let hints = Hints::none().snap("name").unwrap().angle("").unwrap().with("n", Interp::Linear).unwrap();
        let paths = hints.iter().map(|hint| hint.path.as_str()).collect::<Vec<_>>();
        assert_eq!(paths, ["", "n", "name"]);
        let blob = hints.to_blob();
        assert_eq!(blob.len(), hints.wire_len());
        assert_eq!(Hints::from_blob(&blob), Ok(hints));
        assert_eq!(
            (Hints::none().to_blob(), Hints::from_blob(&Bytes::new())),
            (Bytes::new(), Ok(Hints::none()))
        );
        assert!(Hints::from_blob(&Bytes::from_static(&[0])).is_err(), "no hints have one form");
    }

    #[test]
    fn hints_are_bounded() {
        let long = "x".repeat(HINT_PATH_BYTES_MAX + 1);
        assert_eq!(Hints::none().snap(&long), Err(HintError::PathTooLong { path: long }));
        for period in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(Hints::none().with("a", Interp::Angle { period }).is_err());
        }
        let full = (0..HINTS_MAX).fold(Hints::none(), |hints, n| hints.snap(&n.to_string()).unwrap());
        assert_eq!(full.snap("more"), Err(HintError::TooMany));
        assert!(full.angle("3").is_ok(), "a hint may be replaced");
    }

    #[test]
    fn a_period_from_the_wire_is_checked() {
        for period in [f64::NAN, 0.0, -0.0, f64::NEG_INFINITY] {
            let mut out = vec![1, 0, 2];
            out.put_u64(period.to_bits());
            assert!(Hints::read(&mut Reader::new(out.into())).is_err());
        }
    }
}
