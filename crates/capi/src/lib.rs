//! Rooms by plain C functions: for engines, and for languages other than Rust.
//!
//! The header `include/parlor.h` is made from this crate by cbindgen; a test compares them. `include/preamble.txt` has
//! the rules for callers, which stand at its head. docs/engines.md shows how a game uses it.
//!
//! Names are as C sees them. Where options, events, values and figures pass, they are JSON with the names of the
//! TypeScript API, read and described by the code that `crates/wasm` uses as well (`parlor_client_core::binding`).
//!
//! # Soundness
//!
//! `boundary` alone turns pointers into Rust values. Its functions check for NULL and for UTF-8. What they cannot
//! check is the caller's part, rule 1 of the preamble: a pointer leads to as many bytes as its length or its NUL says,
//! which nobody else writes during the call. A handle is an index with a generation (`handles`), no pointer, so one
//! that is out of date is refused. No panic crosses the boundary: `boundary::call` catches it.
#![allow(non_camel_case_types, reason = "types have the names that C sees")]
#![allow(clippy::missing_safety_doc, reason = "rule 1 of the preamble says it for all functions")]

mod boundary;
mod event;
pub mod exports;
mod handles;
mod options;
pub mod types;
