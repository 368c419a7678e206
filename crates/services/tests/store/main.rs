//! The durable store against its contract: on both databases, with racing writers, killed processes, and
//! disks that keep only synced writes, fill up and stall.
//!
//! `PARLOR_POSTGRES=postgres://…` also runs the contract, the race and the kill loop on that server.
//! `PARLOR_KILLS` sets the number of killed processes in each loop.

#![allow(clippy::print_stdout, reason = "a kill loop says its seed and what it found")]

mod backup;
mod boards;
mod bounds;
mod closing;
mod common;
mod contract;
mod disk;
mod friends;
mod inspect;
mod kill;
mod layout;
mod matches;
mod messages;
mod model;
mod objects;
mod postgres;
mod progress;
mod race;
mod saves;
