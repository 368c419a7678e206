//! The three ways in which talking can fail: the peer misbehaved, the caller did, or the session is over.

use crate::channel::Lane;
use crate::ids::{ChannelId, MemberId};
use crate::limits;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;
use thiserror::Error;

/// The peer sent what the protocol forbids. Its connection is closed with
/// [`CloseReason::Misbehaved`]; nobody else is touched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerMisbehaved {
    /// A header or frame could not be read.
    #[error("{what} could not be read: {error}")]
    Malformed {
        /// Which part.
        what: &'static str,
        /// Why.
        error: ReadError,
    },
    /// A packet is larger than its carrier allows.
    #[error("a packet of {bytes} bytes is larger than the {max} allowed")]
    Oversized {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A packet has more frames than it may.
    #[error("a packet has more than the {max} frames allowed", max = limits::FRAMES_PER_PACKET_MAX)]
    TooManyFrames,
    /// A frame came where the packet or the state of the session has no place for it.
    #[error("{frame} has no place {when}")]
    OutOfPlace {
        /// The frame.
        frame: &'static str,
        /// The packet, or the state of the session.
        when: &'static str,
    },
    /// A packet or message that was never sent was acknowledged.
    #[error("acknowledged a {what} that was never sent")]
    AckedTheFuture {
        /// Packet or message.
        what: &'static str,
    },
    /// A message came on a channel that is not in the table, or in the frame of another lane.
    #[error("a message came on {channel} in a frame of the lane {lane:?}, which the table does not have")]
    WrongLane {
        /// The channel.
        channel: ChannelId,
        /// The lane of the frame.
        lane: Lane,
    },
    /// Reliable messages ran ahead of what may be under way.
    #[error("a reliable message is numbered beyond the window")]
    BeyondWindow,
    /// An update of the room's state could not be taken in.
    #[error("an update of the state could not be taken in: {detail}")]
    BadState {
        /// Why.
        detail: String,
    },
    /// More of a member's own state came than it may send.
    #[error(
        "sent more of its own state than the {max} bytes a second allowed: send it less often, or make it smaller",
        max = limits::OWN_STATE_BYTES_PER_SECOND
    )]
    TooMuchState,
    /// Something in a room that only another may do.
    #[error("{what} may be sent by the authority only")]
    NotAuthority {
        /// What was sent.
        what: &'static str,
    },
    /// Reliable messages came faster than a room passes them on, for longer than it keeps them.
    #[error("sent reliable messages faster than its room passes them on: {waiting} bytes wait")]
    Flooded {
        /// Bytes that waited, with the message that was too much.
        waiting: usize,
    },
    /// The peer had to say hello first and did not.
    #[error("did not say hello in time")]
    NoHello,
    /// Bytes that are not Parlor's protocol at all, for instance text where binary is due.
    #[error("{what}")]
    NotParlor {
        /// What came instead.
        what: &'static str,
    },
}

impl PeerMisbehaved {
    pub(crate) fn malformed(what: &'static str) -> impl FnOnce(ReadError) -> PeerMisbehaved {
        move |error| PeerMisbehaved::Malformed { what, error }
    }
}

/// The caller asked for something that cannot be. Nothing was sent, nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApiMisuse {
    /// A message is too large.
    #[error(
        "a message of {bytes} bytes is larger than the {max} allowed: split it, or keep large data elsewhere"
    )]
    MessageTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
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
        /// What was asked.
        what: &'static str,
        /// Who asked.
        local: MemberId,
    },
    /// There is nobody who could do this, or to whom it could be done: in a match all are equal.
    #[error(
        "a match has no host and no state, so nobody may {what}: send data, or play in a room that somebody hosts"
    )]
    NoHost {
        /// What was asked.
        what: &'static str,
    },
    /// The room is not open yet.
    #[error("the room is still connecting: wait for Event::Open before you {what}")]
    NotOpen {
        /// What was asked.
        what: &'static str,
    },
    /// There is no such player.
    #[error("there is no player {0} in this room")]
    NoSuchPlayer(MemberId),
    /// A value is outside of its bounds.
    #[error("{0}")]
    Bounds(String),
}

/// Why a session ended, as both ends see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The member left.
    Left,
    /// The authority, or whoever runs the server, removed the member.
    Kicked {
        /// What they gave as the reason; may be empty.
        reason: String,
    },
    /// The host left, and the room with it.
    HostLeft,
    /// The host was not heard of any more, and the room ended.
    HostGone,
    /// The room was ended by its server.
    RoomEnded {
        /// What a person may read about it.
        reason: String,
    },
    /// The server is going down.
    ServerShutdown,
    /// Nothing was heard from the other end for too long.
    TimedOut,
    /// The connection broke.
    ConnectionLost {
        /// What the transport says about it.
        detail: String,
    },
    /// The peer broke the protocol.
    Misbehaved {
        /// How, for a person to read.
        detail: String,
    },
    /// The member took so long to take its messages that too many were waiting.
    TooSlow,
    /// The game did not take its events for so long that too many were waiting.
    NotPolled,
    /// A resume token was used that had been used before: two ends have the session, so neither keeps it.
    TokenReused,
    /// The peer closed for a reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
        /// What it says about it.
        detail: String,
    },
}

impl CloseReason {
    /// The word for it in JSON, logs and metrics.
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
            CloseReason::Unknown { code, .. } => *code,
        }
    }

    fn detail(&self) -> &str {
        match self {
            CloseReason::Kicked { reason } | CloseReason::RoomEnded { reason } => reason,
            CloseReason::ConnectionLost { detail }
            | CloseReason::Misbehaved { detail }
            | CloseReason::Unknown { detail, .. } => detail,
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
    /// [`ReadError`] if it is not as laid out.
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
            code => CloseReason::Unknown { code, detail },
        })
    }
}

/// The longest front of `text` that has at most `max` bytes and ends between two letters.
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
            CloseReason::Unknown { code, detail } => write!(f, "closed for reason {code}: {detail}"),
        }
    }
}

impl std::error::Error for CloseReason {}
