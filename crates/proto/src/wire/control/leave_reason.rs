//! Why a member left its room, or is not connected to it.

use crate::error::clip;
use crate::limits;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;

/// Why a member left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// It left.
    Left,
    /// The authority removed it.
    Kicked {
        /// The given reason; may be empty.
        reason: String,
    },
    /// Its connection broke.
    ConnectionLost,
    /// It was silent for too long.
    TimedOut,
    /// It violated the protocol.
    Misbehaved,
    /// It was too slow for the room.
    TooSlow,
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl LeaveReason {
    /// The name in JSON, logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            LeaveReason::Left => "left",
            LeaveReason::Kicked { .. } => "kicked",
            LeaveReason::ConnectionLost => "connection_lost",
            LeaveReason::TimedOut => "timed_out",
            LeaveReason::Misbehaved => "misbehaved",
            LeaveReason::TooSlow => "too_slow",
            LeaveReason::Unknown { .. } => "unknown",
        }
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (code, detail) = match self {
            LeaveReason::Left => (0, ""),
            LeaveReason::Kicked { reason } => (1, reason.as_str()),
            LeaveReason::ConnectionLost => (2, ""),
            LeaveReason::TimedOut => (3, ""),
            LeaveReason::Misbehaved => (4, ""),
            LeaveReason::TooSlow => (5, ""),
            LeaveReason::Unknown { code } => (*code, ""),
        };
        out.put_u8(code);
        out.put_str(clip(detail, limits::REASON_BYTES_MAX));
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let code = reader.u8()?;
        let detail = reader.str_max("leave detail", limits::REASON_BYTES_MAX)?;
        Ok(match code {
            0 => LeaveReason::Left,
            1 => LeaveReason::Kicked { reason: detail },
            2 => LeaveReason::ConnectionLost,
            3 => LeaveReason::TimedOut,
            4 => LeaveReason::Misbehaved,
            5 => LeaveReason::TooSlow,
            code => LeaveReason::Unknown { code },
        })
    }
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaveReason::Left => f.write_str("left"),
            LeaveReason::Kicked { reason } if reason.is_empty() => f.write_str("was removed"),
            LeaveReason::Kicked { reason } => write!(f, "was removed: {reason}"),
            LeaveReason::ConnectionLost => f.write_str("lost its connection"),
            LeaveReason::TimedOut => f.write_str("was not heard of any more"),
            LeaveReason::Misbehaved => f.write_str("broke the protocol"),
            LeaveReason::TooSlow => f.write_str("was too slow for the room"),
            LeaveReason::Unknown { code } => write!(f, "is gone for reason {code}"),
        }
    }
}
