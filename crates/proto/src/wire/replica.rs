//! Streams of state besides the room's: members' own state, and the checkpoint for a member that becomes the
//! authority. Own state is in messages of [`channel::REPLICAS`](crate::channel::REPLICAS). Each member sends
//! its own state to the hub as a stream of packets; the hub sends each member a stream for every other one.
//! Packets carry the state's schema until one is known to have arrived.
//!
//! ```text
//!  up     schema: 0 | 1, bytes · a packet of the sender's stream
//!  down   source: varint · schema: 0 | 1, bytes · a packet of the stream of that member's state
//!
//!  checkpoint   epoch: varint · a packet of the stream of all of the room's state
//! ```

use super::cursor::{ReadError, Reader, Write};
use crate::ids::{Epoch, MemberId};
use crate::limits;
use bytes::Bytes;

/// A packet of a member's own state, to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnState {
    /// The encoded schema of the state, until the receiver is known to have it.
    pub schema: Option<Bytes>,
    /// The packet.
    pub packet: Bytes,
}

/// A packet of a member's own state, from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateOf {
    /// The member. Written by the hub, so it is authentic.
    pub source: MemberId,
    /// The packet.
    pub state: OwnState,
}

/// A packet of the room's whole state, for the member that becomes the authority: messages of
/// [`channel::CHECKPOINT`](crate::channel::CHECKPOINT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The epoch under which it becomes the authority.
    pub epoch: Epoch,
    /// The packet.
    pub packet: Bytes,
}

impl Checkpoint {
    /// Encodes the message.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.packet.len() + 8);
        out.put_varint(self.epoch.0.into());
        out.put(&self.packet);
        out.into()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        Ok(Checkpoint { epoch: Epoch(reader.varint_u32("epoch")?), packet: reader.rest() })
    }
}

impl OwnState {
    /// Encodes the message.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.len_about());
        self.write(&mut out);
        out.into()
    }

    /// Decodes a message to the hub.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        Self::read(&mut Reader::new(bytes))
    }

    fn len_about(&self) -> usize {
        self.packet.len() + self.schema.as_ref().map_or(0, Bytes::len) + 16
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_option(self.schema.as_ref(), |out, schema| out.put_bytes(schema));
        out.put(&self.packet);
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let schema =
            reader.option("schema", |reader| reader.bytes_max("schema", limits::SCHEMA_BYTES_MAX))?;
        Ok(OwnState { schema, packet: reader.rest() })
    }
}

impl StateOf {
    /// Encodes the message.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.state.len_about());
        out.put_varint(self.source.0.into());
        self.state.write(&mut out);
        out.into()
    }

    /// Decodes a message from the hub.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        Ok(StateOf { source: MemberId(reader.varint_u32("source")?), state: OwnState::read(&mut reader)? })
    }
}
