//! Why something on the network failed, for a person and for a program.

use core::net::SocketAddr;
use core::time::Duration;
use parlor_transport::ConnectError;
use thiserror::Error;

/// Why a connection did not come to be, or a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// The text is not an address that this call takes.
    #[error("{url:?} is not a URL that can be used here: {why}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header has a letter that none may have, or is one that is not the game's to set.
    #[error("the header {name:?} cannot be sent: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody was reached, or nobody who is trusted.
    #[error(transparent)]
    Connect(ConnectError),
    /// The address was to be reached by TLS, and does not speak it.
    #[error("{addr} does not speak TLS: is it http:// or ws://, or another port?")]
    NoTls {
        /// The address tried.
        addr: SocketAddr,
    },
    /// An HTTP server answers, and not with a WebSocket.
    #[error("there is no WebSocket at {url}: {detail}")]
    NotWebSocket {
        /// What was asked for.
        url: String,
        /// What it does instead.
        detail: String,
    },
    /// The connection broke, or what came over it is not HTTP.
    #[error("the request to {url} failed: {detail}")]
    Http {
        /// What was asked for.
        url: String,
        /// What the library says.
        detail: String,
    },
    /// Nothing came for too long.
    #[error("{url} sent nothing for {} ms", waited.as_millis())]
    TimedOut {
        /// What was asked for.
        url: String,
        /// How long.
        waited: Duration,
    },
    /// The answer is longer than the options allow.
    #[error("the answer of {url} is longer than {bytes_max} bytes: raise body_bytes_max, or ask for less")]
    TooLarge {
        /// What was asked for.
        url: String,
        /// What was allowed.
        bytes_max: u64,
    },
    /// One server sent to the next too often, or from https:// to http://.
    #[error("{url} was left for {to}: {why}")]
    Redirect {
        /// Where the way began.
        url: String,
        /// Where it was to go on.
        to: String,
        /// Why it did not.
        why: &'static str,
    },
}

impl NetError {
    /// The word for it in JSON and in other languages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            NetError::Url { .. } => "bad_url",
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
    /// By [`close`](super::Connection::close).
    #[error("this end closed the connection")]
    Here,
    /// By the other end, in order.
    #[error("the other end closed the connection: {} {reason}", code.map(|code| code.to_string()).unwrap_or_default())]
    Peer {
        /// What a WebSocket says about it (RFC 6455 §7.4).
        code: Option<u16>,
        /// What a WebSocket says in words; may be empty.
        reason: String,
    },
    /// It never opened.
    #[error("{0}")]
    NotOpened(NetError),
    /// It broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The other end sent a message that is longer than the options allow.
    #[error("a message came that is longer than {bytes_max} bytes: raise message_bytes_max if it may be")]
    TooLarge {
        /// What was allowed.
        bytes_max: usize,
    },
}

impl Closed {
    /// The word for it in JSON and in other languages.
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

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// So much waits already that this has no room: send it later, or not at all.
    #[error("the messages that wait to be sent fill the queue: poll, and send this one later")]
    Full,
    /// It is longer than a message may be.
    #[error("the message has {bytes} bytes, and may have {bytes_max}")]
    TooLarge {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}
