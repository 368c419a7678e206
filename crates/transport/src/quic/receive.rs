//! What comes in on a QUIC link: datagrams, the stream of records, isolated packets. It is read only when the owner of
//! the link asks, so that flow control holds a peer back whose packets nobody takes.

use super::link::{close_for, lost};
use super::{ISOLATED_UNFINISHED_BYTES_MAX, STREAM_TYPE_ISOLATED, STREAM_TYPE_RECORDS};
use crate::closed::{LinkClosed, Violation};
use crate::outbox::Outbox;
use bytes::{Bytes, BytesMut};
use core::task::{Context, Poll};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, FuturesUnordered, StreamExt, unfold};
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::{Carrier, Packet};
use quinn::{Connection, ConnectionError, ReadError, RecvStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes read from a stream at once.
const READ_BYTES: usize = 4 * 1024;
/// Longest length of a record that is within the limit, in bytes.
const LENGTH_BYTES_MAX: usize = 4;

pub(crate) struct QuicSource {
    connection: Connection,
    outbox: Arc<Outbox>,
    datagrams: BoxStream<'static, Result<Bytes, ConnectionError>>,
    streams: BoxStream<'static, Result<RecvStream, ConnectionError>>,
    /// Streams whose type is not known yet, and isolated packets that are not complete.
    begun: FuturesUnordered<BoxFuture<'static, Result<Begun, Fault>>>,
    unfinished_bytes: Arc<AtomicUsize>,
    records: Option<Records>,
    had_records: bool,
    turn: usize,
}

/// What a stream turned out to be.
enum Begun {
    Records(RecvStream),
    Isolated(Bytes),
}

/// Why a stream gives nothing more.
enum Fault {
    Violation(Violation),
    /// The connection is over, which its datagrams tell too.
    Lost(ConnectionError),
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Fault::Violation(violation)
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ConnectionLost(error) => Fault::Lost(error),
            // The remaining ones cannot be: streams are read in order, by their owner, and never early.
            ReadError::Reset(_)
            | ReadError::ClosedStream
            | ReadError::IllegalOrderedRead
            | ReadError::ZeroRttRejected => Fault::Violation(Violation::StreamReset),
        }
    }
}

impl QuicSource {
    pub(super) fn new(connection: Connection, outbox: Arc<Outbox>) -> Self {
        // They never end: after the connection they go on giving its error.
        let datagrams = unfold(connection.clone(), |connection| async move {
            let datagram = connection.read_datagram().await;
            Some((datagram, connection))
        });
        let streams = unfold(connection.clone(), |connection| async move {
            let stream = connection.accept_uni().await;
            Some((stream, connection))
        });
        QuicSource {
            connection,
            outbox,
            datagrams: datagrams.boxed(),
            streams: streams.boxed(),
            begun: FuturesUnordered::new(),
            unfinished_bytes: Arc::new(AtomicUsize::new(0)),
            records: None,
            had_records: false,
            turn: 0,
        }
    }

    /// The next packet of any carrier; carriers take turns. That the connection is over is told once all that came
    /// before is taken.
    pub(crate) fn poll_packet(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, LinkClosed>> {
        self.accept_streams(cx);
        let mut over = None;
        for _ in 0..3 {
            self.turn = (self.turn + 1) % 3;
            let polled = match self.turn {
                0 => self.poll_datagram(cx),
                1 => self.poll_begun(cx),
                _ => self.poll_records(cx),
            };
            match polled {
                Poll::Ready(Ok(packet)) => return Poll::Ready(Ok(packet)),
                Poll::Ready(Err(Fault::Violation(violation))) => {
                    self.outbox.violate(violation.clone());
                    close_for(&self.connection, &violation);
                    return Poll::Ready(Err(LinkClosed::NotParlor(violation)));
                }
                Poll::Ready(Err(Fault::Lost(error))) => over = Some(error),
                Poll::Pending => {}
            }
        }
        over.map_or(Poll::Pending, |error| Poll::Ready(Err(lost(error))))
    }

    fn accept_streams(&mut self, cx: &mut Context<'_>) {
        // An error is told by the datagrams too.
        while let Poll::Ready(Some(Ok(stream))) = self.streams.poll_next_unpin(cx) {
            let unfinished = Unfinished { all: Arc::clone(&self.unfinished_bytes), bytes: 0 };
            self.begun.push(begin(stream, unfinished).boxed());
        }
    }

    fn poll_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, Fault>> {
        match self.datagrams.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(bytes))) if bytes.len() > DATAGRAM_BYTES_MAX => {
                Poll::Ready(Err(Violation::OversizedDatagram { bytes: bytes.len() }.into()))
            }
            Poll::Ready(Some(Ok(bytes))) => Poll::Ready(Ok(Packet { carrier: Carrier::Datagram, bytes })),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(Fault::Lost(error))),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, Fault>> {
        while let Poll::Ready(Some(begun)) = self.begun.poll_next_unpin(cx) {
            match begun {
                Ok(Begun::Isolated(bytes)) => {
                    return Poll::Ready(Ok(Packet { carrier: Carrier::Isolated, bytes }));
                }
                Ok(Begun::Records(_)) if self.had_records => {
                    return Poll::Ready(Err(Violation::SecondRecordStream.into()));
                }
                Ok(Begun::Records(stream)) => {
                    self.had_records = true;
                    self.records = Some(Records { stream, buffer: BytesMut::new() });
                    // It is polled later in this round or right away in the next.
                    cx.waker().wake_by_ref();
                }
                Err(Fault::Lost(_)) => {}
                Err(fault) => return Poll::Ready(Err(fault)),
            }
        }
        Poll::Pending
    }

    fn poll_records(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, Fault>> {
        let Some(records) = &mut self.records else { return Poll::Pending };
        match records.poll_record(cx) {
            Poll::Ready(Ok(Some(bytes))) => Poll::Ready(Ok(Packet { carrier: Carrier::Stream, bytes })),
            Poll::Ready(Ok(None)) => {
                // The peer is closing and will say so.
                self.records = None;
                Poll::Pending
            }
            Poll::Ready(Err(fault)) => Poll::Ready(Err(fault)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Reads a stream's type and, if it is an isolated packet, all of it.
async fn begin(mut stream: RecvStream, mut unfinished: Unfinished) -> Result<Begun, Fault> {
    let Some(first) = stream.read_chunk(1, true).await? else { return Err(Violation::EmptyStream.into()) };
    match first.bytes[0] {
        STREAM_TYPE_RECORDS => Ok(Begun::Records(stream)),
        STREAM_TYPE_ISOLATED => {
            let mut packet = BytesMut::new();
            while let Some(chunk) = stream.read_chunk(READ_BYTES, true).await? {
                if packet.len() + chunk.bytes.len() > STREAM_PACKET_BYTES_MAX {
                    return Err(Violation::OversizedPacket.into());
                }
                unfinished.add(chunk.bytes.len())?;
                packet.extend_from_slice(&chunk.bytes);
            }
            Ok(Begun::Isolated(packet.freeze()))
        }
        unknown => Err(Violation::UnknownStreamType(unknown).into()),
    }
}

/// The bytes of one unfinished packet, counted among those of all.
struct Unfinished {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Unfinished {
    fn add(&mut self, bytes: usize) -> Result<(), Violation> {
        self.bytes += bytes;
        let before = self.all.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > ISOLATED_UNFINISHED_BYTES_MAX {
            Err(Violation::TooMuchUnfinished)
        } else {
            Ok(())
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The stream of records. Its buffer grows with the bytes that come, whatever length they declare, and is given back
/// when nothing is left in it.
struct Records {
    stream: RecvStream,
    buffer: BytesMut,
}

impl Records {
    /// The next record, or `None` if the stream ended after a whole one.
    fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            if let Some(record) = self.take_record()? {
                return Poll::Ready(Ok(Some(record)));
            }
            let mut chunk = [0; READ_BYTES];
            match self.stream.poll_read(cx, &mut chunk) {
                Poll::Ready(Ok(0)) if self.buffer.is_empty() => return Poll::Ready(Ok(None)),
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Violation::TruncatedRecord.into())),
                Poll::Ready(Ok(read)) => self.buffer.extend_from_slice(&chunk[..read]),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// A record that is complete in the buffer.
    fn take_record(&mut self) -> Result<Option<Bytes>, Violation> {
        let Some(first) = self.buffer.first() else {
            self.buffer = BytesMut::new();
            return Ok(None);
        };
        let width = 1 << (first >> 6);
        if width > LENGTH_BYTES_MAX {
            return Err(Violation::OversizedPacket);
        }
        let Some(length) = self.buffer.get(..width) else { return Ok(None) };
        let length =
            Reader::new(Bytes::copy_from_slice(length)).varint().map_err(|_| Violation::RecordLength)?;
        let length = usize::try_from(length).map_err(|_| Violation::OversizedPacket)?;
        if length > STREAM_PACKET_BYTES_MAX {
            return Err(Violation::OversizedPacket);
        }
        if self.buffer.len() < width + length {
            return Ok(None);
        }
        let mut record = self.buffer.split_to(width + length);
        Ok(Some(record.split_off(width).freeze()))
    }
}
