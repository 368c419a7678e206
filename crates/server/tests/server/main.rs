//! A whole server on real sockets of this machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod client;
mod common;
mod document;
mod door;
mod figures;
mod hall;
mod hostile;
mod http;
mod lifecycle;
mod limits;
mod live;
mod matches;
mod online;
mod rooms;
mod search;
mod secrets;
mod stay;
mod tickets;
mod walk;
