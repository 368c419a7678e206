//! TCP connections: a byte stream.

use super::connection::{Connection, Event, LINGER, Outgoing, Pipes};
use super::dial;
use super::error::Closed;
use super::options::Options;
use bytes::BytesMut;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::pin;
use tokio::time::timeout;

/// Maximum bytes of one read.
const READ_BYTES: usize = 64 * 1024;

pub(super) fn open(host: &str, port: u16, options: Options) -> Connection {
    let host = host.to_owned();
    Connection::begin(options, false, |pipes, options| async move {
        match dial::tcp(&host, port, &options).await {
            Ok((stream, _)) => {
                pipes.inbound.put(Event::Open, 0).await;
                let (read, write) = stream.into_split();
                carry(&pipes, read, write).await
            }
            Err(error) => Closed::NotOpened(error),
        }
    })
}

async fn carry(pipes: &Arc<Pipes>, read: OwnedReadHalf, write: OwnedWriteHalf) -> Closed {
    let (reading, writing) = (receive(pipes, read), send(pipes, write));
    pin!(reading, writing);
    tokio::select! {
        closed = &mut reading => {
            if matches!(closed, Closed::Peer { .. }) {
                // The other end sends no more; it may still receive.
                pipes.outbound.end();
                let _ = timeout(LINGER, writing).await;
            }
            closed
        }
        closed = &mut writing => {
            if closed == Closed::Here {
                // Closing with unread bytes would reset the connection and could discard what was sent.
                reading.await;
            }
            closed
        }
    }
}

/// Reads until the other end is done, also when the game no longer polls.
async fn receive(pipes: &Pipes, mut read: OwnedReadHalf) -> Closed {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_BYTES);
        match (&mut read).take(READ_BYTES as u64).read_buf(&mut buffer).await {
            Ok(0) => return Closed::Peer { code: None, reason: String::new() },
            Ok(len) => {
                let piece = buffer.split().freeze();
                pipes.inbound.put(Event::Message(piece), len).await;
            }
            Err(error) => return Closed::Broken(error.to_string()),
        }
    }
}

/// Writes until this end is done, then shuts the direction down.
async fn send(pipes: &Pipes, mut write: OwnedWriteHalf) -> Closed {
    let broken = |error: std::io::Error| Closed::Broken(error.to_string());
    while let Some(message) = pipes.outbound.take().await {
        let bytes = match &message {
            Outgoing::Bytes(bytes) => bytes.as_ref(),
            Outgoing::Text(text) => text.as_bytes(),
        };
        if let Err(error) = write.write_all(bytes).await {
            return broken(error);
        }
    }
    write.shutdown().await.map_or_else(broken, |()| Closed::Here)
}
