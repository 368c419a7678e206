//! Several servers on one PostgreSQL, each a node of a cluster.
//!
//! `PARLOR_POSTGRES=postgres://…` names the server; without it nothing is tested here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod boards;
mod clocks;
mod common;
mod directory;
mod drain;
mod friends;
mod homes;
mod nodes;
mod notices;
mod rooms;
mod shared;
mod tickets;
