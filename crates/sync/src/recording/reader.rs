//! Streaming reader of a recording's bytes.

use super::{Head, MAGIC, Record, RecordingError, VERSION, check_of, hash_after};
use crate::limits::{RECORD_BYTES_MAX, RECORDING_HEAD_BYTES_MAX};
use bytes::{Buf, Bytes, BytesMut};
use core::time::Duration;
use parlor_proto::Instant;
use parlor_proto::limits::VERSION_MAX;
use parlor_proto::wire::cursor::{self, ReadError};
use std::sync::Arc;

/// Bytes of the check after the head and after each record.
const CHECK_BYTES: usize = 4;
/// Maximum bytes of the two varints before a record.
const FRONT_BYTES_MAX: usize = 16;
/// Magic, version and protocol.
const PREAMBLE_BYTES: usize = MAGIC.len() + 1 + 2;

/// Parses a recording. Bytes are [fed](Self::feed) in pieces of any size. The reader keeps only bytes that do
/// not form a complete record yet. A length in the file allocates nothing.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: BytesMut,
    head: Option<Arc<Head>>,
    hash: u64,
    at: Instant,
    /// Bytes and records before the buffer.
    offset: u64,
    records: u64,
    has_ended: bool,
    failed: Option<RecordingError>,
}

impl Reader {
    /// Creates a reader at the beginning of a recording.
    pub fn new() -> Self {
        Reader::default()
    }

    /// Feeds the next bytes of the file. Ignored after an error.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the head; `None` until enough was fed.
    ///
    /// # Errors
    /// [`RecordingError`], the same at every call.
    pub fn head(&mut self) -> Result<Option<&Arc<Head>>, RecordingError> {
        self.attempt(|reader| reader.read_head().map(|_| None::<()>))?;
        Ok(self.head.as_ref())
    }

    /// Returns the next record and its room time; `None` until enough was fed, and after the end.
    ///
    /// # Errors
    /// [`RecordingError`]; after that, only the same error.
    pub fn next_record(&mut self) -> Result<Option<(Instant, Record)>, RecordingError> {
        self.attempt(Self::read_record)
    }

    /// The number of records read.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Bytes that were fed and do not form a complete record. At the end of the file: the trailing bytes of a
    /// file that was cut off.
    pub fn leftover_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether the recording's end was read: then the file is complete.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Bytes of the head and of the records read.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Ends the reader: every call returns this error from here on.
    pub(super) fn fail(&mut self, error: RecordingError) -> RecordingError {
        self.buffer = BytesMut::new();
        self.failed.insert(error).clone()
    }

    fn attempt<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Option<T>, RecordingError>,
    ) -> Result<Option<T>, RecordingError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        read(self).map_err(|error| self.fail(error))
    }

    /// Returns whether the head is there.
    fn read_head(&mut self) -> Result<bool, RecordingError> {
        if self.head.is_some() {
            return Ok(true);
        }
        let magic = self.buffer.len().min(MAGIC.len());
        if self.buffer[..magic] != MAGIC[..magic] {
            return Err(RecordingError::NotARecording);
        }
        if self.buffer.len() < PREAMBLE_BYTES {
            return Ok(false);
        }
        let mut preamble = &self.buffer[MAGIC.len()..];
        match (preamble.get_u8(), preamble.get_u16_le()) {
            (VERSION, VERSION_MAX) => {}
            (VERSION, found) => return Err(RecordingError::Protocol { found }),
            (found, _) => return Err(RecordingError::Version { found }),
        }
        let Some((length, from)) =
            self.front(PREAMBLE_BYTES, cursor::Reader::varint).map_err(RecordingError::Head)?
        else {
            return Ok(false);
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= RECORDING_HEAD_BYTES_MAX);
        let length = length.ok_or(RecordingError::Head(ReadError::OutOfRange { field: "length" }))?;
        let Some((bytes, hash)) = self.checked(from + length, 0) else { return Ok(false) };
        let hash = hash.ok_or(RecordingError::HeadDamaged)?;
        self.head = Some(Arc::new(Head::read_body(bytes.slice(from..))?));
        self.hash = hash;
        Ok(true)
    }

    fn read_record(&mut self) -> Result<Option<(Instant, Record)>, RecordingError> {
        if !self.read_head()? || self.buffer.is_empty() {
            return Ok(None);
        }
        let (record, offset) = (self.records, self.offset);
        if self.has_ended {
            return Err(RecordingError::AfterEnd { offset });
        }
        let malformed = |error| RecordingError::Malformed { record, offset, error };
        let front = self.front(0, |front| Ok((front.varint()?, front.varint()?))).map_err(malformed)?;
        let Some(((gap_us, bytes), from)) = front else { return Ok(None) };
        let length = usize::try_from(bytes).ok().filter(|length| *length <= RECORD_BYTES_MAX);
        let length = length.ok_or(RecordingError::TooLong { record, offset, bytes })?;
        let Some((frame, hash)) = self.checked(from + length, self.hash) else { return Ok(None) };
        self.hash = hash.ok_or(RecordingError::Damaged { record, offset })?;
        let read = Record::read(frame.slice(from..)).map_err(malformed)?;
        self.at += Duration::from_micros(gap_us);
        self.records += 1;
        self.has_ended = matches!(read, Record::End(_));
        Ok(Some((self.at, read)))
    }

    /// Calls `read` on the buffer from `skip` on. Returns its result and the end position; `None` if more
    /// bytes are needed.
    fn front<T>(
        &self,
        skip: usize,
        read: impl FnOnce(&mut cursor::Reader) -> Result<T, ReadError>,
    ) -> Result<Option<(T, usize)>, ReadError> {
        let until = self.buffer.len().min(skip + FRONT_BYTES_MAX);
        let mut front = cursor::Reader::new(Bytes::copy_from_slice(&self.buffer[skip..until]));
        match read(&mut front) {
            Ok(value) => Ok(Some((value, until - front.remaining()))),
            Err(ReadError::Truncated { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes `len` bytes and their check off the buffer, if they are there. Also returns their hash if the
    /// check matches.
    fn checked(&mut self, len: usize, before: u64) -> Option<(Bytes, Option<u64>)> {
        if self.buffer.len() < len + CHECK_BYTES {
            return None;
        }
        let bytes = self.buffer.split_to(len).freeze();
        let hash = hash_after(before, &bytes);
        let is_right = self.buffer.get_u32_le() == check_of(hash);
        self.offset += (len + CHECK_BYTES) as u64;
        Some((bytes, is_right.then_some(hash)))
    }
}
