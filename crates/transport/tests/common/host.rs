//! An engine whose owner accepts every client, driven by the test itself.

use super::{HANG, LOCALHOST, identity, within};
use core::future::Future;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::{Packet, limits};
use parlor_transport::impaired::Conditions;
use parlor_transport::quic::engine::{Event, Id, Incoming};
use parlor_transport::quic::{Dialer, Engine, HandshakeLimits};
use parlor_transport::{Link, SendError, ServerTls, Trust};
use std::collections::VecDeque;
use std::time::Instant;

pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) addr: SocketAddr,
    pub(crate) trust: Trust,
    /// The server's certificate, as a client's roots.
    pub(crate) certificates: String,
    /// The handshake timeout.
    pub(crate) handshake_time: Duration,
    seen: VecDeque<Event>,
}

impl Host {
    pub(crate) fn start() -> Self {
        Self::start_with(HandshakeLimits::default())
    }

    pub(crate) fn start_with(limits: HandshakeLimits) -> Self {
        Self::start_on(limits, None)
    }

    /// A host with an impaired network, if there are conditions.
    pub(crate) fn start_on(limits: HandshakeLimits, conditions: Option<&Conditions>) -> Self {
        let identity = identity();
        let tls = ServerTls::new(&identity);
        let engine = Engine::bind(LOCALHOST, &tls, limits, conditions).expect("a free port");
        let addr = engine.local_addr().expect("it is bound");
        let trust = Trust::Fingerprint(identity.fingerprint());
        let certificates = identity.to_pem().certificates;
        let handshake_time = limits::HANDSHAKE_TIMEOUT;
        Host { engine, addr, trust, certificates, handshake_time, seen: VecDeque::new() }
    }

    /// Returns the next event, including new clients.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            if let Some(event) = self.seen.pop_front().or_else(|| self.engine.poll_event()) {
                return event;
            }
            self.turn().await;
        }
    }

    /// Sends, waits and receives.
    pub(crate) async fn turn(&mut self) {
        self.engine.flush(Instant::now());
        let due = self.engine.poll_timeout().map(tokio::time::Instant::from_std);
        let due = due.unwrap_or_else(|| tokio::time::Instant::now() + HANG);
        if let Ok(ready) = tokio::time::timeout_at(due, self.engine.ready()).await {
            ready.expect("the socket is fine");
        }
        self.engine.turn(Instant::now()).expect("the socket is fine");
    }

    /// Returns the next event; every client is accepted, and every session admitted.
    pub(crate) async fn told(&mut self) -> Event {
        loop {
            match self.event().await {
                Event::Incoming(incoming) => self.let_in(incoming),
                Event::Asked { id, .. } => self.engine.admit(id, Instant::now()),
                event => return event,
            }
        }
    }

    /// Returns the next event; every client is accepted, and its session is the caller's to decide about.
    pub(crate) async fn asked(&mut self) -> Event {
        loop {
            match self.event().await {
                Event::Incoming(incoming) => self.let_in(incoming),
                event => return event,
            }
        }
    }

    fn let_in(&mut self, incoming: Incoming) {
        // A client that violates the protocol at once causes no further event.
        let _ = self.engine.accept(incoming, self.handshake_time, Instant::now());
    }

    /// The next client.
    pub(crate) async fn accept(&mut self) -> Id {
        match self.told().await {
            Event::Connected { id, .. } => id,
            event => panic!("{event:?}"),
        }
    }

    /// The next packet.
    pub(crate) async fn packet(&mut self) -> (Id, Packet) {
        match self.told().await {
            Event::Packet { id, packet } => (id, packet),
            event => panic!("{event:?}"),
        }
    }

    /// Serves everyone while `future` runs; events are kept for later.
    pub(crate) async fn serve_while<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = core::pin::pin!(future);
        let mut seen = VecDeque::new();
        let output = loop {
            tokio::select! {
                biased;
                output = &mut future => break output,
                event = self.event() => match event {
                    Event::Incoming(incoming) => self.let_in(incoming),
                    Event::Asked { id, .. } => self.engine.admit(id, Instant::now()),
                    event => seen.push_back(event),
                },
            }
        };
        seen.append(&mut self.seen);
        self.seen = seen;
        output
    }

    /// Sends a packet, when there is room for it.
    pub(crate) async fn send(&mut self, id: Id, packet: Packet) {
        let mut packet = packet;
        while let Err(error) = self.engine.send(id, packet) {
            let SendError::NotWritable(back) = error else { panic!("{error}") };
            packet = back;
            let event = self.told().await;
            assert!(matches!(event, Event::Writable { .. }), "{event:?}");
        }
    }

    /// A client, and its id here.
    pub(crate) async fn client(&mut self, dialer: &Dialer) -> (Link, Id) {
        let (addr, trust) = (self.addr, self.trust.clone());
        let dialing = dialer.connect(addr, "localhost", &trust, HANG);
        let link = self.serve_while(dialing).await.expect("it connects");
        (link, self.accept().await)
    }

    /// Shows that clients are still served.
    pub(crate) async fn assert_serves(&mut self) {
        let dialer = Dialer::new();
        let (mut client, id) = self.client(&dialer).await;
        self.send(id, super::packet(parlor_proto::Carrier::Stream, "still here")).await;
        let received = within(self.serve_while(client.recv())).await.expect("it was sent");
        assert_eq!(received.bytes, "still here");
    }
}
