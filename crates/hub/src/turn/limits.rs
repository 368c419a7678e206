//! Every bound of a turn room's document, in one place.

/// Seats that a room may have.
pub const PLAYERS_MAX: u16 = 64;
/// Players that a room may have turned out for good (kicked, or out of the game that goes on) before it takes nobody in.
pub const BARRED_MAX: usize = 256;
/// Bytes of an account's or a room's id.
pub const ID_BYTES_MAX: usize = 64;
/// Characters of a name that people read.
pub const NAME_CHARS_MAX: usize = 64;
/// Characters of a reason: of a kick, a rejection, the end of a game.
pub const REASON_CHARS_MAX: usize = 200;
/// Bytes of a name that programs read: of a game, a rule set, a role, a type of move, a field.
pub const WORD_BYTES_MAX: usize = 64;
/// What such a name looks like.
pub const WORD_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";
/// What the id of an account or a room looks like.
pub const ID_PATTERN: &str = "^[A-Za-z0-9._:-]{1,64}$";
/// How deeply JSON may be nested (threat 17).
pub const JSON_DEPTH_MAX: usize = 32;
/// Largest size of the state that a configuration may allow, as compact JSON.
pub const STATE_BYTES_MAX: usize = 256 * 1024;
/// Size of the state that is allowed unless the configuration says otherwise.
pub const STATE_BYTES: usize = 64 * 1024;
/// Largest size of a move that a configuration may allow: its data and its patch of the state together.
pub const MOVE_BYTES_MAX: usize = 64 * 1024;
/// Size of a move that is allowed unless the configuration says otherwise.
pub const MOVE_BYTES: usize = 16 * 1024;
/// Largest size of the room's metadata, and of its data.
pub const DATA_BYTES_MAX: usize = 16 * 1024;
/// Values of a room's metadata that can be looked for at once.
pub const CRITERIA_FIELDS_MAX: usize = 16;
/// Largest size of what a room is looked for by, as compact JSON.
pub const CRITERIA_BYTES_MAX: usize = 4 * 1024;
/// Largest size of a room's message.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Open proposals that a configuration may allow.
pub const PROPOSALS_MAX: u16 = 16;
/// Open proposals that are allowed unless the configuration says otherwise.
pub const PROPOSALS: u16 = 4;
/// Proposals that were decided and can still be read.
pub const DECIDED_MAX: usize = 8;
/// Types of moves that a configuration may list for a phase.
pub const MOVE_TYPES_MAX: usize = 64;
/// Fields that a type of move may require.
pub const REQUIRED_FIELDS_MAX: usize = 32;
/// Characters of a template of a notification, and of what it becomes.
pub const TEMPLATE_CHARS_MAX: usize = 500;
/// Shortest time for a turn, and for the peers' word on a proposal.
pub const TIMEOUT_MS_MIN: u64 = 1_000;
/// Longest such time: thirty days.
pub const TIMEOUT_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// How long peers have for a proposal unless the configuration says otherwise.
pub const VALIDATION_TIMEOUT_MS: u64 = 60_000;
/// Rounds of turns that all of the players may let pass before the game counts as abandoned.
pub const SKIPPED_ROUNDS_MAX: u32 = 2;

const _: () = assert!(STATE_BYTES <= STATE_BYTES_MAX && MOVE_BYTES <= MOVE_BYTES_MAX);
const _: () = assert!(MOVE_BYTES_MAX <= STATE_BYTES_MAX && PROPOSALS <= PROPOSALS_MAX);
const _: () = assert!((PLAYERS_MAX as usize) < BARRED_MAX);
const _: () = assert!(CRITERIA_BYTES_MAX < DATA_BYTES_MAX);
const _: () = assert!(TIMEOUT_MS_MIN <= VALIDATION_TIMEOUT_MS && VALIDATION_TIMEOUT_MS <= TIMEOUT_MS_MAX);
