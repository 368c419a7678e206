//! Moves of live rooms: a node gives a room to another one, with a snapshot of it. PostgreSQL's alone.

use super::Store;
use super::cluster::{Owner, RoomKey};
use super::error::StoreError;
use super::sql::{now_us, params};

impl Store {
    /// Gives a room of `from` to another node that serves, at `address` and under the next term. Returns that term; `None`
    /// if the row or the node has changed. If the answer is lost, only [`keep_live_room`](Self::keep_live_room) tells
    /// whose the room is.
    pub(crate) async fn give_live_room(
        &self,
        key: &RoomKey,
        (from, to): (&Owner, &Owner),
        address: &str,
        snapshot: &[u8],
    ) -> Result<Option<u64>, StoreError> {
        let (key, from, to) = (key.clone(), from.clone(), to.clone());
        let (address, snapshot) = (address.to_owned(), snapshot.to_vec());
        self.write_sparing(move |sql| {
            let mut rows = sql.rows(
                concat!(
                    "UPDATE live_rooms r SET node = $1::text, incarnation = $2::bigint, address = $3, term = r.term + 1,
                         snapshot = $4::bytea, moved_us = ",
                    now_us!(),
                    " WHERE r.code = $5 AND r.uid = decode($6::text, 'hex') AND r.term = $7
                         AND r.node = $8 AND r.incarnation = $9
                         AND EXISTS (SELECT 1 FROM nodes n
                             WHERE n.id = $1::text AND n.incarnation = $2::bigint AND n.state = 'serving')
                     RETURNING r.term"
                ),
                params![
                    &to.node,
                    to.incarnation,
                    &address,
                    snapshot.as_slice(),
                    &key.code,
                    &key.uid,
                    key.term,
                    &from.node,
                    from.incarnation
                ],
            )?;
            rows.first_mut().map(|row| row.number(0)).transpose()
        })
        .await
    }

    /// Keeps a room of a node for its present incarnation, under the next term: an earlier statement that gives it away
    /// changes nothing from then on. Returns that term; `None` if the room is not the node's any more.
    pub(crate) async fn keep_live_room(
        &self,
        key: &RoomKey,
        owner: &Owner,
    ) -> Result<Option<u64>, StoreError> {
        let (key, owner) = (key.clone(), owner.clone());
        self.write_sparing(move |sql| {
            let mut rows = sql.rows(
                "UPDATE live_rooms r SET term = r.term + 1, incarnation = $1::bigint
                 WHERE r.code = $2 AND r.uid = decode($3::text, 'hex') AND r.term = $4
                     AND r.node = $5::text AND r.incarnation <= $1::bigint
                     AND EXISTS (SELECT 1 FROM nodes n
                         WHERE n.id = $5::text AND n.incarnation = $1::bigint AND n.state <> 'gone')
                 RETURNING r.term",
                params![owner.incarnation, &key.code, &key.uid, key.term, &owner.node],
            )?;
            rows.first_mut().map(|row| row.number(0)).transpose()
        })
        .await
    }
}
