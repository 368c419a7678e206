//! A whole server with services, on real sockets of this machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod board_writers;
mod boards;
mod bombs;
mod budgets;
mod clocks;
mod crowd;
mod deadlines;
mod disk;
mod doubt;
mod feeds;
mod figures;
mod friends;
mod full;
mod games;
mod gather;
mod hall;
mod live;
mod lobbies;
mod matches;
mod matchmaking;
mod memory;
mod online;
mod operators;
mod pages;
mod progress;
mod refresh;
mod run_rooms;
mod saves;
mod search;
mod secrets;
mod stay;
mod storage;
mod tickets;
mod told;
mod walk;
