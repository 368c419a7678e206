//! Tickets: admission of signed-in players to realtime rooms as their accounts.

use super::Services;
use super::failure::Failure;
use super::table::Caller;
use parlor_proto::RoomCode;
use parlor_server::admission::{PermitFor, TOKEN_LIFE_S_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// gave it out.
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
    let token = services.tickets().ticket(&realm, account.as_str(), what, services.time().now_s());
    let token = token.map_err(|error| Failure::defect(&error.to_string()))?;
    Ok(Ticket { token, expires_in_s: TOKEN_LIFE_S_MAX })
}
