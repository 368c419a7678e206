//! The byte streams below TLS and WebSockets.

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes that a WebSocket can be made of.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for T {}
