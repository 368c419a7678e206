//! Lobbies to open and to search.

use crate::online::filter::{Filter, Properties, Property};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A lobby to open.
///
/// ```
/// use parlor::online::NewLobby;
/// let lobby = NewLobby::public(4).name("Ada's mill").bucket("coop").set("map", "mill").set("level", 7);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewLobby {
    kind: &'static str,
    access: &'static str,
    max: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    properties: Properties,
    mine: Properties,
}

/// What lobbies are searched for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LobbySearch {
    bucket: Option<String>,
    filter: Filter,
    free_seats: Option<u16>,
    of_friends: bool,
    near: Properties,
    fullest: bool,
    count: Option<u8>,
}

impl NewLobby {
    /// A lobby with so many seats that searches find.
    pub fn public(max: u16) -> Self {
        let (kind, access) = ("lobby", "public");
        NewLobby {
            kind,
            access,
            max,
            name: None,
            bucket: None,
            properties: Properties::new(),
            mine: Properties::new(),
        }
    }

    /// The same for friends of its owner.
    pub fn of_friends(max: u16) -> Self {
        NewLobby { access: "friends", ..Self::public(max) }
    }

    /// One that is joined by its code or an invitation only.
    pub fn private(max: u16) -> Self {
        NewLobby { access: "private", ..Self::public(max) }
    }

    /// A party: friends who stay together. A player has one at most.
    pub fn party(max: u16) -> Self {
        NewLobby { kind: "party", ..Self::private(max) }
    }

    /// Sets its name, up to 64 bytes.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        NewLobby { name: Some(name.to_owned()), ..self }
    }

    /// Sets what it is for: searches for one bucket look at no other.
    #[must_use]
    pub fn bucket(self, bucket: &str) -> Self {
        NewLobby { bucket: Some(bucket.to_owned()), ..self }
    }

    /// Sets a property of it.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<Property>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Sets a property of the player in it.
    #[must_use]
    pub fn set_mine(mut self, name: &str, value: impl Into<Property>) -> Self {
        self.mine.insert(name.to_owned(), value.into());
        self
    }
}

impl LobbySearch {
    /// All lobbies that the player may join.
    pub fn new() -> Self {
        LobbySearch::default()
    }

    /// Only those of this bucket.
    #[must_use]
    pub fn bucket(self, bucket: &str) -> Self {
        LobbySearch { bucket: Some(bucket.to_owned()), ..self }
    }

    /// Only those whose properties meet this. `@name`, `@members`, `@max`, `@free`, `@ready` and `@friends` are of the
    /// lobby itself.
    #[must_use]
    pub fn filter(self, filter: Filter) -> Self {
        LobbySearch { filter, ..self }
    }

    /// At least so many free seats.
    #[must_use]
    pub fn free_seats(self, seats: u16) -> Self {
        LobbySearch { free_seats: Some(seats), ..self }
    }

    /// Only those in which friends sit.
    #[must_use]
    pub fn of_friends(self) -> Self {
        LobbySearch { of_friends: true, ..self }
    }

    /// Those first whose property is nearest to this number.
    #[must_use]
    pub fn near(mut self, name: &str, number: i64) -> Self {
        self.near.insert(name.to_owned(), number.into());
        self
    }

    /// Those with most members first. Otherwise the newest are.
    #[must_use]
    pub fn fullest(self) -> Self {
        LobbySearch { fullest: true, ..self }
    }

    /// How many at most, up to 50. Default: 20.
    #[must_use]
    pub fn count(self, count: u8) -> Self {
        LobbySearch { count: Some(count), ..self }
    }

    /// As the server reads it.
    pub(super) fn input(&self) -> Value {
        let pairs = [
            ("bucket", self.bucket.as_deref().map(Value::from)),
            ("filter", self.filter.to_json()),
            ("free_seats", self.free_seats.map(Value::from)),
            ("of_friends", self.of_friends.then(|| true.into())),
            ("near", (!self.near.is_empty()).then(|| json!(self.near))),
            ("order", self.fullest.then(|| "fullest".into())),
            ("count", self.count.map(Value::from)),
        ];
        let input: Map<String, Value> =
            pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        input.into()
    }
}
