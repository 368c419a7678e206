//! A server: its start, what it says about itself, and its end.

use crate::address::{addresses, public_address};
use crate::bind::{Bound, bind};
use crate::clock::Clock;
use crate::config::{Config, IdentitySource};
use crate::error::{ServerFailed, StartError};
use crate::gate::Gate;
use crate::http::{Facts, Site};
use crate::recorder::Recorder;
use crate::shard::{self, DRAIN_TIME, Directory, GOING_DOWN, Shard};
use crate::{identity, quic, tcp};
use core::fmt;
use core::time::Duration;
use parlor_hub::{Hub, RoomSummary};
use parlor_proto::RoomCode;
use parlor_transport::discovery::registry::EntryGuard;
use parlor_transport::discovery::{Invite, Registry, ServerAddress};
use parlor_transport::quic::Listener;
use parlor_transport::{CloseCode, Fingerprint, ServerTls};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// A server that runs. Dropping it stops it at once; [`shutdown`](Self::shutdown) lets it say goodbye.
pub struct Server {
    facts: Arc<Facts>,
    shard: Shard,
    listener: Arc<Listener>,
    tcp_gate: Gate,
    quic_gate: Gate,
    /// Each gives its name when it ends.
    tasks: JoinSet<&'static str>,
    accepting: [AbortHandle; 2],
    entry: Option<EntryGuard>,
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

const SHARD: &str = "shard";
const TCP: &str = "TCP port";
const QUIC: &str = "UDP port";

/// Beyond the time for goodbyes: for the shard's last turn and the disk.
const SHARD_END_TIME: Duration = Duration::from_secs(6);
/// How long the last QUIC packets may take.
const QUIC_END_TIME: Duration = Duration::from_millis(500);

impl Server {
    /// Starts a server. It is reachable when this returns. Must be called in a tokio runtime, in which the server runs from
    /// then on.
    ///
    /// # Errors
    /// [`StartError`] says what to do. Nothing runs then.
    #[expect(
        clippy::unused_async,
        reason = "waiting for a start that takes longer must not be a breaking change"
    )]
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let identity = identity::obtain(&config.identity)?;
        let tls = ServerTls::new(&identity);
        let Bound { tcp, quic: listener, addr } = bind(config.listen, config.port, &tls)?;
        let fingerprint = match config.identity {
            IdentitySource::Development { .. } => Some(identity.fingerprint()),
            IdentitySource::Files { .. } => None,
        };
        let facts = Arc::new(facts(&config, addr, fingerprint)?);
        let recorder = match &config.room_log {
            Some(folder) => {
                let started = Recorder::start(folder);
                Some(started.map_err(|error| StartError::RoomLog { folder: folder.clone(), error })?)
            }
            None => None,
        };
        let registry =
            config.registry.clone().filter(|_| addr.ip().is_unspecified() || addr.ip().is_loopback());
        let directory = registry.zip(fingerprint).map(|(registry, fingerprint)| Directory {
            registry,
            port: addr.port(),
            fingerprint,
        });
        let entry = directory
            .as_ref()
            .and_then(|directory| enter(&directory.registry, &facts, directory.fingerprint));

        let hub = Hub::new(hub_config(&config)?);
        let (shard, running) = shard::open(hub, Clock::start(), directory, recorder);
        let (tcp_gate, quic_gate) = (Gate::new(config.connections_max), Gate::new(config.connections_max));
        let listener = Arc::new(listener);
        let site = Site::new(shard.clone(), Arc::clone(&facts));
        let mut tasks = JoinSet::new();
        tasks.spawn(named(SHARD, running));
        let accepting = [
            tasks.spawn(named(TCP, tcp::accept(tcp, tcp_gate.clone(), tls, site))),
            tasks.spawn(named(QUIC, quic::accept(Arc::clone(&listener), quic_gate.clone(), shard.clone()))),
        ];
        tracing::info!(%addr, ?fingerprint, apps = ?config.apps, "listening");
        Ok(Server { facts, shard, listener, tcp_gate, quic_gate, tasks, accepting, entry })
    }

    /// The port, UDP and TCP.
    #[must_use]
    pub fn local_port(&self) -> u16 {
        self.facts.port
    }

    /// By what clients know a development identity. A certificate that somebody vouches for needs none.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.facts.fingerprint
    }

    /// Under which addresses the server is found, the one that reaches furthest first: the public host if there is one,
    /// this machine's addresses on its network, and its loopback address.
    #[must_use]
    pub fn addresses(&self) -> &[ServerAddress] {
        &self.facts.addresses
    }

    /// What a friend is given to join a room, with the address that reaches furthest.
    #[must_use]
    pub fn invite(&self, code: RoomCode, secret: Option<&str>) -> Invite {
        self.facts.invite(code, secret)
    }

    /// The room that a code leads to.
    pub async fn room(&self, code: RoomCode) -> Option<RoomSummary> {
        // A shard that has stopped has no rooms.
        self.shard.room(code).await.ok().flatten()
    }

    /// How much the server has to do. Nothing once it has failed.
    pub async fn stats(&self) -> Stats {
        let count = self.shard.count().await.unwrap_or(shard::Count { rooms: 0, connections: 0 });
        Stats {
            rooms: count.rooms,
            connections: count.connections,
            tcp_connections: self.tcp_gate.taken(),
            tcp_turned_away: self.tcp_gate.turned_away(),
            quic_connections: self.quic_gate.taken(),
            quic_turned_away: self.quic_gate.turned_away() + self.listener.stats().refused,
        }
    }

    /// Waits until the server fails by itself, which no server should: a program waits for this and for its own reason to
    /// stop. May be cancelled.
    pub async fn wait(&mut self) -> ServerFailed {
        match self.tasks.join_next().await {
            Some(Ok(part)) => ServerFailed { part, detail: "it ended".to_owned() },
            Some(Err(error)) => ServerFailed { part: "task", detail: error.to_string() },
            None => ServerFailed { part: "last task", detail: "it ended before".to_owned() },
        }
    }

    /// Stops the server: rooms end, all members are told, and room logs are written to their end. It takes about a second
    /// at most if peers do not answer, and more only if the disk does not.
    pub async fn shutdown(mut self) {
        self.facts.is_draining.store(true, Ordering::Relaxed);
        self.entry = None;
        self.quic_gate.shut();
        // Meanwhile HTTP says that the server is going down. A shard that has failed says nothing any more.
        if self.shard.shut_down().await.is_ok() {
            let end = timeout(DRAIN_TIME + SHARD_END_TIME, async {
                while let Some(ended) = self.tasks.join_next().await {
                    if !matches!(ended, Ok(TCP | QUIC)) {
                        break;
                    }
                }
            });
            if end.await.is_err() {
                tracing::error!("the shard does not end; please report this");
            }
        }
        self.accepting.iter().for_each(AbortHandle::abort);
        self.listener.close(CloseCode::GOING_AWAY, GOING_DOWN);
        if timeout(QUIC_END_TIME, self.listener.wait_idle()).await.is_err() {
            tracing::debug!("some QUIC clients did not answer the goodbye");
        }
        self.tasks.shutdown().await;
        tracing::info!(port = self.facts.port, "stopped");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The tasks stop with their set. QUIC peers would wait for a sign of life; WebSockets break by themselves.
        self.listener.close(CloseCode::GOING_AWAY, GOING_DOWN);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { port, fingerprint, addresses, .. } = &*self.facts;
        f.debug_struct("Server")
            .field("port", port)
            .field("fingerprint", fingerprint)
            .field("addresses", addresses)
            .finish_non_exhaustive()
    }
}

async fn named(name: &'static str, task: impl Future<Output = ()>) -> &'static str {
    task.await;
    name
}

fn facts(
    config: &Config,
    addr: core::net::SocketAddr,
    fingerprint: Option<Fingerprint>,
) -> Result<Facts, StartError> {
    let port = addr.port();
    let public = config.public_host.as_deref().map(|host| public_address(host, port, fingerprint));
    let public = public.transpose().map_err(StartError::PublicHost)?;
    if public.is_none() && fingerprint.is_none() {
        tracing::warn!("invites have an address and not the certificate's name: configure the public host");
    }
    let addresses = addresses(public, addr.ip(), port, fingerprint);
    Ok(Facts { port, fingerprint, addresses, is_draining: AtomicBool::new(false) })
}

/// Enters the server. One that cannot be found this way still can by its address.
fn enter(registry: &Registry, facts: &Facts, fingerprint: Fingerprint) -> Option<EntryGuard> {
    let entered = registry.enter_server(facts.port, fingerprint);
    entered
        .inspect_err(|error| {
            let folder = registry.folder().display();
            tracing::warn!(%folder, %error, "games on this machine must be given the server's address");
        })
        .ok()
}

fn hub_config(config: &Config) -> Result<parlor_hub::Config, StartError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| StartError::NoRandomness(error.to_string()))?;
    Ok(parlor_hub::Config {
        apps: config.apps.clone(),
        rooms_max: config.rooms_max,
        record: config.room_log.is_some(),
        ..parlor_hub::Config::new(seed)
    })
}
