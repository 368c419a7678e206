//! Bounds of sharing a world that talking has no part in; the others stand in [`parlor_proto::limits`].

use core::time::Duration;
use parlor_proto::limits::{MEMBERS_MAX_SERVER_RUN, STATE_BYTES_MAX, STATE_KEYS_MAX, STATE_VALUE_BYTES_MAX};

/// What each key counts towards the bound of the state beside its name, hints, audience (four
/// bytes for each member that it names) and value.
pub const KEY_OVERHEAD_BYTES: usize = 5;

/// Members that an audience may name.
pub const AUDIENCE_MEMBERS_MAX: usize = MEMBERS_MAX_SERVER_RUN as usize;

/// Hints that one key may have.
pub const HINTS_MAX: usize = 16;
/// Longest path of a hint, in bytes of UTF-8.
pub const HINT_PATH_BYTES_MAX: usize = 64;
/// Prefixes for which an authority keeps hints.
pub const DECLARATIONS_MAX: usize = 64;

/// Samples of one value that a playout keeps.
pub const HISTORY_DEPTH_MAX: usize = 32;
/// Arrivals from which a timeline estimates jitter.
pub const ARRIVALS_MAX: usize = 128;
/// Age beyond which a timeline forgets an arrival.
pub const ARRIVAL_AGE_MAX: Duration = Duration::from_secs(10);
/// Longest delay of a playout, unless one tick takes longer.
pub const BUFFER_DELAY_MAX: Duration = Duration::from_millis(500);
/// A value that did not change for so long stood still: motion begins where the next change begins.
pub const STILL_AFTER: Duration = Duration::from_millis(250);
/// Rows are extrapolated at most so far beyond the newest.
pub const EXTRAPOLATION_MAX: Duration = Duration::from_secs(1);
/// A playout that is further off than this jumps; below it, it only runs faster or slower.
pub const RESYNC_BEYOND: Duration = Duration::from_secs(1);

/// Components that a game may register; built-in ones come on top.
pub const COMPONENTS_MAX: usize = 32;
/// Fields of one component.
pub const FIELDS_MAX: usize = 32;
/// Lanes of one component.
pub const LANES_MAX: usize = 64;
/// Names that an enum may have.
pub const CHOICES_MAX: usize = 256;
/// Largest text, bytes or value of one field, in bytes.
pub const BLOB_BYTES_MAX: usize = STATE_VALUE_BYTES_MAX;
/// Largest number of a lane, and so most steps of a range: lanes are `i32`, and so are differences of two.
pub const FIELD_SPAN_MAX: u32 = i32::MAX as u32;
/// Least and largest number of a range, by magnitude.
pub const FIELD_ABS_MAX: f64 = 1e15;
/// Least step of a range.
pub const FIELD_STEP_MIN: f64 = 1e-15;
/// The numbers of a range have at most 2 to this many steps between them and 0: an `f64` has 53 bits, and the others
/// keep every step apart from its neighbours in spite of rounding.
pub const RESOLUTION_BITS_MAX: u32 = 44;
/// Least and largest whole number of a range, by magnitude: every one of them is an `f64`.
pub const INT_ABS_MAX: i64 = 1 << 53;
/// Parts of a turn: an `f32` in radians tells so many apart.
pub const ANGLE_STEPS_MAX: u32 = 1 << 22;
/// Fewest bits of each of a direction's two lanes.
pub const UNIT_VECTOR_BITS_MIN: u8 = 4;
/// Most bits of each of a direction's two lanes.
pub const UNIT_VECTOR_BITS_MAX: u8 = 16;
/// Fewest bits of each of a rotation's three parts.
pub const ROTATION_BITS_MIN: u8 = 4;
/// Most bits of each of a rotation's three parts: with more, an `f32` does not tell apart which part is the largest.
pub const ROTATION_BITS_MAX: u8 = 12;
/// Bytes of a key's hints, at most: a count, and for each a path, its length, its kind and a period.
pub const HINTS_BYTES_MAX: usize = 1 + HINTS_MAX * (2 + HINT_PATH_BYTES_MAX + 1 + 8);

/// Entities that a world has places for.
pub const ENTITIES_MAX: usize = 16_384;
/// Ticks that a row may be behind the newest and be built on, and that a packet may be late and be taken in.
pub const BASELINE_AGE_MAX: u32 = 64;
/// Ticks whose rows are remembered, and after which the slot of an entity that is gone may be given to another one.
pub const HISTORY_TICKS: u32 = 2 * BASELINE_AGE_MAX;
/// Lanes and blobs of all components of a world, those of entities that went within the last [`HISTORY_TICKS`] included.
pub const WORLD_LANES_MAX: usize = 131_072;
/// Bytes of all blobs of a world.
pub const WORLD_BLOB_BYTES_MAX: usize = 256 * 1024;
/// Bytes of memory of all versions that an authority remembers, with the room that is kept for more; a reader refuses what makes
/// it remember [`REPLICA_WORLDS_MAX`] times as much. Ten thousand entities with eight numbers that change at every tick fit.
pub const WORLD_HISTORY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of all blobs of an entity: with its lanes they fit one message.
pub const ENTITY_BLOB_BYTES_MAX: usize = 40 * 1024;
/// A reader may hold so many worlds at once, while it knows of what is there and not yet of what is gone.
pub const REPLICA_WORLDS_MAX: usize = 2;
/// Changes that a world remembers in their order. A publisher that is further behind looks at all entities.
pub const CHANGE_LOG_MAX: usize = 32_768;
/// Numbers of packets of a world that a receiver tells apart: older ones it ignores, and a sender counts them as lost.
pub const NUMBER_WINDOW: u64 = 256;
/// Packets of a world whose fate a publisher waits for; older ones count as lost.
pub const FLIGHTS_MAX: usize = 256;
/// Entries of one packet of a world.
pub const PACKET_ENTRIES_MAX: usize = 1_024;
/// What one packet of a world gives, in bytes: [`PACKET_PART_BYTES`] for each component and each blob, four for each lane, and
/// the bytes of blobs. With its entries that is less than 1 MiB of memory, whatever the packet says.
pub const PACKET_OUTPUT_BYTES_MAX: usize = 128 * 1024;
/// Bytes that a component of a packet, and each of its blobs, counts beside what is in it.
pub const PACKET_PART_BYTES: usize = 32;

const _: () = {
    assert!(BLOB_BYTES_MAX <= u16::MAX as usize, "the most bytes of a field are 16 bits wide");
    assert!(HINTS_BYTES_MAX <= BLOB_BYTES_MAX, "hints are a field");
    assert!(COMPONENTS_MAX + 8 <= 64, "a mask of 64 bits has one for each component, built-in ones included");
    assert!(FIELDS_MAX <= LANES_MAX, "a component of numbers alone may have all fields");
    assert!(
        ENTITY_BLOB_BYTES_MAX + (COMPONENTS_MAX + 8) * (4 * LANES_MAX + (1 + FIELDS_MAX) * PACKET_PART_BYTES)
            <= PACKET_OUTPUT_BYTES_MAX,
        "the largest entity fits a packet"
    );
    assert!(STATE_BYTES_MAX <= WORLD_BLOB_BYTES_MAX, "all keys fit a world");
    assert!(STATE_KEYS_MAX + AUDIENCE_MEMBERS_MAX < ENTITIES_MAX, "and so do their entities");
    assert!(HISTORY_DEPTH_MAX >= 2, "interpolation needs two samples");
    assert!(
        STILL_AFTER.as_millis() < BUFFER_DELAY_MAX.as_millis(),
        "a delayed playout still sees where motion begins"
    );
};
