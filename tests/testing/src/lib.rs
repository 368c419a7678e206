//! Shared helpers for tests of a server, with services or without: a server on free ports of this machine,
//! requests to it, and a raw member of a room.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod client;
mod hall;
mod server;
mod web;

pub use client::{Client, HANG, Seen, creating, joining, opening, within};
pub use hall::Hall;
pub use server::{Answer, TestServer, dial, exchange, local};
pub use web::Page;
