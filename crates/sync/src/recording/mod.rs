//! A recording of a room: what its authority wrote, tick by tick, in a file.
//!
//! ```text
//!  head     "PARLORREC" · version: 1 byte · protocol: 2 bytes · length: varint · body · check: 4 bytes
//!  body     code: text · app: text · environment: text · tick rate: 2 bytes · schema: bytes · opened: varint µs
//!  record   gap: varint µs · length: varint · kind: 1 byte and its fields · check: 4 bytes
//!  kinds    0 packet   the rest of the record: a packet of a world, as PROTOCOL.md has it for a hub
//!           1 mark     tick: 4 bytes · hash: 8 bytes
//!           2 came     member: varint · name: text
//!           3 left     member: varint
//!           4 end      why: 1 byte
//! ```
//!
//! Integers are little-endian, lengths and varints as everywhere in the protocol. A gap is the room time
//! since the record before, for the first one since the room's opening; *opened* is that opening on the clock
//! of the hub, as in the hub's own log of the room.
//!
//! **A recording is a receiver that acknowledges everything at once.** The [`Recorder`] publishes the
//! authority's world as to a hub, without budget or network. So the reader's
//! [`Replica`](crate::world::Replica) is settled at every committed tick, whatever packets the hub lost.
//!
//! **Two things are checked.** The *check* of a record is the lower half of the XXH3 hash (64 bits) of the
//! record, seeded with the hash of the record before it, or of the head. Changed, moved or removed records
//! are found at once. A *mark* has the [hash](crate::world::World::hash) of the authority's world. The reader
//! compares it with its own world, so a build that decodes the recording differently is found too.
//!
//! A file cut off inside a record, as when its process was killed, is readable up to there. A complete file
//! ends with an *end*.

mod error;
mod head;
mod playback;
mod reader;
mod record;
mod recorder;
#[cfg(test)]
mod tests;
mod writer;

pub use error::RecordingError;
pub use head::Head;
pub use parlor_proto::Instant;
pub use playback::{Playback, Step, What};
pub use reader::Reader;
pub use record::{Ended, Record};
pub use recorder::{Figures, Recorder};
pub use writer::Writer;

/// The first bytes of every recording.
pub const MAGIC: &[u8] = b"PARLORREC";
/// The version of the layout that this build writes and reads.
pub const VERSION: u8 = 1;

/// Returns the hash of `bytes`, seeded with the hash `before`.
fn hash_after(before: u64, bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, before)
}

/// Returns the half of a hash that is written.
#[allow(clippy::cast_possible_truncation)] // the lower half is what is meant
fn check_of(hash: u64) -> u32 {
    hash as u32
}
