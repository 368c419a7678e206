//! A TCP connection on a bad network: nothing is lost, everything is late.

use super::conditions::{Conditions, Watch};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use parlor_impair::{Direction, Stalls};
use std::collections::VecDeque;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum bytes of one read.
const CHUNK_BYTES: usize = 4 * 1024;
/// Maximum bytes in flight in one direction; further writes wait.
const UNDER_WAY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that this process may write before they are taken over.
const BUFFER_BYTES: usize = 8 * 1024;
/// How long the peer may continue after this end has finished.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A TCP connection, direct or impaired.
#[derive(Debug)]
pub struct Wire(Kind);

#[derive(Debug)]
enum Kind {
    Bare(TcpStream),
    /// The other end of the pipe belongs to the tasks that delay the data.
    Impaired(DuplexStream),
}

impl Wire {
    /// Wraps a connection, impaired if there are conditions. Must be called in a tokio runtime.
    pub fn new(stream: TcpStream, conditions: Option<&Conditions>) -> Self {
        let Some(conditions) = conditions else { return stream.into() };
        let flow = conditions.next_flow();
        let (pipe, far) = duplex(BUFFER_BYTES);
        let (from_here, to_here) = split(far);
        let (from_peer, to_peer) = stream.into_split();
        let there = Late::new(conditions, flow, Direction::There);
        let mut back = tokio::spawn(carry(from_peer, to_here, Late::new(conditions, flow, Direction::Back)));
        tokio::spawn(async move {
            carry(from_here, to_peer, there).await;
            // A peer that is gone cannot be distinguished from one that has nothing more to send.
            if timeout(LAST_WORDS, &mut back).await.is_err() {
                back.abort();
            }
        });
        Wire(Kind::Impaired(pipe))
    }
}

impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        Wire(Kind::Bare(stream))
    }
}

/// Arrival times of written data, under changing conditions.
struct Late {
    watch: Watch,
    flow: u64,
    direction: Direction,
    stalls: Stalls,
    /// When the conditions last changed: the stalls' start.
    start: Instant,
    /// When the last data arrives: nothing written later arrives earlier.
    until: Instant,
}

impl Late {
    fn new(conditions: &Conditions, flow: u64, direction: Direction) -> Self {
        let watch = Watch::new(conditions);
        let stalls = Stalls::new(&watch.get(), flow, direction);
        let now = Instant::now();
        Late { watch, flow, direction, stalls, start: now, until: now }
    }

    /// Whether the path's queue has room.
    fn has_room(&self) -> bool {
        self.stalls.has_room(self.start.elapsed())
    }

    fn offer(&mut self, bytes: usize) -> Instant {
        let now = Instant::now();
        if let Some(impairment) = self.watch.news() {
            self.stalls = Stalls::new(&impairment, self.flow, self.direction);
            self.start = now;
        }
        let after = self.stalls.offer(now.saturating_duration_since(self.start), bytes);
        // Valid settings stay within the clock's range.
        self.until = self.until.max(self.start.checked_add(after).unwrap_or(now));
        self.until
    }
}

/// Carries one direction to its end, which is an empty chunk and late like the others.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut late: Late) {
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut bytes_under_way = 0;
    let mut has_ended = false;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let next_at = under_way.front().map(|(at, _)| *at);
        let has_room = next_at.is_none() || bytes_under_way < UNDER_WAY_BYTES_MAX && late.has_room();
        let takes_more = !has_ended && has_room;
        tokio::select! {
            // Due data is sent first, so that a peer that does not read blocks the writer.
            biased;
            () = sleep_until(next_at.unwrap_or_else(Instant::now)), if next_at.is_some() => {
                let Some((_, bytes)) = under_way.pop_front() else { continue };
                bytes_under_way -= bytes.len();
                // The end: signalled to the other side by dropping or shutting down, which is all that is
                // left to do.
                if bytes.is_empty() || to.write_all(&bytes).await.is_err() {
                    let _ = to.shutdown().await;
                    return;
                }
            }
            read = from.read(&mut chunk), if takes_more => {
                // A broken and an ended connection look the same from here on.
                let read = read.unwrap_or(0);
                has_ended = read == 0;
                under_way.push_back((late.offer(read), chunk[..read].to_vec()));
                bytes_under_way += read;
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Bare(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Impaired(pipe) => Pin::new(pipe).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Bare(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Impaired(pipe) => Pin::new(pipe).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Bare(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Kind::Impaired(pipe) => Pin::new(pipe).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Bare(stream) => stream.is_write_vectored(),
            Kind::Impaired(pipe) => pipe.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Bare(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Impaired(pipe) => Pin::new(pipe).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Bare(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Impaired(pipe) => Pin::new(pipe).poll_shutdown(cx),
        }
    }
}
