//! Links between a server and rooms in the same process, without a socket.
//!
//! The server has an [`Entrance`] for each of its ports. Its embedding program gets the [`Inside`] that
//! connects to them. Nothing is global: a room without it knows only the server's address.

use crate::connect::ConnectError;
use crate::discovery::ServerAddress;
use crate::identity::Fingerprint;
use crate::link::Link;
use crate::memory;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Maximum links that wait for the server; further ones wait outside.
const WAITING_MAX: usize = 16;

/// Connects to a server in this process. Cheap to clone.
#[derive(Clone)]
pub struct Inside {
    connectors: Arc<[Connector]>,
    fingerprint: Option<Fingerprint>,
}

/// A port of a server, from inside the process.
#[derive(Clone, Debug)]
pub struct Connector {
    port: u16,
    links: mpsc::Sender<Link>,
}

/// Where the links of a [`Connector`] come out.
#[derive(Debug)]
pub struct Entrance(mpsc::Receiver<Link>);

/// The two ends of the way beside a server's port.
pub fn connector(port: u16) -> (Connector, Entrance) {
    let (links, entrance) = mpsc::channel(WAITING_MAX);
    (Connector { port, links }, Entrance(entrance))
}

impl Entrance {
    /// Returns the next link; `None` once all doors are dropped. Cancel-safe.
    pub async fn next(&mut self) -> Option<Link> {
        self.0.recv().await
    }
}

impl Inside {
    /// The way into a server by these connectors, and with this certificate if it is one of its own.
    pub fn new(connectors: impl IntoIterator<Item = Connector>, fingerprint: Option<Fingerprint>) -> Self {
        Inside { connectors: connectors.into_iter().collect(), fingerprint }
    }

    /// The address of the first port, as other processes on this machine see it.
    pub fn address(&self) -> Option<ServerAddress> {
        let port = self.connectors.first()?.port;
        Some(ServerAddress { host: Ipv4Addr::LOCALHOST.to_string(), port, fingerprint: self.fingerprint })
    }

    /// Whether an address belongs to this server: on this machine, one of its ports, and no other
    /// certificate.
    pub fn leads_to(&self, address: &ServerAddress) -> bool {
        let is_other = address.fingerprint.is_some_and(|print| self.fingerprint != Some(print));
        address.is_loopback() && !is_other && self.connector(address.port).is_some()
    }

    /// Connects to the server at this address.
    ///
    /// # Errors
    /// [`ConnectError::Refused`] if it is [not its address](Self::leads_to), or it has stopped.
    pub async fn connect(&self, address: &ServerAddress) -> Result<Link, ConnectError> {
        let addr: SocketAddr = (Ipv4Addr::LOCALHOST, address.port).into();
        let refused = ConnectError::Refused { addr };
        let connector =
            self.connector(address.port).filter(|_| self.leads_to(address)).ok_or(refused.clone())?;
        let (ours, theirs) = memory::pair();
        connector.links.send(theirs).await.map_err(|_| refused)?;
        Ok(ours)
    }

    fn connector(&self, port: u16) -> Option<&Connector> {
        self.connectors.iter().find(|connector| connector.port == port)
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside")
            .field("address", &self.address().map(|it| it.to_string()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_proto::{Carrier, LinkKind, Packet};

    fn address(text: &str) -> ServerAddress {
        text.parse().expect("an address")
    }

    #[tokio::test]
    async fn a_link_comes_out_at_the_port_that_was_asked_for() {
        let print = Fingerprint([7; 32]);
        let (first, _out) = connector(9_000);
        let (second, mut out) = connector(9_001);
        let inside = Inside::new([first, second], Some(print));
        assert_eq!(inside.address(), Some(address(&format!("127.0.0.1:9000#{print}"))));
        let ours = inside.connect(&address("localhost:9001")).await.expect("it is there");
        let mut theirs = out.next().await.expect("it came");
        ours.send(Packet { carrier: Carrier::Stream, bytes: "hello".into() }).expect("there is room");
        assert_eq!(theirs.recv().await.expect("it is there").bytes, "hello");
        assert_eq!(ours.kind(), LinkKind::Memory);
    }

    #[tokio::test]
    async fn no_other_address_leads_inside_and_a_server_that_stopped_refuses() {
        let (connector, out) = connector(9_000);
        let inside = Inside::new([connector], Some(Fingerprint([7; 32])));
        for other in ["192.0.2.1:9000", "play.example.com:9000", "127.0.0.1:9001"] {
            assert!(!inside.leads_to(&address(other)), "{other}");
        }
        let forged = address(&format!("127.0.0.1:9000#{}", Fingerprint([8; 32])));
        assert!(matches!(inside.connect(&forged).await, Err(ConnectError::Refused { .. })));
        let own = address("127.0.0.1:9000");
        assert!(inside.leads_to(&own));
        drop(out);
        assert!(matches!(inside.connect(&own).await, Err(ConnectError::Refused { .. })));
    }
}
