//! Limits the traffic to a candidate that has not answered. A candidate is an address named by another
//! player, and may belong to a third party. So datagrams to it are counted below QUIC, whose own
//! retransmissions and closes know no such limit.
//!
//! An answer changes the connection id that packets are sent to. A datagram to the initial id of a dial
//! ([`super::name`]) is therefore one to a peer that has not answered.

use core::fmt;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionId, UdpPoller};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// Maximum datagrams to a candidate that does not answer. Each has 1,200 bytes, the minimum for a first
/// packet.
pub const PROBES_MAX: u8 = 3;
/// Minimum time between two of them. The library sends some in pairs, of which the second would be wasted.
const PROBE_INTERVAL: Duration = Duration::from_millis(150);
/// Number of remembered dials, the newest ones: more than can be active, because a cancelled one still sends
/// a close.
const WATCHED_MAX: usize = 2 * super::accept_filter::ATTEMPTS_MAX * super::accept_filter::CANDIDATES_MAX;

/// The dials of one socket.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    is_watching: AtomicBool,
    watched: Mutex<VecDeque<Watched>>,
}

#[derive(Debug)]
struct Watched {
    name: ConnectionId,
    left: u8,
    sent_at: Option<Instant>,
}

impl Probes {
    /// Begins to count datagrams to this connection id.
    pub(super) fn watch(&self, name: ConnectionId) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() == WATCHED_MAX {
            watched.pop_front();
        }
        watched.push_back(Watched { name, left: PROBES_MAX, sent_at: None });
        self.is_watching.store(true, Ordering::Release);
    }

    /// Whether a datagram may be sent; counts it if so.
    fn let_go(&self, datagram: &[u8], now: Instant) -> bool {
        if !self.is_watching.load(Ordering::Acquire) {
            return true;
        }
        let Some(name) = long_header_destination(datagram) else { return true };
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(dial) = watched.iter_mut().rfind(|dial| *dial.name == *name) else { return true };
        let is_early = dial.sent_at.is_some_and(|sent_at| now < sent_at + PROBE_INTERVAL);
        if dial.left == 0 || is_early {
            return false;
        }
        dial.left = dial.left.saturating_sub(1);
        dial.sent_at = Some(now);
        true
    }
}

/// The destination connection id of a packet with a long header (RFC 9000, 17.2), which every packet before
/// the end of the handshake has.
fn long_header_destination(datagram: &[u8]) -> Option<&[u8]> {
    const FORM_LONG: u8 = 0x80;
    const LENGTH_AT: usize = 5;
    datagram.first().filter(|first| *first & FORM_LONG != 0)?;
    let length = usize::from(*datagram.get(LENGTH_AT)?);
    datagram.get(LENGTH_AT + 1..LENGTH_AT + 1 + length)
}

/// Applies the limit to a socket.
pub(crate) fn guard(inner: Arc<dyn AsyncUdpSocket>, probes: Arc<Probes>) -> Arc<dyn AsyncUdpSocket> {
    Arc::new(Guarded { inner, probes })
}

struct Guarded {
    inner: Arc<dyn AsyncUdpSocket>,
    probes: Arc<Probes>,
}

impl AsyncUdpSocket for Guarded {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if !self.probes.is_watching.load(Ordering::Acquire) {
            return self.inner.try_send(transmit);
        }
        // Datagrams of one batch belong to one connection, so the allowed ones are the first of it.
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let now = Instant::now();
        let datagrams = transmit.contents.chunks(size);
        let bytes = datagrams.take_while(|datagram| self.probes.let_go(datagram, now)).map(<[u8]>::len).sum();
        if bytes == 0 {
            // To the library it looks like a lost datagram.
            return Ok(());
        }
        self.inner.try_send(&Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn,
            contents: &transmit.contents[..bytes],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("inner", &self.inner).finish_non_exhaustive()
    }
}
