//! Tickets: admission of signed-in players to realtime rooms as their accounts.

use super::failure::Failure;
use super::table::Caller;
use super::{OnlineError, Services, kept_key};
use crate::cluster::Cluster;
use crate::cluster::nodes::LineAddress;
use crate::store::Store;
use parlor_proto::RoomCode;
use parlor_server::admission::{PermitFor, TOKEN_LIFE_S_MAX};
use parlor_server::embed::TicketKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The secret's name in the store.
const TICKET_KEY: &str = "ticket-key";

/// The keys of tickets.
pub(super) struct TicketKeys {
    /// This process's.
    own: TicketKey,
    /// The secret of a cluster, of which the key of each node's process is derived; `None` for a server alone.
    secret: Option<Vec<u8>>,
}

impl TicketKeys {
    /// Those of a server alone, whose key is drawn at each start, and what a node needs of the store.
    pub(super) async fn begin(store: &Store) -> Result<Self, OnlineError> {
        let secret = match store.node() {
            Some(_) => Some(kept_key(store, TICKET_KEY).await?),
            None => None,
        };
        Ok(TicketKeys { own: TicketKey::generate()?, secret })
    }

    /// Those of this server. The certificate of a node's line is drawn at each start, so no ticket is older than its
    /// process.
    pub(super) fn of_server(self, cluster: Option<&Cluster>) -> Self {
        let own = cluster.and_then(|cluster| self.of(cluster.line().address()));
        TicketKeys { own: own.unwrap_or(self.own), secret: self.secret }
    }

    pub(super) fn own(&self) -> &TicketKey {
        &self.own
    }

    /// That of the node with this line.
    fn of(&self, line: LineAddress) -> Option<TicketKey> {
        Some(TicketKey::of_process(self.secret.as_ref()?, &line.to_text()))
    }
}

impl Services {
    /// The key of the server that is to accept a ticket: in a cluster that of the room's node. A room that is to be
    /// opened is this one's, and so is the refusal for a room that is nowhere.
    async fn ticket_key(&self, what: &PermitFor) -> Result<TicketKey, Failure> {
        let own = || self.tickets().own().clone();
        let (Some(cluster), PermitFor::Join(code)) = (self.cluster(), what) else { return Ok(own()) };
        let Some(found) = cluster.directory().find(*code).await? else { return Ok(own()) };
        let nodes = cluster.nodes();
        let owner = nodes
            .serving()
            .find(|node| node.id.as_str() == found.owner.node && node.incarnation == found.owner.incarnation);
        Ok(owner.and_then(|node| self.tickets().of(node.line?)).unwrap_or_else(own))
    }
}

/// What for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TicketFor {
    /// The code of the room, or a match's id: the room to join, or with `create` the code that the new one shall have.
    room: Option<String>,
    /// Whether it is for opening a room and not for joining one.
    #[serde(default)]
    create: bool,
}

/// A ticket.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct Ticket {
    /// What goes into the hello, as a token for admission does. It is good once, for what was asked alone, and at the server that
    /// gave it out. In a cluster a ticket to join is good at the node that has the room.
    token: String,
    /// Its life, in seconds.
    expires_in_s: u64,
}

/// Issues a ticket. It does not check that the room exists, so it reveals no more than joining does.
pub(super) async fn ticket(services: Services, caller: Caller, input: TicketFor) -> Result<Ticket, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let room = input.room.as_deref().map(str::parse::<RoomCode>).transpose();
    let room = room.map_err(|error| Failure::field("room", error.to_string()))?;
    let what = match (room, input.create) {
        (code, true) => PermitFor::Create(code),
        (Some(code), false) => PermitFor::Join(code),
        (None, false) => {
            let sentence = "name the `room` to join, or say `\"create\": true` for a new one";
            return Err(Failure::field("room", sentence));
        }
    };
    // An access token may be accepted for a while after another server wrote a ban into the store. A ticket
    // must not be.
    services.must_not_be_banned(&realm, &account).await?;
    let key = services.ticket_key(&what).await?;
    let token = key.ticket(&realm, account.as_str(), what, services.time().now_s());
    let token = token.map_err(|error| Failure::defect(&error.to_string()))?;
    Ok(Ticket { token, expires_in_s: TOKEN_LIFE_S_MAX })
}
