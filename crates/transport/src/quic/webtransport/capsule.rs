//! Capsules (RFC 9297): what is said of a session on its CONNECT stream, within DATA frames.

use super::http3::{Fault, Limits};
use super::tlv::{self, Part, Tlv};
use super::{FRAME_DATA, varint};

const CLOSE: u64 = 0x2843;
const MAX_DATA: u64 = 0x190b_4d3d;
const MAX_STREAMS_BIDI: u64 = 0x190b_4d3f;
const MAX_STREAMS_UNI: u64 = 0x190b_4d40;

/// Bytes of a close's code.
const CODE_BYTES: usize = 4;
/// Maximum bytes of a close's reason, by the standard.
const REASON_BYTES_MAX: usize = 1_024;
/// Maximum bytes of a limit.
const NUMBER_BYTES_MAX: usize = 8;

/// What a capsule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The session is over.
    Close { code: u32, reason: Vec<u8> },
    /// So many bytes of another type were passed over.
    PassedOver(usize),
}

/// Reads capsules from the payload of DATA frames, in any cut.
#[derive(Debug, Default)]
pub(super) struct Capsules {
    tlv: Tlv,
    kept: Vec<u8>,
}

impl Capsules {
    /// Reads on. Returns what changes more than the limits.
    pub(super) fn read(&mut self, bytes: &mut &[u8], limits: &mut Limits) -> Result<Option<Said>, Fault> {
        while let Some(part) = self.tlv.next(bytes) {
            match part {
                Part::Begin { kind, length } => match max_bytes(kind) {
                    Some(max) if length > max as u64 => return Err(Fault::TooLarge),
                    Some(_) => self.kept.clear(),
                    None => return Ok(Some(Said::PassedOver(2))),
                },
                Part::Body { kind, bytes } if max_bytes(kind).is_some() => {
                    self.kept.extend_from_slice(bytes);
                }
                Part::Body { bytes, .. } => return Ok(Some(Said::PassedOver(bytes.len()))),
                Part::End { kind: CLOSE } => {
                    let kept = core::mem::take(&mut self.kept);
                    let (code, reason) = kept.split_first_chunk::<CODE_BYTES>().ok_or(Fault::Capsule)?;
                    let (code, reason) = (u32::from_be_bytes(*code), reason.to_vec());
                    return Ok(Some(Said::Close { code, reason }));
                }
                Part::End { kind } if max_bytes(kind).is_some() => {
                    let (limit, width) = varint::read(&self.kept).ok_or(Fault::Capsule)?;
                    if width != self.kept.len() {
                        return Err(Fault::Capsule);
                    }
                    limits.raise(kind == MAX_DATA, kind == MAX_STREAMS_UNI, limit);
                }
                Part::End { .. } => {}
            }
        }
        Ok(None)
    }
}

/// Maximum bytes of a capsule that is kept.
fn max_bytes(kind: u64) -> Option<usize> {
    match kind {
        CLOSE => Some(CODE_BYTES + REASON_BYTES_MAX),
        MAX_DATA | MAX_STREAMS_BIDI | MAX_STREAMS_UNI => Some(NUMBER_BYTES_MAX),
        _ => None,
    }
}

/// The last frame of a CONNECT stream: it closes the session.
pub fn close(code: u32, reason: &str) -> Vec<u8> {
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend_from_slice(reason.as_bytes());
    let (mut capsule, mut frame) = (Vec::new(), Vec::new());
    tlv::put(&mut capsule, CLOSE, &payload);
    tlv::put(&mut frame, FRAME_DATA, &capsule);
    frame
}
