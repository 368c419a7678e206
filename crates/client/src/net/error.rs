//! Network errors, for people and for programs.

use crate::modules::ModuleDisabled;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_transport::ConnectError;
use thiserror::Error;

/// Why a connection or a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// The module is switched off.
    #[error(transparent)]
    Module(#[from] ModuleDisabled),
    /// The text is not a URL that this call accepts.
    #[error("{url:?} is not a URL that can be used here: {why}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The text is no HTTP method, or one that a game may not use.
    #[error("{method:?} is not a method that can be used here: {why}")]
    Method {
        /// The text.
        method: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header has an invalid character, or is one that a game may not set.
    #[error("the header {name:?} cannot be sent: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No server was reached, or none that is trusted.
    #[error(transparent)]
    Connect(ConnectError),
    /// No socket can be bound to the address.
    #[error(
        "udp {addr} cannot be bound: {detail}; use an address of this machine, and another port or 0 for any free one"
    )]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The operating system's message.
        detail: String,
    },
    /// The address does not speak TLS, which was required.
    #[error("{addr} does not speak TLS: is it http:// or ws://, or another port?")]
    NoTls {
        /// The address tried.
        addr: SocketAddr,
    },
    /// An HTTP server answers, but does not accept the WebSocket.
    #[error("there is no WebSocket at {url}: {detail}")]
    NotWebSocket {
        /// The requested URL.
        url: String,
        /// What the server answered instead.
        detail: String,
    },
    /// The connection broke, or the received data is not HTTP.
    #[error("the request to {url} failed: {detail}")]
    Http {
        /// The requested URL.
        url: String,
        /// The HTTP library's message.
        detail: String,
    },
    /// Nothing was received within the timeout.
    #[error("{url} sent nothing for {} ms", waited.as_millis())]
    TimedOut {
        /// The requested URL.
        url: String,
        /// The timeout.
        waited: Duration,
    },
    /// The answer is longer than the options allow.
    #[error("the answer of {url} is longer than {bytes_max} bytes: raise body_bytes_max, or ask for less")]
    TooLarge {
        /// The requested URL.
        url: String,
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// Too many redirects, or a redirect from https:// to http://.
    #[error("{url} was left for {to}: {why}")]
    Redirect {
        /// The first URL.
        url: String,
        /// The redirect's target.
        to: String,
        /// Why it was not followed.
        why: &'static str,
    },
}

impl NetError {
    /// The error code for JSON and other languages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            NetError::Module(disabled) => disabled.code(),
            NetError::Url { .. } => "bad_url",
            NetError::Method { .. } => "bad_method",
            NetError::Header { .. } => "bad_header",
            NetError::Connect(
                ConnectError::WrongFingerprint { .. }
                | ConnectError::UntrustedCertificate(_)
                | ConnectError::TrustUnreadable(_),
            ) => "untrusted",
            NetError::Connect(ConnectError::TimedOut { .. }) | NetError::TimedOut { .. } => "timed_out",
            NetError::Connect(ConnectError::NameResolution { .. } | ConnectError::InvalidName(_)) => {
                "unknown_host"
            }
            NetError::Connect(_) => "unreachable",
            NetError::Bind { .. } => "not_bound",
            NetError::NoTls { .. } => "no_tls",
            NetError::NotWebSocket { .. } => "not_websocket",
            NetError::Http { .. } => "http_failed",
            NetError::TooLarge { .. } => "too_large",
            NetError::Redirect { .. } => "redirect_refused",
        }
    }
}

impl From<ConnectError> for NetError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NotParlor { addr, .. } => NetError::NoTls { addr },
            error => NetError::Connect(error),
        }
    }
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Closed {
    /// Closed by this end: [`close`](super::Connection::close).
    #[error("this end closed the connection")]
    Here,
    /// Closed in order by the other end.
    #[error("the other end closed the connection: {} {reason}", code.map(|code| code.to_string()).unwrap_or_default())]
    Peer {
        /// The close code of a WebSocket (RFC 6455 §7.4).
        code: Option<u16>,
        /// The close reason of a WebSocket; may be empty.
        reason: String,
    },
    /// It never opened.
    #[error("{0}")]
    NotOpened(NetError),
    /// It broke. The text says why.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The other end sent a message that is longer than the options allow.
    #[error("a message came that is longer than {bytes_max} bytes: raise message_bytes_max if it may be")]
    TooLarge {
        /// The limit in bytes.
        bytes_max: usize,
    },
}

impl Closed {
    /// The code for JSON and other languages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Closed::Here => "here",
            Closed::Peer { .. } => "peer",
            Closed::NotOpened(_) => "not_opened",
            Closed::Broken(_) => "broken",
            Closed::TooLarge { .. } => "too_large",
        }
    }
}

/// Why a message was not accepted for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The send queue is full: send it later, or drop it.
    #[error("the messages that wait to be sent fill the queue: poll, and send this one later")]
    Full,
    /// The message is too long.
    #[error("the message has {bytes} bytes, and may have {bytes_max}")]
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The connection has ended.
    #[error("the connection is closed")]
    Closed,
}
