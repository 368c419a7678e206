//! The three kinds of failure: the peer misbehaved, the caller misused the API, or the session is over.

use crate::channel::Lane;
use crate::ids::{ChannelId, MemberId};
use crate::limits;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;
use thiserror::Error;

/// The peer violated the protocol. Its connection is closed with [`CloseReason::Misbehaved`]; other
/// connections are not affected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerMisbehaved {
    /// A header or frame is malformed.
    #[error("{what} could not be read: {error}")]
    Malformed {
        /// The part.
        what: &'static str,
        /// The reason.
        error: ReadError,
    },
    /// A packet is larger than its carrier allows.
    #[error("a packet of {bytes} bytes is larger than the {max} allowed")]
    Oversized {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A packet has too many frames.
    #[error("a packet has more than the {max} frames allowed", max = limits::FRAMES_PER_PACKET_MAX)]
    TooManyFrames,
    /// A frame is not allowed in this packet or session state.
    #[error("{frame} has no place {when}")]
    OutOfPlace {
        /// The frame.
        frame: &'static str,
        /// The packet or session state.
        when: &'static str,
    },
    /// An acknowledgement names a packet or message that was never sent.
    #[error("acknowledged a {what} that was never sent")]
    AckedTheFuture {
        /// "Packet" or "message".
        what: &'static str,
    },
    /// A message on a channel that is not in the table, or in the frame of another lane.
    #[error("a message came on {channel} in a frame of the lane {lane}, which the table does not have")]
    WrongLane {
        /// The channel.
        channel: ChannelId,
        /// The lane of the frame.
        lane: Lane,
    },
    /// A reliable message is beyond the window of unacknowledged ones.
    #[error("a reliable message is numbered beyond the window")]
    BeyondWindow,
    /// An update of the room's state is invalid.
    #[error("an update of the state could not be taken in: {detail}")]
    BadState {
        /// The reason.
        detail: String,
    },
    /// A member sent more of its own state than allowed.
    #[error(
        "sent more of its own state than the {max} bytes a second allowed: send it less often, or make it smaller",
        max = limits::OWN_STATE_BYTES_PER_SECOND
    )]
    TooMuchState,
    /// An operation that only another member may do.
    #[error("{what} may be sent by the authority only")]
    NotAuthority {
        /// What was sent.
        what: &'static str,
    },
    /// Reliable messages came faster than the room passes them on, for longer than its queue can hold.
    #[error("sent reliable messages faster than its room passes them on: {waiting} bytes wait")]
    Flooded {
        /// Bytes in the queue, including the message that exceeded it.
        waiting: usize,
    },
    /// The peer did not start with a hello.
    #[error("did not say hello in time")]
    NoHello,
    /// Bytes of another protocol, for instance text instead of binary.
    #[error("{what}")]
    NotParlor {
        /// What was received instead.
        what: &'static str,
    },
}

impl PeerMisbehaved {
    pub(crate) fn malformed(what: &'static str) -> impl FnOnce(ReadError) -> PeerMisbehaved {
        move |error| PeerMisbehaved::Malformed { what, error }
    }
}

/// The call is invalid. Nothing was sent or changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApiMisuse {
    /// A message is too large.
    #[error(
        "a message of {bytes} bytes is larger than the {max} allowed: split it, or keep large data elsewhere"
    )]
    MessageTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The channel is not in the table.
    #[error("{0} is not declared: declare it when the room is opened and when it is joined")]
    NoSuchChannel(ChannelId),
    /// The session is over.
    #[error("the room is closed: {0}")]
    Closed(CloseReason),
    /// Only the authority may do this.
    #[error("only the host may {what}: this process is member {local} and not the host")]
    NotHost {
        /// The operation.
        what: &'static str,
        /// The calling member.
        local: MemberId,
    },
    /// The operation needs a host or state, which a match does not have.
    #[error(
        "a match has no host and no state, so nobody may {what}: send data, or play in a room that somebody hosts"
    )]
    NoHost {
        /// The operation.
        what: &'static str,
    },
    /// A spectator watches only.
    #[error("a spectator watches only and may not {what}: join without spectate() to play")]
    Spectator {
        /// The operation.
        what: &'static str,
    },
    /// The room is not open yet.
    #[error("the room is still connecting: wait for Event::Open before you {what}")]
    NotOpen {
        /// The operation.
        what: &'static str,
    },
    /// The player does not exist.
    #[error("there is no player {0} in this room")]
    NoSuchPlayer(MemberId),
    /// A value is out of range.
    #[error("{0}")]
    Bounds(String),
}

/// Why a session ended, as seen by both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The member left.
    Left,
    /// The authority or the server's operator removed the member.
    Kicked {
        /// The given reason; may be empty.
        reason: String,
    },
    /// The host left, and the room with it.
    HostLeft,
    /// The host was silent for too long, and the room ended.
    HostGone,
    /// The server ended the room.
    RoomEnded {
        /// A reason for people to read.
        reason: String,
    },
    /// The server is shutting down.
    ServerShutdown,
    /// The other end was silent for too long.
    TimedOut,
    /// The connection broke.
    ConnectionLost {
        /// The transport's error.
        detail: String,
    },
    /// The peer violated the protocol.
    Misbehaved {
        /// How, for people to read.
        detail: String,
    },
    /// The member took its messages too slowly: its queue overflowed.
    TooSlow,
    /// The game did not poll its events for too long: the queue overflowed.
    NotPolled,
    /// A resume token was used twice: two ends have the session, so neither may keep it.
    TokenReused,
    /// Another node has the room: claim the seat there.
    Moved {
        /// Its address, if it is known; otherwise empty.
        address: String,
    },
    /// A close reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
        /// Its detail.
        detail: String,
    },
}

impl CloseReason {
    /// The name in JSON, logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            CloseReason::Left => "left",
            CloseReason::Kicked { .. } => "kicked",
            CloseReason::HostLeft => "host_left",
            CloseReason::HostGone => "host_gone",
            CloseReason::RoomEnded { .. } => "room_ended",
            CloseReason::ServerShutdown => "server_shutdown",
            CloseReason::TimedOut => "timed_out",
            CloseReason::ConnectionLost { .. } => "connection_lost",
            CloseReason::Misbehaved { .. } => "misbehaved",
            CloseReason::TooSlow => "too_slow",
            CloseReason::NotPolled => "not_polled",
            CloseReason::TokenReused => "resume_token_reused",
            CloseReason::Moved { .. } => "moved",
            CloseReason::Unknown { .. } => "unknown",
        }
    }

    const fn code(&self) -> u8 {
        match self {
            CloseReason::Left => 0,
            CloseReason::Kicked { .. } => 1,
            CloseReason::HostLeft => 2,
            CloseReason::HostGone => 3,
            CloseReason::RoomEnded { .. } => 4,
            CloseReason::ServerShutdown => 5,
            CloseReason::TimedOut => 6,
            CloseReason::ConnectionLost { .. } => 7,
            CloseReason::Misbehaved { .. } => 8,
            CloseReason::TooSlow => 9,
            CloseReason::NotPolled => 10,
            CloseReason::TokenReused => 11,
            CloseReason::Moved { .. } => 12,
            CloseReason::Unknown { code, .. } => *code,
        }
    }

    fn detail(&self) -> &str {
        match self {
            CloseReason::Kicked { reason } | CloseReason::RoomEnded { reason } => reason,
            CloseReason::ConnectionLost { detail }
            | CloseReason::Misbehaved { detail }
            | CloseReason::Unknown { detail, .. } => detail,
            // Half an address leads nowhere: without one the member asks the other nodes that it knows.
            CloseReason::Moved { address } if address.len() <= limits::REASON_BYTES_MAX => address,
            _ => "",
        }
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(self.code());
        out.put_str(clip(self.detail(), limits::REASON_BYTES_MAX));
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let code = reader.u8()?;
        let detail = reader.str_max("close detail", limits::REASON_BYTES_MAX)?;
        Ok(match code {
            0 => CloseReason::Left,
            1 => CloseReason::Kicked { reason: detail },
            2 => CloseReason::HostLeft,
            3 => CloseReason::HostGone,
            4 => CloseReason::RoomEnded { reason: detail },
            5 => CloseReason::ServerShutdown,
            6 => CloseReason::TimedOut,
            7 => CloseReason::ConnectionLost { detail },
            8 => CloseReason::Misbehaved { detail },
            9 => CloseReason::TooSlow,
            10 => CloseReason::NotPolled,
            11 => CloseReason::TokenReused,
            12 => CloseReason::Moved { address: detail },
            code => CloseReason::Unknown { code, detail },
        })
    }
}

/// Returns the longest prefix of `text` with at most `max` bytes that ends between two characters.
pub fn clip(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::Left => f.write_str("left the room"),
            CloseReason::Kicked { reason } if reason.is_empty() => f.write_str("removed from the room"),
            CloseReason::Kicked { reason } => write!(f, "removed from the room: {reason}"),
            CloseReason::HostLeft => f.write_str("the host left, and the room with it"),
            CloseReason::HostGone => f.write_str("the host is gone: nothing was heard from it any more"),
            CloseReason::RoomEnded { reason } if reason.is_empty() => {
                f.write_str("the server ended the room")
            }
            CloseReason::RoomEnded { reason } => write!(f, "the server ended the room: {reason}"),
            CloseReason::ServerShutdown => f.write_str("the server is going down"),
            CloseReason::TimedOut => f.write_str("nothing was heard from the other end for too long"),
            CloseReason::ConnectionLost { detail } => write!(f, "the connection broke: {detail}"),
            CloseReason::Misbehaved { detail } => write!(f, "the other end broke the protocol: {detail}"),
            CloseReason::TooSlow => f.write_str("too slow: more was waiting to be sent than the room allows"),
            CloseReason::NotPolled => {
                f.write_str("the game did not take its events: call poll() in every frame")
            }
            CloseReason::TokenReused => f.write_str(
                "the session was resumed with a token that was used before: another process has it, so it was ended",
            ),
            CloseReason::Moved { .. } => f.write_str("the room is at another server of the cluster"),
            CloseReason::Unknown { code, detail } => write!(f, "closed for reason {code}: {detail}"),
        }
    }
}

impl std::error::Error for CloseReason {}
