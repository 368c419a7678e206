//! All limits of a turn room's document.

/// Maximum number of seats.
pub const PLAYERS_MAX: u16 = 64;
/// Maximum number of scores that the end of a game awards.
pub const AWARDS_MAX: usize = 64;
/// Maximum number of players barred from returning (kicked or out of the running game). Then no one can join.
pub const BARRED_MAX: usize = 256;
/// Number of players that may read a room after all have left it: the last that played.
pub const PLAYED_MAX: usize = 128;
/// Number of messages that a room's history keeps.
pub const HISTORY_MAX: u64 = 256;
/// Bytes of an account's or a room's id.
pub const ID_BYTES_MAX: usize = 64;
/// Maximum characters of a display name.
pub const NAME_CHARS_MAX: usize = 64;
/// Maximum characters of a reason: of a kick, a rejection, the end of a game.
pub const REASON_CHARS_MAX: usize = 200;
/// Maximum bytes of an identifier: a game, a rule set, a role, a type of move, a field.
pub const WORD_BYTES_MAX: usize = 64;
/// The pattern of such an identifier.
pub const WORD_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";
/// The pattern of the id of an account or a room.
pub const ID_PATTERN: &str = "^[A-Za-z0-9._:-]{1,64}$";
/// How deeply JSON may be nested (threat 17).
pub const JSON_DEPTH_MAX: usize = 32;
/// Largest state size that a configuration may allow, in bytes of compact JSON.
pub const STATE_BYTES_MAX: usize = 256 * 1024;
/// Default limit of the state size.
pub const STATE_BYTES: usize = 64 * 1024;
/// Largest move size that a configuration may allow: its data and its patch together.
pub const MOVE_BYTES_MAX: usize = 64 * 1024;
/// Default limit of the move size.
pub const MOVE_BYTES: usize = 16 * 1024;
/// Largest size of the room's metadata, and of its data.
pub const DATA_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of metadata values in matchmaking criteria.
pub const CRITERIA_FIELDS_MAX: usize = 16;
/// Largest size of matchmaking criteria, as compact JSON.
pub const CRITERIA_BYTES_MAX: usize = 4 * 1024;
/// Largest size of a room's message.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of open proposals that a configuration may allow.
pub const PROPOSALS_MAX: u16 = 16;
/// Default limit of open proposals.
pub const PROPOSALS: u16 = 4;
/// Number of decided proposals that stay readable.
pub const DECIDED_MAX: usize = 8;
/// Maximum number of move types per phase in a configuration.
pub const MOVE_TYPES_MAX: usize = 64;
/// Maximum number of required fields of a move type.
pub const REQUIRED_FIELDS_MAX: usize = 32;
/// Maximum characters of a notification template, and of its expansion.
pub const TEMPLATE_CHARS_MAX: usize = 500;
/// Maximum bytes of an end reason that such a text may quote.
pub const END_WORD_BYTES_MAX: usize = 32;
/// Shortest timeout of a turn, and of a vote on a proposal.
pub const TIMEOUT_MS_MIN: u64 = 1_000;
/// Longest such time: thirty days.
pub const TIMEOUT_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Default timeout of a vote.
pub const VALIDATION_TIMEOUT_MS: u64 = 60_000;
/// Rounds without any move after which a game counts as abandoned.
pub const SKIPPED_ROUNDS_MAX: u32 = 2;
/// Maximum notices and pushes per operation, apart from those about each waiting move: joins, leaves, host
/// changes, starts, turns and ends. Operations make at most half as many.
pub const NOTICES_BESIDE_MAX: usize = 16;
/// Maximum notifications per operation, counted once per recipient. Each waiting move is decided once.
pub const TOLD_MAX: usize = PLAYERS_MAX as usize * (PROPOSALS_MAX as usize + NOTICES_BESIDE_MAX);

const _: () = assert!(STATE_BYTES <= STATE_BYTES_MAX && MOVE_BYTES <= MOVE_BYTES_MAX);
const _: () = assert!(MOVE_BYTES_MAX <= STATE_BYTES_MAX && PROPOSALS <= PROPOSALS_MAX);
const _: () = assert!((PLAYERS_MAX as usize) < BARRED_MAX);
const _: () = assert!(CRITERIA_BYTES_MAX < DATA_BYTES_MAX);
const _: () = assert!(TIMEOUT_MS_MIN <= VALIDATION_TIMEOUT_MS && VALIDATION_TIMEOUT_MS <= TIMEOUT_MS_MAX);
