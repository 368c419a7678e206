//! The UDP port of an engine: what comes in is read in batches, what goes out leaves in batches.

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

/// Reads of the system's at once; each may have several datagrams of one sender.
const READS_MAX: usize = quinn::udp::BATCH_SIZE;
/// Largest datagram that is read whole, in bytes: what fits in a packet of Ethernet. Peers are told so.
pub(super) const DATAGRAM_BYTES_MAX: u16 = 1_472;
/// Datagrams of one connection that leave in one call of the library's.
const SEGMENTS_MAX: usize = 10;

pub(super) struct Port {
    /// Reads, waits, and sends what does not go into a batch.
    socket: Arc<dyn AsyncUdpSocket>,
    poller: Pin<Box<dyn UdpPoller>>,
    #[cfg(target_os = "linux")]
    batch: Option<Batch>,
    buffer: Box<[u8]>,
    metas: [RecvMeta; READS_MAX],
    /// How many of `metas` hold what was read and not taken.
    read: usize,
    /// Something waits to be sent, and the system takes no more at the moment.
    is_blocked: bool,
}

/// What waits to leave, and the socket by which it does.
#[cfg(target_os = "linux")]
struct Batch {
    own: UdpSocket,
    waiting: super::batch::Batch,
}

/// The system takes no more at the moment.
#[derive(Debug)]
pub(super) struct Blocked;

impl Port {
    /// Opens a port, on a bad network if there are conditions.
    pub(super) fn bind(addr: SocketAddr, conditions: Option<&Conditions>) -> io::Result<Self> {
        let own = bind_udp(addr)?;
        let socket = wrap(own.try_clone()?)?;
        match conditions {
            Some(conditions) => Self::new(impaired::impair(socket, conditions), None),
            None => Self::new(socket, Some(own)),
        }
    }

    /// `own` is the same socket, if nothing must come between this and the system.
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

    /// Datagrams of one connection that [`send`](Self::send) takes at once.
    pub(super) fn segments_max(&self) -> usize {
        self.socket.max_transmit_segments().min(SEGMENTS_MAX)
    }

    /// Ready when something was read, or when what waited to be sent can be.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_blocked
            && let Poll::Ready(writable) = self.poller.as_mut().poll_writable(cx)
        {
            self.is_blocked = false;
            return Poll::Ready(writable);
        }
        self.poll_read(cx)
    }

    /// Reads what is there. `false` if that is nothing.
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
                // It means nothing in QUIC, and anybody can cause it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// How many reads wait to be taken; whether there may be more.
    pub(super) fn take_reads(&mut self) -> (usize, bool) {
        let read = core::mem::take(&mut self.read);
        (read, read == READS_MAX)
    }

    /// One of the reads: where from, and its datagrams, [`RecvMeta::stride`] bytes each.
    pub(super) fn read(&self, at: usize) -> (RecvMeta, &[u8]) {
        let place = at * (self.buffer.len() / READS_MAX);
        let meta = self.metas[at];
        (meta, &self.buffer[place..place + meta.len])
    }

    /// Hands over what the library wants sent, from the beginning of `bytes`. What the system refuses is lost, as on any
    /// network.
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
            // What waits was sent before it.
            self.flush()?;
        }
        let sent = self.socket.try_send(&transmit);
        self.check(sent)
    }

    /// Sends what waits.
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
