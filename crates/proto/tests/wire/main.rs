//! The layout of everything on the wire: it round-trips, is unique, and never changes.

mod golden;
mod roundtrip;
mod strategies;
mod vectors;
