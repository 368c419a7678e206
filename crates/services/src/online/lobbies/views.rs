//! What is asked of lobbies, and what is answered.

use crate::online::page::Limit;
use parlor_social::limits::{LOBBIES_FOUND_MAX, LOBBY_NAME_BYTES_MAX, LOBBY_SEATS_MAX, PROPERTIES_MAX};
use parlor_social::{
    Access, Entrance, Filter, Lobby, LobbyKind, LobbyMember, Person, Properties, Property, SearchOrder,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Longest kind of what a member says, in bytes, and longest body as JSON.
pub(super) const SAID_TYPE_BYTES_MAX: usize = 32;
pub(super) const SAID_BYTES_MAX: usize = 1024;

/// Properties to set, and with null to remove.
pub(super) type Changes = BTreeMap<String, Option<Property>>;

/// A lobby to create.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateLobby {
    /// Its kind.
    #[serde(default)]
    pub(super) kind: LobbyKind,
    /// Who may join without an invitation or the code. Parties are always private.
    #[serde(default)]
    pub(super) access: Access,
    /// Seats; default: 8, of a party 4. A party has at most 16.
    #[schemars(range(min = 2, max = LOBBY_SEATS_MAX))]
    pub(super) max: Option<u16>,
    /// Its name.
    #[schemars(length(max = LOBBY_NAME_BYTES_MAX))]
    pub(super) name: Option<String>,
    /// What it is for: searches for one bucket look at no other.
    #[schemars(length(max = LOBBY_NAME_BYTES_MAX))]
    pub(super) bucket: Option<String>,
    /// What it says of itself.
    #[serde(default)]
    #[schemars(extend("maxProperties" = PROPERTIES_MAX))]
    pub(super) properties: Properties,
    /// What its owner says of itself.
    #[serde(default)]
    #[schemars(extend("maxProperties" = PROPERTIES_MAX))]
    pub(super) mine: Properties,
}

/// Which lobbies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindLobbies {
    /// Only those of this bucket.
    pub(super) bucket: Option<String>,
    /// Conditions on properties; with an `@` on `name`, `members`, `max`, `free`, `ready` and `friends` of the lobby
    /// itself.
    pub(super) filter: Option<Filter>,
    /// At least so many free seats; default: 1.
    #[schemars(range(max = LOBBY_SEATS_MAX))]
    pub(super) free_seats: Option<u16>,
    /// Only those in which friends sit.
    #[serde(default)]
    pub(super) of_friends: bool,
    /// Numbers that properties shall be near to.
    pub(super) near: Option<Properties>,
    /// The order of those that are equally near.
    #[serde(default)]
    pub(super) order: SearchOrder,
    /// How many at most; default: 20.
    #[schemars(range(min = 1, max = LOBBIES_FOUND_MAX))]
    pub(super) count: Option<usize>,
    /// What the last part gave as `next`.
    pub(super) before: Option<u64>,
}

/// Which lobby to join: one of both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinLobby {
    /// Its id.
    pub(super) lobby: Option<String>,
    /// Its code.
    pub(super) code: Option<String>,
    /// What the player says of itself.
    #[serde(default)]
    #[schemars(extend("maxProperties" = PROPERTIES_MAX))]
    pub(super) mine: Properties,
}

/// Which lobby.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InLobby {
    /// Its id.
    pub(super) lobby: String,
}

/// A change by the owner. What is missing stays.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateLobby {
    /// Its id.
    pub(super) lobby: String,
    /// Its name.
    #[schemars(length(max = LOBBY_NAME_BYTES_MAX))]
    pub(super) name: Option<String>,
    /// Who may join.
    pub(super) access: Option<Access>,
    /// Whether nobody may join but who is invited.
    pub(super) locked: Option<bool>,
    /// Seats.
    #[schemars(range(min = 2, max = LOBBY_SEATS_MAX))]
    pub(super) max: Option<u16>,
    /// What it is for.
    #[schemars(length(max = LOBBY_NAME_BYTES_MAX))]
    pub(super) bucket: Option<String>,
    /// Properties to set, and with null to remove.
    #[serde(default)]
    pub(super) properties: Changes,
    /// The version that is changed, and no other.
    pub(super) version: Option<u64>,
}

/// A change of what a member says of itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateMember {
    /// The lobby's id.
    pub(super) lobby: String,
    /// Properties to set, and with null to remove.
    pub(super) properties: Changes,
}

/// A player, for a lobby.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlayerInLobby {
    /// The lobby's id.
    pub(super) lobby: String,
    /// The player's account.
    pub(super) account: String,
}

/// Something that a member says.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SayInLobby {
    /// The lobby's id.
    pub(super) lobby: String,
    /// What kind of thing, for example `chat`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = SAID_TYPE_BYTES_MAX))]
    pub(super) kind: String,
    /// What it says, up to 1 KiB.
    #[schemars(with = "Map<String, Value>")]
    pub(super) body: Value,
}

/// Where a lobby goes on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetRoom {
    /// The lobby's id.
    pub(super) lobby: String,
    /// The code of a room in which the owner sits; missing to take it back.
    pub(super) code: Option<String>,
}

/// Which part of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListLobbies {
    /// What the last part gave as `next`.
    pub(super) after: Option<String>,
    /// How many at most; there are never more than 100.
    #[serde(default)]
    pub(super) limit: Limit,
}

/// A lobby.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct OneLobby {
    /// As the caller may see it.
    pub(super) lobby: LobbyView,
}

/// Lobbies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FoundLobbies {
    /// In the order that was asked for.
    pub(super) lobbies: Vec<LobbyView>,
    /// What to give as `before` for the next part; missing if all were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<u64>,
}

/// Lobbies of a player.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct MyLobbies {
    /// Those in which it is.
    pub(super) lobbies: Vec<LobbyView>,
    /// Those to which it is invited.
    pub(super) invitations: Vec<LobbyView>,
}

/// A part of all lobbies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LobbyList {
    /// In the order of their ids.
    pub(super) lobbies: Vec<LobbyView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// What was said.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SaidInLobby {
    /// Counts what is said in the lobby, from 1.
    pub(super) n: u64,
}

/// A lobby as somebody may see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LobbyView {
    /// Its id.
    pub(super) id: String,
    /// Its kind.
    kind: LobbyKind,
    /// Who may join without an invitation or the code.
    access: Access,
    /// Whether nobody may join but who is invited.
    locked: bool,
    /// Its name.
    name: String,
    /// What it is for.
    bucket: String,
    /// The account of its owner.
    owner: String,
    /// Seats.
    max: u16,
    /// How many members it has.
    size: usize,
    /// How many of them are ready: their property `ready` is neither missing, 0 nor empty.
    ready: usize,
    /// Grows with each change.
    version: u64,
    /// What it says of itself.
    properties: Properties,
    /// How many friends of the caller sit there; only in what a search finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    friends: Option<usize>,
    /// The code by which players join; for members only.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// In the order of joining; for members only.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberView>>,
    /// Accounts that are invited; for members only.
    #[serde(skip_serializing_if = "Option::is_none")]
    invited: Option<Vec<String>>,
    /// Where it goes on; for members only.
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<Entrance>,
}

/// A member of a lobby.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct MemberView {
    /// Its account.
    account: String,
    /// Its name.
    name: String,
    /// Whether it has a connection; otherwise its seat is kept for a short time.
    here: bool,
    /// What it says of itself.
    properties: Properties,
}

impl LobbyView {
    /// As everybody sees it.
    fn of_anybody(lobby: &Lobby) -> Self {
        LobbyView {
            id: lobby.id.to_string(),
            kind: lobby.kind,
            access: lobby.access,
            locked: lobby.is_locked,
            name: lobby.name.clone(),
            bucket: lobby.bucket.clone(),
            owner: lobby.owner.to_string(),
            max: lobby.max,
            size: lobby.members.len(),
            ready: lobby.ready(),
            version: lobby.version,
            properties: lobby.properties.clone(),
            friends: None,
            code: None,
            members: None,
            invited: None,
            room: None,
        }
    }

    /// As its members see it.
    pub(super) fn of_member(lobby: &Lobby) -> Self {
        let member = |LobbyMember { player, name, properties, away_at }: &LobbyMember| MemberView {
            account: player.to_string(),
            name: name.clone(),
            here: away_at.is_none(),
            properties: properties.clone(),
        };
        LobbyView {
            code: Some(lobby.code.clone()),
            members: Some(lobby.members.iter().map(member).collect()),
            invited: Some(lobby.invited.iter().map(ToString::to_string).collect()),
            room: lobby.room.clone(),
            ..Self::of_anybody(lobby)
        }
    }

    /// As this player sees it.
    pub(super) fn seen_by(lobby: &Lobby, by: &Person) -> Self {
        match lobby.member(&by.player) {
            Some(_) => Self::of_member(lobby),
            None => LobbyView { friends: Some(lobby.friends_of(by)), ..Self::of_anybody(lobby) },
        }
    }
}
