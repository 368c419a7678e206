//! Received data of one connection. It is read only as far as the engine's owner takes it, so flow control
//! slows a peer whose packets are not taken.

use super::super::framing::{self, Records, StreamType};
use super::super::webtransport::unframed;
use crate::closed::Violation;
use bytes::BytesMut;
use parlor_proto::{Carrier, Packet};
use quinn_proto::{Connection, Dir, ReadError, StreamId};

/// Bytes read from a stream at once.
const READ_BYTES: usize = 4 * 1024;

/// Limits of one connection in one turn, so that none delays the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) packets: usize,
    pub(super) bytes: usize,
}

impl Budget {
    pub(super) const TURN: Budget = Budget { packets: 64, bytes: 64 * 1024 };
    pub(super) const NONE: Budget = Budget { packets: 0, bytes: 0 };
    pub(super) const ALL: Budget = Budget { packets: usize::MAX, bytes: usize::MAX };

    fn is_spent(self) -> bool {
        self.packets == 0 || self.bytes == 0
    }

    fn spend(&mut self, packet: &Packet) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(packet.bytes.len());
    }
}

#[derive(Debug, Default)]
pub(super) struct Inbound {
    /// There may be unread datagrams.
    has_datagrams: bool,
    /// There may be unread stream data.
    has_streams: bool,
    /// A quarter of the WebTransport session's id, which precedes each datagram; `None` on a connection of
    /// its own.
    session: Option<u64>,
    /// The state of a connection whose peer sends on streams.
    streams: Option<Box<Streams>>,
}

#[derive(Debug, Default)]
struct Streams {
    records: Option<(StreamId, Records)>,
    had_records: bool,
    /// Streams of unknown type, and incomplete isolated packets. Its memory is freed when it is empty.
    begun: Vec<Begun>,
    unfinished_bytes: usize,
}

#[derive(Debug)]
struct Begun {
    id: StreamId,
    is_isolated: bool,
    packet: BytesMut,
}

/// The result of reading a stream.
pub(super) enum Read {
    /// It has no more data at the moment.
    Blocked,
    /// It ended.
    Ended,
}

/// The state of a started stream.
enum Turned {
    /// Its type is unknown, or it is incomplete.
    Open,
    Records,
    Packet(BytesMut),
}

impl Inbound {
    /// Records that the library has datagrams.
    pub(super) fn datagrams_came(&mut self) {
        self.has_datagrams = true;
    }

    /// Records that a stream was opened or is readable.
    pub(super) fn streams_came(&mut self) {
        self.has_streams = true;
    }

    /// Reads within a WebTransport session from now on: all that came before is of it.
    pub(super) fn enter(&mut self, session: u64) {
        *self = Inbound { session: Some(session / 4), has_datagrams: true, ..Inbound::default() };
    }

    /// Adds a stream of the WebTransport session, whose prefix is read.
    pub(super) fn begin(&mut self, id: StreamId) {
        let begun = Begun { id, is_isolated: false, packet: BytesMut::new() };
        self.streams.get_or_insert_default().begun.push(begun);
        self.has_streams = true;
    }

    /// A quarter of the WebTransport session's id.
    pub(super) fn session(&self) -> Option<u64> {
        self.session.map(|quarter| quarter * 4)
    }

    /// Whether a stream may have something to read.
    pub(super) fn may_read_streams(&self) -> bool {
        self.has_streams
    }

    /// Records that no stream has something to read.
    pub(super) fn streams_read(&mut self) {
        self.has_streams = false;
    }

    /// Whether there may be something to take.
    pub(super) fn is_ready(&self) -> bool {
        self.has_datagrams || self.has_streams
    }

    /// Takes packets of each carrier within the budget.
    pub(super) fn take(
        &mut self,
        connection: &mut Connection,
        budget: Budget,
        mut give: impl FnMut(Packet),
    ) -> Result<(), Violation> {
        if self.has_datagrams {
            self.has_datagrams = take_datagrams(connection, self.session, budget, &mut give)?;
        }
        if self.has_streams {
            let streams = self.streams.get_or_insert_default();
            // Within a session HTTP/3 accepts streams.
            if self.session.is_none() {
                streams.accept(connection);
            }
            let mut of_isolated = budget;
            streams.take_begun(connection, &mut of_isolated, &mut give)?;
            let mut of_records = budget;
            streams.take_records(connection, &mut of_records, &mut give)?;
            self.has_streams = of_isolated.is_spent() || of_records.is_spent();
        }
        Ok(())
    }
}

/// Whether there may be more.
fn take_datagrams(
    connection: &mut Connection,
    session: Option<u64>,
    mut budget: Budget,
    give: &mut impl FnMut(Packet),
) -> Result<bool, Violation> {
    while !budget.is_spent() {
        let Some(mut bytes) = connection.datagrams().recv() else { return Ok(false) };
        if let Some(session) = session {
            bytes = unframed(bytes, session)?;
        }
        let packet = framing::datagram(bytes)?;
        budget.spend(&packet);
        give(packet);
    }
    Ok(true)
}

impl Streams {
    fn accept(&mut self, connection: &mut Connection) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.begun.push(Begun { id, is_isolated: false, packet: BytesMut::new() });
        }
    }

    fn take_begun(
        &mut self,
        connection: &mut Connection,
        budget: &mut Budget,
        give: &mut impl FnMut(Packet),
    ) -> Result<(), Violation> {
        let mut at = 0;
        while at < self.begun.len() && !budget.is_spent() {
            match self.begun[at].read(connection, &mut self.unfinished_bytes)? {
                Turned::Open => at += 1,
                Turned::Records if self.had_records => return Err(Violation::SecondRecordStream),
                Turned::Records => {
                    self.had_records = true;
                    self.records = Some((self.begun.remove(at).id, Records::default()));
                }
                Turned::Packet(bytes) => {
                    self.begun.remove(at);
                    self.unfinished_bytes -= bytes.len();
                    let packet = Packet { carrier: Carrier::Isolated, bytes: bytes.freeze() };
                    budget.spend(&packet);
                    give(packet);
                }
            }
        }
        if self.begun.is_empty() {
            self.begun = Vec::new();
        }
        Ok(())
    }

    fn take_records(
        &mut self,
        connection: &mut Connection,
        budget: &mut Budget,
        give: &mut impl FnMut(Packet),
    ) -> Result<(), Violation> {
        let Some((id, records)) = &mut self.records else { return Ok(()) };
        let read = loop {
            while !budget.is_spent()
                && let Some(bytes) = records.take()?
            {
                let packet = Packet { carrier: Carrier::Stream, bytes };
                budget.spend(&packet);
                give(packet);
            }
            if budget.is_spent() {
                return Ok(());
            }
            let mut came = false;
            let read = read(connection, *id, READ_BYTES, |chunk| {
                records.extend(chunk);
                came = true;
                Ok(false)
            })?;
            if !came {
                break read;
            }
        };
        if let Read::Ended = read {
            records.end()?;
            // The peer is closing, and will report that.
            self.records = None;
        }
        Ok(())
    }
}

impl Begun {
    /// Reads a stream's type and, for an isolated packet, its available data.
    fn read(
        &mut self,
        connection: &mut Connection,
        unfinished_bytes: &mut usize,
    ) -> Result<Turned, Violation> {
        if !self.is_isolated {
            let mut first = None;
            let read = read(connection, self.id, 1, |chunk| {
                first = chunk.first().copied();
                Ok(false)
            })?;
            match (first.map(StreamType::of).transpose()?, read) {
                (None, Read::Ended) => return Err(Violation::EmptyStream),
                (None, Read::Blocked) => return Ok(Turned::Open),
                (Some(StreamType::Records), _) => return Ok(Turned::Records),
                (Some(StreamType::Isolated), _) => self.is_isolated = true,
            }
        }
        let packet = &mut self.packet;
        let read = read(connection, self.id, READ_BYTES, |chunk| {
            framing::extend_isolated(packet, chunk)?;
            *unfinished_bytes += chunk.len();
            framing::check_unfinished(*unfinished_bytes)?;
            Ok(true)
        })?;
        Ok(match read {
            Read::Blocked => Turned::Open,
            Read::Ended => Turned::Packet(core::mem::take(packet)),
        })
    }
}

/// Reads chunks of at most `bytes_max` bytes as long as `take` accepts more.
pub(super) fn read(
    connection: &mut Connection,
    id: StreamId,
    bytes_max: usize,
    mut take: impl FnMut(&[u8]) -> Result<bool, Violation>,
) -> Result<Read, Violation> {
    let mut stream = connection.recv_stream(id);
    // Cannot happen: streams are read in order, and never after their end.
    let mut chunks = stream.read(true).map_err(|_| Violation::StreamReset)?;
    let read = loop {
        match chunks.next(bytes_max) {
            Ok(Some(chunk)) => {
                if !take(&chunk.bytes)? {
                    break Read::Blocked;
                }
            }
            Ok(None) => break Read::Ended,
            Err(ReadError::Blocked) => break Read::Blocked,
            Err(ReadError::Reset(_)) => return Err(Violation::StreamReset),
        }
    };
    // Flow control credit is sent with the connection's next packet.
    let _ = chunks.finalize();
    Ok(read)
}
