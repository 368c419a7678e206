//! A UDP socket that wakes its owner for received data, and for room only while the owner waits for room.
//!
//! Registered for both, like the runtime's own sockets, it would wake its owner after each sent packet: the
//! system reports room whenever some is freed.

use crate::registered::register;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

#[derive(Debug)]
pub(super) struct Socket {
    state: UdpSocketState,
    io: AsyncFd<UdpSocket>,
}

impl Socket {
    /// Takes over a socket. Must be called in a tokio runtime, in which it stays.
    ///
    /// # Errors
    /// The operating system's error.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Socket { state, io: register(socket, Interest::READABLE)? })
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Poller { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.state.send(self.io.get_ref().into(), transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.io.poll_read_ready(cx))?;
            if let Ok(read) = ready.try_io(|socket| self.state.recv(socket.get_ref().into(), bufs, metas)) {
                // There was no more data, and the system reports new data from here on: another read is
                // unnecessary.
                if read.as_ref().is_ok_and(|read| *read < bufs.len()) {
                    ready.clear_ready();
                }
                return Poll::Ready(read);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }
}

/// Reports when the socket has room.
#[derive(Debug)]
struct Poller {
    socket: Arc<Socket>,
    /// A duplicate of the socket, while waiting for room.
    waiting: Option<AsyncFd<UdpSocket>>,
}

impl UdpPoller for Poller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.is_none() {
            let again = self.socket.io.get_ref().try_clone()?;
            self.waiting = Some(register(again, Interest::WRITABLE)?);
        }
        if let Some(waiting) = &self.waiting {
            let _is_there: AsyncFdReadyGuard<'_, _> = ready!(waiting.poll_write_ready(cx))?;
        }
        self.waiting = None;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        socket.set_nonblocking(true).expect("it is a socket");
        socket
    }

    #[tokio::test]
    async fn it_tells_what_came_and_when_there_is_room() {
        let (peer, own) = (socket(), Arc::new(Socket::new(socket()).expect("it is a socket")));
        let mut poller = Arc::clone(&own).create_io_poller();
        for number in 0..3_u8 {
            // A socket with an empty queue has room, each time it is polled.
            poll_fn(|cx| poller.as_mut().poll_writable(cx)).await.expect("it is open");
            peer.send_to(&[number], own.local_addr().expect("it is bound")).expect("it is sent");
            let (mut buffer, mut metas) = ([0; 16], [RecvMeta::default()]);
            let came = poll_fn(|cx| own.poll_recv(cx, &mut [IoSliceMut::new(&mut buffer)], &mut metas));
            let came = tokio::time::timeout(Duration::from_secs(60), came).await.expect("it was sent");
            assert_eq!((came.expect("it is open"), metas[0].len, buffer[0]), (1, 1, number));
        }
    }

    /// With a registration for both, each event reports both.
    #[tokio::test]
    async fn who_only_reads_is_not_told_of_room() {
        let (peer, own) = (socket(), Socket::new(socket()).expect("it is a socket"));
        peer.send_to(&[1], own.local_addr().expect("it is bound")).expect("it is sent");
        let told = poll_fn(|cx| own.io.poll_read_ready(cx).map(drop));
        tokio::time::timeout(Duration::from_secs(60), told).await.expect("it was sent");
        let room = own.io.poll_write_ready(&mut Context::from_waker(core::task::Waker::noop()));
        assert!(room.is_pending());
    }
}
