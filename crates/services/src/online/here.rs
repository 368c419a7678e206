//! Presence: players with an open JSON socket. Friends are notified of each other.

use super::Services;
use super::by_realm::{ByRealm, Machine};
use super::news::Topic;
use super::seen::AWAY_ELSEWHERE_AFTER;
use crate::store::{AccountId, Saying, StoreError};
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_social::{Presence, PresenceNews};
use serde::Serialize;
use std::collections::BTreeSet;
use tokio::sync::Notify;

/// The longest that the task sleeps: the clock of the services may be moved.
const SLEEP_MAX: Duration = Duration::from_secs(5);
/// Time until a list of friends is read again after a failure.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// What a player says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Status {
    /// For people, for example what the player does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) status: String,
    /// How friends come to the player: a room's code, or a lobby's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) join: Option<String>,
}

/// The presence of players, in all realms.
#[derive(Default)]
pub(super) struct WhoIsHere {
    realms: ByRealm<Presence<AccountId, Status>>,
    /// Told when somebody may have gone.
    changed: Notify,
}

impl Machine for Presence<AccountId, Status> {
    fn is_empty(&self) -> bool {
        Presence::is_empty(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Presence::next_timeout(self)
    }
}

/// News of a friend.
#[derive(Serialize)]
struct FriendNews<'a> {
    account: &'a str,
    online: bool,
    #[serde(flatten)]
    status: Option<&'a Status>,
}

impl WhoIsHere {
    /// What a player says of itself, if it is here and shows it.
    pub(super) fn status(&self, realm: &Realm, player: &AccountId) -> Option<Status> {
        self.realms.read(realm, |presence| presence.status(player).cloned()).flatten()
    }
}

impl Services {
    /// Works on who is here in a realm, and tells what has changed.
    fn with_presence<T>(&self, realm: &Realm, work: impl FnOnce(&mut Presence<AccountId, Status>) -> T) -> T {
        self.who_is_here().realms.with(realm, |presence| {
            let done = work(presence);
            while let Some(told) = presence.poll_news() {
                tell(self, realm, &told);
            }
            done
        })
    }

    /// A device of a player has opened its feed.
    pub(super) fn has_come(&self, realm: &Realm, player: &AccountId) {
        self.is_present(realm, player, true);
        if self.with_presence(realm, |presence| presence.come(player)) {
            let (services, realm, player) = (self.clone(), realm.clone(), player.clone());
            self.handle().spawn(async move { services.meets_friends(&realm, &player).await });
        }
    }

    /// A device of a player has closed its feed, perhaps the last one.
    pub(super) fn may_have_gone(&self, realm: &Realm, player: &AccountId) {
        let now = self.time().steady();
        self.with_presence(realm, |presence| {
            // Looked up under the lock: a device that opens its feed now comes after this.
            if !self.feeds().has(realm, player) {
                presence.go(player, now);
            }
        });
        if !self.feeds().has(realm, player) {
            self.is_present(realm, player, false);
            self.follows_nothing(realm, player);
        }
        self.who_is_here().changed.notify_one();
    }

    /// Reads the friends of a player who has come.
    async fn meets_friends(&self, realm: &Realm, player: &AccountId) {
        loop {
            match self.store().friend_ids(realm, player).await {
                Ok(friends) => {
                    self.with_presence(realm, |presence| {
                        if let Some(hints) = self.hints().filter(|_| presence.is_here(player)) {
                            hints.has_come(realm, player, friends.clone());
                        }
                        presence.meet(player, friends.iter().cloned());
                    });
                    if let Some(hints) = self.hints() {
                        self.tell_of_known(hints, realm, player, &friends);
                    }
                    return;
                }
                Err(error) => {
                    tracing::debug!(%player, %error, "the friends of a player who has come are not told yet");
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }

    /// Two players are friends from here on, or no longer.
    pub(super) fn has_befriended(
        &self,
        realm: &Realm,
        (one, other): (&AccountId, &AccountId),
        are_friends: bool,
    ) {
        self.with_presence(realm, |presence| match are_friends {
            true => presence.befriend(one, other),
            false => presence.part(one, other),
        });
        if let Some(hints) = self.hints() {
            hints.befriend(self, realm, (one, other), are_friends);
        }
    }

    /// A player says something of itself. Returns whether it is here.
    pub(super) fn says_at(&self, realm: &Realm, player: &AccountId, saying: Saying) -> bool {
        let status = Status { status: saying.status.clone(), join: saying.join.clone() };
        self.with_presence(realm, |presence| {
            let is_here = presence.set(player, status, saying.is_visible);
            if let Some(hints) = self.hints().filter(|_| is_here) {
                hints.has_said(realm, player, saying);
            }
            is_here
        })
    }

    /// Tells a player what a friend says of itself; `None` if the friend is away.
    pub(super) fn tell_of_friend(
        &self,
        realm: &Realm,
        to: &AccountId,
        about: &AccountId,
        status: Option<&Status>,
    ) {
        let news = FriendNews { account: about.as_str(), online: status.is_some(), status };
        let Ok(text) = serde_json::to_string(&news) else { return };
        let topic = Topic::Friend(about.to_string());
        self.feeds().tell_news(self.unread(), (realm, to), &topic, &text.into());
    }

    /// Sends the present state of a topic to all devices of a player. `text` is a JSON object with the topic.
    pub(super) fn tell_news(&self, realm: &Realm, player: &AccountId, topic: &str, news: &impl Serialize) {
        let Ok(text) = serde_json::to_string(news) else { return };
        let topic = Topic::Other(topic.to_owned());
        self.feeds().tell_news(self.unread(), (realm, player), &topic, &text.into());
    }
}

/// Who is present.
impl Services {
    /// Records a request of a player. If it was away, searches find its rooms again.
    pub(super) async fn is_asked_by(&self, realm: &Realm, player: &AccountId) {
        let noted = self.seen().note((realm.clone(), player.clone()), self.time().steady());
        if noted.is_news
            && self.cluster().is_some()
            && let Err(error) = self.store().was_seen(realm, player, self.time().now_ms()).await
        {
            tracing::debug!(%player, %error, "other nodes do not know yet that a player is here");
        }
        if noted.was_away
            && let Err(error) = self.store().wake_rooms_of(realm, player).await
        {
            tracing::debug!(%player, %error, "the rooms of a player who is back are not found yet");
        }
    }

    /// Records that a player was present until this moment.
    pub(super) fn was_here(&self, realm: &Realm, player: &AccountId) {
        self.seen().note((realm.clone(), player.clone()), self.time().steady());
    }

    /// Those of these players who are present at any node of the cluster, beyond those [here](Self::is_any_here).
    pub(super) async fn present_elsewhere(
        &self,
        realm: &Realm,
        players: Vec<AccountId>,
    ) -> Result<BTreeSet<AccountId>, StoreError> {
        if self.cluster().is_none() || players.is_empty() {
            return Ok(BTreeSet::new());
        }
        let away_ms = u64::try_from(AWAY_ELSEWHERE_AFTER.as_millis()).unwrap_or(u64::MAX);
        let since_ms = self.time().now_ms().saturating_sub(away_ms);
        Ok(self.store().seen_of(realm, &players, since_ms).await?.into_iter().collect())
    }

    /// Whether any of these players is present.
    pub(super) fn is_any_here(&self, realm: &Realm, players: &[AccountId]) -> bool {
        let now = self.time().steady();
        players.iter().any(|player| {
            self.feeds().has(realm, player) || self.seen().has_seen(&(realm.clone(), player.clone()), now)
        })
    }
}

fn tell(services: &Services, realm: &Realm, told: &PresenceNews<AccountId, Status>) {
    let PresenceNews { to, about, status } = told;
    // Who is away here may be at another node.
    let hints = services.hints().filter(|_| status.is_none());
    let elsewhere = hints.and_then(|hints| hints.status_elsewhere(realm, about));
    services.tell_of_friend(realm, to, about, status.as_ref().or(elsewhere.as_ref()));
}

/// Notices who is away.
pub(super) async fn watch(services: Services) {
    loop {
        let here = services.who_is_here();
        let moved = services.time().moved();
        let now = services.time().steady();
        for realm in here.realms.due(now) {
            services.with_presence(&realm, |presence| {
                let away = presence.handle_timeout(now);
                if let Some(hints) = services.hints() {
                    away.iter().for_each(|player| hints.has_gone(&realm, player));
                }
            });
        }
        services.end_lost_seats(now);
        let next =
            [here.realms.next_timeout(), services.lobbies().next_timeout()].into_iter().flatten().min();
        let sleep = next.map_or(SLEEP_MAX, |at| at.saturating_sub(now).min(SLEEP_MAX));
        tokio::select! {
            () = tokio::time::sleep(sleep) => {}
            () = here.changed.notified() => {}
            () = moved => {}
        }
    }
}
