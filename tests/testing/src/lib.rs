//! What the tests of a server share, with services or without: a server on free ports of this machine, ways to ask it, and a member of a
//! room that is as raw as can be.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod client;
mod hall;
mod server;

pub use client::{Client, HANG, Seen, creating, joining, opening, within};
pub use hall::Hall;
pub use server::{Answer, TestServer, dial, exchange, local};
