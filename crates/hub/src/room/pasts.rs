//! The player data of members that were lost and may return.

use bytes::Bytes;
use parlor_proto::MemberId;
use std::collections::BTreeMap;

/// The fixed size of what is kept of one.
const PAST_BYTES: usize = 256;
/// What an entry of player data takes beside its key and value: both handles, and what the allocator adds.
const DATA_ENTRY_BYTES: usize = 160;

/// What is kept of one.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) data: Vec<(String, Bytes)>,
    /// Whether it was a spectator.
    pub(super) spectates: bool,
}

/// What is kept of those that may return.
#[derive(Debug, Default)]
pub(super) struct Pasts {
    all: BTreeMap<MemberId, Past>,
    bytes: usize,
}

impl Pasts {
    pub(super) fn keep(&mut self, member: MemberId, past: Past) {
        self.take(member);
        self.bytes += PAST_BYTES + data_memory(&past.data);
        self.all.insert(member, past);
    }

    pub(super) fn take(&mut self, member: MemberId) -> Option<Past> {
        let past = self.all.remove(&member)?;
        self.bytes -= PAST_BYTES + data_memory(&past.data);
        Some(past)
    }

    pub(super) fn get(&self, member: MemberId) -> Option<&Past> {
        self.all.get(&member)
    }

    /// Returns their memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the memory of one member's player data, in bytes.
pub(super) fn data_memory(data: &[(String, Bytes)]) -> usize {
    data.iter().map(|(key, value)| key.len() + value.len() + DATA_ENTRY_BYTES).sum()
}
