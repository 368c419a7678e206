//! WebTransport over HTTP/3: what a browser says on a connection with ALPN `h3` beside a link's packets. Pure:
//! bytes of streams go in, in any cut, and events come out. The [engine](super::engine) has the streams.
//!
//! ```text
//!  Greeting ──SETTINGS, CONNECT /wt──▶ Asked ──200──▶ Session ──capsule, FIN, reset──▶ Over
//!     ▲  other requests: 404 or the owner's status, 4 at most
//!     └─────────────────────────────────┘
//! ```
//!
//! Nothing is kept but the beginning of a stream, the SETTINGS and one HEADERS frame, each with a bound. What
//! is passed over (frames and streams of unknown types, QPACK's streams) has a bound for the connection.

mod capsule;
mod client;
mod fields;
mod http3;
mod tlv;
mod varint;

pub use capsule::close;
pub use client::{Answers, CONTROL, Heard};
pub use fields::{Request, answer, request};
pub use http3::{Fault, Happened, Http3, Limits, PASSED_OVER_BYTES_MAX, REQUESTS_MAX, Uni, UniHead};

use bytes::{Buf, Bytes, BytesMut};

/// ALPN of HTTP/3.
pub const ALPN_HTTP3: &[u8] = b"h3";
/// The path of a session.
pub const PATH: &str = "/wt";

pub(super) const STREAM_CONTROL: u64 = 0;
const STREAM_PUSH: u64 = 1;
const STREAM_QPACK_ENCODER: u64 = 2;
const STREAM_QPACK_DECODER: u64 = 3;
const STREAM_SESSION: u64 = 0x54;

const FRAME_DATA: u64 = 0;
const FRAME_HEADERS: u64 = 1;
const FRAME_SETTINGS: u64 = 4;

const SETTING_INITIAL_MAX_DATA: u64 = 0x2b61;
const SETTING_INITIAL_MAX_STREAMS_UNI: u64 = 0x2b64;
const SETTING_INITIAL_MAX_STREAMS_BIDI: u64 = 0x2b65;

/// What a session may send to this end before further credit: without end, because QUIC has its own.
const WITHOUT_END: u64 = 1 << 60;

/// The SETTINGS of this end. Browsers follow different drafts, and each looks for its own.
const SETTINGS: [(u64, u64); 10] = [
    // Extended CONNECT (RFC 9220), and datagrams (RFC 9297 and its draft 4).
    (0x08, 1),
    (0x33, 1),
    (0x00ff_d277, 1),
    // WebTransport: draft 2 (Chromium), the number of sessions in draft 7 and drafts 13 and 14 (WebKit), draft 15.
    (0x2b60_3742, 1),
    (0xc671_706a, 1),
    (0x14e9_cd29, 1),
    (0x2c7c_f000, 1),
    // WebKit sends nothing without credit.
    (SETTING_INITIAL_MAX_DATA, WITHOUT_END),
    (SETTING_INITIAL_MAX_STREAMS_UNI, WITHOUT_END),
    (SETTING_INITIAL_MAX_STREAMS_BIDI, WITHOUT_END),
];

/// The beginning of this end's control stream: its type and SETTINGS. QPACK's dynamic table stays off.
pub fn greeting() -> Vec<u8> {
    let mut settings = Vec::new();
    for (setting, value) in SETTINGS {
        varint::put(&mut settings, setting);
        varint::put(&mut settings, value);
    }
    let mut bytes = Vec::new();
    varint::put(&mut bytes, STREAM_CONTROL);
    tlv::put(&mut bytes, FRAME_SETTINGS, &settings);
    bytes
}

/// The beginning of each unidirectional stream of a session, and of each datagram. `session` is the id of its
/// CONNECT stream.
pub fn prefixes(session: u64) -> (Vec<u8>, Vec<u8>) {
    let (mut stream, mut datagram) = (Vec::new(), Vec::new());
    varint::put(&mut stream, STREAM_SESSION);
    varint::put(&mut stream, session);
    varint::put(&mut datagram, session / 4);
    (stream, datagram)
}

/// A packet as a datagram of the session with this prefix.
pub(super) fn framed(prefix: &[u8], packet: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(prefix.len() + packet.len());
    framed.extend_from_slice(prefix);
    framed.extend_from_slice(packet);
    framed.freeze()
}

/// The packet of a datagram. `quarter` is a quarter of its session's id, which precedes it.
pub(super) fn unframed(mut datagram: Bytes, quarter: u64) -> Result<Bytes, Fault> {
    let (of, width) = varint::read(&datagram).ok_or(Fault::OtherSession)?;
    if of != quarter {
        return Err(Fault::OtherSession);
    }
    datagram.advance(width);
    Ok(datagram)
}

#[cfg(test)]
mod tests;
