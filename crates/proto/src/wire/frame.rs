//! The frames of a packet.
//!
//! ```text
//!  varint  kind
//!  varint  length of the body in bytes
//!          body
//! ```
//!
//! A frame of an unknown kind is skipped by its length. Bodies:
//!
//! ```text
//!  0x01 Hello        see [`handshake`](super::handshake)
//!  0x02 Welcome
//!  0x03 Redirect
//!  0x04 RetryAfter
//!  0x05 Refused
//!  0x06 Close        reason: 1 byte, detail: text
//!  0x07 Time         sent: varint µs · 0, or 1 and echoed: varint µs, held: varint µs
//!  0x08 Resume       see [`handshake`](super::handshake)
//!  0x09 Resumed
//!  0x0A Seat
//!  0x10 Unreliable   channel: 1 byte · payload
//!  0x11 Sequenced    channel: 1 byte · key: varint · payload
//!  0x12 Reliable     channel: 1 byte · number: varint · payload
//!  0x13 Ordered      channel: 1 byte · number: varint · order: varint · payload
//!  0x14 Fragment     id: 2 bytes · index: 1 byte · count: 1 byte · part of an Unreliable or Sequenced frame
//! ```

use super::cursor::{ReadError, Reader, Write};
use super::handshake::{Hello, Redirect, Refusal, Resume, Resumed, RetryAfter, Seat, Welcome};
use crate::error::CloseReason;
use crate::ids::ChannelId;
use crate::limits;
use bytes::Bytes;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a session, from the connecting side.
    Hello(Box<Hello>),
    /// A hello whose versions this build does not speak. Only these fields can be read.
    ForeignHello {
        /// Oldest version that its sender speaks.
        version_min: u16,
        /// Newest version that its sender speaks.
        version_max: u16,
    },
    /// The hub's answer: admitted.
    Welcome(Box<Welcome>),
    /// The hub's answer: the room is on another server.
    Redirect(Redirect),
    /// The hub's answer: try again later.
    RetryAfter(RetryAfter),
    /// The hub's answer: refused.
    Refused(Refusal),
    /// The session is over.
    Close(CloseReason),
    /// A keep-alive, with the timestamps to measure round trips and each other's clocks.
    Time(Time),
    /// Resumes a session, from the connecting side.
    Resume(Resume),
    /// The hub's answer: the session is resumed.
    Resumed(Resumed),
    /// From a node, behind the Welcome or Resumed and when it changes: how to claim the seat at another node.
    Seat(Box<Seat>),
    /// A message of [`Lane::Unreliable`](crate::Lane).
    Unreliable {
        /// Its channel.
        channel: ChannelId,
        /// The message.
        payload: Bytes,
    },
    /// A message of [`Lane::UnreliableSequenced`](crate::Lane). The packet number determines which of two is
    /// newer.
    Sequenced {
        /// Its channel.
        channel: ChannelId,
        /// Only messages with the same key replace each other.
        key: u32,
        /// The message.
        payload: Bytes,
    },
    /// A message of [`Lane::ReliableUnordered`](crate::Lane).
    Reliable {
        /// Its channel.
        channel: ChannelId,
        /// Its number among all reliable messages of the session, from 0.
        number: u64,
        /// The message.
        payload: Bytes,
    },
    /// A message of [`Lane::ReliableOrdered`](crate::Lane).
    Ordered {
        /// Its channel.
        channel: ChannelId,
        /// Its number among all reliable messages of the session, from 0.
        number: u64,
        /// Its position among those of its channel, from 0.
        order: u64,
        /// The message.
        payload: Bytes,
    },
    /// A part of an unreliable message that is too large for a datagram.
    Fragment(Fragment),
}

/// See [`Frame::Time`]. As in RTCP's sender and receiver reports (RFC 3550 §6.4.1), each side echoes the
/// other's last time with its holding time, so one frame each way measures the round trip at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The sender's clock when it sent this, in µs.
    pub sent_us: u64,
    /// The last time that the sender received, if there is one.
    pub echo: Option<Echo>,
}

/// An echoed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// `sent_us` of the echoed frame.
    pub sent_us: u64,
    /// How long it was held, in µs.
    pub held_us: u64,
}

/// See [`Frame::Fragment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Wrapping number of the message among the fragmented ones.
    pub id: u16,
    /// The index of the part, from 0.
    pub index: u8,
    /// The number of parts, 2 to [`limits::FRAGMENTS_MAX`].
    pub count: u8,
    /// The part: all but the last have [`limits::FRAGMENT_BYTES`].
    pub part: Bytes,
}

mod kind {
    pub(super) const HELLO: u64 = 0x01;
    pub(super) const WELCOME: u64 = 0x02;
    pub(super) const REDIRECT: u64 = 0x03;
    pub(super) const RETRY_AFTER: u64 = 0x04;
    pub(super) const REFUSED: u64 = 0x05;
    pub(super) const CLOSE: u64 = 0x06;
    pub(super) const TIME: u64 = 0x07;
    pub(super) const RESUME: u64 = 0x08;
    pub(super) const RESUMED: u64 = 0x09;
    pub(super) const SEAT: u64 = 0x0a;
    pub(super) const UNRELIABLE: u64 = 0x10;
    pub(super) const SEQUENCED: u64 = 0x11;
    pub(super) const RELIABLE: u64 = 0x12;
    pub(super) const ORDERED: u64 = 0x13;
    pub(super) const FRAGMENT: u64 = 0x14;
}

impl Frame {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut head = Vec::with_capacity(32);
        let (kind, payload) = self.write_body(&mut head);
        out.put_varint(kind);
        out.put_varint((head.len() + payload.len()) as u64);
        out.put(&head);
        out.put(payload);
    }

    /// Writes the body without the payload, which needs no copy.
    fn write_body(&self, out: &mut Vec<u8>) -> (u64, &[u8]) {
        match self {
            Frame::Hello(hello) => (kind::HELLO, written(|| hello.write(out))),
            Frame::ForeignHello { version_min, version_max } => {
                out.put_u16(*version_min);
                out.put_u16(*version_max);
                (kind::HELLO, &[])
            }
            Frame::Welcome(welcome) => (kind::WELCOME, written(|| welcome.write(out))),
            Frame::Redirect(redirect) => (kind::REDIRECT, written(|| redirect.write(out))),
            Frame::RetryAfter(retry) => (kind::RETRY_AFTER, written(|| retry.write(out))),
            Frame::Refused(refusal) => (kind::REFUSED, written(|| refusal.write(out))),
            Frame::Close(reason) => (kind::CLOSE, written(|| reason.write(out))),
            Frame::Time(time) => (kind::TIME, written(|| time.write(out))),
            Frame::Resume(resume) => (kind::RESUME, written(|| resume.write(out))),
            Frame::Resumed(resumed) => (kind::RESUMED, written(|| resumed.write(out))),
            Frame::Seat(seat) => (kind::SEAT, written(|| seat.write(out))),
            Frame::Unreliable { channel, payload } => {
                out.put_u8(channel.0);
                (kind::UNRELIABLE, payload)
            }
            Frame::Sequenced { channel, key, payload } => {
                out.put_u8(channel.0);
                out.put_varint((*key).into());
                (kind::SEQUENCED, payload)
            }
            Frame::Reliable { channel, number, payload } => {
                out.put_u8(channel.0);
                out.put_varint(*number);
                (kind::RELIABLE, payload)
            }
            Frame::Ordered { channel, number, order, payload } => {
                out.put_u8(channel.0);
                out.put_varint(*number);
                out.put_varint(*order);
                (kind::ORDERED, payload)
            }
            Frame::Fragment(Fragment { id, index, count, part }) => {
                out.put_u16(*id);
                out.put_u8(*index);
                out.put_u8(*count);
                (kind::FRAGMENT, part)
            }
        }
    }

    /// Reads a frame; `None` for a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if the frame is truncated, or if the body of a known kind is malformed.
    pub fn read(reader: &mut Reader) -> Result<Option<Frame>, ReadError> {
        let kind = reader.varint()?;
        let mut body = Reader::new(reader.bytes_max("frame length", limits::STREAM_PACKET_BYTES_MAX)?);
        let frame = match kind {
            kind::HELLO => hello(&mut body)?,
            kind::WELCOME => Frame::Welcome(Box::new(Welcome::read(&mut body)?)),
            kind::REDIRECT => Frame::Redirect(Redirect::read(&mut body)?),
            kind::RETRY_AFTER => Frame::RetryAfter(RetryAfter::read(&mut body)?),
            kind::REFUSED => Frame::Refused(Refusal::read(&mut body)?),
            kind::CLOSE => Frame::Close(CloseReason::read(&mut body)?),
            kind::TIME => Frame::Time(Time::read(&mut body)?),
            kind::RESUME => Frame::Resume(Resume::read(&mut body)?),
            kind::RESUMED => Frame::Resumed(Resumed::read(&mut body)?),
            kind::SEAT => Frame::Seat(Box::new(Seat::read(&mut body)?)),
            kind::UNRELIABLE => {
                Frame::Unreliable { channel: channel(&mut body)?, payload: payload(&mut body)? }
            }
            kind::SEQUENCED => Frame::Sequenced {
                channel: channel(&mut body)?,
                key: body.varint_u32("key")?,
                payload: payload(&mut body)?,
            },
            kind::RELIABLE => Frame::Reliable {
                channel: channel(&mut body)?,
                number: body.varint()?,
                payload: payload(&mut body)?,
            },
            kind::ORDERED => Frame::Ordered {
                channel: channel(&mut body)?,
                number: body.varint()?,
                order: body.varint()?,
                payload: payload(&mut body)?,
            },
            kind::FRAGMENT => Frame::Fragment(Fragment::read(&mut body)?),
            _ => return Ok(None),
        };
        body.finish()?;
        Ok(Some(frame))
    }

    /// The frame's name in PROTOCOL.md.
    pub const fn name(&self) -> &'static str {
        match self {
            Frame::Hello(_) | Frame::ForeignHello { .. } => "Hello",
            Frame::Welcome(_) => "Welcome",
            Frame::Redirect(_) => "Redirect",
            Frame::RetryAfter(_) => "RetryAfter",
            Frame::Refused(_) => "Refused",
            Frame::Close(_) => "Close",
            Frame::Time(_) => "Time",
            Frame::Resume(_) => "Resume",
            Frame::Resumed(_) => "Resumed",
            Frame::Seat(_) => "Seat",
            Frame::Unreliable { .. } => "Unreliable",
            Frame::Sequenced { .. } => "Sequenced",
            Frame::Reliable { .. } => "Reliable",
            Frame::Ordered { .. } => "Ordered",
            Frame::Fragment(_) => "Fragment",
        }
    }
}

fn hello(body: &mut Reader) -> Result<Frame, ReadError> {
    let (version_min, version_max) = (body.u16()?, body.u16()?);
    if version_min.max(limits::VERSION_MIN) > version_max.min(limits::VERSION_MAX) {
        body.rest();
        return Ok(Frame::ForeignHello { version_min, version_max });
    }
    Hello::read(version_min, version_max, body).map(|hello| Frame::Hello(Box::new(hello)))
}

fn written(write: impl FnOnce()) -> &'static [u8] {
    write();
    &[]
}

fn channel(body: &mut Reader) -> Result<ChannelId, ReadError> {
    Ok(ChannelId(body.u8()?))
}

fn payload(body: &mut Reader) -> Result<Bytes, ReadError> {
    if body.remaining() > limits::PAYLOAD_BYTES_MAX {
        return Err(ReadError::OutOfRange { field: "payload length" });
    }
    Ok(body.rest())
}

impl Time {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.sent_us);
        out.put_option(self.echo, |out, echo| {
            out.put_varint(echo.sent_us);
            out.put_varint(echo.held_us);
        });
    }

    fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Time {
            sent_us: body.varint()?,
            echo: body
                .option("echo", |body| Ok(Echo { sent_us: body.varint()?, held_us: body.varint()? }))?,
        })
    }
}

impl Fragment {
    fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let fragment = Fragment { id: body.u16()?, index: body.u8()?, count: body.u8()?, part: body.rest() };
        let last = fragment.index.checked_add(1) == Some(fragment.count);
        let count_fits = (2..=limits::FRAGMENTS_MAX).contains(&usize::from(fragment.count));
        let part_fits = fragment.part.len() == limits::FRAGMENT_BYTES
            || last && (1..=limits::FRAGMENT_BYTES).contains(&fragment.part.len());
        if !count_fits || fragment.index >= fragment.count {
            return Err(ReadError::OutOfRange { field: "fragment index" });
        }
        if !part_fits {
            return Err(ReadError::OutOfRange { field: "fragment length" });
        }
        Ok(fragment)
    }
}
