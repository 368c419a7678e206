//! The calls of [`Options`] that begin a connection or a request.

use super::connection::Connection;
use super::error::NetError;
use super::http::Request;
use super::options::Options;
use super::socket::UdpSocket;
use super::upload::{Body, Upload};
use super::{http, tcp, udp, upload, websocket};
use bytes::Bytes;
use core::net::SocketAddr;

impl Options {
    /// As [`net::tcp`](super::tcp()).
    pub fn tcp(self, host: &str, port: u16) -> Connection {
        tcp::open(host, port, self)
    }

    /// As [`net::udp`](super::udp()).
    pub fn udp(self, host: &str, port: u16) -> Connection {
        udp::open(host, port, self)
    }

    /// As [`UdpSocket::bind`].
    ///
    /// # Errors
    /// [`NetError::Bind`] if the operating system refuses it; [`NetError::Module`] if the module is switched off.
    pub fn bind_udp(self, addr: impl Into<SocketAddr>) -> Result<UdpSocket, NetError> {
        UdpSocket::open(addr.into(), &self)
    }

    /// As [`net::websocket`](super::websocket()).
    pub fn websocket(self, url: &str) -> Connection {
        websocket::open(url, self)
    }

    /// As [`net::get`](super::get).
    pub fn get(self, url: &str) -> Request {
        self.fetch("GET", url, Bytes::new())
    }

    /// As [`net::post`](super::post).
    pub fn post(self, url: &str, body: impl Into<Bytes>) -> Request {
        self.fetch("POST", url, body)
    }

    /// As [`net::put`](super::put).
    pub fn put(self, url: &str, body: impl Into<Bytes>) -> Request {
        self.fetch("PUT", url, body)
    }

    /// Sends a request with any method to an `https://` or `http://` URL: `"PATCH"`, `"DELETE"`, `"HEAD"`, one of
    /// the game's own. Methods are case-sensitive. An empty body is none. `CONNECT` is refused.
    ///
    /// ```no_run
    /// use parlor::net::Options;
    /// let patch = Options::default()
    ///     .header("content-type", "application/merge-patch+json")
    ///     .fetch("PATCH", "https://scores.example/v1/ada", r#"{"name":"Ada"}"#);
    /// let deleted = Options::default().fetch("DELETE", "https://scores.example/v1/bob", "");
    /// ```
    pub fn fetch(self, method: &str, url: &str, body: impl Into<Bytes>) -> Request {
        http::begin(method, url, Body::Whole(body.into()), self)
    }

    /// Sends a request whose body the game gives piece by piece: a replay, a screenshot, what is longer than
    /// the game wants in memory at once. The body is sent in chunks, or with the length of
    /// [`body_len`](Self::body_len). A streamed body is sent once: a redirect that demands it again (307, 308)
    /// is the answer.
    ///
    /// ```no_run
    /// use parlor::net::{NetError, Options, SendError};
    ///
    /// let (mut request, upload) = Options::default().fetch_streamed("PUT", "https://replays.example/7");
    /// let mut upload = Some(upload);
    /// let mut pieces = std::iter::repeat_n(vec![7; 1_000], 100).peekable();
    /// let answer = loop {
    ///     while let Some(body) = &mut upload {
    ///         match pieces.peek() {
    ///             None => upload.take().expect("it is there").finish(),
    ///             Some(piece) => match body.send(piece.clone()) {
    ///                 Ok(()) => drop(pieces.next()),
    ///                 // The server reads more slowly: go on in the next frame.
    ///                 Err(SendError::Full) => break,
    ///                 // The request says why.
    ///                 Err(_) => upload = None,
    ///             },
    ///         }
    ///     }
    ///     if let Some(answer) = request.poll_response() {
    ///         break answer?;
    ///     }
    ///     std::thread::sleep(std::time::Duration::from_millis(16));
    /// };
    /// println!("{}", answer.head.status);
    /// # Ok::<(), NetError>(())
    /// ```
    pub fn fetch_streamed(self, method: &str, url: &str) -> (Request, Upload) {
        let (upload, body) = upload::streamed(&self);
        (http::begin(method, url, body, self), upload)
    }
}
