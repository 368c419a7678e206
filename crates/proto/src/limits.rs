//! Every bound of the protocol, in one place. Relations between bounds are checked at compile time.

use core::time::Duration;

/// Protocol versions that this build speaks, oldest first.
pub const VERSION_MIN: u16 = 1;
/// See [`VERSION_MIN`].
pub const VERSION_MAX: u16 = 1;

/// Largest payload of one message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Largest payload of a message frame, in bytes: a message with the envelope around it.
pub const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 1_536;

/// Largest datagram payload, in bytes. Browsers document 1,000 as the size of an unreliable payload.
pub const DATAGRAM_BYTES_MAX: usize = 1_000;

/// Largest packet on a reliable stream, in bytes: one message of full size with its header and envelope.
pub const STREAM_PACKET_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 2 * 1024;

/// A stream packet is closed at this size in bytes, so that a long queue does not arrive in one piece.
pub const STREAM_PACKET_BYTES_TARGET: usize = 16 * 1024;

/// Frames in one packet. The smallest frame is three bytes but needs many times that in memory, so a limit in
/// bytes alone would not bound a receiver's memory.
pub const FRAMES_PER_PACKET_MAX: usize = 512;

/// Largest header of a packet, in bytes.
pub const HEADER_BYTES_MAX: usize = 1 + 2 + 2 + 4 + 8 + 2 + 8;

/// Largest head of a fragment frame, in bytes: kind, length, id, index, count.
pub const FRAGMENT_HEAD_BYTES_MAX: usize = 1 + 2 + 2 + 1 + 1;

/// Bytes of a message in one fragment.
pub const FRAGMENT_BYTES: usize = DATAGRAM_BYTES_MAX - HEADER_BYTES_MAX - FRAGMENT_HEAD_BYTES_MAX;

/// Maximum fragments of one message.
pub const FRAGMENTS_MAX: usize = 72;

/// Partly assembled messages of a session at once.
pub const FRAGMENTED_MESSAGES_MAX: usize = 2;

/// Bytes of partly assembled messages: one of full size, and the head of its frame.
pub const FRAGMENT_BUFFER_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + 32;

/// Timeout of a partly assembled message.
pub const FRAGMENT_TTL: Duration = Duration::from_secs(2);

/// Packets that a receiver remembers, to distinguish duplicates from late ones.
pub const REPLAY_WINDOW: u64 = 256;

/// Unacknowledged packets that a sender tracks; older ones count as lost.
pub const IN_FLIGHT_MAX: usize = 1024;

/// Unacknowledged reliable messages at once; further ones wait at the sender.
pub const RELIABLE_WINDOW: u64 = 1024;

/// Overhead of a queued message beside its payload, in bytes, as the queues below count it. Without it many
/// small messages would take far more memory than their bytes suggest.
pub const WAITING_MESSAGE_BYTES: usize = 192;

/// Bytes of reliable messages queued at a sender, unsent or unacknowledged. Beyond it the member is too slow
/// for its room and is disconnected with a reason. It also bounds the unreliable messages queued beside them:
/// these give way. With [`HAND_OUT_BYTES`] and the packet after it, a member that has stopped reading costs a
/// hub less than 256 KiB; two messages of full size still fit.
pub const RELIABLE_QUEUE_BYTES_MAX: usize = 160 * 1024;

/// Bytes of unreliable messages queued at a sender, including fragments. Beyond it the oldest is dropped and
/// counted.
pub const UNRELIABLE_QUEUE_BYTES_MAX: usize = 136 * 1024;

/// Bytes after which a hub gives a connection no further packet in the same turn. The next turn knows whether
/// the connection is still writable, and messages still in the session can be replaced or dropped meanwhile.
pub const HAND_OUT_BYTES: usize = 16 * 1024;

/// Keys of sequenced channels whose newest message a receiver remembers, over all channels. Beyond it, the
/// least recently used half is dropped.
pub const SEQUENCED_KEYS_MAX: usize = 512;

/// Largest number of steps per second.
pub const TICK_HZ_MAX: u16 = 240;

/// Fewest members that a room may allow.
pub const MEMBERS_MIN: u16 = 2;
/// Most members of a player-hosted room.
pub const MEMBERS_MAX_PLAYER_HOSTED: u16 = 16;
/// Most members of a room that the server runs or that a dedicated process hosts.
pub const MEMBERS_MAX_SERVER_RUN: u16 = 256;
/// Most spectators of a room, and fewer where it would have more than [`MEMBERS_MAX_SERVER_RUN`] members with them.
pub const SPECTATORS_MAX: u16 = 64;
/// Default of the most spectators of a room.
pub const SPECTATORS_DEFAULT: u16 = 8;
/// The shortest spectator delay of a room that has one.
pub const SPECTATOR_DELAY_MS_MIN: u32 = 1_000;
/// The longest spectator delay.
pub const SPECTATOR_DELAY_MS_MAX: u32 = 300_000;

/// Longest name of a member, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 48;
/// Longest user of an admission token, in bytes of UTF-8.
pub const USER_BYTES_MAX: usize = 64;
/// Longest app id, environment, join secret, match label and message kind, in bytes of UTF-8.
pub const LABEL_BYTES_MAX: usize = 64;
/// Longest reason for people to read (kick, refusal, close), in bytes of UTF-8.
pub const REASON_BYTES_MAX: usize = 200;
/// Longest token of a handshake, in bytes.
pub const TOKEN_BYTES_MAX: usize = 2_048;
/// Longest server address in a redirect, in bytes of UTF-8.
pub const ADDRESS_BYTES_MAX: usize = 256;
/// Longest pass of a seat, in bytes.
pub const PASS_BYTES_MAX: usize = 512;
/// Most addresses of other nodes that a member gets.
pub const ELSEWHERE_MAX: usize = 4;

/// Values that one member may have in its player data.
pub const PLAYER_DATA_KEYS_MAX: usize = 32;
/// Bytes of one value of player data.
pub const PLAYER_DATA_VALUE_BYTES_MAX: usize = 1_024;
/// Bytes of all keys and values in one member's player data: a newcomer gets everyone's at once. Smaller in
/// larger rooms, see [`player_data_bytes_max`].
pub const PLAYER_DATA_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the player data of all members, in a room that may have more than [`MEMBERS_MAX_PLAYER_HOSTED`].
pub const PLAYER_DATA_BYTES_LARGE_ROOM: usize = 64 * 1024;

/// Members that one message may name.
pub const ADDRESSEES_MAX: usize = MEMBERS_MAX_SERVER_RUN as usize;

/// First channel number that an application may use.
pub const APP_CHANNEL_FIRST: u8 = 16;
/// Channels in a table, including built-in ones.
pub const CHANNELS_MAX: usize = 64;

/// Keys of a room's keyed state.
pub const STATE_KEYS_MAX: usize = 4_096;
/// Longest key of keyed state, in bytes of UTF-8.
pub const STATE_KEY_BYTES_MAX: usize = 64;
/// Largest value of keyed state, in encoded bytes.
pub const STATE_VALUE_BYTES_MAX: usize = 16 * 1024;
/// All of a room's keyed state, in encoded bytes: a newcomer gets it in one message.
pub const STATE_BYTES_MAX: usize = 60 * 1024;
/// Maximum nesting depth of a value.
pub const VALUE_DEPTH_MAX: usize = 32;

/// Addresses at which a member says that it can be reached, and that are sent to another member.
pub const PATH_CANDIDATES_MAX: usize = 8;
/// Members of a room that are introduced to each other at most, if none of them is the authority: each attempt sends
/// packets to addresses that another member names.
pub const MESH_MEMBERS_MAX: usize = 16;
/// Addresses that a member sends again sooner than this are ignored.
pub const PATH_CANDIDATES_INTERVAL: Duration = Duration::from_secs(10);
/// Silence after which the other end of a path between members counts as lost.
pub const PATH_SILENCE: Duration = Duration::from_secs(1);
/// Silence on such a path after which an end sends a keep-alive.
pub const PATH_KEEP_ALIVE: Duration = Duration::from_millis(200);
/// Timeout of an attempt to open a path.
pub const PATH_TRY_TIMEOUT: Duration = Duration::from_secs(3);

/// Largest schema of a room, in encoded bytes; it is part of a hello.
pub const SCHEMA_BYTES_MAX: usize = 8 * 1024;
/// Shortest host timeout, in ms: the silence of a host after which another member takes its part. A shorter one would replace
/// hosts that are merely late.
pub const HOST_TIMEOUT_MS_MIN: u32 = 100;
/// Host timeout, in ms, of a room with host migration whose game chooses none.
pub const HOST_TIMEOUT_MS_DEFAULT: u32 = 250;
/// Longest host timeout, in ms.
pub const HOST_TIMEOUT_MS_MAX: u32 = 10_000;

/// Time between two planned hand-overs of a room: each costs a copy of its world for one member.
pub const HAND_OVER_INTERVAL: Duration = Duration::from_secs(1);

/// Average bytes a second of a member's messages about its own state, and the burst in bytes. They build on
/// each other, so a hub cannot drop some: a member that sends more is disconnected.
pub const OWN_STATE_BYTES_PER_SECOND: usize = 64 * 1024;

/// Decisions about predicted actions of one message.
pub const ACTION_DECISIONS_MAX: usize = 64;
/// Largest input of one tick, in encoded bytes.
pub const INPUT_BYTES_MAX: usize = 512;
/// Largest input message: the input of a tick, and earlier ones that may have been lost. It fits one
/// datagram.
pub const INPUT_MESSAGE_BYTES_MAX: usize = 900;

/// Timeout of the handshake: for a peer's hello, and for its answer.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence after which a session sends a keep-alive.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// Silence after which a connection counts as lost.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(8);
/// Silence of a hub in a host's process after which its guests consider the host gone: they must know within
/// three seconds.
pub const HOST_GONE_TIMEOUT: Duration = Duration::from_millis(2_800);
/// Keep-alive interval of such a hub and its guests, so that losing a few is not silence.
pub const KEEP_ALIVE_INTERVAL_OF_HOST: Duration = Duration::from_millis(250);
/// Maximum delay of an acknowledgement that waits for a packet to be part of. Longer than a step at 30 Hz, so that
/// the next input or state takes it along.
pub const ACK_DELAY_MAX: Duration = Duration::from_millis(40);
/// The same of an end that sends no messages, which no packet takes along. The sender of state then has a newer
/// baseline.
pub const ACK_DELAY_OF_LISTENER: Duration = Duration::from_millis(25);
/// Bytes of reliable messages after which an acknowledgement is sent at once. A fast sender must not reach
/// [`RELIABLE_QUEUE_BYTES_MAX`] for lack of one.
pub const ACK_AT_ONCE_BYTES: usize = 16 * 1024;
/// Time that a closing session waits until its Close frame is sent.
pub const CLOSE_LINGER: Duration = Duration::from_millis(500);

/// Bytes of all keys and values in the player data of one member, in a room with `members_max` members, its
/// host included.
pub const fn player_data_bytes_max(members_max: u16) -> usize {
    if members_max <= MEMBERS_MAX_PLAYER_HOSTED {
        PLAYER_DATA_BYTES_MAX
    } else {
        PLAYER_DATA_BYTES_LARGE_ROOM / members_max as usize
    }
}

/// Maximum bytes in a newcomer's queue for one member, without player data.
const JOINED_BYTES_MAX: usize = WAITING_MESSAGE_BYTES + NAME_BYTES_MAX + USER_BYTES_MAX + 16;

const _: () = {
    assert!(4 + 1 + 2 + 2 + INPUT_BYTES_MAX <= INPUT_MESSAGE_BYTES_MAX, "a message has room for an input");
    assert!(
        INPUT_MESSAGE_BYTES_MAX + HEADER_BYTES_MAX + 32 <= DATAGRAM_BYTES_MAX,
        "and a datagram for a message"
    );
    assert!(
        crate::wire::envelope::ENVELOPE_BYTES_MAX + LABEL_BYTES_MAX + 8
            <= PAYLOAD_BYTES_MAX - MESSAGE_BYTES_MAX
    );
    assert!(
        PAYLOAD_BYTES_MAX + HEADER_BYTES_MAX + 32 <= STREAM_PACKET_BYTES_MAX,
        "every message fits a stream packet"
    );
    assert!(VERSION_MIN <= VERSION_MAX);
    assert!(
        HEADER_BYTES_MAX + FRAGMENT_HEAD_BYTES_MAX < DATAGRAM_BYTES_MAX / 4,
        "a fragment is mostly payload"
    );
    assert!(FRAGMENT_BYTES * FRAGMENTS_MAX >= STREAM_PACKET_BYTES_MAX, "every message can be fragmented");
    assert!(FRAGMENTS_MAX <= u8::MAX as usize, "the count of fragments is one byte");
    assert!(STREAM_PACKET_BYTES_TARGET <= STREAM_PACKET_BYTES_MAX);
    assert!(RELIABLE_QUEUE_BYTES_MAX >= 2 * (PAYLOAD_BYTES_MAX + WAITING_MESSAGE_BYTES));
    assert!(
        FRAGMENT_BYTES * FRAGMENTS_MAX + FRAGMENTS_MAX * WAITING_MESSAGE_BYTES <= UNRELIABLE_QUEUE_BYTES_MAX,
        "a whole message fits, in fragments too"
    );
    assert!(UNRELIABLE_QUEUE_BYTES_MAX >= 2 * (PAYLOAD_BYTES_MAX + WAITING_MESSAGE_BYTES));
    assert!(UNRELIABLE_QUEUE_BYTES_MAX <= RELIABLE_QUEUE_BYTES_MAX);
    assert!(
        RELIABLE_QUEUE_BYTES_MAX + HAND_OUT_BYTES + STREAM_PACKET_BYTES_MAX <= 244 * 1024,
        "with what a session is itself, a member that has stopped reading costs no more than 256 KiB"
    );
    assert!(
        ACK_AT_ONCE_BYTES * 8 <= RELIABLE_QUEUE_BYTES_MAX,
        "several acknowledgements for each full queue"
    );
    assert!(STATE_BYTES_MAX + 1024 < MESSAGE_BYTES_MAX, "the whole state fits into one message");
    assert!(STATE_VALUE_BYTES_MAX < STATE_BYTES_MAX);
    assert!(MEMBERS_MIN >= 2 && MEMBERS_MAX_PLAYER_HOSTED <= MEMBERS_MAX_SERVER_RUN);
    assert!(
        SEQUENCED_KEYS_MAX >= 2 * MEMBERS_MAX_SERVER_RUN as usize,
        "a key for every member, and for those before it"
    );
    assert!(PLAYER_DATA_BYTES_MAX + PLAYER_DATA_KEYS_MAX * 4 + NAME_BYTES_MAX + 32 < MESSAGE_BYTES_MAX);
    assert!(
        MEMBERS_MAX_PLAYER_HOSTED as usize * (PLAYER_DATA_BYTES_MAX + 512)
            + SPECTATORS_MAX as usize * JOINED_BYTES_MAX
            + WAITING_MESSAGE_BYTES
            < RELIABLE_QUEUE_BYTES_MAX,
        "what a newcomer is told of everybody fits its queue"
    );
    assert!(
        MEMBERS_MAX_SERVER_RUN as usize * JOINED_BYTES_MAX + PLAYER_DATA_BYTES_LARGE_ROOM
            < RELIABLE_QUEUE_BYTES_MAX,
        "and so it does in the largest room"
    );
    assert!(CHANNELS_MAX <= u8::MAX as usize && (APP_CHANNEL_FIRST as usize) < CHANNELS_MAX);
    assert!(
        KEEP_ALIVE_INTERVAL.as_millis() * 4 <= SILENCE_TIMEOUT.as_millis(),
        "several chances to show life"
    );
    assert!(REPLAY_WINDOW >= 256);
    assert!(PATH_KEEP_ALIVE.as_millis() * 3 <= PATH_SILENCE.as_millis(), "several chances here, too");
    assert!(
        MESSAGE_BYTES_MAX + LABEL_BYTES_MAX + 8 + crate::wire::path::REST_BYTES_MAX
            <= PAYLOAD_BYTES_MAX - crate::wire::envelope::ENVELOPE_BYTES_MAX,
        "what went over a path can go through the hub"
    );
};
