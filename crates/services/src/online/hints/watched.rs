//! Turn rooms that players watch here and other nodes change.
//!
//! Hints carry what watchers are told. What was lost is nowhere kept, so watchers that missed something are cut off:
//! they come back, and read the room.

use super::{Hints, until_due};
use crate::cluster::bus::{Hint, RoomChanged};
use crate::online::Services;
use crate::online::failure::Failure;
use crate::online::rooms::{self, Key, watched};
use crate::store::RoomId;
use core::sync::atomic::Ordering;
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_turn::{Effect, TurnRoom};
use std::collections::BTreeMap;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Interval of the sweep.
const SWEEP_EVERY: Duration = Duration::from_secs(4);
/// How long a hint may take after a sweep has seen its commit.
const HINT_TIME: Duration = Duration::from_millis(500);
/// Maximum number of rooms that one query of the sweep names.
const SWEEP_PART: usize = 1_000;

impl Hints {
    /// Tells a change of a room to those who watch it here and at the other nodes. The caller holds the room's lock.
    pub(in crate::online) fn tell_watchers(
        &self,
        services: &Services,
        realm: &Realm,
        (room, before): (&TurnRoom, u64),
        effects: &[Effect],
    ) {
        let Ok(id) = RoomId::new(room.id().as_str()) else { return };
        let key = (realm.clone(), id);
        // Without spectators nobody else is told; who watches a seat that it then leaves is found by the sweep.
        let is_watched = room.config().spectators;
        if !is_watched && !services.subscriptions().has(&key) {
            return;
        }
        let change = RoomChanged {
            realm: realm.path().to_owned(),
            room: key.1.to_string(),
            before,
            version: room.version(),
            watched: Some(watched(services, room, effects)),
        };
        if is_watched {
            self.bus.tell(Hint::Room(change.clone()));
        }
        services.subscriptions().changed(services, &key, room, change);
    }

    /// Tells the other nodes that a room was deleted.
    pub(in crate::online) fn tell_room_gone(&self, realm: &Realm, id: &RoomId) {
        let (realm, room) = (realm.path().to_owned(), id.to_string());
        let gone = RoomChanged { realm, room, before: u64::MAX, version: u64::MAX, watched: None };
        self.bus.tell(Hint::Room(gone));
    }
}

/// Tells what other nodes did to rooms that are watched here, one after another: of one document at a time.
pub(super) async fn follow(services: Services, mut changes: mpsc::Receiver<RoomChanged>) {
    while let Some(change) = changes.recv().await {
        let Some(key) = change.key() else { continue };
        if !services.subscriptions().has(&key) {
            continue;
        }
        match rooms::stored(&services, &key).await {
            Ok(Some(room)) => services.subscriptions().changed(&services, &key, &room, change),
            Ok(None) => services.subscriptions().end_room(&services, &key.0, &key.1),
            // The sweep comes back to it.
            Err(failure) => tracing::debug!(room = %key.1, ?failure, "a watched room could not be read"),
        }
    }
}

/// Looks now and then whether a room that is watched here has a version that no hint told.
pub(super) async fn sweep(services: Services) {
    let Some(to) = services.hints() else { return };
    let mut missed = to.bus.missed();
    loop {
        until_due(SWEEP_EVERY, &mut missed).await;
        for part in services.subscriptions().all_told().chunks(SWEEP_PART) {
            if let Err(failure) = sweep_part(&services, to, part).await {
                tracing::debug!(?failure, "the rooms that are watched here could not be looked at");
                break;
            }
        }
    }
}

async fn sweep_part(services: &Services, to: &Hints, part: &[(Key, u64)]) -> Result<(), Failure> {
    let keys: Vec<Key> = part.iter().map(|(key, _)| key.clone()).collect();
    let versions: BTreeMap<Key, u64> = services.store().room_versions(&keys).await?.into_iter().collect();
    let is_behind = |(key, told): &&(Key, u64)| versions.get(key).is_none_or(|version| told < version);
    let behind: Vec<Key> = part.iter().filter(is_behind).map(|(key, _)| key.clone()).collect();
    if behind.is_empty() {
        return Ok(());
    }
    // A hint may be on its way.
    sleep(HINT_TIME).await;
    for key in behind {
        let subscriptions = services.subscriptions();
        let Some(told) = subscriptions.told(&key) else { continue };
        if versions.get(&key).is_some_and(|version| told >= *version) {
            continue;
        }
        match rooms::stored(services, &key).await? {
            Some(room) => {
                let is_found = subscriptions.missed(services, &key, &room);
                to.found.rooms.fetch_add(is_found.into(), Ordering::Relaxed);
            }
            None => subscriptions.end_room(services, &key.0, &key.1),
        }
    }
    Ok(())
}
