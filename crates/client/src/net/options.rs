//! Options of connections and requests.

use super::error::NetError;
use crate::modules::Module;
use core::time::Duration;
use parlor_transport::Trust;

/// Options of connections and requests. The functions of [`net`](super) use the default.
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
    pub(super) body_len: Option<u64>,
    pub(super) headers: Vec<(String, String)>,
    /// The module that the game uses by them.
    pub(super) module: Module,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            trust: Trust::System,
            patience: Duration::from_secs(10),
            message_bytes_max: 1024 * 1024,
            queue_bytes_max: 4 * 1024 * 1024,
            body_bytes_max: 16 * 1024 * 1024,
            body_len: None,
            headers: Vec::new(),
            module: Module::Net,
        }
    }
}

impl Options {
    /// Options of the requests that `parlor::online` makes by itself.
    #[cfg(feature = "online")]
    pub(crate) fn of_online() -> Self {
        Options { module: Module::Online, ..Options::default() }
    }

    /// Whether the game may use the network.
    pub(super) fn permitted(&self) -> Result<(), NetError> {
        Ok(self.module.require()?)
    }

    /// Sets the trusted certificates for `https` and `wss`. Default: those that the operating system trusts.
    /// Verification cannot be switched off.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the timeout for connecting in total, and for the silence of an HTTP server. Default: 10 s. While a
    /// server waits for the game's next piece of a [streamed body](Self::fetch_streamed), no time counts.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the maximum length in bytes of a WebSocket message in each direction, of one TCP send, and of one
    /// piece of a [streamed body](Self::fetch_streamed). Default: 1 MiB.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Sets the size in bytes of the queue in each direction. Default: 4 MiB. One message always fits. Over
    /// TCP, WebSocket and HTTP a full receive queue slows its sender down. Over UDP datagrams are dropped and
    /// counted.
    pub fn queue_bytes_max(mut self, bytes: usize) -> Self {
        self.queue_bytes_max = bytes;
        self
    }

    /// Sets the maximum length in bytes of an HTTP answer. Default: 16 MiB.
    pub fn body_bytes_max(mut self, bytes: u64) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Announces the length in bytes of a [streamed body](Self::fetch_streamed), for servers that take none of
    /// unknown length. Default: unknown.
    pub fn body_len(mut self, bytes: u64) -> Self {
        self.body_len = Some(bytes);
        self
    }

    /// Adds a header to HTTP requests and to the request for a WebSocket. A game may not set `Host`,
    /// `Content-Length` and the like: the request then fails with
    /// [`NetError::Header`](super::NetError::Header).
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}
