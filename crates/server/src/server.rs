//! A server: start, addresses and shutdown.

mod prepared;

use crate::config::Config;
use crate::connection_limit::ConnectionLimits;
use crate::embed::{Parts, Services};
use crate::error::{ServerFailed, StartError};
use crate::http::Facts;
use crate::match_log_queue;
use crate::metrics::Listener;
use crate::renewal::Renewal;
use crate::shard::Shards;
use crate::worker::Worker;
use core::fmt;
use core::net::SocketAddr;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all, select_all};
use parlor_hub::RoomSummary;
use parlor_proto::RoomCode;
use parlor_transport::Fingerprint;
use parlor_transport::discovery::registry::EntryGuard;
use parlor_transport::discovery::{Invite, ServerAddress};
use parlor_transport::inside::Inside;
use parlor_transport::lan::Advertiser;
use prepared::Prepared;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A server that runs. Dropping it stops it at once; [`shutdown`](Self::shutdown) lets it say goodbye.
pub struct Server {
    facts: Arc<Facts>,
    shards: Shards,
    workers: Vec<Worker>,
    limits: ConnectionLimits,
    entry: Option<EntryGuard>,
    lan: Option<Advertiser>,
    inside: Inside,
    services: Option<Arc<dyn Services>>,
    figures: Option<Listener>,
    /// Uses what is renewed, while it is here.
    _renewal: Option<Renewal>,
}

/// How much a server has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Rooms that live.
    pub rooms: usize,
    /// Links with a session, in a room or not yet.
    pub connections: usize,
    /// TCP connections: WebSockets, requests, and those that have not said yet what they are.
    pub tcp_connections: usize,
    /// TCP connections that were closed at once because there were too many.
    pub tcp_turned_away: u64,
    /// QUIC connections and handshakes.
    pub quic_connections: usize,
    /// QUIC connections that were refused because there were too many, all of them or handshakes alone.
    pub quic_turned_away: u64,
}

impl Server {
    /// Starts a server. It is reachable when this returns. It runs on threads of its own, one for each shard.
    ///
    /// # Errors
    /// [`StartError`] says what to do. Nothing runs then.
    // Boxed, like `shutdown` and all that starts a server: an async function is compiled again in each crate that awaits it, with all
    // that it calls.
    #[inline(never)]
    pub fn start(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        async { Prepared::open(config, None).await?.begin(None).await }.boxed()
    }

    /// Starts a server with services: `start` starts them once the ports are open and before any request is
    /// served.
    ///
    /// # Errors
    /// As [`Server::start`], and what `start` gives.
    pub async fn start_with<E: From<StartError>, F>(
        config: Config,
        start: impl FnOnce(Parts) -> F,
    ) -> Result<Self, E>
    where
        F: Future<Output = Result<Arc<dyn Services>, E>>,
    {
        let (match_logs, kept) = match_log_queue::channel();
        let prepared = Prepared::open(config, Some(match_logs)).await?;
        let services = start(prepared.parts(kept)).await?;
        Ok(prepared.begin(Some(services)).await?)
    }

    /// The port, UDP and TCP.
    pub fn local_port(&self) -> u16 {
        self.facts.port
    }

    /// Where monitoring gets its figures, if it does.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.figures.as_ref().map(|figures| figures.addr)
    }

    /// The fingerprint of a development identity. A certificate of an authority needs none.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.facts.fingerprint
    }

    /// The way in for rooms of this very process: they need no socket, no encryption and no coding to reach it.
    pub fn inside(&self) -> &Inside {
        &self.inside
    }

    /// Under which addresses the server is found, the one that reaches furthest first: the public host if there is one,
    /// this machine's addresses on its network, and its loopback address.
    pub fn addresses(&self) -> &[ServerAddress] {
        &self.facts.addresses
    }

    /// What a friend is given to join a room, with the address that reaches furthest.
    pub fn invite(&self, code: RoomCode, secret: Option<&str>) -> Invite {
        self.facts.invite(code, secret)
    }

    /// The room that a code leads to.
    pub async fn room(&self, code: RoomCode) -> Option<RoomSummary> {
        // A shard that has stopped has no rooms.
        self.shards.room(code).await.ok().flatten()
    }

    /// How much the server has to do. Nothing once it has failed.
    pub async fn stats(&self) -> Stats {
        let hubs = self.shards.stats().await;
        Stats {
            rooms: hubs.rooms,
            connections: hubs.connections,
            tcp_connections: self.limits.tcp.places.taken(),
            tcp_turned_away: self.limits.tcp.places.turned_away(),
            quic_connections: self.limits.quic.taken(),
            quic_turned_away: self.limits.quic.turned_away(),
        }
    }

    /// Waits until the server fails by itself, which no server should: a program waits for this and for its own reason to
    /// stop. May be cancelled.
    pub async fn wait(&mut self) -> ServerFailed {
        select_all(self.workers.iter().map(|worker| worker.failed().boxed())).await.0
    }

    /// Stops the server: ends rooms, notifies all members, and completes room logs. It takes about a second
    /// at most if peers do not answer, and more only if the disk does not.
    #[inline(never)]
    pub fn shutdown(self) -> BoxFuture<'static, ()> {
        self.end().boxed()
    }

    async fn end(mut self) {
        self.facts.is_draining.store(true, Ordering::Relaxed);
        self.entry = None;
        self.limits.quic.shut();
        // Before the workers, which hold their connections.
        if let Some(services) = &self.services {
            services.say_goodbye().await;
        }
        join_all(self.workers.iter_mut().map(Worker::stop)).await;
        if let Some(services) = self.services.take() {
            services.stop().await;
        }
        if let Some(lan) = self.lan.take() {
            // A thread that cannot be had says goodbye to nobody, who find out by themselves.
            let _ = tokio::task::spawn_blocking(move || lan.stop()).await;
        }
        // To the end: whoever watches shall see it go down.
        if let Some(figures) = self.figures.take() {
            figures.stop().await;
        }
        tracing::info!(port = self.facts.port, "stopped");
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { port, fingerprint, addresses, .. } = &*self.facts;
        f.debug_struct("Server")
            .field("port", port)
            .field("shards", &self.workers.len())
            .field("fingerprint", fingerprint)
            .field("addresses", addresses)
            .finish_non_exhaustive()
    }
}
