//! How a client verifies a server. There is no way to disable verification.

use crate::connect::ConnectError;
use crate::identity::Fingerprint;
use core::fmt;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, OtherError, RootCertStore,
    ServerConfig, SignatureScheme, SupportedProtocolVersion,
};
use std::sync::{Arc, Mutex, PoisonError};

/// The required proof of a server's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Exactly the leaf certificate with this fingerprint, whatever its names and dates, and its key.
    Fingerprint(Fingerprint),
    /// A certificate for the server's name that the operating system trusts.
    System,
    /// A certificate for the server's name that one of these certificates (PEM) signed.
    Roots(String),
}

impl Trust {
    pub(crate) fn quic_config(&self, alpn: &[u8]) -> Result<(ClientConfig, Refusal), ConnectError> {
        self.config(alpn, &[&TLS13])
    }

    pub(crate) fn tcp_config(&self, alpn: &[u8]) -> Result<(ClientConfig, Refusal), ConnectError> {
        self.config(alpn, &[&TLS13, &TLS12])
    }

    /// TLS over TCP for a foreign protocol, such as a database's.
    ///
    /// # Errors
    /// The trusted certificates cannot be read.
    pub fn foreign_tls(&self) -> Result<ClientConfig, ConnectError> {
        let (mut config, _) = self.tcp_config(&[])?;
        config.alpn_protocols.clear();
        Ok(config)
    }

    /// The configuration of one attempt, and where it stores the reason for rejecting the server.
    fn config(
        &self,
        alpn: &[u8],
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<(ClientConfig, Refusal), ConnectError> {
        let provider = Arc::new(ring::default_provider());
        let refusal = Refusal::default();
        let verifier = Recording { inner: self.verifier(Arc::clone(&provider))?, refusal: refusal.clone() };
        // "Dangerous" is rustls's name for every custom verifier.
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("ring has suites for TLS 1.2 and 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        Ok((config, refusal))
    }

    pub(crate) fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, ConnectError> {
        let unreadable = |error: &dyn fmt::Display| ConnectError::TrustUnreadable(error.to_string());
        match self {
            Trust::Fingerprint(expected) => Ok(Arc::new(ByFingerprint::pinned(*expected))),
            Trust::System => match rustls_platform_verifier::Verifier::new(provider) {
                Ok(verifier) => Ok(Arc::new(verifier)),
                Err(error) => Err(unreadable(&error)),
            },
            Trust::Roots(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                    let certificate = certificate.map_err(|error| unreadable(&error))?;
                    roots.add(certificate).map_err(|error| unreadable(&error))?;
                }
                if roots.is_empty() {
                    return Err(unreadable(&"there is no certificate in it"));
                }
                let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
                Ok(built.map_err(|error| unreadable(&error))?)
            }
        }
    }
}

/// Why an attempt rejected its server. Libraries pass on only text, so the verifier stores it here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusal(Arc<Mutex<Option<ConnectError>>>);

impl Refusal {
    pub(crate) fn take(&self) -> Option<ConnectError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn record(&self, error: &rustls::Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(explain(error));
    }
}

/// Why a server is rejected, the most common reason in words for its operator.
pub(crate) fn explain(error: &rustls::Error) -> ConnectError {
    if let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error
        && let Some(Mismatch { expected, found }) = other.downcast_ref()
    {
        return ConnectError::WrongFingerprint { expected: *expected, found: *found };
    }
    ConnectError::UntrustedCertificate(match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "nobody that this machine trusts vouches for it. For a server of your own, connect by its fingerprint"
                .to_owned()
        }
        error => error.to_string(),
    })
}

/// Wraps a verifier and records why it rejected a server.
#[derive(Debug)]
struct Recording {
    inner: Arc<dyn ServerCertVerifier>,
    refusal: Refusal,
}

impl ServerCertVerifier for Recording {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.inner
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .inspect_err(|error| self.refusal.record(error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss).inspect_err(|error| self.refusal.record(error))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss).inspect_err(|error| self.refusal.record(error))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Decides about an other end's certificate by its fingerprint.
type Check = Box<dyn Fn(Fingerprint) -> Result<(), rustls::Error> + Send + Sync>;

/// Accepts certificates by their fingerprints, whatever their names and dates. The handshake's signatures prove that
/// the other end has the key.
pub(crate) struct ByFingerprint {
    check: Check,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Mismatch {
    expected: Fingerprint,
    found: Fingerprint,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate is {} and not {}", self.found, self.expected)
    }
}

impl std::error::Error for Mismatch {}

impl ByFingerprint {
    /// Accepts one certificate.
    pub(crate) fn pinned(expected: Fingerprint) -> Self {
        Self::new(Box::new(move |found| {
            if found == expected {
                return Ok(());
            }
            let mismatch = Arc::new(Mismatch { expected, found });
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(mismatch))))
        }))
    }

    /// Accepts the certificates that are known at the moment of each handshake.
    pub(crate) fn known(is_known: impl Fn(Fingerprint) -> bool + Send + Sync + 'static) -> Self {
        let refused = CertificateError::ApplicationVerificationFailure;
        Self::new(Box::new(move |found| {
            if is_known(found) { Ok(()) } else { Err(rustls::Error::InvalidCertificate(refused.clone())) }
        }))
    }

    fn new(check: Check) -> Self {
        ByFingerprint { check, provider: Arc::new(ring::default_provider()) }
    }
}

impl fmt::Debug for ByFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByFingerprint").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for ByFingerprint {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        (self.check)(Fingerprint::of(end_entity)).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for ByFingerprint {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        (self.check)(Fingerprint::of(end_entity)).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}

/// The client's side of TLS 1.3 between two ends that each have a certificate and know the other's.
pub(crate) fn mutual_client(own: &Arc<CertifiedKey>, peer: Fingerprint) -> ClientConfig {
    // "Dangerous" is rustls's name for every custom verifier.
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites for TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ByFingerprint::pinned(peer)))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    // The name is meaningless, and would be readable on the way.
    config.enable_sni = false;
    config
}

/// The server's side, which accepts these clients.
pub(crate) fn mutual_server(own: &Arc<CertifiedKey>, clients: ByFingerprint) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites for TLS 1.3")
        .with_client_cert_verifier(Arc::new(clients))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    // A resumed session would skip the check of the certificate.
    config.send_tls13_tickets = 0;
    config
}
