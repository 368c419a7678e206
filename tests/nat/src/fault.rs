//! Errors, for a person to read.

use std::fmt;

/// What happened, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(String);

/// The result of an operation.
pub(crate) type Outcome<T> = Result<T, Fault>;

/// The result of a scenario: its observations, one per line.
pub(crate) type Seen = Outcome<Vec<String>>;

impl Fault {
    /// Creates a fault.
    pub(crate) fn new(what: impl Into<String>) -> Fault {
        Fault(what.into())
    }

    /// Wraps an I/O error with what was being done.
    pub(crate) fn during(what: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Fault {
        move |error| Fault(format!("{what}: {error}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with the observation unless the condition holds.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Fault(otherwise())) }
}
