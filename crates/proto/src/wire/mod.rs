//! The layout of everything on the wire. `PROTOCOL.md` is normative; the golden vectors in `testdata/` tie it to
//! this code.
//!
//! A *packet* is one datagram or one record of a stream: a [`header`] and then [`frame`]s to its end. Frames carry the
//! [`handshake`], time, and messages; a message that is relayed between members begins with an [`envelope`]; those on
//! the control channel are room [`control`], those on the channel of actions an [`action`], those on the channel of
//! replicas what a member says of itself ([`replica`]), those on the channel of paths what two members say of theirs ([`path`]);
//! what members of a match say has its own form inside of the envelope ([`data`]).

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
