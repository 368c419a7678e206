//! Memory usage of a room's shared state.

use super::Room;
use parlor_proto::MemberId;

/// The fixed size of a room, and the memory of its schema as a multiple of the schema's bytes.
const ROOM_BYTES: usize = 16 * 1024;
const SCHEMA_TIMES: usize = 8;
/// The fixed size of a member, without its view and own state.
const MEMBER_BYTES: usize = 4 * 1024;

impl Room {
    /// Returns the memory of the room's state in bytes: the authority's state with its history, the members'
    /// progress and player data, and members' own states. Its cost grows only with the number of members.
    pub fn memory_bytes(&self) -> usize {
        let schema = self.setup.settings.schema.len() * SCHEMA_TIMES;
        let members = self.members.len() * MEMBER_BYTES;
        let members = members + self.members.data_bytes() + self.pasts.bytes();
        ROOM_BYTES + schema + members + self.state.memory_bytes() + self.replicas.memory_bytes()
    }

    /// Returns the member whose own state takes the most memory, and the total of all own states in bytes.
    pub fn most_own_state(&self) -> Option<(MemberId, usize)> {
        self.replicas.most().map(|member| (member, self.replicas.memory_bytes()))
    }
}
