//! What may be set before something is begun.

use core::time::Duration;
use parlor_transport::Trust;

/// How connections and requests are made. The functions of [`net`](super) use the default.
///
/// ```no_run
/// use parlor::net;
/// use std::time::Duration;
/// let request = net::Options::default()
///     .header("content-type", "application/json")
///     .patience(Duration::from_secs(3))
///     .post("https://scores.example/v1/scores", r#"{"score":7}"#);
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until something is begun with them"]
pub struct Options {
    pub(super) trust: Trust,
    pub(super) patience: Duration,
    pub(super) message_bytes_max: usize,
    pub(super) queue_bytes_max: usize,
    pub(super) body_bytes_max: u64,
    pub(super) headers: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            trust: Trust::System,
            patience: Duration::from_secs(10),
            message_bytes_max: 1024 * 1024,
            queue_bytes_max: 4 * 1024 * 1024,
            body_bytes_max: 16 * 1024 * 1024,
            headers: Vec::new(),
        }
    }
}

impl Options {
    /// Whom to believe behind `https` and `wss`: what the system trusts, if not said. Nothing switches verification off.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// How long connecting may take altogether, and how long an HTTP server may be silent: 10 s if not said.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Longest message of a WebSocket, either way, and longest piece to be sent at once by TCP: 1 MiB if not said.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// What may wait in each direction: to be sent, and to be polled. 4 MiB if not said; one message always fits. What comes
    /// by TCP, WebSocket and HTTP beyond that holds its sender back; by UDP it is dropped and counted.
    pub fn queue_bytes_max(mut self, bytes: usize) -> Self {
        self.queue_bytes_max = bytes;
        self
    }

    /// Longest answer to an HTTP request: 16 MiB if not said.
    pub fn body_bytes_max(mut self, bytes: u64) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Adds a header to HTTP requests, and to the request for a WebSocket. `Host`, `Content-Length` and the like are not the
    /// game's to set: the request then fails with [`NetError::Header`](super::NetError::Header).
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}
