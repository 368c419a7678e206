//! Subscriptions to turn rooms: whoever may read a room and has no seat in it gets its notices over its socket.
//!
//! A seated player needs none, because its notices come by its inbox. A subscription is in memory only, and ends with its
//! socket, with the right to read the room, and with the room.

use super::handlers::{RoomAnswer, actor, room};
use super::{look_at, to_json};
use crate::cluster::bus::{RoomChanged, WatchedNotice};
use crate::online::Services;
use crate::online::accounts::{DONE, Done};
use crate::online::failure::{Failure, Kind};
use crate::online::inbox::NoticeContent;
use crate::online::table::Caller;
use crate::store::{AccountId, RoomId};
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use parlor_turn::{Actor, Effect, PlayerId, Topic, TurnRoom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// Maximum number of rooms that one socket subscribes to.
const ROOMS_MAX: usize = 16;
/// Maximum number of subscriptions to one room.
const READERS_MAX: usize = 256;
/// Maximum number of these of one account, by several sockets: few accounts cannot take all places.
const READERS_OF_ACCOUNT_MAX: usize = 4;
/// Maximum number of a room's changes that wait for an earlier one, in a cluster.
const WAITING_MAX: usize = 16;
/// The kind of the last notice of a subscription that the server ends.
const ENDED: &str = "unsubscribed";

pub(in crate::online) type Key = (Realm, RoomId);

/// All subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    by_room: HashMap<Key, Vec<Subscription>>,
    /// The rooms of each feed.
    by_feed: HashMap<u64, Vec<Key>>,
    /// Of each room with subscriptions, in a cluster.
    changes: HashMap<Key, Changes>,
}

/// What was told of a room that every node may change.
#[derive(Debug)]
struct Changes {
    /// The version that the subscribers know.
    told: u64,
    /// Changes of later versions, by the version before each.
    waiting: BTreeMap<u64, RoomChanged>,
}

#[derive(Clone, Debug)]
struct Subscription {
    player: PlayerId,
    account: AccountId,
    feed: u64,
    topics: BTreeSet<Topic>,
}

/// A subscription to a room.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subscribe {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// What to be told of; all if missing. They take the place of those of an earlier subscription.
    topics: Option<BTreeSet<Topic>>,
}

/// The end of a subscription.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unsubscribe {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
}

/// A notice as a subscriber gets it.
#[derive(Serialize)]
struct Watched<'a> {
    kind: &'a str,
    at_ms: u64,
    notice: NoticeContent<'a, &'a serde_json::Value>,
}

pub(crate) async fn subscribe(
    services: Services,
    caller: Caller,
    input: Subscribe,
) -> Result<RoomAnswer, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let (_, by) = actor(&services, &caller)?;
    let Actor::Player(player) = by.clone() else { return Err(no_socket()) };
    let id = room(&input.room)?;
    let topics = input.topics.unwrap_or_else(|| Topic::ALL.into());
    // Within the lock of the room: nothing happens between the answer and the first notice.
    let seen = look_at(&services, &realm, &id, &by, |room| {
        let seen = room.view(&by, services.rules()).map_err(Failure::from).and_then(|view| to_json(&view))?;
        let feed = caller.feed.ok_or_else(no_socket)?;
        let subscription = Subscription { player, account, feed, topics };
        let key = (realm.clone(), id.clone());
        services.subscriptions().begin(&services, key, room.version(), subscription)?;
        Ok(seen)
    });
    Ok(RoomAnswer { room: Some(seen.await?) })
}

pub(crate) async fn unsubscribe(
    services: Services,
    caller: Caller,
    input: Unsubscribe,
) -> Result<Done, Failure> {
    let (realm, by) = actor(&services, &caller)?;
    let key = (realm, room(&input.room)?);
    let had = caller.feed.is_some_and(|feed| lock(&services.subscriptions().0).end(&key, feed));
    if !had {
        let (realm, id) = &key;
        look_at(&services, realm, id, &by, |_| caller.feed.map(|_| ()).ok_or_else(no_socket)).await?;
    }
    Ok(DONE)
}

fn no_socket() -> Failure {
    let sentence = "notices of a room go to a player's JSON socket: connect to /v1/socket, and ask there";
    Failure::new(Kind::Conflict, "no_socket", sentence)
}

fn too_many(sentence: String) -> Failure {
    Failure::new(Kind::Conflict, "too_many_subscriptions", sentence)
}

impl Subscriptions {
    fn begin(
        &self,
        services: &Services,
        key: Key,
        version: u64,
        subscription: Subscription,
    ) -> Result<(), Failure> {
        let mut open = lock(&self.0);
        let feed = subscription.feed;
        open.end(&key, feed);
        // A feed that closes meanwhile is removed before it ends its subscriptions, for which it needs this lock.
        if !services.feeds().is_open(&key.0, &subscription.account, feed) {
            return Err(no_socket());
        }
        if open.by_feed.get(&feed).is_some_and(|rooms| rooms.len() >= ROOMS_MAX) {
            let sentence =
                format!("a connection follows at most {ROOMS_MAX} rooms: unsubscribe from one first");
            return Err(too_many(sentence));
        }
        let readers = open.by_room.get(&key).map(Vec::as_slice).unwrap_or_default();
        let own = readers.iter().filter(|reader| reader.account == subscription.account).count();
        if own >= READERS_OF_ACCOUNT_MAX {
            return Err(too_many(format!(
                "{READERS_OF_ACCOUNT_MAX} connections of this account follow this room already: close one of them"
            )));
        }
        if readers.len() >= READERS_MAX {
            return Err(too_many(format!("{READERS_MAX} follow this room already: read it now and then")));
        }
        open.by_feed.entry(feed).or_default().push(key.clone());
        if services.cluster().is_some() {
            let new = || Changes { told: version, waiting: BTreeMap::new() };
            open.changes.entry(key.clone()).or_insert_with(new);
        }
        open.by_room.entry(key).or_default().push(subscription);
        Ok(())
    }

    /// Ends the subscriptions of a feed.
    pub(crate) fn end_feed(&self, feed: u64) {
        let mut open = lock(&self.0);
        for key in open.by_feed.get(&feed).cloned().unwrap_or_default() {
            open.end(&key, feed);
        }
    }

    /// Ends the subscriptions to a room that is gone.
    pub(in crate::online) fn end_room(&self, services: &Services, realm: &Realm, id: &RoomId) {
        let key = (realm.clone(), id.clone());
        let mut open = lock(&self.0);
        let readers = open.by_room.get(&key).cloned().unwrap_or_default();
        for reader in &readers {
            open.end(&key, reader.feed);
        }
        drop(open);
        Self::say_end(services, &key, &readers);
    }

    /// Tells subscribers what an operation did. The caller holds the lock of the room, so notices arrive in order.
    pub(super) fn tell(&self, services: &Services, realm: &Realm, room: &TurnRoom, effects: &[Effect]) {
        let Some(key) = key_of(realm, room) else { return };
        let mut open = lock(&self.0);
        if open.by_room.contains_key(&key) {
            open.tell(services, &key, room, &watched(services, room, effects));
        }
    }

    /// Whether a room has subscriptions here.
    pub(in crate::online) fn has(&self, key: &Key) -> bool {
        lock(&self.0).by_room.contains_key(key)
    }

    /// The version of each room that its subscribers here know, in a cluster.
    pub(in crate::online) fn all_told(&self) -> Vec<(Key, u64)> {
        lock(&self.0).changes.iter().map(|(key, changes)| (key.clone(), changes.told)).collect()
    }

    /// The same of one room.
    pub(in crate::online) fn told(&self, key: &Key) -> Option<u64> {
        lock(&self.0).changes.get(key).map(|changes| changes.told)
    }

    /// Tells subscribers of a change that some node of the cluster made, once all earlier ones were told. `room` is at least
    /// as new.
    pub(in crate::online) fn changed(
        &self,
        services: &Services,
        key: &Key,
        room: &TurnRoom,
        change: RoomChanged,
    ) {
        let mut open = lock(&self.0);
        let Some(changes) = open.changes.get_mut(key) else { return };
        if change.version <= changes.told || changes.waiting.len() >= WAITING_MAX {
            return;
        }
        changes.waiting.insert(change.before, change);
        let mut due = Vec::new();
        while let Some(change) = changes.waiting.remove(&changes.told) {
            changes.told = change.version;
            due.push(change);
        }
        // Told under the lock: a node's own changes and those of others arrive by two tasks.
        for change in due {
            match change.watched {
                Some(notices) => open.tell(services, key, room, &notices),
                None => open.cut_off(services, key, room),
            }
        }
    }

    /// Cuts off the subscribers of a room whose changes were not told. Returns whether there were any.
    pub(in crate::online) fn missed(&self, services: &Services, key: &Key, room: &TurnRoom) -> bool {
        let mut open = lock(&self.0);
        let Some(changes) = open.changes.get_mut(key).filter(|changes| changes.told < room.version()) else {
            return false;
        };
        changes.told = room.version();
        changes.waiting.retain(|before, _| *before >= room.version());
        open.cut_off(services, key, room);
        true
    }

    fn say_end(services: &Services, (realm, id): &Key, readers: &[Subscription]) {
        if readers.is_empty() {
            return;
        }
        let notice = json!({ "room": id.as_str(), "seq": 0, "body": {} });
        let text = json!({ "kind": ENDED, "at_ms": services.time().now_ms(), "notice": notice });
        let text: Arc<str> = text.to_string().into();
        for reader in readers {
            services.feeds().tell_one(services.unread(), (realm, &reader.account, reader.feed), &text);
        }
    }
}

/// The notices of an operation for the subscribers of its room.
pub(in crate::online) fn watched(
    services: &Services,
    room: &TurnRoom,
    effects: &[Effect],
) -> Vec<WatchedNotice> {
    let at_ms = services.time().now_ms();
    let public = effects.iter().filter_map(|effect| match effect {
        Effect::Notice(notice) if notice.is_public => Some(notice),
        _ => None,
    });
    let text = |notice: &parlor_turn::Notice| -> Option<WatchedNotice> {
        let content = NoticeContent { room: room.id(), seq: notice.seq, body: &notice.body };
        let told = Watched { kind: notice.kind.as_str(), at_ms, notice: content };
        let to = notice.to.iter().map(|player| player.as_str().to_owned()).collect();
        let notice_text = serde_json::value::to_raw_value(&told).ok()?;
        Some(WatchedNotice { topic: notice.kind.topic(), to, notice: notice_text })
    };
    public.filter_map(text).collect()
}

fn key_of(realm: &Realm, room: &TurnRoom) -> Option<Key> {
    Some((realm.clone(), RoomId::new(room.id().as_str()).ok()?))
}

impl Open {
    /// The subscriptions of readers without a seat. Those of players who may not read the room any more end.
    fn readers(&mut self, services: &Services, key: &Key, room: &TurnRoom) -> Vec<Subscription> {
        let Some(readers) = self.by_room.get(key).cloned() else { return Vec::new() };
        let (readers, gone): (Vec<_>, Vec<_>) =
            readers.into_iter().partition(|reader| room.may_read(&Actor::Player(reader.player.clone())));
        for reader in &gone {
            self.end(key, reader.feed);
        }
        Subscriptions::say_end(services, key, &gone);
        let has_seat = |reader: &Subscription| room.players().iter().any(|player| player.id == reader.player);
        readers.into_iter().filter(|reader| !has_seat(reader)).collect()
    }

    fn tell(&mut self, services: &Services, key: &Key, room: &TurnRoom, notices: &[WatchedNotice]) {
        let readers = self.readers(services, key, room);
        for WatchedNotice { topic, to, notice } in notices {
            let text: Arc<str> = notice.get().into();
            // Players have their inboxes, also for what is addressed to them as they leave.
            let wants = |reader: &&Subscription| {
                reader.topics.contains(topic) && !to.iter().any(|player| player == reader.player.as_str())
            };
            for reader in readers.iter().filter(wants) {
                services.feeds().tell_one(services.unread(), (&key.0, &reader.account, reader.feed), &text);
            }
        }
    }

    fn cut_off(&mut self, services: &Services, key: &Key, room: &TurnRoom) {
        for reader in self.readers(services, key, room) {
            services.feeds().cut_off(&key.0, &reader.account, reader.feed);
        }
    }

    /// Ends a subscription. Returns whether there was one.
    fn end(&mut self, key: &Key, feed: u64) -> bool {
        let had = self.by_feed.get(&feed).is_some_and(|rooms| rooms.contains(key));
        if let Some(readers) = self.by_room.get_mut(key) {
            readers.retain(|reader| reader.feed != feed);
            if readers.is_empty() {
                self.by_room.remove(key);
                self.changes.remove(key);
            }
        }
        if let Some(rooms) = self.by_feed.get_mut(&feed) {
            rooms.retain(|room| room != key);
            if rooms.is_empty() {
                self.by_feed.remove(&feed);
            }
        }
        had
    }
}
