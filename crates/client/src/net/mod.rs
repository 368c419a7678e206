//! Networking beside rooms: a game's own server, a web service, another program. TCP, UDP, WebSocket and
//! HTTP, polled from the game's loop. No call blocks and there are no callbacks. A background thread, apart
//! from that of the rooms, does the work.
//!
//! ```no_run
//! use parlor::net::{self, Event};
//!
//! let mut scores = net::get("https://scores.example/v1/top?n=10");
//! let mut chat = net::websocket("wss://chat.example/lobby");
//! chat.send_text("hello")?;
//! loop {
//!     if let Some(answer) = scores.poll_response() {
//!         let answer = answer?;
//!         println!("{}: {} bytes", answer.head.status, answer.body.len());
//!     }
//!     while let Some(event) = chat.poll() {
//!         match event {
//!             Event::Open => println!("connected"),
//!             Event::Text(text) => println!("{text}"),
//!             Event::Message(bytes) => println!("{} bytes", bytes.len()),
//!             Event::Closed(why) => return Ok(println!("{why}")),
//!         }
//!     }
//!     // Draw, and wait for the next frame.
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - A [`Connection`] reports that it is open, what was received, and **once** how it ended.
//! - A [`Request`] reports the head of its answer, its body piece by piece, and once that it is done; or the
//!   whole answer at once.
//! - A [`UdpSocket`] sends datagrams to any address, and receives those of any sender.
//! - An [`Upload`] is the body of a request that the game sends piece by piece.
//! - [`Options`] has limits, headers, and the trusted certificates.
//!
//! Bounded: each queue, message and answer, and the time to connect. Absent: a way to switch certificate
//! verification off. Not implemented yet: proxies, cookies, compression and HTTP/2. Unlike a room, `tcp`,
//! `udp`, `ws://` and `http://` have no encryption: any machine on the way can read and change the data.

mod connection;
mod dial;
mod error;
mod http;
mod options;
mod queue;
pub(crate) mod runtime;
mod socket;
mod start;
mod tcp;
mod udp;
mod upload;
mod url;
mod websocket;

pub use connection::{Connection, Event};
pub use error::{Closed, NetError, SendError};
pub use http::{Head, Progress, Request, Response};
pub use options::Options;
pub use parlor_transport::{ConnectError, Fingerprint, Trust};
pub use socket::UdpSocket;
pub use udp::UDP_MESSAGE_BYTES_MAX;
pub use upload::Upload;

use bytes::Bytes;

/// Connects by TCP. `host` is a name or an address (IPv6 without brackets). TCP is a byte stream: one send
/// may arrive in several pieces, and several in one. A protocol on it must mark where each message ends.
/// There is no encryption.
pub fn tcp(host: &str, port: u16) -> Connection {
    Options::default().tcp(host, port)
}

/// Sends and receives datagrams by UDP, to and from one address. `host` is a name or an address (IPv6 without
/// brackets). It is [open](Event::Open) as soon as the address is resolved, whether or not a program listens
/// there. Datagrams may be lost, duplicated and reordered. Keep them at or below 1,200 bytes. There is no
/// encryption. For several other ends, or one that speaks first, bind a [`UdpSocket`].
pub fn udp(host: &str, port: u16) -> Connection {
    Options::default().udp(host, port)
}

/// Connects to a WebSocket: `wss://HOST[:PORT]/PATH` with certificate verification, or `ws://` without
/// encryption.
pub fn websocket(url: &str) -> Connection {
    Options::default().websocket(url)
}

/// Sends a GET request to an `https://` or `http://` URL. Redirects are followed, but not from `https` to
/// `http`.
pub fn get(url: &str) -> Request {
    Options::default().get(url)
}

/// Sends a POST request with a body to an `https://` or `http://` URL. Set the header `content-type` with
/// [`Options::header`].
pub fn post(url: &str, body: impl Into<Bytes>) -> Request {
    Options::default().post(url, body)
}

/// Sends a PUT request with a body to an `https://` or `http://` URL. Set the header `content-type` with
/// [`Options::header`].
pub fn put(url: &str, body: impl Into<Bytes>) -> Request {
    Options::default().put(url, body)
}

/// Sends a request with any method and an optional body to an `https://` or `http://` URL: see
/// [`Options::fetch`], and [`Options::fetch_streamed`] for a body piece by piece.
pub fn fetch(method: &str, url: &str, body: impl Into<Bytes>) -> Request {
    Options::default().fetch(method, url, body)
}
