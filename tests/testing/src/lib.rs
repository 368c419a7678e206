//! Shared helpers for tests of a server, with services or without: a server on free ports of this machine,
//! requests to it, a raw member of a room, and a schema of a PostgreSQL server.
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod client;
mod document;
mod hall;
mod nats;
mod postgres;
mod series;
mod server;
mod service;
mod web;

pub use client::{Client, HANG, Seen, creating, joining, opening, within};
pub use document::{Described, Document};
pub use hall::Hall;
pub use nats::{NatsServer, nats_programs};
pub use postgres::{Scratch, postgres, postgres_at};
pub use series::series_in;
pub use server::{Answer, TestServer, dial, exchange, local};
pub use service::{Service, Socket, told_service};
pub use web::Page;
