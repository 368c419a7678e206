//! Frames and capsules: both are a type, a length and as many bytes.

use super::varint::{self, Partial};

/// Reads frames or capsules from bytes in any cut. It keeps no payload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tlv {
    number: Partial,
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Kind,
    Length {
        kind: u64,
    },
    Body {
        kind: u64,
        left: u64,
    },
}

/// A part of what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A frame begins, with the length that it declares.
    Begin { kind: u64, length: u64 },
    /// Some of its payload.
    Body { kind: u64, bytes: &'a [u8] },
    /// It is complete.
    End { kind: u64 },
}

impl Tlv {
    /// Takes the next part from `bytes`; `None` once they are used up.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Part<'a>> {
        loop {
            match self.state {
                State::Body { kind, left: 0 } => {
                    self.state = State::Kind;
                    return Some(Part::End { kind });
                }
                State::Body { kind, left } => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let (body, rest) = bytes.split_at(taken);
                    *bytes = rest;
                    self.state = State::Body { kind, left: left - taken as u64 };
                    return (taken > 0).then_some(Part::Body { kind, bytes: body });
                }
                State::Kind | State::Length { .. } => {
                    let (first, rest) = bytes.split_first()?;
                    *bytes = rest;
                    match (self.number.take(*first), self.state) {
                        (None, _) => {}
                        (Some(length), State::Length { kind }) => {
                            self.state = State::Body { kind, left: length };
                            return Some(Part::Begin { kind, length });
                        }
                        (Some(kind), _) => self.state = State::Length { kind },
                    }
                }
            }
        }
    }

    /// Whether it is between two frames.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Kind) && self.number.is_idle()
    }
}

/// Writes a frame or capsule.
pub(super) fn put(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    varint::put(out, kind);
    varint::put(out, payload.len() as u64);
    out.extend_from_slice(payload);
}
