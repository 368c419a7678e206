//! The start of a server: ports first, then services, then serving.

use super::Server;
use crate::access::Access;
use crate::address::{addresses, public_address};
use crate::admission::Tokens;
use crate::clock::Clock;
use crate::config::{
    Config, FLUSH_QUANTUM_MS_MAX, GRACE_S_MAX, IdentitySource, REMEMBER_S_MAX, STATE_RATE_MIN,
};
use crate::connection_limit::{self, ConnectionLimit, ConnectionLimits, TcpLimit};
use crate::embed::{MatchLogReceiver, Parts, Services};
use crate::error::StartError;
use crate::files;
use crate::handshakes::Handshakes;
use crate::http::{self, Facts, Pages, Readiness};
use crate::identity;
use crate::match_log_queue::MatchLogQueue;
use crate::metrics::{Listener, Metrics, Scraper};
use crate::renewal::Renewal;
use crate::shard::{self, Directory, Shards};
use crate::system;
use crate::web_identity::{WebHashes, WebIdentity};
use crate::worker::{Wants, Worker, WorkerStart};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parlor_hub::admission_policy::{GuessLimits, Guesses};
use parlor_hub::{ClusterConfig, Hub, KeptSeats};
use parlor_proto::limits;
use parlor_transport::discovery::registry::EntryGuard;
use parlor_transport::discovery::{Registry, ServerAddress};
use parlor_transport::impaired::Conditions;
use parlor_transport::inside::{self, Entrance, Inside};
use parlor_transport::lan::{Advertiser, Network};
use parlor_transport::{Fingerprint, ServerTls};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A server with open ports that does not serve yet.
pub(super) struct Prepared {
    config: Config,
    facts: Arc<Facts>,
    workers: Vec<Worker>,
    /// The start data of each worker.
    begins: Vec<Begin>,
    shards: Shards,
    limits: ConnectionLimits,
    access: Access,
    clock: Clock,
    registry: Option<(Registry, Fingerprint)>,
    entry: Option<EntryGuard>,
    lan: Option<Advertiser>,
    inside: Inside,
    renewal: Option<Renewal>,
    web_identity: Option<WebIdentity>,
    /// Queues events of kept matches, if there are services.
    match_logs: Option<MatchLogQueue>,
}

/// The start data of one worker.
struct Begin {
    hub: parlor_hub::Config,
    inputs: shard::Inputs,
    entrance: Entrance,
}

impl Prepared {
    /// Opens the ports. `match_logs` is present if the server has services.
    #[inline(never)]
    pub(super) fn open(
        config: Config,
        match_logs: Option<MatchLogQueue>,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        async move {
            let identity = identity::obtain(&config.identity)?;
            let tls = ServerTls::new(&identity);
            let workers = open_workers(&config, &tls).await?;
            let addr = workers[0].addr;
            let fingerprint = match config.identity {
                IdentitySource::Development { .. } => Some(identity.fingerprint()),
                IdentitySource::Files { .. } => None,
            };
            let facts = Arc::new(facts(&config, addr, fingerprint)?);
            let registry =
                config.registry.clone().filter(|_| addr.ip().is_unspecified() || addr.ip().is_loopback());
            let registry = registry.zip(fingerprint);
            let entered = registry.as_ref().filter(|_| !config.is_of_host);
            let entry = entered.and_then(|(registry, fingerprint)| enter(registry, &facts, *fingerprint));
            let lan = config.lan.and_then(|network| advertiser(network, identity.fingerprint(), addr.ip()));
            let renewal = renewal(&config, &tls, lan.clone())?;
            let web_identity =
                WebIdentity::start(&config.identity, config.certificate_every, &tls, &facts.web_hashes)?;
            let limits = limits(&config);
            let clock = Clock::start();
            let has_services = match_logs.is_some();
            let access = access(&config, clock, has_services)?;
            // The address is a port of the same host, so clients keep the name and certificate that they
            // used.
            let addresses: Vec<String> =
                workers.iter().map(|worker| format!(":{}", worker.addr.port())).collect();
            let of = |own| parlor_hub::Shards::new(own, addresses.clone());
            let (mut handles, mut connectors, mut begins) = (Vec::new(), Vec::new(), Vec::new());
            for (own, worker) in workers.iter().enumerate() {
                let hub = hub_config(&config, of(own), has_services)?;
                let (handle, inputs) = shard::channel();
                let (connector, entrance) = inside::connector(worker.addr.port());
                handles.push(handle);
                connectors.push(connector);
                begins.push(Begin { hub, inputs, entrance });
            }
            let shards = Shards::new(handles, of(0));
            // On a simulated bad network all members use sockets.
            let connectors = if config.impairment.is_some() { Vec::new() } else { connectors };
            let inside = Inside::new(connectors, fingerprint);
            Ok(Prepared {
                config,
                facts,
                workers,
                begins,
                shards,
                limits,
                access,
                clock,
                registry,
                entry,
                lan,
                inside,
                renewal,
                web_identity,
                match_logs,
            })
        }
        .boxed()
    }

    /// The parts of the server for its services.
    pub(super) fn parts(&self, kept: MatchLogReceiver) -> Parts {
        Parts {
            access: self.access.clone(),
            shards: self.shards.clone(),
            clock: self.clock,
            time: self.config.time.clone(),
            metrics: Arc::clone(&self.facts.metrics),
            kept,
            apps: self.config.apps.clone(),
            is_development: matches!(self.config.identity, IdentitySource::Development { .. }),
            addresses: self.shard_addresses(),
        }
    }

    /// The widest reachable address of each shard. The public name leads to all their ports.
    fn shard_addresses(&self) -> Vec<ServerAddress> {
        let first = self.facts.addresses.first().expect("a server has its loopback address at least");
        let of = |(number, worker): (usize, &Worker)| match number {
            0 => first.clone(),
            _ => ServerAddress { port: worker.addr.port(), ..first.clone() },
        };
        self.workers.iter().enumerate().map(of).collect()
    }

    /// Starts all workers.
    #[inline(never)]
    pub(super) fn begin(
        self,
        services: Option<Arc<dyn Services>>,
    ) -> BoxFuture<'static, Result<Server, StartError>> {
        async move {
            let Prepared { config, facts, mut workers, shards, limits, access, registry, lan, .. } = self;
            let handshake_time = config.handshake_time.min(limits::HANDSHAKE_TIMEOUT);
            for (own, (worker, begin)) in workers.iter_mut().zip(self.begins).enumerate() {
                let Begin { mut hub, inputs, entrance } = begin;
                let node = services.as_ref().and_then(|services| services.node());
                let is_node = node.is_some();
                let pass_key = node.as_ref().map(|node| node.pass_key());
                hub.cluster = pass_key
                    .map(|pass_key| ClusterConfig { pass_key: Some(pass_key), ..ClusterConfig::default() });
                let hub = Hub::with_policy(hub, Box::new(access.clone()));
                worker.begin(WorkerStart {
                    hub,
                    clock: if is_node { self.clock.of_node() } else { self.clock },
                    access: access.clone(),
                    handshake_time,
                    inputs,
                    shards: shards.seen_from(own),
                    directory: Directory {
                        port: worker.addr.port(),
                        registry: registry.clone(),
                        lan: lan.clone(),
                        lan_on_request: config.lan_on_request,
                    },
                    facts: Arc::clone(&facts),
                    limits: limits.clone(),
                    entrance,
                    services: services.clone(),
                    match_logs: self.match_logs.clone(),
                });
            }
            let counted = [limits.tcp.places.clone(), limits.quic.clone()];
            let figures =
                listener(config.metrics, &facts, &shards, access, counted, services.clone()).await?;
            let (addr, fingerprint) = (workers[0].addr, facts.fingerprint);
            tracing::info!(%addr, shards = workers.len(), ?fingerprint, apps = ?config.apps, "listening");
            let (entry, inside) = (self.entry, self.inside);
            let _renewal = (self.renewal, self.web_identity);
            Ok(Server { facts, shards, workers, limits, entry, lan, inside, services, figures, _renewal })
        }
        .boxed()
    }
}

/// Checks settings that need no port.
pub(crate) fn check_settings(config: &Config, has_services: bool) -> Result<(), StartError> {
    port_of(config, config.shards.get() - 1)?;
    facts(config, SocketAddr::new(config.listen, config.port), None)?;
    access(config, Clock::start(), has_services).map(|_| ())
}

/// The configured port of a shard; 0 for any free one.
fn port_of(config: &Config, number: u16) -> Result<u16, StartError> {
    let (first, shards) = (config.port, config.shards);
    if first == 0 {
        return Ok(0);
    }
    first.checked_add(number).ok_or(StartError::TooFewPorts { first, shards })
}

/// Opens the ports of all shards: the configured one and those after it, or any free ones.
async fn open_workers(config: &Config, tls: &ServerTls) -> Result<Vec<Worker>, StartError> {
    let mut workers = Vec::new();
    let conditions = config.impairment.map(Conditions::new);
    for number in 0..config.shards.get() {
        let port = port_of(config, number)?;
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
    let public_port = public.as_ref().map_or(port, |public| public.port);
    let web_hashes = WebHashes::default();
    let pages = pages(&config.web_origins, public.as_ref())?;
    let addresses = addresses(public, addr.ip(), port, fingerprint);
    let metrics = Arc::new(Metrics::new(config.apps.as_deref()));
    let is_going_down = AtomicBool::new(false);
    let (strangers, web_pages) = (Mutex::default(), config.web_pages.clone());
    Ok(Facts {
        port,
        public_port,
        fingerprint,
        web_hashes,
        addresses,
        is_going_down,
        pages,
        strangers,
        web_pages,
        metrics,
    })
}

/// The web pages that may send requests.
fn pages(origins: &[String], public: Option<&ServerAddress>) -> Result<Pages, StartError> {
    let read = |text: &String| {
        http::read_origin(text).map_err(|why| StartError::WebOrigin { text: text.clone(), why })
    };
    let origins = origins.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Pages::new(origins, public.map(|public| public.host.as_str())))
}

/// The limits of connections and of keep-alive connections.
fn limits(config: &Config) -> ConnectionLimits {
    let most = config.connections_max;
    // A server beside a game has few connections, and its player reads no log.
    if !config.is_of_host {
        files::warn(most);
    }
    let of_address = of_address(config);
    ConnectionLimits {
        tcp: TcpLimit::new(most, of_address),
        quic: ConnectionLimit::new(most, of_address),
        staying: http::keep_alive_limit(most, config.connections_per_address),
    }
}

/// The number of connections, and of kept seats, for one address.
fn of_address(config: &Config) -> usize {
    config.connections_per_address.unwrap_or_else(|| connection_limit::share(config.connections_max))
}

/// Starts polling for a renewed certificate if it is in files. Announcements on the local network use the
/// newest one.
fn renewal(
    config: &Config,
    tls: &ServerTls,
    announced: Option<Advertiser>,
) -> Result<Option<Renewal>, StartError> {
    let replaced = move |fingerprint| {
        if let Some(announced) = &announced {
            announced.set_fingerprint(fingerprint);
        }
    };
    Renewal::start(&config.identity, config.certificate_every, tls, replaced).map_err(StartError::Thread)
}

/// Opens the monitoring port, if one is configured.
async fn listener(
    addr: Option<SocketAddr>,
    facts: &Arc<Facts>,
    shards: &Shards,
    access: Access,
    [tcp_limit, quic_limit]: [ConnectionLimit; 2],
    services: Option<Arc<dyn Services>>,
) -> Result<Option<Listener>, StartError> {
    let Some(addr) = addr else { return Ok(None) };
    let readiness = Readiness { facts: Arc::clone(facts), services: services.clone() };
    let (shards, metrics, started_s) = (shards.clone(), Arc::clone(&facts.metrics), system::unix_s());
    let scraper = Scraper { shards, metrics, access, tcp_limit, quic_limit, services, started_s };
    Listener::start(addr, scraper, readiness).await.map(Some)
}

/// Enters the server in the registry. On failure clients still find it by its address.
fn enter(registry: &Registry, facts: &Facts, fingerprint: Fingerprint) -> Option<EntryGuard> {
    let entered = registry.enter_server(facts.port, fingerprint);
    entered
        .inspect_err(|error| {
            let folder = registry.folder().display();
            tracing::warn!(%folder, %error, "games on this machine must be given the server's address");
        })
        .ok()
}

/// Prepares announcements on the local network. On failure the server still serves by its address.
fn advertiser(network: Network, fingerprint: Fingerprint, listen: IpAddr) -> Option<Advertiser> {
    if listen.is_loopback() && !network.is_loopback_only {
        tracing::warn!(%listen, "no room is announced: the server listens for this machine alone");
        return None;
    }
    let started = Advertiser::start(network, fingerprint, listen);
    started.inspect_err(|error| tracing::warn!(%error, "games must be given the server's address")).ok()
}

/// Access control of all ports and shards.
fn access(config: &Config, clock: Clock, has_services: bool) -> Result<Access, StartError> {
    let mut random = ChaCha12Rng::from_seed(seed()?);
    let (each, all) = (config.handshakes_per_second, config.handshakes_per_second_all);
    let handshakes = Handshakes::new(each, all, || random.next_u64());
    let guesses = Guesses::new(GuessLimits::default(), || random.next_u64());
    let policy = config.admission.as_ref();
    if policy.is_some_and(|policy| policy.is_required && policy.key.is_none()) && !has_services {
        return Err(StartError::NobodyMayCome);
    }
    let tokens = Tokens::new(policy, config.time.clone())?;
    Ok(Access::new(clock, config.limits_local, handshakes, guesses, tokens).keeping(config.kept_matches))
}

fn seed() -> Result<[u8; 32], StartError> {
    system::random().map_err(|error| StartError::NoRandomness(error.to_string()))
}

fn hub_config(
    config: &Config,
    shards: parlor_hub::Shards,
    has_services: bool,
) -> Result<parlor_hub::Config, StartError> {
    Ok(parlor_hub::Config {
        apps: config.apps.clone(),
        rooms_max: config.rooms_max.div_ceil(shards.count()),
        dedicated: config.dedicated,
        keeps: has_services,
        state_bytes_per_second: config.state_rate.max(STATE_RATE_MIN),
        record: config.room_log.is_some(),
        flush_quantum: config.flush_quantum.min(Duration::from_millis(FLUSH_QUANTUM_MS_MAX)),
        grace: config.grace.min(Duration::from_secs(GRACE_S_MAX)),
        remember: config.remember.min(Duration::from_secs(REMEMBER_S_MAX)),
        is_of_host: config.is_of_host,
        memory: config.state_memory.shared_by(shards.count()),
        kept: KeptSeats { origin: of_address(config), all: config.connections_max }.shared_by(shards.count()),
        shards,
        ..parlor_hub::Config::new(seed()?)
    })
}
