//! The task that writes the queues of a QUIC link. Records, isolated packets and datagrams are independent,
//! so that none blocks another. The task ends with the link.
//!
//! A server has thousands of these tasks, mostly idle. State that only some need, or only for a moment, is
//! boxed, so that it takes no space in the others.

use super::closed::{close_for, datagram_error, lost};
use super::framing::record_head;
use super::session::Session;
use super::webtransport;
use super::{ISOLATED_IN_FLIGHT_BYTES_MAX, SEND_WINDOW_BYTES, STREAM_TYPE_ISOLATED, STREAMS_MAX};
use crate::closed::{LinkClosed, Violation};
use crate::outbox::Outbox;
use crate::rate::FLOOR_INTERVAL;
use bytes::Bytes;
use core::future::pending;
use core::pin::pin;
use futures_util::stream::{FuturesUnordered, StreamExt};
use parlor_proto::{Carrier, limits};
use quinn::{Connection, ConnectionError, SendDatagramError, SendStream, StoppedError, WriteError};
use std::sync::Arc;
use tokio::time::{sleep, timeout};

/// Writes until the link is over, then closes the session, if there is one, and the connection.
pub(super) async fn run(connection: Connection, outbox: Arc<Outbox>, mut session: Option<Box<Session>>) {
    let (stream, datagram) = match session.as_ref().map(|session| session.prefix()) {
        Some(prefix) => (prefix.stream, prefix.datagram),
        None => (Bytes::new(), Bytes::new()),
    };
    let mut writing = pin!(async {
        tokio::try_join!(
            write_records(&connection, &outbox, &stream),
            write_isolated(&connection, &outbox, &stream),
            write_datagrams(&connection, &outbox, &datagram)
        )
    });
    let session_over = async {
        match &mut session {
            Some(session) => session.over().await,
            None => pending().await,
        }
    };
    let linger_over = async {
        outbox.closing().await;
        Box::pin(sleep(limits::CLOSE_LINGER)).await;
    };
    let fault = tokio::select! {
        error = connection.closed() => Some(Fault::Lost(lost(error))),
        written = &mut writing => written.err(),
        end = session_over => Some(Fault::Lost(end)),
        () = linger_over => None,
    };
    match fault {
        None => {}
        Some(Fault::Lost(end)) => outbox.lose(end),
        Some(Fault::Stopped) => {
            // Either the peer is closing and will report that, or it is not a Parlor peer.
            match Box::pin(timeout(limits::CLOSE_LINGER, connection.closed())).await {
                Ok(error) => outbox.lose(lost(error)),
                Err(_) => {
                    outbox.violate(Violation::StreamStopped);
                    close_for(&connection, &Violation::StreamStopped);
                }
            }
        }
    }
    // Before `writing` is dropped, so that a partly written record is not taken for a complete stream.
    // Closing a closed connection has no effect.
    match (outbox.farewell(), session) {
        (Some(farewell), Some(mut session)) => session.close(&connection, &farewell).await,
        (Some(farewell), None) => {
            connection.close(farewell.code.to_quic(), farewell.reason.as_bytes());
        }
        (None, Some(_)) => Session::end(&connection),
        (None, None) => {}
    }
    outbox.finish();
}

/// Why writing ended early.
enum Fault {
    Lost(LinkClosed),
    Stopped,
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(_) => Fault::Stopped,
            WriteError::ConnectionLost(error) => Fault::Lost(lost(error)),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => {
                Fault::Lost(LinkClosed::TransportError(error.to_string()))
            }
        }
    }
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Self {
        Fault::Lost(lost(error))
    }
}

/// Opens a stream, with what it begins with in a session.
async fn open(connection: &Connection, prefix: &Bytes) -> Result<SendStream, Fault> {
    let mut stream = connection.open_uni().await?;
    if !prefix.is_empty() {
        stream.write_chunk(prefix.clone()).await?;
    }
    Ok(stream)
}

/// Writes the one record stream, opened with the first record.
async fn write_records(connection: &Connection, outbox: &Outbox, prefix: &Bytes) -> Result<(), Fault> {
    let mut opened: Option<SendStream> = None;
    while let Some(packet) = outbox.pop(Carrier::Stream).await {
        let head = record_head(packet.len(), opened.is_none());
        let stream = match &mut opened {
            Some(stream) => stream,
            None => opened.insert(open(connection, prefix).await?),
        };
        stream.write_all_chunks(&mut [head, packet]).await?;
    }
    match opened {
        Some(stream) => finish(stream).await,
        None => Ok(()),
    }
}

/// Writes each isolated packet on a stream of its own.
async fn write_isolated(connection: &Connection, outbox: &Outbox, prefix: &Bytes) -> Result<(), Fault> {
    match outbox.pop(Carrier::Isolated).await {
        Some(first) => Box::pin(write_isolated_from(first, connection, outbox, prefix)).await,
        None => Ok(()),
    }
}

/// The number of packets and bytes in flight is bounded, so that a receiver can bound its unfinished ones.
async fn write_isolated_from(
    first: Bytes,
    connection: &Connection,
    outbox: &Outbox,
    prefix: &Bytes,
) -> Result<(), Fault> {
    let mut under_way = FuturesUnordered::new();
    let mut bytes_under_way = 0;
    let mut next = Some(first);
    while let Some(packet) = next {
        let bytes = packet.len();
        while under_way.len() >= STREAMS_MAX as usize
            || bytes_under_way + bytes > ISOLATED_IN_FLIGHT_BYTES_MAX
        {
            let Some(delivered) = under_way.next().await else { break };
            bytes_under_way -= delivered?;
        }
        let mut stream = open(connection, prefix).await?;
        stream.write_all_chunks(&mut [Bytes::from_static(&[STREAM_TYPE_ISOLATED]), packet]).await?;
        bytes_under_way += bytes;
        let delivered = finish(stream);
        under_way.push(async move { delivered.await.map(|()| bytes) });
        next = outbox.pop(Carrier::Isolated).await;
    }
    while let Some(delivered) = under_way.next().await {
        delivered?;
    }
    Ok(())
}

/// Writes datagrams that found no room in the library's buffer.
async fn write_datagrams(connection: &Connection, outbox: &Outbox, prefix: &Bytes) -> Result<(), Fault> {
    while let Some(mut packet) = outbox.pop(Carrier::Datagram).await {
        if !prefix.is_empty() {
            packet = webtransport::framed(prefix, &packet);
        }
        let sent = Box::pin(write_datagram(connection, packet)).await;
        sent.map_err(|error| Fault::Lost(datagram_error(error)))?;
    }
    Ok(())
}

/// Waits until the library accepts a datagram.
async fn write_datagram(connection: &Connection, packet: Bytes) -> Result<(), SendDatagramError> {
    let mut sending = pin!(connection.send_datagram_wait(packet));
    loop {
        match timeout(FLOOR_INTERVAL, &mut sending).await {
            Ok(sent) => return sent,
            // The library checks the window only on events. On a path without answers this call triggers the
            // rate control's floor; the value stays the same.
            Err(_) => connection.set_send_window(SEND_WINDOW_BYTES),
        }
    }
}

/// Ends a stream at once. The future waits until the peer has acknowledged all of it.
fn finish(mut stream: SendStream) -> impl Future<Output = Result<(), Fault>> {
    // Fails only for a stream that the peer stopped or that is over; both are reported below.
    let _ = stream.finish();
    async move {
        match stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(Fault::Stopped),
            Err(StoppedError::ConnectionLost(error)) => Err(Fault::Lost(lost(error))),
            Err(error @ StoppedError::ZeroRttRejected) => {
                Err(Fault::Lost(LinkClosed::TransportError(error.to_string())))
            }
        }
    }
}
