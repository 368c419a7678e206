//! The player data of members that were lost and may return.

use bytes::Bytes;
use parlor_proto::MemberId;
use std::collections::BTreeMap;

/// The fixed size of what is kept of one.
const PAST_BYTES: usize = 256;
/// What an entry of player data takes beside its key and value: both handles, and what the allocator adds.
const DATA_ENTRY_BYTES: usize = 160;

/// The player data of those that may return.
#[derive(Debug, Default)]
pub(super) struct Pasts {
    all: BTreeMap<MemberId, Vec<(String, Bytes)>>,
    bytes: usize,
}

impl Pasts {
    pub(super) fn keep(&mut self, member: MemberId, data: Vec<(String, Bytes)>) {
        self.take(member);
        self.bytes += PAST_BYTES + data_memory(&data);
        self.all.insert(member, data);
    }

    pub(super) fn take(&mut self, member: MemberId) -> Option<Vec<(String, Bytes)>> {
        let data = self.all.remove(&member)?;
        self.bytes -= PAST_BYTES + data_memory(&data);
        Some(data)
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
