//! The UDP socket below all connections of a port. What its connections send in one turn of the runtime leaves in one
//! system call (`sendmmsg`), because most of what a small packet costs is its way into the kernel.
//!
//! What differs from the library's own socket is only the way out: a packet waits until the tasks that are ready have had their
//! turn, a few microseconds. Reading, and several segments for one peer at once, are left to the library.

use core::net::{IpAddr, SocketAddr};
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_util::future::poll_fn;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Packets that leave in one system call at most.
const BATCH_PACKETS_MAX: usize = 64;

/// Makes the socket. Must be called in a tokio runtime.
pub(crate) fn batching(socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    let own = socket.try_clone()?;
    let plain = TokioRuntime.wrap_udp_socket(socket)?;
    let filled = Arc::new(Notify::new());
    let socket =
        Arc::new(BatchingSocket { plain, own, batch: Mutex::default(), filled: Arc::clone(&filled) });
    tokio::spawn(send_batches(Arc::downgrade(&socket), filled));
    Ok(socket)
}

#[derive(Debug)]
struct BatchingSocket {
    /// Reads, waits, and sends what does not go into a batch.
    plain: Arc<dyn AsyncUdpSocket>,
    /// The same socket.
    own: UdpSocket,
    batch: Mutex<Batch>,
    /// A packet waits.
    filled: Arc<Notify>,
}

/// Packets that wait to leave together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    packets: Vec<Queued>,
    /// Their bytes, one after the other.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    to: SockaddrStorage,
    head: Head,
    start: usize,
    end: usize,
}

/// What the control messages of a packet say. Only packets that have it in common share a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    is_ipv4: bool,
    ecn: u8,
    from: IpAddr,
}

/// Sends what waits, whenever something does, as long as the socket is there.
async fn send_batches(socket: Weak<BatchingSocket>, filled: Arc<Notify>) {
    loop {
        filled.notified().await;
        let Some(socket) = socket.upgrade() else { return };
        let mut poller = Arc::clone(&socket.plain).create_io_poller();
        while let Err(error) = socket.flush() {
            if error.kind() != io::ErrorKind::WouldBlock
                || poll_fn(|cx| poller.as_mut().poll_writable(cx)).await.is_err()
            {
                tracing::debug!(%error, "packets could not be sent");
                socket.lock().clear();
            }
        }
    }
}

impl BatchingSocket {
    fn flush(&self) -> io::Result<()> {
        self.lock().send(&self.own)
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Whether it takes no more until it is sent.
    pub(super) fn is_full(&self) -> bool {
        self.packets.len() >= BATCH_PACKETS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Takes a packet, unless it has several segments or does not say from which address it goes: `false`.
    pub(super) fn push(&mut self, transmit: &Transmit<'_>) -> bool {
        let is_single = transmit.segment_size.is_none_or(|size| size >= transmit.contents.len());
        let (Some(from), true) = (transmit.src_ip, is_single) else { return false };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(transmit.contents);
        let end = self.bytes.len();
        let is_ipv4 = transmit.destination.ip().to_canonical().is_ipv4();
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        let head = Head { is_ipv4, ecn, from };
        self.packets.push(Queued { to: transmit.destination.into(), head, start, end });
        true
    }

    /// Sends what waits. A packet that the system refuses is lost, as on any network.
    ///
    /// # Errors
    /// The system takes no more at the moment: the rest still waits.
    pub(super) fn send(&mut self, socket: &impl AsRawFd) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.packets.len() {
            match send_some(socket, self, sent) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.forget(sent);
                    return Err(error);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::trace!(%error, "a packet was not sent");
                    sent += 1;
                }
            }
        }
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
    }

    /// Drops the first ones, which were sent.
    fn forget(&mut self, count: usize) {
        let start = self.packets.get(count).map_or(self.bytes.len(), |packet| packet.start);
        self.packets.drain(..count);
        self.bytes.drain(..start);
        for packet in &mut self.packets {
            (packet.start, packet.end) = (packet.start - start, packet.end - start);
        }
    }
}

/// Sends packets from `first` on, as many as have their head in common; gives how many the system took.
fn send_some(socket: &impl AsRawFd, batch: &Batch, first: usize) -> io::Result<usize> {
    let head = batch.packets[first].head;
    let alike = batch.packets[first..].iter().take_while(|packet| packet.head == head);
    let (mut slices, mut addresses) =
        (Vec::with_capacity(BATCH_PACKETS_MAX), Vec::with_capacity(BATCH_PACKETS_MAX));
    for packet in alike.take(BATCH_PACKETS_MAX) {
        slices.push([IoSlice::new(&batch.bytes[packet.start..packet.end])]);
        addresses.push(Some(packet.to));
    }
    let (tos, class) = (head.ecn, i32::from(head.ecn));
    let marking =
        if head.is_ipv4 { ControlMessage::Ipv4Tos(&tos) } else { ControlMessage::Ipv6TClass(&class) };
    let (v4, v6);
    let source = match head.from {
        IpAddr::V4(from) => {
            v4 = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            ControlMessage::Ipv4PacketInfo(&v4)
        }
        IpAddr::V6(from) => {
            v6 = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: from.octets() }, ipi6_ifindex: 0 };
            ControlMessage::Ipv6PacketInfo(&v6)
        }
    };
    // Its capacity must be what both messages take: the system reads all of it.
    let room = match (head.is_ipv4, head.from) {
        (true, IpAddr::V4(_)) => nix::cmsg_space!(u8, libc::in_pktinfo),
        (true, IpAddr::V6(_)) => nix::cmsg_space!(u8, libc::in6_pktinfo),
        (false, IpAddr::V4(_)) => nix::cmsg_space!(i32, libc::in_pktinfo),
        (false, IpAddr::V6(_)) => nix::cmsg_space!(i32, libc::in6_pktinfo),
    };
    let mut headers = MultiHeaders::preallocate(slices.len(), Some(room));
    let flags = MsgFlags::MSG_DONTWAIT;
    let taken =
        sendmmsg(socket.as_raw_fd(), &mut headers, slices.iter(), &addresses, [marking, source], flags)?;
    Ok(taken.count())
}

impl AsyncUdpSocket for BatchingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let plain = Arc::clone(&self.plain).create_io_poller();
        Box::pin(Poller { socket: self, plain })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut batch = self.lock();
        if batch.is_full() {
            batch.send(&self.own)?;
        }
        let was_empty = batch.is_empty();
        if batch.push(transmit) {
            if was_empty {
                self.filled.notify_one();
            }
            return Ok(());
        }
        // What waits was sent before it.
        batch.send(&self.own)?;
        drop(batch);
        self.plain.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.plain.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.plain.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.plain.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.plain.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.plain.may_fragment()
    }
}

/// The batch takes packets as long as it is not full; then the socket itself must.
#[derive(Debug)]
struct Poller {
    socket: Arc<BatchingSocket>,
    plain: Pin<Box<dyn UdpPoller>>,
}

impl UdpPoller for Poller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.socket.lock().is_full() {
            return Poll::Ready(Ok(()));
        }
        self.plain.as_mut().poll_writable(cx)
    }
}
