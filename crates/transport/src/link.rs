//! A link: packets between two processes, with one interface over QUIC, WebSocket and memory.
//!
//! A link has two halves, so that one task can receive while another one, or the same one in a `select!`,
//! waits to send. Dropping either half closes the link with [`CloseCode::DONE`].

use crate::closed::{CloseCode, LinkClosed};
use crate::memory::MemorySource;
use crate::outbox::{LinkStats, Outbox, SendError, check_size};
use crate::quic::congestion::bytes_per_second;
use crate::quic::link::QuicSource;
use crate::quic::session::Prefix;
use crate::websocket::link::{WebSocketSink, WebSocketSource};
use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parlor_proto::{Carrier, LinkKind, Packet};
use std::sync::Arc;

/// A connection that carries packets.
#[derive(Debug)]
pub struct Link {
    /// The sending half.
    pub sender: LinkSender,
    /// The receiving half.
    pub receiver: LinkReceiver,
}

impl Link {
    /// Returns the two halves, for two tasks or two arms of a `select!`.
    pub fn split(self) -> (LinkSender, LinkReceiver) {
        (self.sender, self.receiver)
    }

    /// See [`LinkReceiver::recv`].
    ///
    /// # Errors
    /// Why the link is over.
    pub async fn recv(&mut self) -> Result<Packet, LinkClosed> {
        self.receiver.recv().await
    }

    /// See [`LinkSender::send`].
    ///
    /// # Errors
    /// Why the packet was not accepted.
    pub fn send(&self, packet: Packet) -> Result<(), SendError> {
        self.sender.send(packet)
    }

    /// The transport.
    pub fn kind(&self) -> LinkKind {
        self.sender.kind()
    }

    /// The peer's address. See [`LinkSender::remote`].
    pub fn remote(&self) -> SocketAddr {
        self.sender.remote()
    }

    pub(crate) fn new(wire: Wire, remote: SocketAddr, source: Source, outbox: Arc<Outbox>) -> Self {
        let watched = Arc::clone(&outbox);
        Link {
            receiver: LinkReceiver {
                source,
                outbox: Arc::clone(&outbox),
                closing: async move { watched.closing().await }.boxed(),
                end: None,
            },
            sender: LinkSender { wire, remote, outbox },
        }
    }
}

/// The sending half of a link.
#[derive(Debug)]
pub struct LinkSender {
    wire: Wire,
    remote: SocketAddr,
    outbox: Arc<Outbox>,
}

/// The sender's view of the underlying connection.
#[derive(Debug)]
pub(crate) enum Wire {
    /// Within a WebTransport session, if there is a prefix.
    Quic {
        connection: quinn::Connection,
        prefix: Option<Prefix>,
    },
    WebSocket(WebSocketSink),
    Memory {
        peer: Arc<Outbox>,
    },
}

impl LinkSender {
    /// Sends a packet without waiting. An accepted stream packet arrives unless the link is lost.
    ///
    /// # Errors
    /// [`SendError::NotWritable`] returns the packet while the queue is full; the other errors are final.
    pub fn send(&self, packet: Packet) -> Result<(), SendError> {
        let bytes = check_size(&packet)?;
        match (&self.wire, packet.carrier) {
            (Wire::Quic { connection, prefix }, Carrier::Datagram) => {
                crate::quic::link::send_datagram(connection, prefix.as_ref(), &self.outbox, packet)?;
            }
            (Wire::WebSocket(_) | Wire::Memory { .. }, Carrier::Datagram) => {
                return Err(SendError::NoDatagrams(self.kind()));
            }
            (Wire::WebSocket(sink), _) => sink.send(&self.outbox, packet.bytes)?,
            (Wire::Memory { .. }, Carrier::Isolated) => {
                self.outbox.push(Packet { carrier: Carrier::Stream, ..packet })?;
            }
            _ => self.outbox.push(packet)?,
        }
        self.outbox.count_sent(bytes);
        Ok(())
    }

    /// Whether the next packet on this carrier would be accepted. A link that is over counts as writable, so
    /// that [`send`](Self::send) can return the reason.
    pub fn is_writable(&self, carrier: Carrier) -> bool {
        self.outbox.is_writable(self.lane(carrier))
    }

    /// Waits for [`is_writable`](Self::is_writable). Cancel-safe.
    pub async fn writable(&self, carrier: Carrier) {
        self.outbox.writable(self.lane(carrier)).await;
    }

    /// Closes the link, at once for this end. Queued packets have at most
    /// [`CLOSE_LINGER`](parlor_proto::limits::CLOSE_LINGER) to arrive. Then the peer gets the code and the
    /// reason (cut at [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes). Does nothing
    /// if the link is over.
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.outbox.close(code, reason);
        if let Wire::Memory { peer } = &self.wire {
            crate::memory::announce_close(&self.outbox, peer);
        }
    }

    /// Waits until the link is over and nothing of it is in flight. To ensure that the last packets arrive, a
    /// process closes, waits for this and, with QUIC, for
    /// [`Dialer::wait_idle`](crate::quic::Dialer::wait_idle).
    pub async fn closed(&self) {
        match self.wire {
            Wire::Memory { .. } => self.outbox.ended().await,
            Wire::Quic { .. } | Wire::WebSocket(_) => self.outbox.finished().await,
        }
    }

    /// Why the link is over; `None` if it is not known to be.
    pub fn end(&self) -> Option<LinkClosed> {
        self.outbox.end()
    }

    /// The transport.
    pub fn kind(&self) -> LinkKind {
        match self.wire {
            Wire::Quic { prefix: None, .. } => LinkKind::Quic,
            Wire::Quic { prefix: Some(_), .. } => LinkKind::WebTransport,
            Wire::WebSocket(_) => LinkKind::WebSocket,
            Wire::Memory { .. } => LinkKind::Memory,
        }
    }

    /// The peer's current address; it may change with QUIC. A memory link returns 127.0.0.1 with port 0.
    pub fn remote(&self) -> SocketAddr {
        match &self.wire {
            Wire::Quic { connection, .. } => connection.remote_address(),
            Wire::WebSocket(_) | Wire::Memory { .. } => self.remote,
        }
    }

    /// The library's estimate of the round trip. Only QUIC has one.
    pub fn rtt(&self) -> Option<Duration> {
        match &self.wire {
            Wire::Quic { connection, .. } => Some(connection.rtt()),
            Wire::WebSocket(_) | Wire::Memory { .. } => None,
        }
    }

    /// Bytes per second, including overhead, that the path to the peer currently carries; `None` if unknown,
    /// as for a WebSocket before its first queue. Packets beyond it are queued. While less is sent, it is an
    /// upper bound.
    pub fn bytes_per_second(&self) -> Option<u64> {
        match &self.wire {
            Wire::Quic { connection, .. } => bytes_per_second(&*connection.congestion_state()),
            Wire::WebSocket(_) => self.outbox.carries(),
            Wire::Memory { .. } => None,
        }
    }

    /// Returns the traffic statistics, in both directions.
    pub fn stats(&self) -> LinkStats {
        self.outbox.stats()
    }

    /// The queue that a carrier uses: only QUIC has more than one.
    fn lane(&self, carrier: Carrier) -> Carrier {
        if matches!(self.wire, Wire::Quic { .. }) { carrier } else { Carrier::Stream }
    }
}

impl Drop for LinkSender {
    fn drop(&mut self) {
        self.close(CloseCode::DONE, "");
    }
}

/// The receiving half of a link.
pub struct LinkReceiver {
    source: Source,
    outbox: Arc<Outbox>,
    /// Completes when this end closes.
    closing: BoxFuture<'static, LinkClosed>,
    end: Option<LinkClosed>,
}

/// The source of packets.
pub(crate) enum Source {
    Quic(QuicSource),
    WebSocket(WebSocketSource),
    Memory(MemorySource),
}

impl LinkReceiver {
    /// Receives the next packet. Cancel-safe.
    ///
    /// # Errors
    /// Why the link is over; every later call returns the same. Packets that a peer sent before it closed
    /// come first.
    pub async fn recv(&mut self) -> Result<Packet, LinkClosed> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Returns a packet that has arrived already, or `None`.
    ///
    /// # Errors
    /// Why the link is over.
    pub fn try_recv(&mut self) -> Result<Option<Packet>, LinkClosed> {
        match self.poll_recv(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(packet) => packet.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Waits for a packet and adds all that have arrived, at most `max` (at least 1), so that a server can
    /// process a batch before it answers. Returns the number added. Cancel-safe.
    ///
    /// # Errors
    /// Why the link is over, once there are no more packets.
    pub async fn recv_many(&mut self, packets: &mut Vec<Packet>, max: usize) -> Result<usize, LinkClosed> {
        packets.push(self.recv().await?);
        let mut taken = 1;
        while taken < max {
            // An end is stored and returned by the next call, after these packets.
            let Ok(Some(packet)) = self.try_recv() else { break };
            packets.push(packet);
            taken += 1;
        }
        Ok(taken)
    }

    /// Polls for the next packet.
    ///
    /// # Errors
    /// Why the link is over.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, LinkClosed>> {
        if let Some(end) = &self.end {
            return Poll::Ready(Err(end.clone()));
        }
        if let Poll::Ready(end) = self.closing.poll_unpin(cx) {
            self.end = Some(end.clone());
            return Poll::Ready(Err(end));
        }
        let polled = match &mut self.source {
            Source::Quic(source) => source.poll_packet(cx),
            Source::WebSocket(source) => source.poll_packet(cx),
            Source::Memory(source) => source.poll_packet(cx),
        };
        match polled {
            Poll::Ready(Ok(packet)) => {
                self.outbox.count_received(packet.bytes.len());
                Poll::Ready(Ok(packet))
            }
            Poll::Ready(Err(end)) => {
                // The link may have ended for another reason before; both halves report the same one.
                self.outbox.lose(end.clone());
                let end = self.outbox.end().unwrap_or(end);
                self.end = Some(end.clone());
                Poll::Ready(Err(end))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for LinkReceiver {
    fn drop(&mut self) {
        self.outbox.close(CloseCode::DONE, "");
        if let Source::Memory(source) = &self.source {
            source.announce_close(&self.outbox);
        }
    }
}

impl core::fmt::Debug for LinkReceiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LinkReceiver").field("end", &self.end).finish_non_exhaustive()
    }
}
