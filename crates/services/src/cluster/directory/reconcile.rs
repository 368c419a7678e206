//! Compares the rooms of this node with their rows.

use super::listing::Listed;
use super::{Directory, Fenced};
use crate::store::{EnteredRow, NewLiveRoom, OwnedRow, Owner, RoomKey, StoreError};
use core::time::Duration;
use parlor_proto::RoomCode;
use parlor_server::embed::{Shards, lock};
use std::collections::HashMap;

/// How long a row of this node may be unknown to it: its room may be about to open.
const ORPHAN_AGE: Duration = Duration::from_secs(30);

impl Directory {
    /// Compares the rooms here with the rows, as the node's incarnation. Returns whether that is done.
    pub(in crate::cluster) async fn reconcile(&self, incarnation: u64, shards: &Shards) -> bool {
        let owner = Owner { node: self.0.node.as_str().to_owned(), incarnation };
        match self.compare(&owner, shards).await {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "the rooms here could not be compared with the store's");
                false
            }
        }
    }

    async fn compare(&self, owner: &Owner, shards: &Shards) -> Result<(), StoreError> {
        let rows = self.0.store.live_rooms_of(owner).await?;
        let rows: HashMap<String, OwnedRow> =
            rows.into_iter().map(|row| (row.key.code.clone(), row)).collect();
        let (missing, orphans) = self.differences(&rows);
        if !orphans.is_empty() {
            tracing::info!(rooms = orphans.len(), "rows of rooms that are not here are deleted");
            self.0.store.leave_live_rooms(self.0.node.as_str(), &orphans).await?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let codes: Vec<String> = missing.iter().map(|(_, new)| new.code.clone()).collect();
        let others = self.0.store.live_rooms_at(&codes).await?;
        let others: HashMap<String, OwnedRow> =
            others.into_iter().map(|row| (row.key.code.clone(), row)).collect();
        let mut earlier = Vec::new();
        for (code, new) in missing {
            match others.get(&new.code) {
                None => self.enter_again(code, new, owner).await?,
                Some(row) if row.key.uid != new.uid => self.is_homeless(code, &new),
                Some(row) if row.owner == *owner => self.set_term(code, &row.key, row.key.term),
                Some(row) if row.owner.node == owner.node => earlier.push((code, row.key.clone())),
                Some(row) => self.give_up(code, &new, row, shards).await,
            }
        }
        if !earlier.is_empty() {
            let keys: Vec<RoomKey> = earlier.iter().map(|(_, key)| key.clone()).collect();
            let taken = self.0.store.retake_live_rooms(owner, &keys).await?;
            tracing::info!(taken, "rooms of this node's earlier incarnation are its own again");
            for (code, key) in earlier {
                self.set_term(code, &key, key.term + 1);
            }
        }
        Ok(())
    }

    /// Rooms without a row of the present incarnation, and rows without a room.
    fn differences(&self, rows: &HashMap<String, OwnedRow>) -> (Vec<(RoomCode, NewLiveRoom)>, Vec<RoomKey>) {
        let own = lock(&self.0.rooms);
        let has_row = |new: &NewLiveRoom| {
            rows.get(&new.code).is_some_and(|row| row.key.uid == new.uid && row.key.term == new.term)
        };
        let missing = own.iter().filter(|(_, own)| !has_row(&own.new) && !own.is_homeless);
        let missing = missing.map(|(code, own)| (*code, own.new.clone())).collect();
        let is_orphan = |row: &&OwnedRow| {
            let code = row.key.code.parse::<RoomCode>().ok();
            let own = code.and_then(|code| own.get(&code));
            row.age_us >= u64::try_from(ORPHAN_AGE.as_micros()).unwrap_or(u64::MAX)
                && own.is_none_or(|own| own.new.uid != row.key.uid)
        };
        (missing, rows.values().filter(is_orphan).map(|row| row.key.clone()).collect())
    }

    /// Enters a room again that the store lost.
    async fn enter_again(&self, code: RoomCode, new: NewLiveRoom, owner: &Owner) -> Result<(), StoreError> {
        // It may have ended since.
        if self.with_own(code, &new.uid, |_| ()).is_none() {
            return Ok(());
        }
        let uid = new.uid.clone();
        match self.0.store.enter_live_room(NewLiveRoom { owner: owner.clone(), token: None, ..new }).await? {
            EnteredRow::Done => {
                tracing::info!(%code, "a room that the store had lost is entered again");
                self.with_own(code, &uid, |own| own.listed = Listed::default());
            }
            EnteredRow::Taken | EnteredRow::Used | EnteredRow::Fenced => self.count_fenced(Fenced::Keep, 1),
        }
        Ok(())
    }

    /// The store has another room under the code. This one goes on, and players find it if they ask this node.
    fn is_homeless(&self, code: RoomCode, new: &NewLiveRoom) {
        tracing::warn!(%code, "another node has a room under a code of this one's: this one is found at this node alone");
        self.count_fenced(Fenced::Keep, 1);
        self.with_own(code, &new.uid, |own| own.is_homeless = true);
    }

    /// Another node has the room: it ends here, and its members are sent there.
    async fn give_up(&self, code: RoomCode, new: &NewLiveRoom, row: &OwnedRow, shards: &Shards) {
        tracing::warn!(%code, node = %row.owner.node, term = row.key.term, "another node has this room: it ends here");
        self.count_fenced(Fenced::Keep, 1);
        self.forget(code, &new.uid);
        // A shard that has stopped has no rooms.
        let nodes = self.0.nodes.get();
        let owner = nodes.serving().find(|node| node.id.as_str() == row.owner.node);
        let address = owner.map(|node| node.address.clone()).unwrap_or_default();
        let _ = shards.move_room(code, address).await;
    }

    fn set_term(&self, code: RoomCode, key: &RoomKey, term: u64) {
        self.with_own(code, &key.uid, |own| own.new.term = term);
    }
}
