//! The services over the durable store: accounts, and rooms that outlive their players.
//!
//! They have threads of their own, so that no JSON, no signature and no password holds up a packet of a realtime room; and where the
//! store is slow or full they say so (`unavailable`, and when to ask again), while those rooms go on.
//!
//! One table of operations (`operations.rs`) is what REST (`rest.rs`), the JSON socket (`socket.rs`) and the OpenAPI document
//! (`openapi.rs`) are made of.

mod accounts;
mod admin;
mod bans;
mod codes;
mod deadlines;
mod failure;
mod feeds;
mod inbox;
mod json;
mod live;
mod matches;
mod openapi;
mod operations;
mod page;
mod password;
mod rest;
mod role;
mod rooms;
mod secrets;
mod socket;
mod table;
mod tickets;
mod tokens;
mod verified;
mod webhook;

pub use accounts::ENVIRONMENT;
pub(crate) use accounts::environment_of;
pub use tokens::{OPERATOR_LIFE_S_MAX, operator_token};
pub use webhook::{WebhookConfig, WebhookError};

pub(crate) use failure::Failure;
pub(crate) use rest::{AskedFrom, bearer, routes};
pub(crate) use socket::serve as serve_socket;

use crate::admission::{KeyError, SigningKey, TicketKey, Tickets, read_public};
use crate::clock::Clock;
use crate::door::Door;
use crate::keeper::{self, Keeper};
use crate::metrics::Metrics;
use crate::shard::Shards;
use crate::store::{AccountId, Counters, OpenError, Realm, Role, Store, StoreError};
use crate::system;
use bans::Bans;
use core::time::Duration;
use data_encoding::HEXLOWER;
use failure::Kind;
use feeds::Feeds;
use live::Live;
use parlor_hub::Origin;
use parlor_hub::turn::RuleSets;
use password::Passwords;
use rooms::Lanes;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::{Answer, Caller, Operation};
use thiserror::Error;
use tokens::Tokens;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Threads of the services.
const THREADS: usize = 2;
/// How long what is under way may take when the server goes down.
const STOP_TIME: Duration = Duration::from_secs(5);
/// Under which name the store keeps the key that access tokens are signed with.
const SIGNING_KEY: &str = "access-token-key";
/// For how many days a kept match can be read, unless the configuration says otherwise.
pub const KEEP_MATCHES_DAYS: u64 = 30;

/// What the services may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineConfig {
    /// Where the store is: a file, `sqlite://FILE` or `postgres://…`.
    pub store: String,
    /// Whether anybody may make an account. Otherwise only the game's own service makes them, by ids of its own.
    pub is_open: bool,
    /// The public key (PEM, Ed25519) of whoever signs tokens of the roles server and admin. Without it there are none.
    pub operator_key: Option<PathBuf>,
    /// Whom to tell what happens in turn rooms.
    pub webhook: Option<WebhookConfig>,
    /// For how many days a match that was kept can be read after its end.
    pub keep_matches_days: u64,
    /// The folder that backups are written to. Without it nobody can ask for one.
    pub backups: Option<PathBuf>,
}

/// Why there are no services.
#[derive(Debug, Error)]
pub enum OnlineError {
    /// There is no store.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The store does not answer.
    #[error("the store was opened, and does not answer: {0}")]
    Verb(#[from] StoreError),
    /// The operator's key cannot be used, or none can be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key that the store keeps is none.
    #[error("the store's key for access tokens is damaged: restore a backup of the store")]
    SigningKey,
    /// Nobody can be told.
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
    tokens: Tokens,
    tickets: TicketKey,
    passwords: Passwords,
    lanes: Lanes,
    feeds: Feeds,
    bans: Bans,
    live: Live,
    metrics: Arc<Metrics>,
    webhook: Option<Arc<webhook::Target>>,
    backups: Option<PathBuf>,
    rules: RuleSets,
    door: Door,
    apps: Option<Vec<String>>,
    is_open: bool,
    operations: Vec<Operation>,
    openapi: Value,
    handle: Handle,
}

/// The services and their threads, which end when this is dropped.
pub(crate) struct Online {
    pub(crate) services: Services,
    /// Takes what happens in matches that are kept.
    keeper: Option<Keeper>,
    /// Puts it into the store, until all keepers are gone.
    keeping: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Online {
    /// Opens the store and starts the threads.
    pub(crate) async fn start(
        config: &OnlineConfig,
        apps: Option<Vec<String>>,
        door: Door,
        (shards, clock, metrics): (Shards, Clock, Arc<Metrics>),
    ) -> Result<Self, OnlineError> {
        let webhook = config.webhook.as_ref().map(webhook::Target::new).transpose()?.map(Arc::new);
        let store = Store::open(&config.store).await?;
        let kept = store.keep_secret(SIGNING_KEY, SigningKey::generate()?.to_kept()).await?;
        let own = Arc::new(SigningKey::from_kept(&kept).ok_or(OnlineError::SigningKey)?);
        let tickets = TicketKey::generate()?;
        door.accept_tickets(Tickets::of(&tickets));
        let operator = config.operator_key.as_deref().map(read_public).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("parlor-online")
            .enable_all()
            .build()
            .map_err(OnlineError::Thread)?;
        let operations = operations::all();
        let inner = Inner {
            store,
            tokens: Tokens::new(own, operator.as_ref().map(|key| &key[..])),
            tickets,
            passwords: Passwords::new(),
            lanes: Lanes::default(),
            feeds: Feeds::default(),
            bans: Bans::default(),
            live: Live::new(shards, clock),
            metrics,
            webhook: webhook.clone(),
            backups: config.backups.clone(),
            rules: RuleSets::built_in(),
            door,
            apps,
            is_open: config.is_open,
            openapi: openapi::document(&operations),
            operations,
            handle: runtime.handle().clone(),
        };
        let services = Services(Arc::new(inner));
        let server: Arc<str> = HEXLOWER.encode(&system::random::<16>().map_err(no_randomness)?).into();
        matches::begin(&services, &server).await?;
        let (keeper, kept) = keeper::channel();
        let keeping = runtime.spawn(matches::keep(services.clone(), kept, Arc::clone(&server)));
        runtime.spawn(matches::look_after(services.clone(), server, config.keep_matches_days));
        runtime.spawn(deadlines::watch(services.clone()));
        if let Some(target) = webhook {
            runtime.spawn(webhook::deliver(services.clone(), target));
        }
        Ok(Online { services, keeper: Some(keeper), keeping: Some(keeping), runtime: Some(runtime) })
    }
}

impl Online {
    /// Takes what happens in matches that are kept; each shard has one of its own.
    pub(crate) fn keeper(&self) -> Option<Keeper> {
        self.keeper.clone()
    }

    /// Ends the threads and closes the store, after what is under way is stored; a disk that does not answer is not waited for
    /// long.
    pub(crate) async fn stop(mut self) {
        // The shards have ended, so with this one the last keeper goes.
        self.keeper = None;
        if let Some(keeping) = self.keeping.take()
            && tokio::time::timeout(STOP_TIME, keeping).await.is_err()
        {
            tracing::warn!("the newest moments of matches were not stored: the store is slow or away");
        }
        let runtime = self.runtime.take();
        let ended = tokio::task::spawn_blocking(move || {
            if let Some(runtime) = runtime {
                runtime.shutdown_timeout(STOP_TIME);
            }
            drop(self);
        });
        // A thread that cannot be had leaves it to the end of the process.
        let _ = ended.await;
    }
}

impl Drop for Online {
    fn drop(&mut self) {
        // Whoever drops it may be inside of another runtime, where none may wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The names of all operations.
#[cfg(test)]
pub(crate) fn operation_names() -> Vec<&'static str> {
    operations::all().iter().map(|operation| operation.name).collect()
}

impl Services {
    /// All operations.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    /// The OpenAPI document.
    pub(crate) fn openapi(&self) -> &Value {
        &self.0.openapi
    }

    /// Does an operation, by its place in the table, for whoever has this token. It goes on to its end even if nobody waits for
    /// it any more, so that none is left half done.
    pub(crate) async fn call(
        &self,
        at: usize,
        token: Option<String>,
        origin: Origin,
        input: Value,
    ) -> Answer {
        let services = self.clone();
        let work = async move {
            let now_s = crate::system::unix_s();
            let identity = token.map(|token| services.tokens().verify(&token, now_s)).transpose()?;
            services.perform(at, Caller { identity, origin }, input).await
        };
        self.counted(at, self.on_own_threads(work)).await
    }

    /// Does an operation for a caller who is known already, and goes on to its end even if nobody waits for it any more.
    async fn perform_to_its_end(&self, at: usize, caller: Caller, input: Value) -> Answer {
        let services = self.clone();
        let work = async move { services.perform(at, caller, input).await };
        self.counted(at, self.on_own_threads(work)).await
    }

    /// Does an operation.
    async fn perform(&self, at: usize, caller: Caller, input: Value) -> Answer {
        let operation =
            self.operations().get(at).ok_or_else(|| Failure::defect("there is no such operation"))?;
        if caller.identity.as_ref().is_some_and(|identity| identity.role == Role::Player) {
            let (realm, account) = self.account_of(&caller)?;
            self.bans().check(self, &realm, &account).await?;
        }
        operation.run(self.clone(), caller, input).await
    }

    async fn counted(&self, at: usize, answering: impl Future<Output = Answer>) -> Answer {
        let began = tokio::time::Instant::now();
        let answer = answering.await;
        if let Some(operation) = self.operations().get(at) {
            let status = answer.as_ref().map_or_else(Failure::status, |_| hyper::StatusCode::OK);
            self.0.metrics.answered(operation.name, status, began.elapsed());
        }
        answer
    }

    /// What the store did so far.
    pub(crate) fn store_counters(&self) -> Counters {
        self.store().counters()
    }

    /// Whether the store takes writes, as far as is known without trying.
    pub(crate) fn store_state(&self) -> Result<(), StoreError> {
        self.store().state()
    }

    /// Whether the store answers.
    pub(crate) async fn store_answers(&self) -> Result<(), StoreError> {
        self.store().answers().await
    }

    /// Calls that are owed to the game's own service, in all environments.
    pub(crate) async fn webhooks_waiting(&self) -> Result<u64, StoreError> {
        self.store().webhooks_waiting().await
    }

    async fn on_own_threads<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.0.handle.spawn(work).await.unwrap_or_else(|error| {
            // A runtime that has ended cancels what it was given.
            if error.is_cancelled() {
                let sentence = "the server is going down: ask again in a moment";
                return Err(Failure::unavailable(sentence, Duration::from_secs(1)));
            }
            Err(Failure::defect(&format!("an operation panicked: {error}")))
        })
    }

    fn handle(&self) -> &Handle {
        &self.0.handle
    }

    fn store(&self) -> &Store {
        &self.0.store
    }

    fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    fn tickets(&self) -> &TicketKey {
        &self.0.tickets
    }

    fn door(&self) -> &Door {
        &self.0.door
    }

    fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    fn lanes(&self) -> &Lanes {
        &self.0.lanes
    }

    fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }

    fn bans(&self) -> &Bans {
        &self.0.bans
    }

    fn live(&self) -> &Live {
        &self.0.live
    }

    fn webhook(&self) -> Option<&webhook::Target> {
        self.0.webhook.as_deref()
    }

    fn backups(&self) -> Option<&Path> {
        self.0.backups.as_deref()
    }

    fn rules(&self) -> &RuleSets {
        &self.0.rules
    }

    fn is_open(&self) -> bool {
        self.0.is_open
    }

    fn must_be_open(&self) -> Result<(), Failure> {
        if self.is_open() {
            return Ok(());
        }
        let sentence = "this server lets nobody make an account: the game's own service signs its players in";
        Err(Failure::new(Kind::Forbidden, "closed", sentence))
    }

    /// The realm that somebody names who has no token yet.
    fn realm(&self, app: &str, environment: &str) -> Result<Realm, Failure> {
        if self.0.apps.as_ref().is_some_and(|apps| !apps.iter().any(|served| served == app)) {
            let sentence = format!(
                "this server does not serve the game {app:?}: check its name and the server's address"
            );
            return Err(Failure::new(Kind::NotFound, "unknown_app", sentence).at("app"));
        }
        Ok(Realm::new(app, environment)?)
    }

    /// The realm of whoever asks.
    fn realm_of(&self, caller: &Caller) -> Result<Realm, Failure> {
        let identity = caller.identity.as_ref().ok_or_else(|| Failure::defect("nobody asks"))?;
        self.realm(&identity.aud, environment_of(&identity.env))
    }

    /// The account of a player who asks.
    fn account_of(&self, caller: &Caller) -> Result<(Realm, AccountId), Failure> {
        let realm = self.realm_of(caller)?;
        let identity = caller.identity.as_ref().ok_or_else(|| Failure::defect("nobody asks"))?;
        Ok((realm, AccountId::new(&identity.sub)?))
    }

    async fn must_not_be_banned(&self, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
        let Some(ban) = self.store().ban_of(realm, account, crate::system::unix_ms()).await? else {
            return Ok(());
        };
        let until = ban.until_ms.map(|until_ms| format!(" until {until_ms} (milliseconds since 1970)"));
        let sentence = format!("this account is banned{}: {}", until.unwrap_or_default(), ban.reason);
        Err(Failure::new(Kind::Forbidden, "banned", sentence))
    }

    /// Whether whoever asks may guess a password or a code.
    fn may_guess(&self, caller: &Caller) -> Result<(), Failure> {
        self.0.door.may_ask(caller.origin).map_err(|wait| {
            let sentence = "too many wrong guesses came from your network: ask again later";
            Failure::new(Kind::TooOften, "too_often", sentence).after(wait)
        })
    }

    fn guessed_wrong(&self, caller: &Caller) {
        self.0.door.asked_wrong(caller.origin);
    }
}

impl core::convert::From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { retry_after_ms, reason } => {
                tracing::warn!(%reason, "the store is unavailable");
                let sentence = "the server cannot store anything right now: ask again in a moment";
                Failure::unavailable(sentence, Duration::from_millis(retry_after_ms))
            }
            error @ StoreError::Stale { .. } => Failure::new(Kind::Conflict, "stale", error.to_string()),
            error @ StoreError::Taken { .. } => Failure::new(Kind::Conflict, "taken", error.to_string()),
            error @ StoreError::Missing { .. } => {
                Failure::new(Kind::NotFound, "not_found", error.to_string())
            }
            error @ StoreError::LastCredential => {
                Failure::new(Kind::Conflict, "last_credential", error.to_string())
            }
            error @ StoreError::Invalid { .. } => {
                Failure::new(Kind::BadInput, "bad_input", error.to_string())
            }
            StoreError::Damaged(what) => Failure::defect(&what),
        }
    }
}

fn no_randomness(error: getrandom::Error) -> KeyError {
    KeyError::NoRandomness(error.to_string())
}
