//! A client of plain QUIC that may send anything.

use super::LOCALHOST;
use core::net::SocketAddr;
use parlor_transport::Violation;
use parlor_transport::quic::ALPN_PARLOR;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, TransportConfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;

pub(crate) async fn assert_closed_for(peer: &Connection, violation: &Violation) {
    let ConnectionError::ApplicationClosed(close) = peer.closed().await else {
        panic!("closed by the application")
    };
    assert_eq!(close.error_code, u32::from(violation.code().0).into());
    assert_eq!(close.reason, violation.to_string());
}

pub(crate) async fn send_stream(peer: &Connection, bytes: &[u8], finish: bool) {
    // The other end may close before all is written, which the tests want.
    let Ok(mut stream) = peer.open_uni().await else { return };
    let _ = stream.write_all(bytes).await;
    if finish {
        let _ = stream.finish();
    } else {
        // Dropping it would finish the stream. It lives until the connection is over.
        let connection = peer.clone();
        tokio::spawn(async move {
            connection.closed().await;
            drop(stream);
        });
    }
}

pub(crate) async fn connect(addr: SocketAddr, certificates: &str) -> Result<Connection, ConnectionError> {
    connect_with(addr, certificates, &[ALPN_PARLOR], TransportConfig::default()).await
}

pub(crate) async fn connect_with(
    addr: SocketAddr,
    certificates: &str,
    alpn: &[&[u8]],
    transport: TransportConfig,
) -> Result<Connection, ConnectionError> {
    let endpoint = Endpoint::client(LOCALHOST).expect("a free port");
    endpoint
        .connect_with(config(certificates, alpn, transport), addr, "localhost")
        .expect("it may be tried")
        .await
}

pub(crate) fn config(certificates: &str, alpn: &[&[u8]], transport: TransportConfig) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificates.as_bytes()).expect("it is one"))
        .expect("it is one");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has it")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("it is TLS 1.3")));
    config.transport_config(Arc::new(transport));
    config
}
