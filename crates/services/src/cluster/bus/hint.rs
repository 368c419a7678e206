//! What nodes tell each other.

use crate::store::{AccountId, RoomId, Saying};
use parlor_server::realm::Realm;
use parlor_turn::Topic;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum number of receivers that one hint names.
pub(crate) const RECEIVERS_MAX: usize = 64;

/// A hint. A kind that a build does not know is ignored by it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hint {
    /// There is a new order.
    Order,
    /// Players got notices.
    Notices(Notices),
    /// A turn room has another version.
    Room(RoomChanged),
    /// A player is connected to a node or not any more, or says something of itself.
    Presence(PresenceChanged),
    /// Two players are friends from here on, or no longer.
    Friends(FriendsChanged),
}

/// A notice that players got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Notices {
    /// The path of the realm.
    pub(crate) realm: String,
    /// At most [`RECEIVERS_MAX`].
    pub(crate) to: Vec<Receiver>,
    /// The notice without its number, as JSON; `None` if it is too large for the bus.
    pub(crate) notice: Option<Box<RawValue>>,
}

/// A player who got a notice, and its number in the player's inbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Receiver(pub(crate) String, pub(crate) u64);

/// A commit to a turn room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RoomChanged {
    /// The path of the realm.
    pub(crate) realm: String,
    pub(crate) room: String,
    /// The version that was changed.
    pub(crate) before: u64,
    pub(crate) version: u64,
    /// The notices for the room's subscribers; `None` if they are too large for the bus.
    pub(crate) watched: Option<Vec<WatchedNotice>>,
}

/// A notice of a room that all its readers get.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WatchedNotice {
    pub(crate) topic: Topic,
    /// The players who get it by their inboxes.
    pub(crate) to: Vec<String>,
    /// The notice, as JSON.
    pub(crate) notice: Box<RawValue>,
}

/// Where a player is, and what it says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PresenceChanged {
    /// The path of the realm.
    realm: String,
    account: String,
    /// The node; empty if the player says something that holds wherever it is.
    pub(crate) node: String,
    /// `None` if it is not connected to the node any more.
    pub(crate) saying: Option<Saying>,
}

/// A friendship.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FriendsChanged {
    /// The path of the realm.
    pub(crate) realm: String,
    pub(crate) one: String,
    pub(crate) other: String,
    pub(crate) are_friends: bool,
}

impl PresenceChanged {
    pub(crate) fn new(realm: &Realm, account: &AccountId, node: String, saying: Option<Saying>) -> Self {
        PresenceChanged { realm: realm.path().to_owned(), account: account.to_string(), node, saying }
    }

    /// The player, if it can be one.
    pub(crate) fn key(&self) -> Option<(Realm, AccountId)> {
        Some((Realm::from_path(&self.realm).ok()?, AccountId::new(&self.account).ok()?))
    }
}

impl FriendsChanged {
    /// Both players, if they can be some.
    pub(crate) fn players(&self) -> Option<(Realm, AccountId, AccountId)> {
        let realm = Realm::from_path(&self.realm).ok()?;
        Some((realm, AccountId::new(&self.one).ok()?, AccountId::new(&self.other).ok()?))
    }
}

impl Hint {
    /// The same without what can be read in the store, for a carrier of small payloads; `None` if there is nothing to
    /// leave out.
    pub(super) fn shortened(&self) -> Option<Hint> {
        match self {
            Hint::Notices(Notices { realm, to, notice: Some(_) }) => {
                Some(Hint::Notices(Notices { realm: realm.clone(), to: to.clone(), notice: None }))
            }
            Hint::Room(changed @ RoomChanged { watched: Some(_), .. }) => {
                Some(Hint::Room(RoomChanged { watched: None, ..changed.clone() }))
            }
            Hint::Order | Hint::Notices(_) | Hint::Room(_) | Hint::Presence(_) | Hint::Friends(_) => None,
        }
    }
}

impl Notices {
    /// The realm, if it can be one.
    pub(crate) fn realm(&self) -> Option<Realm> {
        Realm::from_path(&self.realm).ok()
    }
}

impl Receiver {
    /// The player, if it can be one.
    pub(crate) fn player(&self) -> Option<AccountId> {
        AccountId::new(&self.0).ok()
    }
}

impl RoomChanged {
    /// The room, if it can be one.
    pub(crate) fn key(&self) -> Option<(Realm, RoomId)> {
        Some((Realm::from_path(&self.realm).ok()?, RoomId::new(&self.room).ok()?))
    }
}
