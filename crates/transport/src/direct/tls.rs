//! TLS between two players. Their certificates are self-signed; each end gets the other's fingerprint from
//! the hub.

use crate::identity::Fingerprint;
use crate::quic::{ALPN_DIRECT, transport_config};
use crate::trust::{ByFingerprint, mutual_client, mutual_server};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ConnectionId, ServerConfig};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// Connections whose first packet waits for [`super::accept_filter`], which decides at once.
const INCOMING_MAX: usize = 16;
const INCOMING_BYTES_MAX: u64 = 4 * 1024;

/// Client configuration of a dial with the initial connection id `name`.
pub(super) fn dialing(own: &Arc<CertifiedKey>, peer: Fingerprint, name: ConnectionId) -> ClientConfig {
    let mut tls = mutual_client(own, peer);
    tls.alpn_protocols = vec![ALPN_DIRECT.to_vec()];
    let crypto = QuicClientConfig::try_from(tls).expect("TLS 1.3 with ring has what QUIC needs");
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport_config(0));
    config.initial_dst_cid_provider(Arc::new(move || name));
    config
}

/// Server configuration that accepts only the peer.
pub(super) fn accepting(own: &Arc<CertifiedKey>, peer: Fingerprint) -> ServerConfig {
    let mut tls = mutual_server(own, ByFingerprint::pinned(peer));
    tls.alpn_protocols = vec![ALPN_DIRECT.to_vec()];
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
