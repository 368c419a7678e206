//! Operations that are done at the home of the caller's realm, wherever they are asked.
//!
//! The node that is asked checks who asks, and charges. Then it asks the home, which does the operation for that caller
//! and gives its answer or its refusal back.

use super::{Charge, HomeId, Place, away};
use crate::cluster::line::{self, AskError, Handlers};
use crate::online::Services;
use crate::online::failure::Failure;
use crate::online::line_failures;
use crate::online::table::{Answer, Caller, Operation};
use crate::online::tokens::Identity;
use bytes::Bytes;
use core::time::Duration;
use parlor_hub::Origin;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

const CALL: &str = "home/call";
/// The answer of a node that is not the home: the asker's or its own view of the nodes is old.
const NOT_HOME: u16 = 421;
/// How long an operation waits for a home that does not hear, and the pause before it is asked again.
const WAIT: Duration = Duration::from_secs(1);
const TRY_AGAIN: Duration = Duration::from_millis(50);
/// The operation with which a search begins.
const ENTER: &str = "matchmaking.enter";
/// Maximum number of remembered searches. Beyond it a search ends with its home.
const ENTERED_MAX: usize = 65_536;
/// No search lasts longer.
const ENTERED_FOR: Duration = Duration::from_secs(2 * 60 * 60);

/// What the node that was asked knows of a caller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Via {
    /// Whether the caller has a connection there.
    pub(crate) is_here: bool,
    /// The round trip to that node, if it is measured.
    pub(crate) rtt_ms: Option<u32>,
    /// A search that goes on at this home.
    pub(crate) again: Option<Again>,
}

/// A search that began at an earlier home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Again {
    /// Its id.
    pub(crate) ticket: String,
    /// For how long it waits.
    pub(crate) waited_ms: u64,
}

/// The home did not hear of an operation.
struct NotReached;

/// An operation for a caller of another node.
#[derive(Serialize, Deserialize)]
struct Call {
    op: String,
    identity: Identity,
    origin: u64,
    via: Via,
    input: Value,
}

/// A search that began at this node: what another home needs to go on with it.
#[derive(Clone, Debug)]
pub(super) struct Entered {
    /// Where it is.
    pub(super) home: HomeId,
    pub(super) caller: Caller,
    pub(super) input: Value,
    pub(super) began: Instant,
    /// Whether it is on its way to another home.
    pub(super) is_moving: bool,
}

/// The part of an answer that names a search.
#[derive(Deserialize)]
struct OfTicket {
    ticket: String,
}

impl Operation {
    /// Does it at the home of the caller's realm.
    pub(in crate::online) async fn run_at_home(
        &self,
        services: Services,
        caller: Caller,
        input: Value,
        charge: Charge,
    ) -> Answer {
        let realm = services.realm_of(&caller)?;
        if services.cluster().is_none() {
            return self.run_here(services, caller, input).await;
        }
        let entered = (self.name == ENTER).then(|| (caller.clone(), input.clone()));
        let (began, mut is_charged) = (Instant::now(), false);
        // A node that stood still for a moment, or a home that has just ended, is there again soon.
        let (home, answer) = loop {
            let tried = match services.place_of(&realm) {
                Ok(Some(Place::There(home))) => {
                    if !core::mem::replace(&mut is_charged, true) {
                        charge(&services, &caller)?;
                    }
                    let answer = services.ask_home(&home, self, &caller, input.clone(), None).await;
                    answer.map(|answer| (home, answer))
                }
                Ok(Some(Place::Here(home))) => {
                    break (home, self.run_here(services.clone(), caller, input).await);
                }
                Ok(None) | Err(_) => Err(NotReached),
            };
            match tried {
                Ok(answered) => break answered,
                Err(NotReached) if began.elapsed() < WAIT => sleep(TRY_AGAIN).await,
                Err(NotReached) => return Err(away()),
            }
        };
        if let (Some((caller, input)), Ok(answer)) = (entered, &answer) {
            services.has_entered(&realm, home, caller, input, answer);
        }
        answer
    }
}

impl Services {
    /// What this node knows of a caller.
    fn via(&self, caller: &Caller, again: Option<Again>) -> Result<Via, Failure> {
        let (realm, account) = self.account_of(caller)?;
        let (is_here, rtt_ms) = (self.feeds().has(&realm, &account), self.feeds().rtt_ms(&realm, &account));
        Ok(Via { is_here, rtt_ms, again })
    }

    /// Does an operation at another node.
    async fn ask_home(
        &self,
        home: &HomeId,
        operation: &Operation,
        caller: &Caller,
        input: Value,
        again: Option<Again>,
    ) -> Result<Answer, NotReached> {
        let (cluster, defect) =
            (self.cluster().ok_or(NotReached)?, |what: &str| Ok(Err(Failure::defect(what))));
        let Some(identity) = caller.identity.clone() else { return defect("nobody asks") };
        let via = match self.via(caller, again) {
            Ok(via) => via,
            Err(failure) => return Ok(Err(failure)),
        };
        let (op, origin) = (operation.name.to_owned(), caller.origin.0);
        let call = match serde_json::to_vec(&Call { op, identity, origin, via, input }) {
            Ok(call) => call,
            Err(error) => return defect(&error.to_string()),
        };
        match cluster.line().ask(&home.node, CALL, Bytes::from(call)).await {
            Ok(answer) => Ok(String::from_utf8(answer.into())
                .map_err(|error| Failure::defect(&error.to_string()))
                .and_then(|text| {
                    RawValue::from_string(text).map_err(|error| Failure::defect(&error.to_string()))
                })),
            Err(AskError::Refused(refusal)) if refusal.status == NOT_HOME => Err(NotReached),
            // It may have been done.
            Err(error @ (AskError::Refused(_) | AskError::NoAnswer { .. })) => {
                Ok(Err(line_failures::to_failure(&error)))
            }
            Err(error @ (AskError::NoSuchNode(_) | AskError::Away { .. })) => {
                tracing::debug!(op = operation.name, %error, "the home of a realm was not reached");
                Err(NotReached)
            }
        }
    }

    /// Remembers a search that began at this node.
    fn has_entered(&self, realm: &Realm, home: HomeId, caller: Caller, input: Value, answer: &RawValue) {
        let Ok(OfTicket { ticket }) = serde_json::from_str(answer.get()) else { return };
        let mut entered = lock(&self.homes().entered);
        if entered.len() >= ENTERED_MAX {
            entered.retain(|_, search| search.began.elapsed() < ENTERED_FOR);
            if entered.len() >= ENTERED_MAX {
                return;
            }
        }
        let search = Entered { home, caller, input, began: Instant::now(), is_moving: false };
        entered.insert((realm.clone(), ticket), search);
    }

    /// Enters a search at the home that its realm has.
    pub(super) async fn enter_again(
        &self,
        realm: &Realm,
        ticket: &str,
        search: &Entered,
    ) -> Result<HomeId, Failure> {
        let enter = self.operations().iter().find(|operation| operation.name == ENTER);
        let enter = enter.ok_or_else(|| Failure::defect("there is no such operation"))?;
        let waited_ms = u64::try_from(search.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let again = Again { ticket: ticket.to_owned(), waited_ms };
        let (mut caller, input) = (search.caller.clone(), search.input.clone());
        match self.place_of(realm)? {
            Some(Place::There(home)) => {
                let asked = self.ask_home(&home, enter, &caller, input, Some(again)).await;
                asked.unwrap_or_else(|NotReached| Err(away()))?;
                Ok(home)
            }
            Some(Place::Here(home)) => {
                caller.via = Some(self.via(&caller, Some(again))?);
                enter.run_here(self.clone(), caller, input).await?;
                Ok(home)
            }
            None => Err(away()),
        }
    }
}

/// Answers other nodes.
pub(super) fn answer(services: &Services, handlers: &mut Handlers) {
    let services = services.clone();
    handlers.on(CALL, move |_, body| call(services.clone(), body));
}

async fn call(services: Services, body: Bytes) -> line::Answer {
    let Call { op, identity, origin, via, input } = line::read(&body)?;
    let is_asked = |operation: &&Operation| operation.name == op && operation.home_charge.is_some();
    let at = services.operations().iter().position(|operation| is_asked(&operation));
    let at = at.ok_or_else(|| line::Refusal::new(404, format!("no node does {op:?} for another")))?;
    let caller = Caller { identity: Some(identity), origin: Origin(origin), feed: None, via: Some(via) };
    let realm = services.realm_of(&caller).map_err(|failure| line_failures::to_refusal(&failure))?;
    if !services.is_home(&realm) {
        return Err(line::Refusal::new(NOT_HOME, "this node is not the home of the realm"));
    }
    // To its end, also if the asker goes.
    let home = services.clone();
    let work = async move {
        let operation = home.operations().get(at);
        let operation = operation.ok_or_else(|| Failure::defect("there is no such operation"))?;
        operation.run_here(home.clone(), caller, input).await
    };
    match services.on_own_threads(work).await {
        Ok(answer) => Ok(Bytes::from(String::from(Box::<str>::from(answer)))),
        Err(failure) => Err(line_failures::to_refusal(&failure)),
    }
}
