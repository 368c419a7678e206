//! What a page's browser does on the wire, by hand: a WebTransport session over plain QUIC.

use crate::client::{HANG, within};
use crate::server::TestServer;
use parlor_transport::quic::Dialer;
use parlor_transport::quic::webtransport::{ALPN_HTTP3, Answers, CONTROL, Heard, request as asking};
use parlor_transport::{ConnectError, Trust};
use quinn::{Connection, RecvStream, SendStream};

/// A connection, and what must live as long.
pub struct Page {
    /// The connection.
    pub connection: Connection,
    /// The CONNECT stream.
    pub request: SendStream,
    /// Its other half.
    pub answers: RecvStream,
    /// The status of its answer.
    pub status: u16,
    _control: SendStream,
    _dialer: Dialer,
}

impl TestServer {
    /// A session that a page of this origin asks for, by the certificate that pages are shown.
    ///
    /// # Errors
    /// [`ConnectError`] if there is no connection.
    pub async fn web(&self, origin: Option<&str>) -> Result<Page, ConnectError> {
        let (dialer, addr) = (Dialer::new(), self.addr());
        let trust = Trust::Fingerprint(self.server.web_hashes()[0]);
        let connection = dialer.dial(addr, "localhost", &trust, ALPN_HTTP3, HANG).await?;
        let mut control = within(connection.open_uni()).await.unwrap();
        control.write_all(CONTROL).await.unwrap();
        let (mut request, mut answers) = within(connection.open_bi()).await.unwrap();
        request.write_all(&asking(&addr.to_string(), origin)).await.unwrap();
        let mut heard = Answers::default();
        let status = loop {
            let chunk = within(answers.read_chunk(1_024, true)).await.unwrap().expect("it answers");
            match heard.read(&mut &chunk.bytes[..]).unwrap() {
                Some(Heard::Status(status)) => break status,
                Some(Heard::Closed { .. }) => panic!("it closes what it has not answered"),
                None => {}
            }
        };
        Ok(Page { connection, request, answers, status, _control: control, _dialer: dialer })
    }
}
