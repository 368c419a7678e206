//! The byte streams below TLS and WebSockets.

use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream for a WebSocket.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for T {}
