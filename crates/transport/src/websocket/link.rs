//! A WebSocket as a link. The receiving half reads the socket itself, so that TCP slows a peer whose packets
//! are not taken. A sender writes a packet itself while nothing else waits, so that no task wakes for it. Otherwise a
//! task writes the queue. At the end it writes the close frame.

use crate::closed::{CloseCode, LinkClosed, Violation, peer_reason};
use crate::io::Io;
use crate::link::{Link, Source, Wire};
use crate::outbox::{Capacity, Farewell, Outbox, SendError, Work};
use bytes::Bytes;
use core::future::poll_fn;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use futures_util::{Sink, StreamExt};
use parlor_proto::stream_rate::StreamRate;
use parlor_proto::{Carrier, Packet, limits};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

pub(crate) type BoxIo = Box<dyn Io>;

/// One queue for all: a WebSocket keeps the order of all packets.
const CAPACITY: Capacity = Capacity { datagram_bytes: 0, stream_bytes: 64 * 1024, isolated_bytes: 0 };

/// Bytes written before their duration is measured.
const TURN_BYTES: usize = 4 * 1024;
/// The library's read buffer, allocated for each link from the start; its default is 128 times as large.
const READ_BYTES: usize = 1024;
/// Bytes that the library collects before it writes.
const WRITE_BYTES: usize = 4 * 1024;
/// A longer packet is sent as several frames of one message. The library's buffers, at both ends, grow with
/// the longest frame and never shrink. In pieces, one large packet at the start does not cost its size for
/// the whole life of the link.
const FRAME_BYTES_MAX: usize = 4 * 1024;
/// Room for unsent bytes, the next frame and a control frame, with their headers.
const WRITE_BUFFER_BYTES_MAX: usize = WRITE_BYTES + 2 * (FRAME_BYTES_MAX + 256);

pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(Some(limits::STREAM_PACKET_BYTES_MAX))
        .max_frame_size(Some(limits::STREAM_PACKET_BYTES_MAX))
}

/// Creates a link from a WebSocket, and starts the writing task.
pub(crate) fn establish(socket: WebSocketStream<BoxIo>, remote: SocketAddr) -> Link {
    let socket = Arc::new(Socket(Mutex::new(State { stream: socket, leaving: false })));
    let outbox = Arc::new(Outbox::new(CAPACITY));
    tokio::spawn(run(Arc::clone(&socket), Arc::clone(&outbox)));
    let sink = WebSocketSink { socket: Arc::clone(&socket) };
    let source = WebSocketSource { socket, outbox: Arc::clone(&outbox) };
    Link::new(Wire::WebSocket(sink), remote, Source::WebSocket(source), outbox)
}

/// Writes packets at once where that is possible.
pub(crate) struct WebSocketSink {
    socket: Arc<Socket>,
}

impl WebSocketSink {
    /// Writes a packet to the socket, or queues it.
    pub(crate) fn send(&self, outbox: &Outbox, bytes: Bytes) -> Result<(), SendError> {
        if bytes.len() > FRAME_BYTES_MAX || !outbox.begin_write() {
            return outbox.push(Packet { carrier: Carrier::Stream, bytes });
        }
        match self.socket.write_now(bytes) {
            Ok(is_flushed) => outbox.end_write(is_flushed),
            // As in the writing task: the receiving half may still read what the peer sent before.
            Err(error) => {
                outbox.lose(closed_by(error));
                outbox.end_write(true);
            }
        }
        Ok(())
    }
}

impl core::fmt::Debug for WebSocketSink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WebSocketSink").finish_non_exhaustive()
    }
}

pub(crate) struct WebSocketSource {
    socket: Arc<Socket>,
    outbox: Arc<Outbox>,
}

impl WebSocketSource {
    pub(crate) fn poll_packet(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, LinkClosed>> {
        let polled = ready!(self.socket.poll_packet(cx));
        if let Err(LinkClosed::NotParlor(violation)) = &polled {
            self.outbox.violate(violation.clone());
        }
        Poll::Ready(polled)
    }
}

/// The socket, shared by the receiving half and the writing task. Each holds the lock for one poll.
struct Socket(Mutex<State>);

struct State {
    stream: WebSocketStream<BoxIo>,
    /// The task is closing and reads itself; a second reader would take its wake-ups.
    leaving: bool,
}

/// Writes until the link is over, then sends a close frame if there is one.
async fn run(socket: Arc<Socket>, outbox: Arc<Outbox>) {
    // The end of the task is boxed, so that it takes no space in the task of a live link.
    let linger_over = async {
        outbox.closing().await;
        Box::pin(sleep(limits::CLOSE_LINGER)).await;
    };
    let broken = tokio::select! {
        written = write_packets(&socket, &outbox) => written.err(),
        _ = outbox.lost() => None,
        () = linger_over => None,
    };
    match broken {
        // The receiving half may still read what the peer sent before, and then the reason.
        Some(error) => outbox.lose(closed_by(error)),
        None => {
            // A peer that does not accept the close frame in time does not get it.
            let goodbye = say_goodbye(&socket, outbox.farewell());
            let _ = Box::pin(timeout(limits::CLOSE_LINGER, goodbye)).await;
        }
    }
    outbox.finish();
}

/// Writes packets until this end closes and the queue is empty. Queued packets are written together.
async fn write_packets(socket: &Socket, outbox: &Outbox) -> Result<(), Error> {
    let (epoch, mut rate) = (tokio::time::Instant::now(), StreamRate::default());
    let now = || parlor_proto::time::Instant::ZERO + epoch.elapsed();
    while let Some(work) = outbox.work().await {
        let packet = match work {
            Work::Packet(packet) => Some(packet),
            Work::Flush => None,
        };
        let (began, mut bytes, mut next) = (now(), 0, packet);
        while let Some(packet) = next {
            bytes += packet.len();
            feed_packet(socket, packet).await?;
            next = if bytes < TURN_BYTES { outbox.try_pop(Carrier::Stream) } else { None };
        }
        socket.flush().await?;
        rate.handle_written(began, now(), bytes as u64, !outbox.is_empty(Carrier::Stream));
        outbox.set_carries(rate.bytes_per_second());
    }
    Ok(())
}

/// Passes a packet to the library, frame by frame.
async fn feed_packet(socket: &Socket, packet: Bytes) -> Result<(), Error> {
    let (mut rest, mut kind) = (packet, Data::Binary);
    loop {
        let piece = rest.split_to(rest.len().min(FRAME_BYTES_MAX));
        let is_last = rest.is_empty();
        socket.feed(Message::Frame(Frame::message(piece, OpCode::Data(kind), is_last))).await?;
        if is_last {
            return Ok(());
        }
        kind = Data::Continue;
    }
}

/// Sends the close frame, or answers the peer's; then waits until the peer disconnects, because closing with
/// unread bytes could discard the close frame.
async fn say_goodbye(socket: &Socket, farewell: Option<Farewell>) -> Result<(), Error> {
    socket.lock().leaving = true;
    if let Some(Farewell { code, reason }) = farewell {
        let frame = CloseFrame { code: code.to_websocket().into(), reason: reason.into() };
        socket.feed(Message::Close(Some(frame))).await?;
    }
    socket.flush().await?;
    poll_fn(|cx| Pin::new(socket.lock().stream.get_mut()).poll_shutdown(cx)).await?;
    loop {
        let read = poll_fn(|cx| {
            let mut unread = [0; READ_BYTES];
            let mut unread = ReadBuf::new(&mut unread);
            ready!(Pin::new(socket.lock().stream.get_mut()).poll_read(cx, &mut unread))?;
            Poll::Ready(Ok::<_, io::Error>(unread.filled().len()))
        });
        if read.await? == 0 {
            return Ok(());
        }
    }
}

impl Socket {
    fn poll_packet(&self, cx: &mut Context<'_>) -> Poll<Result<Packet, LinkClosed>> {
        let mut state = self.lock();
        if state.leaving {
            // The link is over; the outbox has the reason.
            return Poll::Pending;
        }
        loop {
            return Poll::Ready(match ready!(state.stream.poll_next_unpin(cx)) {
                Some(Ok(Message::Binary(bytes))) => Ok(Packet { carrier: Carrier::Stream, bytes }),
                Some(Ok(Message::Text(_))) => Err(LinkClosed::NotParlor(Violation::TextMessage)),
                Some(Ok(Message::Close(frame))) => Err(by_peer(frame)),
                // The library answers pings itself.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Err(error)) => Err(closed_by(error)),
                None => Err(LinkClosed::Reset),
            });
        }
    }

    /// Passes a message to the library, once enough of its buffer is written to leave room.
    async fn feed(&self, message: Message) -> Result<(), Error> {
        poll_fn(|cx| Pin::new(&mut self.lock().stream).poll_ready(cx)).await?;
        Pin::new(&mut self.lock().stream).start_send(message)
    }

    /// Writes a packet of one frame, if nothing of another one is left. Returns whether the system took everything; the
    /// rest is left to [`flush`](Self::flush).
    fn write_now(&self, packet: Bytes) -> Result<bool, Error> {
        let (mut state, mut cx) = (self.lock(), Context::from_waker(Waker::noop()));
        let mut stream = Pin::new(&mut state.stream);
        let frame = Frame::message(packet, OpCode::Data(Data::Binary), true);
        // The library has room: all before was flushed.
        stream.as_mut().start_send(Message::Frame(frame))?;
        match stream.poll_flush(&mut cx) {
            Poll::Ready(written) => written.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    async fn flush(&self) -> Result<(), Error> {
        poll_fn(|cx| Pin::new(&mut self.lock().stream).poll_flush(cx)).await
    }

    /// A panic inside the library ends the connection anyway; it can only be dropped then.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn by_peer(frame: Option<CloseFrame>) -> LinkClosed {
    match frame {
        Some(frame) => LinkClosed::ByPeer {
            code: CloseCode::from_websocket(frame.code.into()),
            reason: peer_reason(frame.reason.as_bytes()),
        },
        None => LinkClosed::ByPeer { code: CloseCode::DONE, reason: String::new() },
    }
}

fn closed_by(error: Error) -> LinkClosed {
    match error {
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake | ProtocolError::SendAfterClosing) => {
            LinkClosed::Reset
        }
        Error::Io(error) => match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => LinkClosed::Reset,
            io::ErrorKind::TimedOut => LinkClosed::TimedOut,
            _ => LinkClosed::TransportError(error.to_string()),
        },
        Error::Capacity(_) => LinkClosed::NotParlor(Violation::OversizedPacket),
        Error::Protocol(error) => LinkClosed::NotParlor(Violation::WebSocket(error.to_string())),
        Error::Utf8(error) => LinkClosed::NotParlor(Violation::WebSocket(error)),
        error => LinkClosed::TransportError(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websocket::accept;
    use core::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::task::yield_now;

    const REMOTE: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

    fn packet(bytes: &[u8]) -> Packet {
        Packet { carrier: Carrier::Stream, bytes: Bytes::copy_from_slice(bytes) }
    }

    /// A link whose writing task waits for work, and the peer's end with room for so many bytes.
    async fn link(room: usize) -> (Link, tokio::io::DuplexStream) {
        let (ours, theirs) = duplex(room);
        let link = accept(ours, REMOTE).await;
        yield_now().await;
        (link, theirs)
    }

    #[tokio::test]
    async fn a_packet_is_written_by_its_sender_while_nothing_waits() {
        let (link, mut theirs) = link(1_000).await;
        for number in 0..3 {
            link.send(packet(&[number; 5])).unwrap();
            let mut read = [0; 100];
            let mut read = ReadBuf::new(&mut read);
            let polled = Pin::new(&mut theirs).poll_read(&mut Context::from_waker(Waker::noop()), &mut read);
            assert!(matches!(polled, Poll::Ready(Ok(()))), "no task has run");
            assert_eq!(read.filled(), [&[0x82, 5][..], &[number; 5]].concat());
        }
    }

    #[tokio::test]
    async fn what_the_connection_does_not_take_at_once_follows_in_order() {
        let (link, mut theirs) = link(64).await;
        let numbers = 0..40_u8;
        for number in numbers.clone() {
            link.send(packet(&[number; 20])).unwrap();
        }
        // Packets of several frames go the same way.
        link.send(packet(&[7; FRAME_BYTES_MAX + 1])).unwrap();
        link.sender.close(CloseCode::DONE, "");
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        let wanted: Vec<u8> = numbers.flat_map(|number| [&[0x82, 20][..], &[number; 20]].concat()).collect();
        assert_eq!(all[..wanted.len()], wanted);
        let long = u16::try_from(FRAME_BYTES_MAX).unwrap().to_be_bytes();
        assert_eq!(all[wanted.len()..][..5], [0x02, 126, long[0], long[1], 7]);
    }
}
