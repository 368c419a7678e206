//! What is listed of this node's rooms: written once a second, for all that changed in one statement.

use super::{Directory, Fenced};
use crate::store::{Counts, ListedRoom, Owner, RoomKey, StoredRoster};
use core::hash::{BuildHasher, BuildHasherDefault};
use core::time::Duration;
use parlor_hub::{RoomQuery, RoomRoster, RoomSummary};
use parlor_proto::RoomCode;
use parlor_server::embed::{Shards, lock};
use std::collections::hash_map::DefaultHasher;

/// Interval of the writes.
const EVERY: Duration = Duration::from_secs(1);
/// Rooms that the shards are asked for at once.
const PAGE: usize = 256;

/// Rooms that one statement changes.
const WRITTEN: usize = 256;

/// What the store has of a room, with the roster's hash; `None` until it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed(Option<(Counts, Option<u64>)>);

impl Listed {
    pub(super) fn members(self) -> u64 {
        self.0.map_or(0, |(counts, _)| counts.members)
    }
}

/// What is to be written of a room.
struct Change {
    code: RoomCode,
    listed: Listed,
    room: ListedRoom,
}

impl Directory {
    pub(super) async fn list_all(self, shards: Shards) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.list_changes(&shards).await;
        }
    }

    async fn list_changes(&self, shards: &Shards) {
        let Some(owner) = self.owner() else { return };
        let mut changed = Vec::new();
        let mut query = RoomQuery { limit: PAGE, rosters: true, ..RoomQuery::default() };
        // A shard that has stopped has no rooms.
        while let Ok(page) = shards.rooms(query.clone()).await {
            let rooms = page.rooms.iter().zip(page.rosters);
            changed.extend(rooms.filter_map(|(room, roster)| self.change_of(room, roster)));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        for part in changed.chunks(WRITTEN) {
            self.write_changes(&owner, part).await;
        }
    }

    async fn write_changes(&self, owner: &Owner, changed: &[Change]) {
        let rooms: Vec<ListedRoom> = changed.iter().map(|change| change.room.clone()).collect();
        match self.0.store.list_live_rooms_as(owner, &rooms).await {
            // The others are written again, once their rows were compared.
            Ok(written) if written < rooms.len() as u64 => {
                self.count_fenced(Fenced::List, rooms.len() as u64 - written);
            }
            Ok(_) => {
                for Change { code, listed, room: (key, ..) } in changed {
                    self.with_own(*code, &key.uid, |own| own.listed = *listed);
                }
            }
            Err(error) => tracing::debug!(%error, "what is listed of rooms could not be written yet"),
        }
    }

    /// What is to be written of a room, if that has changed.
    fn change_of(&self, room: &RoomSummary, roster: Option<RoomRoster>) -> Option<Change> {
        let counts = Counts {
            members: room.members as u64,
            away: room.away as u64,
            players: room.players as u64,
            spectators: room.spectators as u64,
        };
        let hash =
            |roster: &RoomRoster| BuildHasherDefault::<DefaultHasher>::default().hash_one(&roster.bytes);
        let listed = Listed(Some((counts, roster.as_ref().map(hash))));
        let own = lock(&self.0.rooms);
        let own = own.get(&room.code).filter(|own| own.listed != listed && !own.is_homeless)?;
        let key = RoomKey { code: own.new.code.clone(), uid: own.new.uid.clone(), term: own.new.term };
        let roster = roster.map(|roster| StoredRoster {
            bytes: roster.bytes.to_vec(),
            host: roster.host.map(|host| host.0.into()),
            epoch: roster.epoch.0.into(),
        });
        Some(Change { code: room.code, listed, room: (key, counts, roster) })
    }
}
