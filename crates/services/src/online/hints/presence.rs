//! Presence of friends at other nodes.
//!
//! Each node writes who is connected to it, in groups, and tells the others. A node keeps what it is told of friends of
//! its own players, reads that when a player comes, and reads it again now and then. What a player says of itself holds
//! at all nodes to which it is connected: the newest counts.

use super::{Hints, until_due};
use crate::cluster::bus::{FriendsChanged, Hint, PresenceChanged};
use crate::online::Services;
use crate::online::here::Status;
use crate::store::{AccountId, PresenceRow, Saying, StoreError};
use core::sync::atomic::Ordering;
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use parlor_social::Elsewhere;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Interval at which changes are written.
const WRITE_EVERY: Duration = Duration::from_millis(250);
/// Maximum number of players of one write, and of those that one query names.
const PART: usize = 1_000;
/// Interval of the sweep, which is due sooner when a node comes or goes.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Interval at which the nodes are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

type Key = (Realm, AccountId);

/// What this node knows.
#[derive(Debug, Default)]
pub(super) struct Friends {
    realms: Mutex<BTreeMap<Realm, OfRealm>>,
    /// Not yet written; `None` for players who are not connected any more.
    unwritten: Mutex<BTreeMap<Key, Option<Saying>>>,
    changed: Notify,
    /// Of whom nothing was read yet.
    unread: Mutex<BTreeSet<Key>>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct OfRealm {
    elsewhere: Elsewhere<AccountId, Status>,
    /// The players who are here, and what they say.
    here: BTreeMap<AccountId, Saying>,
}

impl OfRealm {
    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.elsewhere.watched().next().is_none()
    }
}

fn status_of(saying: Saying) -> Status {
    Status { status: saying.status, join: saying.join }
}

impl Friends {
    fn with<T>(&self, realm: &Realm, work: impl FnOnce(&mut OfRealm) -> T) -> T {
        let mut realms = lock(&self.realms);
        let of_realm = realms.entry(realm.clone()).or_default();
        let done = work(of_realm);
        if of_realm.is_empty() {
            realms.remove(realm);
        }
        done
    }

    fn write(&self, key: Key, saying: Option<Saying>) {
        lock(&self.unwritten).insert(key, saying);
        self.changed.notify_one();
    }

    fn ask(&self, key: Key) {
        lock(&self.unread).insert(key);
        self.asked.notify_one();
    }

    /// What a player says who is at another node and shows it.
    pub(in crate::online) fn status(&self, realm: &Realm, player: &AccountId) -> Option<Status> {
        self.with(realm, |of_realm| of_realm.elsewhere.status(player).cloned())
    }
}

impl Hints {
    /// What a player says who is at another node and shows it, as far as this node was told.
    pub(in crate::online) fn status_elsewhere(&self, realm: &Realm, player: &AccountId) -> Option<Status> {
        self.friends.status(realm, player)
    }

    /// A player is here, with these friends. The caller holds the lock of who is here.
    pub(in crate::online) fn has_come(&self, realm: &Realm, player: &AccountId, friends: Vec<AccountId>) {
        let nothing = || Saying { status: String::new(), join: None, is_visible: true, said_ms: 0 };
        let saying = self.friends.with(realm, |of_realm| {
            of_realm.elsewhere.come(player, friends.iter().cloned());
            // It may have said something while its friends were read.
            of_realm.here.entry(player.clone()).or_insert_with(nothing).clone()
        });
        self.publish(realm, player, Some(saying));
        // With the player itself: it may have said something at another node.
        for account in friends.into_iter().chain([player.clone()]) {
            self.friends.ask((realm.clone(), account));
        }
    }

    /// A player is not here any more. The caller holds the lock of who is here.
    pub(in crate::online) fn has_gone(&self, realm: &Realm, player: &AccountId) {
        let was_here = self.friends.with(realm, |of_realm| {
            of_realm.elsewhere.go(player);
            of_realm.here.remove(player).is_some()
        });
        if was_here {
            self.publish(realm, player, None);
        }
    }

    /// A player who is here says something of itself. The caller holds the lock of who is here.
    pub(in crate::online) fn has_said(&self, realm: &Realm, player: &AccountId, saying: Saying) {
        self.friends.with(realm, |of_realm| of_realm.here.insert(player.clone(), saying.clone()));
        self.publish(realm, player, Some(saying));
    }

    /// Two players are friends from here on, or no longer.
    pub(in crate::online) fn befriend(
        &self,
        services: &Services,
        realm: &Realm,
        (one, other): (&AccountId, &AccountId),
        are_friends: bool,
    ) {
        let (realm_path, one_id, other_id) = (realm.path().to_owned(), one.to_string(), other.to_string());
        let changed = FriendsChanged { realm: realm_path, one: one_id, other: other_id, are_friends };
        self.bus.tell(Hint::Friends(changed));
        self.befriended(services, realm, (one, other), are_friends);
    }

    fn befriended(
        &self,
        services: &Services,
        realm: &Realm,
        (one, other): (&AccountId, &AccountId),
        are_friends: bool,
    ) {
        for (player, friend) in [(one, other), (other, one)] {
            let is_new = self.friends.with(realm, |of_realm| {
                if !are_friends {
                    of_realm.elsewhere.part(player, friend);
                }
                are_friends && of_realm.elsewhere.befriend(player, friend)
            });
            match are_friends {
                true if is_new => self.friends.ask((realm.clone(), friend.clone())),
                true => services.tell_of_known(self, realm, player, core::slice::from_ref(friend)),
                false => {}
            }
        }
    }

    fn publish(&self, realm: &Realm, player: &AccountId, saying: Option<Saying>) {
        let node = self.node.clone();
        self.friends.write((realm.clone(), player.clone()), saying.clone());
        let changed = PresenceChanged::new(realm, player, node, saying);
        self.bus.tell(Hint::Presence(changed));
    }
}

impl Services {
    /// What players say of themselves who are here or at another node and show it, by their accounts.
    pub(in crate::online) async fn presence_of(
        &self,
        realm: &Realm,
        players: &[AccountId],
    ) -> BTreeMap<AccountId, Status> {
        let here = |player: &AccountId| Some((player.clone(), self.who_is_here().status(realm, player)?));
        let mut found: BTreeMap<_, _> = players.iter().filter_map(here).collect();
        let Some(hints) = self.hints() else { return found };
        let others: Vec<AccountId> =
            players.iter().filter(|player| !found.contains_key(player)).cloned().collect();
        if others.is_empty() {
            return found;
        }
        match self.store().presence_of(realm, &others).await {
            Ok(mut rows) => {
                // The newest comes last, and stays.
                rows.sort_by_key(|row| row.saying.said_ms);
                let visible = rows.into_iter().filter(|row| row.saying.is_visible);
                found.extend(visible.map(|row| (row.account, status_of(row.saying))));
            }
            Err(error) => {
                tracing::debug!(%error, "presence at other nodes is what was told last");
                let told = |player: AccountId| Some((player.clone(), hints.friends.status(realm, &player)?));
                found.extend(others.into_iter().filter_map(told));
            }
        }
        found
    }

    /// A player says something of itself who may be at other nodes alone. Returns whether it is at any.
    pub(in crate::online) async fn says_elsewhere(
        &self,
        realm: &Realm,
        player: &AccountId,
        saying: Saying,
    ) -> Result<bool, StoreError> {
        let Some(hints) = self.hints() else { return Ok(false) };
        let is_there = self.store().say(realm, player, &saying).await?;
        if is_there {
            // No node has this name: its own say the same as soon as they hear it.
            hints.bus.tell(Hint::Presence(PresenceChanged::new(realm, player, String::new(), Some(saying))));
        }
        Ok(is_there)
    }

    /// Tells a player who is here what is known of these friends at other nodes.
    pub(in crate::online) fn tell_of_known(
        &self,
        hints: &Hints,
        realm: &Realm,
        player: &AccountId,
        friends: &[AccountId],
    ) {
        for friend in friends {
            let status = hints.friends.status(realm, friend);
            if status.is_some() && self.who_is_here().status(realm, friend).is_none() {
                self.tell_of_friend(realm, player, friend, status.as_ref());
            }
        }
    }

    /// Tells friends who are here what a player at another node says, unless it is here as well.
    fn tell_of_elsewhere(&self, hints: &Hints, realm: &Realm, player: &AccountId) {
        if self.who_is_here().status(realm, player).is_some() {
            return;
        }
        let (status, friends) = hints.friends.with(realm, |of_realm| {
            let friends: Vec<AccountId> = of_realm.elsewhere.friends_here(player).cloned().collect();
            (of_realm.elsewhere.status(player).cloned(), friends)
        });
        for friend in &friends {
            self.tell_of_friend(realm, friend, player, status.as_ref());
        }
    }

    /// A player who is here said something at another node.
    fn adopt(&self, hints: &Hints, realm: &Realm, player: &AccountId, saying: Saying) {
        let is_newer = hints.friends.with(realm, |of_realm| {
            of_realm.here.get(player).is_some_and(|said| said.said_ms < saying.said_ms)
        });
        if is_newer {
            self.says_at(realm, player, saying);
        }
    }
}

/// Another node told who is connected to it.
pub(super) fn heard(services: &Services, hints: &Hints, told: &PresenceChanged) {
    let Some((realm, player)) = told.key() else { return };
    if let Some(saying) = &told.saying {
        services.adopt(hints, &realm, &player, saying.clone());
    }
    if told.node.is_empty() {
        return;
    }
    let visible = told.saying.clone().filter(|saying| saying.is_visible);
    let visible = visible.map(|saying| (saying.said_ms, status_of(saying)));
    let is_changed =
        hints.friends.with(&realm, |of_realm| of_realm.elsewhere.put(&player, &told.node, visible));
    if is_changed {
        services.tell_of_elsewhere(hints, &realm, &player);
    }
}

/// Another node told of a friendship.
pub(super) fn heard_friends(services: &Services, hints: &Hints, told: &FriendsChanged) {
    if let Some((realm, one, other)) = told.players() {
        hints.befriended(services, &realm, (&one, &other), told.are_friends);
    }
}

/// Writes who is here.
pub(super) async fn write(services: Services) {
    let (Some(hints), Some(cluster)) = (services.hints(), services.cluster()) else { return };
    loop {
        hints.friends.changed.notified().await;
        sleep(WRITE_EVERY).await;
        // Without an incarnation nothing that it wrote would count; the sweep writes all again.
        let Some(incarnation) = cluster.standing().incarnation() else { continue };
        loop {
            let part: Vec<_> = {
                let mut unwritten = lock(&hints.friends.unwritten);
                core::iter::from_fn(|| unwritten.pop_first()).take(PART).collect()
            };
            if part.is_empty() {
                break;
            }
            let written = services.store().write_presence((&hints.node, incarnation), &part).await;
            if let Err(error) = written {
                tracing::debug!(%error, "presence of players could not be written");
                let mut unwritten = lock(&hints.friends.unwritten);
                for (key, saying) in part {
                    unwritten.entry(key).or_insert(saying);
                }
                hints.friends.changed.notify_one();
                break;
            }
        }
    }
}

/// Reads where friends are: of whom nothing is known at once, and all now and then.
pub(super) async fn sweep(services: Services) {
    let (Some(hints), Some(cluster)) = (services.hints(), services.cluster()) else { return };
    let mut missed = hints.bus.missed();
    let (mut swept, mut serving) = (Instant::now(), BTreeSet::new());
    loop {
        let is_missed = tokio::select! {
            () = hints.friends.asked.notified() => false,
            is_missed = until_due(LOOK_EVERY, &mut missed) => is_missed,
        };
        let nodes: BTreeSet<_> =
            cluster.nodes().serving().map(|node| (node.id.clone(), node.incarnation)).collect();
        let is_due = is_missed || swept.elapsed() >= SWEEP_EVERY || nodes != serving;
        let unread = core::mem::take(&mut *lock(&hints.friends.unread));
        let done = async {
            read(&services, hints, unread, false).await?;
            if is_due {
                read(&services, hints, all(hints), true).await?;
                repair(&services, hints).await?;
            }
            Ok::<(), StoreError>(())
        };
        match done.await {
            Ok(()) if is_due => (swept, serving) = (Instant::now(), nodes),
            Ok(()) => {}
            Err(error) => tracing::debug!(%error, "presence at other nodes could not be read"),
        }
    }
}

/// Everybody whom players here want to know of, and these players.
fn all(hints: &Hints) -> BTreeSet<Key> {
    let realms = lock(&hints.friends.realms);
    let of_realm = |(realm, of_realm): (&Realm, &OfRealm)| -> Vec<Key> {
        let accounts = of_realm.elsewhere.watched().chain(of_realm.here.keys());
        accounts.map(|account| (realm.clone(), account.clone())).collect()
    };
    realms.iter().flat_map(of_realm).collect()
}

/// Reads where these players are, and tells what is new.
async fn read(
    services: &Services,
    hints: &Hints,
    players: BTreeSet<Key>,
    is_sweep: bool,
) -> Result<(), StoreError> {
    let players: Vec<Key> = players.into_iter().collect();
    for of_realm in players.chunk_by(|one, next| one.0 == next.0) {
        let realm = &of_realm[0].0;
        for part in of_realm.chunks(PART) {
            let accounts: Vec<AccountId> = part.iter().map(|(_, account)| account.clone()).collect();
            let rows = services.store().presence_of(realm, &accounts).await?;
            let mut found: BTreeMap<AccountId, Vec<PresenceRow>> = BTreeMap::new();
            for row in rows.into_iter().filter(|row| row.node != hints.node) {
                found.entry(row.account.clone()).or_default().push(row);
            }
            for account in &accounts {
                let rows = found.remove(account).unwrap_or_default();
                if put(services, hints, (realm, account), rows) && is_sweep {
                    hints.found.presence.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
    Ok(())
}

/// Takes in where a player is. Returns whether that is new.
fn put(
    services: &Services,
    hints: &Hints,
    (realm, account): (&Realm, &AccountId),
    rows: Vec<PresenceRow>,
) -> bool {
    if let Some(newest) = rows.iter().max_by_key(|row| row.saying.said_ms) {
        services.adopt(hints, realm, account, newest.saying.clone());
    }
    let visible = rows.into_iter().filter(|row| row.saying.is_visible);
    let at = visible.map(|row| (row.node, (row.saying.said_ms, status_of(row.saying)))).collect();
    let is_changed = hints.friends.with(realm, |of_realm| of_realm.elsewhere.replace(account, at));
    if is_changed {
        services.tell_of_elsewhere(hints, realm, account);
    }
    is_changed
}

/// Writes all who are here again, if the store has others: after a crash of the database, or under another incarnation.
async fn repair(services: &Services, hints: &Hints) -> Result<(), StoreError> {
    let incarnation = services.cluster().and_then(|cluster| cluster.standing().incarnation());
    let Some(incarnation) = incarnation else { return Ok(()) };
    let stored = services.store().presence_count((&hints.node, incarnation)).await?;
    let here: Vec<(Key, Saying)> = {
        let realms = lock(&hints.friends.realms);
        let of_realm = |(realm, of_realm): (&Realm, &OfRealm)| -> Vec<(Key, Saying)> {
            let here = of_realm.here.iter();
            here.map(|(account, saying)| ((realm.clone(), account.clone()), saying.clone())).collect()
        };
        realms.iter().flat_map(of_realm).collect()
    };
    if stored != here.len() as u64 {
        let keys: Vec<Key> = here.iter().map(|(key, _)| key.clone()).collect();
        services.store().keep_presence(&hints.node, &keys).await?;
        let mut unwritten = lock(&hints.friends.unwritten);
        for (key, saying) in here {
            unwritten.entry(key).or_insert(Some(saying));
        }
        hints.friends.changed.notify_one();
    }
    Ok(())
}
