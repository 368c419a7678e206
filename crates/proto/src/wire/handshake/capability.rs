//! What an end can do beyond its version: one bit each. A bit allows something only if both ends have set it.

/// A member whose grace is over may return as the member that it was, and is told so by
/// [`GraceOver`](super::ResumeRefusal::GraceOver).
pub const RETURNS: u64 = 1;
