//! The receive path of a QUIC link: datagrams, the record stream, isolated packets. It is read only on
//! demand, so flow control slows a peer whose packets are not taken.

use super::closed::{close_for, lost};
use super::framing::{self, Records, StreamType};
use super::session::Prefix;
use super::webtransport::{self, STREAM_CONTROL, unframed};
use crate::closed::{LinkClosed, Violation};
use crate::outbox::Outbox;
use bytes::{Bytes, BytesMut};
use core::task::{Context, Poll};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, FuturesUnordered, StreamExt, unfold};
use parlor_proto::{Carrier, Packet};
use quinn::{Connection, ConnectionError, ReadError, RecvStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes read from a stream at once.
const READ_BYTES: usize = 4 * 1024;

pub(crate) struct QuicSource {
    connection: Connection,
    outbox: Arc<Outbox>,
    /// How streams and datagrams of a WebTransport session begin.
    session: Option<Prefix>,
    /// The other end's control stream in HTTP/3. Nothing on it concerns a session: its SETTINGS are those of
    /// [`webtransport::greeting`]. What it sends beyond one window waits.
    control: Option<RecvStream>,
    datagrams: BoxStream<'static, Result<Bytes, ConnectionError>>,
    streams: BoxStream<'static, Result<RecvStream, ConnectionError>>,
    /// Streams of unknown type, and incomplete isolated packets.
    begun: FuturesUnordered<BoxFuture<'static, Result<Begun, Fault>>>,
    unfinished_bytes: Arc<AtomicUsize>,
    records: Option<RecordStream>,
    had_records: bool,
    turn: usize,
}

/// The type of a started stream.
enum Begun {
    Records(RecvStream),
    Isolated(Bytes),
    /// HTTP/3's.
    Control(RecvStream),
}

/// Why a stream has no more data.
enum Fault {
    Violation(Violation),
    /// The connection is over, which its datagrams report too.
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
            // The other errors cannot occur: streams are read in order, by their owner, and never early.
            ReadError::Reset(_)
            | ReadError::ClosedStream
            | ReadError::IllegalOrderedRead
            | ReadError::ZeroRttRejected => Fault::Violation(Violation::StreamReset),
        }
    }
}

impl QuicSource {
    pub(super) fn new(connection: Connection, outbox: Arc<Outbox>, session: Option<Prefix>) -> Self {
        // Never ends: after the connection it repeats the connection's error.
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
            session,
            control: None,
            datagrams: datagrams.boxed(),
            streams: streams.boxed(),
            begun: FuturesUnordered::new(),
            unfinished_bytes: Arc::new(AtomicUsize::new(0)),
            records: None,
            had_records: false,
            turn: 0,
        }
    }

    /// Returns the next packet of any carrier, in rotation. The end of the connection is reported after all
    /// packets received before.
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
        // The datagrams report the error too.
        while let Poll::Ready(Some(Ok(stream))) = self.streams.poll_next_unpin(cx) {
            let unfinished = Unfinished { all: Arc::clone(&self.unfinished_bytes), bytes: 0 };
            let prefix = self.session.as_ref().map(|session| session.stream.clone());
            self.begun.push(begin(stream, prefix.unwrap_or_default(), unfinished).boxed());
        }
    }

    fn poll_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, Fault>> {
        match self.datagrams.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(bytes))) => Poll::Ready(self.datagram(bytes).map_err(Fault::from)),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(Fault::Lost(error))),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn datagram(&self, mut bytes: Bytes) -> Result<Packet, Violation> {
        if let Some(session) = &self.session {
            bytes = unframed(bytes, session.quarter)?;
        }
        framing::datagram(bytes)
    }

    fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, Fault>> {
        while let Poll::Ready(Some(begun)) = self.begun.poll_next_unpin(cx) {
            match begun {
                Ok(Begun::Isolated(bytes)) => {
                    return Poll::Ready(Ok(Packet { carrier: Carrier::Isolated, bytes }));
                }
                Ok(Begun::Control(_)) if self.control.is_some() => {
                    return Poll::Ready(Err(Violation::from(webtransport::Fault::SecondStream).into()));
                }
                Ok(Begun::Control(stream)) => self.control = Some(stream),
                Ok(Begun::Records(_)) if self.had_records => {
                    return Poll::Ready(Err(Violation::SecondRecordStream.into()));
                }
                Ok(Begun::Records(stream)) => {
                    self.had_records = true;
                    self.records = Some(RecordStream { stream, records: Records::default() });
                    // It is polled later in this round or directly in the next.
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
                // The peer is closing, and will report that.
                self.records = None;
                Poll::Pending
            }
            Poll::Ready(Err(fault)) => Poll::Ready(Err(fault)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Reads a stream's type, after the session's `prefix`, and, for an isolated packet, all of it.
async fn begin(mut stream: RecvStream, prefix: Bytes, mut unfinished: Unfinished) -> Result<Begun, Fault> {
    for (at, expected) in prefix.iter().enumerate() {
        let Some(next) = stream.read_chunk(1, true).await? else { return Err(Violation::EmptyStream.into()) };
        match next.bytes[0] {
            first if at == 0 && u64::from(first) == STREAM_CONTROL => return Ok(Begun::Control(stream)),
            byte if byte != *expected => {
                return Err(Violation::from(webtransport::Fault::OtherSession).into());
            }
            _ => {}
        }
    }
    let Some(first) = stream.read_chunk(1, true).await? else { return Err(Violation::EmptyStream.into()) };
    match StreamType::of(first.bytes[0])? {
        StreamType::Records => Ok(Begun::Records(stream)),
        StreamType::Isolated => {
            let mut packet = BytesMut::new();
            while let Some(chunk) = stream.read_chunk(READ_BYTES, true).await? {
                framing::extend_isolated(&mut packet, &chunk.bytes)?;
                unfinished.add(chunk.bytes.len())?;
            }
            Ok(Begun::Isolated(packet.freeze()))
        }
    }
}

/// The bytes of one unfinished packet, counted in the total.
struct Unfinished {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Unfinished {
    fn add(&mut self, bytes: usize) -> Result<(), Violation> {
        self.bytes += bytes;
        let before = self.all.fetch_add(bytes, Ordering::Relaxed);
        framing::check_unfinished(before + bytes)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The record stream.
struct RecordStream {
    stream: RecvStream,
    records: Records,
}

impl RecordStream {
    /// Returns the next record; `None` if the stream ended after a complete one.
    fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            if let Some(record) = self.records.take()? {
                return Poll::Ready(Ok(Some(record)));
            }
            let mut chunk = [0; READ_BYTES];
            match self.stream.poll_read(cx, &mut chunk) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(self.records.end().map(|()| None)?)),
                Poll::Ready(Ok(read)) => self.records.extend(&chunk[..read]),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
