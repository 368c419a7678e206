//! The UDP port of an engine, with batched reads and writes.

use super::super::bind_udp;
use crate::impaired::{self, Conditions};
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
#[cfg(not(target_os = "linux"))]
use quinn::{Runtime, TokioRuntime};
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::sync::Arc;

/// Reads of one system call; each may have several datagrams of one sender.
const READS_MAX: usize = quinn::udp::BATCH_SIZE;
/// Maximum size of a received datagram, in bytes: that of an Ethernet packet. Peers are informed of it.
pub(super) const DATAGRAM_BYTES_MAX: u16 = 1_472;
/// Maximum datagrams of one connection in one call of the library's.
const SEGMENTS_MAX: usize = 10;

pub(super) struct Port {
    /// For reading, waiting, and sending what does not fit a batch.
    socket: Arc<dyn AsyncUdpSocket>,
    poller: Pin<Box<dyn UdpPoller>>,
    #[cfg(target_os = "linux")]
    batch: Option<Batch>,
    buffer: Box<[u8]>,
    metas: [RecvMeta; READS_MAX],
    /// The number of entries in `metas` that are read and not taken.
    read: usize,
    /// Packets are queued, and the system accepts no more at the moment.
    is_blocked: bool,
}

/// The packets of a batch, and their socket.
#[cfg(target_os = "linux")]
struct Batch {
    own: UdpSocket,
    waiting: super::batch::Batch,
}

/// The system accepts no more at the moment.
#[derive(Debug)]
pub(super) struct Blocked;

impl Port {
    /// Opens a port, impaired if there are conditions.
    pub(super) fn bind(addr: SocketAddr, conditions: Option<&Conditions>) -> io::Result<Self> {
        let own = bind_udp(addr)?;
        let socket = wrap(own.try_clone()?)?;
        match conditions {
            Some(conditions) => Self::new(impaired::impair(socket, conditions), None),
            None => Self::new(socket, Some(own)),
        }
    }

    /// `own` is the same socket, if it may be used directly.
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "there is no sendmmsg"))]
    pub(super) fn new(socket: Arc<dyn AsyncUdpSocket>, own: Option<UdpSocket>) -> io::Result<Self> {
        Ok(Port {
            poller: Arc::clone(&socket).create_io_poller(),
            buffer: vec![0; READS_MAX * usize::from(DATAGRAM_BYTES_MAX) * socket.max_receive_segments()]
                .into(),
            socket,
            #[cfg(target_os = "linux")]
            batch: own.map(|own| Batch { own, waiting: super::batch::Batch::default() }),
            metas: [RecvMeta::default(); READS_MAX],
            read: 0,
            is_blocked: false,
        })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }

    /// Maximum datagrams of one connection in a call of [`send`](Self::send).
    pub(super) fn segments_max(&self) -> usize {
        self.socket.max_transmit_segments().min(SEGMENTS_MAX)
    }

    /// Ready when something was read, or when queued packets can be sent.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_blocked
            && let Poll::Ready(writable) = self.poller.as_mut().poll_writable(cx)
        {
            self.is_blocked = false;
            return Poll::Ready(writable);
        }
        self.poll_read(cx)
    }

    /// Reads available datagrams. Returns `false` if there are none.
    pub(super) fn try_read(&mut self) -> io::Result<bool> {
        match self.poll_read(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => read.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.read > 0 {
            return Poll::Ready(Ok(()));
        }
        let place_bytes = self.buffer.len() / READS_MAX;
        let mut places = self.buffer.chunks_exact_mut(place_bytes).map(IoSliceMut::new);
        let mut places: [IoSliceMut<'_>; READS_MAX] =
            core::array::from_fn(|_| places.next().expect("the buffer is cut into as many"));
        loop {
            match ready!(self.socket.poll_recv(cx, &mut places, &mut self.metas)) {
                Ok(read) => {
                    self.read = read;
                    return Poll::Ready(Ok(()));
                }
                // This error is irrelevant to QUIC, and anyone can cause it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// The number of reads to take, and whether there may be more.
    pub(super) fn take_reads(&mut self) -> (usize, bool) {
        let read = core::mem::take(&mut self.read);
        (read, read == READS_MAX)
    }

    /// Returns a read: its source, and its datagrams with [`RecvMeta::stride`] bytes each.
    pub(super) fn read(&self, at: usize) -> (RecvMeta, &[u8]) {
        let place = at * (self.buffer.len() / READS_MAX);
        let meta = self.metas[at];
        (meta, &self.buffer[place..place + meta.len])
    }

    /// Sends the library's packet, from the beginning of `bytes`. A packet that the system rejects is lost,
    /// as on any network.
    pub(super) fn send(&mut self, transmit: &quinn_proto::Transmit, bytes: &[u8]) -> Result<(), Blocked> {
        let transmit = Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            contents: &bytes[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        #[cfg(target_os = "linux")]
        if let Some(batch) = &mut self.batch {
            if batch.waiting.is_full() {
                self.flush()?;
            }
            if let Some(batch) = &mut self.batch
                && batch.waiting.push(&transmit)
            {
                return Ok(());
            }
            // Queued packets come first.
            self.flush()?;
        }
        let sent = self.socket.try_send(&transmit);
        self.check(sent)
    }

    /// Sends the queued packets.
    pub(super) fn flush(&mut self) -> Result<(), Blocked> {
        #[cfg(target_os = "linux")]
        if let Some(Batch { own, waiting }) = &mut self.batch
            && !waiting.is_empty()
        {
            let sent = waiting.send(own);
            return self.check(sent);
        }
        Ok(())
    }

    fn check(&mut self, sent: io::Result<()>) -> Result<(), Blocked> {
        match sent {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_blocked = true;
                Err(Blocked)
            }
            Err(error) => {
                tracing::debug!(%error, "a packet was not sent");
                Ok(())
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn wrap(socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    socket.set_nonblocking(true)?;
    Ok(Arc::new(super::socket::Socket::new(socket)?))
}

#[cfg(not(target_os = "linux"))]
fn wrap(socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    TokioRuntime.wrap_udp_socket(socket)
}
