//! The network for what is not a room: a game's own server, a web service, another program. TCP, UDP, WebSocket and HTTP, which
//! are polled from the game's loop. Nothing blocks and nothing calls back; a thread in the background, apart from that of
//! the rooms, does the work.
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
//! - A [`Connection`] tells that it is open, what came, and **once** how it ended.
//! - A [`Request`] tells the head of its answer, its body piece by piece, and once that it is done; or all of it together.
//! - [`Options`] has limits, headers, and whom to trust.
//!
//! What is bounded: each queue, each message, each answer, the time that connecting takes. What is absent: a way to switch
//! the verification of certificates off, and (as nobody needed them yet) proxies, cookies, compression and HTTP/2. Unlike a
//! room, `tcp`, `udp`, `ws://` and `http://` have no encryption: whoever is on the way reads along and may change what
//! they like.

mod connection;
mod dial;
mod error;
mod http;
mod options;
mod queue;
pub(crate) mod runtime;
mod start;
mod tcp;
mod udp;
mod url;
mod websocket;

pub use connection::{Connection, Event};
pub use error::{Closed, NetError, SendError};
pub use http::{Head, Progress, Request, Response};
pub use options::Options;
pub use parlor_transport::{ConnectError, Fingerprint, Trust};
pub use udp::UDP_MESSAGE_BYTES_MAX;

use bytes::Bytes;

/// Connects by TCP. `host` is a name or an address (IPv6 without brackets). TCP is a stream of bytes: what was sent in one piece
/// may come in several, and several in one, so a protocol on it says itself where a message ends. There is no encryption.
pub fn tcp(host: &str, port: u16) -> Connection {
    Options::default().tcp(host, port)
}

/// Sends and receives datagrams by UDP, to and from one address. `host` is a name or an address (IPv6 without brackets). It is
/// [open](Event::Open) as soon as that address is known, which says nothing of whether anybody listens there. Datagrams may
/// be lost, doubled and reordered; keep them to 1,200 bytes. There is no encryption.
pub fn udp(host: &str, port: u16) -> Connection {
    Options::default().udp(host, port)
}

/// Connects to a WebSocket: `wss://HOST[:PORT]/PATH`, whose certificate is verified, or `ws://`, without encryption.
pub fn websocket(url: &str) -> Connection {
    Options::default().websocket(url)
}

/// Asks for what is at an `https://` or `http://` URL. Redirects are followed, but not from `https` to `http`.
pub fn get(url: &str) -> Request {
    Options::default().get(url)
}

/// Sends a body to an `https://` or `http://` URL. The header `content-type` says what it is: see [`Options::header`].
pub fn post(url: &str, body: impl Into<Bytes>) -> Request {
    Options::default().post(url, body)
}

/// Puts a body at an `https://` or `http://` URL. The header `content-type` says what it is: see [`Options::header`].
pub fn put(url: &str, body: impl Into<Bytes>) -> Request {
    Options::default().put(url, body)
}
