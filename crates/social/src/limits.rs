//! All limits, in one place.

use core::time::Duration;

/// The largest score, sub-score and sum, and as a negative number the smallest: JavaScript reads no larger one exactly.
pub const NUMBER_MAX: i64 = (1 << 53) - 1;
/// Maximum bytes of a name: see [`Name`](crate::Name).
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum bytes of a board's title.
pub const TITLE_BYTES_MAX: usize = 256;
/// Maximum bytes of a board's schedule.
pub const SCHEDULE_BYTES_MAX: usize = 128;
/// Least time from one reset to the next.
pub const SEASON_LEAST: Duration = Duration::from_secs(60 * 60);
/// Largest offset from UTC, in minutes.
pub const OFFSET_MINUTES_MAX: i32 = 14 * 60;
/// Players of whom the end of a season tells.
pub const TOLD_MAX: u32 = 100;
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
/// Largest value of a statistic that is totalled, and as a negative number the smallest: the sum over all players is
/// a number.
pub const TOTALLED_MAX: i64 = 1 << 40;
/// Maximum bytes of an achievement's description.
pub const ACHIEVEMENT_TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of teams of a rated result.
pub const RATED_TEAMS_MAX: usize = 64;
/// Maximum number of players of a rated result.
pub const RATED_PLAYERS_MAX: usize = 128;
/// Maximum bytes of an object.
pub const OBJECT_BYTES_MAX: usize = 40 << 10;
/// Maximum number of an owner's objects.
pub const OBJECTS_MAX: usize = 1000;
/// Maximum number of objects of one request.
pub const OBJECT_BATCH_MAX: usize = 32;
/// Maximum number of a player's friends.
pub const FRIENDS_MAX: usize = 500;
/// Maximum number of players that a player asks at the same time.
pub const ASKED_MAX: usize = 100;
/// Maximum number of players that wait for a player's answer.
pub const ASKS_MAX: usize = 32;
/// Maximum number of players that a player blocks.
pub const BLOCKED_MAX: usize = 1000;
/// Maximum number of properties of a lobby, of a member, or of a ticket.
pub const PROPERTIES_MAX: usize = 32;
/// Maximum bytes of a property that is a text.
pub const PROPERTY_BYTES_MAX: usize = 256;
/// Maximum number of conditions of a filter.
pub const CONDITIONS_MAX: usize = 16;
/// Maximum number of values of a condition.
pub const CONDITION_VALUES_MAX: usize = 16;
/// Maximum number of lobbies of a realm.
pub const LOBBIES_MAX: usize = 20_000;
/// Maximum number of lobbies in which a player is, beside its party.
pub const LOBBIES_EACH: usize = 4;
/// Maximum number of seats of a lobby.
pub const LOBBY_SEATS_MAX: u16 = 64;
/// Maximum number of seats of a party.
pub const PARTY_SEATS_MAX: u16 = 16;
/// Maximum bytes of all that a lobby and its members say.
pub const LOBBY_BYTES_MAX: usize = 16 << 10;
/// Maximum bytes of a lobby's name, and of its bucket.
pub const LOBBY_NAME_BYTES_MAX: usize = 64;
/// Maximum number of a lobby's invitations that wait, and of a player's.
pub const INVITES_MAX: usize = 8;
/// Maximum number of lobbies that one search looks at.
pub const LOBBIES_LOOKED_MAX: usize = 4_000;
/// Maximum number of lobbies that one search finds.
pub const LOBBIES_FOUND_MAX: usize = 50;
/// Time for which a member of a lobby without a connection keeps its seat.
pub const LOBBY_AWAY: Duration = Duration::from_secs(30);
/// Time for which a member of a party without a connection keeps its seat.
pub const PARTY_AWAY: Duration = Duration::from_secs(120);
/// Maximum number of players of a match that is found.
pub const GROUP_MAX: u16 = 64;
/// Maximum number of teams of a match.
pub const TEAMS_MAX: u16 = 16;
/// Maximum number of tickets of a queue.
pub const TICKETS_MAX: usize = 200_000;
/// Maximum number of searches of a player at the same time.
pub const TICKETS_EACH: usize = 3;
/// Steps of a matchmaker after which others have their turn. A step takes about a microsecond.
pub const MATCHING_SLICE: u32 = 2_000;
/// Maximum number of offers of a queue.
pub const OFFERS_MAX: usize = 20_000;
/// Maximum number of tickets that one try looks at.
pub const LOOKED_MAX: u32 = 512;
/// Maximum number of tickets that one try puts together.
pub const CANDIDATES_MAX: usize = 96;
/// Maximum number of steps of one try.
pub const NODES_MAX: u32 = 2_000;
