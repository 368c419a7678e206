//! The engine on a socket that often refuses packets, or loses all of them: a real socket does so too rarely
//! for a test.

use super::port::Port;
use super::{Engine, Event, HandshakeLimits};
use crate::quic::{Dialer, bind_udp};
use crate::{Identity, ServerTls, Trust};
use core::net::{Ipv4Addr, SocketAddr};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;
use parlor_proto::{Carrier, Packet};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use tokio::time::{timeout, timeout_at};

const LOCALHOST: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A socket of this machine with simulated faults.
#[derive(Debug)]
struct Stubborn {
    inner: Arc<dyn AsyncUdpSocket>,
    will: Will,
}

#[derive(Debug)]
enum Will {
    /// It accepts a packet only at every third try.
    Third { tries: AtomicUsize },
    /// It loses accepted packets while this is set.
    Cut(Arc<AtomicBool>),
}

impl Stubborn {
    fn port(will: Will) -> Port {
        let inner = TokioRuntime.wrap_udp_socket(bind_udp(LOCALHOST).unwrap()).unwrap();
        Port::new(Arc::new(Stubborn { inner, will }), None).unwrap()
    }
}

impl AsyncUdpSocket for Stubborn {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match &self.will {
            Will::Third { tries } if tries.fetch_add(1, Ordering::Relaxed) % 3 < 2 => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Will::Cut(is_cut) if is_cut.load(Ordering::Relaxed) => Ok(()),
            _ => self.inner.try_send(transmit),
        }
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

/// Serves one client and echoes its packets, `count` times.
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
    let port = Stubborn::port(Will::Third { tries: AtomicUsize::new(0) });
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

/// A tick and a little.
const TICK: Duration = Duration::from_millis(34);

/// The time of the clock that all timers use.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[tokio::test(start_paused = true)]
async fn what_goes_first_when_a_path_is_back_is_not_what_waited_when_it_broke() {
    let identity = Identity::generate(&["localhost"]).unwrap();
    let is_cut = Arc::new(AtomicBool::new(false));
    let port = Stubborn::port(Will::Cut(Arc::clone(&is_cut)));
    let addr = port.local_addr().unwrap();
    let mut engine = Engine::on(port, &ServerTls::new(&identity), HandshakeLimits::default());
    let (dialer, trust) = (Dialer::new(), Trust::Fingerprint(identity.fingerprint()));
    let all = async {
        let mut dialing = pin!(dialer.connect(addr, "localhost", &trust, Duration::from_secs(60)));
        let (mut link, mut client) = (None, None);
        while link.is_none() || client.is_none() {
            tokio::select! {
                dialed = &mut dialing, if link.is_none() => link = Some(dialed.unwrap()),
                ready = engine.ready() => ready.unwrap(),
            }
            let now = now();
            engine.turn(now).unwrap();
            while let Some(event) = engine.poll_event() {
                match event {
                    Event::Incoming(incoming) => {
                        engine.accept(incoming, Duration::from_secs(60), now).unwrap();
                    }
                    Event::Connected { id, .. } => client = Some(id),
                    event => panic!("{event:?}"),
                }
            }
            engine.flush(now);
        }
        let (mut link, client) = (link.unwrap(), client.unwrap());
        // Each tick has two packets, and the path answers none.
        is_cut.store(true, Ordering::Relaxed);
        let packet = |number: u8| Packet { carrier: Carrier::Datagram, bytes: vec![number; 1_000].into() };
        let tick = async |engine: &mut Engine, number: u8| {
            tokio::time::advance(TICK).await;
            engine.turn(now()).unwrap();
            let are_taken = (0..2).all(|_| engine.send(client, packet(number)).is_ok());
            engine.flush(now());
            while engine.poll_event().is_some() {}
            are_taken
        };
        let mut refused = 0;
        for number in 0..100 {
            refused = if tick(&mut engine, number).await { refused } else { number };
        }
        assert!(refused < 70, "a starved path takes everything, and {refused} was refused");
        is_cut.store(false, Ordering::Relaxed);
        let mut number = 100;
        let first = loop {
            if let Ok(came) = timeout(Duration::ZERO, link.recv()).await {
                break came.unwrap().bytes[0];
            }
            tick(&mut engine, number).await;
            number += 1;
        };
        let age = number - first;
        assert!(age < 5, "the first that comes was {age} ticks old, of {number}");
    };
    timeout(Duration::from_secs(60), all).await.expect("this takes milliseconds; it hangs");
}
