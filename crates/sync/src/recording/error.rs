//! Errors of recordings.

use super::{MAGIC, VERSION};
use crate::limits::RECORD_BYTES_MAX;
use crate::schema::SchemaError;
use crate::world::StreamError;
use parlor_proto::limits::VERSION_MAX;
use parlor_proto::text::Quoted;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// Why a recording cannot be read, or only in part.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RecordingError {
    /// The file is not a recording.
    #[error(
        "this is no recording: it does not begin with {}",
        Quoted(core::str::from_utf8(MAGIC).unwrap_or_default())
    )]
    NotARecording,
    /// The recording has another format version.
    #[error(
        "this recording has version {found}; this build reads version {VERSION}: use the build that wrote it"
    )]
    Version {
        /// Its version.
        found: u8,
    },
    /// The recording's packets have another protocol version.
    #[error(
        "this recording has packets of protocol {found}; this build reads protocol {VERSION_MAX}: use the build that wrote it"
    )]
    Protocol {
        /// Its protocol version.
        found: u16,
    },
    /// The head is malformed.
    #[error("the head of the recording could not be read: {0}")]
    Head(ReadError),
    /// The schema is invalid.
    #[error("the schema in the recording cannot be used: {0}")]
    Schema(Box<SchemaError>),
    /// The head is damaged.
    #[error("the head of the recording is not what was written: the file was damaged or changed")]
    HeadDamaged,
    /// A record is damaged, or was moved.
    #[error(
        "record {record} of the recording, at byte {offset}, is not what was written there: the file was damaged or changed"
    )]
    Damaged {
        /// The index of the record, from 0.
        record: u64,
        /// Its offset in bytes from the beginning of the file.
        offset: u64,
    },
    /// A record claims more bytes than a record can have.
    #[error(
        "record {record} of the recording, at byte {offset}, claims {bytes} bytes; a record has at most {RECORD_BYTES_MAX}"
    )]
    TooLong {
        /// The index of the record.
        record: u64,
        /// Its offset.
        offset: u64,
        /// The claimed length.
        bytes: u64,
    },
    /// A record is malformed.
    #[error("record {record} of the recording, at byte {offset}, could not be read: {error}")]
    Malformed {
        /// The index of the record.
        record: u64,
        /// Its offset.
        offset: u64,
        /// The reason.
        error: ReadError,
    },
    /// Data follows the end.
    #[error("the recording goes on after its end, at byte {offset}")]
    AfterEnd {
        /// The offset of the end.
        offset: u64,
    },
    /// A packet is invalid.
    #[error("the packet in record {record} of the recording could not be taken in: {error}")]
    Stream {
        /// The index of the record.
        record: u64,
        /// The reason.
        error: Box<StreamError>,
    },
}
