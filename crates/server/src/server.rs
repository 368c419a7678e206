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
use crate::web_identity::WebIdentity;
use crate::worker::Worker;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all, select_all};
use parlor_hub::{ROOMS_LOOKED_AT_MAX, RoomQuery, RoomSummary};
use parlor_proto::RoomCode;
use parlor_transport::Fingerprint;
use parlor_transport::discovery::registry::EntryGuard;
use parlor_transport::discovery::{Invite, ServerAddress};
use parlor_transport::inside::Inside;
use parlor_transport::lan::{Advertiser, Listing};
use prepared::Prepared;
pub(crate) use prepared::check_settings;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Interval at which a drain looks whether rooms are left.
const LOOK: Duration = Duration::from_millis(100);
/// What members read when their room is left after a drain.
const NOT_EMPTIED: &str = "this server goes down, and the room was not over in time";

/// A running server. Dropping it stops it at once; [`shutdown`](Self::shutdown) notifies its members first.
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
    /// Applies renewed certificates until it is dropped.
    _renewal: (Option<Renewal>, Option<WebIdentity>),
}

/// A server's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Live rooms.
    pub rooms: usize,
    /// Links with a session, in a room or not yet.
    pub connections: usize,
    /// TCP connections: WebSockets, requests, and those whose purpose is not known yet.
    pub tcp_connections: usize,
    /// TCP connections that were closed at once because there were too many.
    pub tcp_turned_away: u64,
    /// QUIC connections and handshakes.
    pub quic_connections: usize,
    /// QUIC connections that were rejected because there were too many connections or handshakes.
    pub quic_turned_away: u64,
}

impl Server {
    /// Starts a server. It is reachable when this returns. It has its own threads, one for each shard.
    ///
    /// # Errors
    /// [`StartError`] describes what to do. Nothing is running then.
    // Boxed, like `shutdown` and all functions that start a server: an async function is compiled again, with
    // all that it calls, in each crate that awaits it.
    #[inline(never)]
    pub fn start(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        async { Prepared::open(config, None).await?.begin(None).await }.boxed()
    }

    /// Starts a server with services: `start` starts them once the ports are open and before any request is
    /// served.
    ///
    /// # Errors
    /// As [`Server::start`], and the error of `start`.
    pub async fn start_with<E: From<StartError>, F>(
        config: Config,
        start: impl FnOnce(Parts) -> F,
    ) -> Result<Self, E>
    where
        F: Future<Output = Result<Arc<dyn Services>, E>>,
    {
        let (match_logs, kept) = match_log_queue::channel(config.time.clone());
        let prepared = Prepared::open(config, Some(match_logs)).await?;
        let services = start(prepared.parts(kept)).await?;
        Ok(prepared.begin(Some(services)).await?)
    }

    /// The port, UDP and TCP.
    pub fn local_port(&self) -> u16 {
        self.facts.port
    }

    /// The address of the monitoring port, if there is one.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.figures.as_ref().map(|figures| figures.addr)
    }

    /// The SHA-256 of the certificates that browsers are shown over HTTP/3: the one in use and the next one. Empty
    /// with an authority's certificate.
    pub fn web_hashes(&self) -> Vec<Fingerprint> {
        self.facts.web_hashes.get()
    }

    /// The fingerprint of a development identity. A certificate of an authority needs none.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.facts.fingerprint
    }

    /// The entrance for rooms of this process: their links need no socket, no encryption and no coding.
    pub fn inside(&self) -> &Inside {
        &self.inside
    }

    /// The addresses of the server, the widest reachable first: the public host if there is one, this
    /// machine's addresses on its network, and its loopback address.
    pub fn addresses(&self) -> &[ServerAddress] {
        &self.facts.addresses
    }

    /// The invite to a room, with the widest reachable address.
    pub fn invite(&self, code: RoomCode, secret: Option<&str>) -> Invite {
        self.facts.invite(code, secret)
    }

    /// The room with a code.
    pub async fn room(&self, code: RoomCode) -> Option<RoomSummary> {
        // A stopped shard has no rooms.
        self.shards.room(code).await.ok().flatten()
    }

    /// Announces a room on the [local network](Config::lan) under this listing, in place of its earlier one, or
    /// takes its announcement back. Without such a network, and for a room that is not there or has a secret,
    /// it does nothing.
    pub async fn announce(&self, code: RoomCode, listing: Option<Listing>) {
        // A shard that has stopped has no rooms.
        let _ = self.shards.announce(code, listing).await;
    }

    /// The server's load. All zero once it has failed.
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

    /// Waits until the server fails by itself, which is a defect. A program waits for this and for its own
    /// reason to stop. May be cancelled.
    pub async fn wait(&mut self) -> ServerFailed {
        select_all(self.workers.iter().map(|worker| worker.failed().boxed())).await.0
    }

    /// Drains a node of a cluster: it takes no new rooms. Returns once the node has no rooms, or ends those that are
    /// left after `time`. Does nothing for a server alone, and without time. May be cancelled: then the rooms go on.
    pub async fn drain(&self, time: Duration) {
        let node = self.services.as_ref().and_then(|services| services.node());
        let Some(node) = node.filter(|_| !time.is_zero()) else { return };
        tracing::info!(seconds = time.as_secs(), "draining: new rooms open at other nodes");
        let emptied = async {
            node.drain().await;
            while self.shards.stats().await.rooms > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(time, emptied).await.is_err() {
            self.end_rooms().await;
        }
    }

    /// Ends the rooms that a drain has left.
    async fn end_rooms(&self) {
        let mut query = RoomQuery { limit: ROOMS_LOOKED_AT_MAX, ..RoomQuery::default() };
        // A shard that has stopped has no rooms.
        while let Ok(page) = self.shards.rooms(query.clone()).await {
            for room in &page.rooms {
                tracing::info!(code = %room.code, members = room.members, "a room is left after the drain: it ends");
                let _ = self.shards.end_room(room.code, NOT_EMPTIED.to_owned()).await;
            }
            query.after = page.next;
            if query.after.is_none() {
                return;
            }
        }
    }

    /// Stops the server: ends rooms, notifies all members, and completes room logs. It takes about a second
    /// at most if peers do not answer, and more only if the disk does not.
    #[inline(never)]
    pub fn shutdown(self) -> BoxFuture<'static, ()> {
        self.end().boxed()
    }

    async fn end(mut self) {
        self.facts.is_going_down.store(true, Ordering::Relaxed);
        self.entry = None;
        self.limits.quic.shut();
        // Before the workers, which hold the connections of the services.
        if let Some(services) = &self.services {
            services.say_goodbye().await;
        }
        join_all(self.workers.iter_mut().map(Worker::stop)).await;
        if let Some(services) = self.services.take() {
            services.stop().await;
        }
        if let Some(lan) = self.lan.take() {
            // Without a thread there is no goodbye; the other machines notice the end by themselves.
            let _ = tokio::task::spawn_blocking(move || lan.stop()).await;
        }
        // Last, so that monitoring sees the shutdown.
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
