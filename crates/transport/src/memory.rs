//! A link with both ends in one process: no socket, no task, no time. Each end fills the queue that the other
//! takes from, so the same bounds hold as on a real link. It has only a stream, like a WebSocket: nothing is
//! lost, so packets that may be lost are not needed.

use crate::closed::LinkClosed;
use crate::link::{Link, Source, Wire};
use crate::outbox::{Capacity, Outbox};
use bytes::Bytes;
use core::net::{Ipv4Addr, SocketAddr};
use core::task::{Context, Poll};
use futures_util::stream::{BoxStream, StreamExt, unfold};
use parlor_proto::{Carrier, Packet};
use std::sync::Arc;

/// As much as a QUIC link and its library queue. Only the stream is used.
const CAPACITY: Capacity = Capacity { datagram_bytes: 1, stream_bytes: 64 * 1024, isolated_bytes: 1 };

/// Creates two connected links. A sent packet is with the peer at once, so
/// [`closed`](crate::LinkSender::closed) does not wait.
pub fn pair() -> (Link, Link) {
    let left = Arc::new(Outbox::new(CAPACITY));
    let right = Arc::new(Outbox::new(CAPACITY));
    (end_of(&left, &right), end_of(&right, &left))
}

/// Ends the peer's half after this one closed, so that the peer's next send fails. Queued packets stay for
/// it.
pub(crate) fn announce_close(own: &Outbox, peer: &Outbox) {
    if let Some(farewell) = own.farewell() {
        peer.lose(LinkClosed::ByPeer { code: farewell.code, reason: farewell.reason });
    }
}

pub(crate) struct MemorySource {
    peer: Arc<Outbox>,
    packets: BoxStream<'static, Option<Bytes>>,
}

impl MemorySource {
    pub(crate) fn poll_packet(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, LinkClosed>> {
        // Usually several packets are there.
        if let Some(bytes) = self.peer.try_pop(Carrier::Stream) {
            return Poll::Ready(Ok(Packet { carrier: Carrier::Stream, bytes }));
        }
        match self.packets.poll_next_unpin(cx) {
            Poll::Ready(Some(Some(bytes))) => Poll::Ready(Ok(Packet { carrier: Carrier::Stream, bytes })),
            Poll::Ready(_) => Poll::Ready(Err(match self.peer.farewell() {
                Some(farewell) => LinkClosed::ByPeer { code: farewell.code, reason: farewell.reason },
                None => LinkClosed::Reset,
            })),
            Poll::Pending => Poll::Pending,
        }
    }

    pub(crate) fn announce_close(&self, own: &Outbox) {
        announce_close(own, &self.peer);
    }
}

fn end_of(own: &Arc<Outbox>, peer: &Arc<Outbox>) -> Link {
    let packets = unfold(Arc::clone(peer), |outbox| async move {
        let packet = outbox.pop(Carrier::Stream).await;
        Some((packet, outbox))
    });
    let source = MemorySource { peer: Arc::clone(peer), packets: packets.boxed() };
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Link::new(Wire::Memory { peer: Arc::clone(peer) }, remote, Source::Memory(source), Arc::clone(own))
}
