//! What waits to go out on one connection. Records, isolated packets and datagrams go their own ways, so that none waits for
//! another. A queue takes packets until it holds its capacity, so it never holds more than that and one packet.

use super::super::framing::record_head;
use super::super::link::CAPACITY;
use super::super::{ISOLATED_IN_FLIGHT_BYTES_MAX, STREAM_TYPE_ISOLATED, STREAMS_MAX};
use crate::closed::{LinkClosed, Violation};
use crate::outbox::SendError;
use bytes::Bytes;
use parlor_proto::{Carrier, Packet};
use quinn_proto::{Connection, Dir, SendDatagramError, StreamId};
use std::collections::VecDeque;

/// What one chunk of a queue counts beside its bytes, so that empty packets fill a queue too.
const CHUNK_OVERHEAD_BYTES: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// The one for which the library's buffer had no room; on a path that is starved the newest of all.
    datagram: Option<Bytes>,
    /// The path takes next to nothing.
    is_starved: bool,
    /// Carriers of which the owner was told that they take nothing: it will be told when they do.
    full: [bool; 3],
    /// What a connection needs on whose streams something is sent.
    streams: Option<Box<Streams>>,
}

#[derive(Debug, Default)]
struct Streams {
    /// The library may take more of what waits.
    is_ready: bool,
    records: Records,
    isolated: Isolated,
}

#[derive(Debug, Default)]
struct Records {
    /// Heads and records, in turn; the first of them may be there in part.
    chunks: VecDeque<Bytes>,
    bytes: usize,
    stream: Option<StreamId>,
    /// How far the stream's end is under way.
    end: End,
}

/// How far the end of the stream of records is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// It is open, or was never needed.
    #[default]
    Open,
    /// It is finished, and the peer does not have all of it yet.
    Sent,
    /// The peer has all of it.
    Arrived,
}

#[derive(Debug, Default)]
struct Isolated {
    packets: VecDeque<Bytes>,
    bytes: usize,
    /// The one whose stream is not written to its end.
    begun: Option<(StreamId, [Bytes; 2])>,
    /// Streams that the peer does not have to their ends, and the bytes of their packets.
    under_way: Vec<(StreamId, usize)>,
}

impl Outbound {
    /// Takes a packet, or says why not.
    pub(super) fn push(&mut self, connection: &mut Connection, packet: Packet) -> Result<(), SendError> {
        if !self.is_writable(packet.carrier) {
            self.full[place(packet.carrier)] = true;
            return Err(SendError::NotWritable(packet));
        }
        match packet.carrier {
            Carrier::Datagram if self.is_starved => self.datagram = Some(packet.bytes),
            Carrier::Datagram => match connection.datagrams().send(packet.bytes, false) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked(bytes)) => self.datagram = Some(bytes),
                Err(_) => return Err(SendError::Closed(LinkClosed::NotParlor(Violation::NoDatagrams))),
            },
            Carrier::Stream => self.streams().records.push(packet.bytes),
            Carrier::Isolated => self.streams().isolated.push(packet.bytes),
        }
        Ok(())
    }

    /// Takes a packet after which the link is closed, whether or not there is room. A datagram may be lost.
    pub(super) fn push_last(&mut self, connection: &mut Connection, packet: Packet) {
        match packet.carrier {
            Carrier::Datagram => {
                if let Err(error) = connection.datagrams().send(packet.bytes, false) {
                    tracing::trace!(%error, "a last datagram was not sent");
                }
            }
            Carrier::Stream => self.streams().records.push(packet.bytes),
            Carrier::Isolated => self.streams().isolated.push(packet.bytes),
        }
    }

    /// For something that is to be sent on streams.
    fn streams(&mut self) -> &mut Streams {
        let streams = self.streams.get_or_insert_default();
        streams.is_ready = true;
        streams
    }

    /// Whether the next packet on this carrier would be taken.
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

    /// Gives the library what it takes. While the path `is_starved` that is one datagram at a time, the newest, and older ones are
    /// dropped: what goes first when the path is back is then not what was news when it broke. `has_none` says whether the library
    /// has no datagram.
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
            streams.records.write(connection);
            streams.isolated.write(connection);
        }
        Ok(())
    }

    /// A carrier that takes packets again, of which the owner was told that it does not.
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

    /// The library may take more.
    pub(super) fn room_came(&mut self) {
        if let Some(streams) = &mut self.streams {
            streams.is_ready = true;
        }
    }

    /// The peer has all of a stream.
    pub(super) fn arrived(&mut self, id: StreamId) {
        let Some(streams) = &mut self.streams else { return };
        if streams.records.stream == Some(id) {
            streams.records.end = End::Arrived;
        }
        streams.isolated.under_way.retain(|(under_way, _)| *under_way != id);
        streams.is_ready = true;
    }

    /// Nothing will be added: ends the stream of records once all of it is written.
    pub(super) fn finish(&mut self, connection: &mut Connection) {
        if let Some(streams) = &mut self.streams {
            streams.records.finish(connection);
        }
    }

    /// Whether the peer has all that went on streams, after [`finish`](Self::finish), and the library all datagrams.
    pub(super) fn is_done(&self) -> bool {
        let are_streams_done = self
            .streams
            .as_ref()
            .is_none_or(|streams| streams.records.is_done() && streams.isolated.is_done());
        self.datagram.is_none() && are_streams_done
    }
}

impl Records {
    fn push(&mut self, record: Bytes) {
        let is_first = self.stream.is_none() && self.chunks.is_empty();
        let head = record_head(record.len(), is_first);
        self.bytes += head.len() + record.len() + 2 * CHUNK_OVERHEAD_BYTES;
        self.chunks.push_back(head);
        self.chunks.push_back(record);
    }

    fn write(&mut self, connection: &mut Connection) {
        if self.chunks.is_empty() || self.end != End::Open {
            return;
        }
        let Some(id) = self.stream.or_else(|| connection.streams().open(Dir::Uni)) else { return };
        self.stream = Some(id);
        while !self.chunks.is_empty() {
            // A stream that the peer stopped is told by the library's events, and then nothing is written.
            let Ok(written) = connection.send_stream(id).write_chunks(self.chunks.make_contiguous()) else {
                return;
            };
            self.bytes -= written.bytes + written.chunks * CHUNK_OVERHEAD_BYTES;
            self.chunks.drain(..written.chunks);
        }
        // It was a burst; a queue that is in use keeps a few places.
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

    /// How many packets and how many bytes may be under way is bounded, so that a receiver can bound what it holds of
    /// unfinished ones.
    fn write(&mut self, connection: &mut Connection) {
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
                let Some(id) = connection.streams().open(Dir::Uni) else { return };
                let Some(packet) = self.packets.pop_front() else { return };
                self.bytes -= packet.len() + 2 * CHUNK_OVERHEAD_BYTES;
                self.under_way.push((id, packet.len()));
                self.begun = Some((id, [Bytes::from_static(&[STREAM_TYPE_ISOLATED]), packet]));
            }
            let Some((id, chunks)) = &mut self.begun else { return };
            let mut stream = connection.send_stream(*id);
            while chunks.iter().any(|chunk| !chunk.is_empty()) {
                // See above for a stream that was stopped.
                let Ok(_) = stream.write_chunks(chunks) else { return };
            }
            // It fails only for a stream that is stopped.
            let _ = stream.finish();
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
