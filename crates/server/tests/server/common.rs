//! A server for one test, and ways to reach it.

use crate::client::{Client, HANG, creating, joining, within};
use core::net::{Ipv4Addr, SocketAddr};
use parlor_proto::wire::handshake::Hello;
use parlor_proto::{MemberId, RoomCode};
use parlor_server::{Config, Server};
use parlor_transport::discovery::Registry;
use parlor_transport::quic::Dialer;
use parlor_transport::websocket::{self, Target};
use parlor_transport::{ConnectError, Fingerprint, Link, Trust};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server that keeps everything in a folder of its own.
pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) registry: Registry,
    pub(crate) folder: TempDir,
}

/// For this machine only, on a free port.
pub(crate) fn local() -> Config {
    Config { listen: Ipv4Addr::LOCALHOST.into(), port: 0, ..Config::default() }
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_, _| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config, &TempDir)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let mut config = Config { registry: Some(registry.clone()), ..local() };
        change(&mut config, &folder);
        let server = Server::start(config).await.unwrap();
        TestServer { server, registry, folder }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.server.local_port()))
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::Fingerprint(self.server.fingerprint().unwrap())
    }

    pub(crate) async fn quic_link(&self) -> Result<Link, ConnectError> {
        self.quic_link_to(self.server.local_port()).await
    }

    /// To one of its shards.
    pub(crate) async fn quic_link_to(&self, port: u16) -> Result<Link, ConnectError> {
        dial(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), self.server.fingerprint().unwrap()).await
    }

    pub(crate) async fn quic(&self, hello: Hello) -> Client {
        Client::new(self.quic_link().await.unwrap(), hello)
    }

    pub(crate) fn target(&self, secure: bool) -> Target {
        Target { secure, addr: self.addr(), host: "localhost".into(), path: "/ws".into() }
    }

    pub(crate) async fn websocket(&self, secure: bool, hello: Hello) -> Client {
        let link = websocket::connect(&self.target(secure), &self.trust(), HANG).await.unwrap();
        Client::new(link, hello)
    }

    /// A room with a host on QUIC and a guest on a WebSocket.
    pub(crate) async fn room(&self) -> (Client, Client, RoomCode) {
        let mut host = self.quic(creating(None, None, 4)).await;
        let code = host.welcome().await.code;
        let mut guest = self.websocket(true, joining(code, None)).await;
        guest.welcome().await;
        assert_eq!(host.joined(2).await, [MemberId(0), MemberId(1)]);
        assert_eq!(guest.joined(2).await, [MemberId(1), MemberId(0)]);
        (host, guest, code)
    }

    /// Shows that two members of a room still hear each other, and that nobody else has a seat in it.
    pub(crate) async fn assert_goes_on(&self, host: &mut Client, guest: &mut Client, code: RoomCode) {
        host.say("are you there?").await;
        assert_eq!(guest.heard().await, (MemberId(0), "are you there?".into()));
        guest.say("yes").await;
        assert_eq!(host.heard().await, (MemberId(1), "yes".into()));
        assert_eq!(self.server.room(code).await.unwrap().players, 2, "no seat is leaked");
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await
    }

    /// Sends bytes over plain TCP and reads until the server closes.
    pub(crate) async fn ask(&self, request: &str) -> Answer {
        within(async {
            let mut stream = TcpStream::connect(self.addr()).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            Answer::new(answer)
        })
        .await
    }
}

pub(crate) async fn dial(addr: SocketAddr, fingerprint: Fingerprint) -> Result<Link, ConnectError> {
    Dialer::new().connect(addr, "localhost", &Trust::Fingerprint(fingerprint), HANG).await
}

/// What a server answers to a request.
#[derive(Debug)]
pub(crate) struct Answer(String);

impl Answer {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Answer(String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The head in lower case.
    pub(crate) fn head(&self) -> String {
        self.0.split_once("\r\n\r\n").unwrap().0.to_ascii_lowercase()
    }

    pub(crate) fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").unwrap().1
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.body()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
