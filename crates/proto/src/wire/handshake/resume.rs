//! Resuming a session over another connection: what the client sends instead of Hello, and the answer.

use crate::ids::SessionId;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;

/// A client's credential for its session: 256 bits drawn by a hub. Each is valid once, and the answer has a
/// new one.
///
/// It is a secret of its client. `Debug` hides it. It is shown only on the wire and in a ticket that its game
/// requested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ResumeToken(pub [u8; 32]);

impl fmt::Debug for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResumeToken(secret)")
    }
}

impl ResumeToken {
    pub(in crate::wire) fn write(self, out: &mut Vec<u8>) {
        out.put(&self.0);
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        body.array().map(ResumeToken)
    }
}

/// The first frame on a new connection of a client that still has its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The session.
    pub session: SessionId,
    /// The newest token that it got.
    pub token: ResumeToken,
}

impl Resume {
    pub(in crate::wire) fn write(self, out: &mut Vec<u8>) {
        out.put_u128(self.session.0);
        self.token.write(out);
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Resume { session: SessionId(body.u128()?), token: ResumeToken::read(body)? })
    }
}

/// The hub's answer: the session continues on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The token for the next time. The used one stays valid only until the client has shown that it has this
    /// one.
    pub token: ResumeToken,
}

impl Resumed {
    pub(in crate::wire) fn write(self, out: &mut Vec<u8>) {
        self.token.write(out);
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Resumed { token: ResumeToken::read(body)? })
    }
}

/// Why a session cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeRefusal {
    /// The hub no longer has the session: it ended, its grace period is over, or it is another hub.
    Gone,
    /// The token does not belong to the session.
    Token,
    /// The grace is over and the seat is free, but the hub knows whose it was: a hello with the intent to resume
    /// gets the member its id and its data back. Sent only to clients with [`RETURNS`](super::capability::RETURNS).
    GraceOver,
}

impl ResumeRefusal {
    /// The name in JSON, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResumeRefusal::Gone => "gone",
            ResumeRefusal::Token => "token",
            ResumeRefusal::GraceOver => "grace_over",
        }
    }

    pub(in crate::wire) const fn to_wire(self) -> u8 {
        match self {
            ResumeRefusal::Gone => 0,
            ResumeRefusal::Token => 1,
            ResumeRefusal::GraceOver => 2,
        }
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        match body.u8()? {
            0 => Ok(ResumeRefusal::Gone),
            1 => Ok(ResumeRefusal::Token),
            2 => Ok(ResumeRefusal::GraceOver),
            value => Err(ReadError::Unknown { field: "resume refusal", value: value.into() }),
        }
    }
}
