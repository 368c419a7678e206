//! What nodes tell each other of players, without an answer: a home its news for players of other nodes, and other nodes
//! which players come and go.
//!
//! It goes over the line and not over the bus, because a line says whether it was heard: what was not is told again, as
//! long as the other node serves. Only the newest of each topic waits. The node on which a player's devices are is not
//! known, so news go to all nodes, many in one question.

use super::{HomeId, Place, realm_of};
use crate::cluster::line::{self, Handlers};
use crate::online::Services;
use crate::online::news::Topic;
use crate::store::{AccountId, NodeName};
use bytes::Bytes;
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::{Instant, sleep};

const TOLD: &str = "home/told";
/// Maximum number of things that wait for one node. Beyond it new ones are dropped, and the log says so.
const WAITING_MAX: usize = 65_536;
/// Bytes of texts of one question; one text more may exceed it.
const BYTES_MAX: usize = 256 << 10;
/// Things of one question.
const AT_ONCE_MAX: usize = 2_000;
/// Pause after a question that was not heard.
const TELL_AGAIN: Duration = Duration::from_millis(200);

/// What it is about.
type Key = (Realm, AccountId, Option<String>);

/// Something to tell.
#[derive(Clone, Debug)]
enum Item {
    /// The newest of a topic. With `ends` it is the last.
    News { text: Arc<str>, ends: bool },
    /// A player has a connection, or none.
    Here(bool),
}

/// What waits for a node.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: BTreeMap<Key, Item>,
    is_sending: bool,
}

/// An item as it is sent.
#[derive(Serialize, Deserialize)]
struct Sent {
    realm: String,
    account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    news: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    ends: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<bool>,
}

/// Lobbies and searches of which players of this node were told, by player and topic.
pub(super) type Followed = BTreeMap<(Realm, AccountId), BTreeMap<String, FollowedTopic>>;

/// What was told of a lobby or a search.
#[derive(Clone, Debug)]
pub(super) struct FollowedTopic {
    /// By whom.
    pub(super) home: HomeId,
    /// The newest news of a search.
    pub(super) news: Option<Arc<str>>,
    /// Since when the realm has another home.
    pub(super) left_at: Option<Instant>,
}

impl Services {
    /// Tells a player news of its realm's home, which is this node, wherever the player's devices are. `topic` is what
    /// they replace. With `ends` nothing follows in that topic.
    pub(in crate::online) fn tell_at_home(
        &self,
        realm: &Realm,
        player: &AccountId,
        topic: &str,
        news: &impl Serialize,
        ends: bool,
    ) {
        let Ok(text) = serde_json::to_string(news) else { return };
        let text: Arc<str> = text.into();
        let Some(cluster) = self.cluster() else { return self.hear(realm, player, topic, &text) };
        // What a node tells that is the home no more, others would refuse.
        let Ok(Some(Place::Here(home))) = self.place_of(realm) else { return };
        self.hear_of(&home, (realm, player), topic, &text, ends);
        let key = || (realm.clone(), player.clone(), Some(topic.to_owned()));
        for node in cluster.nodes().serving().filter(|node| node.id != *cluster.node()) {
            self.tell_node(&node.id, key(), Item::News { text: Arc::clone(&text), ends });
        }
    }

    /// A player has a connection at this node, or none.
    pub(in crate::online) fn is_present(&self, realm: &Realm, player: &AccountId, is_here: bool) {
        match self.place_of(realm) {
            Ok(Some(Place::There(home))) => {
                self.tell_node(&home.node, (realm.clone(), player.clone(), None), Item::Here(is_here));
            }
            // A home that is not known looks for its players.
            Err(_) => {}
            Ok(_) => {
                self.is_in_lobbies(realm, player, is_here);
                self.is_in_searches(realm, player, is_here);
            }
        }
    }

    /// News for the devices of a player at this node.
    fn hear(&self, realm: &Realm, player: &AccountId, topic: &str, text: &Arc<str>) {
        self.feeds().tell_news(self.unread(), (realm, player), &Topic::Other(topic.to_owned()), text);
    }

    /// News of a home for the devices of a player at this node, which remembers what the player is in.
    pub(super) fn hear_of(
        &self,
        home: &HomeId,
        (realm, player): (&Realm, &AccountId),
        topic: &str,
        text: &Arc<str>,
        ends: bool,
    ) {
        self.hear(realm, player, topic, text);
        let Some((kind, id)) = topic.split_once('/').filter(|(_, id)| !id.contains('/')) else { return };
        let key = (realm.clone(), player.clone());
        let mut followed = lock(&self.homes().followed);
        if !ends && self.feeds().has(realm, player) {
            let news = (kind == "search").then(|| Arc::clone(text));
            let of = FollowedTopic { home: home.clone(), news, left_at: None };
            followed.entry(key).or_default().insert(topic.to_owned(), of);
        } else if let Some(topics) = followed.get_mut(&key) {
            topics.remove(topic);
            if topics.is_empty() {
                followed.remove(&key);
            }
        }
        drop(followed);
        if ends && kind == "search" {
            lock(&self.homes().entered).remove(&(realm.clone(), id.to_owned()));
        }
    }

    /// Forgets what a player is in who has no connection here any more.
    pub(in crate::online) fn follows_nothing(&self, realm: &Realm, player: &AccountId) {
        if self.cluster().is_some() {
            lock(&self.homes().followed).remove(&(realm.clone(), player.clone()));
        }
    }

    fn tell_node(&self, node: &NodeName, key: Key, item: Item) {
        let mut outboxes = lock(&self.homes().outboxes);
        let outbox = outboxes.entry(node.clone()).or_default();
        if outbox.waiting.len() >= WAITING_MAX && !outbox.waiting.contains_key(&key) {
            tracing::warn!(%node, "too much waits for another node: news of lobbies and searches were dropped");
            return;
        }
        outbox.waiting.insert(key, item);
        if !core::mem::replace(&mut outbox.is_sending, true) {
            self.handle().spawn(send_all(self.clone(), node.clone()));
        }
    }
}

/// Sends what waits for a node, until nothing does.
async fn send_all(services: Services, node: NodeName) {
    let Some(cluster) = services.cluster() else { return };
    loop {
        let is_serving = cluster.nodes().serving_as(node.as_str()).is_some();
        let batch = {
            let mut outboxes = lock(&services.homes().outboxes);
            let Some(outbox) = outboxes.get_mut(&node) else { return };
            if !is_serving || outbox.waiting.is_empty() {
                outboxes.remove(&node);
                return;
            }
            outbox.take()
        };
        let sent: Vec<Sent> = batch.iter().filter_map(|(key, item)| Sent::of(key, item)).collect();
        let Ok(body) = serde_json::to_vec(&sent) else { continue };
        if let Err(error) = cluster.line().ask(&node, TOLD, Bytes::from(body)).await {
            tracing::debug!(%node, %error, "another node is told again");
            sleep(TELL_AGAIN).await;
            let mut outboxes = lock(&services.homes().outboxes);
            let outbox = outboxes.entry(node.clone()).or_default();
            for (key, item) in batch {
                // What a home that is another node by now would tell is told by that one.
                if key.2.is_none() || services.is_home(&key.0) {
                    outbox.waiting.entry(key).or_insert(item);
                }
            }
        }
    }
}

impl Outbox {
    /// Takes as much as one question has.
    fn take(&mut self) -> Vec<(Key, Item)> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES_MAX && taken.len() < AT_ONCE_MAX {
            let Some((key, item)) = self.waiting.pop_first() else { break };
            bytes += if let Item::News { text, .. } = &item { text.len() } else { 0 };
            taken.push((key, item));
        }
        taken
    }
}

impl Sent {
    fn of((realm, account, topic): &Key, item: &Item) -> Option<Self> {
        let (news, ends, here) = match item {
            Item::News { text, ends } => (Some(RawValue::from_string(text.to_string()).ok()?), *ends, None),
            Item::Here(is_here) => (None, false, Some(*is_here)),
        };
        let (realm, account) = (realm.path().to_owned(), account.to_string());
        Some(Sent { realm, account, topic: topic.clone(), news, ends, here })
    }
}

/// Answers other nodes.
pub(super) fn answer(services: &Services, handlers: &mut Handlers) {
    let services = services.clone();
    handlers.on(TOLD, move |from, body| {
        let told = hear_all(&services, &from, &body);
        async move { told }
    });
}

fn hear_all(services: &Services, from: &NodeName, body: &Bytes) -> line::Answer {
    let sent: Vec<Sent> = line::read(body)?;
    let mut told = Vec::with_capacity(sent.len());
    for one in sent {
        let realm = realm_of(&one.realm)?;
        let account =
            AccountId::new(&one.account).map_err(|error| line::Refusal::new(400, error.to_string()))?;
        let home = services.home_of(&realm);
        if one.news.is_some() && home.as_ref().is_none_or(|home| home.node != *from) {
            // It is told again, until both nodes know the same nodes.
            return Err(line::Refusal::new(
                409,
                format!("{from} is not the home of {realm:?} as far as known here"),
            ));
        }
        told.push((realm, account, home, one));
    }
    for (realm, account, home, Sent { topic, news, ends, here, .. }) in told {
        match (topic, news, here, home) {
            (Some(topic), Some(news), _, Some(home)) => {
                let text: Arc<str> = Box::<str>::from(news).into();
                services.hear_of(&home, (&realm, &account), &topic, &text, ends);
            }
            (None, None, Some(is_here), _) if services.is_home(&realm) => {
                services.is_in_lobbies(&realm, &account, is_here);
                services.is_in_searches(&realm, &account, is_here);
            }
            _ => {}
        }
    }
    line::write(&())
}
