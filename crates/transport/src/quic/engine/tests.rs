//! The engine on a socket that often takes nothing, which the system's own does too rarely for a test.

use super::port::Port;
use super::{Engine, Event, HandshakeLimits};
use crate::quic::{Dialer, bind_udp};
use crate::{Identity, ServerTls, Trust};
use core::net::{Ipv4Addr, SocketAddr};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use parlor_proto::{Carrier, Packet};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::time::{timeout, timeout_at};

const LOCALHOST: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Takes a packet only at every third try.
#[derive(Debug)]
struct Stubborn {
    inner: Arc<dyn AsyncUdpSocket>,
    tries: AtomicUsize,
}

impl AsyncUdpSocket for Stubborn {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.tries.fetch_add(1, Ordering::Relaxed) % 3 < 2 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.inner.try_send(transmit)
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
}

/// Serves one client and gives back to it what it sends, `count` times.
async fn echo(mut engine: Engine, count: usize) {
    let mut given = 0;
    while given < count {
        let now = Instant::now();
        engine.flush(now);
        if let Some((at, slot)) = engine.timers.first() {
            let later = engine.slot(slot).and_then(|connection| connection.put_off(at));
            assert_eq!(later, None, "it would wake for nothing");
        }
        let due = engine.poll_timeout().map(tokio::time::Instant::from_std);
        let due = due.unwrap_or_else(|| tokio::time::Instant::now() + Duration::from_secs(60));
        if let Ok(ready) = timeout_at(due, engine.ready()).await {
            ready.unwrap();
        }
        engine.turn(Instant::now()).unwrap();
        while let Some(event) = engine.poll_event() {
            match event {
                Event::Incoming(incoming) => {
                    engine.accept(incoming, Duration::from_secs(60), now).unwrap();
                }
                Event::Connected { .. } | Event::Writable { .. } => {}
                Event::Packet { id, packet } => {
                    engine.send(id, packet).unwrap();
                    given += 1;
                }
                event => panic!("{event:?}"),
            }
        }
    }
    engine.wind_up().await;
}

#[tokio::test]
async fn what_the_system_does_not_take_at_once_is_sent_later_and_whole() {
    let identity = Identity::generate(&["localhost"]).unwrap();
    let inner = TokioRuntime.wrap_udp_socket(bind_udp(LOCALHOST).unwrap()).unwrap();
    let socket = Arc::new(Stubborn { inner, tries: AtomicUsize::new(0) });
    let port = Port::new(socket, None).unwrap();
    let addr = port.local_addr().unwrap();
    let engine = Engine::on(port, &ServerTls::new(&identity), HandshakeLimits::default());
    let talk = async {
        let (dialer, trust) = (Dialer::new(), Trust::Fingerprint(identity.fingerprint()));
        let mut link = dialer.connect(addr, "localhost", &trust, Duration::from_secs(60)).await.unwrap();
        for number in 0..60_u8 {
            let carrier = [Carrier::Datagram, Carrier::Stream, Carrier::Isolated][usize::from(number) % 3];
            let bytes = if carrier == Carrier::Datagram { 1_000 } else { 20_000 };
            let sent = Packet { carrier, bytes: vec![number; bytes].into() };
            link.send(sent.clone()).unwrap();
            assert_eq!(link.recv().await.unwrap(), sent);
        }
    };
    let all = async { tokio::join!(echo(engine, 60), talk) };
    timeout(Duration::from_secs(60), all).await.expect("this takes milliseconds; it hangs");
}
