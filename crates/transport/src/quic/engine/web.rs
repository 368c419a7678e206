//! The streams of a connection with ALPN `h3` that are not a link's: control, QPACK, and CONNECT. The rules are
//! [`Http3`]'s.

use super::super::STREAMS_MAX;
use super::super::webtransport::{self, Happened, Http3, Limits, Request, Uni, UniHead};
use super::inbound::{Read, read};
use crate::closed::{CloseCode, LinkClosed, Violation, peer_reason};
use bytes::Bytes;
use quinn_proto::{Connection, Dir, StreamId, VarInt, WriteError};
use std::collections::VecDeque;

/// Unidirectional streams of HTTP/3 beside a link's: control, and two of QPACK.
const OWN_STREAMS: u32 = 3;
/// Bytes read from a stream at once.
const READ_BYTES: usize = 4 * 1024;
/// HTTP/3's code of a stream that is of no use.
const STREAM_CREATION_ERROR: u32 = 0x103;
const NO_ERROR: u32 = 0x100;

#[derive(Debug, Default)]
pub(super) struct Web {
    http3: Http3,
    /// Streams whose type is incomplete. Its memory is freed when it is empty.
    begun: Vec<(StreamId, UniHead)>,
    control: Option<StreamId>,
    qpack: Vec<StreamId>,
    request: Option<StreamId>,
    /// The peer reset the CONNECT stream of a session.
    was_reset: bool,
    /// Streams of the session whose packets were not taken yet, and the ids of their sessions.
    session_streams: Vec<(StreamId, u64)>,
    /// What the library has not accepted yet. Its memory is freed when it is empty.
    unwritten: VecDeque<Piece>,
    /// Whether this end has closed the session, and the client has not closed the connection.
    awaits_client: bool,
}

#[derive(Debug)]
struct Piece {
    stream: StreamId,
    bytes: Bytes,
    is_last: bool,
}

/// What the peer did.
#[derive(Debug)]
pub(super) enum Came {
    /// It asks for a session.
    Asked(Request),
    /// The session is over.
    Over(LinkClosed),
}

impl Web {
    /// Begins with SETTINGS.
    pub(super) fn begin(&mut self, connection: &mut Connection) -> Result<(), Violation> {
        connection.set_max_concurrent_streams(Dir::Uni, VarInt::from_u32(STREAMS_MAX + OWN_STREAMS));
        let stream = connection.streams().open(Dir::Uni).ok_or(Violation::NoStreams)?;
        self.say(stream, webtransport::greeting(), false);
        self.write(connection);
        Ok(())
    }

    /// Reads all streams but those of the link.
    pub(super) fn read(&mut self, connection: &mut Connection) -> Result<(), Violation> {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.begun.push((id, UniHead::default()));
        }
        self.read_begun(connection)?;
        if let Some(id) = self.control {
            let http3 = &mut self.http3;
            let end = read(connection, id, READ_BYTES, |bytes| Ok(http3.control(bytes).map(|()| true)?))?;
            if matches!(end, Read::Ended) {
                return Err(webtransport::Fault::StreamEnded.into());
            }
        }
        for id in &self.qpack {
            let http3 = &mut self.http3;
            let end = read(connection, *id, READ_BYTES, |bytes| {
                Ok(http3.pass_over(bytes.len()).map(|()| true)?)
            })?;
            if matches!(end, Read::Ended) {
                return Err(webtransport::Fault::StreamEnded.into());
            }
        }
        self.read_request(connection)
    }

    /// Reads the types of streams.
    fn read_begun(&mut self, connection: &mut Connection) -> Result<(), Violation> {
        let mut at = 0;
        while at < self.begun.len() {
            let (id, head) = &mut self.begun[at];
            let (id, mut kind) = (*id, None);
            let end = read(connection, id, 1, |bytes| {
                for byte in bytes {
                    kind = self.http3.begin(head, *byte)?;
                }
                Ok(kind.is_none())
            })?;
            match (kind, end) {
                (None, Read::Blocked) => {
                    at += 1;
                    continue;
                }
                (None, Read::Ended) => return Err(Violation::EmptyStream),
                (Some(Uni::Control), _) => self.control = Some(id),
                (Some(Uni::Qpack), _) => self.qpack.push(id),
                (Some(Uni::Session(session)), _) => self.session_streams.push((id, session)),
                (Some(Uni::Unknown), _) => {
                    // Fails only for a stream that has ended.
                    let _ = connection.recv_stream(id).stop(VarInt::from_u32(STREAM_CREATION_ERROR));
                }
            }
            self.begun.remove(at);
        }
        if self.begun.is_empty() {
            self.begun = Vec::new();
        }
        Ok(())
    }

    fn read_request(&mut self, connection: &mut Connection) -> Result<(), Violation> {
        loop {
            let Some(id) = self.request else {
                let Some(id) = connection.streams().accept(Dir::Bi) else { return Ok(()) };
                self.http3.open(id.into())?;
                self.request = Some(id);
                continue;
            };
            let http3 = &mut self.http3;
            match read(connection, id, READ_BYTES, |bytes| Ok(http3.request(bytes).map(|()| true)?)) {
                Ok(Read::Blocked) => return Ok(()),
                Ok(Read::Ended) => self.http3.request_ended()?,
                Err(Violation::StreamReset) => self.was_reset |= self.http3.request_reset(),
                Err(violation) => return Err(violation),
            }
            self.request = None;
        }
    }

    /// Returns what the peer did.
    pub(super) fn poll(&mut self, connection: &mut Connection) -> Option<Came> {
        loop {
            if core::mem::take(&mut self.was_reset) {
                return Some(Came::Over(LinkClosed::Reset));
            }
            match self.http3.poll_event()? {
                Happened::Asked(request) => return Some(Came::Asked(request)),
                Happened::Refused(status) => self.turn_down(connection, status),
                Happened::Closed { code, reason } => {
                    let code = CloseCode(u16::try_from(code).unwrap_or(u16::MAX));
                    return Some(Came::Over(LinkClosed::ByPeer { code, reason: peer_reason(&reason) }));
                }
            }
        }
    }

    /// Admits the session. Returns its id and its limits; `None` if it is over.
    pub(super) fn admit(&mut self) -> Option<(u64, Limits)> {
        let stream = self.request?;
        let admitted = self.http3.admit()?;
        self.say(stream, webtransport::answer(200), false);
        Some(admitted)
    }

    /// Refuses the session that was asked for.
    pub(super) fn refuse(&mut self, connection: &mut Connection, status: u16) {
        if self.http3.refuse() {
            self.turn_down(connection, status);
        }
    }

    fn turn_down(&mut self, connection: &mut Connection, status: u16) {
        let Some(stream) = self.request.take() else { return };
        self.say(stream, webtransport::answer(status), true);
        // Nothing more of it is needed. Fails only for a stream that has ended.
        let _ = connection.recv_stream(stream).stop(VarInt::from_u32(NO_ERROR));
    }

    /// Closes the session, after what was said before. The client then closes the connection.
    ///
    /// A browser that gets the connection's close first reports a lost connection, even if it has acknowledged
    /// the session's.
    pub(super) fn close(&mut self, code: CloseCode, reason: &str) {
        if let Some(stream) = self.request.take() {
            self.say(stream, webtransport::close(code.0.into(), reason), true);
            self.awaits_client = true;
        }
    }

    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client
    }

    fn say(&mut self, stream: StreamId, bytes: Vec<u8>, is_last: bool) {
        self.unwritten.push_back(Piece { stream, bytes: bytes.into(), is_last });
    }

    /// Passes to the library what it accepts.
    pub(super) fn write(&mut self, connection: &mut Connection) {
        while let Some(Piece { stream, bytes, is_last }) = self.unwritten.front_mut() {
            let mut stream = connection.send_stream(*stream);
            match stream.write(bytes) {
                Ok(written) => drop(bytes.split_to(written)),
                Err(WriteError::Blocked) => return,
                // It is stopped, which the library reports as an event, or over: nothing more goes there.
                Err(_) => bytes.clear(),
            }
            if bytes.is_empty() {
                if *is_last {
                    // Fails only for a stopped stream.
                    let _ = stream.finish();
                }
                self.unwritten.pop_front();
            }
        }
        self.unwritten = VecDeque::new();
    }

    /// Takes the streams of the session with this id.
    pub(super) fn take_streams(&mut self, session: u64) -> Result<Vec<StreamId>, Violation> {
        if self.session_streams.iter().any(|(_, of)| *of != session) {
            return Err(webtransport::Fault::OtherSession.into());
        }
        Ok(core::mem::take(&mut self.session_streams).into_iter().map(|(id, _)| id).collect())
    }

    /// What this end may send in the session.
    pub(super) fn limits(&self) -> Option<Limits> {
        self.http3.limits()
    }
}
