//! A player's account beside its rooms: tickets into realtime rooms, and lists.
//!
//! Each question is an HTTP request. The first one signs in, and whichever finds its token too old does so again.

#[cfg(feature = "driver")]
mod passport;

use super::error::OnlineError;
use super::session::Session;
use super::token_store::TokenStore;
use super::who::{self, Who};
use crate::net::{self, NetError, Response, Trust};
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

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer: a part of a log has as many entries as may be asked for.
const ANSWER_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A player's account of one game at one server, as [`SignIn::account`](super::SignIn::account) gives it. A clone is the same account, and
/// any number of rooms may use it at once.
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
    /// Behind a lock that is held while signing in: a refresh token is good once.
    signed: Mutex<Signed>,
}

struct Signed {
    tokens: TokenStore,
    access: Option<String>,
    /// The account was deleted: to sign in would make another one.
    is_deleted: bool,
}

/// Why an account did not get an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccountError {
    /// The server says no.
    #[error("{0}")]
    Refused(OnlineError),
    /// The server was not reached, or broke off.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The server keeps no accounts.
    #[error(
        "the server at {server} keeps no accounts: leave the account out, or have it started with a folder for its data (`parlor serve --data FOLDER`)"
    )]
    NoAccounts {
        /// Where.
        server: String,
    },
    /// It was deleted: [`Account::delete`].
    #[error("the account was deleted: sign in anew for another one")]
    Deleted,
    /// What came is no answer of a server of this version.
    #[error("what answers at {server} is no Parlor server of this version: {detail}")]
    BadAnswer {
        /// Where.
        server: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// An answer that is on its way. Nothing blocks: ask [`poll`](Self::poll) in each frame. Dropping it lets the answer go by.
#[derive(Debug)]
#[must_use = "the answer is had by poll()"]
pub struct Pending<T> {
    answer: oneshot::Receiver<Result<T, AccountError>>,
}

impl<T> Pending<T> {
    /// The answer, once it is there; it comes once.
    ///
    /// # Errors
    /// [`AccountError`] says why there is none.
    pub fn poll(&mut self) -> Option<Result<T, AccountError>> {
        self.answer.try_recv().ok()
    }
}

/// A question to a server.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// What is at a path below `/v1`.
    Get(String),
    /// An operation at a path, with its input.
    Post(String, Value),
}

impl Account {
    pub(super) fn new(who: Who, server: ServerAddress, trust: Option<Trust>, tokens: TokenStore) -> Self {
        let session = tokens.session().clone();
        let signed = Mutex::new(Signed { tokens, access: None, is_deleted: false });
        Account { shared: Arc::new(Shared { who, server, trust, session, signed }) }
    }

    /// What to save so that the player is the same one after a restart.
    pub fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Asks the account's own server, in the background.
    pub(super) fn ask<T: DeserializeOwned + Send + 'static>(&self, question: Question) -> Pending<T> {
        self.work(|shared| async move { shared.ask_own(question).await })
    }

    /// Does something in the background.
    pub(super) fn work<T: Send + 'static, F>(&self, work: impl FnOnce(Arc<Shared>) -> F) -> Pending<T>
    where
        F: Future<Output = Result<T, AccountError>> + Send + 'static,
    {
        let done = work(Arc::clone(&self.shared));
        let (sender, answer) = oneshot::channel();
        net::runtime::handle().spawn(async move {
            // Whoever asked may be gone.
            let _ = sender.send(done.await);
        });
        Pending { answer }
    }
}

impl Shared {
    /// Asks the account's own server something, as the account.
    pub(super) async fn ask_own<T: DeserializeOwned>(&self, question: Question) -> Result<T, AccountError> {
        let output = self.ask(&self.server, &question).await?;
        self.read(&self.server, output)
    }

    /// The account is no more.
    pub(super) async fn forget(&self) {
        let mut signed = self.signed.lock().await;
        signed.tokens.keep(None);
        (signed.access, signed.is_deleted) = (None, true);
    }

    /// Asks a server of this account's house something, as the account.
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

    /// An access token, another one than `over`, and whether it is of this moment.
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

    /// Signs in at the account's own server: no other one is shown what signs in.
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
        let options = net::Options::default()
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
            Question::Post(path, input) => {
                let url = format!("{base}{path}");
                let options = options.header("content-type", "application/json");
                (url.clone(), options.post(&url, input.to_string()))
            }
        };
        let response = timeout(PATIENCE, request.response())
            .await
            .map_err(|_| NetError::TimedOut { url, waited: PATIENCE })??;
        answer(&at, &response)
    }

    /// A server as it is to be believed. On the account's own host it is that one's certificate, whatever an invite says: whoever is shown an
    /// access token can be the player for a while.
    fn as_trusted(&self, at: &ServerAddress) -> ServerAddress {
        let known = if at.is_on_host_of(&self.server) { &self.server } else { at };
        ServerAddress { fingerprint: known.fingerprint, ..at.clone() }
    }

    fn read<T: DeserializeOwned>(&self, at: &ServerAddress, output: Value) -> Result<T, AccountError> {
        T::deserialize(output).map_err(|error| bad_answer(at, &error.to_string()))
    }
}

/// What a sign-in gives.
#[derive(Deserialize)]
struct SignedIn {
    access_token: String,
    refresh_token: String,
}

/// What a server says when it does not do something.
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
