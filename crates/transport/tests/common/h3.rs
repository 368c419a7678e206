//! A client of HTTP/3, byte by byte, that may send anything.

use super::host::Host;
use super::raw;
use parlor_transport::quic::engine::Id;
use parlor_transport::quic::webtransport::ALPN_HTTP3;
use quinn::{Connection, RecvStream, SendStream, TransportConfig};

/// A control stream that begins with SETTINGS without a setting.
pub(crate) const CONTROL: &[u8] = &[0, 4, 0];
/// The beginning of a stream of the session with the id 0.
pub(crate) const STREAM: &[u8] = &[0x40, 0x54, 0];
/// The frame that asks for a session: static entries, and literals without Huffman's code.
pub(crate) const CONNECT: &[u8] =
    b"\x01\x2c\x00\x00\x50\x09localhost\x51\x03/wt\x27\x02:protocol\x0cwebtransport\xcf\xd7";
/// The beginning of the answer: HEADERS with `:status 200`.
const ADMITTED: &[u8] = b"\x01\x2e\x00\x00\x5f\x09\x03200";
const ANSWER_BYTES: usize = 48;

/// A session, and what must live as long.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) control: SendStream,
    pub(crate) request: SendStream,
    pub(crate) answers: RecvStream,
}

/// A connection on which nothing was said.
pub(crate) async fn connect(host: &mut Host, transport: TransportConfig) -> Connection {
    let (addr, certificates) = (host.addr, host.certificates.clone());
    let connecting = raw::connect_with(addr, &certificates, &[ALPN_HTTP3], transport);
    host.serve_while(connecting).await.expect("it connects")
}

/// Opens a stream with these bytes. It ends with the connection.
pub(crate) async fn stream(connection: &Connection, bytes: &[u8]) -> SendStream {
    let mut stream = connection.open_uni().await.expect("there is credit");
    stream.write_all(bytes).await.expect("it is open");
    stream
}

/// Asks for a session.
pub(crate) async fn ask(connection: &Connection) -> (SendStream, SendStream, RecvStream) {
    let control = stream(connection, CONTROL).await;
    let (mut request, answers) = connection.open_bi().await.expect("there is credit");
    request.write_all(CONNECT).await.expect("it is open");
    (control, request, answers)
}

/// A session, and its id at the host.
pub(crate) async fn session(host: &mut Host) -> (Session, Id) {
    let connection = connect(host, TransportConfig::default()).await;
    let asking = async {
        let (control, request, mut answers) = ask(&connection).await;
        let mut answer = [0; ANSWER_BYTES];
        answers.read_exact(&mut answer).await.expect("it is answered");
        assert!(answer.starts_with(ADMITTED), "{answer:?}");
        (control, request, answers)
    };
    let (control, request, answers) = host.serve_while(asking).await;
    (Session { connection, control, request, answers }, host.accept().await)
}
