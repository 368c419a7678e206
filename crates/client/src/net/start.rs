//! The calls of [`Options`] that begin a connection or a request.

use super::connection::Connection;
use super::http::Request;
use super::options::Options;
use super::{http, tcp, udp, websocket};
use bytes::Bytes;

impl Options {
    /// As [`net::tcp`](super::tcp()).
    pub fn tcp(self, host: &str, port: u16) -> Connection {
        tcp::open(host, port, self)
    }

    /// As [`net::udp`](super::udp()).
    pub fn udp(self, host: &str, port: u16) -> Connection {
        udp::open(host, port, self)
    }

    /// As [`net::websocket`](super::websocket()).
    pub fn websocket(self, url: &str) -> Connection {
        websocket::open(url, self)
    }

    /// As [`net::get`](super::get).
    pub fn get(self, url: &str) -> Request {
        http::begin(http::Method::Get, url, self)
    }

    /// As [`net::post`](super::post).
    pub fn post(self, url: &str, body: impl Into<Bytes>) -> Request {
        http::begin(http::Method::Post(body.into()), url, self)
    }

    /// As [`net::put`](super::put).
    pub fn put(self, url: &str, body: impl Into<Bytes>) -> Request {
        http::begin(http::Method::Put(body.into()), url, self)
    }
}
