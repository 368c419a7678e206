//! Limits of boards and saves, all in one place.

use core::time::Duration;

/// The largest score, sub-score and sum, and as a negative number the smallest: JavaScript reads no larger one exactly.
pub const NUMBER_MAX: i64 = (1 << 53) - 1;
/// Maximum bytes of a board's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum bytes of a board's title.
pub const TITLE_BYTES_MAX: usize = 256;
/// Maximum bytes of a board's schedule.
pub const SCHEDULE_BYTES_MAX: usize = 128;
/// Least time from one reset to the next.
pub const SEASON_LEAST: Duration = Duration::from_secs(60 * 60);
/// Largest offset from UTC, in minutes.
pub const OFFSET_MINUTES_MAX: i32 = 14 * 60;
/// Maximum number of past seasons that a board keeps.
pub const SEASONS_MAX: u32 = 64;
/// Maximum bytes of what a player says with a score.
pub const EXTRA_BYTES_MAX: usize = 1024;
/// Maximum bytes of a submission's id.
pub const ID_BYTES_MAX: usize = 64;
/// Number of submissions that an entry remembers by their ids.
pub const IDS: usize = 4;
/// Maximum number of entries that [`Ranks`](crate::Ranks) holds.
pub const ENTRIES_MAX: usize = 1 << 25;
/// Maximum bytes of a slot's name.
pub const SLOT_BYTES_MAX: usize = 64;
/// Maximum number of a player's slots with a save.
pub const SLOTS_MAX: usize = 16;
/// Maximum bytes of a save.
pub const SAVE_BYTES_MAX: usize = 40 << 10;
/// Maximum bytes of a save's title, and of the name of the device that wrote it.
pub const SAVE_TITLE_BYTES_MAX: usize = 256;
/// Maximum bytes of a save's description.
pub const SAVE_DESCRIPTION_BYTES_MAX: usize = 1024;
/// Maximum number of versions before the present one of a slot.
pub const BEFORE_EACH: usize = 4;
/// Maximum number of versions before of all slots of a player, removed ones included.
pub const BEFORE_MAX: usize = 64;
/// Maximum bytes of those.
pub const BEFORE_BYTES_MAX: u64 = 1 << 20;
