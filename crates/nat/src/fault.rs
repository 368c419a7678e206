//! What went wrong, for a person to read.

use std::fmt;

/// What happened, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(String);

/// What may go wrong.
pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// Says it.
    pub(crate) fn new(what: impl Into<String>) -> Fault {
        Fault(what.into())
    }

    /// Says what was being done.
    pub(crate) fn during(what: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Fault {
        move |error| Fault(format!("{what}: {error}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with what was seen unless something holds.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Fault(otherwise())) }
}
