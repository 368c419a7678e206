//! The certificate that a server shows, looked at before anybody trusts it. For diagnosis: a connection that was looked
//! at carries nothing.

use crate::connect::ConnectError;
use crate::identity::{Fingerprint, Identity};
use crate::tls;
use crate::trust::{Trust, explain};
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use x509_cert::der::Decode;

/// A certificate chain, leaf first. Nothing is known of who showed it: anybody can show the certificate of another.
#[derive(Clone)]
pub struct CertificateChain {
    chain: Vec<CertificateDer<'static>>,
}

impl CertificateChain {
    /// The chain of an identity.
    pub fn of(identity: &Identity) -> Self {
        CertificateChain { chain: identity.certified().cert.clone() }
    }

    /// Reads the chain that the server at `addr` shows under the name `host`, over TLS on TCP.
    ///
    /// # Errors
    /// [`ConnectError`]: it was not reached, or has no TLS there.
    pub async fn shown_by(addr: SocketAddr, host: &str, deadline: Duration) -> Result<Self, ConnectError> {
        let timed_out = |_| ConnectError::TimedOut { addr, waited: deadline };
        timeout(deadline, look(addr, host)).await.map_err(timed_out)?
    }

    /// The fingerprint of the leaf.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.chain[0])
    }

    /// The number of certificates. One alone has no intermediate authority with it.
    pub fn certificates(&self) -> usize {
        self.chain.len()
    }

    /// From when until when the leaf is valid, in seconds since 1970; `None` if it cannot be read.
    pub fn validity_s(&self) -> Option<(u64, u64)> {
        let validity = x509_cert::Certificate::from_der(&self.chain[0]).ok()?.tbs_certificate.validity;
        Some((
            validity.not_before.to_unix_duration().as_secs(),
            validity.not_after.to_unix_duration().as_secs(),
        ))
    }

    /// Checks that the leaf is for this name or address.
    ///
    /// # Errors
    /// The names that it is for.
    pub fn check_name(&self, host: &str) -> Result<(), String> {
        let name = ServerName::try_from(host).map_err(|_| format!("{host:?} is no name of a server"))?;
        let leaf = ParsedCertificate::try_from(&self.chain[0]).map_err(|error| error.to_string())?;
        verify_server_name(&leaf, &name).map_err(|error| match error {
            Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
                // They come as `DnsName("play.example.com")` and `IpAddress(192.0.2.1)`.
                let bare = |name: &str| {
                    let parts = name.split(['(', '"', ')']).skip(1).find(|part| !part.is_empty());
                    parts.unwrap_or(name).to_owned()
                };
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            }
            error => error.to_string(),
        })
    }

    /// Checks whether a client with this trust accepts the chain from a server of this name.
    ///
    /// # Errors
    /// [`ConnectError`]: what such a client says.
    pub fn check_trust(&self, host: &str, trust: &Trust) -> Result<(), ConnectError> {
        let name = ServerName::try_from(host).map_err(|_| ConnectError::InvalidName(host.to_owned()))?;
        let verifier = trust.verifier(Arc::new(ring::default_provider()))?;
        let (leaf, others) = self.chain.split_first().expect("a chain begins with its leaf");
        verifier
            .verify_server_cert(leaf, others, &name, &[], UnixTime::now())
            .map(|_| ())
            .map_err(|error| explain(&error))
    }
}

impl fmt::Debug for CertificateChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificateChain({}, {} certificates)", self.fingerprint(), self.chain.len())
    }
}

async fn look(addr: SocketAddr, host: &str) -> Result<CertificateChain, ConnectError> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::InvalidName(host.to_owned()))?;
    let stream = TcpStream::connect(addr).await.map_err(|error| ConnectError::from_io(addr, &error))?;
    let looking = Arc::new(Looking(Mutex::default()));
    // "Dangerous" is rustls's name for every custom verifier. This one accepts nothing.
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("ring has suites for TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::<Looking>::clone(&looking))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let seen = looking.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (seen, connecting) {
        (Some(chain), _) => Ok(CertificateChain { chain }),
        (None, Err(error)) => Err(tls::failed(addr, &error)),
        (None, Ok(_)) => Err(ConnectError::NotParlor { addr, detail: "it shows no certificate".to_owned() }),
    }
}

/// Keeps the chain, and breaks the handshake off.
#[derive(Debug)]
struct Looking(Mutex<Option<Vec<CertificateDer<'static>>>>);

impl ServerCertVerifier for Looking {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = core::iter::once(end_entity).chain(intermediates);
        let chain = chain.map(|certificate| certificate.clone().into_owned()).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain);
        Err(refusal())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(refusal())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(refusal())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn refusal() -> Error {
    Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{ServerTls, sniff};
    use std::net::Ipv4Addr;
    use tokio::net::TcpListener;

    const HANG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_look_reads_the_certificate_and_gets_no_further() {
        let identity = Identity::generate(&["localhost", "192.0.2.1"]).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let tls = ServerTls::new(&identity);
        let accepting = tokio::spawn(async move {
            let (stream, remote) = listener.accept().await.unwrap();
            sniff(stream, remote, &tls).await
        });
        let shown = CertificateChain::shown_by(addr, "localhost", HANG).await.unwrap();
        assert!(accepting.await.unwrap().is_err(), "no connection came of it");
        assert_eq!((shown.fingerprint(), shown.certificates()), (identity.fingerprint(), 1));
        assert_eq!(shown.validity_s().unwrap().1, identity.expires_s().unwrap());
        assert_eq!(shown.check_name("192.0.2.1"), Ok(()));
        assert_eq!(shown.check_name("other.example"), Err("localhost, 192.0.2.1".to_owned()));
        assert!(shown.check_name("no name").is_err());
        let pinned = Trust::Fingerprint(shown.fingerprint());
        assert_eq!(shown.check_trust("other.example", &pinned), Ok(()));
        let wrong = shown.check_trust("localhost", &Trust::Fingerprint(Fingerprint([7; 32]))).unwrap_err();
        assert!(matches!(wrong, ConnectError::WrongFingerprint { .. }), "{wrong}");
        let roots = Trust::Roots(Identity::generate(&["localhost"]).unwrap().to_pem().certificates);
        let wrong = shown.check_trust("localhost", &roots).unwrap_err();
        assert!(matches!(wrong, ConnectError::UntrustedCertificate(_)), "{wrong}");
    }

    #[tokio::test]
    async fn who_has_no_tls_shows_no_certificate() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let answering = tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"SSH-2.0-something\r\n").await.unwrap();
            stream.shutdown().await.unwrap();
        });
        let error = CertificateChain::shown_by(addr, "localhost", HANG).await.unwrap_err();
        assert!(matches!(error, ConnectError::NotParlor { .. }), "{error}");
        answering.await.unwrap();
    }
}
