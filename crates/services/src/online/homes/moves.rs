//! What happens when a realm gets another home: a node came, ended or went.
//!
//! Lobbies and parties end, as when a server alone starts again: each node tells its players, who make new ones.
//! Searches go on: the node at which one began enters it at the other home, with the time that it has waited. A search
//! is given to one home at a time. News of a home that is one no more are refused, so no player hears of a match of it.

use super::HomeId;
use super::told::FollowedTopic;
use crate::online::Services;
use crate::online::failure::Kind;
use crate::store::AccountId;
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::{Instant, sleep};

/// Time between two looks at the nodes.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Time between two looks at what is here, while the nodes are the same.
const LOOK_AT_ALL: Duration = Duration::from_secs(5);
/// How long a search may take to be at another home. Its player is told then that it has ended.
const MOVES_WITHIN: Duration = Duration::from_secs(10);
/// Pause before a home is asked again.
const ENTER_AGAIN: Duration = Duration::from_millis(300);

/// Goes on at other homes.
pub(super) async fn watch(services: &Services) {
    let (mut serving, mut changed_at, mut looked_at) = (Vec::new(), Instant::now(), Instant::now());
    loop {
        sleep(LOOK_AGAIN).await;
        let before = core::mem::replace(&mut serving, services.serving_homes());
        if serving != before {
            changed_at = Instant::now();
        }
        // What an earlier home has answered in its last moment comes a little later.
        let may_move = changed_at.elapsed() < MOVES_WITHIN + LOOK_AT_ALL;
        if may_move || looked_at.elapsed() >= LOOK_AT_ALL {
            looked_at = Instant::now();
            let mut homes = HomeCache { services, known: BTreeMap::new() };
            drop_what_is_elsewhere(services);
            tell_what_has_ended(services, &mut homes);
            move_searches(services, &mut homes);
        }
    }
}

/// The homes of realms at one moment.
struct HomeCache<'a> {
    services: &'a Services,
    known: BTreeMap<Realm, Option<HomeId>>,
}

impl HomeCache<'_> {
    fn of(&mut self, realm: &Realm) -> Option<&HomeId> {
        if !self.known.contains_key(realm) {
            self.known.insert(realm.clone(), self.services.home_of(realm));
        }
        self.known.get(realm).and_then(Option::as_ref)
    }
}

/// Drops lobbies and searches of realms whose home this node is no more. Their players are told by their nodes.
fn drop_what_is_elsewhere(services: &Services) {
    let held: Vec<_> = lock(&services.homes().held).clone().into_iter().collect();
    for (realm, since) in held {
        // Without a word of the nodes it may still be.
        let Some(home) = services.home_of(&realm) else { continue };
        if home != since {
            lock(&services.homes().held).remove(&realm);
            services.drop_lobbies(&realm);
            services.drop_searches(&realm);
            tracing::info!(?realm, home = %home.node, "the lobbies and searches of a realm have another home");
        }
    }
}

/// Tells players here of lobbies and searches that ended with their home.
fn tell_what_has_ended(services: &Services, homes: &mut HomeCache<'_>) {
    let mut ended = Vec::new();
    let mut followed = lock(&services.homes().followed);
    for ((realm, player), topics) in followed.iter_mut() {
        let Some(home) = homes.of(realm) else { continue };
        topics.retain(|topic, of| {
            if of.home == *home {
                of.left_at = None;
                return true;
            }
            let left_at = *of.left_at.get_or_insert_with(Instant::now);
            let is_lobby = topic.starts_with("lobby/");
            if !is_lobby && left_at.elapsed() < MOVES_WITHIN {
                return true;
            }
            ended.push((realm.clone(), player.clone(), topic.clone(), of.clone()));
            false
        });
    }
    followed.retain(|_, topics| !topics.is_empty());
    drop(followed);
    for (realm, player, topic, of) in ended {
        tell_end(services, &realm, &player, &topic, &of);
    }
}

fn tell_end(services: &Services, realm: &Realm, player: &AccountId, topic: &str, of: &FollowedTopic) {
    let news = if topic.starts_with("lobby/") {
        json!({ "topic": topic, "gone": "ended" })
    } else {
        let mut news: Value =
            of.news.as_ref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        if let Some(search) = news.get_mut("search").and_then(Value::as_object_mut) {
            for field in ["left_ms", "confirmed", "opens", "found"] {
                search.remove(field);
            }
            search.insert("state".to_owned(), "ended".into());
            search.insert("why".to_owned(), "gone".into());
        }
        news
    };
    let text: Arc<str> = news.to_string().into();
    services.hear_of(&of.home, (realm, player), topic, &text, true);
}

/// Enters searches that began here at the home that their realm has by now.
fn move_searches(services: &Services, homes: &mut HomeCache<'_>) {
    let mut moving = Vec::new();
    for ((realm, ticket), search) in lock(&services.homes().entered).iter_mut() {
        let is_elsewhere = homes.of(realm).is_some_and(|home| *home != search.home);
        if is_elsewhere && !search.is_moving {
            search.is_moving = true;
            moving.push((realm.clone(), ticket.clone()));
        }
    }
    for (realm, ticket) in moving {
        services.handle().spawn(move_search(services.clone(), realm, ticket));
    }
}

async fn move_search(services: Services, realm: Realm, ticket: String) {
    let key = (realm, ticket);
    let began = Instant::now();
    while began.elapsed() < MOVES_WITHIN {
        let Some(search) = lock(&services.homes().entered).get(&key).cloned() else { return };
        match services.enter_again(&key.0, &key.1, &search).await {
            Ok(home) => {
                if let Some(search) = lock(&services.homes().entered).get_mut(&key) {
                    (search.home, search.is_moving) = (home, false);
                }
                return;
            }
            Err(failure) if failure.kind() == Kind::Unavailable => sleep(ENTER_AGAIN).await,
            Err(failure) => {
                tracing::debug!(ticket = key.1, ?failure, "a search ended with its home");
                break;
            }
        }
    }
    // Its player is told by what was told before.
    lock(&services.homes().entered).remove(&key);
}
