//! Nodes that are killed, stopped, and cut from their store.
//!
//! `PARLOR_POSTGRES=postgres://…` names the server, at a socket; without it nothing is tested here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod clocks;
mod drain;
mod faults;
mod games;
mod moves;
mod reopening;
