//! Matchmaking: joinable rooms, and rooms that are hidden because their players are away.

use super::Store;
use super::error::StoreError;
use super::ids::{AccountId, RoomId};
use super::rooms::{listings, page, parse_cursor_down};
use super::sql::params;
use super::types::{PAGE_BYTES_MAX, PAGE_MAX, Page, RoomListing};
use parlor_server::realm::Realm;

impl Store {
    /// Joinable rooms of a game, the newest first. With `wanted`, only rooms with this hash.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn joinable_rooms(
        &self,
        realm: &Realm,
        game: &str,
        wanted: Option<[u8; 32]>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<RoomListing>, StoreError> {
        let (created_ms, id) = parse_cursor_down(after)?;
        let (realm, game, limit) = (realm.clone(), game.to_owned(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = match &wanted {
                None => sql.rows_within(
                    "SELECT id, code, game, version, summary, created_ms, players FROM rooms
                     WHERE realm = $1 AND game = $2 AND joinable = 1 AND (created_ms, id) < ($3, $4)
                     ORDER BY created_ms DESC, id DESC LIMIT $5",
                    params![&realm, &game, created_ms, &id, limit + 1],
                    PAGE_BYTES_MAX,
                ),
                Some(wanted) => sql.rows_within(
                    "SELECT id, code, game, version, summary, created_ms, players FROM rooms
                     WHERE realm = $1 AND game = $2 AND wanted = $3 AND joinable = 1 AND (created_ms, id) < ($4, $5)
                     ORDER BY created_ms DESC, id DESC LIMIT $6",
                    params![&realm, &game, wanted, created_ms, &id, limit + 1],
                    PAGE_BYTES_MAX,
                ),
            }?;
            page(part, limit)
        })
        .await
    }

    /// The open rooms of a player, the newest first: at most one page.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn open_rooms_of(
        &self,
        realm: &Realm,
        player: &AccountId,
        limit: usize,
    ) -> Result<Vec<RoomListing>, StoreError> {
        let (realm, player, limit) = (realm.clone(), player.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT r.id, r.code, r.game, r.version, r.summary, r.created_ms, r.players
                 FROM room_players p JOIN rooms r ON r.realm = p.realm AND r.id = p.room
                 WHERE p.realm = $1 AND p.account = $2 AND p.stage < 2
                 ORDER BY p.created_ms DESC, p.room DESC LIMIT $3",
                params![&realm, &player, limit],
                PAGE_BYTES_MAX,
            )?;
            listings(part.rows)
        })
        .await
    }

    /// Counts the waiting rooms of a player, which [`GATHERING_ROOMS_MAX`](super::GATHERING_ROOMS_MAX)
    /// limits.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn waiting_rooms_of(&self, realm: &Realm, player: &AccountId) -> Result<u64, StoreError> {
        let (realm, player) = (realm.clone(), player.clone());
        self.read(move |sql| {
            let mut rows = sql.rows(
                "SELECT COUNT(*) FROM room_players WHERE realm = $1 AND account = $2 AND stage = 0",
                params![&realm, &player],
            )?;
            rows.first_mut().map_or(Ok(0), |row| row.number(0))
        })
        .await
    }

    /// Hides these rooms from searches until one of their players returns. Skips rooms that have changed
    /// since they were read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn rooms_asleep(&self, realm: &Realm, rooms: Vec<(RoomId, u64)>) -> Result<(), StoreError> {
        let realm = realm.clone();
        // Also in a full store: otherwise no player could look for a room there.
        self.write_sparing(move |sql| {
            for (room, version) in &rooms {
                sql.later(
                    "UPDATE rooms SET joinable = 2 WHERE realm = $1 AND id = $2 AND version = $3 AND joinable = 1",
                    params![&realm, room, *version],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Shows the hidden rooms of a player that returned.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn wake_rooms_of(&self, realm: &Realm, player: &AccountId) -> Result<(), StoreError> {
        let (of, account) = (realm.clone(), player.clone());
        // A player without hidden rooms costs no write.
        let asleep: Vec<RoomId> = self
            .read(move |sql| {
                let rows = sql.rows(
                    "SELECT r.id FROM room_players p JOIN rooms r ON r.realm = p.realm AND r.id = p.room
                     WHERE p.realm = $1 AND p.account = $2 AND p.stage = 0 AND r.joinable = 2 LIMIT $3",
                    params![&of, &account, PAGE_MAX],
                )?;
                rows.into_iter().map(|mut row| Ok(RoomId::new(&row.text(0)?)?)).collect()
            })
            .await?;
        if asleep.is_empty() {
            return Ok(());
        }
        let realm = realm.clone();
        // Also in a full store: otherwise rooms of returned players would stay hidden.
        self.write_sparing(move |sql| {
            for room in &asleep {
                sql.later(
                    "UPDATE rooms SET joinable = 1 WHERE realm = $1 AND id = $2 AND joinable = 2",
                    params![&realm, room],
                )?;
            }
            Ok(())
        })
        .await
    }
}
