//! The services over the durable store: accounts, and rooms that outlive their players.
//!
//! They have their own threads, so that no JSON, signature or password delays a packet of a realtime room. If
//! the store is slow or full, they answer `unavailable` with a time to retry, while those rooms continue.
//!
//! One table of operations (`operations.rs`) defines REST (`rest.rs`), the JSON socket (`socket.rs`) and the
//! OpenAPI document (`openapi.rs`).

mod accounts;
mod admin;
mod answer;
mod bans;
mod boards;
mod budgets;
mod by_realm;
mod callers;
mod charges;
mod checks;
mod codes;
mod config;
mod deadlines;
mod definitions;
mod embedded;
mod enter;
mod entrances;
mod failure;
mod feeds;
mod friends;
mod games;
mod goodbye;
mod hashing;
mod here;
mod hints;
mod homes;
mod inbox;
mod json;
mod line_failures;
mod live;
mod live_elsewhere;
mod lives;
mod lobbies;
mod matches;
mod matchmaking;
mod news;
mod nodes;
mod of_players;
mod openapi;
mod operations;
mod outbox_shares;
mod own_data;
mod page;
mod parts;
mod password;
mod progress;
mod properties;
mod ratings;
mod realm_cache;
mod receipts;
mod rest;
mod role;
mod rooms;
mod saves;
mod secrets;
mod seen;
mod socket;
mod storage;
mod table;
mod tickets;
mod tokens;
mod unread;
mod verified;
mod webhook;

use crate::cluster::line::Handlers;
use crate::cluster::{BusError, Cluster, ClusterError, LineError};
use crate::store::{OpenError, Role, Store, StoreError};
use bans::Bans;
use boards::Boards;
use charges::Charges;
pub use config::{KEEP_MATCHES_DAYS, Lives, OnlineConfig, OnlineMemory, SIGN_IN_TIME, WebhookConfig};
use core::time::Duration;
use data_encoding::HEXLOWER;
use enter::enter;
use failure::Failure;
use feeds::Feeds;
use games::Games;
pub use games::GamesError;
use goodbye::Goodbye;
use hints::Hints;
use live::Live;
use lives::SweptRows;
use of_players::OfPlayers;
use openapi::Document;
use outbox_shares::OutboxShares;
use parlor_hub::Origin;
use parlor_server::Time;
use parlor_server::admission::{KeyError, SigningKey};
use parlor_server::embed::{self, Access, Metrics, Parts, Tickets, lock, read_public};
use parlor_turn::RuleSets;
use password::Passwords;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
pub use receipts::{RECEIPT_LIFE_S_MAX, ScoreReceipt};
use rooms::{RoomLocks, Seekers};
use secrets::{RefreshKey, RoomIdKey};
use seen::Seen;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use table::{Answer, Caller, Operation};
use thiserror::Error;
use tickets::TicketKeys;
use tokens::Tokens;
pub use tokens::{OPERATOR_LIFE_S_MAX, operator_token};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use unread::{Share, Unread};
pub use webhook::WebhookError;

/// Threads of the services.
const THREADS: usize = 2;
/// Time limit for pending work at the server's shutdown.
const STOP_TIME: Duration = Duration::from_secs(5);
/// The key's name in the store: it signs access tokens.
const SIGNING_KEY: &str = "access-token-key";
/// The key's name in the store: refresh tokens are derived from it.
const REFRESH_KEY: &str = "refresh-token-key";
/// The key's name in the store: ids of rooms are derived from it.
const ROOM_ID_KEY: &str = "room-id-key";

/// Why the services could not start.
#[derive(Debug, Error)]
pub enum OnlineError {
    /// There is no store.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The line to other nodes cannot be opened.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The store does not answer.
    #[error("the store was opened, and does not answer: {0}")]
    Verb(#[from] StoreError),
    /// There is no bus between the nodes.
    #[error("this node has no bus to the others: {0}")]
    Bus(#[from] BusError),
    /// The operator's key cannot be used, or a key cannot be generated.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The stored key is damaged.
    #[error("the store's key for access tokens is damaged: restore a backup of the store")]
    SigningKey,
    /// A game's configuration is invalid.
    #[error(transparent)]
    Games(#[from] GamesError),
    /// The webhook cannot be used.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// A thread could not be started.
    #[error("a thread of the services could not be started: {0}")]
    Thread(std::io::Error),
}

/// The services. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Services(Arc<Inner>);

struct Inner {
    store: Store,
    /// `None` for a server alone.
    cluster: Option<Arc<Cluster>>,
    /// The same beside its others.
    hints: Option<Hints>,
    tokens: Tokens,
    refresh_key: RefreshKey,
    room_ids: RoomIdKey,
    tickets: TicketKeys,
    passwords: Passwords,
    new_accounts: Charges,
    room_locks: RoomLocks,
    seekers: Seekers,
    feeds: Feeds,
    unread: Unread,
    bans: Bans,
    boards: Boards,
    of_players: OfPlayers,
    goodbye: Goodbye,
    sign_in_time: Duration,
    live: Live,
    time: Time,
    seen: Seen,
    metrics: Arc<Metrics>,
    webhook: Option<Arc<webhook::Target>>,
    outbox_shares: OutboxShares,
    backups: Option<PathBuf>,
    rules: RuleSets,
    games: Games,
    access: Access,
    apps: Option<Vec<String>>,
    is_open: bool,
    lives: Lives,
    swept: SweptRows,
    operations: Vec<Operation>,
    openapi: Document,
    handle: Handle,
}

/// The services and their threads, which end when this is dropped.
pub(crate) struct Online {
    services: Services,
    /// `None` once stopped.
    running: Mutex<Option<Running>>,
}

/// The threads.
struct Running {
    /// Stores events of kept matches, until all shards have ended.
    keeping: JoinHandle<()>,
    runtime: Runtime,
}

impl Online {
    /// Starts the threads.
    pub(crate) async fn start(config: OnlineConfig, store: Store, parts: Parts) -> Result<Self, OnlineError> {
        let Parts { access, shards, clock, time, metrics, kept, apps, is_development, addresses } = parts;
        let clock = if config.cluster.is_some() { clock.of_node() } else { clock };
        let games = Games::open(config.games.as_deref(), is_development, &config.rules)?;
        let webhook = config.webhook.as_ref().map(webhook::Target::new).transpose()?.map(Arc::new);
        let signing = store.keep_secret(SIGNING_KEY, SigningKey::generate()?.to_kept()).await?;
        let own = Arc::new(SigningKey::from_kept(&signing).ok_or(OnlineError::SigningKey)?);
        let refresh_key = RefreshKey::of(&kept_key(&store, REFRESH_KEY).await?);
        let room_ids = RoomIdKey::of(&kept_key(&store, ROOM_ID_KEY).await?);
        let tickets = TicketKeys::begin(&store).await?;
        let operator = config.operator_key.as_deref().map(read_public).transpose()?;
        let runtime = runtime().map_err(OnlineError::Thread)?;
        let mut random = ChaCha12Rng::from_seed(embed::random().map_err(no_randomness)?);
        let passwords = Passwords::start(clock, || random.next_u64()).map_err(OnlineError::Thread)?;
        let new_accounts = Charges::new(accounts::NEW_ACCOUNTS, clock, || random.next_u64());
        let makes_definitions = is_development && config.is_open;
        let boards =
            Boards::new(&store, config.memory.boards, clock, makes_definitions, || random.next_u64());
        let operations = operations::all();
        let server: Arc<str> = HEXLOWER.encode(&embed::random::<16>().map_err(no_randomness)?).into();
        let entering = enter(config.cluster, &store, addresses, (&time, &server), runtime);
        let ((cluster, hints, inputs), runtime) = entering.await?;
        let tickets = tickets.of_server(cluster.as_deref());
        access.accept_tickets(Tickets::of(tickets.own()));
        let inner = Inner {
            store,
            cluster,
            hints,
            tokens: Tokens::new(own, operator.as_ref().map(|key| &key[..])),
            refresh_key,
            room_ids,
            tickets,
            passwords,
            new_accounts,
            room_locks: RoomLocks::new(config.memory.turn_rooms),
            seekers: Seekers::new(),
            feeds: Feeds::default(),
            unread: Unread::new(config.memory.unread_each, config.memory.unread_all),
            bans: Bans::default(),
            boards,
            of_players: OfPlayers::new(clock, makes_definitions, || random.next_u64()),
            goodbye: Goodbye::default(),
            sign_in_time: config.sign_in_time,
            live: Live::new(shards.clone(), clock, time.clone()),
            seen: Seen::new(time.steady()),
            time,
            metrics,
            webhook: webhook.clone(),
            outbox_shares: OutboxShares::new(clock, || random.next_u64()),
            backups: config.backups,
            rules: config.rules,
            games,
            access,
            apps,
            is_open: config.is_open,
            lives: config.lives,
            swept: SweptRows::default(),
            openapi: Document::new(&openapi::document(&operations)),
            operations,
            handle: runtime.handle().clone(),
        };
        let services = Services(Arc::new(inner));
        if let Some(cluster) = services.cluster() {
            cluster.serve(questions(&services), shards, services.handle());
        }
        matches::begin(&services, &server).await?;
        let keeping = runtime.spawn(matches::keep(services.clone(), kept, Arc::clone(&server)));
        begin_tasks(&services, inputs, webhook, (server, config.keep_matches_days));
        Ok(Online { services, running: Mutex::new(Some(Running { keeping, runtime })) })
    }
}

/// Starts the tasks that run as long as the services.
fn begin_tasks(
    services: &Services,
    inputs: Option<hints::Inputs>,
    webhook: Option<Arc<webhook::Target>>,
    (server, keep_matches_days): (Arc<str>, u64),
) {
    let handle = services.handle();
    handle.spawn(matches::look_after(services.clone(), server, keep_matches_days));
    handle.spawn(deadlines::watch(services.clone()));
    handle.spawn(boards::look_after(services.clone()));
    handle.spawn(games::watch(services.clone()));
    handle.spawn(here::watch(services.clone()));
    handle.spawn(matchmaking::watch(services.clone()));
    handle.spawn(homes::look_after(services.clone()));
    handle.spawn(lives::look_after(services.clone()));
    if let Some(inputs) = inputs {
        hints::start(services, inputs);
    }
    if let Some(target) = webhook {
        handle.spawn(webhook::deliver(services.clone(), target));
    }
}

/// What this node answers other nodes.
fn questions(services: &Services) -> Handlers {
    let mut handlers = Handlers::default();
    live_elsewhere::answer(services, &mut handlers);
    homes::answer(services, &mut handlers);
    handlers
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(THREADS).thread_name("parlor-online").enable_all().build()
}

impl Drop for Online {
    fn drop(&mut self) {
        // The drop may happen inside another runtime, where blocking is not allowed.
        if let Some(running) = lock(&self.running).take() {
            running.runtime.shutdown_background();
        }
    }
}

impl Services {
    /// All operations.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    /// The OpenAPI document.
    fn openapi(&self) -> &Document {
        &self.0.openapi
    }

    /// Whether a token is an operator's: valid, not banned, and still with that role. The lookup runs on the
    /// services' threads.
    pub(crate) async fn is_of_operator(&self, token: String) -> bool {
        let services = self.clone();
        let work = async move {
            let identity = services.tokens().verify(&token, services.time())?;
            let is_operator = identity.role != Role::Player;
            if is_operator {
                let caller =
                    Caller { identity: Some(identity), origin: Origin::LOCAL, feed: None, via: None };
                services.must_be_in_good_standing(&caller).await?;
            }
            Ok(is_operator)
        };
        self.on_own_threads(work).await.unwrap_or(false)
    }

    /// Reserves memory of an address for parsing this input.
    pub(crate) fn hold_input(&self, origin: Origin, text: &[u8]) -> Result<Share, Failure> {
        Ok(self.unread().take(origin, json::parsed_bytes_max(text))?)
    }

    /// Adds memory for the operation's answer to a share.
    pub(crate) fn hold_answer(&self, at: usize, mut share: Share) -> Result<Share, Failure> {
        share.grow(self.operations().get(at).map_or(0, |operation| operation.answer_bytes_max))?;
        Ok(share)
    }

    /// The memory that connections make the services hold.
    pub(crate) fn unread(&self) -> &Unread {
        &self.0.unread
    }

    /// Runs an operation, given by its index in the table, for the owner of this token. It runs to its end
    /// even without a waiting caller, so that none is left half done. Its share of memory is held as long,
    /// and returns with the answer. `input` parses the input on a thread of the services.
    pub(crate) async fn call(
        &self,
        at: usize,
        token: Option<String>,
        origin: Origin,
        input: impl FnOnce(&Operation) -> Result<Value, Failure> + Send + 'static,
        share: Share,
    ) -> Result<(Box<RawValue>, Share), Failure> {
        let services = self.clone();
        let work = async move {
            let operation = services.operations().get(at);
            let input = input(operation.ok_or_else(|| Failure::defect("there is no such operation"))?)?;
            let verify = |token: String| services.tokens().verify(&token, services.time());
            let identity = token.map(verify).transpose()?;
            Ok((
                services.perform(at, Caller { identity, origin, feed: None, via: None }, input).await?,
                share,
            ))
        };
        self.counted(at, self.on_own_threads(work)).await
    }

    /// Runs an operation for an authenticated caller, to its end even without a waiting caller.
    async fn perform_to_its_end(
        &self,
        at: usize,
        caller: Caller,
        input: Value,
        share: Share,
    ) -> Result<(Box<RawValue>, Share), Failure> {
        let services = self.clone();
        let work = async move { Ok((services.perform(at, caller, input).await?, share)) };
        self.counted(at, self.on_own_threads(work)).await
    }

    /// Runs an operation.
    async fn perform(&self, at: usize, caller: Caller, input: Value) -> Answer {
        let operation =
            self.operations().get(at).ok_or_else(|| Failure::defect("there is no such operation"))?;
        let account = self.must_be_in_good_standing(&caller).await?;
        let is_player = caller.identity.as_ref().is_some_and(|identity| identity.role == Role::Player);
        if let Some((realm, account)) = account.filter(|_| is_player) {
            self.is_asked_by(&realm, &account).await;
        }
        operation.run(self.clone(), caller, input).await
    }

    async fn counted<T>(
        &self,
        at: usize,
        answering: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let began = tokio::time::Instant::now();
        let answer = answering.await;
        if let Some(operation) = self.operations().get(at) {
            let status = answer.as_ref().map_or_else(Failure::status, |_| hyper::StatusCode::OK);
            self.0.metrics.answered(operation.name, status, began.elapsed());
        }
        answer
    }

    async fn on_own_threads<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.0.handle.spawn(work).await.unwrap_or_else(|error| {
            // A stopped runtime cancels its tasks.
            if error.is_cancelled() {
                let sentence = "the server is going down: ask again in a moment";
                return Err(Failure::unavailable(sentence, Duration::from_secs(1)));
            }
            Err(Failure::defect(&format!("an operation panicked: {error}")))
        })
    }
}

impl core::convert::From<ClusterError> for OnlineError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Store(error) => OnlineError::Store(error),
            ClusterError::Clock(error) => OnlineError::Verb(error),
            ClusterError::Line(error) => OnlineError::Line(error),
            ClusterError::Random(error) => no_randomness(error).into(),
        }
    }
}

/// The store's key of this name, drawn at the first start.
async fn kept_key(store: &Store, name: &str) -> Result<Vec<u8>, OnlineError> {
    let proposed: [u8; 32] = embed::random().map_err(no_randomness)?;
    Ok(store.keep_secret(name, &proposed).await?)
}

fn no_randomness(error: getrandom::Error) -> KeyError {
    KeyError::NoRandomness(error.to_string())
}
