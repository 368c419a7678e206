//! One lobby: its members, and what is told and asked of it.

use super::refusal::LobbyRefused;
use crate::limits::{LOBBY_AWAY, LOBBY_SEATS_MAX, PARTY_AWAY, PARTY_SEATS_MAX};
use crate::properties::{Properties, Property};
use core::time::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A player's key: its account.
pub type PlayerKey = Arc<str>;
/// A lobby's id.
pub type LobbyId = Arc<str>;

/// The kind of a lobby.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LobbyKind")]
pub enum LobbyKind {
    /// Players who gather.
    #[default]
    Lobby,
    /// Friends who stay together: one for each player, never found by a search.
    Party,
}

/// Who may join without an invitation or the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LobbyAccess")]
pub enum Access {
    /// Anybody.
    #[default]
    Public,
    /// Friends of the owner.
    Friends,
    /// Nobody.
    Private,
}

/// Where a lobby goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LobbyRoom")]
pub struct Entrance {
    /// The kind of the room: `player_hosted`, `dedicated`, `match` or `turn`.
    pub kind: String,
    /// Its code.
    pub code: String,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyMember {
    /// Who.
    pub player: PlayerKey,
    /// Its display name.
    pub name: String,
    /// What it says of itself.
    pub properties: Properties,
    /// When it loses its seat, if it has no connection.
    pub away_at: Option<Duration>,
}

/// A lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lobby {
    /// Its id.
    pub id: LobbyId,
    /// The code by which players join.
    pub code: String,
    /// Its kind.
    pub kind: LobbyKind,
    /// Who may join.
    pub access: Access,
    /// Whether nobody may join, not even by the code; only who is invited.
    pub is_locked: bool,
    /// Its name.
    pub name: String,
    /// What it is for: searches for one bucket look at no other.
    pub bucket: String,
    /// Its owner: always one of its members.
    pub owner: PlayerKey,
    /// Seats.
    pub max: u16,
    /// Grows by one with each change.
    pub version: u64,
    /// What it says of itself.
    pub properties: Properties,
    /// In the order of joining.
    pub members: Vec<LobbyMember>,
    /// Who is invited.
    pub invited: BTreeSet<PlayerKey>,
    /// Who was kicked, and may not come back.
    pub(super) barred: BTreeSet<PlayerKey>,
    /// Where it goes on.
    pub room: Option<Entrance>,
    /// Counts the lobbies: a later one has a larger number.
    pub number: u64,
    /// Counts what its members have said.
    pub said: u64,
}

/// A lobby to create.
#[derive(Clone, Debug, Default)]
pub struct NewLobby {
    /// Its id, which nobody else has.
    pub id: String,
    /// Its code, which nobody else has.
    pub code: String,
    /// Its kind.
    pub kind: LobbyKind,
    /// Who may join.
    pub access: Access,
    /// Seats; default: 8, of a party 4.
    pub max: Option<u16>,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub bucket: String,
    /// What it says of itself.
    pub properties: Properties,
    /// What its owner says of itself.
    pub mine: Properties,
}

/// A player who acts, and what the caller knows of it.
#[derive(Clone, Debug)]
pub struct Person {
    /// Who.
    pub player: PlayerKey,
    /// Its display name.
    pub name: String,
    /// Whether it has a connection.
    pub is_here: bool,
    /// Its friends.
    pub friends: BTreeSet<PlayerKey>,
    /// Players that it has blocked, or that have blocked it.
    pub blocked: BTreeSet<PlayerKey>,
}

/// A change by the owner. What is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct LobbyChange {
    /// Its name.
    pub name: Option<String>,
    /// Who may join.
    pub access: Option<Access>,
    /// Whether nobody may join.
    pub is_locked: Option<bool>,
    /// Seats.
    pub max: Option<u16>,
    /// What it is for.
    pub bucket: Option<String>,
    /// Properties to set, and to remove (`None`).
    pub properties: BTreeMap<String, Option<Property>>,
    /// The version that is changed, and no other.
    pub version: Option<u64>,
}

/// Why a member is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It left.
    Left,
    /// It was kicked.
    Kicked,
    /// It had no connection for too long.
    TimedOut,
    /// The lobby was ended by an operator.
    Ended,
}

impl Gone {
    /// Its word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Gone::Left => "left",
            Gone::Kicked => "kicked",
            Gone::TimedOut => "timed_out",
            Gone::Ended => "ended",
        }
    }
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LobbyNews {
    /// A lobby has changed: notify its members.
    Changed(LobbyId),
    /// A player is no longer a member.
    Gone {
        /// The lobby, which may have ended.
        lobby: LobbyId,
        /// Who.
        player: PlayerKey,
        /// Why.
        why: Gone,
    },
    /// The invitations of a player have changed.
    Invited(PlayerKey),
    /// The members of a party have changed: what it waits for is over.
    PartyChanged(LobbyId),
}

impl Lobby {
    /// The member with this key.
    pub fn member(&self, player: &str) -> Option<&LobbyMember> {
        self.members.iter().find(|member| &*member.player == player)
    }

    /// Members whose property `ready` is neither missing, 0 nor empty.
    pub fn ready(&self) -> usize {
        let is_ready = |member: &&LobbyMember| match member.properties.get("ready") {
            Some(Property::Number(number)) => *number != 0,
            Some(Property::Text(text)) => !text.is_empty(),
            None => false,
        };
        self.members.iter().filter(is_ready).count()
    }

    /// Free seats.
    pub fn free(&self) -> usize {
        usize::from(self.max).saturating_sub(self.members.len())
    }

    /// Bytes of all that it says.
    pub(super) fn bytes(&self) -> usize {
        let of = |properties: &Properties| {
            let size = |(name, value): (&String, &Property)| {
                name.len() + if let Property::Text(text) = value { text.len() } else { 8 }
            };
            properties.iter().map(size).sum::<usize>()
        };
        let members =
            self.members.iter().map(|member| member.name.len() + of(&member.properties)).sum::<usize>();
        self.name.len() + self.bucket.len() + of(&self.properties) + members
    }

    pub(super) fn away(&self) -> Duration {
        match self.kind {
            LobbyKind::Lobby => LOBBY_AWAY,
            LobbyKind::Party => PARTY_AWAY,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.kind == LobbyKind::Lobby && self.access != Access::Private && !self.is_locked
    }

    pub(super) fn must_be_owner(&self, player: &str) -> Result<(), LobbyRefused> {
        match self.member(player) {
            None => Err(LobbyRefused::NotInLobby),
            Some(_) if &*self.owner != player => Err(LobbyRefused::NotOwner),
            Some(_) => Ok(()),
        }
    }
}

pub(super) fn seats(kind: LobbyKind, wanted: Option<u16>) -> Result<u16, LobbyRefused> {
    let (most, usual) = match kind {
        LobbyKind::Lobby => (LOBBY_SEATS_MAX, 8),
        LobbyKind::Party => (PARTY_SEATS_MAX, 4),
    };
    let max = wanted.unwrap_or(usual);
    if (2..=most).contains(&max) { Ok(max) } else { Err(LobbyRefused::Seats(most)) }
}
