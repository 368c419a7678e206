//! The layout of everything on the wire. `PROTOCOL.md` is normative; the golden vectors in `testdata/` tie it
//! to this code.
//!
//! A *packet* is one datagram or one record of a stream: a [`header`], then [`frame`]s to its end. Frames
//! carry the [`handshake`], time, and messages. A message relayed between members begins with an
//! [`envelope`]. Messages of built-in channels are: room [`control`], [`action`]s, members' own state
//! ([`replica`]), signals about paths between members ([`path`]), and data of a match inside the envelope
//! ([`data`]).

pub mod action;
pub mod control;
pub mod cursor;
pub mod data;
pub mod envelope;
pub mod frame;
pub mod handshake;
pub mod header;
pub mod path;
pub mod replica;
