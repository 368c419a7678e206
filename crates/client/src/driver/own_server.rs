//! A server in this process, for a host that finds none. All rooms of the process share it; it ends with the last of them.

use super::connect_options::ConnectOptions;
use super::failure::disabled;
use super::listed::{Listed, Wanted};
use super::places;
use crate::modules::Module;
use parlor_client_core::{ConnectFailure, ConnectFailureKind, Mode, Wish};
use parlor_server::{Config, Server};
use parlor_transport::discovery::Registry;
use parlor_transport::inside::Inside;
use parlor_transport::lan::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};
use tokio::sync::Mutex;

/// The servers that run: at most one for each registry and each network.
static RUNNING: Mutex<Vec<Weak<Running>>> = Mutex::const_new(Vec::new());

#[derive(Debug)]
struct Running {
    server: Server,
    registry: Registry,
    lan: Option<Network>,
}

/// Gives a room that this process hosts the server of this process, unless another one is named or runs on this machine.
///
/// # Errors
/// [`ConnectFailureKind`]: the environment names a server wrongly, or none could or may be started.
pub(super) async fn if_needed(
    wish: &Wish,
    connect: ConnectOptions,
) -> Result<(ConnectOptions, Option<OwnServer>), ConnectFailure> {
    let may_host = matches!(wish, Wish::Host { .. }) && connect.mode != Mode::Relay;
    if !may_host || places::is_there_a_server(&connect, &connect.registry)? {
        return Ok((connect, None));
    }
    Module::Server.require().map_err(disabled)?;
    let own = OwnServer::share(&connect).await?;
    let (server, inside) = (own.inside().address(), Some(own.inside().clone()));
    let public = connect.lan.and_then(|_| own.0.server.addresses().first().cloned());
    Ok((ConnectOptions { server, inside, public, ..connect }, Some(own)))
}

/// A room's share of the server in this process.
#[derive(Debug)]
pub(super) struct OwnServer(Arc<Running>);

impl OwnServer {
    /// Shares the server of this process, and starts it first if there is none.
    ///
    /// # Errors
    /// [`ConnectFailureKind::NoServer`] if it cannot be started.
    pub(super) async fn share(connect: &ConnectOptions) -> Result<Self, ConnectFailure> {
        let mut running = RUNNING.lock().await;
        running.retain(|server| server.strong_count() > 0);
        let is_it = |server: &Arc<Running>| server.registry == connect.registry && server.lan == connect.lan;
        if let Some(server) = running.iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(OwnServer(server));
        }
        let (registry, lan) = (connect.registry.clone(), connect.lan);
        let listen: IpAddr = match lan {
            Some(Network { is_loopback_only: false, .. }) => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let config = Config {
            listen,
            port: 0,
            lan,
            lan_on_request: true,
            registry: Some(registry.clone()),
            is_of_host: true,
            dedicated: true,
            ..Config::default()
        };
        let server = Server::start(config).await.map_err(|error| ConnectFailure {
            kind: ConnectFailureKind::NoServer,
            detail: format!("no server was found, and none could be started in this process: {error}"),
        })?;
        let server = Arc::new(Running { server, registry, lan });
        running.push(Arc::downgrade(&server));
        Ok(OwnServer(server))
    }

    /// Announces a room on the local network as its game wants it, for as long as this is awaited.
    pub(super) async fn announce(&self, listed: &Listed) {
        let mut wanted = listed.hear();
        // It is there as long as the room, which waits for this.
        while wanted.changed().await.is_ok() {
            let Wanted { code, listing } = wanted.borrow_and_update().clone();
            if let Some(code) = code {
                self.0.server.announce(code, listing).await;
            }
        }
    }

    /// The way into it.
    pub(super) fn inside(&self) -> &Inside {
        self.0.server.inside()
    }

    /// Gives the share back; stops the server if it was the last.
    pub(super) async fn release(self) {
        // Nobody gets a share meanwhile.
        let _running = RUNNING.lock().await;
        if let Ok(running) = Arc::try_unwrap(self.0) {
            running.server.shutdown().await;
        }
    }
}
