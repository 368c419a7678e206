//! A whole server on real sockets of this machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod access;
mod hostile;
mod http;
mod lifecycle;
mod limits;
mod pages;
mod renewal;
mod rooms;
mod web_pages;
mod webtransport;
