//! QUIC. One UDP socket accepts all connections, one socket per address family dials all.
//!
//! Framing: a datagram is a packet. A unidirectional stream begins with one type byte. 0 is the record
//! stream, of which each end opens at most one: each record is a length (variable-length integer in the
//! shortest form) and the packet. 1 is an isolated packet, which fills the rest of the stream. 2 is for
//! direct paths, before a connection is a link: [`crate::direct`].

mod closed;
pub(crate) mod congestion;
mod dialer;
pub mod engine;
mod framing;
mod handshake;
pub(crate) mod link;
mod receive;
mod send;
pub(crate) mod session;
pub mod webtransport;

pub use dialer::{CONNECT_DEADLINE, Dialer, Measured};
pub use engine::Engine;
pub use handshake::{HandshakeError, HandshakeLimits, ListenError, ListenerStats};
// The tests of this crate make the server's end of a link by these two. A server has an engine, which has no links.
#[doc(hidden)]
pub use handshake::server_config;
#[doc(hidden)]
pub use link::{establish, establish_session};
#[doc(hidden)]
pub use session::Session;

use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::limits;
use quinn::{AckFrequencyConfig, IdleTimeout, TransportConfig, VarInt};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

/// ALPN of a connection with Parlor's packets.
pub const ALPN_PARLOR: &[u8] = b"parlor";
/// ALPN of a connection between two players.
pub const ALPN_DIRECT: &[u8] = b"parlor-direct";

/// First byte of the record stream.
pub const STREAM_TYPE_RECORDS: u8 = 0;
/// First byte of a stream that is one isolated packet.
pub const STREAM_TYPE_ISOLATED: u8 = 1;
/// First byte of the first stream of each end of a direct path, by which both agree on the connection.
pub const STREAM_TYPE_PATH: u8 = 2;

/// Unidirectional streams that a peer may have open at once: the record stream and isolated packets. The
/// library keeps state for each, idle or not.
pub const STREAMS_MAX: u32 = 24;

/// Silence after which a connection counts as dead. The session keeps it alive, and times out sooner.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of isolated packets that a sender has in flight: sent and not completely acknowledged.
const ISOLATED_IN_FLIGHT_BYTES_MAX: usize = 512 * 1024;
/// Bytes of unfinished isolated packets that a receiver accepts; more are a violation.
const ISOLATED_UNFINISHED_BYTES_MAX: usize = 1024 * 1024;

const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const RECEIVE_WINDOW_BYTES: u32 = 1024 * 1024;
const SEND_WINDOW_BYTES: u64 = 1024 * 1024;
/// About the data of one tick: more must be queued in the session, where newer state replaces older.
const DATAGRAM_SEND_BUFFER_BYTES: usize = 8 * 1024;
const DATAGRAM_RECEIVE_BUFFER_BYTES: usize = 128 * 1024;
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Packets that a peer may receive without an immediate acknowledgement.
const ACK_THRESHOLD: VarInt = VarInt::from_u32(10);
/// Maximum delay of that acknowledgement: a packet of the next step at 30 Hz takes it along. The library asks for at
/// most the round trip, or 25 ms if that is shorter.
const ACK_DELAY: Duration = Duration::from_millis(40);
/// Requested size of the shared socket's buffers.
const UDP_BUFFER_BYTES: usize = 2 * 1024 * 1024;

const _: () = {
    assert!(
        ISOLATED_UNFINISHED_BYTES_MAX >= 2 * ISOLATED_IN_FLIGHT_BYTES_MAX,
        "no honest sender is taken for an attacker"
    );
    assert!(ISOLATED_IN_FLIGHT_BYTES_MAX >= limits::STREAM_PACKET_BYTES_MAX);
    assert!(
        STREAM_WINDOW_BYTES as usize > limits::STREAM_PACKET_BYTES_MAX,
        "one packet never waits for its window"
    );
};

/// The transport configuration of every connection, at both ends. A server takes `bidirectional` streams at
/// once: WebTransport asks on one, and what a client will speak is not known yet.
pub(crate) fn transport_config(bidirectional: u32) -> Arc<TransportConfig> {
    let idle = u32::try_from(IDLE_TIMEOUT.as_millis()).expect("the idle timeout is seconds");
    let mut config = TransportConfig::default();
    config
        .max_concurrent_uni_streams(STREAMS_MAX.into())
        .max_concurrent_bidi_streams(VarInt::from_u32(bidirectional))
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(idle))))
        .stream_receive_window(STREAM_WINDOW_BYTES.into())
        .receive_window(RECEIVE_WINDOW_BYTES.into())
        .send_window(SEND_WINDOW_BYTES)
        .datagram_send_buffer_size(DATAGRAM_SEND_BUFFER_BYTES)
        .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BUFFER_BYTES))
        .congestion_controller_factory(Arc::new(congestion::ForGames))
        .ack_frequency_config(Some(ack_frequency()))
        .initial_rtt(INITIAL_RTT);
    Arc::new(config)
}

/// Acknowledgements are packets too, and cost both ends as much. The peer is asked for fewer: the session has
/// its own for urgent ones.
fn ack_frequency() -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config.ack_eliciting_threshold(ACK_THRESHOLD).max_ack_delay(Some(ACK_DELAY));
    config
}

/// Opens a UDP socket with buffers as large as the operating system allows. One bound to `[::]` accepts IPv4
/// too.
fn bind_udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, None)?;
    if addr.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    for (what, result) in [
        ("receive", socket.set_recv_buffer_size(UDP_BUFFER_BYTES)),
        ("send", socket.set_send_buffer_size(UDP_BUFFER_BYTES)),
    ] {
        if let Err(error) = result {
            // Smaller buffers lose more packets in bursts, which every session survives.
            tracing::debug!(%addr, %error, "the {what} buffer of the UDP socket could not be raised");
        }
    }
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Returns the size of a UDP socket's receive and send buffer that the operating system grants here, in bytes, and
/// the one that is asked for.
///
/// # Errors
/// No socket can be opened.
pub fn udp_buffers() -> io::Result<([usize; 2], usize)> {
    // Linux doubles what is asked for, and reports the double.
    let reported = if cfg!(any(target_os = "android", target_os = "linux")) { 2 } else { 1 };
    let socket = Socket::from(bind_udp(SocketAddr::from(([127, 0, 0, 1], 0)))?);
    let granted = [socket.recv_buffer_size()?, socket.send_buffer_size()?];
    Ok((granted.map(|bytes| bytes / reported), UDP_BUFFER_BYTES))
}
