//! The task that writes what is queued on a QUIC link. Records, isolated packets and datagrams go their own ways, so
//! that none waits for another; the task ends with the link.
//!
//! A server has thousands of these tasks, most of them idle. What only some need, or need for a moment, is boxed, so that
//! the others do not hold its place.

use super::closed::{close_for, datagram_error, lost};
use super::framing::record_head;
use super::{ISOLATED_IN_FLIGHT_BYTES_MAX, SEND_WINDOW_BYTES, STREAM_TYPE_ISOLATED, STREAMS_MAX};
use crate::closed::{LinkClosed, Violation};
use crate::outbox::Outbox;
use crate::rate::FLOOR_INTERVAL;
use bytes::Bytes;
use core::pin::pin;
use futures_util::stream::{FuturesUnordered, StreamExt};
use parlor_proto::{Carrier, limits};
use quinn::{Connection, ConnectionError, SendDatagramError, SendStream, StoppedError, WriteError};
use std::sync::Arc;
use tokio::time::{sleep, timeout};

/// Writes until the link is over, then closes the connection.
pub(super) async fn run(connection: Connection, outbox: Arc<Outbox>) {
    let mut writing = pin!(async {
        tokio::try_join!(
            write_records(&connection, &outbox),
            write_isolated(&connection, &outbox),
            write_datagrams(&connection, &outbox)
        )
    });
    let linger_over = async {
        outbox.closing().await;
        Box::pin(sleep(limits::CLOSE_LINGER)).await;
    };
    let fault = tokio::select! {
        error = connection.closed() => Some(Fault::Lost(lost(error))),
        written = &mut writing => written.err(),
        () = linger_over => None,
    };
    match fault {
        None => {}
        Some(Fault::Lost(end)) => outbox.lose(end),
        Some(Fault::Stopped) => {
            // Either the peer is closing, which it will say, or it is no Parlor peer.
            match Box::pin(timeout(limits::CLOSE_LINGER, connection.closed())).await {
                Ok(error) => outbox.lose(lost(error)),
                Err(_) => {
                    outbox.violate(Violation::StreamStopped);
                    close_for(&connection, &Violation::StreamStopped);
                }
            }
        }
    }
    // Before `writing` is dropped, so that a half-written record is not taken for a whole stream. Closing a
    // connection that is closed already changes nothing.
    if let Some(farewell) = outbox.farewell() {
        connection.close(farewell.code.to_quic(), farewell.reason.as_bytes());
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

/// The one stream of records, opened by the first.
async fn write_records(connection: &Connection, outbox: &Outbox) -> Result<(), Fault> {
    let mut opened: Option<SendStream> = None;
    while let Some(packet) = outbox.pop(Carrier::Stream).await {
        let head = record_head(packet.len(), opened.is_none());
        let stream = match &mut opened {
            Some(stream) => stream,
            None => opened.insert(connection.open_uni().await?),
        };
        stream.write_all_chunks(&mut [head, packet]).await?;
    }
    match opened {
        Some(stream) => finish(stream).await,
        None => Ok(()),
    }
}

/// A stream for each isolated packet.
async fn write_isolated(connection: &Connection, outbox: &Outbox) -> Result<(), Fault> {
    match outbox.pop(Carrier::Isolated).await {
        Some(first) => Box::pin(write_isolated_from(first, connection, outbox)).await,
        None => Ok(()),
    }
}

/// How many packets and how many bytes may be under way is bounded, so that a receiver can bound what it holds of
/// unfinished ones.
async fn write_isolated_from(first: Bytes, connection: &Connection, outbox: &Outbox) -> Result<(), Fault> {
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
        let mut stream = connection.open_uni().await?;
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

/// Datagrams for which the library's buffer had no room.
async fn write_datagrams(connection: &Connection, outbox: &Outbox) -> Result<(), Fault> {
    while let Some(packet) = outbox.pop(Carrier::Datagram).await {
        let sent = Box::pin(write_datagram(connection, packet)).await;
        sent.map_err(|error| Fault::Lost(datagram_error(error)))?;
    }
    Ok(())
}

/// Waits until the library takes a datagram.
async fn write_datagram(connection: &Connection, packet: Bytes) -> Result<(), SendDatagramError> {
    let mut sending = pin!(connection.send_datagram_wait(packet));
    loop {
        match timeout(FLOOR_INTERVAL, &mut sending).await {
            Ok(sent) => return sent,
            // The library asks how much may go only when something happens. On a path that answers nothing this is what
            // lets the floor of the rate control go; what is set is the same as before.
            Err(_) => connection.set_send_window(SEND_WINDOW_BYTES),
        }
    }
}

/// Ends a stream at once. The future waits until the peer has all of it.
fn finish(mut stream: SendStream) -> impl Future<Output = Result<(), Fault>> {
    // It fails only for a stream that the peer stopped or that is over; both are told by what follows.
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
