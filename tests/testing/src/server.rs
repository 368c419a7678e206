//! A server for one test, and requests to it.

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
pub struct TestServer {
    /// The server.
    pub server: Server,
    /// Where it is entered.
    pub registry: Registry,
    /// Its folder.
    pub folder: TempDir,
}

/// For this machine only, on a free port.
pub fn local() -> Config {
    Config { listen: Ipv4Addr::LOCALHOST.into(), port: 0, ..Config::default() }
}

impl TestServer {
    /// Starts one.
    pub async fn start() -> Self {
        Self::start_with(|_, _| {}).await
    }

    /// Starts one with a changed configuration.
    pub async fn start_with(change: impl FnOnce(&mut Config, &TempDir)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let mut config = Config { registry: Some(registry.clone()), ..local() };
        change(&mut config, &folder);
        let server = Server::start(config).await.unwrap();
        TestServer { server, registry, folder }
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.server.local_port()))
    }

    /// By what clients know it.
    pub fn trust(&self) -> Trust {
        Trust::Fingerprint(self.server.fingerprint().unwrap())
    }

    /// A link over QUIC.
    ///
    /// # Errors
    /// [`ConnectError`] if there is none.
    pub async fn quic_link(&self) -> Result<Link, ConnectError> {
        self.quic_link_to(self.server.local_port()).await
    }

    /// A link over QUIC to one of its shards.
    ///
    /// # Errors
    /// [`ConnectError`] if there is none.
    pub async fn quic_link_to(&self, port: u16) -> Result<Link, ConnectError> {
        dial(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), self.server.fingerprint().unwrap()).await
    }

    /// A member that comes over QUIC.
    pub async fn quic(&self, hello: Hello) -> Client {
        Client::new(self.quic_link().await.unwrap(), hello)
    }

    /// Where its WebSocket is.
    pub fn target(&self, secure: bool) -> Target {
        Target { secure, addr: self.addr(), host: "localhost".into(), path: "/ws".into() }
    }

    /// A member that comes over a WebSocket.
    pub async fn websocket(&self, secure: bool, hello: Hello) -> Client {
        let link = websocket::connect(&self.target(secure), &self.trust(), HANG).await.unwrap();
        Client::new(link, hello)
    }

    /// A room with a host on QUIC and a guest on a WebSocket.
    pub async fn room(&self) -> (Client, Client, RoomCode) {
        let mut host = self.quic(creating(None, None, 4)).await;
        let code = host.welcome().await.code;
        let mut guest = self.websocket(true, joining(code, None)).await;
        guest.welcome().await;
        assert_eq!(host.joined(2).await, [MemberId(0), MemberId(1)]);
        assert_eq!(guest.joined(2).await, [MemberId(1), MemberId(0)]);
        (host, guest, code)
    }

    /// Asserts that two members of a room still hear each other, and that no other member has a seat in it.
    pub async fn assert_goes_on(&self, host: &mut Client, guest: &mut Client, code: RoomCode) {
        host.say("are you there?").await;
        assert_eq!(guest.heard().await, (MemberId(0), "are you there?".into()));
        guest.say("yes").await;
        assert_eq!(host.heard().await, (MemberId(1), "yes".into()));
        assert_eq!(self.server.room(code).await.unwrap().players, 2, "no seat is leaked");
    }

    /// What it answers to a GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await
    }

    /// Sends a request and reads until the server closes.
    pub async fn ask(&self, request: &str) -> Answer {
        exchange(self.addr(), request).await
    }

    /// Asks as a browser does that has a page of this machine: a line, and headers.
    pub async fn ask_as_page(&self, line: &str, headers: &str) -> Answer {
        let head = format!("{line} HTTP/1.1\r\nHost: localhost:7700\r\n{headers}");
        self.ask(&format!("{head}\r\n\r\n")).await
    }
}

/// Sends bytes over plain TCP and reads until the server closes.
pub async fn exchange(addr: SocketAddr, request: &str) -> Answer {
    within(async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        Answer::new(answer)
    })
    .await
}

/// A link over QUIC.
///
/// # Errors
/// [`ConnectError`] if there is none.
pub async fn dial(addr: SocketAddr, fingerprint: Fingerprint) -> Result<Link, ConnectError> {
    Dialer::new().connect(addr, "localhost", &Trust::Fingerprint(fingerprint), HANG).await
}

/// What a server answers to a request.
#[derive(Debug)]
pub struct Answer(String);

impl Answer {
    /// What came.
    pub fn new(bytes: Vec<u8>) -> Self {
        Answer(String::from_utf8(bytes).unwrap())
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The head in lower case.
    pub fn head(&self) -> String {
        self.0.split_once("\r\n\r\n").unwrap().0.to_ascii_lowercase()
    }

    /// The body.
    pub fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").unwrap().1
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.body()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
