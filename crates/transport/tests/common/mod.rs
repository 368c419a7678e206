//! Two ends of a link of each kind, on real sockets of this machine.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod h3;
pub(crate) mod host;
pub(crate) mod hub;
pub(crate) mod nat;
pub(crate) mod raw;

use bytes::Bytes;
use core::future::Future;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use hub::Hub;
use parlor_proto::{Carrier, LinkKind, Packet};
use parlor_transport::impaired::Conditions;
use parlor_transport::quic::webtransport::{answer, greeting, request};
use parlor_transport::quic::{Dialer, Session, establish, establish_session, server_config};
use parlor_transport::tls::{Sniffed, sniff};
use parlor_transport::websocket::{self, Target};
use parlor_transport::{Identity, Link, ServerTls, Trust, Violation, memory};
use quinn::{ConnectionError, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Timeout: only a hang takes this long.
pub(crate) const HANG: Duration = Duration::from_secs(60);

pub(crate) const LOCALHOST: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("this takes milliseconds; it hangs")
}

pub(crate) fn packet(carrier: Carrier, bytes: impl Into<Bytes>) -> Packet {
    Packet { carrier, bytes: bytes.into() }
}

pub(crate) fn identity() -> Identity {
    Identity::generate(&["localhost", "127.0.0.1"]).expect("these names are fine")
}

/// The two ends of a link, and what must live as long.
pub(crate) struct Ends {
    pub(crate) client: Link,
    pub(crate) server: Link,
    _quic: Option<(Dialer, Endpoint)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    Memory,
    Quic,
    WebTransport,
    Ws,
    Wss,
    /// QUIC between two players; the client is the one that dials.
    Direct,
}

impl Made {
    pub(crate) const ALL: [Made; 5] = [Made::Memory, Made::Quic, Made::WebTransport, Made::Ws, Made::Wss];

    pub(crate) fn kind(self) -> LinkKind {
        match self {
            Made::Memory => LinkKind::Memory,
            Made::Quic | Made::Direct => LinkKind::Quic,
            Made::WebTransport => LinkKind::WebTransport,
            Made::Ws | Made::Wss => LinkKind::WebSocket,
        }
    }

    pub(crate) async fn ends(self) -> Ends {
        self.ends_with(None).await
    }

    /// Ends whose client has an impaired network, in both directions.
    pub(crate) async fn ends_on(self, conditions: &Conditions) -> Ends {
        self.ends_with(Some(conditions)).await
    }

    async fn ends_with(self, conditions: Option<&Conditions>) -> Ends {
        let (client, server, quic) = match self {
            Made::Memory => {
                let (client, server) = memory::pair();
                (client, server, None)
            }
            Made::Quic => {
                let listener = QuicServer::start();
                let dialer = conditions.cloned().map_or_else(Dialer::new, Dialer::impaired);
                let dialing = dialer.connect(listener.addr, "localhost", &listener.trust, HANG);
                let (client, server) = tokio::join!(dialing, listener.accept());
                (client.expect("it connects"), server, Some((dialer, listener.endpoint)))
            }
            Made::WebTransport => {
                let listener = QuicServer::start();
                let dialer = conditions.cloned().map_or_else(Dialer::new, Dialer::impaired);
                let dialing = dialer.connect_webtransport(listener.addr, "localhost", &listener.trust, HANG);
                let (client, server) = tokio::join!(dialing, listener.accept_session());
                (client.expect("it connects"), server, Some((dialer, listener.endpoint)))
            }
            Made::Direct => {
                let hub = Hub::start();
                let dialer = conditions.cloned().map_or_else(Dialer::new, Dialer::impaired);
                let (member, host) = (hub.player_with(dialer).await, hub.player().await);
                let (client, server) = hub.introduce((&member, &[host.at]), (&host, &[member.at])).await;
                (client, server, None)
            }
            Made::Ws | Made::Wss => {
                let server = TcpServer::start().await;
                let target = server.target(matches!(self, Made::Wss));
                let dialing = websocket::connect_impaired(&target, &server.trust, HANG, conditions);
                let (client, server) = tokio::join!(dialing, server.accept());
                (client.expect("it connects"), server, None)
            }
        };
        Ends { client, server, _quic: quic }
    }
}

/// A QUIC server of one identity, each of whose clients has a link.
pub(crate) struct QuicServer {
    endpoint: Endpoint,
    pub(crate) addr: SocketAddr,
    pub(crate) trust: Trust,
    pub(crate) identity: Identity,
    /// Its certificate, as a client's roots.
    pub(crate) certificates: String,
}

impl QuicServer {
    pub(crate) fn start() -> Self {
        let identity = identity();
        let config = server_config(&ServerTls::new(&identity));
        let endpoint = Endpoint::server(config, LOCALHOST).expect("a free port");
        let addr = endpoint.local_addr().expect("it is bound");
        let (trust, certificates) =
            (Trust::Fingerprint(identity.fingerprint()), identity.to_pem().certificates);
        QuicServer { endpoint, addr, trust, identity, certificates }
    }

    /// Returns the next client that is accepted; others are skipped.
    pub(crate) async fn accept(&self) -> Link {
        loop {
            if let Ok(Ok(link)) = self.handshake().await {
                return link;
            }
        }
    }

    /// The handshake with the next client.
    pub(crate) async fn handshake(&self) -> Result<Result<Link, Violation>, ConnectionError> {
        let incoming = self.endpoint.accept().await.expect("it is open");
        incoming.await.map(establish)
    }

    /// Returns the next client's session over WebTransport.
    pub(crate) async fn accept_session(&self) -> Link {
        let connecting = self.endpoint.accept().await.expect("it is open");
        let connection = connecting.await.expect("it connects");
        let mut control = connection.open_uni().await.expect("there is credit");
        control.write_all(&greeting()).await.expect("it is open");
        let (mut answers, mut asked) = connection.accept_bi().await.expect("it asks");
        let expected = request(&format!("localhost:{}", self.addr.port()), None);
        let mut frame = vec![0; expected.len()];
        asked.read_exact(&mut frame).await.expect("it asks");
        assert_eq!(frame, expected);
        answers.write_all(&answer(200)).await.expect("it waits");
        establish_session(connection, Session::new(control, answers, asked)).expect("it has datagrams")
    }

    /// Shows that the server still takes clients.
    pub(crate) async fn assert_serves(&self) {
        let dialer = Dialer::new();
        let dialing = dialer.connect(self.addr, "localhost", &self.trust, HANG);
        let (client, mut server) = tokio::join!(dialing, self.accept());
        client.expect("it connects").send(packet(Carrier::Stream, "still here")).expect("it is new");
        assert_eq!(server.recv().await.expect("it was sent").bytes, "still here");
    }
}

/// A TCP server that speaks WebSocket with and without TLS on one port, like the real one.
pub(crate) struct TcpServer {
    pub(crate) listener: TcpListener,
    pub(crate) addr: SocketAddr,
    pub(crate) trust: Trust,
    pub(crate) identity: Identity,
}

impl TcpServer {
    pub(crate) async fn start() -> Self {
        let identity = identity();
        let listener = TcpListener::bind(LOCALHOST).await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        TcpServer { listener, addr, trust: Trust::Fingerprint(identity.fingerprint()), identity }
    }

    pub(crate) fn target(&self, secure: bool) -> Target {
        Target { secure, addr: self.addr, host: "localhost".to_owned(), path: "/link".to_owned() }
    }

    pub(crate) async fn accept(&self) -> Link {
        let (stream, remote) = self.listener.accept().await.expect("a client");
        match sniff(stream, remote, &ServerTls::new(&self.identity)).await.expect("it begins well") {
            Sniffed::Plain(stream) => upgrade(stream, remote).await,
            Sniffed::Tls(stream) => upgrade(*stream, remote).await,
        }
    }

    pub(crate) async fn assert_serves(&self) {
        let target = self.target(true);
        let (client, mut server) =
            tokio::join!(websocket::connect(&target, &self.trust, HANG), self.accept());
        client.expect("it connects").send(packet(Carrier::Stream, "still here")).expect("it is new");
        assert_eq!(server.recv().await.expect("it was sent").bytes, "still here");
    }
}

/// Runs the HTTP part of a WebSocket and creates a link.
pub(crate) async fn upgrade(mut io: impl websocket::Io, remote: SocketAddr) -> Link {
    let head = read_head(&mut io).await;
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    assert_eq!(header("sec-websocket-protocol").as_deref(), Some(websocket::SUBPROTOCOL));
    let key = header("sec-websocket-key").expect("a WebSocket client sends a key");
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Protocol: {}\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        websocket::SUBPROTOCOL,
        websocket::accept_key(&key)
    );
    io.write_all(answer.as_bytes()).await.expect("the client waits for it");
    io.flush().await.expect("the client waits for it");
    websocket::accept(io, remote).await
}

async fn read_head(io: &mut impl websocket::Io) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.expect("a whole head comes"));
    }
    String::from_utf8(head).expect("a head is text")
}

/// A port on which nothing listens.
pub(crate) async fn dead_tcp_port() -> SocketAddr {
    let listener = TcpListener::bind(LOCALHOST).await.expect("a free port");
    listener.local_addr().expect("it is bound")
}

/// A raw TCP connection to a server.
pub(crate) async fn tcp(addr: SocketAddr) -> TcpStream {
    TcpStream::connect(addr).await.expect("it listens")
}
