//! The send queues of one connection. Records, isolated packets and datagrams are independent, so that none
//! blocks another. A queue accepts packets until its capacity is reached, so it holds at most that and one
//! packet.

use super::super::framing::record_head;
use super::super::link::CAPACITY;
use super::super::webtransport::{Limits, framed};
use super::super::{ISOLATED_IN_FLIGHT_BYTES_MAX, STREAM_TYPE_ISOLATED, STREAMS_MAX};
use crate::closed::{LinkClosed, Violation};
use crate::outbox::SendError;
use bytes::Bytes;
use parlor_proto::{Carrier, Packet};
use quinn_proto::{Connection, Dir, SendDatagramError, SendStream, StreamId, Written};
use std::collections::VecDeque;

/// Overhead of a queued chunk beside its bytes, so that empty packets fill a queue too.
const CHUNK_OVERHEAD_BYTES: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// How a WebTransport session marks and limits what it sends; `None` on a connection of its own.
    session: Option<Box<Session>>,
    /// The datagram that found no room in the library's buffer; on a starved path the newest.
    datagram: Option<Bytes>,
    /// The path carries next to nothing.
    is_starved: bool,
    /// Carriers reported as full to the owner: it gets an event when they are writable again.
    full: [bool; 3],
    /// The state of a connection that sends on streams.
    streams: Option<Box<Streams>>,
}

#[derive(Debug)]
struct Session {
    /// The beginning of each stream, which counts against no limit.
    stream_prefix: Bytes,
    datagram_prefix: Bytes,
    limits: Limits,
    /// What was sent, by the limits' measure.
    sent_bytes: u64,
    sent_streams: u64,
}

#[derive(Debug, Default)]
struct Streams {
    /// The library may accept more of the queue.
    is_ready: bool,
    records: Records,
    isolated: Isolated,
}

#[derive(Debug, Default)]
struct Records {
    /// Heads and records, alternating; the first chunk may be partly written.
    chunks: VecDeque<Bytes>,
    bytes: usize,
    stream: Option<StreamId>,
    /// Bytes of the stream's prefix that are not written.
    prefix_bytes: usize,
    /// The state of the stream's end.
    end: End,
}

/// The state of the end of the record stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// It is open, or was never used.
    #[default]
    Open,
    /// It is finished; the peer has not acknowledged all of it.
    Sent,
    /// The peer has acknowledged all of it.
    Arrived,
}

#[derive(Debug, Default)]
struct Isolated {
    packets: VecDeque<Bytes>,
    bytes: usize,
    /// The packet whose stream is not completely written.
    begun: Option<Box<Begun>>,
    /// Streams that the peer has not completely acknowledged, with the bytes of their packets.
    under_way: Vec<(StreamId, usize)>,
}

#[derive(Debug)]
struct Begun {
    id: StreamId,
    chunks: [Bytes; 3],
    /// Bytes of the stream's prefix that are not written.
    prefix_bytes: usize,
}

impl Outbound {
    /// Sends within a WebTransport session from now on.
    pub(super) fn enter(&mut self, (stream, datagram): (Vec<u8>, Vec<u8>), limits: Limits) {
        let (stream_prefix, datagram_prefix) = (stream.into(), datagram.into());
        let session = Session { stream_prefix, datagram_prefix, limits, sent_bytes: 0, sent_streams: 0 };
        self.session = Some(Box::new(session));
    }

    /// Records the session's limits, which may have risen.
    pub(super) fn allow(&mut self, limits: Limits) {
        if let Some(session) = &mut self.session
            && session.limits != limits
        {
            session.limits = limits;
            self.room_came();
        }
    }

    /// A datagram as the connection carries it.
    fn framed(&self, packet: Bytes) -> Bytes {
        match &self.session {
            None => packet,
            Some(session) => framed(&session.datagram_prefix, &packet),
        }
    }

    /// Accepts a packet, or returns why not.
    pub(super) fn push(&mut self, connection: &mut Connection, packet: Packet) -> Result<(), SendError> {
        if !self.is_writable(packet.carrier) {
            self.full[place(packet.carrier)] = true;
            return Err(SendError::NotWritable(packet));
        }
        match packet.carrier {
            Carrier::Datagram if self.is_starved => self.datagram = Some(self.framed(packet.bytes)),
            Carrier::Datagram => match connection.datagrams().send(self.framed(packet.bytes), false) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked(bytes)) => self.datagram = Some(bytes),
                Err(_) => return Err(SendError::Closed(LinkClosed::NotParlor(Violation::NoDatagrams))),
            },
            Carrier::Stream => self.streams().records.push(packet.bytes),
            Carrier::Isolated => self.streams().isolated.push(packet.bytes),
        }
        Ok(())
    }

    /// Accepts a last packet before closing, even without room. A datagram may be lost.
    pub(super) fn push_last(&mut self, connection: &mut Connection, packet: Packet) {
        match packet.carrier {
            Carrier::Datagram => {
                if let Err(error) = connection.datagrams().send(self.framed(packet.bytes), false) {
                    tracing::trace!(%error, "a last datagram was not sent");
                }
            }
            Carrier::Stream => self.streams().records.push(packet.bytes),
            Carrier::Isolated => self.streams().isolated.push(packet.bytes),
        }
    }

    /// The stream state, created when first needed.
    fn streams(&mut self) -> &mut Streams {
        let streams = self.streams.get_or_insert_default();
        streams.is_ready = true;
        streams
    }

    /// Whether the next packet on this carrier would be accepted.
    pub(super) fn is_writable(&self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::Datagram => self.is_starved || self.datagram.is_none(),
            Carrier::Stream => {
                self.streams.as_ref().is_none_or(|streams| streams.records.bytes < CAPACITY.stream_bytes)
            }
            Carrier::Isolated => {
                self.streams.as_ref().is_none_or(|streams| streams.isolated.bytes < CAPACITY.isolated_bytes)
            }
        }
    }

    /// Passes queued packets to the library. While the path `is_starved`, that is only one datagram at a
    /// time, the newest, and older ones are dropped. Otherwise the first packets after an interruption would
    /// be outdated. `has_none` says whether the library has no datagram.
    pub(super) fn pump(
        &mut self,
        connection: &mut Connection,
        is_starved: bool,
        has_none: bool,
    ) -> Result<(), Violation> {
        self.is_starved = is_starved;
        if let Some(bytes) = self.datagram.take_if(|_| has_none || !is_starved) {
            match connection.datagrams().send(bytes, false) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked(bytes)) => self.datagram = Some(bytes),
                Err(_) => return Err(Violation::NoDatagrams),
            }
        }
        if let Some(streams) = &mut self.streams
            && core::mem::take(&mut streams.is_ready)
        {
            let session = self.session.as_deref_mut();
            streams.write(connection, session);
        }
        Ok(())
    }

    /// Returns a carrier that was reported as full and is writable again.
    pub(super) fn poll_writable(&mut self) -> Option<Carrier> {
        let carriers = [Carrier::Datagram, Carrier::Stream, Carrier::Isolated];
        let carrier =
            carriers.into_iter().find(|carrier| self.full[place(*carrier)] && self.is_writable(*carrier))?;
        self.full[place(carrier)] = false;
        Some(carrier)
    }

    /// Whether a datagram waits for room in the library's buffer, or would.
    pub(super) fn lacks_room(&self) -> bool {
        self.is_starved || self.datagram.is_some()
    }

    /// Records that the library may accept more.
    pub(super) fn room_came(&mut self) {
        if let Some(streams) = &mut self.streams {
            streams.is_ready = true;
        }
    }

    /// Records that the peer has acknowledged a whole stream.
    pub(super) fn arrived(&mut self, id: StreamId) {
        let Some(streams) = &mut self.streams else { return };
        if streams.records.stream == Some(id) {
            streams.records.end = End::Arrived;
        }
        streams.isolated.under_way.retain(|(under_way, _)| *under_way != id);
        streams.is_ready = true;
    }

    /// Ends the record stream once all of it is written: nothing will be added.
    pub(super) fn finish(&mut self, connection: &mut Connection) {
        if let Some(streams) = &mut self.streams {
            streams.records.finish(connection);
        }
    }

    /// Whether, after [`finish`](Self::finish), the peer has acknowledged all streams, and the library has
    /// taken all datagrams.
    pub(super) fn is_done(&self) -> bool {
        let are_streams_done = self
            .streams
            .as_ref()
            .is_none_or(|streams| streams.records.is_done() && streams.isolated.is_done());
        self.datagram.is_none() && are_streams_done
    }
}

impl Streams {
    fn write(&mut self, connection: &mut Connection, mut session: Option<&mut Session>) {
        self.records.write(connection, session.as_deref_mut());
        self.isolated.write(connection, session);
    }
}

impl Session {
    /// Opens a stream of a session, if its limits allow.
    fn open(session: &mut Option<&mut Self>, connection: &mut Connection) -> Option<(StreamId, Bytes)> {
        let Some(session) = session else {
            return Some((connection.streams().open(Dir::Uni)?, Bytes::new()));
        };
        if session.sent_streams >= session.limits.streams {
            return None;
        }
        let id = connection.streams().open(Dir::Uni)?;
        session.sent_streams += 1;
        Some((id, session.stream_prefix.clone()))
    }

    /// Writes what the library and the session's limits allow. Chunks lose what is written. `None` if nothing
    /// more can be written at the moment.
    fn write(
        session: Option<&mut Self>,
        connection: &mut Connection,
        id: StreamId,
        chunks: &mut [Bytes],
        prefix_bytes: &mut usize,
    ) -> Option<Written> {
        let mut stream = connection.send_stream(id);
        // The library reports a stopped stream as an event, and nothing is written then.
        let Some(session) = session else { return stream.write_chunks(chunks).ok() };
        let left = session.limits.bytes.saturating_sub(session.sent_bytes);
        let left = usize::try_from(left).unwrap_or(usize::MAX).saturating_add(*prefix_bytes);
        let written = if chunks.iter().map(Bytes::len).sum::<usize>() <= left {
            stream.write_chunks(chunks).ok()?
        } else {
            write_some(&mut stream, chunks, left)?
        };
        let of_prefix = written.bytes.min(*prefix_bytes);
        *prefix_bytes -= of_prefix;
        session.sent_bytes += (written.bytes - of_prefix) as u64;
        Some(written)
    }
}

/// Writes at most `left` bytes.
fn write_some(stream: &mut SendStream<'_>, chunks: &mut [Bytes], left: usize) -> Option<Written> {
    let mut all = Written::default();
    for chunk in chunks {
        let mut part = [chunk.slice(..chunk.len().min(left - all.bytes))];
        if part[0].is_empty() && !chunk.is_empty() {
            break;
        }
        let written = stream.write_chunks(&mut part).ok();
        let bytes = written.map_or(0, |written| written.bytes);
        all.bytes += bytes;
        let _ = chunk.split_to(bytes);
        if !chunk.is_empty() {
            break;
        }
        all.chunks += 1;
    }
    (all.bytes > 0).then_some(all)
}

impl Records {
    fn push(&mut self, record: Bytes) {
        let is_first = self.stream.is_none() && self.chunks.is_empty();
        let head = record_head(record.len(), is_first);
        self.bytes += head.len() + record.len() + 2 * CHUNK_OVERHEAD_BYTES;
        self.chunks.push_back(head);
        self.chunks.push_back(record);
    }

    fn write(&mut self, connection: &mut Connection, mut session: Option<&mut Session>) {
        if self.chunks.is_empty() || self.end != End::Open {
            return;
        }
        let id = match self.stream {
            Some(id) => id,
            None => {
                let Some((id, prefix)) = Session::open(&mut session, connection) else { return };
                self.prefix_bytes = prefix.len();
                if !prefix.is_empty() {
                    self.bytes += prefix.len() + CHUNK_OVERHEAD_BYTES;
                    self.chunks.push_front(prefix);
                }
                *self.stream.insert(id)
            }
        };
        while !self.chunks.is_empty() {
            let chunks = self.chunks.make_contiguous();
            let session = session.as_deref_mut();
            let Some(written) = Session::write(session, connection, id, chunks, &mut self.prefix_bytes)
            else {
                return;
            };
            self.bytes -= written.bytes + written.chunks * CHUNK_OVERHEAD_BYTES;
            self.chunks.drain(..written.chunks);
        }
        // After a burst: a queue in normal use keeps a few entries.
        self.chunks.shrink_to(8);
    }

    fn finish(&mut self, connection: &mut Connection) {
        if let Some(id) = self.stream
            && self.chunks.is_empty()
            && self.end == End::Open
        {
            self.end = match connection.send_stream(id).finish() {
                Ok(()) => End::Sent,
                // It is stopped or over: nothing more can arrive.
                Err(_) => End::Arrived,
            };
        }
    }

    fn is_done(&self) -> bool {
        self.chunks.is_empty() && (self.stream.is_none() || self.end == End::Arrived)
    }
}

impl Isolated {
    fn push(&mut self, packet: Bytes) {
        self.bytes += packet.len() + 2 * CHUNK_OVERHEAD_BYTES;
        self.packets.push_back(packet);
    }

    /// Writes isolated packets. The number of packets and bytes in flight is bounded, so that a receiver can
    /// bound its unfinished ones.
    fn write(&mut self, connection: &mut Connection, mut session: Option<&mut Session>) {
        loop {
            if self.begun.is_none() {
                let Some(next) = self.packets.front() else { return };
                let bytes_under_way: usize = self.under_way.iter().map(|(_, bytes)| bytes).sum();
                let has_room = self.under_way.is_empty()
                    || self.under_way.len() < STREAMS_MAX as usize
                        && bytes_under_way + next.len() <= ISOLATED_IN_FLIGHT_BYTES_MAX;
                if !has_room {
                    return;
                }
                let Some((id, prefix)) = Session::open(&mut session, connection) else { return };
                let Some(packet) = self.packets.pop_front() else { return };
                self.bytes -= packet.len() + 2 * CHUNK_OVERHEAD_BYTES;
                self.under_way.push((id, packet.len()));
                let prefix_bytes = prefix.len();
                let chunks = [prefix, Bytes::from_static(&[STREAM_TYPE_ISOLATED]), packet];
                self.begun = Some(Box::new(Begun { id, chunks, prefix_bytes }));
            }
            let Some(Begun { id, chunks, prefix_bytes }) = self.begun.as_deref_mut() else { return };
            while chunks.iter().any(|chunk| !chunk.is_empty()) {
                let session = session.as_deref_mut();
                let Some(_) = Session::write(session, connection, *id, chunks, prefix_bytes) else { return };
            }
            // Fails only for a stopped stream.
            let _ = connection.send_stream(*id).finish();
            self.begun = None;
        }
    }

    fn is_done(&self) -> bool {
        self.packets.is_empty() && self.begun.is_none() && self.under_way.is_empty()
    }
}

fn place(carrier: Carrier) -> usize {
    match carrier {
        Carrier::Datagram => 0,
        Carrier::Stream => 1,
        Carrier::Isolated => 2,
    }
}
