//! The durable store, held against what it promises: the same contract on both databases, writers that race, processes that are
//! killed, disks that keep only what was synced, fill up and stand still.
//!
//! `PARLOR_POSTGRES=postgres://…` runs the contract, the race and the kill loop on that server too. `PARLOR_KILLS` says how
//! many processes are killed in each loop.

#![allow(clippy::print_stdout, reason = "a kill loop says its seed and what it found")]

mod backup;
mod bounds;
mod closing;
mod common;
mod contract;
mod disk;
mod kill;
mod layout;
mod matches;
mod model;
mod postgres;
mod race;
