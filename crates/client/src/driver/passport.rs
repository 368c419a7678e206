//! What a player comes into rooms with who has an account: tickets, which are good once and not for long.

use parlor_client_core::{Admission, ConnectFailure};
use parlor_transport::discovery::ServerAddress;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// An account, as the driver knows it.
pub(crate) trait Passport: Debug + Send + Sync {
    /// The server that the account is of. No other is told anything of it, unless this one sends the room there.
    fn server(&self) -> &ServerAddress;

    /// Whether rooms of this game and environment are the account's.
    ///
    /// # Errors
    /// What does not fit.
    fn check(&self, app: &str, environment: &str) -> Result<(), String>;

    /// A ticket for what the next hello asks for at a server.
    fn ticket(&self, at: ServerAddress, admission: Admission) -> Ticketing;
}

/// A ticket that is on its way.
pub(crate) type Ticketing = Pin<Box<dyn Future<Output = Result<String, NoTicket>> + Send>>;

/// Why there is no ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "online"), expect(dead_code, reason = "accounts are a feature"))]
pub(crate) enum NoTicket {
    /// The server does not give one to this account.
    Refused { code: String, sentence: String },
    /// It may give one later.
    Later { after: Duration, detail: String },
    /// It was not asked.
    NotAsked(ConnectFailure),
}
