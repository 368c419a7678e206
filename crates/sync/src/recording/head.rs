//! What stands before the records.

use super::{MAGIC, RecordingError, VERSION};
use crate::schema::Schema;
use bytes::Bytes;
use parlor_proto::code::MATCH_ID_LEN;
use parlor_proto::limits::{LABEL_BYTES_MAX, SCHEMA_BYTES_MAX, VERSION_MAX};
use parlor_proto::wire::cursor::{ReadError, Reader, Write};
use parlor_proto::{Instant, RoomCode, TickRate};
use std::sync::Arc;

/// Of which room a recording is.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its code.
    pub code: RoomCode,
    /// Which game.
    pub app: String,
    /// Which environment of it; may be empty.
    pub environment: String,
    /// Its steps per second.
    pub tick_rate: TickRate,
    /// What its entities are made of.
    pub schema: Arc<Schema>,
    /// When it opened, on the clock of its hub.
    pub opened: Instant,
}

impl Head {
    /// What comes before the length: the part that says whether the rest can be read.
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

/// The head with another schema, and the bytes of its own.
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
