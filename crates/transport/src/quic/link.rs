//! A QUIC connection as a link.

pub(crate) use super::receive::QuicSource;

use super::closed::{close_for, datagram_error};
use super::session::{Prefix, Session};
use super::{send, webtransport};
use crate::closed::Violation;
use crate::link::{Link, Source, Wire};
use crate::outbox::{Capacity, Outbox, SendError};
use futures_util::FutureExt;
use parlor_proto::{Carrier, Packet, limits};
use quinn::Connection;
use std::sync::Arc;

/// Stream packets queue here before the library's send window. Of datagrams only one does: the library's
/// small buffer comes first, and this one detects when that has room again.
pub(super) const CAPACITY: Capacity =
    Capacity { datagram_bytes: 1, stream_bytes: 64 * 1024, isolated_bytes: 64 * 1024 };

/// Makes a link of a connection whose handshake is done, and starts the task that writes its streams.
///
/// # Errors
/// What the peer lacks. The connection is closed then.
pub fn establish(connection: Connection) -> Result<Link, Violation> {
    establish_within(connection, None)
}

/// Makes a link of a WebTransport session.
///
/// # Errors
/// As of [`establish`].
pub fn establish_session(connection: Connection, session: Session) -> Result<Link, Violation> {
    establish_within(connection, Some(Box::new(session)))
}

fn establish_within(connection: Connection, session: Option<Box<Session>>) -> Result<Link, Violation> {
    let prefix = session.as_ref().map(|session| session.prefix());
    let prefix_bytes = prefix.as_ref().map_or(0, |prefix| prefix.datagram.len());
    let needed = limits::DATAGRAM_BYTES_MAX + prefix_bytes;
    if connection.max_datagram_size().is_none_or(|max| max < needed) {
        let violation = Violation::NoDatagrams;
        close_for(&connection, &violation);
        return Err(violation);
    }
    let outbox = Arc::new(Outbox::new(CAPACITY));
    tokio::spawn(send::run(connection.clone(), Arc::clone(&outbox), session));
    let source = QuicSource::new(connection.clone(), Arc::clone(&outbox), prefix.clone());
    let remote = connection.remote_address();
    Ok(Link::new(Wire::Quic { connection, prefix }, remote, Source::Quic(source), outbox))
}

/// Passes a datagram to the library, or queues it if the library's buffer is full and nothing else is queued.
pub(crate) fn send_datagram(
    connection: &Connection,
    prefix: Option<&Prefix>,
    outbox: &Outbox,
    packet: Packet,
) -> Result<(), SendError> {
    if let Some(end) = outbox.end() {
        return Err(SendError::Closed(end));
    }
    if !outbox.is_empty(Carrier::Datagram) {
        return Err(SendError::NotWritable(packet));
    }
    // `send_datagram` would drop older ones to make room; the waiting variant never does, and is polled only
    // once.
    let datagram = match prefix {
        None => packet.bytes.clone(),
        Some(prefix) => webtransport::framed(&prefix.datagram, &packet.bytes),
    };
    match connection.send_datagram_wait(datagram).now_or_never() {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(SendError::Closed(datagram_error(error))),
        None => outbox.push(packet),
    }
}
