//! A client of HTTP/3, byte by byte, that may send anything.

use super::host::Host;
use super::raw;
use parlor_transport::quic::engine::Id;
use parlor_transport::quic::webtransport::{ALPN_HTTP3, CONTROL, answer, request as asking};
use quinn::{Connection, RecvStream, SendStream, TransportConfig};

/// The beginning of a stream of the session with the id 0.
pub(crate) const STREAM: &[u8] = &[0x40, 0x54, 0];

/// The frame that asks for a session.
pub(crate) fn request_frame() -> Vec<u8> {
    asking("localhost", None)
}

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
    request.write_all(&request_frame()).await.expect("it is open");
    (control, request, answers)
}

/// A session, and its id at the host.
pub(crate) async fn session(host: &mut Host) -> (Session, Id) {
    let connection = connect(host, TransportConfig::default()).await;
    let asking = async {
        let (control, request, mut answers) = ask(&connection).await;
        let admitted = answer(200);
        let mut came = vec![0; admitted.len()];
        answers.read_exact(&mut came).await.expect("it is answered");
        assert_eq!(came, admitted);
        (control, request, answers)
    };
    let (control, request, answers) = host.serve_while(asking).await;
    (Session { connection, control, request, answers }, host.accept().await)
}
