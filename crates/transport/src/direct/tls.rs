//! TLS between two players. Their certificates are self-signed; each end gets the other's fingerprint from
//! the hub.

use crate::identity::Fingerprint;
use crate::quic::{ALPN_DIRECT, transport_config};
use crate::trust::Pinned;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ConnectionId, ServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use std::sync::Arc;

/// Connections whose first packet waits for [`super::accept_filter`], which decides at once.
const INCOMING_MAX: usize = 16;
const INCOMING_BYTES_MAX: u64 = 4 * 1024;

/// Client configuration of a dial with the initial connection id `name`.
pub(super) fn dialing(own: &Arc<CertifiedKey>, peer: Fingerprint, name: ConnectionId) -> ClientConfig {
    // "Dangerous" is rustls's name for every custom verifier.
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites for TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new(peer)))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    tls.alpn_protocols = vec![ALPN_DIRECT.to_vec()];
    // The name is meaningless, and would be readable on the way.
    tls.enable_sni = false;
    let crypto = QuicClientConfig::try_from(tls).expect("TLS 1.3 with ring has what QUIC needs");
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport_config(0));
    config.initial_dst_cid_provider(Arc::new(move || name));
    config
}

/// Server configuration that accepts only the peer.
pub(super) fn accepting(own: &Arc<CertifiedKey>, peer: Fingerprint) -> ServerConfig {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites for TLS 1.3")
        .with_client_cert_verifier(Arc::new(PinnedClient(Pinned::new(peer))))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    tls.alpn_protocols = vec![ALPN_DIRECT.to_vec()];
    tls.send_tls13_tickets = 0;
    let crypto = QuicServerConfig::try_from(tls).expect("TLS 1.3 with ring has what QUIC needs");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport_config(0));
    config
        // The peer's NAT may change its port, or its phone the network.
        .migration(true)
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_BYTES_MAX)
        .incoming_buffer_size_total(INCOMING_MAX as u64 * INCOMING_BYTES_MAX);
    config
}

/// Requires a client certificate with the peer's fingerprint.
#[derive(Debug)]
struct PinnedClient(Pinned);

impl ClientCertVerifier for PinnedClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.0.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
