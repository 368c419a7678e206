//! Limits of shared state. The limits of sessions and messages are in [`parlor_proto::limits`].

use core::time::Duration;
use parlor_proto::limits::{
    MEMBERS_MAX_SERVER_RUN, SCHEMA_BYTES_MAX, STATE_BYTES_MAX, STATE_KEYS_MAX, STATE_VALUE_BYTES_MAX,
    STREAM_PACKET_BYTES_MAX, TICK_HZ_MAX,
};

/// Bytes that each key counts towards the state limit, beside its name, hints, audience (four bytes for each
/// member named) and value.
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
/// Updates after which a timeline has settled, if they span [`SETTLES_AFTER`].
pub const SETTLES_WITH: usize = 16;
/// See [`SETTLES_WITH`].
pub const SETTLES_AFTER: Duration = Duration::from_secs(1);
/// Longest delay of a playout, unless one tick takes longer.
pub const BUFFER_DELAY_MAX: Duration = Duration::from_millis(500);
/// A value unchanged for this long stood still: interpolation starts where the next change starts.
pub const STILL_AFTER: Duration = Duration::from_millis(250);
/// Longest extrapolation beyond the newest row.
pub const EXTRAPOLATION_MAX: Duration = Duration::from_secs(1);
/// Longest extrapolation of drawn entities beyond their newest row. It covers two or three lost packets at
/// usual rates. It is short enough that an entity that turned is not drawn far off.
pub const DRAWN_BEYOND_MAX: Duration = Duration::from_millis(250);
/// Longest rewind for judging a shot; a game may set less. The longer the rewind, the more often players are
/// hit who have already reached cover.
pub const REWIND_MAX: Duration = Duration::from_millis(250);
/// Steps that an authority may run again for inputs that came late, before each step that it runs for the
/// first time.
pub const RESIMULATE_TICKS_MAX: u32 = 32;
/// Most ticks by which a world goes back to its last complete state if its authority dies while packets are
/// missing. It is a little over a second, enough for lost packets to be sent again.
pub const RETREAT_TICKS_MAX: u32 = 32;
/// Ticks that an authority may run its steps behind the room's time.
pub const SIMULATION_DELAY_TICKS_MAX: u32 = 32;
/// Shortest wait of a member for a new host. A shorter one would end rooms whose new host is merely late.
pub const MIGRATION_GRACE_MIN: Duration = Duration::from_millis(500);
/// Wait for a new host where a game chooses none.
pub const MIGRATION_GRACE_DEFAULT: Duration = Duration::from_secs(3);
/// Longest wait for a new host.
pub const MIGRATION_GRACE_MAX: Duration = Duration::from_secs(60);
/// A playout with a larger error jumps; with a smaller one it runs faster or slower.
pub const RESYNC_BEYOND: Duration = Duration::from_secs(1);

/// Delays of a loop below this are scheduler granularity and are ignored when silence is judged.
pub const DELAY_NONE: Duration = Duration::from_millis(10);
/// Length of the spans for which a loop's delays count: one to two spans, and within each at most its length.
pub const DELAY_SPAN: Duration = Duration::from_secs(1);
/// A loop delayed by more than this stood still: earlier observations of other processes no longer count.
pub const STANDSTILL: Duration = Duration::from_secs(1);

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
/// The numbers of a range have at most 2 to this many steps between them and 0. An `f64` has 53 bits; the
/// others keep adjacent steps distinct in spite of rounding.
pub const RESOLUTION_BITS_MAX: u32 = 44;
/// Least and largest whole number of a range, by magnitude: every one of them is an `f64`.
pub const INT_ABS_MAX: i64 = 1 << 53;
/// Most steps of a full turn: an `f32` in radians distinguishes this many.
pub const ANGLE_STEPS_MAX: u32 = 1 << 22;
/// Fewest bits of each of a direction's two lanes.
pub const UNIT_VECTOR_BITS_MIN: u8 = 4;
/// Most bits of each of a direction's two lanes.
pub const UNIT_VECTOR_BITS_MAX: u8 = 16;
/// Fewest bits of each of a rotation's three parts.
pub const ROTATION_BITS_MIN: u8 = 4;
/// Most bits of each of a rotation's three parts: with more, an `f32` cannot distinguish which part is the
/// largest.
pub const ROTATION_BITS_MAX: u8 = 12;
/// Maximum bytes of a key's hints: a count, and for each a path, its length, its kind and a period.
pub const HINTS_BYTES_MAX: usize = 1 + HINTS_MAX * (2 + HINT_PATH_BYTES_MAX + 1 + 8);

/// Entities that a world can hold.
pub const ENTITIES_MAX: usize = 16_384;
/// Largest age of a baseline, in ticks behind the newest; also the largest delay of a packet that is still
/// accepted.
pub const BASELINE_AGE_MAX: u32 = 64;
/// Ticks whose rows are kept. After that, the slot of a despawned entity may be reused.
pub const HISTORY_TICKS: u32 = 2 * BASELINE_AGE_MAX;
/// Lanes and blobs of all components of a world, including entities despawned within the last
/// [`HISTORY_TICKS`].
pub const WORLD_LANES_MAX: usize = 131_072;
/// Bytes of all blobs of a world.
pub const WORLD_BLOB_BYTES_MAX: usize = 256 * 1024;
/// Bytes of memory of all versions that an authority keeps, including spare capacity. A reader refuses
/// packets that would make it keep more than [`REPLICA_WORLDS_MAX`] times as much. Ten thousand entities with
/// eight numbers that change every tick fit.
pub const WORLD_HISTORY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of all blobs of an entity: with its lanes they fit one message.
pub const ENTITY_BLOB_BYTES_MAX: usize = 40 * 1024;
/// Worlds that a reader may hold at once, while it knows of spawned entities but not yet of despawned ones.
pub const REPLICA_WORLDS_MAX: usize = 2;
/// Changes that a world logs in order. A publisher that is further behind scans all entities.
pub const CHANGE_LOG_MAX: usize = 32_768;
/// Ticks for which a prediction keeps its results: one bit of a `u128` each.
pub const PREDICTED_TICKS: u32 = 128;
/// Most steps that a prediction runs again; older errors are corrected at once, without a replay. Equals how
/// far back packets of a world are accepted.
pub const REPLAY_TICKS_MAX: u32 = BASELINE_AGE_MAX;
/// Ticks for which a shown one-shot effect is remembered: more than twice what can be run again.
pub const EFFECT_TICKS: u32 = 256;
/// One-shot effects that are remembered: sixteen a tick.
pub const EFFECTS_MAX: usize = 4_096;
/// Packet numbers of a world within which a receiver detects duplicates. It ignores older packets, and a
/// sender counts them as lost.
pub const NUMBER_WINDOW: u64 = 256;
/// Packets of a world in flight that a publisher tracks; older ones count as lost.
pub const FLIGHTS_MAX: usize = 256;
/// Entries of one packet of a world.
pub const PACKET_ENTRIES_MAX: usize = 1_024;
/// Decoded size of one packet of a world, in bytes: [`PACKET_PART_BYTES`] for each component and each blob,
/// four for each lane, and the bytes of blobs. With its entries, a packet takes less than 1 MiB of memory.
pub const PACKET_OUTPUT_BYTES_MAX: usize = 128 * 1024;
/// Bytes counted for each component of a packet, and each of its blobs, beside its content.
pub const PACKET_PART_BYTES: usize = 32;

/// Largest head of a recording, in bytes: a schema and a little more.
pub const RECORDING_HEAD_BYTES_MAX: usize = SCHEMA_BYTES_MAX + 512;
/// One record of a recording, in bytes: a packet, which may hold one entity that is larger than others.
pub const RECORD_BYTES_MAX: usize = STREAM_PACKET_BYTES_MAX;
/// Size of a recording's packets, in bytes. No datagram has to carry them, and each costs a head and a
/// checksum.
pub const RECORDING_PACKET_BYTES: usize = 16 * 1024;
/// Interval at which the hash of the world is recorded, in room time, and so the longest delay until a fault
/// is found. The hash of a large world takes a millisecond.
pub const RECORDING_MARK_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a recording that may wait to be written; if exceeded, the recording ends.
pub const RECORDING_WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Parts of a step: the unit of a member's view, how far behind a step it drew.
pub const VIEW_PARTS: u32 = 64;
/// Own inputs that are remembered, one for each step. Older steps are never run again.
pub const INPUTS_RECORDED_MAX: usize = 128;
/// Inputs of one message.
pub const INPUTS_SENT_MAX: usize = 32;
/// Predicted actions in one input, and so the most that a member makes in one step.
pub const ACTIONS_PER_INPUT_MAX: usize = 4;
/// Predicted actions of a member that the authority has not decided.
pub const ACTIONS_PENDING_MAX: usize = 64;
/// Numbers of a member's predicted actions that an authority remembers.
pub const ACTION_NUMBERS_KEPT: u32 = 128;
/// Ticks after which an undecided action is sent again, in the input of a later step.
pub const ACTION_REPEAT_TICKS: u32 = 24;
/// Largest age of an action in an input, in ticks. Older ones count as this old.
pub const ACTION_AGE_MAX: u32 = 255;
/// Steps for which an authority holds the inputs of a member, and for which it knows when they were run.
pub const INPUTS_KEPT_TICKS: u32 = 256;
/// Inputs for older steps are ignored. The limit is the longer of 64 steps and one second.
pub const INPUT_BEHIND_TICKS: u32 = 64;
/// Inputs for steps further ahead are ignored.
pub const INPUT_AHEAD_TICKS: u32 = 64;
/// Largest margin in a report, early or late, in ms.
pub const INPUT_MARGIN_MS_MAX: i16 = 500;
/// Window of the margin in a report: it is the minimum over this time.
pub const MARGIN_WINDOW: Duration = Duration::from_millis(500);
/// A margin that changed by this many ms is reported at once.
pub const MARGIN_STEP_MS: u16 = 2;
/// Interval at which smaller changes of the margin are reported.
pub const MARGIN_TOLD_EVERY: Duration = Duration::from_millis(250);
/// Target margin for the slowest of a member's inputs. It covers one frame at 60 Hz, by which an input is
/// late if its step waits for the next frame, plus errors of reports and clocks.
pub const MARGIN_WANTED: Duration = Duration::from_millis(20);
/// Largest margin that a game may ask for.
pub const MARGIN_WANTED_MAX: Duration = Duration::from_millis(250);
/// Largest speed-up for each step that a lead is too short, in thousandths.
pub const LEAD_GAIN_PER_MILLE_MAX: u16 = 200;
/// Largest change of the step rate, in thousandths.
pub const DILATION_PER_MILLE_MAX: u16 = 250;
/// Longest lead. Inputs of members further away arrive late.
pub const LEAD_MAX: Duration = Duration::from_secs(1);
/// Largest rise of the lead that one report can ask for.
pub const LEAD_RISE_MAX: Duration = Duration::from_millis(100);
/// Time for which the longest requested lead is kept: the lead grows fast and shrinks slowly.
pub const LEAD_HOLD: Duration = Duration::from_secs(10);
/// A game that asks for no steps for longer than this has stalled.
pub const LEAD_STALL: Duration = Duration::from_millis(250);
/// How far the time that a game brings may be behind the room's clock before it leaps to it.
pub const GAME_TIME_BEHIND_MAX: Duration = Duration::from_millis(250);
/// It makes up for one part in so many of what passes, which is not visible.
pub const GAME_TIME_CATCH_UP_PART: u32 = 20;
/// Steps whose lead a member remembers; a report comes within a second or two.
pub const STEPS_LED_MAX: usize = 512;

/// Players of a rollback session; a mask of them fits one byte.
pub const ROLLBACK_PLAYERS_MAX: usize = 8;
/// Spectators of a rollback session.
pub const ROLLBACK_SPECTATORS_MAX: usize = 16;
/// Bytes of one player's input for one step.
pub const ROLLBACK_INPUT_BYTES_MAX: usize = 64;
/// Most steps run ahead of the settled tick, and so the most that may be run again.
pub const ROLLBACK_WINDOW_MAX: u32 = 48;
/// Longest input delay, in ticks.
pub const ROLLBACK_DELAY_MAX: u32 = 16;
/// Ticks beyond its next step for which an end accepts inputs.
pub const ROLLBACK_AHEAD_TICKS: u32 = 64;
/// Ticks for which an end remembers inputs.
pub const ROLLBACK_RING_TICKS: usize = 128;
/// Settled ticks that an arbiter remembers: more than a minute at 60 Hz.
pub const ROLLBACK_HISTORY_TICKS: u32 = 4_096;
/// Keys of a rollback lane's state.
pub const ROLLBACK_KEYS_MAX: usize = 256;
/// Keys that a member may predict with an overlay.
pub const OVERLAY_KEYS_MAX: usize = 64;
/// Ticks for which an overlay value is shown.
pub const OVERLAY_TICKS_MAX: u32 = 64;

const _: () = {
    assert!(RECORDING_PACKET_BYTES < RECORD_BYTES_MAX, "a packet is a record, with its kind");
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
    assert!(INPUTS_SENT_MAX <= INPUTS_RECORDED_MAX, "what is sent is recorded");
    assert!(
        (ACTION_REPEAT_TICKS as usize) < INPUTS_SENT_MAX,
        "an action is sent again before its input is not"
    );
    assert!(ACTIONS_PENDING_MAX < ACTION_NUMBERS_KEPT as usize, "what is not decided is remembered");
    assert!(ACTION_NUMBERS_KEPT == u128::BITS, "a bit for each number");
    assert!(INPUTS_SENT_MAX <= INPUT_BEHIND_TICKS as usize, "what is sent again is not too old");
    assert!(INPUTS_KEPT_TICKS > TICK_HZ_MAX as u32, "what is not too old is held");
    assert!(
        ((ROLLBACK_WINDOW_MAX + ROLLBACK_AHEAD_TICKS) as usize) < ROLLBACK_RING_TICKS,
        "what can be run again and what came early have places of their own"
    );
    assert!(ROLLBACK_PLAYERS_MAX <= 8 && ROLLBACK_INPUT_BYTES_MAX < 0xff, "masks and lengths are one byte");
    assert!(RETREAT_TICKS_MAX < BASELINE_AGE_MAX, "what a world goes back to is remembered");
    assert!(RESIMULATE_TICKS_MAX < INPUT_BEHIND_TICKS, "an input that steps are run again for is taken");
    assert!(
        REWIND_MAX.as_micros() * TICK_HZ_MAX as u128 / 1_000_000 + (RESIMULATE_TICKS_MAX as u128)
            < HISTORY_TICKS as u128,
        "what is looked up is remembered"
    );
    assert!(HISTORY_DEPTH_MAX >= 2, "interpolation needs two samples");
    assert!(PREDICTED_TICKS == u128::BITS, "a bit for each tick");
    assert!(REPLAY_TICKS_MAX < PREDICTED_TICKS, "what is run again begins with a row that is kept");
    assert!(EFFECT_TICKS > PREDICTED_TICKS, "what is run again has shown its effects");
    assert!(
        STILL_AFTER.as_millis() < BUFFER_DELAY_MAX.as_millis(),
        "a delayed playout still sees where motion begins"
    );
};
