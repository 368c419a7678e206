//! What a page's browser does on the wire, by hand: a WebTransport session over plain QUIC.

use crate::client::{HANG, within};
use crate::server::TestServer;
use parlor_transport::quic::Dialer;
use parlor_transport::quic::webtransport::{ALPN_HTTP3, PATH};
use parlor_transport::{ConnectError, Trust};
use quinn::{Connection, RecvStream, SendStream};

/// A control stream that begins with SETTINGS without a setting.
const CONTROL: &[u8] = &[0, 4, 0];
/// The beginning of an answer, before its status: HEADERS with one literal field.
const ANSWER: &[u8] = &[1, 0x2e, 0, 0, 0x5f, 9, 3];

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
        request.write_all(&connect(&addr.to_string(), origin)).await.unwrap();
        let mut answer = [0; 10];
        within(answers.read_exact(&mut answer)).await.unwrap();
        let status = answer.strip_prefix(ANSWER).expect("it has a status");
        let status = std::str::from_utf8(status).unwrap().parse().unwrap();
        Ok(Page { connection, request, answers, status, _control: control, _dialer: dialer })
    }
}

/// The frame that asks for a session.
fn connect(authority: &str, origin: Option<&str>) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    // Static entries: CONNECT and https. Names of static entries: authority and path.
    let mut fields = vec![0, 0, 0xcf, 0xd7];
    fields.extend([&[0x50][..], &text(authority), &[0x51], &text(PATH)].concat());
    fields.extend([&[0x27, 2][..], b":protocol", &text("webtransport")].concat());
    if let Some(origin) = origin {
        fields.extend([&[0x26][..], b"origin", &text(origin)].concat());
    }
    // A length of two bytes, whatever it is.
    let length = u16::try_from(fields.len()).unwrap() | 0x4000;
    [&[1][..], &length.to_be_bytes(), &fields].concat()
}
