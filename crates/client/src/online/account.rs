//! A player's account outside of turn rooms: tickets for realtime rooms, and lists.
//!
//! Each query is an HTTP request. The first one signs in. A query whose access token has expired signs in
//! again.

#[cfg(feature = "driver")]
mod passport;

use super::error::OnlineError;
use super::lists::escaped;
use super::room::Place;
use super::session::Session;
use super::token_store::TokenStore;
use super::who::{self, Who};
use crate::net::{self, Connection, NetError, Response, Trust};
use parlor_transport::discovery::ServerAddress;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

/// Timeout of one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of an answer: a full page of a match log.
const ANSWER_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A player's account for one game at one server, from [`SignIn::account`](super::SignIn::account). A clone
/// is the same account, and any number of rooms may use it at once.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use parlor::{Room, online};
/// let account = online::sign_in("play.example.com").name("ada").session_file("ada.session".as_ref()).account("tanks")?;
/// let room = Room::host("tanks").name("ada").account(&account).open();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Account {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    who: Who,
    server: ServerAddress,
    trust: Option<Trust>,
    session: Session,
    /// Its lock is held while signing in, because a refresh token is valid once.
    signed: Mutex<Signed>,
    /// Held while a request is under way that may be sent again: an entry of a board remembers its last four
    /// submissions only, and a repeated save must not replace a later one.
    pub(super) repeating: Mutex<()>,
}

struct Signed {
    tokens: TokenStore,
    access: Option<String>,
    /// The account was deleted: signing in would create another one.
    is_deleted: bool,
}

/// Why an account's request failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccountError {
    /// The server refused the request.
    #[error("{0}")]
    Refused(OnlineError),
    /// The server was not reached, or the connection broke.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The server has no accounts.
    #[error(
        "the server at {server} keeps no accounts: leave the account out, or have it started with a folder for its data (`parlor serve --data FOLDER`)"
    )]
    NoAccounts {
        /// The server.
        server: String,
    },
    /// The account was deleted: [`Account::delete`].
    #[error("the account was deleted: sign in anew for another one")]
    Deleted,
    /// The answer is not one of this server version.
    #[error("what answers at {server} is no Parlor server of this version: {detail}")]
    BadAnswer {
        /// The server.
        server: String,
        /// What is wrong with the answer.
        detail: String,
    },
}

impl AccountError {
    /// Whether the same request may be answered later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            AccountError::Net(_) => true,
            AccountError::Refused(error) => {
                matches!(error.code.as_str(), "unavailable" | "too_often" | "too_much_unread")
            }
            AccountError::NoAccounts { .. } | AccountError::Deleted | AccountError::BadAnswer { .. } => false,
        }
    }
}

/// A pending answer. No call blocks: call [`poll`](Self::poll) in each frame. Dropping it ignores the answer.
#[derive(Debug)]
#[must_use = "the answer is had by poll()"]
pub struct Pending<T> {
    answer: oneshot::Receiver<Result<T, AccountError>>,
}

impl<T> Pending<T> {
    /// Returns the answer once, when it has arrived.
    ///
    /// # Errors
    /// [`AccountError`] says why there is none.
    pub fn poll(&mut self) -> Option<Result<T, AccountError>> {
        self.answer.try_recv().ok()
    }
}

/// Answers that are waited for at the same time.
pub(super) struct Waiting<T>(Vec<Pending<T>>);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting(Vec::new())
    }
}

impl<T> Waiting<T> {
    pub(super) fn push(&mut self, pending: Pending<T>) {
        self.0.push(pending);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The answers that have arrived.
    pub(super) fn poll(&mut self) -> Vec<Result<T, AccountError>> {
        let mut arrived = Vec::new();
        self.0.retain_mut(|pending| match pending.poll() {
            Some(answer) => {
                arrived.push(answer);
                false
            }
            None => true,
        });
        arrived
    }
}

/// An answer without fields.
#[derive(Deserialize)]
struct Done {}

/// A part of a list.
#[derive(Deserialize)]
struct Part<T> {
    #[serde(alias = "achievements", alias = "friends", alias = "objects", alias = "statistics")]
    items: Vec<T>,
    next: Option<String>,
}

/// A request to a server.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// A GET request for a path below `/v1`.
    Get(String),
    /// A POST request: an operation's path, with its input.
    Post(String, Value),
    /// The same as a PATCH request.
    Patch(String, Value),
}

impl Account {
    pub(super) fn new(who: Who, server: ServerAddress, trust: Option<Trust>, tokens: TokenStore) -> Self {
        let session = tokens.session().clone();
        let signed = Mutex::new(Signed { tokens, access: None, is_deleted: false });
        let repeating = Mutex::default();
        Account { shared: Arc::new(Shared { who, server, trust, session, signed, repeating }) }
    }

    /// The session to save, so that the player keeps the account after a restart.
    pub fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Sends a request to the account's own server, in the background.
    pub(super) fn ask<T: DeserializeOwned + Send + 'static>(&self, question: Question) -> Pending<T> {
        self.work(|shared| async move { shared.ask_own(question).await })
    }

    /// Asks for something whose answer only says that it is done.
    pub(super) fn ask_done(&self, question: Question) -> Pending<()> {
        self.work(|shared| async move {
            let Done {} = shared.ask_own(question).await?;
            Ok(())
        })
    }

    /// Reads all parts of a list at a path, which may have a query.
    pub(super) fn ask_all<T: DeserializeOwned + Send + 'static>(&self, path: String) -> Pending<Vec<T>> {
        self.work(|shared| async move {
            let separator = if path.contains('?') { '&' } else { '?' };
            let (mut all, mut part) = (Vec::new(), path.clone());
            loop {
                let Part { items, next } = shared.ask_own(Question::Get(part)).await?;
                all.extend(items);
                let Some(next) = next else { return Ok(all) };
                part = format!("{path}{separator}after={}", escaped(&next));
            }
        })
    }

    /// Gets an access token other than `over`.
    pub(super) fn access_token(&self, over: Option<String>) -> Pending<String> {
        self.work(|shared| async move { Ok(shared.access(over.as_deref()).await?.0) })
    }

    /// Connects to the JSON socket of the account's own server.
    pub(super) fn socket(&self) -> Connection {
        let Shared { server, trust, .. } = &*self.shared;
        Place::new(server.clone(), trust.clone()).connect()
    }

    /// Runs a future in the background.
    pub(super) fn work<T: Send + 'static, F>(&self, work: impl FnOnce(Arc<Shared>) -> F) -> Pending<T>
    where
        F: Future<Output = Result<T, AccountError>> + Send + 'static,
    {
        let done = work(Arc::clone(&self.shared));
        let (sender, answer) = oneshot::channel();
        net::runtime::handle().spawn(async move {
            // The caller may have dropped the pending answer.
            let _ = sender.send(done.await);
        });
        Pending { answer }
    }
}

impl Shared {
    /// Sends an authenticated request to the account's own server.
    pub(super) async fn ask_own<T: DeserializeOwned>(&self, question: Question) -> Result<T, AccountError> {
        let output = self.ask(&self.server, &question).await?;
        self.read(&self.server, output)
    }

    /// Marks the account as deleted.
    pub(super) async fn forget(&self) {
        let mut signed = self.signed.lock().await;
        signed.tokens.keep(None);
        (signed.access, signed.is_deleted) = (None, true);
    }

    /// Sends an authenticated request to a server that shares this account's store.
    async fn ask(&self, at: &ServerAddress, question: &Question) -> Result<Value, AccountError> {
        let (access, is_fresh) = self.access(None).await?;
        match self.send(at, question, Some(&access)).await {
            Err(AccountError::Refused(error)) if !is_fresh && who::is_token_over(&error.code) => {
                let (access, _) = self.access(Some(&access)).await?;
                self.send(at, question, Some(&access)).await
            }
            answer => answer,
        }
    }

    /// Returns an access token other than `over`, and whether it was issued by this call.
    async fn access(&self, over: Option<&str>) -> Result<(String, bool), AccountError> {
        let mut signed = self.signed.lock().await;
        if signed.is_deleted {
            return Err(AccountError::Deleted);
        }
        if let Some(access) = signed.access.as_deref().filter(|access| Some(*access) != over) {
            return Ok((access.to_owned(), false));
        }
        signed.access = None;
        let refresh = signed.tokens.newest();
        let answer = match self.sign_in(refresh.as_deref()).await {
            Err(AccountError::Refused(error)) if refresh.is_some() && who::is_sign_in_over(&error.code) => {
                signed.tokens.keep(None);
                self.sign_in(None).await?
            }
            answer => answer?,
        };
        signed.tokens.keep(Some(answer.refresh_token));
        signed.access = Some(answer.access_token.clone());
        Ok((answer.access_token, true))
    }

    /// Signs in at the account's own server. No other server ever gets the credentials.
    async fn sign_in(&self, refresh: Option<&str>) -> Result<SignedIn, AccountError> {
        let (op, input) = self.who.sign_in(refresh);
        let path = if op == "auth.refresh" { "/auth/refresh" } else { "/auth/device" };
        let output = self.send(&self.server, &Question::Post(path.to_owned(), input), None).await?;
        self.read(&self.server, output)
    }

    async fn send(
        &self,
        at: &ServerAddress,
        question: &Question,
        access: Option<&str>,
    ) -> Result<Value, AccountError> {
        let at = self.as_trusted(at);
        let by_fingerprint = at.fingerprint.map(Trust::Fingerprint);
        let base = format!("{}/v1", at.url("http", self.trust.is_some()));
        let options = net::Options::of_online()
            .trust(by_fingerprint.or_else(|| self.trust.clone()).unwrap_or(Trust::System))
            .patience(PATIENCE)
            .body_bytes_max(ANSWER_BYTES_MAX);
        let options = access
            .iter()
            .fold(options, |options, token| options.header("authorization", &format!("Bearer {token}")));
        let (url, request) = match question {
            Question::Get(path) => {
                let url = format!("{base}{path}");
                (url.clone(), options.get(&url))
            }
            Question::Post(path, input) | Question::Patch(path, input) => {
                let url = format!("{base}{path}");
                let options = options.header("content-type", "application/json");
                let method = if matches!(question, Question::Post(..)) { "POST" } else { "PATCH" };
                (url.clone(), options.fetch(method, &url, input.to_string()))
            }
        };
        let response = timeout(PATIENCE, request.response())
            .await
            .map_err(|_| NetError::TimedOut { url, waited: PATIENCE })??;
        answer(&at, &response)
    }

    /// Returns a server's address with the trust to use. On the account's own host the account's certificate
    /// is required, whatever an invite says: a server that gets an access token can act as the player for a
    /// while.
    fn as_trusted(&self, at: &ServerAddress) -> ServerAddress {
        let known = if at.is_on_host_of(&self.server) { &self.server } else { at };
        ServerAddress { fingerprint: known.fingerprint, ..at.clone() }
    }

    fn read<T: DeserializeOwned>(&self, at: &ServerAddress, output: Value) -> Result<T, AccountError> {
        T::deserialize(output).map_err(|error| bad_answer(at, &error.to_string()))
    }
}

/// The answer to a sign-in.
#[derive(Deserialize)]
struct SignedIn {
    access_token: String,
    refresh_token: String,
}

/// A server's refusal.
#[derive(Deserialize)]
struct Refusal {
    error: OnlineError,
}

fn answer(at: &ServerAddress, response: &Response) -> Result<Value, AccountError> {
    if response.head.is_success() {
        return serde_json::from_slice(&response.body).map_err(|error| bad_answer(at, &error.to_string()));
    }
    match (serde_json::from_slice::<Refusal>(&response.body), response.head.status) {
        (Ok(Refusal { error }), _) => Err(AccountError::Refused(error)),
        (Err(_), 404) => Err(AccountError::NoAccounts { server: named(at) }),
        (Err(_), status) => Err(bad_answer(at, &format!("it answers with the status {status}"))),
    }
}

fn bad_answer(at: &ServerAddress, detail: &str) -> AccountError {
    AccountError::BadAnswer { server: named(at), detail: detail.to_owned() }
}

fn named(at: &ServerAddress) -> String {
    ServerAddress { fingerprint: None, ..at.clone() }.to_string()
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("server", &self.shared.server)
            .field("app", &self.shared.who.app)
            .finish_non_exhaustive()
    }
}
