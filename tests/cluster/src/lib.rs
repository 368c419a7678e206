//! Nodes of a cluster as real processes: `parlor serve --node` on a schema of a PostgreSQL server, each over a way to
//! its store that the test can cut.
//!
//! The program is `target/debug/parlor`, or the one that `PARLOR_BIN` names.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod gate;
mod node;
mod postgres;
mod relay;

pub use gate::{Gate, Step};
pub use node::{Cluster, Node};
pub use postgres::Postgres;
pub use relay::Relay;
