//! The UDP socket beneath QUIC, impaired in both directions.

use super::conditions::Conditions;
use super::lane::Lane;
use bytes::Bytes;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use parlor_impair::Direction;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// Maximum reads of the socket before its readers get their turn.
const READS_MAX: usize = 16;

/// Impairs a socket. Must be called in a tokio runtime.
pub(crate) fn impair(inner: Arc<dyn AsyncUdpSocket>, conditions: &Conditions) -> Arc<dyn AsyncUdpSocket> {
    let flow = conditions.next_flow();
    let leaving = Arc::new(Leaving {
        lane: Mutex::new(LeavingLane { lane: Lane::new(conditions, flow, Direction::There), is_last: false }),
        changed: Notify::new(),
    });
    tokio::spawn(send(Arc::clone(&leaving), Arc::clone(&inner)));
    let lane = Lane::new(conditions, flow, Direction::Back);
    let coming = Coming { lane, timer: Box::pin(sleep(core::time::Duration::ZERO)) };
    Arc::new(ImpairedUdp { inner, leaving, coming: Mutex::new(coming) })
}

struct ImpairedUdp {
    inner: Arc<dyn AsyncUdpSocket>,
    leaving: Arc<Leaving>,
    coming: Mutex<Coming>,
}

/// Sent datagrams that have not left this process.
struct Leaving {
    lane: Mutex<LeavingLane>,
    changed: Notify,
}

struct LeavingLane {
    lane: Lane<Outgoing>,
    /// No more will be added.
    is_last: bool,
}

/// Datagrams that have reached this process and are not received.
struct Coming {
    lane: Lane<Incoming>,
    timer: Pin<Box<Sleep>>,
}

#[derive(Clone, Debug)]
struct Outgoing {
    to: SocketAddr,
    from: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
struct Incoming {
    meta: RecvMeta,
    bytes: Bytes,
}

impl AsyncUdpSocket for ImpairedUdp {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let now = Instant::now();
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let mut leaving = self.leaving.lock();
        for contents in transmit.contents.chunks(size) {
            let datagram = Outgoing {
                to: transmit.destination,
                from: transmit.src_ip,
                ecn: transmit.ecn,
                bytes: Bytes::copy_from_slice(contents),
            };
            leaving.lane.offer(now, contents.len(), &datagram);
        }
        drop(leaving);
        self.leaving.changed.notify_one();
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner);
        let is_drained = self.read(&mut coming.lane, cx, bufs, meta)?;
        let received = coming.receive(bufs, meta);
        if received > 0 {
            return Poll::Ready(Ok(received));
        }
        if !is_drained {
            cx.waker().wake_by_ref();
        }
        ready!(coming.poll_timer(cx));
        // One became due between the check and the timer.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// The receive buffers are used for the inner socket first.
    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

impl ImpairedUdp {
    /// Reads from the socket. Returns `false` if there may be more without a wake-up of the task.
    fn read(
        &self,
        lane: &mut Lane<Incoming>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<bool> {
        for _ in 0..READS_MAX {
            let Poll::Ready(read) = self.inner.poll_recv(cx, bufs, meta) else { return Ok(true) };
            let now = Instant::now();
            for (buf, meta) in bufs.iter().zip(&*meta).take(read?) {
                // The system may pass several datagrams of one sender at once.
                for contents in buf[..meta.len].chunks(meta.stride.max(1)) {
                    let meta = RecvMeta { len: contents.len(), stride: contents.len(), ..*meta };
                    let datagram = Incoming { meta, bytes: Bytes::copy_from_slice(contents) };
                    lane.offer(now, contents.len(), &datagram);
                }
            }
        }
        Ok(false)
    }
}

impl Drop for ImpairedUdp {
    fn drop(&mut self) {
        self.leaving.lock().is_last = true;
        self.leaving.changed.notify_one();
    }
}

impl Coming {
    /// Copies arrived datagrams out, one for each buffer. Returns their count.
    fn receive(&mut self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let now = Instant::now();
        let mut received = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Some(datagram) = self.lane.take(now) else { break };
            buf[..datagram.bytes.len()].copy_from_slice(&datagram.bytes);
            *meta = datagram.meta;
            received += 1;
        }
        received
    }

    /// Waits for the next one; forever if none is in flight.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.lane.next_at() else { return Poll::Pending };
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().poll(cx)
    }
}

impl Leaving {
    fn lock(&self) -> MutexGuard<'_, LeavingLane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends datagrams when due, until the socket is dropped and everything was sent.
async fn send(leaving: Arc<Leaving>, socket: Arc<dyn AsyncUdpSocket>) {
    let mut writable = Arc::clone(&socket).create_io_poller();
    loop {
        let (due, next_at, is_last) = {
            let mut lane = leaving.lock();
            let due = lane.lane.take(Instant::now());
            (due, lane.lane.next_at(), lane.is_last)
        };
        match (due, next_at) {
            (Some(datagram), _) => transmit(&*socket, &mut writable, &datagram).await,
            (None, Some(at)) => {
                tokio::select! {
                    () = sleep_until(at) => {}
                    () = leaving.changed.notified() => {}
                }
            }
            (None, None) if is_last => return,
            (None, None) => leaving.changed.notified().await,
        }
    }
}

async fn transmit(socket: &dyn AsyncUdpSocket, writable: &mut Pin<Box<dyn UdpPoller>>, datagram: &Outgoing) {
    let transmit = Transmit {
        destination: datagram.to,
        ecn: datagram.ecn,
        contents: &datagram.bytes,
        segment_size: None,
        src_ip: datagram.from,
    };
    loop {
        match socket.try_send(&transmit) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut wait = pin!(core::future::poll_fn(|cx| writable.as_mut().poll_writable(cx)));
                if let Err(error) = wait.as_mut().await {
                    tracing::debug!(%error, "a UDP socket cannot be written to");
                    return;
                }
            }
            // A network loses what cannot be sent.
            Err(error) => {
                tracing::debug!(to = %datagram.to, %error, "a datagram could not be sent");
                return;
            }
        }
    }
}

impl fmt::Debug for ImpairedUdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImpairedUdp").field("inner", &self.inner).finish_non_exhaustive()
    }
}
