//! What a model says of what it was given.

use std::fmt;

/// A contradiction between the model and the implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence(String);

impl Divergence {
    pub(crate) fn new(what: String) -> Self {
        Divergence(what)
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Divergence {}

/// The model's judgement of what it was given.
pub type Verdict = Result<(), Divergence>;

/// Objects unless the condition holds.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Divergence(otherwise())) }
}
