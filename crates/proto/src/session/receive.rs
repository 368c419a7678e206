//! The receive path: from a packet to messages.

use super::acks::{Arrival, Fate};
use super::inbox::Assembly;
use super::{Event, Message, Rejection, Role, Session, State};
use crate::channel::Lane;
use crate::error::{CloseReason, PeerMisbehaved};
use crate::ids::{ChannelId, Epoch};
use crate::limits;
use crate::link::{Carrier, LinkKind, Packet};
use crate::time::{Instant, Tick};
use crate::wire::cursor::Reader;
use crate::wire::frame::Frame;
use crate::wire::handshake::{Refusal, Welcome};
use crate::wire::header::Header;
use bytes::Bytes;

/// The packet's properties that a frame depends on.
#[derive(Clone, Copy)]
struct Context {
    carrier: Carrier,
    /// The packet's full number, if it has one.
    number: Option<u64>,
    tick: Option<Tick>,
    epoch: Epoch,
    now: Instant,
}

impl Context {
    fn message(&self, channel: ChannelId, key: u32, payload: Bytes) -> Event {
        Event::Message(Message { channel, key, payload, number: None, tick: self.tick, epoch: self.epoch })
    }

    fn numbered(&self, channel: ChannelId, number: u64, payload: Bytes) -> Event {
        let (number, tick, epoch) = (Some(number), self.tick, self.epoch);
        Event::Message(Message { channel, key: 0, payload, number, tick, epoch })
    }

    /// A frame of a reliable lane needs a reliable carrier. A frame that may be lost or duplicated needs a
    /// numbered packet.
    fn check_place(&self, frame: &Frame) -> Result<(), PeerMisbehaved> {
        let may_be_lost = matches!(
            frame,
            Frame::Unreliable { .. } | Frame::Sequenced { .. } | Frame::Fragment(_) | Frame::Time(_)
        );
        if may_be_lost && self.number.is_none() {
            return Err(out_of_place(frame, "in a packet without a number"));
        }
        match (self.carrier, frame) {
            (Carrier::Stream, Frame::Fragment(_)) => Err(out_of_place(frame, "on a stream")),
            (Carrier::Stream, _) | (Carrier::Isolated, Frame::Reliable { .. }) => Ok(()),
            (Carrier::Isolated, _) => Err(out_of_place(frame, "on a stream of its own")),
            (Carrier::Datagram, _) if may_be_lost => Ok(()),
            (Carrier::Datagram, _) => Err(out_of_place(frame, "in a datagram")),
        }
    }
}

pub(super) fn out_of_place(frame: &Frame, when: &'static str) -> PeerMisbehaved {
    PeerMisbehaved::OutOfPlace { frame: frame.name(), when }
}

/// The result of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was used, or its fate is not tracked.
    Yes,
    /// Its message was dropped, so the packet must not be acknowledged: the sender would consider it
    /// delivered.
    No,
}

impl Session {
    /// Handles a packet. Poll events after each: until then they are queued.
    ///
    /// # Errors
    /// [`PeerMisbehaved`] if the packet violates the protocol. The session has closed itself with
    /// [`CloseReason::Misbehaved`] then. The caller may log it, and need not do anything else.
    pub fn handle_packet(&mut self, packet: Packet, now: Instant) -> Result<(), PeerMisbehaved> {
        match self.state {
            State::Closed => return Ok(()),
            State::Closing { .. } => {
                self.take_last_acks(packet);
                return Ok(());
            }
            State::Greeting | State::Deciding | State::Open | State::Resuming { .. } => {}
        }
        self.stats.packets_received += 1;
        self.stats.bytes_received += packet.bytes.len() as u64;
        self.heard = now;
        let result = self.take_packet(packet, now);
        if let Err(misbehaviour) = &result {
            self.close(CloseReason::Misbehaved { detail: misbehaviour.to_string() }, now);
        }
        result
    }

    /// In a closing session only acknowledgements matter, which let the messages before the Close frame be
    /// sent.
    fn take_last_acks(&mut self, packet: Packet) {
        if let Ok(Header { reliable_ack: Some(number), .. }) = Header::read(&mut Reader::new(packet.bytes)) {
            self.outbox.acked(number);
        }
    }

    fn take_packet(&mut self, packet: Packet, now: Instant) -> Result<(), PeerMisbehaved> {
        let Packet { carrier, bytes } = packet;
        let max = match carrier {
            Carrier::Datagram => limits::DATAGRAM_BYTES_MAX,
            Carrier::Stream | Carrier::Isolated => limits::STREAM_PACKET_BYTES_MAX,
        };
        if bytes.len() > max {
            return Err(PeerMisbehaved::Oversized { bytes: bytes.len(), max });
        }
        let is_answered = !matches!(self.state, State::Greeting | State::Resuming { .. });
        if !is_answered && self.role == Role::Client && carrier == Carrier::Datagram {
            // It overtook the answer. It is not acknowledged, so its sender counts it as lost.
            self.stats.packets_early += 1;
            return Ok(());
        }
        self.peer_is_open |= self.state == State::Open;
        let mut reader = Reader::new(bytes);
        let header = Header::read(&mut reader).map_err(PeerMisbehaved::malformed("a packet's header"))?;
        self.take_acks(&header)?;
        let number = header.sequence.map(|wire| self.received.expand(wire));
        if number.is_some_and(|number| self.received.note(number) == Arrival::Repeated) {
            self.stats.packets_repeated += 1;
            return Ok(());
        }
        let tick = header.tick.zip(self.tick).map(|(wire, near)| Tick::from_wire(wire, near));
        let context = Context { carrier, number, tick, epoch: header.epoch, now };
        let taken = self.take_frames(&mut reader, context)?;
        if let Some(number) = number.filter(|_| taken == Taken::Yes) {
            self.received.take(number);
        }
        Ok(())
    }

    fn take_acks(&mut self, header: &Header) -> Result<(), PeerMisbehaved> {
        let mut fates: Vec<Fate> = Vec::new();
        if let Some(ack) = header.ack {
            let in_order = !self.link.is_some_and(LinkKind::has_datagrams);
            self.in_flight.acked(ack, in_order, &mut fates)?;
        }
        self.report(fates);
        match header.reliable_ack {
            Some(number) if !self.outbox.acked(number) => {
                Err(PeerMisbehaved::AckedTheFuture { what: "reliable message" })
            }
            _ => Ok(()),
        }
    }

    fn ack_soon(&mut self, now: Instant) {
        let is_speaking = self.spoke_at.is_some_and(|at| now <= at + limits::ACK_DELAY_MAX * 3 / 2);
        let delay = if is_speaking { limits::ACK_DELAY_MAX } else { limits::ACK_DELAY_OF_LISTENER };
        self.ack_by.get_or_insert(now + delay);
    }

    fn ack_reliable(&mut self, payload: &Bytes, now: Instant) {
        self.ack_soon(now);
        self.unacked_bytes += payload.len();
        if self.unacked_bytes >= limits::ACK_AT_ONCE_BYTES {
            self.ack_due = true;
        }
    }

    fn take_frames(&mut self, reader: &mut Reader, context: Context) -> Result<Taken, PeerMisbehaved> {
        let mut all = Taken::Yes;
        for _ in 0..limits::FRAMES_PER_PACKET_MAX {
            if reader.is_empty() || self.state == State::Closed {
                return Ok(all);
            }
            let frame = Frame::read(reader).map_err(PeerMisbehaved::malformed("a frame"))?;
            // A Time frame needs no acknowledgement: its answer, or the next one, serves as one.
            if context.number.is_some() && !matches!(frame, Some(Frame::Time(_))) {
                self.ack_soon(context.now);
            }
            match frame {
                Some(frame) => {
                    if self.take_frame(frame, context)? == Taken::No {
                        all = Taken::No;
                    }
                }
                None => self.stats.frames_unknown += 1,
            }
        }
        if reader.is_empty() { Ok(all) } else { Err(PeerMisbehaved::TooManyFrames) }
    }

    fn take_frame(&mut self, frame: Frame, context: Context) -> Result<Taken, PeerMisbehaved> {
        context.check_place(&frame)?;
        match (&self.state, self.role, frame) {
            (State::Closing { .. } | State::Closed, _, _) => Ok(Taken::Yes),
            (
                State::Open | State::Resuming { .. },
                Role::Client,
                Frame::Close(CloseReason::Moved { address }),
            ) if self.is_resumable => {
                self.detach();
                self.events.push_back(Event::Moved(address));
                Ok(Taken::Yes)
            }
            (_, _, Frame::Close(reason)) => {
                self.end(reason);
                Ok(Taken::Yes)
            }
            (State::Greeting, Role::Server, frame) => self.take_hello(frame, context.now),
            (State::Greeting, Role::Client, frame) => self.take_answer(frame, context.now),
            (State::Resuming { .. }, _, frame) => self.take_resume_answer(frame, context.now),
            (State::Deciding, _, frame) => Err(out_of_place(&frame, "before the answer to Hello or Resume")),
            (State::Open, _, Frame::Time(time)) => {
                self.timesync.heard(time, context.now);
                if self.role == Role::Server {
                    self.time_due = true;
                    self.check_idle();
                }
                Ok(Taken::Yes)
            }
            (State::Open, Role::Client, Frame::Seat(seat)) => {
                self.events.push_back(Event::Seat(seat));
                Ok(Taken::Yes)
            }
            (State::Open, _, frame) => self.take_message(frame, context),
        }
    }

    fn take_hello(&mut self, frame: Frame, now: Instant) -> Result<Taken, PeerMisbehaved> {
        match frame {
            Frame::Hello(hello) => {
                self.table = hello.channels.clone();
                self.state = State::Deciding;
                self.events.push_back(Event::Hello(hello));
            }
            Frame::Resume(resume) => self.take_resume(resume),
            Frame::ForeignHello { .. } => {
                let (min, max) = (limits::VERSION_MIN, limits::VERSION_MAX);
                let away = Rejection::Refused(Refusal::Version { min, max });
                self.reject(away.clone(), now);
                self.events.push_back(Event::Rejected(away));
            }
            frame => return Err(out_of_place(&frame, "before Hello")),
        }
        Ok(Taken::Yes)
    }

    fn take_answer(&mut self, frame: Frame, now: Instant) -> Result<Taken, PeerMisbehaved> {
        let away = match frame {
            Frame::Welcome(welcome) => return self.take_welcome(welcome, now),
            Frame::Redirect(redirect) => Rejection::Redirect(redirect),
            Frame::RetryAfter(retry) => Rejection::RetryAfter(retry),
            Frame::Refused(refusal) => Rejection::Refused(refusal),
            frame => return Err(out_of_place(&frame, "before the answer to Hello")),
        };
        self.state = State::Closed;
        self.events.push_back(Event::Rejected(away));
        Ok(Taken::Yes)
    }

    fn take_welcome(&mut self, welcome: Box<Welcome>, now: Instant) -> Result<Taken, PeerMisbehaved> {
        if !(limits::VERSION_MIN..=limits::VERSION_MAX).contains(&welcome.version) {
            return Err(PeerMisbehaved::OutOfPlace {
                frame: "Welcome",
                when: "in a version that was not offered",
            });
        }
        self.adopt(&welcome);
        self.time_due = true;
        self.time_at = Some(now + self.first_time_interval());
        self.events.push_back(Event::Welcome(welcome));
        Ok(Taken::Yes)
    }

    fn take_message(&mut self, frame: Frame, context: Context) -> Result<Taken, PeerMisbehaved> {
        match frame {
            Frame::Unreliable { channel, payload } => {
                self.expect_lane(channel, Lane::Unreliable)?;
                self.give(context.message(channel, 0, payload));
            }
            Frame::Sequenced { channel, key, payload } => {
                self.expect_lane(channel, Lane::UnreliableSequenced)?;
                if context.number.is_none_or(|number| !self.sequenced.is_newest(channel, key, number)) {
                    self.stats.messages_outdated += 1;
                    return Ok(Taken::No);
                }
                self.give(context.message(channel, key, payload));
            }
            Frame::Reliable { .. } | Frame::Ordered { .. } if self.is_deaf => {}
            Frame::Reliable { channel, number, payload } => {
                self.expect_lane(channel, Lane::ReliableUnordered)?;
                self.ack_reliable(&payload, context.now);
                if self.reliable.note(number)? {
                    self.give(context.numbered(channel, number, payload));
                }
            }
            Frame::Ordered { channel, number, order, payload } => {
                self.expect_lane(channel, Lane::ReliableOrdered)?;
                self.ack_reliable(&payload, context.now);
                if self.reliable.note(number)? {
                    let (events, stats) = (&mut self.events, &mut self.stats);
                    self.reliable.order(channel, (order, number), payload, |number, payload| {
                        stats.messages_received += 1;
                        events.push_back(context.numbered(channel, number, payload));
                    })?;
                }
            }
            Frame::Fragment(fragment) => {
                return match self.fragments.add(fragment, context.now) {
                    Assembly::Kept => Ok(Taken::Yes),
                    Assembly::Whole(whole) => self.take_assembled(whole, context),
                    Assembly::Dropped => Ok(Taken::No),
                };
            }
            frame => return Err(out_of_place(&frame, "in an open session")),
        }
        Ok(Taken::Yes)
    }

    fn give(&mut self, message: Event) {
        self.stats.messages_received += 1;
        self.events.push_back(message);
    }

    /// Reassembled fragments must be one unreliable message: other frames could nest or repeat without bound.
    fn take_assembled(&mut self, whole: Bytes, context: Context) -> Result<Taken, PeerMisbehaved> {
        let malformed = || PeerMisbehaved::malformed("a fragmented message");
        let mut reader = Reader::new(whole);
        let frame = Frame::read(&mut reader).map_err(malformed())?;
        reader.finish().map_err(malformed())?;
        match frame {
            Some(frame @ (Frame::Unreliable { .. } | Frame::Sequenced { .. })) => {
                self.take_message(frame, context)
            }
            Some(frame) => Err(out_of_place(&frame, "in fragments")),
            None => {
                self.stats.frames_unknown += 1;
                Ok(Taken::Yes)
            }
        }
    }

    fn expect_lane(&self, channel: ChannelId, lane: Lane) -> Result<(), PeerMisbehaved> {
        match self.table.get(channel) {
            Some(row) if row.lane == lane => Ok(()),
            _ => Err(PeerMisbehaved::WrongLane { channel, lane }),
        }
    }
}
