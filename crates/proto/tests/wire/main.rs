//! The layout of everything on the wire: it comes back as it was, has one form only, and is what it always was.

mod golden;
mod roundtrip;
mod strategies;
mod vectors;
