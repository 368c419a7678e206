//! Bounds of sharing a world that talking has no part in; the others stand in [`parlor_proto::limits`].

use core::time::Duration;
use parlor_proto::limits::{MEMBERS_MAX_SERVER_RUN, MESSAGE_BYTES_MAX, STATE_BYTES_MAX, STATE_KEYS_MAX};

/// Largest sequence of keyed state that is believed. A room that commits at every tick of 240 Hz needs far longer
/// than it will live to get there.
pub const STATE_SEQUENCE_MAX: u64 = 1 << 60;

/// Largest number of a key, and so the number of keys that one room may ever create. An update codes it, doubled,
/// in at most [`KEY_ID_BYTES_MAX`].
pub const KEY_ID_MAX: u32 = (1 << 29) - 1;

/// Bytes that the number of a key takes in an update, at most.
pub const KEY_ID_BYTES_MAX: usize = 4;

/// Members that an audience may name, and members whose inputs an update may acknowledge.
pub const AUDIENCE_MEMBERS_MAX: usize = MEMBERS_MAX_SERVER_RUN as usize;

/// Largest update of keyed state, in bytes: a message carries it.
pub const UPDATE_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Largest head of an update, in bytes: flags, sequence, age, tick, time, acknowledgements, next key, two counts.
/// At most four of the gaps between members' numbers, which add up to less than 2³², take more than four bytes.
pub const UPDATE_HEAD_BYTES_MAX: usize =
    1 + 8 + 8 + 4 + 8 + (2 + AUDIENCE_MEMBERS_MAX * (4 + 8) + 4 * 4) + 8 + 8 + 8;

/// Removed keys that an update lists. Beyond it a complete update is due, which lists none.
pub const REMOVED_MAX: usize = STATE_KEYS_MAX;

/// Removed keys that a store remembers. A publisher that is further behind looks through all keys instead.
pub const TOMBSTONES_MAX: usize = STATE_KEYS_MAX;

/// Updates whose fate a publisher waits for; older ones count as lost.
pub const UPDATES_IN_FLIGHT_MAX: usize = 256;

/// Hints that one key may have.
pub const HINTS_MAX: usize = 16;
/// Longest path of a hint, in bytes of UTF-8.
pub const HINT_PATH_BYTES_MAX: usize = 64;
/// Prefixes for which a store keeps hints.
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
/// A playout that is further off than this jumps; below it, it only runs faster or slower.
pub const RESYNC_BEYOND: Duration = Duration::from_secs(1);

const _: () = {
    assert!((KEY_ID_MAX as u64) * 2 < 1 << 30, "a variable-length integer of four bytes holds 30 bits");
    assert!(
        STATE_BYTES_MAX + UPDATE_HEAD_BYTES_MAX <= UPDATE_BYTES_MAX,
        "a complete update always fits, so that there is always one way on"
    );
    assert!(HISTORY_DEPTH_MAX >= 2, "interpolation needs two samples");
    assert!(
        STILL_AFTER.as_millis() < BUFFER_DELAY_MAX.as_millis(),
        "a delayed playout still sees where motion begins"
    );
};
