//! What is listed of this node's rooms: written once a second, for all that changed in one statement.

use super::{Directory, Fenced};
use crate::store::{Counts, RoomKey};
use core::time::Duration;
use parlor_hub::{RoomQuery, RoomSummary};
use parlor_proto::RoomCode;
use parlor_server::embed::{Shards, lock};

/// Interval of the writes.
const EVERY: Duration = Duration::from_secs(1);
/// Rooms that the shards are asked for at once.
const PAGE: usize = 256;

/// What the store has of a room; `None` until it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed(Option<Counts>);

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
        let mut query = RoomQuery { limit: PAGE, ..RoomQuery::default() };
        // A shard that has stopped has no rooms.
        while let Ok(page) = shards.rooms(query.clone()).await {
            changed.extend(page.rooms.iter().filter_map(|room| self.change_of(room)));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        if changed.is_empty() {
            return;
        }
        let rooms: Vec<(RoomKey, Counts)> =
            changed.iter().map(|(_, key, counts)| (key.clone(), *counts)).collect();
        match self.0.store.list_live_rooms_as(&owner, &rooms).await {
            // The others are written again, once their rows were compared.
            Ok(written) if written < rooms.len() as u64 => {
                self.count_fenced(Fenced::List, rooms.len() as u64 - written);
            }
            Ok(_) => {
                for (code, key, counts) in changed {
                    self.with_own(code, &key.uid, |own| own.listed = Listed(Some(counts)));
                }
            }
            Err(error) => tracing::debug!(%error, "what is listed of rooms could not be written yet"),
        }
    }

    /// What is to be written of a room, if that has changed.
    fn change_of(&self, room: &RoomSummary) -> Option<(RoomCode, RoomKey, Counts)> {
        let counts = Counts {
            members: room.members as u64,
            away: room.away as u64,
            players: room.players as u64,
            spectators: room.spectators as u64,
        };
        let own = lock(&self.0.rooms);
        let own = own.get(&room.code).filter(|own| own.listed != Listed(Some(counts)) && !own.is_homeless)?;
        let key = RoomKey { code: own.new.code.clone(), uid: own.new.uid.clone(), term: own.new.term };
        Some((room.code, key, counts))
    }
}
