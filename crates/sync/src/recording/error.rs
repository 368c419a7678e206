//! What can be wrong with a recording.

use super::{MAGIC, VERSION};
use crate::limits::RECORD_BYTES_MAX;
use crate::schema::SchemaError;
use crate::world::StreamError;
use parlor_proto::limits::VERSION_MAX;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// Why a recording cannot be read, or not to its end.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RecordingError {
    /// Not a recording at all.
    #[error("this is no recording: it does not begin with {:?}", core::str::from_utf8(MAGIC).unwrap_or_default())]
    NotARecording,
    /// A recording of another version.
    #[error(
        "this recording has version {found}; this build reads version {VERSION}: use the build that wrote it"
    )]
    Version {
        /// Its version.
        found: u8,
    },
    /// A recording of packets of another version of the protocol.
    #[error(
        "this recording has packets of protocol {found}; this build reads protocol {VERSION_MAX}: use the build that wrote it"
    )]
    Protocol {
        /// Its version of the protocol.
        found: u16,
    },
    /// What stands before the records is not as laid out.
    #[error("the head of the recording could not be read: {0}")]
    Head(ReadError),
    /// What its world is made of cannot be.
    #[error("the schema in the recording cannot be used: {0}")]
    Schema(Box<SchemaError>),
    /// The head is not what was written.
    #[error("the head of the recording is not what was written: the file was damaged or changed")]
    HeadDamaged,
    /// A record is not what was written, or not where it was.
    #[error(
        "record {record} of the recording, at byte {offset}, is not what was written there: the file was damaged or changed"
    )]
    Damaged {
        /// Which record, from 0.
        record: u64,
        /// Where it begins, in bytes from the file's begin.
        offset: u64,
    },
    /// A record says that it is longer than one can be.
    #[error(
        "record {record} of the recording, at byte {offset}, claims {bytes} bytes; a record has at most {RECORD_BYTES_MAX}"
    )]
    TooLong {
        /// Which record.
        record: u64,
        /// Where it begins.
        offset: u64,
        /// What it claims.
        bytes: u64,
    },
    /// A record is not as laid out.
    #[error("record {record} of the recording, at byte {offset}, could not be read: {error}")]
    Malformed {
        /// Which record.
        record: u64,
        /// Where it begins.
        offset: u64,
        /// Why.
        error: ReadError,
    },
    /// Something follows the end.
    #[error("the recording goes on after its end, at byte {offset}")]
    AfterEnd {
        /// Where it should have ended.
        offset: u64,
    },
    /// A packet in it cannot be.
    #[error("the packet in record {record} of the recording could not be taken in: {error}")]
    Stream {
        /// Which record.
        record: u64,
        /// Why.
        error: Box<StreamError>,
    },
}
