//! The account as the driver of realtime rooms uses it.

use super::{Account, AccountError, Question, Shared};
use crate::driver::{NoTicket, Passport, Ticketing};
use crate::net;
use parlor_client_core::{Admission, ConnectFailure, ConnectFailureKind};
use parlor_transport::discovery::ServerAddress;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The default environment.
const ENVIRONMENT: &str = "production";
/// The wait, if a server does not name one.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Ticket {
    token: String,
}

impl Account {
    /// The account's handle for a room's driver.
    pub(crate) fn passport(&self) -> Arc<dyn Passport> {
        Arc::new(self.clone())
    }
}

impl Passport for Account {
    fn server(&self) -> &ServerAddress {
        &self.shared.server
    }

    fn check(&self, app: &str, environment: &str) -> Result<(), String> {
        let who = &self.shared.who;
        if who.app != app {
            return Err(format!("account: it is one of {}, and the room is of {app}", who.app));
        }
        let of = |named: &str| if named.is_empty() { ENVIRONMENT } else { named }.to_owned();
        let (own, environment) = (of(who.environment.as_deref().unwrap_or_default()), of(environment));
        if own != environment {
            return Err(format!("account: it is one of {own}, and the room's environment is {environment}"));
        }
        Ok(())
    }

    fn ticket(&self, at: ServerAddress, admission: Admission) -> Ticketing {
        let shared = Arc::clone(&self.shared);
        // A task of its own: leaving the room meanwhile must not interrupt a sign-in.
        let task = net::runtime::handle().spawn(async move { shared.ticket(&at, admission).await });
        Box::pin(async move {
            task.await.unwrap_or_else(|_| {
                let detail = "asking for a ticket failed; please report this".to_owned();
                Err(NoTicket::NotAsked(ConnectFailure { kind: ConnectFailureKind::Unreachable, detail }))
            })
        })
    }
}

impl Shared {
    async fn ticket(&self, at: &ServerAddress, admission: Admission) -> Result<String, NoTicket> {
        let question = Question::Post("/admission".to_owned(), input(admission));
        let asked = self.ask(at, &question).await.and_then(|output| self.read::<Ticket>(at, output));
        asked.map(|ticket| ticket.token).map_err(NoTicket::from)
    }
}

fn input(admission: Admission) -> Value {
    match admission {
        Admission::Create(None) => json!({ "create": true }),
        Admission::Create(Some(code)) => json!({ "create": true, "room": code.as_str() }),
        Admission::Join(code) => json!({ "room": code.as_str() }),
    }
}

impl From<AccountError> for NoTicket {
    fn from(error: AccountError) -> Self {
        let not_asked = |kind, error: &AccountError| {
            let detail = format!("no ticket for the account could be had: {error}");
            NoTicket::NotAsked(ConnectFailure { kind, detail })
        };
        match &error {
            AccountError::Refused(refused)
                if matches!(refused.code.as_str(), "unavailable" | "too_often") =>
            {
                let after = refused.retry_after().unwrap_or(PAUSE);
                NoTicket::Later { after, detail: refused.sentence.clone() }
            }
            AccountError::Refused(refused) => {
                NoTicket::Refused { code: refused.code.clone(), sentence: refused.sentence.clone() }
            }
            AccountError::NoAccounts { .. } => {
                NoTicket::Refused { code: "no_accounts".to_owned(), sentence: error.to_string() }
            }
            AccountError::Deleted => {
                NoTicket::Refused { code: "no_such_account".to_owned(), sentence: error.to_string() }
            }
            AccountError::BadAnswer { .. } => not_asked(ConnectFailureKind::NotParlor, &error),
            AccountError::Net(net) => {
                let kind = match net.as_str() {
                    "untrusted" => ConnectFailureKind::Untrusted,
                    "unknown_host" => ConnectFailureKind::UnknownHost,
                    _ => ConnectFailureKind::Unreachable,
                };
                not_asked(kind, &error)
            }
        }
    }
}
