//! The CONNECT stream of a link over WebTransport: it begins the session and ends it. A client asks for a session
//! as a browser does, but needs no browser.

use super::webtransport::{self, Answers, CONTROL, Heard, prefixes};
use crate::closed::{CloseCode, LinkClosed, peer_reason};
use crate::outbox::Farewell;
use bytes::Bytes;
use parlor_proto::limits;
use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use tokio::time::timeout;

/// HTTP/3's code of a close without a fault.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);
/// Bytes read from the CONNECT stream at once.
const READ_BYTES: usize = 1_024;

/// A session, and its CONNECT stream.
#[derive(Debug)]
pub struct Session {
    request: SendStream,
    answers: RecvStream,
    heard: Answers,
    /// Ends the connection if it ends.
    _control: SendStream,
}

/// How the streams and datagrams of a session begin.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    pub(crate) stream: Bytes,
    pub(crate) datagram: Bytes,
    /// A quarter of the session's id.
    pub(crate) quarter: u64,
}

/// Why there is no session.
#[derive(Debug)]
pub(super) enum NoSession {
    Lost(ConnectionError),
    /// The other end answered otherwise, or not as HTTP/3 has it.
    Refused(String),
}

impl From<ConnectionError> for NoSession {
    fn from(error: ConnectionError) -> Self {
        NoSession::Lost(error)
    }
}

impl Session {
    /// The session of a CONNECT stream that was answered. `control` is this end's control stream.
    pub fn new(control: SendStream, request: SendStream, answers: RecvStream) -> Self {
        Session { request, answers, heard: Answers::default(), _control: control }
    }

    /// Asks for a session.
    pub(super) async fn ask(connection: &Connection, authority: &str) -> Result<Self, NoSession> {
        let broke = |error: &dyn core::fmt::Display| match connection.close_reason() {
            Some(error) => NoSession::Lost(error),
            None => NoSession::Refused(format!("its HTTP/3 broke: {error}")),
        };
        let mut control = connection.open_uni().await?;
        control.write_all(CONTROL).await.map_err(|error| broke(&error))?;
        let (mut request, answers) = connection.open_bi().await?;
        let asked = webtransport::request(authority, None);
        request.write_all(&asked).await.map_err(|error| broke(&error))?;
        let mut session = Session::new(control, request, answers);
        match session.hear().await {
            Ok(Some(Heard::Status(200))) => Ok(session),
            Ok(Some(Heard::Status(status))) => {
                Err(NoSession::Refused(format!("it answers a WebTransport session with status {status}")))
            }
            Ok(_) => Err(NoSession::Refused("it closes a WebTransport session before it begins".to_owned())),
            Err(error) => Err(broke(&error)),
        }
    }

    pub(crate) fn prefix(&self) -> Prefix {
        let id = u64::from(VarInt::from(self.request.id()));
        let (stream, datagram) = prefixes(id);
        Prefix { stream: stream.into(), datagram: datagram.into(), quarter: id / 4 }
    }

    /// The next that is heard; `None` at the stream's end.
    async fn hear(&mut self) -> Result<Option<Heard>, String> {
        loop {
            let chunk = self.answers.read_chunk(READ_BYTES, true).await.map_err(|error| error.to_string())?;
            let Some(chunk) = chunk else { return Ok(None) };
            let heard = self.heard.read(&mut &chunk.bytes[..]).map_err(|fault| fault.to_string())?;
            if heard.is_some() {
                return Ok(heard);
            }
        }
    }

    /// Waits until the other end has closed the session.
    pub(super) async fn over(&mut self) -> LinkClosed {
        match self.hear().await {
            Ok(Some(Heard::Closed { code, reason })) => {
                let code = CloseCode(u16::try_from(code).unwrap_or(u16::MAX));
                LinkClosed::ByPeer { code, reason: peer_reason(&reason) }
            }
            Ok(Some(Heard::Status(_))) => {
                LinkClosed::TransportError("a session was answered twice".to_owned())
            }
            // By the standard this is a close with the code 0 and no reason.
            Ok(None) => LinkClosed::ByPeer { code: CloseCode::DONE, reason: String::new() },
            Err(detail) => LinkClosed::TransportError(detail),
        }
    }

    /// Closes the session, and waits a while for the other end to close the connection.
    pub(super) async fn close(&mut self, connection: &Connection, farewell: &Farewell) {
        let capsule = webtransport::close(farewell.code.0.into(), &farewell.reason);
        let closing = async {
            // Fails only if the connection is over, or the other end reads no more.
            if self.request.write_all(&capsule).await.is_ok() {
                let _ = self.request.finish();
            }
            connection.closed().await;
        };
        // A client that does not answer in time gets the connection's close instead.
        let _ = timeout(limits::CLOSE_LINGER, closing).await;
        Self::end(connection);
    }

    /// Closes the connection of a session that is over.
    pub(super) fn end(connection: &Connection) {
        connection.close(NO_ERROR, b"");
    }
}
