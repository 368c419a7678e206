//! The head of a recording.

use super::{MAGIC, RecordingError, VERSION};
use crate::schema::Schema;
use bytes::Bytes;
use parlor_proto::code::MATCH_ID_LEN;
use parlor_proto::limits::{LABEL_BYTES_MAX, SCHEMA_BYTES_MAX, VERSION_MAX};
use parlor_proto::wire::cursor::{ReadError, Reader, Write};
use parlor_proto::{Instant, RoomCode, TickRate};
use std::sync::Arc;

/// The room of a recording.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its code.
    pub code: RoomCode,
    /// The game.
    pub app: String,
    /// The game's environment; may be empty.
    pub environment: String,
    /// Its steps per second.
    pub tick_rate: TickRate,
    /// The schema of its entities.
    pub schema: Arc<Schema>,
    /// When it opened, on the hub's clock.
    pub opened: Instant,
}

impl Head {
    /// Writes the part before the length, which determines whether the rest can be read.
    pub(super) fn write_preamble(out: &mut Vec<u8>) {
        out.put(MAGIC);
        out.put_u8(VERSION);
        out.put_u16(VERSION_MAX);
    }

    pub(super) fn write_body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_str(self.code.as_str());
        out.put_str(&self.app);
        out.put_str(&self.environment);
        out.put_u16(self.tick_rate.hz());
        out.put_bytes(&self.schema.encode());
        out.put_varint(self.opened.as_micros());
        out
    }

    pub(super) fn read_body(body: Bytes) -> Result<Head, RecordingError> {
        let mut reader = Reader::new(body);
        let (head, schema) = read(&mut reader).map_err(RecordingError::Head)?;
        let schema = Schema::decode(schema).map_err(|error| RecordingError::Schema(Box::new(error)))?;
        Ok(Head { schema: Arc::new(schema), ..head })
    }
}

/// Reads the head, with the default schema in place of its own, whose bytes are returned.
fn read(reader: &mut Reader) -> Result<(Head, Bytes), ReadError> {
    let code = reader.str_max("code", MATCH_ID_LEN)?;
    let mut head = Head {
        code: code.parse().map_err(|_| ReadError::OutOfRange { field: "code" })?,
        app: reader.str_max("app", LABEL_BYTES_MAX)?,
        environment: reader.str_max("environment", LABEL_BYTES_MAX)?,
        tick_rate: TickRate::new(reader.u16()?).ok_or(ReadError::OutOfRange { field: "tick rate" })?,
        schema: Arc::default(),
        opened: Instant::ZERO,
    };
    let schema = reader.bytes_max("schema", SCHEMA_BYTES_MAX)?;
    head.opened = Instant::from_micros(reader.varint()?);
    reader.finish()?;
    Ok((head, schema))
}
