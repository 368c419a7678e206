//! Writer of a recording's bytes.

use super::{Head, Record, check_of, hash_after};
use parlor_proto::Instant;
use parlor_proto::wire::cursor::Write;

/// Serializes records into the bytes of a recording. Its owner stores them.
#[derive(Debug)]
pub struct Writer {
    /// The hash of all written records.
    hash: u64,
    at: Instant,
    out: Vec<u8>,
    body: Vec<u8>,
}

impl Writer {
    /// Creates a recording without records; its head can be [taken](Self::take) at once.
    pub fn new(head: &Head) -> Self {
        let mut out = Vec::new();
        Head::write_preamble(&mut out);
        out.put_bytes(&head.write_body());
        let hash = hash_after(0, &out);
        out.put_u32(check_of(hash));
        Writer { hash, at: Instant::ZERO, out, body: Vec::new() }
    }

    /// Adds a record at a room time. A time before that of the last record is set to that one.
    pub fn write(&mut self, at: Instant, record: &Record) {
        self.body.clear();
        record.write(&mut self.body);
        let gap = at.saturating_since(self.at);
        self.at += gap;
        let from = self.out.len();
        self.out.put_varint(
            u64::try_from(gap.as_micros()).expect("two instants are 64 bits of microseconds apart"),
        );
        self.out.put_bytes(&self.body);
        self.hash = hash_after(self.hash, &self.out[from..]);
        self.out.put_u32(check_of(self.hash));
    }

    /// Returns the room time of the last record.
    pub const fn at(&self) -> Instant {
        self.at
    }

    /// Bytes not [taken](Self::take) yet.
    pub const fn waiting_bytes(&self) -> usize {
        self.out.len()
    }

    /// Returns the bytes since the last call, to be appended to those before.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }
}
