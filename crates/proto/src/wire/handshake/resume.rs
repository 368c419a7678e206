//! Going on with a session over another connection: what the client sends instead of Hello, and the answer that lets it.

use crate::ids::SessionId;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;

/// What proves that a client had the session: 256 bits that a hub drew. Each is good for one use, and a new one comes with the
/// answer.
///
/// It is a secret of its client. Neither `Debug` nor anything else but the wire, and a ticket that its game asked for, shows it.
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

/// What an end sends first on a new connection if it has its session still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Which session.
    pub session: SessionId,
    /// The newest token that it was given.
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

/// The hub's answer: the session goes on, on this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// What proves the same the next time. The one that was used is good only until the client has shown that it has this.
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

/// Why a session does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeRefusal {
    /// The hub has no such session any more: it is over, its seat was kept for long enough, or the hub is another one.
    Gone,
    /// The token is none of the session's.
    Token,
}

impl ResumeRefusal {
    pub(in crate::wire) const fn to_wire(self) -> u8 {
        match self {
            ResumeRefusal::Gone => 0,
            ResumeRefusal::Token => 1,
        }
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        match body.u8()? {
            0 => Ok(ResumeRefusal::Gone),
            1 => Ok(ResumeRefusal::Token),
            value => Err(ReadError::Unknown { field: "resume refusal", value: value.into() }),
        }
    }
}
