//! TLS on TCP between two programs that both prove themselves: each knows the other's certificate by its fingerprint.

use crate::connect::ConnectError;
use crate::identity::{Fingerprint, Identity};
use crate::io::Io;
use crate::tls;
use crate::trust::{ByFingerprint, explain, mutual_client, mutual_server};
use core::fmt;
use core::net::SocketAddr;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// One of the programs, for both directions. Cheap to clone.
#[derive(Clone)]
pub struct MutualTls {
    own: Arc<CertifiedKey>,
    acceptor: TlsAcceptor,
}

impl MutualTls {
    /// `is_known` decides at each accepted connection whether its client's certificate is one of a program that may
    /// connect.
    pub fn new(identity: &Identity, is_known: impl Fn(Fingerprint) -> bool + Send + Sync + 'static) -> Self {
        let own = identity.certified();
        let config = mutual_server(&own, ByFingerprint::known(is_known));
        MutualTls { own, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Accepts a connection, and names its client by its certificate. Sets no deadline. Cancel-safe.
    ///
    /// # Errors
    /// The client is not known, does not speak TLS, or broke off.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<(impl Io + use<>, Fingerprint)> {
        stream.set_nodelay(true)?;
        let stream = self.acceptor.accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).map(Fingerprint::of);
        let client = shown.ok_or_else(|| io::Error::other("a client without a certificate was accepted"))?;
        Ok((stream, client))
    }

    /// Secures a connection to the program at `addr`, whose certificate is `peer`. Sets no deadline. Cancel-safe.
    ///
    /// # Errors
    /// [`ConnectError`]. That the program does not know this one shows later: the first read fails.
    pub async fn connect(
        &self,
        stream: TcpStream,
        addr: SocketAddr,
        peer: Fingerprint,
    ) -> Result<impl Io + use<>, ConnectError> {
        stream.set_nodelay(true).map_err(|error| ConnectError::from_io(addr, &error))?;
        let config = mutual_client(&self.own, peer);
        let name = ServerName::IpAddress(addr.ip().into());
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        connecting.map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(refused @ rustls::Error::InvalidCertificate(_)) => explain(refused),
                _ => tls::failed(addr, &error),
            }
        })
    }
}

impl fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MutualTls({})", Fingerprint::of(&self.own.cert[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn identity() -> Identity {
        Identity::generate(&["node"]).unwrap()
    }

    /// What the client got of the server's greeting, and whom the server took it for.
    async fn greeted(
        client: &Identity,
        known: Fingerprint,
        pinned: Fingerprint,
        server: Identity,
    ) -> Greeted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let accepting = tokio::spawn(async move {
            let tls = MutualTls::new(&server, move |shown| shown == known);
            let (mut stream, client) = tls.accept(listener.accept().await.unwrap().0).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await?;
            Ok::<_, io::Error>(client)
        });
        let stream = TcpStream::connect(addr).await.unwrap();
        let connected = MutualTls::new(client, |_| false).connect(stream, addr, pinned).await;
        let got = match connected {
            Ok(mut stream) => {
                let mut got = Vec::new();
                let read = stream.read_to_end(&mut got).await;
                Ok(read.map(|_| got).map_err(|error| error.kind()))
            }
            Err(error) => Err(error),
        };
        (got, accepting.await.unwrap().ok())
    }

    type Greeted = (Result<Result<Vec<u8>, io::ErrorKind>, ConnectError>, Option<Fingerprint>);

    #[tokio::test]
    async fn two_that_know_each_other_are_connected() {
        let (client, server) = (identity(), identity());
        let (known, pinned) = (client.fingerprint(), server.fingerprint());
        let (got, taken_for) = greeted(&client, known, pinned, server).await;
        assert_eq!(got, Ok(Ok(b"hello".to_vec())));
        assert_eq!(taken_for, Some(known));
    }

    #[tokio::test]
    async fn threat_36_a_client_that_is_not_known_reads_nothing() {
        let (client, server) = (identity(), identity());
        let pinned = server.fingerprint();
        let (got, taken_for) = greeted(&client, identity().fingerprint(), pinned, server).await;
        // The client's side of the handshake may be through before the server has looked at the certificate.
        assert!(matches!(got, Err(_) | Ok(Err(_))), "{got:?}");
        assert_eq!(taken_for, None);
    }

    #[tokio::test]
    async fn a_server_with_another_certificate_is_told_nothing() {
        let (client, server) = (identity(), identity());
        let (known, found, expected) = (client.fingerprint(), server.fingerprint(), identity().fingerprint());
        let (got, taken_for) = greeted(&client, known, expected, server).await;
        assert_eq!(got, Err(ConnectError::WrongFingerprint { expected, found }));
        assert_eq!(taken_for, None);
    }
}
