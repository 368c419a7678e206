//! What a client without a browser says and hears of a session. Pure.

use super::capsule::{Capsules, Said};
use super::fields;
use super::http3::{Fault, HEADERS_BYTES_MAX, Limits};
use super::tlv::{Part, Tlv};
use super::{FRAME_DATA, FRAME_HEADERS};

/// The beginning of a client's control stream: its type, and SETTINGS without a setting.
pub const CONTROL: &[u8] = &[0, 4, 0];

/// What the other end says on the CONNECT stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It answers the request with this status. Nothing is a session but after 200.
    Status(u16),
    /// It closes the session, with a code and a reason.
    Closed {
        /// The application's code.
        code: u32,
        /// Any bytes.
        reason: Vec<u8>,
    },
}

/// Reads the CONNECT stream, in any cut. It keeps no more than one HEADERS frame and one capsule.
#[derive(Debug, Default)]
pub struct Answers {
    tlv: Tlv,
    kept: Vec<u8>,
    capsules: Capsules,
}

impl Answers {
    /// Reads on, up to what is heard next.
    ///
    /// # Errors
    /// The other end violates HTTP/3.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Heard>, Fault> {
        while let Some(part) = self.tlv.next(bytes) {
            match part {
                Part::Begin { kind: FRAME_HEADERS, length } if length > HEADERS_BYTES_MAX as u64 => {
                    return Err(Fault::TooLarge);
                }
                Part::Body { kind: FRAME_HEADERS, bytes } => self.kept.extend_from_slice(bytes),
                Part::Body { kind: FRAME_DATA, mut bytes } => {
                    // A client of this kind sends what QUIC allows: the session's limits are without end.
                    let mut limits = Limits::NONE;
                    while let Some(said) = self.capsules.read(&mut bytes, &mut limits)? {
                        if let Said::Close { code, reason } = said {
                            return Ok(Some(Heard::Closed { code, reason }));
                        }
                    }
                }
                Part::End { kind: FRAME_HEADERS } => {
                    return fields::status(&core::mem::take(&mut self.kept)).map(Heard::Status).map(Some);
                }
                Part::Begin { .. } | Part::Body { .. } | Part::End { .. } => {}
            }
        }
        Ok(None)
    }
}
