//! A server on a runtime of its own, for tests whose clients block.

use core::fmt::Debug;
use core::net::{Ipv4Addr, SocketAddr};
use parlor_server::{Config, Server};
use parlor_transport::discovery::Registry;
use std::path::Path;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A server, and a registry where clients find it. Dropping it shuts the server down.
pub struct Hall {
    /// The registry.
    pub registry: Registry,
    /// The server's runtime.
    pub runtime: Runtime,
    server: Option<Server>,
    _folder: TempDir,
}

impl Hall {
    /// Starts a server on a free port.
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts one with a changed configuration.
    pub fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_by(|mut config, _| {
            change(&mut config);
            Server::start(config)
        })
    }

    /// Starts one by another function than [`Server::start`], which may keep files in the folder that it gets.
    pub fn start_by<F, E>(start: impl FnOnce(Config, &Path) -> F) -> Self
    where
        F: Future<Output = Result<Server, E>>,
        E: Debug,
    {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let runtime = Runtime::new().unwrap();
        let config = Config { port: 0, registry: Some(registry.clone()), ..Config::default() };
        let server = runtime.block_on(start(config, folder.path())).unwrap();
        Hall { registry, runtime, server: Some(server), _folder: folder }
    }

    /// The server.
    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Its address on this machine.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.server().local_port()))
    }

    /// Its address with its fingerprint, as a client takes it.
    pub fn address(&self) -> String {
        self.address_by(self.server().local_port())
    }

    /// The same by another port, such as a proxy's.
    pub fn address_by(&self, port: u16) -> String {
        format!("127.0.0.1:{port}#{}", self.server().fingerprint().expect("it made its identity"))
    }

    /// Shuts the server down before the test ends.
    pub fn shut_down(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.shutdown());
        }
    }
}

impl Drop for Hall {
    fn drop(&mut self) {
        self.shut_down();
    }
}
