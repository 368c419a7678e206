//! Shared data of honest clients: the server, and their addresses.

use super::record::Record;
use crate::args::Transport;
use crate::http::Http;
use crate::load::Way;
use crate::member::APP;
use crate::server::Server;
use anyhow::Context;
use parlor_server::admission::SigningKey;
use parlor_server::realm::ENVIRONMENT;
use parlor_services::operator_token;
use parlor_services::store::Role;
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Honest clients come from so many addresses of this machine.
const SOURCES: u8 = 16;

/// The server, and the addresses.
pub(super) struct Stage {
    pub(super) record: Rc<Record>,
    addr: SocketAddr,
    /// By QUIC and by WebSocket with TLS, from each address.
    ways: Vec<Way>,
    next: Cell<usize>,
    key: Rc<OperatorKey>,
}

impl Stage {
    /// # Errors
    /// The server has not said how it is trusted.
    pub(super) fn new(record: Rc<Record>, server: &Server, key: Rc<OperatorKey>) -> anyhow::Result<Self> {
        let way = Way::new(Transport::Quic, server.addr(), server.fingerprint()?);
        let transports = [Transport::Quic, Transport::Wss];
        let from = |number| transports.map(|transport| way.at_source(transport, source(number)));
        let ways = (0..SOURCES).flat_map(from).collect();
        Ok(Stage { record, addr: server.addr(), ways, next: Cell::new(0), key })
    }

    pub(super) fn app(&self) -> &'static str {
        APP
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A span between two, in ms.
    pub(super) fn span(&self, (low, high): (u16, u16)) -> Duration {
        self.record.between_ms(low, high)
    }

    /// From the next address, by QUIC and by WebSocket in turns.
    pub(super) fn next_way(&self) -> Way {
        let next = self.next.get();
        self.next.set(next + 1);
        self.ways[next % self.ways.len()].clone()
    }

    /// The services, asked from the next address.
    pub(super) fn next_http(&self) -> Http {
        Http::from_source(self.addr, self.next_source())
    }

    /// The next address.
    pub(super) fn next_source(&self) -> IpAddr {
        let next = self.next.get();
        self.next.set(next + 1);
        source(u8::try_from(next % usize::from(SOURCES)).unwrap_or(0))
    }

    /// Says that the game's own service asks.
    pub(super) fn operator_token(&self) -> String {
        operator_token(&self.key.key, Role::Server, "soak", APP, ENVIRONMENT)
    }
}

fn source(number: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, 10 + number).into()
}

/// The key of the game's own service, whose public half is in a file until this is dropped.
pub(super) struct OperatorKey {
    key: SigningKey,
    public: PathBuf,
}

impl OperatorKey {
    /// # Errors
    /// The file cannot be written.
    pub(super) fn new() -> anyhow::Result<Self> {
        let key = SigningKey::generate().context("there is no key for the game's own service")?;
        let public = std::env::temp_dir().join(format!("parlor-bench-{}.operator.pub", std::process::id()));
        std::fs::write(&public, key.public_pem())
            .with_context(|| format!("{} cannot be written", public.display()))?;
        Ok(OperatorKey { key, public })
    }

    pub(super) fn public(&self) -> &Path {
        &self.public
    }
}

impl Drop for OperatorKey {
    fn drop(&mut self) {
        // The rest is an unused public key.
        let _ = std::fs::remove_file(&self.public);
    }
}
