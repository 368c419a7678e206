//! A seat that outlives its hub: what a hub gives its member for other nodes, and what the member brings there.

use super::ResumeToken;
use crate::limits;
use crate::wire::cursor::{ReadError, Reader, Write};
use bytes::Bytes;
use core::fmt;

/// Sent by a node to its member: how to claim the seat at another node if this one dies. Only with
/// [`MOVES`](super::capability::MOVES).
#[derive(Clone, PartialEq, Eq)]
pub struct Seat {
    /// How often the ownership of the room has changed, from 1.
    pub term: u64,
    /// The room's id, which is never reused.
    pub uid: [u8; 16],
    /// Proves the seat at another node, together with the newest resume token. At most
    /// [`PASS_BYTES_MAX`](limits::PASS_BYTES_MAX) bytes.
    pub pass: Bytes,
    /// The shortest silence of the node, in ms, after which the member asks another one; 0 for the client's choice.
    pub hedge_ms: u32,
    /// Addresses of other nodes as in a [redirect](super::Redirect), the first one to be tried first. At most
    /// [`ELSEWHERE_MAX`](limits::ELSEWHERE_MAX).
    pub elsewhere: Vec<String>,
    /// Where the room is about to move, if it is: the member opens a connection there, and waits with it until this one
    /// is closed with [`Moved`](crate::CloseReason::Moved).
    pub moves_to: Option<String>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seat { term, elsewhere, .. } = self;
        write!(f, "Seat(secret, term {term}, {} other nodes)", elsewhere.len())
    }
}

/// A claim: its member asks a node to reopen its room, or to let it back in.
#[derive(Clone, PartialEq, Eq)]
pub struct Claim {
    /// The pass of the newest [`Seat`].
    pub pass: Bytes,
    /// The newest resume token that the member got.
    pub token: ResumeToken,
    /// The term of that seat.
    pub term: u64,
    /// The room time of the member, in µs, if it knows it.
    pub room_time_us: Option<u64>,
    /// The highest order number of a stamped message that it received; 0 without one.
    pub order: u64,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claim { term, order, .. } = self;
        write!(f, "Claim(secret, term {term}, order {order})")
    }
}

impl Seat {
    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.term);
        out.put(&self.uid);
        out.put_bytes(&self.pass);
        out.put_varint(self.hedge_ms.into());
        let elsewhere = &self.elsewhere[..self.elsewhere.len().min(limits::ELSEWHERE_MAX)];
        out.put_varint(elsewhere.len() as u64);
        elsewhere.iter().for_each(|address| out.put_str(address));
        out.put_option(self.moves_to.as_deref(), |out, address| out.put_str(address));
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let mut seat = Seat {
            term: body.varint()?,
            uid: body.array()?,
            pass: body.bytes_max("pass", limits::PASS_BYTES_MAX)?,
            hedge_ms: body.varint_u32("hedge")?,
            elsewhere: Vec::new(),
            moves_to: None,
        };
        for _ in 0..body.varint_max("elsewhere count", limits::ELSEWHERE_MAX as u64)? {
            seat.elsewhere.push(body.str_max("address", limits::ADDRESS_BYTES_MAX)?);
        }
        seat.moves_to = body.option("move", |body| body.str_max("address", limits::ADDRESS_BYTES_MAX))?;
        Ok(seat)
    }
}

impl Claim {
    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
        out.put_bytes(&self.pass);
        self.token.write(out);
        out.put_varint(self.term);
        out.put_option(self.room_time_us, |out, us| out.put_varint(us));
        out.put_varint(self.order);
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Claim {
            pass: body.bytes_max("pass", limits::PASS_BYTES_MAX)?,
            token: ResumeToken::read(body)?,
            term: body.varint()?,
            room_time_us: body.option("room time", Reader::varint)?,
            order: body.varint()?,
        })
    }
}
