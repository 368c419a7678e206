//! A server inside a process that hosts a room.

use crate::connect_options::ConnectArgs;
use anyhow::Context;
use parlor::lan::Network;
use parlor::{Room, RoomBuilder};
use parlor_server::{Config, Server, WebPages};
use parlor_transport::discovery::Registry;

/// A server inside this process, for this machine and those near it.
pub struct OwnServer {
    /// What a friend must know beside the code.
    secret: Option<String>,
    /// Always there but in `drop`.
    server: Option<Server>,
    runtime: tokio::runtime::Runtime,
}

impl OwnServer {
    /// Starts one for a host, unless it named a server; on any free port, if that is 0. It announces its rooms if the players asked for
    /// that. Browsers play on `web_pages` there.
    ///
    /// # Errors
    /// If it cannot be started, for instance because the port is taken.
    pub fn unless_configured(
        port: u16,
        connect: &ConnectArgs,
        web_pages: Option<WebPages>,
    ) -> anyhow::Result<Option<Self>> {
        let in_environment = std::env::var("PARLOR_SERVER").is_ok_and(|server| !server.trim().is_empty());
        if !connect.lan && (connect.server.is_some() || in_environment) {
            return Ok(None);
        }
        Self::start(port, connect, web_pages).map(Some)
    }

    fn start(port: u16, connect: &ConnectArgs, web_pages: Option<WebPages>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("parlor-server")
            .enable_all()
            .build()
            .context("the server's thread could not be started")?;
        let lan = connect.lan.then(Network::default);
        let registry = Some(Registry::of_this_user());
        let web_pages = web_pages.unwrap_or_default();
        let config = Config { port, lan, registry, web_pages, is_of_host: true, ..Config::default() };
        let server =
            runtime.block_on(Server::start(config)).context("no room can be hosted on this machine")?;
        Ok(OwnServer { secret: connect.secret.clone(), server: Some(server), runtime })
    }

    /// Says that a room is to be opened or found here.
    pub fn place<K>(&self, builder: RoomBuilder<K>) -> RoomBuilder<K> {
        self.server.iter().fold(builder, |builder, server| builder.inside(server.inside()))
    }

    /// Its port.
    pub fn port(&self) -> Option<u16> {
        self.server.as_ref().map(Server::local_port)
    }

    /// The link for a friend on another machine of the same network.
    pub fn invite(&self, room: &Room) -> Option<String> {
        let code = room.code().filter(|_| room.is_connected())?;
        Some(self.server.as_ref()?.invite(code, self.secret.as_deref()).to_string())
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.shutdown());
        }
    }
}
