//! A server: its start, what it says about itself, and its end.

use crate::address::{addresses, public_address};
use crate::admission::Tokens;
use crate::clock::Clock;
use crate::config::{Config, FLUSH_QUANTUM_MS_MAX, GRACE_S_MAX, IdentitySource, STATE_RATE_MIN};
use crate::door::Door;
use crate::error::{ServerFailed, StartError};
use crate::gate::Gate;
use crate::handshakes::Handshakes;
use crate::http::{self, Facts, Readiness};
use crate::identity;
use crate::metrics::{Listener, Metrics, Scraper};
use crate::online::{Online, Services};
use crate::shard::{self, Directory, Shards};
use crate::system;
use crate::worker::{Task, Wants, Worker};
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::{join_all, select_all};
use parlor_hub::door::{GuessLimits, Guesses};
use parlor_hub::{Hub, RoomSummary};
use parlor_proto::{RoomCode, limits};
use parlor_transport::discovery::registry::EntryGuard;
use parlor_transport::discovery::{Invite, Registry, ServerAddress};
use parlor_transport::impaired::Conditions;
use parlor_transport::inside::{self, Inside};
use parlor_transport::lan::{Advertiser, Network};
use parlor_transport::{Fingerprint, ServerTls};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server that runs. Dropping it stops it at once; [`shutdown`](Self::shutdown) lets it say goodbye.
pub struct Server {
    facts: Arc<Facts>,
    shards: Shards,
    workers: Vec<Worker>,
    tcp_gate: Gate,
    quic_gate: Gate,
    entry: Option<EntryGuard>,
    lan: Option<Advertiser>,
    inside: Inside,
    online: Option<Online>,
    figures: Option<Listener>,
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
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let identity = identity::obtain(&config.identity)?;
        let tls = ServerTls::new(&identity);
        let mut workers = open_workers(&config, &tls).await?;
        let addr = workers[0].addr;
        let fingerprint = match config.identity {
            IdentitySource::Development { .. } => Some(identity.fingerprint()),
            IdentitySource::Files { .. } => None,
        };
        let facts = Arc::new(facts(&config, addr, fingerprint)?);
        let registry =
            config.registry.clone().filter(|_| addr.ip().is_unspecified() || addr.ip().is_loopback());
        let registry = registry.zip(fingerprint);
        let entry =
            registry.as_ref().and_then(|(registry, fingerprint)| enter(registry, &facts, *fingerprint));
        let lan = config.lan.and_then(|network| advertiser(network, identity.fingerprint(), addr.ip()));
        let (tcp_gate, quic_gate) = (Gate::new(config.connections_max), Gate::new(config.connections_max));
        let staying = http::staying_places(config.connections_max);
        let clock = Clock::start();
        let door = door(&config, clock)?;
        let handshake_time = config.handshake_time.min(limits::HANDSHAKE_TIMEOUT);
        // A port of the same host: whatever name and certificate a client came by, it stays with them.
        let addresses: Vec<String> =
            workers.iter().map(|worker| format!(":{}", worker.addr.port())).collect();
        let (handles, inputs): (Vec<_>, Vec<_>) = workers.iter().map(|_| shard::channel()).unzip();
        let (doors, entrances): (Vec<_>, Vec<_>) =
            workers.iter().map(|worker| inside::door(worker.addr.port())).unzip();
        let of = |own| parlor_hub::Shards::new(own, addresses.clone());
        let shards = Shards::new(handles, of(0));
        let metrics = Arc::clone(&facts.metrics);
        let online = match &config.online {
            Some(online) => {
                let live = (shards.clone(), clock, Arc::clone(&metrics));
                Some(Online::start(online, config.apps.clone(), door.clone(), live).await?)
            }
            None => None,
        };
        for (own, ((worker, inputs), entrance)) in workers.iter_mut().zip(inputs).zip(entrances).enumerate() {
            worker.begin(Task {
                hub: Hub::with_door(hub_config(&config, of(own))?, Box::new(door.clone())),
                clock,
                door: door.clone(),
                handshake_time,
                inputs,
                shards: shards.seen_from(own),
                directory: Directory {
                    port: worker.addr.port(),
                    registry: registry.clone(),
                    lan: lan.clone(),
                },
                facts: Arc::clone(&facts),
                tcp_gate: tcp_gate.clone(),
                quic_gate: quic_gate.clone(),
                staying: staying.clone(),
                entrance,
                services: online.as_ref().map(|online| online.services.clone()),
                keeper: online.as_ref().and_then(Online::keeper),
            });
        }
        let services = online.as_ref().map(|online| online.services.clone());
        let gates = [tcp_gate.clone(), quic_gate.clone()];
        let figures = listener(config.metrics, &facts, &shards, door, gates, services).await?;
        // On a bad network everybody has one.
        let doors = if config.impairment.is_some() { Vec::new() } else { doors };
        let inside = Inside::new(doors, fingerprint);
        tracing::info!(%addr, shards = workers.len(), ?fingerprint, apps = ?config.apps, "listening");
        Ok(Server { facts, shards, workers, tcp_gate, quic_gate, entry, lan, inside, online, figures })
    }

    /// The port, UDP and TCP.
    #[must_use]
    pub fn local_port(&self) -> u16 {
        self.facts.port
    }

    /// Where monitoring gets its figures, if it does.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.figures.as_ref().map(|figures| figures.addr)
    }

    /// By what clients know a development identity. A certificate that somebody vouches for needs none.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.facts.fingerprint
    }

    /// The way in for rooms of this very process: they need no socket, no encryption and no coding to reach it.
    #[must_use]
    pub fn inside(&self) -> &Inside {
        &self.inside
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
        self.shards.room(code).await.ok().flatten()
    }

    /// How much the server has to do. Nothing once it has failed.
    pub async fn stats(&self) -> Stats {
        let hubs = self.shards.stats().await;
        Stats {
            rooms: hubs.rooms,
            connections: hubs.connections,
            tcp_connections: self.tcp_gate.taken(),
            tcp_turned_away: self.tcp_gate.turned_away(),
            quic_connections: self.quic_gate.taken(),
            quic_turned_away: self.quic_gate.turned_away(),
        }
    }

    /// Waits until the server fails by itself, which no server should: a program waits for this and for its own reason to
    /// stop. May be cancelled.
    pub async fn wait(&mut self) -> ServerFailed {
        select_all(self.workers.iter().map(|worker| worker.failed().boxed())).await.0
    }

    /// Stops the server: rooms end, all members are told, and room logs are written to their end. It takes about a second
    /// at most if peers do not answer, and more only if the disk does not.
    pub async fn shutdown(mut self) {
        self.facts.is_draining.store(true, Ordering::Relaxed);
        self.entry = None;
        self.quic_gate.shut();
        join_all(self.workers.iter_mut().map(Worker::stop)).await;
        if let Some(online) = self.online.take() {
            online.stop().await;
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

/// Opens the ports of all shards: the one that is configured and those after it, or any free ones.
async fn open_workers(config: &Config, tls: &ServerTls) -> Result<Vec<Worker>, StartError> {
    let mut workers = Vec::new();
    let conditions = config.impairment.map(Conditions::new);
    for number in 0..config.shards.get() {
        let port = match config.port {
            0 => 0,
            first => {
                first.checked_add(number).ok_or(StartError::TooFewPorts { first, shards: config.shards })?
            }
        };
        let (listen, tls, room_log) = (config.listen, tls.clone(), config.room_log.clone());
        workers.push(
            Worker::open(
                number.into(),
                Wants { listen, port, tls, room_log, conditions: conditions.clone() },
            )
            .await?,
        );
    }
    Ok(workers)
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
    let metrics = Arc::new(Metrics::new(config.apps.as_deref()));
    Ok(Facts { port, fingerprint, addresses, is_draining: AtomicBool::new(false), metrics })
}

/// Opens the port for monitoring, if there is to be one.
async fn listener(
    addr: Option<SocketAddr>,
    facts: &Arc<Facts>,
    shards: &Shards,
    door: Door,
    [tcp_gate, quic_gate]: [Gate; 2],
    services: Option<Services>,
) -> Result<Option<Listener>, StartError> {
    let Some(addr) = addr else { return Ok(None) };
    let readiness = Readiness { facts: Arc::clone(facts), services: services.clone() };
    let (shards, metrics, started_s) = (shards.clone(), Arc::clone(&facts.metrics), system::unix_s());
    let scraper = Scraper { shards, metrics, door, tcp_gate, quic_gate, services, started_s };
    Listener::start(addr, scraper, readiness).await.map(Some)
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

/// Gets ready to announce rooms on the local network. A server that cannot still serves whoever knows its address.
fn advertiser(network: Network, fingerprint: Fingerprint, listen: IpAddr) -> Option<Advertiser> {
    if listen.is_loopback() && !network.is_loopback_only {
        tracing::warn!(%listen, "no room is announced: the server listens for this machine alone");
        return None;
    }
    let started = Advertiser::start(network, fingerprint, listen);
    started.inspect_err(|error| tracing::warn!(%error, "games must be given the server's address")).ok()
}

/// What all ports and shards ask before they let somebody in.
fn door(config: &Config, clock: Clock) -> Result<Door, StartError> {
    let mut random = ChaCha12Rng::from_seed(seed()?);
    let (each, all) = (config.handshakes_per_second, config.handshakes_per_second_all);
    let handshakes = Handshakes::new(each, all, || random.next_u64());
    let guesses = Guesses::new(GuessLimits::default(), || random.next_u64());
    let policy = config.admission.as_ref();
    if policy.is_some_and(|policy| policy.is_required && policy.key.is_none()) && config.online.is_none() {
        return Err(StartError::NobodyMayCome);
    }
    let tokens = Tokens::new(policy)?;
    Ok(Door::new(clock, config.limits_local, handshakes, guesses, tokens))
}

fn seed() -> Result<[u8; 32], StartError> {
    system::random().map_err(|error| StartError::NoRandomness(error.to_string()))
}

fn hub_config(config: &Config, shards: parlor_hub::Shards) -> Result<parlor_hub::Config, StartError> {
    Ok(parlor_hub::Config {
        apps: config.apps.clone(),
        rooms_max: config.rooms_max.div_ceil(shards.count()),
        dedicated: config.dedicated,
        keeps: config.online.is_some(),
        state_bytes_per_second: config.state_rate.max(STATE_RATE_MIN),
        record: config.room_log.is_some(),
        flush_quantum: config.flush_quantum.min(Duration::from_millis(FLUSH_QUANTUM_MS_MAX)),
        grace: config.grace.min(Duration::from_secs(GRACE_S_MAX)),
        is_of_host: config.is_of_host,
        shards,
        ..parlor_hub::Config::new(seed()?)
    })
}
